/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inference for element-wise rows: one element type, the broadcast shape, and
 * integer elements that are computed symbolically, because exporters write shape arithmetic with them.
 */
#include <inttypes.h>
#include <string.h>

#include "ir/infer.h"
#include "ir/wrap.h"

/* ---- Element types -------------------------------------------------------------------------------- */

static const char *dtype_text(tssa_dtype dtype)
{
    return dtype_info(dtype)->ir_name;
}

/* The element type that operands [first, n) share; UNDEFINED when none is known. */
static tssa_status *shared_dtype(const struct ir_op *op, uint32_t first, tssa_dtype *dtype)
{
    *dtype = TSSA_UNDEFINED;
    for (uint32_t i = first; i < op->n_operands; i++) {
        tssa_dtype own = infer_dtype(op, i);
        if (own == TSSA_UNDEFINED)
            continue;
        if (!dtype_in(op->info->types, own))
            return ERROR(TSSA_MALFORMED, "operand %" PRIu32 " cannot be %s", i, dtype_text(own));
        if (*dtype != TSSA_UNDEFINED && own != *dtype)
            return ERROR(TSSA_MALFORMED, "operand %" PRIu32 " is %s where others are %s", i,
                         dtype_text(own), dtype_text(*dtype));
        *dtype = own;
    }
    return NULL;
}

static tssa_status *set_broadcast(struct ir_op *op, tssa_dtype dtype)
{
    int rank;
    const struct dim *dims[TSSA_MAX_RANK];
    TRY(infer_broadcast(op, 0, op->n_operands, &rank, dims));
    if (rank < 0)
        return infer_set_unranked(op, 0, dtype);
    return infer_set_tensor(op, 0, dtype, rank, dims);
}

/* ---- Symbolic integers ---------------------------------------------------------------------------- */

/* What is known of a - b. */
enum order {
    ORDER_UNKNOWN,
    ORDER_LESS,
    ORDER_EQUAL,
    ORDER_GREATER,
    ORDER_NOT_LESS,
    ORDER_NOT_GREATER
};

static tssa_status *compare(struct dim_table *dims, const struct dim *a, const struct dim *b,
                            enum order *order)
{
    const struct dim *more = dim_sub(dims, a, b);
    TRY_ALLOC(more);
    if (more->low == more->high)
        *order = more->low < 0 ? ORDER_LESS : more->low > 0 ? ORDER_GREATER : ORDER_EQUAL;
    else if (more->low >= 0)
        *order = more->low > 0 ? ORDER_GREATER : ORDER_NOT_LESS;
    else if (more->high <= 0)
        *order = more->high < 0 ? ORDER_LESS : ORDER_NOT_GREATER;
    else
        *order = ORDER_UNKNOWN;
    return NULL;
}

/*
 * One element of a result from the operands' elements, of which `in[i]` may be NULL. *out stays NULL
 * where it cannot be told.
 */
typedef tssa_status *(*known_fn)(struct ir_op *op, const struct dim *const *in,
                                 const struct dim **out);

static struct dim_table *dims_of(struct ir_op *op)
{
    return &op->parent->graph->dims;
}

#define KNOWN(name)                                                                                \
    static tssa_status *known_##name(struct ir_op *op, const struct dim *const *in,                \
                                     const struct dim **out)

#define KNOWN_BINARY(name, maker)                                                                  \
    KNOWN(name)                                                                                    \
    {                                                                                              \
        if (!in[0] || !in[1])                                                                      \
            return NULL;                                                                           \
        *out = maker(dims_of(op), in[0], in[1]);                                                   \
        TRY_ALLOC(*out);                                                                           \
        return NULL;                                                                               \
    }

KNOWN_BINARY(add, dim_add)
KNOWN_BINARY(sub, dim_sub)
KNOWN_BINARY(min, dim_min)
KNOWN_BINARY(max, dim_max)

KNOWN(mul)
{
    /* What is multiplied by 0 need not be known. */
    for (int i = 0; i < 2; i++)
        if (in[i] && dim_is(in[i], 0))
            *out = in[i];
    if (*out || !in[0] || !in[1])
        return NULL;
    *out = dim_mul(dims_of(op), in[0], in[1]);
    TRY_ALLOC(*out);
    return NULL;
}

/* Integer division truncates, dims round down: the same where nothing is negative. */
KNOWN(div)
{
    if (!in[0] || !in[1])
        return NULL;
    int64_t a, b;
    if (dim_is_const(in[0], &a) && dim_is_const(in[1], &b)) {
        if (b == 0 || (a == INT64_MIN && b == -1))
            return NULL;
        *out = dim_const(dims_of(op), a / b);
    } else if (dim_at_least(in[0], 0) && dim_at_least(in[1], 1)) {
        *out = dim_floordiv(dims_of(op), in[0], in[1]);
    } else {
        return NULL;
    }
    TRY_ALLOC(*out);
    return NULL;
}

