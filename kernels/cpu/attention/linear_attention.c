/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LinearAttention (ai.onnx 27): a matrix of state per head, updated position by position. DOUBLE is
 * computed in double, narrower types in float32, the state included; products are rounded each, and
 * sums over rows of the state are those of an axis that is not the innermost one
 * (ir/reduction.def).
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/clones.h"
#include "ir/scalar/f32_exp.h"
#include "ir/scalar/f64_exp.h"
#include "kernels/cpu/attention/attention.h"
#include "kernels/cpu/lib/lines.h"
#include "kernels/cpu/lib/reduce_levels.h"

enum { QUERY, KEY, VALUE, PAST, DECAY, BETA, OPERANDS };

struct linear_attrs {
    bool gated, delta;
    int64_t q_heads, kv_heads;
    double scale; /* 0: not given */
};

static tssa_status *linear_prepare(const struct ir_op *op, const struct kernel_setup *setup,
                                   const void **state)
{
    static const char *const rules[] = {"linear", "gated", "delta", "gated_delta"};
    struct linear_attrs *attrs = ARENA_NEW(setup->arena, struct linear_attrs);
    TRY_ALLOC(attrs);
    const char *rule = ir_attr_str(op, "update_rule", "gated_delta");
    unsigned chosen = 0;
    while (chosen < 4 && strcmp(rule, rules[chosen]) != 0)
        chosen++;
    if (chosen == 4)
        return ERROR(TSSA_MALFORMED, "update_rule is \"%s\"", rule);
    attrs->gated = chosen & 1;
    attrs->delta = chosen & 2;
    attrs->q_heads = ir_attr_int(op, "q_num_heads", 0);
    attrs->kv_heads = ir_attr_int(op, "kv_num_heads", 0);
    attrs->scale = (double)ir_attr_float(op, "scale", 0);
    if (attrs->q_heads < 1 || attrs->kv_heads < 1 || attrs->q_heads % attrs->kv_heads)
        return ERROR(TSSA_MALFORMED, "%" PRId64 " heads of queries, %" PRId64 " of keys",
                     attrs->q_heads, attrs->kv_heads);
    *state = attrs;
    return NULL;
}

struct linear {
    const struct linear_attrs *attrs;
    const struct attention_loops *loops;
    const struct tensor *in[OPERANDS]; /* from PAST on: may be NULL */
    struct tensor *out, *present;
    int64_t batch, length, key, value; /* key, value: sizes of a head */
    int64_t decay, beta;               /* their sizes per position */
    double scale;
};

static double load(const struct tensor *tensor, int64_t at)
{
    return dtype_load_double(tensor->dtype, element_at(tensor, at));
}

/* value <- beta * (value - recalled) */
#define CORRECT(name, T)                                                                           \
    VECTOR_PROCEDURE(name, (T *restrict value, const T *restrict recalled, T beta, int64_t n),     \
                     (value, recalled, beta, n))                                                   \
    {                                                                                              \
        for (int64_t m = 0; m < n; m++)                                                            \
            value[m] = beta * (value[m] - recalled[m]);                                            \
    }
CORRECT(correct_floats, float)
CORRECT(correct_doubles, double)

/* What a part computes with, elements of the loops' type. */
struct head {
    char *state, *key, *value, *query;
    void *sums; /* memory of a sum over rows of the state */
};

static void *row_of(const struct linear *l, const struct head *h, int64_t d)
{
    return h->state + (size_t)(d * l->value) * l->loops->width;
}

/* What the state is multiplied by: a number per head, or one per row. */
static void decay_state(const struct linear *l, int64_t position, int64_t head,
                        const struct head *h)
{
    const bool per_head = l->decay == l->attrs->kv_heads;
    for (int64_t d = 0; d < l->key; d++) {
        int64_t at = position * l->decay + (per_head ? head : head * l->key + d);
        double decay = load(l->in[DECAY], at);
        double factor =
            l->loops->dtype == TSSA_FLOAT ? (double)f32_exp((float)decay) : f64_exp(decay);
        l->loops->scale(row_of(l, h, d), l->value, factor);
    }
}

