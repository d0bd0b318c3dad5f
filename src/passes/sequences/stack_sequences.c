/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sequence to which every iteration of a loop appends one tensor, and whose elements have one
 * shape, is an output that the loop stacks:
 *
 *     seq = Loop(n, c, SequenceEmpty) { (i, c, s): ... s1 = SequenceInsert(s, x); return(c, s1) }
 *     Loop(n, c) { (i, c): ... return(c, x) }
 *
 *     ConcatFromSequence(seq) {new_axis = 1}   Transpose of the output
 *     ConcatFromSequence(seq)                  the same, and a Reshape
 *     SequenceAt(seq, k)                       Gather
 *     SequenceLength(seq)                      Shape
 *
 * The elements have one shape where inference says so, or where all that is done with the sequence
 * is to stack it, which fails otherwise.
 *
 *   needs   types
 *   keeps   types
 *   breaks  the sequence is still carried, unused (carried_values); what used it stays (dead_code)
 *
 * Stacking no elements fails for a sequence and gives an empty tensor after this.
 */
#include "ir/infer.h"
#include "ir/rebuild.h"
#include "passes/analysis/loops.h"
#include "passes/pass.h"

/* ---- Recognition ----------------------------------------------------------------------------- */

static bool is_constant_shape(const struct ir_type *type)
{
    for (int i = 0; i < type->rank; i++)
        if (type->dims[i]->kind != DIM_CONST || type->dims[i]->value < 1)
            return false;
    return true;
}

/* Does the use only make sense for elements of one shape? */
static bool stacks(const struct ir_op *user)
{
    return ir_op_is(user, IR_OP_ConcatFromSequence) && ir_attr_int(user, "new_axis", 0) != 0;
}

static bool takes_sequence(const struct ir_op *user)
{
    return ir_op_is(user, IR_OP_ConcatFromSequence) || ir_op_is(user, IR_OP_SequenceLength) ||
           ir_op_is(user, IR_OP_SequenceAt);
}

/* The axis along which the sequence is joined; false when there is none, so that the op can never
 * run. */
static bool join_axis(const struct ir_op *concat, const struct ir_type *element, int *axis)
{
    return infer_find_axis(ir_op_axis(concat), element->rank + (stacks(concat) ? 1 : 0), axis);
}

/* Can it be made of the stacked elements? */
static bool use_can_change(const struct ir_op *user, const struct ir_type *element)
{
    int axis;
    return takes_sequence(user) &&
           (!ir_op_is(user, IR_OP_ConcatFromSequence) || join_axis(user, element, &axis));
}

/* Can all uses be made of the stacked elements? */
static bool uses_can_change(const struct ir_value *sequence, const struct ir_type *element)
{
    bool uniform = is_constant_shape(element), stacked = false;
    for (const struct ir_use *use = sequence->uses; use; use = use->next)
        stacked |= stacks(use->user);
    for (const struct ir_use *use = sequence->uses; use; use = use->next)
        if (!use_can_change(use->user, element) ||
            (!uniform &&
             !(stacked && (stacks(use->user) || ir_op_is(use->user, IR_OP_SequenceLength)))))
            return false;
    return sequence->uses != NULL;
}

/* The element that iterations append to carried value k; NULL when it is no such sequence. */
static struct ir_value *appended(const struct loop *loop, uint32_t k)
{
    struct ir_value *init = loop_initial(loop, k), *next = loop_next(loop, k);
    struct ir_op *insert = next ? next->op : NULL;
    if (!init || !init->op || !ir_op_is(init->op, IR_OP_SequenceEmpty) || !insert ||
        !ir_op_is(insert, IR_OP_SequenceInsert) || insert->parent != loop->body ||
        ir_operand(insert, 2) || !loop_is_only_use(loop_param(loop, k), insert, 0) ||
        !loop_is_only_use(next, loop->ret, k + 1))
        return NULL;
    struct ir_value *element = ir_operand(insert, 1);
    if (element->type->kind != TYPE_TENSOR || element->type->rank < 0 ||
        element->type->rank >= TSSA_MAX_RANK || element->type->dtype == TSSA_UNDEFINED ||
        !uses_can_change(loop_final(loop, k), element->type))
        return NULL;
    return element;
}

/* ---- What the uses become -------------------------------------------------------------------- */

static tssa_status *set_ints(struct ir_op *op, const char *name, size_t count, const int64_t *ints)
{
    struct ir_graph *graph = op->parent->graph;
    const struct ir_attr attr = {
        .name = intern_str(&graph->strings, name),
        .kind = IR_ATTR_INTS,
        .count = count,
        .ints = arena_copy(&graph->arena, ints, count * sizeof *ints),
    };
    TRY_ALLOC(attr.name);
    TRY_ALLOC(attr.ints);
    return ir_op_set_attr(graph, op, &attr) ? NULL : status_out_of_memory();
}

static tssa_status *set_int(struct ir_op *op, const char *name, int64_t value)
{
    struct ir_graph *graph = op->parent->graph;
    const struct ir_attr attr = {
        .name = intern_str(&graph->strings, name), .kind = IR_ATTR_INT, .i = value};
    return attr.name && ir_op_set_attr(graph, op, &attr) ? NULL : status_out_of_memory();
}

/* The axis of the elements' number, which is the first, becomes axis `to`. */
static tssa_status *move_axis(struct ir_op *at, struct ir_value *stacked, int rank, int to,
                              struct ir_value **result)
{
    int64_t perm[TSSA_MAX_RANK];
    *result = stacked;
    if (to == 0)
        return NULL;
    for (int i = 0; i < rank; i++)
        perm[i] = i < to ? i + 1 : i == to ? 0 : i;
    struct ir_op *transpose = loop_make_op(at, IR_OP_Transpose, 1);
    TRY_ALLOC(transpose);
    ir_op_set_operand(transpose, 0, stacked);
    TRY(set_ints(transpose, "perm", (size_t)rank, perm));
    *result = &transpose->results[0];
    return ir_infer_op_lenient(transpose);
}

