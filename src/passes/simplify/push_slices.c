/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What several slices share between them is computed for each by itself, where each goes on to be
 * selected from:
 *
 *     c = Sigmoid(x)                              Compress(Squeeze(Sigmoid(x[0:1])), m)
 *     Compress(Squeeze(c[0:1]), m)           ->
 *     Compress(Squeeze(c[1:2]), n)                Compress(Squeeze(Sigmoid(x[1:2])), n)
 *
 * as of the images of a batch, each of which has a mask of its own. That is no less to be computed,
 * but no more either, since slices that overlap are left alone; and selections, which go up past
 * what they alone read (push_selections), then go up there, too. Slices of one axis by numbers, of
 * what is element-wise, joined along another axis, or a Slice of another axis.
 *
 *   needs   types
 *   keeps   results' bits; that a run fails
 *   breaks  types behind it, where sizes have other names now (infer)
 */
#include "ir/clone.h"
#include "ir/infer.h"
#include "ir/total.h"
#include "passes/pass.h"
#include "passes/simplify/selections.h"

#define MOST_SLICES 16
#define MOST_STEPS 8 /* between a slice and the selection */

struct slices {
    uint32_t n;
    int axis;
    struct ir_op *ops[MOST_SLICES];
    int64_t begins[MOST_SLICES], ends[MOST_SLICES];
};

/* ---- Which slices ---------------------------------------------------------------------------- */

static bool read_number(const struct ir_op *op, uint32_t operand, int64_t *number)
{
    int64_t numbers[IR_KNOWN_MAX];
    size_t count;
    if (!infer_const_ints(op, operand, numbers, &count) || count != 1)
        return false;
    *number = numbers[0];
    return true;
}

/* Of elements one after the other that are counted from the first one, along one axis. */
static bool read_slice(const struct ir_op *op, int *axis, int64_t *begin, int64_t *end)
{
    int64_t along, step = 1;
    return ir_op_is(op, IR_OP_Slice) && !op->opaque && read_number(op, 1, begin) &&
           read_number(op, 2, end) && read_number(op, 3, &along) &&
           (!ir_operand(op, 4) || read_number(op, 4, &step)) && step == 1 && *begin >= 0 &&
           *end > *begin && infer_find_axis(along, infer_value_rank(ir_operand(op, 0)), axis);
}

/* What a row of the value becomes by itself? */
static bool passes_rows(const struct ir_op *op)
{
    return !op->opaque && op->n_results == 1 &&
           (op->info->cls == IR_CLASS_ELEMENTWISE || ir_op_is(op, IR_OP_Concat) ||
            ir_op_is(op, IR_OP_Squeeze) || ir_op_is(op, IR_OP_Unsqueeze) ||
            ir_op_is(op, IR_OP_Slice));
}

static bool leads_to_selection(const struct ir_value *value, int steps)
{
    const struct ir_use *use = value->uses;
    struct selection selection;
    if (!use || use->next || steps == 0)
        return false;
    if (use == use->user->operands && selection_find(use->user, &selection))
        return true;
    return passes_rows(use->user) && leads_to_selection(&use->user->results[0], steps - 1);
}

static bool overlaps(const struct slices *slices, int64_t begin, int64_t end)
{
    for (uint32_t i = 0; i < slices->n; i++)
        if (begin < slices->ends[i] && slices->begins[i] < end)
            return true;
    return false;
}

/* All that reads the value. */
static bool find_slices(const struct ir_value *value, const struct ir_block *block,
                        struct slices *slices)
{
    slices->n = 0;
    for (const struct ir_use *use = value->uses; use; use = use->next) {
        struct ir_op *op = use->user;
        int64_t begin, end;
        int axis;
        if (slices->n == MOST_SLICES || op->parent != block || use != op->operands ||
            !read_slice(op, &axis, &begin, &end) || (slices->n && axis != slices->axis) ||
            overlaps(slices, begin, end) || !leads_to_selection(&op->results[0], MOST_STEPS))
            return false;
        slices->axis = axis;
        slices->begins[slices->n] = begin;
        slices->ends[slices->n] = end;
        slices->ops[slices->n++] = op;
    }
    return slices->n > 1;
}

