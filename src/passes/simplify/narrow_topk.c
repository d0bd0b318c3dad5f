/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TopK chooses no more elements than are used: exporters sort everything, and then take the first.
 *
 *     TopK(x, 2402), both results cut to [:200]   ->   TopK(x, 200)
 *
 * The slices stay; `identity` removes those that take all there is now. Only for results in order, of which
 * the first are the same whatever K is, and for a K that is no error.
 *
 *   needs   types, known elements
 *   keeps   what it does not narrow
 *   breaks  the types of the slices' operands are inferred anew; the old K may be dead
 */
#include "ir/infer.h"
#include "passes/pass.h"

/* Element i of a list, of which inference knows what it is. */
static bool known_at(const struct ir_value *list, size_t i, int64_t *number)
{
    return list && list->known && i < list->known->count && list->known->elements[i] &&
           dim_is_const(list->known->elements[i], number);
}

/* The axis in the form that is not negative; -1: there is none such. */
static int64_t normal_axis(const struct ir_value *x, int64_t axis)
{
    int rank = x->type->kind == TYPE_TENSOR ? x->type->rank : -1;
    axis += axis < 0 ? rank : 0;
    return axis < rank ? axis : -1;
}

/* How many of the first elements along an axis a use reads, when it is a Slice that reads no others. */
static bool reads_first(const struct ir_use *use, int64_t axis, int64_t *count)
{
    const struct ir_op *slice = use->user;
    if (!ir_op_is(slice, IR_OP_Slice) || use != &slice->operands[0])
        return false;
    const struct ir_value *starts = ir_operand(slice, 1), *axes = ir_operand(slice, 3),
                          *steps = ir_operand(slice, 4);
    for (size_t i = 0; starts && starts->known && i < starts->known->count; i++) {
        int64_t at = (int64_t)i, start, step = 1;
        if (axes && !known_at(axes, i, &at))
            return false;
        if (normal_axis(use->value, at) != axis)
            continue;
        return known_at(starts, i, &start) && start == 0 &&
               known_at(ir_operand(slice, 2), i, count) && *count >= 0 &&
               (!steps || known_at(steps, i, &step)) && step == 1;
    }
    return false;
}

/* The most that any use reads; false: some read all. */
static bool find_used(const struct ir_op *op, int64_t axis, int64_t *used)
{
    *used = 0;
    for (uint32_t r = 0; r < op->n_results; r++)
        for (const struct ir_use *use = op->results[r].uses; use; use = use->next) {
            int64_t count;
            if (!reads_first(use, axis, &count))
                return false;
            *used = count > *used ? count : *used;
        }
    return true;
}

static tssa_status *visit(void *context, struct ir_op *op)
{
    struct pass_context *pass = context;
    int64_t k, dim, used;
    if (!ir_op_is(op, IR_OP_TopK) || !ir_attr_int(op, "sorted", 1) || !ir_operand(op, 0) ||
        !known_at(ir_operand(op, 1), 0, &k))
        return NULL;
    const struct ir_value *x = ir_operand(op, 0);
    int64_t axis = normal_axis(x, ir_attr_int(op, "axis", -1));
    if (axis < 0 || !dim_is_const(x->type->dims[axis], &dim) || k < 0 || k > dim ||
        !find_used(op, axis, &used) || used >= k)
        return NULL;
    struct ir_op *constant = ir_constant_ints(pass->graph, 1, 1, &used);
    TRY_ALLOC(constant);
    TRY(pass_insert(constant, op));
    ir_op_set_operand(op, 1, &constant->results[0]);
    pass->changed = true;
    TRY(ir_infer_op_lenient(op));
    return pass_remark(pass, TSSA_REMARK_APPLIED, op, "chooses %lld elements, no longer %lld",
                       (long long)used, (long long)k);
}

tssa_status *pass_narrow_topk(struct pass_context *pass)
{
    return ir_block_walk(pass->graph->body, visit, pass);
}
