/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes one `fuse` op of a NonMaxSuppression of one class and of the fuse op that alone reads what
 * it keeps (ir_fuse_boxes): results of a detector. A device computes them for as many boxes as may
 * be kept, and its host waits for how many they are when all is launched, as it waits for the
 * results.
 *
 *   needs   types, a table of what kernels take, else nothing is done
 *   keeps   results' bits
 *   breaks  nothing
 *
 * Rows that are not kept are made of the first box. So each operand that is read has a row for each
 * box, and what is computed of a row depends on no other one, nor on how many there are.
 */
#include "ir/fuse.h"
#include "passes/lower/fuse_remake.h"

#define MOST_OPERANDS 32

/* ---- Which --------------------------------------------------------------------------------- */

static bool has_rows(const struct ir_value *value, const struct dim *rows)
{
    const struct ir_type *type = value->type;
    return type->kind == TYPE_TENSOR && type->rank > 0 && type->dims[0] == rows;
}

/* Operands are all there, and each another one. */
static bool is_of_one_class(const struct ir_op *op)
{
    const struct ir_value *boxes = ir_operand(op, 0), *scores = ir_operand(op, 1);
    for (uint32_t i = 0; i < op->n_operands; i++)
        for (uint32_t k = 0; k <= i; k++)
            if (!ir_operand(op, i) || (k < i && ir_operand(op, k) == ir_operand(op, i)))
                return false;
    return op->n_operands > 2 && boxes->type->kind == TYPE_TENSOR && boxes->type->rank == 3 &&
           scores->type->kind == TYPE_TENSOR && scores->type->rank == 3 &&
           dim_is(scores->type->dims[0], 1) && dim_is(scores->type->dims[1], 1);
}

/* The fuse op that alone reads the boxes; NULL: there is none. */
static struct ir_op *reader_of(const struct ir_op *op)
{
    struct ir_op *reader = op->results[0].uses ? op->results[0].uses->user : NULL;
    for (const struct ir_use *use = op->results[0].uses; use; use = use->next)
        if (use->user != reader)
            return NULL;
    return reader && reader->parent == op->parent && ir_fuse_body(reader) &&
                   !ir_fuse_loop(reader) && !reader->opaque
               ? reader
               : NULL;
}

static bool may_follow(const struct pass_context *pass, const struct ir_op *op,
                       const struct ir_op *reader)
{
    const struct ir_value *kept = &op->results[0];
    const struct dim *boxes = ir_operand(op, 0)->type->dims[1];
    if (kept->type->kind != TYPE_TENSOR || kept->type->rank != 2 ||
        kept->type->dims[0]->kind != DIM_SYMBOL)
        return false;
    for (uint32_t i = 0; i < reader->n_operands; i++)
        if (ir_operand(reader, i) != kept && !has_rows(ir_operand(reader, i), boxes))
            return false;
    for (uint32_t i = 0; i < reader->n_results; i++)
        if (!reader->results[i].wanted || !has_rows(&reader->results[i], kept->type->dims[0]))
            return false;
    return pass->fusion->is_free_of(pass->fusion->user, reader, kept->type->dims[0]);
}

/* The NonMaxSuppression that the op reads; NULL: none that will do. */
static struct ir_op *boxes_of(const struct pass_context *pass, const struct ir_op *reader)
{
    for (uint32_t i = 0; ir_fuse_body(reader) && i < reader->n_operands; i++) {
        struct ir_op *op = ir_operand(reader, i)->op;
        if (op && ir_op_is(op, IR_OP_NonMaxSuppression) && !op->opaque && is_of_one_class(op) &&
            reader_of(op) == reader && reader->n_operands + op->n_operands <= MOST_OPERANDS &&
            may_follow(pass, op, reader))
            return op;
    }
    return NULL;
}

static tssa_status *visit(void *context, struct ir_op *op)
{
    struct pass_context *pass = context;
    struct ir_op *boxes = boxes_of(pass, op);
    if (!boxes)
        return NULL;
    TRY(fuse_take_in(pass, boxes, &op));
    pass->changed = true;
    return pass_remark(pass, TSSA_REMARK_APPLIED, op,
                       "one op of NonMaxSuppression and what is read of the boxes that it keeps");
}

tssa_status *pass_follow_boxes(struct pass_context *pass)
{
    return pass->fusion && pass->fusion->is_free_of ? ir_block_walk(pass->graph->body, visit, pass)
                                                    : NULL;
}
