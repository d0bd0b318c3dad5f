/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/total.h"

#include "ir/infer.h"
#include "ir/promotion.h"
#include "ir/rebuild.h"
#include "ir/rule_draft.h"
#include "ir/scalar.h"

typedef bool (*total_fn)(const struct ir_op *op);

/* ---- Shapes ---------------------------------------------------------------------------------- */

static bool is_tensor(const struct ir_op *op, uint32_t index)
{
    const struct ir_value *value = ir_operand(op, index);
    return value && value->type->kind == TYPE_TENSOR && value->type->dtype != TSSA_UNDEFINED;
}

static bool is_ranked(const struct ir_op *op, uint32_t index)
{
    return is_tensor(op, index) && ir_operand(op, index)->type->rank >= 0;
}

/* The trailing dims of two shapes, without the last `skip`, broadcast in every run. Shapes that
 * broadcast two by two broadcast all together. */
static bool dims_broadcast(const struct ir_type *a, const struct ir_type *b, int skip)
{
    for (int i = skip + 1; i <= a->rank && i <= b->rank; i++) {
        const struct dim *x = a->dims[a->rank - i], *y = b->dims[b->rank - i];
        if (x != y && !dim_is(x, 1) && !dim_is(y, 1))
            return false;
    }
    return true;
}

/* All elements are known and constants. */
static bool is_constant(const struct ir_op *op, uint32_t index)
{
    int64_t values[IR_KNOWN_MAX];
    size_t count;
    return infer_const_ints(op, index, values, &count);
}

/* ---- Per operator ---------------------------------------------------------------------------- */

static bool always(const struct ir_op *op)
{
    (void)op;
    return true;
}

static bool of_tensor(const struct ir_op *op)
{
    return is_tensor(op, 0);
}

static bool of_ranked(const struct ir_op *op)
{
    const struct ir_type *type = op->results[0].type;
    return is_ranked(op, 0) && type->kind == TYPE_TENSOR && type->rank >= 0;
}

static bool is_cast_total(const struct ir_op *op)
{
    tssa_dtype to = (tssa_dtype)ir_attr_int(op, "to", TSSA_UNDEFINED);
    return is_tensor(op, 0) && dtype_in(T_NUMERIC | T_BOOL, infer_dtype(op, 0)) &&
           dtype_in(T_NUMERIC | T_BOOL, to);
}

static bool is_concat_total(const struct ir_op *op)
{
    if (!is_ranked(op, 0))
        return false;
    int rank = infer_rank(op, 0);
    int64_t axis = ir_op_axis(op);
    axis += axis < 0 ? rank : 0;
    if (axis < 0 || axis >= rank)
        return false;
    for (uint32_t i = 1; i < op->n_operands; i++) {
        if (!is_ranked(op, i) || infer_rank(op, i) != rank ||
            infer_dtype(op, i) != infer_dtype(op, 0))
            return false;
        for (int d = 0; d < rank; d++)
            if (d != axis && infer_dim(op, i, d) != infer_dim(op, 0, d))
                return false;
    }
    return true;
}

static bool count_elements(const struct ir_type *type, int64_t *elements)
{
    int64_t size;
    *elements = 1;
    for (int i = 0; i < type->rank; i++)
        if (!dim_is_const(type->dims[i], &size) || !i64_mul(*elements, size, elements))
            return false;
    return true;
}

static bool is_shape_constant(const struct ir_op *op)
{
    int64_t shape[IR_KNOWN_MAX];
    size_t count;
    if (!infer_const_ints(op, 0, shape, &count))
        return false;
    for (size_t i = 0; i < count; i++)
        if (shape[i] < 0)
            return false;
    return true;
}

/* As many elements, and that many in every run. */
static bool keeps_count(const struct ir_op *op)
{
    int64_t before, after;
    return count_elements(ir_operand(op, 0)->type, &before) &&
           count_elements(op->results[0].type, &after) && before == after;
}

/* Starts and ends of a Slice are brought into range, but there must be as many of them. */
static bool has_even_bounds(const struct ir_op *op)
{
    const struct ir_known *starts = infer_known(op, 1), *ends = infer_known(op, 2);
    return !ir_op_is(op, IR_OP_Slice) || (starts && ends && starts->count == ends->count);
}

