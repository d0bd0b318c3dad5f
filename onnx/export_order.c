/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of a graph's nodes in the file: that of the block, but for constants without a name.
 * Passes make those anywhere; each is written before what uses it first, so that the order tells
 * nothing of how the graph came to be.
 */
#include "onnx/export.h"

struct ordering {
    struct export *export;
    const struct ir_block *block;
    const struct ir_op **ops;
    size_t count;
};

static bool is_floating(const struct ir_op *op)
{
    return ir_op_is(op, IR_OP_Constant) && op->origin != IR_ORIGIN_INITIALIZER &&
           !op->results[0].name;
}

static void append(struct ordering *ordering, const struct ir_op *op)
{
    if (!export_is_dropped(ordering->export, op))
        ordering->ops[ordering->count++] = op;
}

static void place(struct ordering *ordering, const struct ir_op *constant)
{
    struct bitset *placed = &ordering->export->placed;
    uint32_t id = constant->results[0].id;
    if (constant->parent != ordering->block || !is_floating(constant) || bitset_has(placed, id))
        return;
    bitset_add(placed, id);
    append(ordering, constant);
}

static void place_operands(struct ordering *ordering, const struct ir_op *op)
{
    for (uint32_t i = 0; i < op->n_operands; i++)
        if (op->operands[i].value && op->operands[i].value->op)
            place(ordering, op->operands[i].value->op);
    for (uint32_t i = 0; i < op->n_blocks; i++)
        for (const struct ir_op *inner = op->blocks[i]->first; inner; inner = inner->next)
            place_operands(ordering, inner);
}

static void append_all(struct ordering *ordering, const struct ir_op *op)
{
    const struct export_ops *instead = export_instead(ordering->export, op);
    for (size_t i = 0; instead && i < instead->count; i++)
        append(ordering, instead->ops[i]);
    if (!instead)
        append(ordering, op);
}

/* Ops that stand for others count as many. */
static size_t count_ops(const struct export *export, const struct ir_block *block)
{
    size_t count = 0;
    for (const struct ir_op *op = block->first; op; op = op->next) {
        const struct export_ops *instead = export_instead(export, op);
        count += instead ? instead->count : 1;
    }
    return count;
}

tssa_status *export_order(struct export *export, const struct ir_block *block,
                          const struct ir_op *const **ops, size_t *count)
{
    for (const struct ir_op *op = block->first; op; op = op->next)
        if (is_floating(op))
            bitset_remove(&export->placed, op->results[0].id);
    struct ordering ordering = {
        .export = export,
        .block = block,
        .ops = ARENA_ARRAY(&export->scratch, const struct ir_op *, count_ops(export, block)),
    };
    TRY_ALLOC(ordering.ops);
    for (const struct ir_op *op = block->first; op; op = op->next) {
        place_operands(&ordering, op);
        if (!is_floating(op) && !ir_op_is(op, IR_OP_return))
            append_all(&ordering, op);
    }
    for (const struct ir_op *op = block->first; op; op = op->next)
        place(&ordering, op); /* of no use */
    *ops = ordering.ops;
    *count = ordering.count;
    return NULL;
}
