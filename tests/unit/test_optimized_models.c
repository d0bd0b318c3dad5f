/* SPDX-License-Identifier: Apache-2.0 */
/* Level 1, `recover` and `fuse` change no bit: every committed model gives the same bytes with and
 * without. */
/* ctest-timeout: 300 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/handles.h"
#include "common/committed_models.h"
#include "common/model_run.h"
#include "common/same_value.h"

static void must(const char *path, tssa_status *status)
{
    if (status)
        fail_msg("%s: %s", path, tssa_status_message(status));
}

/* Loads the model, optimizes it, and runs it on its test data. */
static void run_model(const char *path, const tssa_optimize_options *options, struct model_run *run)
{
    must(path, model_run_open(run, path, 0));
    must(path, tssa_model_optimize(run->model, options));
    must(path, model_run_read_inputs(run, path));
    must(path, model_run_execute(run));
}

static void compare_runs(const char *path, const struct model_run *plain,
                         const struct model_run *optimized)
{
    assert_int_equal(plain->output_count, optimized->output_count);
    for (size_t i = 0; i < plain->output_count; i++)
        if (!same_value(model_run_output(plain, i), model_run_output(optimized, i)))
            fail_msg("%s: output %zu changes", path, i);
}

static void one_model(void **state)
{
    static const char *const recover[] = {"identity",  "fold_shapes", "fold_constants",
                                          "dead_code", "recover",     "dead_code"};
    static const char *const fuse[] = {"identity", "fold_shapes", "dead_code",
                                       "recover",  "dead_code",   "fuse"};
    static const tssa_optimize_options ways[] = {
        {.struct_size = sizeof *ways, .level = 1, .verify_after_passes = 1},
        {.struct_size = sizeof *ways,
         .passes = recover,
         .n_passes = sizeof recover / sizeof *recover,
         .verify_after_passes = 1},
        {.struct_size = sizeof *ways,
         .passes = fuse,
         .n_passes = sizeof fuse / sizeof *fuse,
         .verify_after_passes = 1},
    };
    const char *path = *state;
    struct model_run plain = {0};
    run_model(
        path,
        &(const tssa_optimize_options){.struct_size = sizeof(tssa_optimize_options), .level = 0},
        &plain);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        struct model_run optimized = {0};
        run_model(path, &ways[i], &optimized);
        compare_runs(path, &plain, &optimized);
        model_run_close(&optimized);
    }
    model_run_close(&plain);
}

int main(void)
{
    return committed_models_test(one_model);
}
