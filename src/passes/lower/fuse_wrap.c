/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/lower/fuse_wrap.h"

#include "ir/fuse.h"

tssa_status *fuse_wrap_open(struct fuse_wrap *wrap, struct ir_graph *graph)
{
    wrap->graph = graph;
    vec_init(&wrap->operands, graph->allocator);
    wrap->body = ir_block_create(graph, NULL, 0);
    return wrap->body ? NULL : status_out_of_memory();
}

void fuse_wrap_close(struct fuse_wrap *wrap)
{
    vec_free(&wrap->operands);
}

struct ir_value *fuse_wrap_enter(struct fuse_wrap *wrap, struct ir_value *value)
{
    for (size_t i = 0; i < wrap->operands.count; i++)
        if (wrap->operands.data[i] == value)
            return wrap->body->params[i];
    struct ir_value *param = ir_block_add_param(wrap->body);
    if (!param || !vec_push(&wrap->operands, value))
        return NULL;
    param->type = value->type;
    param->known = value->known;
    return param;
}

tssa_status *fuse_wrap_make(struct fuse_wrap *wrap, uint32_t n_results, const char *name,
                            struct ir_op *before, struct ir_op **fuse)
{
    struct ir_graph *graph = wrap->graph;
    struct ir_op *op = ir_op_create(graph, ir_op_info(IR_OP_fuse), wrap->body->n_params, n_results);
    struct ir_op *ret = ir_op_create(graph, ir_op_info(IR_OP_return), n_results, 0);
    if (!ret || !op || !ir_op_set_blocks(graph, op, 1))
        return status_out_of_memory();
    op->blocks[0] = wrap->body;
    op->block_names[0] = intern_str(&graph->strings, IR_FUSE_BODY);
    TRY_ALLOC(op->block_names[0]);
    wrap->body->owner = op;
    op->name = name;
    for (size_t i = 0; i < wrap->operands.count; i++)
        ir_op_set_operand(op, (uint32_t)i, wrap->operands.data[i]);
    ir_op_insert_before(op, before);
    ir_op_append(wrap->body, ret);
    *fuse = op;
    return NULL;
}