/* Elements of a constant shape, one behind the other along an axis that they have. */
static tssa_status *merge_axis(struct ir_op *at, struct ir_value *moved,
                               const struct ir_type *element, int axis, struct ir_value **result)
{
    struct ir_graph *graph = at->parent->graph;
    int64_t shape[TSSA_MAX_RANK];
    for (int i = 0; i < element->rank; i++)
        shape[i] = i == axis ? -1 : element->dims[i]->value;
    struct ir_op *constant = ir_constant_ints(graph, 1, (size_t)element->rank, shape);
    TRY_ALLOC(constant);
    ir_op_insert_before(constant, at);
    TRY(ir_infer_op_lenient(constant));
    struct ir_op *reshape = loop_make_op(at, IR_OP_Reshape, 2);
    TRY_ALLOC(reshape);
    ir_op_set_operand(reshape, 0, moved);
    ir_op_set_operand(reshape, 1, &constant->results[0]);
    *result = &reshape->results[0];
    return ir_infer_op_lenient(reshape);
}

static tssa_status *from_concat(struct ir_op *op, struct ir_value *stacked,
                                const struct ir_type *element, struct ir_value **result)
{
    int axis;
    if (!join_axis(op, element, &axis))
        return ERROR(TSSA_INTERNAL, "a sequence is joined along an axis that it does not have");
    TRY(move_axis(op, stacked, element->rank + 1, axis, result));
    return stacks(op) ? NULL : merge_axis(op, *result, element, axis, result);
}

static tssa_status *from_length(struct ir_op *op, struct ir_value *stacked,
                                struct ir_value **result)
{
    struct ir_op *shape = loop_make_op(op, IR_OP_Shape, 1);
    TRY_ALLOC(shape);
    ir_op_set_operand(shape, 0, stacked);
    TRY(set_int(shape, "start", 0));
    TRY(set_int(shape, "end", 1));
    TRY(ir_infer_op_lenient(shape));
    struct ir_value *axis;
    TRY(loop_make_int(op, 1, 0, &axis));
    struct ir_op *squeeze = loop_make_op(op, IR_OP_Squeeze, 2);
    TRY_ALLOC(squeeze);
    ir_op_set_operand(squeeze, 0, &shape->results[0]);
    ir_op_set_operand(squeeze, 1, axis);
    *result = &squeeze->results[0];
    return ir_infer_op_lenient(squeeze);
}

static tssa_status *from_at(struct ir_op *op, struct ir_value *stacked, struct ir_value **result)
{
    struct ir_op *gather = loop_make_op(op, IR_OP_Gather, 2);
    TRY_ALLOC(gather);
    ir_op_set_operand(gather, 0, stacked);
    ir_op_set_operand(gather, 1, ir_operand(op, 1));
    TRY(set_int(gather, "axis", 0));
    *result = &gather->results[0];
    return ir_infer_op_lenient(gather);
}

/* The op itself stays, without uses, and lets go of the sequence: a walk over the block may be
 * about to come to it. */
static tssa_status *change_use(struct ir_op *op, struct ir_value *stacked,
                               const struct ir_type *element, struct ir_value *empty)
{
    struct ir_value *value = NULL;
    if (ir_op_is(op, IR_OP_SequenceAt))
        TRY(from_at(op, stacked, &value));
    else if (ir_op_is(op, IR_OP_SequenceLength))
        TRY(from_length(op, stacked, &value));
    else
        TRY(from_concat(op, stacked, element, &value));
    loop_replace(&op->results[0], value);
    ir_op_set_operand(op, 0, empty);
    return NULL;
}

/* ---- The pass -------------------------------------------------------------------------------- */

static tssa_status *rewrite(struct pass_context *pass, const struct loop *loop, uint32_t k,
                            struct ir_value *element)
{
    struct ir_op *op = loop->op;
    uint32_t n = op->n_results;
    const struct ir_type *type = element->type;
    uint32_t *from = ARENA_ARRAY(&pass->graph->arena, uint32_t, (size_t)n + 1);
    TRY_ALLOC(from);
    for (uint32_t i = 0; i <= n; i++)
        from[i] = i < n ? i : IR_FRESH;
    ir_op_set_operand(loop->ret, k + 1, loop_param(loop, k));
    if (!ir_op_add_operand(loop->ret, element) || !ir_op_set_results(op, n + 1, from))
        return status_out_of_memory();
    TRY(ir_infer_op_lenient(op));
    while (loop_final(loop, k)->uses)
        TRY(change_use(loop_final(loop, k)->uses->user, &op->results[n], type,
                       loop_initial(loop, k)));
    pass->changed = true;
    return pass_remark(pass, TSSA_REMARK_APPLIED, op,
                       "carried value %u is a sequence that grows: an output now", (unsigned)k);
}

static tssa_status *visit(void *context, struct ir_op *op)
{
    if (!ir_op_is(op, IR_OP_Loop))
        return NULL;
    struct loop loop = loop_of(op);
    for (uint32_t k = 0; k < loop.n_carried; k++) {
        struct ir_value *element = appended(&loop, k);
        if (element)
            TRY(rewrite(context, &loop, k, element));
    }
    return NULL;
}

tssa_status *pass_stack_sequences(struct pass_context *pass)
{
    return ir_block_walk(pass->graph->body, visit, pass);
}
