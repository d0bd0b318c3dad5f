/* SPDX-License-Identifier: Apache-2.0 */
/* ONNX operators, numbers and shapes for lowered rules. */
#include "ir/infer.h"
#include "passes/lower/lower.h"

static struct ir_value *failed(struct lowering *l, tssa_status *status)
{
    if (l->status)
        tssa_status_free(status);
    else
        l->status = status;
    return NULL;
}

static struct ir_value *out_of_memory(struct lowering *l)
{
    return failed(l, status_out_of_memory());
}

/* ---- Operators ------------------------------------------------------------------------------- */

static struct ir_value *insert(struct lowering *l, struct ir_op *op)
{
    op->name = l->op->name;
    ir_op_insert_before(op, l->op);
    tssa_status *status = ir_infer_op_lenient(op);
    return status ? failed(l, status) : &op->results[0];
}

/* `attr` may be NULL; its name is not interned yet. */
static struct ir_value *emit(struct lowering *l, enum ir_op_id id, uint32_t n,
                             struct ir_value *const *operands, const struct ir_attr *attr)
{
    if (l->status)
        return NULL;
    struct ir_op *op = ir_op_create(l->graph, ir_op_info(id), n, 1);
    if (!op)
        return out_of_memory(l);
    op->version = ir_op_bind(op->info, IR_NEWEST_OPSET);
    for (uint32_t i = 0; i < n; i++)
        ir_op_set_operand(op, i, operands[i]);
    if (attr) {
        struct ir_attr copy = *attr;
        copy.name = intern_str(&l->graph->strings, attr->name);
        if (!copy.name || !ir_op_set_attr(l->graph, op, &copy))
            return out_of_memory(l);
    }
    return insert(l, op);
}

struct ir_value *lower_emit(struct lowering *l, enum ir_op_id id, uint32_t n,
                            struct ir_value *const *operands)
{
    return emit(l, id, n, operands, NULL);
}

struct ir_value *lower_binary(struct lowering *l, enum ir_op_id id, struct ir_value *a,
                              struct ir_value *b)
{
    struct ir_value *const operands[] = {a, b};
    return lower_emit(l, id, 2, operands);
}

struct ir_value *lower_choose(struct lowering *l, struct ir_value *mask, struct ir_value *a,
                              struct ir_value *b)
{
    struct ir_value *const operands[] = {mask, a, b};
    if (b->type->dtype != TSSA_BOOL) {
        struct ir_value *chosen = lower_emit(l, IR_OP_Where, 3, operands);
        if (chosen)
            chosen->op->exact = true;
        return chosen;
    }
    struct ir_value *outside = lower_emit(l, IR_OP_Not, 1, &mask);
    return lower_binary(l, IR_OP_Or, lower_binary(l, IR_OP_And, mask, a),
                        lower_binary(l, IR_OP_And, outside, b));
}

struct ir_value *lower_emit_axis(struct lowering *l, enum ir_op_id id, uint32_t n,
                                 struct ir_value *const *operands, int64_t axis)
{
    const struct ir_attr attr = {.name = "axis", .kind = IR_ATTR_INT, .i = axis};
    return emit(l, id, n, operands, &attr);
}

struct ir_value *lower_transpose(struct lowering *l, struct ir_value *x, int rank,
                                 const int64_t *perm)
{
    bool ordered = true;
    for (int i = 0; i < rank; i++)
        ordered = ordered && perm[i] == i;
    if (ordered || l->status)
        return x;
    const int64_t *copy = arena_copy(&l->graph->arena, perm, (size_t)rank * sizeof *perm);
    if (!copy)
        return out_of_memory(l);
    const struct ir_attr attr = {
        .name = "perm", .kind = IR_ATTR_INTS, .count = (size_t)rank, .ints = copy};
    return emit(l, IR_OP_Transpose, 1, &x, &attr);
}

struct ir_value *lower_ints(struct lowering *l, int rank, size_t count, const int64_t *values)
{
    if (l->status)
        return NULL;
    struct ir_op *op = ir_constant_ints(l->graph, rank, count, values);
    return op ? insert(l, op) : out_of_memory(l);
}