/* Of the steps that an op stands for, those behind the first ask nothing of the shape. */
static bool is_movement_total(const struct ir_op *op)
{
    struct rule_draft draft;
    draft_begin(&draft, RULE_AXES);
    if (!of_ranked(op) || !op->parent || !has_even_bounds(op) || !rule_of_movement(op, &draft))
        return false;
    const struct ir_type *base = ir_operand(op, 0)->type;
    const struct ir_value *index = draft.n_operands ? draft.operands[0] : NULL;
    for (uint32_t i = 0; i < draft.n_steps; i++) {
        const struct rule_step *step = &draft.steps[i];
        bool first = i == 0 || step->kind == RULE_SLICE || step->kind == RULE_UNSQUEEZE;
        if (!first ||
            !(step->kind == RULE_RESHAPE ? keeps_count(op)
                                         : rule_step_is_total(step, base->rank, base->dims, index)))
            return false;
    }
    return true;
}

/* What is reduced may be empty: of nothing there is the identity, as of ONNX 18. */
static bool is_reduction_total(const struct ir_op *op)
{
    return of_ranked(op) && (!ir_operand(op, 1) || is_constant(op, 1));
}

static bool is_matmul_total(const struct ir_op *op)
{
    if (!is_ranked(op, 0) || !is_ranked(op, 1) || infer_dtype(op, 0) != infer_dtype(op, 1))
        return false;
    const struct ir_type *a = ir_operand(op, 0)->type, *b = ir_operand(op, 1)->type;
    return a->rank >= 2 && b->rank >= 2 && a->dims[a->rank - 1] == b->dims[b->rank - 2] &&
           dims_broadcast(a, b, 2);
}

static bool is_cumsum_total(const struct ir_op *op)
{
    int64_t axis[IR_KNOWN_MAX];
    size_t count;
    return of_ranked(op) && infer_const_ints(op, 1, axis, &count) && count == 1 &&
           axis[0] >= -infer_rank(op, 0) && axis[0] < infer_rank(op, 0);
}

/* Any bounds will do, with a step that goes on. */
static bool is_range_total(const struct ir_op *op)
{
    int64_t step[IR_KNOWN_MAX];
    size_t count;
    for (uint32_t i = 0; i < 3; i++)
        if (!is_ranked(op, i) || infer_rank(op, i) != 0 || infer_dtype(op, i) != TSSA_INT64)
            return false;
    return infer_const_ints(op, 2, step, &count) && count == 1 && step[0] != 0;
}

static bool is_construct_total(const struct ir_op *op)
{
    for (uint32_t i = 0; i < op->n_operands; i++)
        if (!is_tensor(op, i) || infer_dtype(op, i) != infer_dtype(op, 0))
            return false;
    return true;
}

static const total_fn rules[IR_OP_COUNT] = {
    [IR_OP_Constant] = always,        [IR_OP_SequenceEmpty] = always,
    [IR_OP_Identity] = always,        [IR_OP_Shape] = of_tensor,
    [IR_OP_Size] = of_tensor,         [IR_OP_Softmax] = of_ranked,
    [IR_OP_LogSoftmax] = of_ranked,   [IR_OP_Cast] = is_cast_total,
    [IR_OP_Concat] = is_concat_total, [IR_OP_ConstantOfShape] = is_shape_constant,
    [IR_OP_MatMul] = is_matmul_total, [IR_OP_CumSum] = is_cumsum_total,
    [IR_OP_Range] = is_range_total,   [IR_OP_SequenceConstruct] = is_construct_total,
};

/* ---- Element-wise ops ------------------------------------------------------------------------ */

/* Does the program divide by operand 1? */
static bool divides(const struct scalar_code *program)
{
    for (const struct scalar_code *code = program; code->id != SCALAR_END; code++)
        if ((code->id == SCALAR_DIV || code->id == SCALAR_MOD || code->id == SCALAR_FMOD) &&
            code[-1].id == SCALAR_Y)
            return true;
    return false;
}

static bool may_divide_by_zero(const struct ir_op *op)
{
    int64_t values[IR_KNOWN_MAX];
    size_t count;
    if (!dtype_is_integer(infer_dtype(op, 0)) || !divides(op->info->ew->program))
        return false;
    if (!infer_const_ints(op, 1, values, &count))
        return true;
    for (size_t i = 0; i < count; i++)
        if (values[i] == 0)
            return true;
    return false;
}

static bool is_elementwise_total(const struct ir_op *op)
{
    struct promotion promotion;
    if (!promote_op(op, &promotion) || promotion.operand == TSSA_UNDEFINED)
        return false;
    for (uint32_t i = 0; i < op->n_operands; i++) {
        if (!ir_operand(op, i))
            continue;
        if (!is_ranked(op, i))
            return false;
        for (uint32_t k = 0; k < i; k++)
            if (ir_operand(op, k) &&
                !dims_broadcast(ir_operand(op, i)->type, ir_operand(op, k)->type, 0))
                return false;
    }
    return !may_divide_by_zero(op);
}

static bool are_blocks_total(const struct ir_op *op)
{
    for (uint32_t b = 0; b < op->n_blocks; b++)
        for (const struct ir_op *inner = op->blocks[b]->first; inner->next; inner = inner->next)
            if (!ir_op_is_total(inner))
                return false;
    return true;
}

