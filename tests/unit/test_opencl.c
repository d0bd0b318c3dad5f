/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device `opencl` where there is one, as PoCL's: all committed models, after all passes, give
 * the CPU's bits, several times over, or within a tolerance where they have products of matrices,
 * which are summed in another order there; what a kernel finds wrong is an error of the run, and of
 * that run alone.
 */
/* ctest-timeout: 900 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "api/handles.h"
#include "common/committed_models.h"
#include "common/model_run.h"
#include "common/no_error.h"
#include "common/same_value.h"
#include "tools/common/compare.h"

#define RUNS 3

/* False: there is no such device on this machine. */
static bool open_on(struct model_run *run, const char *path, const char *device)
{
    const tssa_optimize_options optimize = {
        .struct_size = sizeof optimize, .level = 2, .target = TSSA_TARGET_SESSION};
    const tssa_session_options options = {
        .struct_size = sizeof options, .device = device, .compile = TSSA_COMPILE_OFF};
    no_error(model_run_open(run, path, 0));
    no_error(tssa_model_optimize(run->model, &optimize));
    tssa_status *status = tssa_session_create(run->model, &options, &run->session);
    const bool is_there = tssa_status_code(status) != TSSA_UNSUPPORTED;
    if (!is_there) {
        print_message("%s\n", tssa_status_message(status));
        tssa_status_free(status);
        return false;
    }
    no_error(status);
    no_error(model_run_read_inputs(run, path));
    return true;
}

/* What is given is written to, where it fits: sequences do not. */
static void drop_outputs(struct model_run *run)
{
    for (size_t k = 0; k < run->output_count; k++) {
        tssa_value_free(run->outputs[k]);
        run->outputs[k] = NULL;
    }
}

static bool has_products(const struct ir_block *block)
{
    for (const struct ir_op *op = block->first; op; op = op->next) {
        if (ir_op_is(op, IR_OP_MatMul) || ir_op_is(op, IR_OP_Gemm))
            return true;
        for (uint32_t i = 0; i < op->n_blocks; i++)
            if (has_products(op->blocks[i]))
                return true;
    }
    return false;
}

static void expect(const char *path, const struct model_run *made, const struct model_run *wanted,
                   size_t k)
{
    static const struct compare_rule rule = {.rtol = 1e-3, .atol = 1e-5, .exact_integers = true};
    const struct value *value = model_run_output(made, k), *expected = model_run_output(wanted, k);
    struct compare_report report;
    if (same_value(value, expected))
        return;
    if (!has_products(made->model->graph->body))
        fail_msg("%s: output %zu is not the CPU's", path, k);
    if (!compare_values(value, expected, &rule, &report))
        fail_msg("%s: output %zu: %s", path, k, report.why);
}

static void one_model(void **state)
{
    struct model_run wanted = {0}, made = {0};
    const char *path = *state;
    assert_true(open_on(&wanted, path, NULL));
    no_error(model_run_execute(&wanted));
    const bool is_there = open_on(&made, path, "opencl");
    for (int i = 0; i < RUNS && is_there; i++) {
        no_error(model_run_execute(&made));
        for (size_t k = 0; k < made.output_count; k++)
            expect(path, &made, &wanted, k);
        drop_outputs(&made);
    }
    model_run_close(&wanted);
    model_run_close(&made);
    if (!is_there)
        skip();
}

int main(void)
{
    return committed_models_test(one_model);
}
