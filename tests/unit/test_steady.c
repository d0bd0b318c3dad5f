/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs that are all alike take nothing from the allocator: none of 1,000 runs of any committed
 * model does, when the caller gives the memory of the outputs. An output that is a sequence cannot
 * be given: of those every run takes the same.
 */
/* ctest-timeout: 600 */
/* ctest-labels: slow */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "common/committed_models.h"
#include "common/model_run.h"
#include "common/no_error.h"
#include "common/test_alloc.h"
#include "common/xmalloc.h"

/* Outputs are made, then given; sizes are learnt, and let go of once in 16 runs. */
#define WARM_UP 20
#define RUNS 1000

static void open_model(struct model_run *run, const char *path, int level,
                       const tssa_allocator *allocator)
{
    const tssa_context_options options = {
        .struct_size = sizeof options, .threads = 1, .allocator = allocator};
    const tssa_optimize_options optimize = {.struct_size = sizeof optimize, .level = level};
    no_error(tssa_context_create(&options, &run->context));
    no_error(tssa_model_load_file(run->context, path, NULL, &run->model));
    no_error(tssa_model_optimize(run->model, &optimize));
    run->input_count = tssa_model_input_count(run->model);
    run->output_count = tssa_model_output_count(run->model);
    run->inputs = xcalloc(run->input_count, sizeof(tssa_value *));
    run->outputs = xcalloc(run->output_count, sizeof(tssa_value *));
    no_error(model_run_read_inputs(run, path));
}

/* Returns how many outputs had to go. */
static size_t drop_sequences(struct model_run *run)
{
    size_t n = 0;
    for (size_t i = 0; i < run->output_count; i++)
        if (run->outputs[i] && tssa_value_kind(run->outputs[i]) != TSSA_KIND_TENSOR) {
            tssa_value_free(run->outputs[i]);
            run->outputs[i] = NULL;
            n++;
        }
    return n;
}

/* Allocations of one run, and in *sequences its outputs that are sequences. */
static long count_run(struct model_run *run, const struct test_alloc *counter, size_t *sequences)
{
    *sequences = drop_sequences(run);
    const long before = counter->count;
    no_error(model_run_execute(run));
    return counter->count - before;
}

static void run_model(const char *path, int level)
{
    struct test_alloc counter;
    struct model_run run = {0};
    size_t sequences;
    test_alloc_init(&counter);
    open_model(&run, path, level, &counter.allocator);
    for (int i = 0; i < WARM_UP; i++)
        count_run(&run, &counter, &sequences);
    const long steady = count_run(&run, &counter, &sequences);
    assert_true(sequences ? steady > 0 : steady == 0);
    for (int i = 1; i < RUNS; i++)
        assert_int_equal(count_run(&run, &counter, &sequences), steady);
    model_run_close(&run);
    assert_int_equal(counter.live, 0);
}

static void one_model(void **state)
{
    run_model(*state, 0);
    run_model(*state, 2);
}

int main(void)
{
    return committed_models_test(one_model);
}
