/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/loops/branch.h"

tssa_status *branch_make_blocks(struct ir_op *op, uint32_t n)
{
    static const char *const names[] = {"then_branch", "else_branch"};
    struct ir_graph *graph = op->parent->graph;
    if (!ir_op_set_blocks(graph, op, 2))
        return status_out_of_memory();
    for (uint32_t b = 0; b < 2; b++) {
        struct ir_op *ret = ir_op_create(graph, ir_op_info(IR_OP_return), n, 0);
        op->blocks[b] = ir_block_create(graph, op, 0);
        op->block_names[b] = intern_str(&graph->strings, names[b]);
        TRY_ALLOC(ret);
        TRY_ALLOC(op->blocks[b]);
        TRY_ALLOC(op->block_names[b]);
        ir_op_append(op->blocks[b], ret);
    }
    return NULL;
}

tssa_status *branch_create(const struct loop *loop, struct ir_value *question,
                           struct ir_op **branch, uint32_t *kept)
{
    struct ir_graph *graph = loop->body->graph;
    uint32_t n = 0;
    for (uint32_t i = 0; i < loop->op->n_results; i++)
        if (loop->op->results[i].uses)
            kept[n++] = i;
    struct ir_op *op = ir_op_create(graph, ir_op_info(IR_OP_If), 1, n);
    TRY_ALLOC(op);
    op->version = ir_op_bind(op->info, IR_NEWEST_OPSET);
    op->name = loop->op->name;
    ir_op_set_operand(op, 0, question);
    ir_op_insert_before(op, loop->op);
    TRY(branch_make_blocks(op, n));
    for (uint32_t j = 0; j < n; j++)
        loop_replace(&loop->op->results[kept[j]], &op->results[j]);
    *branch = op;
    return NULL;
}

void branch_fill(struct ir_op *branch, uint32_t block, const struct ir_op *begun,
                 const struct ir_op *end, struct ir_value *const *results, const uint32_t *kept)
{
    struct ir_op *next, *ret = ir_block_return(branch->blocks[block]);
    for (struct ir_op *op = begun ? begun->next : branch->parent->first; op != end; op = next) {
        next = op->next;
        ir_op_move_before(op, ret);
    }
    for (uint32_t j = 0; j < branch->n_results; j++)
        ir_op_set_operand(ret, j, results[kept[j]]);
}