/* A branch that is there to be taken, and what is in both. */
static bool is_if_total(const struct ir_op *op)
{
    const struct ir_value *condition = ir_operand(op, 0);
    int64_t elements;
    if (!condition || condition->type->kind != TYPE_TENSOR || condition->type->dtype != TSSA_BOOL ||
        condition->type->rank < 0 || !count_elements(condition->type, &elements) || elements != 1)
        return false;
    return are_blocks_total(op);
}

#define MAX_OPERANDS 16 /* of an op that is looked at in pairs */

bool ir_op_is_total(const struct ir_op *op)
{
    if (!(op->info->flags & IR_PURE))
        return false;
    if (op->n_blocks)
        return (ir_op_is(op, IR_OP_If) && is_if_total(op)) ||
               (ir_op_is(op, IR_OP_fuse) && are_blocks_total(op));
    if (op->info->ew)
        return op->n_operands <= MAX_OPERANDS && is_elementwise_total(op);
    if (op->info->reduction)
        return is_reduction_total(op);
    if (op->info->rule)
        return is_movement_total(op);
    return rules[op->info->id] && rules[op->info->id](op);
}

/* ---- Loops ----------------------------------------------------------------------------------- */

static bool is_true(const struct ir_value *value)
{
    int64_t element;
    return value->known && value->known->count == 1 &&
           dim_is_const(value->known->elements[0], &element) && element;
}

static bool is_at_least_one(const struct ir_value *value)
{
    const struct ir_known *known = value->known;
    return known && known->count == 1 && known->elements[0] && known->elements[0]->low >= 1;
}

/*
 * The largest of numbers one of which is at least one: how often a loop runs that asks at its end.
 */
static bool is_positive(const struct ir_value *trips)
{
    const struct ir_op *op = trips->op;
    if (is_at_least_one(trips))
        return true;
    for (uint32_t i = 0; op && ir_op_is(op, IR_OP_Max) && i < op->n_operands; i++)
        if (ir_operand(op, i) && is_at_least_one(ir_operand(op, i)))
            return true;
    return false;
}

#define MAX_QUESTIONS 4 /* And in And */

/* Where the condition holds, the number is at least one: n > 0, 0 < n, and both with more asked. */
static bool asks_positive(const struct ir_value *condition, const struct ir_value *trips, int depth)
{
    int64_t bound;
    const struct ir_op *op = condition ? condition->op : NULL;
    if (op && ir_op_is(op, IR_OP_And) && depth < MAX_QUESTIONS)
        return asks_positive(ir_operand(op, 0), trips, depth + 1) ||
               asks_positive(ir_operand(op, 1), trips, depth + 1);
    if (!op || !(ir_op_is(op, IR_OP_Greater) || ir_op_is(op, IR_OP_Less)))
        return false;
    uint32_t number = ir_op_is(op, IR_OP_Less) ? 1 : 0;
    const struct ir_known *known = infer_known(op, 1 - number);
    return ir_operand(op, number) == trips && known && known->count == 1 &&
           dim_is_const(known->elements[0], &bound) && bound >= 0;
}

/* The op stands in a branch that is taken only then. */
static bool is_asked_for(const struct ir_op *op, const struct ir_value *trips)
{
    const struct ir_block *block = op->parent;
    for (op = block ? block->owner : NULL; op; op = block ? block->owner : NULL) {
        if (ir_op_is(op, IR_OP_If) && ir_op_block(op, "then_branch") == block &&
            asks_positive(ir_operand(op, 0), trips, 0))
            return true;
        block = op->parent;
    }
    return false;
}

bool ir_loop_runs(const struct ir_op *op)
{
    if (ir_op_is(op, IR_OP_Loop)) {
        const struct ir_value *trips = ir_operand(op, 0), *condition = ir_operand(op, 1);
        if (condition && !is_true(condition))
            return false;
        return !trips || is_positive(trips) || is_asked_for(op, trips);
    }
    if (!ir_op_is(op, IR_OP_Scan) || op->version < 9)
        return false;
    uint32_t states = ir_loop_carried(op);
    size_t count;
    const int64_t *axes = ir_attr_ints(op, "scan_input_axes", &count);
    const struct ir_value *scanned = ir_operand(op, states);
    if (!scanned || scanned->type->kind != TYPE_TENSOR || scanned->type->rank < 1)
        return false;
    int64_t axis = axes && count ? axes[0] : 0;
    axis += axis < 0 ? scanned->type->rank : 0;
    return axis >= 0 && axis < scanned->type->rank && scanned->type->dims[axis]->low >= 1;
}
