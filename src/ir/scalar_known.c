/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Integer elements that are computed symbolically, because exporters write shape arithmetic with
 * them: a row's program (ir/scalar.h), run on what is known of its operands' elements. An element
 * of which nothing is known is NULL, and most of what is computed from it is too.
 */
#include "ir/infer.h"
#include "ir/promotion.h"
#include "ir/scalar.h"
#include "ir/wrap.h"

/* A program under way. */
struct run {
    struct ir_graph *graph;
    struct dim_table *dims;
    tssa_dtype dtype; /* of the result; comparisons compute nothing that could leave a type */
    const struct scalar_code *code;
    double params[EW_MAX_PARAMS];
    bool as_index; /* what leaves INT64 is no index that an op takes (ir/wrap.h) */
    bool out_of_memory;
};

/* Notes that memory ran out when a dim that was made is NULL. */
static const struct dim *made(struct run *run, const struct dim *dim)
{
    run->out_of_memory |= !dim;
    return dim;
}

static const struct dim *number(struct run *run, int64_t value)
{
    return made(run, dim_const(run->dims, value));
}

/* A dim that the element is, unless arithmetic leaves the type in some run. */
static const struct dim *unless_wrapped(struct run *run, const struct dim *dim)
{
    if (!made(run, dim))
        return NULL;
    return (run->as_index ? wrap_never_as_index(run->graph, dim)
                          : wrap_never(run->graph, run->dtype, dim))
               ? dim
               : NULL;
}

/* ---- What the operations say of dims --------------------------------------------------------- */

typedef const struct dim *(*known_fn)(struct run *run, const struct dim *const *in);

#define KNOWN(name)                                                                                \
    static const struct dim *known_##name(struct run *run, const struct dim *const *in)

static const struct dim *whole_number(struct run *run, double value)
{
    int64_t integer;
    return scalar_whole(value, &integer) ? number(run, integer) : NULL;
}

KNOWN(constant)
{
    (void)in;
    return whole_number(run, run->code->number);
}

KNOWN(param)
{
    (void)in;
    return whole_number(run, run->params[run->code->index]);
}

/* The limits of BOOL are those of a truth value, which no row asks for. */
static const struct dim *limit(struct run *run, bool highest)
{
    int64_t low, high;
    return wrap_limits(run->dtype, &low, &high) ? number(run, highest ? high : low) : NULL;
}

KNOWN(lowest)
{
    (void)in;
    return limit(run, false);
}

KNOWN(highest)
{
    (void)in;
    return limit(run, true);
}

KNOWN(when)
{
    return in[run->params[run->code->index] != 0 ? 0 : 1];
}

KNOWN(select)
{
    (void)run;
    int64_t truth;
    if (dim_is_const(in[0], &truth))
        return in[truth ? 1 : 2];
    return in[1] == in[2] ? in[1] : NULL;
}

#define KNOWN_BINARY(name, maker)                                                                  \
    KNOWN(name)                                                                                    \
    {                                                                                              \
        return in[0] && in[1] ? unless_wrapped(run, maker(run->dims, in[0], in[1])) : NULL;        \
    }

KNOWN_BINARY(add, dim_add)
KNOWN_BINARY(sub, dim_sub)

KNOWN(mul)
{
    /* What is multiplied by 0 need not be known. */
    for (int i = 0; i < 2; i++)
        if (dim_is(in[i], 0))
            return in[i];
    return in[0] && in[1] ? unless_wrapped(run, dim_mul(run->dims, in[0], in[1])) : NULL;
}

/* Integer division truncates, dims round down: the same where nothing is negative. */
KNOWN(div)
{
    int64_t a, b;
    if (dim_is_const(in[0], &a) && dim_is_const(in[1], &b))
        return b == 0 || (a == INT64_MIN && b == -1)
                   ? NULL
                   : unless_wrapped(run, dim_const(run->dims, a / b));
    return dim_at_least(in[0], 0) && dim_at_least(in[1], 1)
               ? made(run, dim_floordiv(run->dims, in[0], in[1]))
               : NULL;
}

