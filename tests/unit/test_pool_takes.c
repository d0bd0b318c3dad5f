/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where everything has a place, a run takes nothing from the pool: neither for results, nor on the
 * way of a kernel, nor for what loops stack and carry. That holds for every committed model at
 * level 2 whose runs are alike and whose outputs the caller gives; what is left is named here, with
 * the reason.
 */
/* ctest-timeout: 300 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "api/handles.h"
#include "common/committed_models.h"
#include "common/model_plan.h"
#include "runtime/executor.h"

#define RUNS 8 /* sizes are learnt, outputs are given, and the layout has taken its time */

static const struct {
    const char *model;
    uint64_t takes; /* in a run */
    const char *reason;
} exceptions[] = {
    {"multiscale_bbox", 8, "a sequence of three tensors is returned: it holds memory of its own"},
    {"multiscale_bbox_levels", 9, "the same"},
    {"multiscale_bbox_map", 8, "the same"},
    {"yolov3_by_class_small", 2,
     "two tensors are changed in place by a loop, for whoever owns them"},
};

static uint64_t expected_takes(const char *path)
{
    for (size_t i = 0; i < sizeof exceptions / sizeof *exceptions; i++) {
        const size_t length = strlen(exceptions[i].model);
        const char *name = strstr(path, exceptions[i].model);
        if (name && name[-1] == '/' && name[length] == '/')
            return exceptions[i].takes;
    }
    return 0;
}

static void one_model(void **state)
{
    struct model_plan p;
    uint64_t takes = 0;
    model_plan_open(&p, *state, 2, TSSA_TARGET_ONNX);
    for (int r = 0; r < RUNS; r++) {
        const uint64_t before = p.run->pool.takes;
        model_plan_release_others(&p);
        model_plan_execute(&p);
        takes = p.run->pool.takes - before;
    }
    assert_int_equal(takes, expected_takes(*state));
    model_plan_close(&p);
}

int main(void)
{
    return committed_models_test(one_model);
}