struct ir_value *lower_int(struct lowering *l, int64_t value)
{
    return lower_ints(l, 0, 1, &value);
}

struct ir_value *lower_list(struct lowering *l, int64_t value)
{
    return lower_ints(l, 1, 1, &value);
}

static struct ir_value *with_list(struct lowering *l, enum ir_op_id id, struct ir_value *x, int n,
                                  const int64_t *list)
{
    if (n == 0)
        return x;
    struct ir_value *const operands[] = {x, lower_ints(l, 1, (size_t)n, list)};
    return lower_emit(l, id, 2, operands);
}

struct ir_value *lower_unsqueeze(struct lowering *l, struct ir_value *x, int n, const int64_t *axes)
{
    return with_list(l, IR_OP_Unsqueeze, x, n, axes);
}

struct ir_value *lower_squeeze(struct lowering *l, struct ir_value *x, int n, const int64_t *axes)
{
    return with_list(l, IR_OP_Squeeze, x, n, axes);
}

struct ir_value *lower_cut(struct lowering *l, struct ir_value *x, int64_t axis, int64_t start,
                           int64_t end)
{
    bool to_end = end == INT64_MAX || (lower_rank(x) > axis && dim_is(x->type->dims[axis], end));
    if (start == 0 && to_end)
        return x;
    struct ir_value *const operands[] = {x, lower_list(l, start), lower_list(l, end),
                                         lower_list(l, axis)};
    return lower_emit(l, IR_OP_Slice, 4, operands);
}

struct ir_value *lower_concat(struct lowering *l, uint32_t n, struct ir_value *const *parts,
                              int64_t axis)
{
    return n == 1 ? parts[0] : lower_emit_axis(l, IR_OP_Concat, n, parts, axis);
}

/* ---- Numbers --------------------------------------------------------------------------------- */

struct ir_value *lower_cast(struct lowering *l, struct ir_value *value, tssa_dtype to)
{
    if (l->status || (value->type->kind == TYPE_TENSOR && value->type->dtype == to))
        return value;
    const struct ir_attr attr = {.name = "to", .kind = IR_ATTR_INT, .i = (int64_t)to};
    return emit(l, IR_OP_Cast, 1, &value, &attr);
}

#define MAX_LOOKED_AT 64 /* ops before the one that is lowered, for one that is there already */

/* The number as a list where the model has made one before; NULL: it has not. */
static struct ir_value *find_list(const struct lowering *l, const struct ir_value *number)
{
    const struct ir_op *op = l->op->prev;
    for (int i = 0; op && i < MAX_LOOKED_AT; i++, op = op->prev) {
        if (ir_operand(op, 0) != number || lower_rank(ir_result(op, 0)) != 1)
            continue;
        if (ir_op_keeps_order(op))
            return ir_result(op, 0);
    }
    return NULL;
}

struct ir_value *lower_scalar(struct lowering *l, struct ir_value *value, int rank)
{
    value = lower_cast(l, value, TSSA_INT64);
    if (l->status || lower_rank(value) == rank)
        return value;
    struct ir_value *list = lower_rank(value) == 0 ? find_list(l, value) : NULL;
    if (list)
        return list;
    if (lower_rank(value) == 0)
        return lower_unsqueeze(l, value, 1, (const int64_t[]){0});
    struct ir_value *const operands[] = {value,
                                         lower_ints(l, 1, (size_t)rank, (const int64_t[]){1})};
    return lower_emit(l, IR_OP_Reshape, 2, operands);
}

struct lower_number lower_param(struct lowering *l, const struct rule_param *param,
                                struct ir_value *const *params)
{
    struct lower_number number = {.number = param->value};
    if (!param->is_operand)
        return number;
    struct ir_value *value = params[param->value];
    const struct ir_known *known = value->known;
    if (known && known->count == 1 && dim_is_const(known->elements[0], &number.number))
        return number;
    number.value = lower_scalar(l, value, 1);
    return number;
}

struct ir_value *lower_number_list(struct lowering *l, const struct lower_number *number)
{
    return number->value ? number->value : lower_list(l, number->number);
}