KNOWN(mod)
{
    return in[0] && dim_at_least(in[1], 1) ? made(run, dim_mod(run->dims, in[0], in[1])) : NULL;
}

KNOWN(fmod)
{
    return dim_at_least(in[0], 0) ? known_mod(run, in) : NULL;
}

/* What no element of the type is beyond does not bound. */
static const struct dim *bounded(struct run *run, const struct dim *const *in, bool above)
{
    int64_t low, high;
    if (wrap_limits(run->dtype, &low, &high) && dim_is(in[1], above ? high : low))
        return in[0];
    if (!in[0] || !in[1])
        return NULL;
    return made(run, (above ? dim_min : dim_max)(run->dims, in[0], in[1]));
}

KNOWN(min)
{
    return bounded(run, in, true);
}

KNOWN(max)
{
    return bounded(run, in, false);
}

KNOWN(neg)
{
    const struct dim *zero = number(run, 0);
    return in[0] && zero ? unless_wrapped(run, dim_sub(run->dims, zero, in[0])) : NULL;
}

KNOWN(abs)
{
    if (dim_at_least(in[0], 0))
        return in[0];
    return in[0] && in[0]->kind == DIM_CONST ? known_neg(run, in) : NULL;
}

/* ---- Comparisons and truth values ------------------------------------------------------------ */

KNOWN(comparison)
{
    if (!in[0] || !in[1])
        return NULL;
    const struct dim *more = made(run, dim_sub(run->dims, in[0], in[1]));
    if (!more)
        return NULL;
    int orders = (more->low < 0 ? ORDER_LESS : 0) | (more->high > 0 ? ORDER_GREATER : 0) |
                 (more->low <= 0 && more->high >= 0 ? ORDER_EQUAL : 0);
    int truth = scalar_holds(scalar_orders(run->code->id), orders);
    return truth < 0 ? NULL : number(run, truth);
}

/* `decisive` alone decides the result, which then is `decisive` too. */
static const struct dim *connect(struct run *run, const struct dim *const *in, bool decisive)
{
    int others = 0;
    for (int i = 0; i < 2; i++) {
        int64_t value;
        if (!dim_is_const(in[i], &value))
            continue;
        if ((value != 0) == decisive)
            return number(run, decisive);
        others++;
    }
    return others == 2 ? number(run, !decisive) : NULL;
}

KNOWN(and)
{
    return connect(run, in, false);
}

KNOWN(or)
{
    return connect(run, in, true);
}

KNOWN(not )
{
    int64_t value;
    return dim_is_const(in[0], &value) ? number(run, value == 0) : NULL;
}

/* Nothing is known of what the others leave. */
static const known_fn known[SCALAR_COUNT_OF_IDS] = {
    [SCALAR_P] = known_param,       [SCALAR_K] = known_constant,
    [SCALAR_LOWEST] = known_lowest, [SCALAR_HIGHEST] = known_highest,
    [SCALAR_WHEN] = known_when,     [SCALAR_SEL] = known_select,
    [SCALAR_ADD] = known_add,       [SCALAR_SUB] = known_sub,
    [SCALAR_MUL] = known_mul,       [SCALAR_DIV] = known_div,
    [SCALAR_MOD] = known_mod,       [SCALAR_FMOD] = known_fmod,
    [SCALAR_MIN] = known_min,       [SCALAR_MAX] = known_max,
    [SCALAR_NEG] = known_neg,       [SCALAR_ABS] = known_abs,
    [SCALAR_LT] = known_comparison, [SCALAR_LE] = known_comparison,
    [SCALAR_GT] = known_comparison, [SCALAR_GE] = known_comparison,
    [SCALAR_EQ] = known_comparison, [SCALAR_AND] = known_and,
    [SCALAR_OR] = known_or,         [SCALAR_NOT] = known_not,
};

/* Of numbers that have wrapped around, sums and products are what they would be, wrapped around;
 * nothing else is. */
static bool wraps_with(uint8_t id)
{
    return id == SCALAR_ADD || id == SCALAR_SUB || id == SCALAR_MUL || id == SCALAR_NEG;
}

