/* SPDX-License-Identifier: Apache-2.0 */
#include "common/interpret_op.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/kernel_check.h"
#include "common/no_error.h"
#include "common/test_device.h"
#include "ir/clone.h"
#include "ir/infer.h"

static void add_param(struct ir_cloner *cloner, const struct ir_value *operand,
                      const struct tensor *tensor)
{
    struct ir_value *param = ir_block_add_param(cloner->graph->body);
    assert_non_null(param);
    param->type =
        type_tensor_const(&cloner->graph->types, tensor->dtype, tensor->rank, tensor->dims);
    assert_non_null(param->type);
    assert_true(ir_cloner_map(cloner, operand, param));
}

static struct ir_graph *graph_of(const struct kernel_args *args)
{
    struct ir_graph *graph = ir_graph_create(&allocator_default);
    struct ir_cloner cloner;
    uint32_t n = 0;
    assert_non_null(graph);
    ir_cloner_init(&cloner, graph);
    for (uint32_t i = 0; i < args->n_inputs; i++)
        add_param(&cloner, ir_operand(args->op, i), &args->inputs[i]->tensor);
    struct ir_op *copy = ir_clone_op(&cloner, args->op);
    assert_non_null(copy);
    ir_cloner_free(&cloner);
    ir_forget_declared(copy);
    ir_op_append(graph->body, copy);
    for (uint32_t i = 0; i < args->n_outputs; i++)
        n += args->outputs[i] != NULL;
    struct ir_op *ret = ir_op_create(graph, ir_op_info(IR_OP_return), n, 0);
    assert_non_null(ret);
    ir_op_append(graph->body, ret);
    for (uint32_t i = 0, k = 0; i < args->n_outputs; i++)
        if (args->outputs[i])
            ir_op_set_operand(ret, k++, &copy->results[i]);
    no_error(ir_infer_graph(graph));
    return graph;
}

tssa_status *interpret_op(struct kernel_args *args)
{
    struct kernel_program program = {0};
    kernel_program_open(&program, graph_of(args), test_device());
    tssa_status *status = run_execute(program.run, args->inputs, program.outputs);
    for (uint32_t i = 0, k = 0; i < args->n_outputs && !status; i++)
        if (args->outputs[i])
            value_copy(args->outputs[i], &program.outputs[k++]);
    kernel_program_close(&program);
    return status;
}