static const void *read_row(const struct linear *l, const struct head *h, const void *weights)
{
    return attention_weighed_sum(l->loops, h->state, weights, l->key, l->value, false, h->sums);
}

/* value <- beta * (value - state^T key) */
static void correct_value(const struct linear *l, int64_t position, int64_t head,
                          const struct head *h)
{
    double beta = load(l->in[BETA], position * l->beta + (l->beta == 1 ? 0 : head));
    const void *recalled = read_row(l, h, h->key);
    if (l->loops->dtype == TSSA_FLOAT)
        correct_floats((float *)(void *)h->value, recalled, (float)beta, l->value);
    else
        correct_doubles((double *)(void *)h->value, recalled, beta, l->value);
}

static void read_state(const struct linear *l, int64_t position, int64_t head, const struct head *h)
{
    int64_t group = l->attrs->q_heads / l->attrs->kv_heads;
    for (int64_t q = head * group; q < (head + 1) * group; q++) {
        const int64_t at = position * l->attrs->q_heads + q;
        load_elements(l->in[QUERY], at * l->key, 1, l->key, l->loops->dtype, h->query);
        l->loops->scale(h->query, l->key, l->scale);
        store_elements(l->out, at * l->value, 1, l->value, l->loops->dtype,
                       read_row(l, h, h->query));
    }
}

/* One position of a head of keys. */
static void update_state(const struct linear *l, int64_t position, int64_t head,
                         const struct head *h)
{
    const struct attention_loops *loops = l->loops;
    const int64_t at = position * l->attrs->kv_heads + head;
    load_elements(l->in[KEY], at * l->key, 1, l->key, loops->dtype, h->key);
    load_elements(l->in[VALUE], at * l->value, 1, l->value, loops->dtype, h->value);
    if (l->attrs->gated)
        decay_state(l, position, head, h);
    if (l->attrs->delta)
        correct_value(l, position, head, h);
    for (int64_t d = 0; d < l->key; d++)
        loops->weigh(h->value, h->key + (size_t)d * loops->width, 1, l->value, row_of(l, h, d));
}

/* Elements of a part's memory: the state, a key, a value, a query and sums. */
static bool count_scratch(const struct linear *l, int64_t *elements)
{
    int64_t size, sums;
    return i64_mul(l->key, l->value, &size) && i64_mul(l->key, 2, elements) &&
           i64_mul(l->value, 1 + reduce_levels_needed(l->key), &sums) &&
           i64_add(*elements, sums, elements) && i64_add(*elements, size, elements);
}

/* Indices are (batch, head of keys) pairs. */
static void run_heads(void *context, void *scratch, int64_t begin, int64_t end)
{
    const struct linear *l = context;
    const size_t width = l->loops->width, key = (size_t)l->key * width;
    const int64_t heads = l->attrs->kv_heads, size = l->key * l->value;
    struct head h = {.state = scratch};
    h.key = h.state + (size_t)size * width;
    h.query = h.key + key;
    h.value = h.query + key;
    h.sums = h.value + (size_t)l->value * width;
    for (int64_t i = begin; i < end; i++) {
        int64_t head = i % heads, first = i / heads * l->length;
        memset(h.state, 0, (size_t)size * width);
        if (l->in[PAST])
            load_elements(l->in[PAST], i * size, 1, size, l->loops->dtype, h.state);
        for (int64_t p = first; p < first + l->length; p++) {
            update_state(l, p, head, &h);
            if (l->out)
                read_state(l, p, head, &h);
        }
        if (l->present)
            store_elements(l->present, i * size, 1, size, l->loops->dtype, h.state);
    }
}

/* [batch, length, heads * size]: the size, -1 when it is something else. */
static int64_t head_size(const struct linear *l, uint32_t index, int64_t heads)
{
    const struct tensor *x = l->in[index];
    if (x->rank != 3 || x->dims[0] != l->batch || x->dims[1] != l->length || x->dims[2] < heads ||
        x->dims[2] % heads)
        return -1;
    return x->dims[2] / heads;
}