/* Is the dim certainly what a run has there? A symbol is: it stands for a number that is there. */
static bool is_exact(const struct run *run, const struct dim *dim)
{
    if (dim->kind != DIM_MIN && dim->kind != DIM_MAX)
        return dim->kind == DIM_SYMBOL || wrap_never(run->graph, run->dtype, dim);
    for (uint32_t i = 0; i < dim->n_terms; i++)
        if (!is_exact(run, dim->terms[i]))
            return false;
    return true;
}

/* Are all operands that something is known of? */
static bool are_exact(const struct run *run, const struct dim *const *in)
{
    const uint8_t id = run->code->id;
    for (int i = 0; run->as_index && !wraps_with(id) && i < scalar_info(id)->operands; i++)
        if (in[i] && !is_exact(run, in[i]))
            return false;
    return true;
}

/* ---- Programs -------------------------------------------------------------------------------- */

static const struct dim *evaluate(struct run *run, const struct ir_op *op,
                                  const struct dim *const *operands)
{
    const struct dim *stack[SCALAR_MAX_STACK];
    uint32_t n = 0;
    for (run->code = op->info->ew->program; run->code->id != SCALAR_END; run->code++) {
        uint8_t id = run->code->id;
        n -= scalar_info(id)->operands;
        const struct dim *const *in = stack + n;
        if (id >= SCALAR_X && id <= SCALAR_Z)
            stack[n] = operands[id - SCALAR_X];
        else if (id == SCALAR_OPT)
            stack[n] = in[ir_operand(op, run->code->index) ? 0 : 1];
        else
            stack[n] = known[id] && are_exact(run, in) ? known[id](run, in) : NULL;
        n++;
    }
    return stack[0];
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
    const struct ir_known *elements = infer_known(op, index);
    if (!elements || !tracked(infer_dtype(op, index)))
        return NULL;
    return i < elements->count    ? elements->elements[i]
           : elements->count == 1 ? elements->elements[0]
                                  : NULL;
}

static const struct dim *element(struct run *run, const struct ir_op *op, size_t i)
{
    const struct dim *in[3] = {NULL};
    bool variadic = op->info->max_operands == IR_VARIADIC;
    uint32_t n = variadic ? 1 : op->n_operands;
    for (uint32_t k = 0; k < n && k < 3; k++)
        in[k] = element_of(op, k, i);
    if (!variadic)
        return evaluate(run, op, in);
    for (uint32_t k = 1; k < op->n_operands; k++) {
        in[1] = element_of(op, k, i);
        in[0] = evaluate(run, op, in);
    }
    return in[0];
}

tssa_status *scalar_index(const struct ir_op *op, const struct dim *const operands[3],
                          const struct dim **out)
{
    struct ir_graph *graph = op->parent->graph;
    struct run run = {.graph = graph, .dims = &graph->dims, .dtype = TSSA_INT64, .as_index = true};
    *out = NULL;
    bool folds = op->info->max_operands == IR_VARIADIC && op->n_operands != 2;
    if (!promotes_nothing(op) || folds || op->results[0].type->dtype != TSSA_INT64)
        return NULL;
    TRY(scalar_params(op, run.params));
    *out = evaluate(&run, op, operands);
    return run.out_of_memory ? status_out_of_memory() : NULL;
}

tssa_status *infer_scalar_known(struct ir_op *op)
{
    struct ir_graph *graph = op->parent->graph;
    struct run run = {.graph = graph, .dims = &graph->dims, .dtype = op->results[0].type->dtype};
    const struct dim *elements[IR_KNOWN_MAX];
    size_t count;
    if (!ir_result_wanted(op, 0) || !tracked(op->results[0].type->dtype) || !promotes_nothing(op) ||
        !known_count(op, &count))
        return NULL;
    TRY(scalar_params(op, run.params));
    bool any = count == 0;
    for (size_t i = 0; i < count; i++) {
        elements[i] = element(&run, op, i);
        any |= elements[i] != NULL;
    }
    if (run.out_of_memory)
        return status_out_of_memory();
    return any ? infer_set_known(op, 0, count, elements) : NULL;
}