KNOWN(mod)
{
    bool truncates = ir_attr_int(op, "fmod", 0) != 0;
    if (!in[0] || !in[1] || !dim_at_least(in[1], 1) || (truncates && !dim_at_least(in[0], 0)))
        return NULL;
    *out = dim_mod(dims_of(op), in[0], in[1]);
    TRY_ALLOC(*out);
    return NULL;
}

KNOWN(neg)
{
    if (!in[0])
        return NULL;
    const struct dim *zero = dim_const(dims_of(op), 0);
    TRY_ALLOC(zero);
    *out = dim_sub(dims_of(op), zero, in[0]);
    TRY_ALLOC(*out);
    return NULL;
}

KNOWN(abs)
{
    if (in[0] && dim_at_least(in[0], 0))
        *out = in[0];
    else if (in[0] && in[0]->kind == DIM_CONST)
        return known_neg(op, in, out);
    return NULL;
}

KNOWN(clip)
{
    *out = in[0];
    for (uint32_t i = 1; i < 3 && *out; i++) {
        if (!ir_operand(op, i))
            continue;
        const struct dim *bounded = NULL;
        if (in[i]) {
            bounded = (i == 1 ? dim_max : dim_min)(dims_of(op), *out, in[i]);
            TRY_ALLOC(bounded);
        }
        *out = bounded;
    }
    return NULL;
}

static tssa_status *set_truth(struct ir_op *op, bool truth, const struct dim **out)
{
    *out = dim_const(dims_of(op), truth);
    TRY_ALLOC(*out);
    return NULL;
}

/* A comparison that holds in the orders of `yes` and fails in those of `no`. */
#define ORDERS(a, b) (1u << ORDER_##a | 1u << ORDER_##b)
#define KNOWN_COMPARISON(name, yes, no)                                                            \
    KNOWN(name)                                                                                    \
    {                                                                                              \
        if (!in[0] || !in[1])                                                                      \
            return NULL;                                                                           \
        enum order order;                                                                          \
        TRY(compare(dims_of(op), in[0], in[1], &order));                                           \
        if (((yes) | (no)) >> order & 1)                                                           \
            return set_truth(op, (yes) >> order & 1, out);                                         \
        return NULL;                                                                               \
    }

KNOWN_COMPARISON(equal, 1u << ORDER_EQUAL, ORDERS(LESS, GREATER))
KNOWN_COMPARISON(less, 1u << ORDER_LESS, ORDERS(EQUAL, GREATER) | 1u << ORDER_NOT_LESS)
KNOWN_COMPARISON(less_or_equal, ORDERS(LESS, EQUAL) | 1u << ORDER_NOT_GREATER, 1u << ORDER_GREATER)
KNOWN_COMPARISON(greater, 1u << ORDER_GREATER, ORDERS(EQUAL, LESS) | 1u << ORDER_NOT_GREATER)
KNOWN_COMPARISON(greater_or_equal, ORDERS(GREATER, EQUAL) | 1u << ORDER_NOT_LESS, 1u << ORDER_LESS)

/* `decisive` alone decides the result, which then is `decisive` too. */
static tssa_status *connect(struct ir_op *op, const struct dim *const *in, bool decisive,
                            const struct dim **out)
{
    int others = 0;
    for (int i = 0; i < 2; i++) {
        int64_t value;
        if (!in[i] || !dim_is_const(in[i], &value))
            continue;
        if ((value != 0) == decisive)
            return set_truth(op, decisive, out);
        others++;
    }
    return others == 2 ? set_truth(op, !decisive, out) : NULL;
}

KNOWN(and)
{
    return connect(op, in, false, out);
}

KNOWN(or)
{
    return connect(op, in, true, out);
}

KNOWN(not )
{
    int64_t value;
    return in[0] && dim_is_const(in[0], &value) ? set_truth(op, value == 0, out) : NULL;
}

KNOWN(where)
{
    (void)op;
    int64_t condition;
    if (in[0] && dim_is_const(in[0], &condition))
        *out = in[condition ? 1 : 2];
    else if (in[1] == in[2])
        *out = in[1];
    return NULL;
}

/* By operator: how an element is computed, and whether that can leave the type of its operands. */
struct known_rule {
    known_fn fn;
    bool wraps;
};

