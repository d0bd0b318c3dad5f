/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Symbols are bound where they are first seen: for every committed model, every result whose size
 * the plan counts as known has, when it is computed, the dims that the bound symbols said before.
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
#include "common/model_plan.h"
#include "common/no_error.h"
#include "common/test_device.h"
#include "ir/infer.h"
#include "ir/parser.h"
#include "runtime/executor.h"

/* ---- Small graphs ---------------------------------------------------------------------------- */

struct made {
    struct ir_graph *graph;
    struct plan *plan;
};

static struct made make(const char *text)
{
    struct made made;
    no_error(ir_parse(&allocator_default, text, strlen(text), &made.graph));
    no_error(ir_infer_graph(made.graph));
    no_error(plan_create(made.graph, test_device(), &made.plan));
    return made;
}

static void drop(struct made *made)
{
    plan_free(made->plan);
    ir_graph_free(made->graph);
}

static bool is_sized(const struct made *made, const char *name)
{
    const struct block_plan *body = made->plan->body;
    for (uint32_t i = 0; i < body->n_steps; i++) {
        const struct ir_value *value = &body->steps[i].op->results[0];
        if (value->name && strcmp(value->name, name) == 0)
            return made->plan->sized[body->steps[i].first_output];
    }
    fail_msg("no result %s", name);
    return false;
}

static void test_data_dependent(void **state)
{
    (void)state;
    struct made made = make("graph @g opset(\"\": 21) ir_version(10) (%x: f32[N]) -> (%z) {\n"
                            "  %a = Neg@13(%x)\n"
                            "  %k = NonZero@13(%a)\n"
                            "  %t = Transpose@21(%k) {perm = [1, 0]}\n"
                            "  %g = GatherND@13(%x, %t)\n"
                            "  %z = Concat@13(%g, %g) {axis = 0}\n"
                            "  return(%z)\n}\n");
    assert_true(is_sized(&made, "a"));
    assert_false(is_sized(&made, "k")); /* nobody knows how many there will be */
    assert_true(is_sized(&made, "t"));
    assert_true(is_sized(&made, "g"));
    assert_true(is_sized(&made, "z"));
    assert_int_equal(made.plan->n_input_symbols, 1);
    assert_int_equal(made.plan->n_symbols, 2);
    drop(&made);
}

/* ---- Models ---------------------------------------------------------------------------------- */

#define MAX_OUTPUTS 64

/* What the symbols say before a step runs. cmocka runs one test at a time. */
static struct {
    size_t sized, unsized, late; /* late: known, but not from the inputs alone */
} tally;

static bool dims_of(const struct run *run, uint32_t n, const struct ir_type *type, int64_t *dims)
{
    for (int i = 0; i < type->rank; i++)
        if (!plan_dim(run->plan, run->symbols, n, type->dims[i], &dims[i]))
            return false;
    return true;
}

static void check_output(const struct run *run, const struct step *step, uint32_t i,
                         const int64_t *dims)
{
    const struct value *value = run->outputs[step->first_output + i];
    const struct ir_type *type = step->op->results[i].type;
    if (!value)
        return;
    assert_int_equal(value->kind, TSSA_KIND_TENSOR);
    assert_int_equal(value->tensor.rank, type->rank);
    for (int d = 0; d < type->rank; d++)
        if (dims[d] != value->tensor.dims[d])
            fail_msg("%s: dim %d is %lld, not %lld", step->op->info->name, d,
                     (long long)value->tensor.dims[d], (long long)dims[d]);
}

static tssa_status *run_checked(struct run *run, const struct step *step)
{
    int64_t dims[MAX_OUTPUTS][TSSA_MAX_RANK];
    assert_true(step->n_outputs <= MAX_OUTPUTS);
    for (uint32_t i = 0; i < step->n_outputs; i++) {
        const struct ir_type *type = step->op->results[i].type;
        const bool sized = run->plan->sized[step->first_output + i];
        tally.sized += sized;
        tally.unsized += !sized;
        if (!sized || type->rank < 0)
            continue;
        tally.late += !dims_of(run, run->plan->n_input_symbols, type, dims[i]);
        assert_true(dims_of(run, run->plan->n_symbols, type, dims[i]));
    }
    tssa_status *status = step->kernel ? executor_run_kernel(run, step) : step->compute(run, step);
    for (uint32_t i = 0; !status && i < step->n_outputs; i++)
        if (run->plan->sized[step->first_output + i])
            check_output(run, step, i, dims[i]);
    return status;
}

/*
 * Puts the check around every kernel. Control flow is left alone, and so is what is in it checked.
 */
static void check_block(const struct block_plan *block)
{
    for (uint32_t i = 0; i < block->n_steps; i++) {
        struct step *step = (struct step *)&block->steps[i]; /* the plan is the test's */
        for (uint32_t b = 0; b < step->n_blocks; b++)
            check_block(step->blocks[b]);
        if (!step->kernel)
            continue;
        step->compute = run_checked;
        if (!step->binds)
            step->run = run_checked;
    }
}

static void run_model(const char *path, int level)
{
    struct model_plan p;
    model_plan_open(&p, path, level, TSSA_TARGET_ONNX);
    check_block(p.plan->body);
    model_plan_execute(&p);
    model_plan_close(&p);
}

static void one_model(void **state)
{
    run_model(*state, 0);
    run_model(*state, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_data_dependent)};
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    failed += committed_models_test(one_model);
    printf("%zu results of known size, %zu of them from symbols that steps tell; %zu of unknown "
           "size\n",
           tally.sized, tally.late, tally.unsized);
    return failed || tally.late == 0;
}
