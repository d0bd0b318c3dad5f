/* SPDX-License-Identifier: Apache-2.0 */
#include "common/model_on_device.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "api/handles.h"
#include "common/no_error.h"
#include "common/same_value.h"
#include "tools/common/compare.h"

tssa_status *model_on_device_open(struct model_run *run, const char *path, int level,
                                  const char *device)
{
    const tssa_optimize_options optimize = {
        .struct_size = sizeof optimize, .level = level, .target = TSSA_TARGET_SESSION};
    const tssa_session_options options = {
        .struct_size = sizeof options, .device = device, .compile = TSSA_COMPILE_OFF};
    TRY(model_run_open(run, path, 0));
    TRY(tssa_model_optimize(run->model, &optimize));
    TRY(model_run_read_inputs(run, path));
    return tssa_session_create(run->model, &options, &run->session);
}

tssa_status *model_on_device_run(struct model_run *run)
{
    for (size_t i = 0; i < run->output_count; i++) {
        tssa_value_free(run->outputs[i]);
        run->outputs[i] = NULL;
    }
    return model_run_execute(run);
}

static bool has_products(const struct ir_block *block)
{
    for (const struct ir_op *op = block->first; op; op = op->next) {
        if (ir_op_is(op, IR_OP_MatMul) || ir_op_is(op, IR_OP_Gemm) || ir_op_is(op, IR_OP_Conv) ||
            ir_op_is(op, IR_OP_ConvTranspose))
            return true;
        for (uint32_t i = 0; i < op->n_blocks; i++)
            if (has_products(op->blocks[i]))
                return true;
    }
    return false;
}

static void compare(const struct model_run *made, const struct model_run *wanted, size_t i,
                    const char *path)
{
    static const struct compare_rule rule = {.rtol = 1e-3, .atol = 1e-5, .exact_integers = true};
    const struct value *value = model_run_output(made, i), *expected = model_run_output(wanted, i);
    struct compare_report report;
    if (same_value(value, expected))
        return;
    if (!has_products(made->model->graph->body))
        fail_msg("%s: output %zu is not the CPU's", path, i);
    if (!compare_values(value, expected, &rule, &report))
        fail_msg("%s: output %zu: %s", path, i, report.why);
}

void model_on_device_compare(const struct model_run *made, const struct model_run *wanted,
                             const char *path)
{
    for (size_t i = 0; i < wanted->output_count; i++)
        compare(made, wanted, i, path);
}

void model_on_device_check(const char *path, int level, const char *device, int runs)
{
    struct model_run wanted = {0}, made = {0};
    no_error(model_on_device_open(&wanted, path, level, NULL));
    no_error(model_run_execute(&wanted));
    no_error(model_on_device_open(&made, path, level, device));
    for (int i = 0; i < runs; i++) {
        no_error(model_on_device_run(&made));
        model_on_device_compare(&made, &wanted, path);
    }
    model_run_close(&wanted);
    model_run_close(&made);
}