static struct known_rule known_of(enum ir_op_id id)
{
    static const struct known_rule rules[IR_OP_COUNT] = {
        [IR_OP_Add] = {known_add, true},
        [IR_OP_Sub] = {known_sub, true},
        [IR_OP_Mul] = {known_mul, true},
        [IR_OP_Div] = {known_div, true}, /* the smallest by -1 */
        [IR_OP_Mod] = {known_mod, false},
        [IR_OP_Min] = {known_min, false},
        [IR_OP_Max] = {known_max, false},
        [IR_OP_Neg] = {known_neg, true},
        [IR_OP_Abs] = {known_abs, true},
        [IR_OP_Clip] = {known_clip, false},
        [IR_OP_Equal] = {known_equal, false},
        [IR_OP_Less] = {known_less, false},
        [IR_OP_LessOrEqual] = {known_less_or_equal, false},
        [IR_OP_Greater] = {known_greater, false},
        [IR_OP_GreaterOrEqual] = {known_greater_or_equal, false},
        [IR_OP_And] = {known_and, false},
        [IR_OP_Or] = {known_or, false},
        [IR_OP_Not] = {known_not, false},
        [IR_OP_Where] = {known_where, false},
    };
    return rules[id];
}

/* Only these types are tracked through arithmetic: shapes have no others. */
static bool tracked(tssa_dtype dtype)
{
    return dtype == TSSA_INT64 || dtype == TSSA_INT32 || dtype == TSSA_BOOL;
}

/* How many elements the result has; false when that is not tracked. */
static bool known_count(const struct ir_op *op, size_t *count)
{
    const struct ir_type *type = op->results[0].type;
    int64_t n = 1;
    if (type->kind != TYPE_TENSOR || type->rank < 0 || type->rank > 1 ||
        (type->rank == 1 && !dim_is_const(type->dims[0], &n)) || n < 0 || n > IR_KNOWN_MAX)
        return false;
    *count = (size_t)n;
    return true;
}

/* The element that operand `index` contributes to element i of the result. */
static const struct dim *element_of(const struct ir_op *op, uint32_t index, size_t i)
{
    const struct ir_known *known = infer_known(op, index);
    if (!known || !tracked(infer_dtype(op, index)))
        return NULL;
    return i < known->count ? known->elements[i] : known->count == 1 ? known->elements[0] : NULL;
}

static tssa_status *known_element(struct ir_op *op, known_fn fn, size_t i, const struct dim **out)
{
    const struct dim *in[3] = {NULL};
    bool variadic = op->info->max_operands == IR_VARIADIC;
    uint32_t n = variadic ? 1 : op->n_operands;
    for (uint32_t k = 0; k < n && k < 3; k++)
        in[k] = element_of(op, k, i);
    if (!variadic)
        return fn(op, in, out);
    for (uint32_t k = 1; k < op->n_operands; k++) {
        in[1] = element_of(op, k, i);
        *out = NULL;
        TRY(fn(op, in, out));
        in[0] = *out;
    }
    *out = in[0];
    return NULL;
}

static tssa_status *set_known(struct ir_op *op)
{
    struct known_rule rule = known_of(op->info->id);
    tssa_dtype dtype = op->results[0].type->dtype;
    size_t count;
    if (!rule.fn || !ir_result_wanted(op, 0) || !tracked(dtype) || !known_count(op, &count))
        return NULL;
    const struct dim *elements[IR_KNOWN_MAX];
    bool any = count == 0;
    for (size_t i = 0; i < count; i++) {
        elements[i] = NULL;
        TRY(known_element(op, rule.fn, i, &elements[i]));
        if (rule.wraps && elements[i] && !wrap_never(op->parent->graph, dtype, elements[i]))
            elements[i] = NULL;
        any |= elements[i] != NULL;
    }
    return any ? infer_set_known(op, 0, count, elements) : NULL;
}

/* ---- Rules of elementwise.def --------------------------------------------------------------------- */

INFER_RULE(elementwise_EW_SAME)
{
    (void)graph;
    tssa_dtype dtype;
    TRY(shared_dtype(op, 0, &dtype));
    TRY(set_broadcast(op, dtype));
    return set_known(op);
}

INFER_RULE(elementwise_EW_BOOL)
{
    (void)graph;
    tssa_dtype dtype;
    TRY(shared_dtype(op, 0, &dtype));
    TRY(set_broadcast(op, TSSA_BOOL));
    return set_known(op);
}

INFER_RULE(elementwise_EW_FIRST)
{
    (void)graph;
    for (uint32_t i = 0; i < op->n_operands; i++) {
        tssa_dtype dtype = infer_dtype(op, i);
        if (dtype != TSSA_UNDEFINED && !dtype_in(op->info->types, dtype))
            return ERROR(TSSA_MALFORMED, "operand %" PRIu32 " cannot be %s", i, dtype_text(dtype));
    }
    TRY(set_broadcast(op, infer_dtype(op, 0)));
    return set_known(op);
}

INFER_RULE(elementwise_EW_WHERE)
{
    (void)graph;
    tssa_dtype condition = infer_dtype(op, 0), dtype;
    if (condition != TSSA_UNDEFINED && condition != TSSA_BOOL)
        return ERROR(TSSA_MALFORMED, "operand 0 must be bool, not %s", dtype_text(condition));
    TRY(shared_dtype(op, 1, &dtype));
    TRY(set_broadcast(op, dtype));
    return set_known(op);
}