static tssa_status *check_gates(struct linear *l)
{
    const struct linear_attrs *a = l->attrs;
    if (a->gated != (l->in[DECAY] != NULL) || a->delta != (l->in[BETA] != NULL))
        return ERROR(TSSA_RUNTIME, "the update rule does not fit the presence of decay and beta");
    l->decay = l->in[DECAY] ? head_size(l, DECAY, 1) : 0;
    l->beta = l->in[BETA] ? head_size(l, BETA, 1) : 0;
    if (a->gated && l->decay != a->kv_heads &&
        (l->decay < 0 || l->decay % a->kv_heads || l->decay / a->kv_heads != l->key))
        return operand_error(DECAY, l->in[DECAY], "a decay per head or per row of the state");
    if (a->delta && l->beta != a->kv_heads && l->beta != 1)
        return operand_error(BETA, l->in[BETA], "a number per head or position");
    return NULL;
}

static tssa_status *open_operands(struct kernel_args *args, struct linear *l)
{
    const struct linear_attrs *a = l->attrs;
    for (uint32_t i = 0; i < OPERANDS; i++) {
        if (i <= VALUE)
            TRY(typed_tensor(args, i, &l->in[i]));
        else
            TRY(kernel_optional_tensor(args, i, &l->in[i]));
        if (l->in[i] && !dtype_in(args->op->info->types, l->in[i]->dtype))
            return operand_error(i, l->in[i], "of a float type");
    }
    if (l->in[QUERY]->rank != 3)
        return operand_error(QUERY, l->in[QUERY], "of rank 3");
    l->batch = l->in[QUERY]->dims[0];
    l->length = l->in[QUERY]->dims[1];
    l->key = head_size(l, KEY, a->kv_heads);
    l->value = head_size(l, VALUE, a->kv_heads);
    if (l->key < 0 || l->value < 0 || head_size(l, QUERY, a->q_heads) != l->key)
        return ERROR(TSSA_RUNTIME,
                     "queries, keys and values do not fit %" PRId64 " and %" PRId64 " heads",
                     a->q_heads, a->kv_heads);
    l->scale = a->scale != 0 ? a->scale : 1 / sqrt((double)l->key);
    const struct tensor *past = l->in[PAST];
    if (past && (past->rank != 4 || past->dims[0] != l->batch || past->dims[1] != a->kv_heads ||
                 past->dims[2] != l->key || past->dims[3] != l->value))
        return operand_error(PAST, past, "the state before");
    return check_gates(l);
}

static tssa_status *run_LinearAttention(struct kernel_args *args)
{
    struct linear l = {.attrs = args->state};
    int64_t width, elements, cost, parts;
    size_t bytes;
    TRY(open_operands(args, &l));
    tssa_dtype dtype = l.in[QUERY]->dtype;
    l.loops = dtype == TSSA_DOUBLE ? &attention_loops_f64 : &attention_loops_f32;
    if (!i64_mul(l.batch, l.attrs->kv_heads, &parts) ||
        !i64_mul(l.attrs->q_heads, l.value, &width) || !count_scratch(&l, &elements) ||
        !size_mul((size_t)elements, l.loops->width, &bytes))
        return ERROR(TSSA_RUNTIME, "the heads are too large");
    const int64_t out[] = {l.batch, l.length, width};
    const int64_t state[] = {l.batch, l.attrs->kv_heads, l.key, l.value};
    TRY(kernel_output(args, 0, dtype, 3, out, &l.out));
    TRY(kernel_output(args, 1, l.in[PAST] ? l.in[PAST]->dtype : dtype, 4, state, &l.present));
    if (!i64_mul(l.key * l.value, l.length, &cost))
        cost = INT64_MAX;
    return parts_for(args, parts, cost, bytes, run_heads, &l);
}

const struct kernel cpu_kernel_LinearAttention = {.prepare = linear_prepare,
                                                  .run = run_LinearAttention};