struct lower_number lower_dim(struct lowering *l, struct ir_value *x, int i)
{
    struct lower_number number = {0};
    if (l->status || (lower_rank(x) > i && dim_is_const(x->type->dims[i], &number.number)))
        return number;
    struct ir_value *const operands[] = {lower_emit(l, IR_OP_Shape, 1, &x), lower_list(l, i)};
    number.value = lower_emit_axis(l, IR_OP_Gather, 2, operands, 0);
    return number;
}

struct ir_value *lower_numbers(struct lowering *l, int n, const struct lower_number *numbers)
{
    struct ir_value *parts[TSSA_MAX_RANK];
    int64_t values[TSSA_MAX_RANK] = {0};
    uint32_t n_parts = 0;
    size_t run = 0; /* of constants, which become one part */
    for (int i = 0; i < n; i++) {
        if (numbers[i].value) {
            if (run)
                parts[n_parts++] = lower_ints(l, 1, run, values);
            run = 0;
            parts[n_parts++] = numbers[i].value;
        } else {
            values[run++] = numbers[i].number;
        }
    }
    if (run || n == 0)
        parts[n_parts++] = lower_ints(l, 1, run, values);
    return lower_concat(l, n_parts, parts, 0);
}

/* ---- Reshapes -------------------------------------------------------------------------------- */

/* What is left of x's elements beside dims that may be 0: 0 then. */
static struct ir_value *rest_of(struct lowering *l, struct ir_value *x,
                                const struct lower_shape *shape)
{
    struct ir_value *given = lower_list(l, 1);
    for (int i = 0; i < shape->rank; i++) {
        if (!shape->dims[i].value && shape->dims[i].number == -1)
            continue;
        struct ir_value *const both[] = {given, lower_number_list(l, &shape->dims[i])};
        given = lower_emit(l, IR_OP_Mul, 2, both);
    }
    struct ir_value *const least[] = {given, lower_list(l, 1)};
    struct ir_value *const quotient[] = {lower_emit(l, IR_OP_Size, 1, &x),
                                         lower_emit(l, IR_OP_Max, 2, least)};
    return lower_emit(l, IR_OP_Div, 2, quotient);
}

static bool may_be_zero(const struct lower_number *dim)
{
    if (!dim->value)
        return dim->number == 0;
    const struct ir_known *known = dim->value->known;
    return !(known && known->count == 1 && known->elements[0] && known->elements[0]->low >= 1);
}

struct ir_value *lower_reshape(struct lowering *l, struct ir_value *x,
                               const struct lower_shape *shape)
{
    struct lower_shape literal = *shape;
    int rest = -1;
    bool zero = false;
    if (l->status)
        return NULL;
    for (int i = 0; i < shape->rank; i++) {
        if (!shape->dims[i].value && shape->dims[i].number == -1)
            rest = i;
        else
            zero |= may_be_zero(&shape->dims[i]);
    }
    if (zero && rest >= 0)
        literal.dims[rest] = (struct lower_number){.value = rest_of(l, x, shape)};
    struct ir_value *const operands[] = {x, lower_numbers(l, literal.rank, literal.dims)};
    const struct ir_attr attr = {.name = "allowzero", .kind = IR_ATTR_INT, .i = 1};
    return emit(l, IR_OP_Reshape, 2, operands, zero ? &attr : NULL);
}

struct ir_value *lower_rearrange(struct lowering *l, struct ir_value *x,
                                 const struct lower_shape *shape)
{
    struct lower_shape cheap = *shape;
    int open = 0, last = 0;
    for (int i = 0; i < shape->rank; i++)
        if (may_be_zero(&shape->dims[i]) || shape->dims[i].value) {
            open += shape->dims[i].value ? 1 : 2;
            last = i;
        }
    if (open == 1)
        cheap.dims[last] = (struct lower_number){.number = -1};
    return lower_reshape(l, x, &cheap);
}

struct ir_value *lower_flatten(struct lowering *l, struct ir_value *x)
{
    if (l->status || lower_rank(x) == 1)
        return x;
    struct ir_value *const operands[] = {x, lower_list(l, -1)};
    return lower_emit(l, IR_OP_Reshape, 2, operands);
}
