/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a run holds at one time (tssa_session_memory) is at most a tenth more than its values need
 * at one time: than the greatest sum of live bytes of a run in which nothing is placed
 * (common/live_bytes.h), for every committed model.
 */
/* ctest-timeout: 300 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "api/handles.h"
#include "common/committed_models.h"
#include "common/live_bytes.h"
#include "common/model_plan.h"
#include "runtime/executor.h"

#define MOST_PERCENT 110
#define RUNS 6 /* sizes are learnt, and the layout takes its time */
/* For less than a page nothing is left to the pool (runtime/left.c), and sequences have headers. */
#define POOLED ((size_t)6 * 1024)
/* The branch of an If that is not taken has places too, and where that taken needs no memory, they
 * are all there is. */
#define NOT_TAKEN ((size_t)64)

struct figures {
    size_t held, live;
    uint64_t takes; /* of the last run, from the pool */
};

static struct figures measure_model(const char *path, int level, tssa_target target)
{
    struct model_plan p;
    struct figures figures;
    model_plan_open(&p, path, level, target);
    for (int i = 0; i < RUNS;
         i++) { /* from the second one on, tensors are written where the first one put them */
        model_plan_release_others(&p);
        p.run->pool.takes = 0;
        model_plan_execute(&p);
    }
    figures.held = p.run->memory.held; /* as tssa_session_memory tells */
    figures.takes = p.run->pool.takes;
    model_plan_release_others(&p);
    figures.live = live_bytes(p.model.model->graph, &p.model.context->device, p.inputs, p.outputs);
    model_plan_close(&p);
    return figures;
}

static const struct {
    int level;
    tssa_target target;
} ways[] = {{0, TSSA_TARGET_ONNX}, {2, TSSA_TARGET_ONNX}, {2, TSSA_TARGET_SESSION}};

static void one_model(void **state)
{
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        const struct figures f = measure_model(*state, ways[i].level, ways[i].target);
        const size_t most = f.live * MOST_PERCENT / 100 + NOT_TAKEN + (f.takes ? POOLED : 0) +
                            f.takes * pool_between;
        if (f.held > most)
            fail_msg("level %d: %zu bytes are held where %zu are live at one time", ways[i].level,
                     f.held, f.live);
    }
}

/* A row of a table. */
static void print_model(const char *path)
{
    const char *end = strrchr(path, '/'), *name = end;
    while (name > path && name[-1] != '/')
        name--;
    printf("| %.*s", (int)(end - name), name);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        const struct figures f = measure_model(path, ways[i].level, ways[i].target);
        printf(" | %zu | %zu | %.3f", f.held, f.live, f.live ? (double)f.held / (double)f.live : 1);
    }
    printf(" |\n");
}

/* With models as arguments, rows of a table: name; bytes held, bytes live and their ratio, as
 * loaded, at level 2, and at level 2 for sessions. */
int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        print_model(argv[i]);
    return argc > 1 ? 0 : committed_models_test(one_model);
}