/* ---- What is sliced instead ------------------------------------------------------------------ */

/* The operands that have the axis, each where the result has it; 0: nobody knows. */
static uint32_t find_operands(const struct ir_op *op, int axis, struct ir_value **operands)
{
    int found = axis, along;
    operands[0] = selection_rows_operand(op, axis, &found);
    if (!operands[0])
        operands[0] = selection_sliced_operand(op, axis, &found);
    if (operands[0])
        return found == axis && infer_value_rank(operands[0]) == op->results[0].type->rank;
    if (!selection_is_join(op, axis, &along))
        return 0;
    for (uint32_t i = 0; i < op->n_operands; i++)
        operands[i] = ir_operand(op, i);
    return op->n_operands;
}

/* The op of what the slice leaves of its operands, in the place of the slice. */
static tssa_status *replace_slice(struct pass_context *pass, struct ir_cloner *cloner,
                                  const struct ir_op *op, uint32_t n,
                                  struct ir_value *const *operands, struct ir_op *slice)
{
    struct ir_value *sliced[SELECTION_MOST_JOINED];
    for (uint32_t i = 0; i < n; i++) {
        ir_cloner_reset(cloner);
        if (!ir_cloner_map(cloner, ir_operand(slice, 0), operands[i]))
            return status_out_of_memory();
        struct ir_op *own = ir_clone_op(cloner, slice);
        TRY_ALLOC(own);
        TRY(pass_insert(own, slice));
        sliced[i] = &own->results[0];
    }
    ir_cloner_reset(cloner);
    for (uint32_t i = 0; i < n; i++)
        if (!ir_cloner_map(cloner, operands[i], sliced[i]))
            return status_out_of_memory();
    struct ir_op *made = ir_clone_op(cloner, op);
    TRY_ALLOC(made);
    TRY(pass_replace(pass, slice, made));
    made->name = op->name;
    return NULL;
}

static tssa_status *visit(struct pass_context *pass, struct ir_cloner *cloner, struct ir_op *op)
{
    struct ir_value *operands[SELECTION_MOST_JOINED];
    struct slices slices = {0};
    if (op->opaque || op->n_results != 1 || !ir_op_is_total(op) || pass_is_pinned(pass, op) ||
        !find_slices(&op->results[0], op->parent, &slices))
        return NULL;
    const uint32_t n = find_operands(op, slices.axis, operands);
    for (uint32_t i = 0; n && i < slices.n; i++)
        TRY(replace_slice(pass, cloner, op, n, operands, slices.ops[i]));
    if (!n)
        return NULL;
    TRY(pass_remark(pass, TSSA_REMARK_APPLIED, op,
                    "is computed for %u slices, each of which is selected from afterwards",
                    (unsigned)slices.n));
    ir_op_remove(op);
    return NULL;
}

/* From the last op on: slices that have gone up are come to again. */
static tssa_status *visit_block(struct pass_context *pass, struct ir_cloner *cloner,
                                struct ir_block *block)
{
    struct ir_op *before;
    for (struct ir_op *op = block->last; op; op = before) {
        before = op->prev;
        for (uint32_t i = 0; i < op->n_blocks; i++)
            TRY(visit_block(pass, cloner, op->blocks[i]));
        if (op->n_blocks == 0)
            TRY(visit(pass, cloner, op));
    }
    return NULL;
}

tssa_status *pass_push_slices(struct pass_context *pass)
{
    struct ir_cloner cloner;
    ir_cloner_init(&cloner, pass->graph);
    tssa_status *status = visit_block(pass, &cloner, pass->graph->body);
    ir_cloner_free(&cloner);
    return status;
}
