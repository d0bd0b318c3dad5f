/* SPDX-License-Identifier: Apache-2.0 */
/* What computes an Attention's results: as the host's kernel does (docs/numerics.md), in the same
 * order. */
#include <math.h>

#include "ir/rule_draft.h"
#include "passes/lower/expand_attention.h"

/* On the way; i64[] each: sizes. */
struct scores {
    struct attention *e;
    struct pass_maker *m;
    tssa_dtype dtype; /* computed in: double where an operand is, else float32 */
    struct ir_value *batch, *queries, *past, *total;
    struct ir_value *rows;          /* queries that share a head of keys */
    struct ir_value *keys, *values; /* [batch, kv heads, total, size], of their own type */
    struct ir_value *within;        /* the positions that a query may count; NULL: all */
    struct ir_value *results[ATTENTION_RESULTS];
};

/* ---- Making ops ------------------------------------------------------------------------------ */

static struct ir_value *binary(struct scores *s, enum ir_op_id id, struct ir_value *a,
                               struct ir_value *b)
{
    return pass_make(s->m, id, 2, a, b);
}

static struct ir_value *number(struct scores *s, tssa_dtype dtype, double number)
{
    return pass_make_number(s->m, dtype, number);
}

static struct ir_value *cast(struct scores *s, struct ir_value *x, tssa_dtype to)
{
    return s->m->status || x->type->dtype == to ? x : pass_make_cast(s->m, x, to);
}

static struct ir_value *greatest(struct scores *s, struct ir_value *x, int64_t axis)
{
    return binary(s, IR_OP_ReduceMax, x, pass_make_int(s->m, 1, axis));
}

/* ---- Sizes ----------------------------------------------------------------------------------- */

static bool is_known(const struct ir_value *size, int64_t *number)
{
    const struct tensor *constant = size ? ir_value_constant(size) : NULL;
    if (constant)
        *number = dtype_load_int64(constant->dtype, constant->data);
    return constant != NULL;
}

static struct ir_value *of_number(struct scores *s, int64_t number)
{
    return pass_make_int(s->m, 0, number);
}

static struct ir_value *size_of(struct scores *s, struct ir_value *x, int axis)
{
    return pass_make_size(s->m, x, axis);
}

static struct ir_value *add(struct scores *s, struct ir_value *a, struct ir_value *b)
{
    int64_t x, y, sum;
    if (is_known(a, &x) && is_known(b, &y) && i64_add(x, y, &sum))
        return of_number(s, sum);
    return binary(s, IR_OP_Add, a, b);
}

static struct ir_value *less(struct scores *s, struct ir_value *a, struct ir_value *b)
{
    int64_t x, y;
    if (is_known(a, &x) && is_known(b, &y))
        return of_number(s, x - y);
    return binary(s, IR_OP_Sub, a, b);
}

static struct ir_value *times(struct scores *s, struct ir_value *a, int64_t factor)
{
    int64_t x, product;
    if (is_known(a, &x) && i64_mul(x, factor, &product))
        return of_number(s, product);
    return binary(s, IR_OP_Mul, a, of_number(s, factor));
}

static struct ir_value *range(struct scores *s, struct ir_value *from, struct ir_value *to)
{
    return pass_put(s->m, pass_new_op(s->m, IR_OP_Range, 3, from, to, of_number(s, 1)));
}

static struct ir_value *access(struct scores *s, struct ir_value *x, const struct rule_draft *draft)
{
    return pass_make_rule(s->m, x, draft);
}

static struct ir_value *reshape(struct scores *s, struct ir_value *x, uint32_t n,
                                struct ir_value *const *sizes)
{
    struct rule_draft draft;
    draft_begin(&draft, RULE_EXACT);
    draft_sizes(&draft, RULE_RESHAPE, n, NULL, sizes);
    return access(s, x, &draft);
}

static struct ir_value *permute(struct scores *s, struct ir_value *x, const int64_t *axes)
{
    struct rule_draft draft;
    draft_begin(&draft, RULE_EXACT);
    draft_step(&draft, RULE_PERMUTE, 4, axes);
    return access(s, x, &draft);
}

static struct ir_value *unsqueeze(struct scores *s, struct ir_value *x, uint32_t n,
                                  const int64_t *axes)
{
    struct rule_draft draft;
    draft_begin(&draft, RULE_EXACT);
    draft_step(&draft, RULE_UNSQUEEZE, n, axes);
    return access(s, x, &draft);
}

/* ---- Heads ----------------------------------------------------------------------------------- */

/* [batch, heads, length, size] */
static struct ir_value *heads_of(struct scores *s, uint32_t operand, const struct heads *h)
{
    struct ir_value *x = ir_operand(s->e->op, operand);
    struct rule_draft draft;
    if (x->type->rank == 4)
        return x;
    struct ir_value *length = size_of(s, x, 1), *count = of_number(s, h->count),
                    *size = of_number(s, h->size);
    draft_begin(&draft, RULE_EXACT);
    draft_sizes(&draft, RULE_RESHAPE, 4, NULL,
                (struct ir_value *const[]){s->batch, length, count, size});
    draft_step(&draft, RULE_PERMUTE, 4, (const int64_t[]){0, 2, 1, 3});
    return access(s, x, &draft);
}

/* The past and what is new; always a value of its own, which a result may be. */
static struct ir_value *present_of(struct scores *s, uint32_t operand, uint32_t past,
                                   const struct heads *h)
{
    struct ir_value *before = ir_operand(s->e->op, past), *now = heads_of(s, operand, h);
    if (before)
        return pass_make_with(s->m, IR_OP_Concat, before, now, "axis", 2);
    return now == ir_operand(s->e->op, operand) ? pass_make(s->m, IR_OP_Identity, 1, now, NULL)
                                                : now;
}

static bool is_grouped(const struct scores *s)
{
    return s->e->q.count != s->e->k.count;
}

/* Of heads of queries: rows for each head of keys; [batch, kv heads, rows, size]. */
static struct ir_value *group(struct scores *s, struct ir_value *x, struct ir_value *size)
{
    struct ir_value *const sizes[] = {s->batch, of_number(s, s->e->k.count), s->rows, size};
    return is_grouped(s) ? reshape(s, x, 4, sizes) : x;
}

static struct ir_value *ungroup(struct scores *s, struct ir_value *x, struct ir_value *size)
{
    struct ir_value *const sizes[] = {s->batch, of_number(s, s->e->q.count), s->queries, size};
    return is_grouped(s) ? reshape(s, x, 4, sizes) : x;
}

static void read_operands(struct scores *s)
{
    const struct attention *e = s->e;
    struct ir_value *q = ir_operand(e->op, ATTENTION_Q), *k = ir_operand(e->op, ATTENTION_K);
    struct ir_value *before = ir_operand(e->op, ATTENTION_PAST_K);
    s->batch = size_of(s, q, 0);
    s->queries = size_of(s, q, q->type->rank == 4 ? 2 : 1);
    s->past = before ? size_of(s, before, 2) : of_number(s, 0);
    s->total = add(s, s->past, size_of(s, k, k->type->rank == 4 ? 2 : 1));
    s->rows = times(s, s->queries, e->q.count / e->k.count);
    s->keys = present_of(s, ATTENTION_K, ATTENTION_PAST_K, &e->k);
    s->values = present_of(s, ATTENTION_V, ATTENTION_PAST_V, &e->v);
}

/* ---- Scores ---------------------------------------------------------------------------------- */

static void keep(struct scores *s, int64_t mode, struct ir_value *scores)
{
    if (s->e->mode == mode)
        s->results[ATTENTION_SCORES] = scores;
}

/* [batch, heads, queries, total] */
static struct ir_value *multiply_keys(struct scores *s)
{
    const struct attention *e = s->e;
    const struct ir_attr *scale = ir_attr(e->op, "scale");
    struct ir_value *q = cast(s, heads_of(s, ATTENTION_Q, &e->q), s->dtype);
    q = group(s, q, of_number(s, e->q.size));
    struct ir_value *k = permute(s, cast(s, s->keys, s->dtype), (const int64_t[]){0, 1, 3, 2});
    struct ir_value *products = binary(s, IR_OP_MatMul, q, k);
    products = ungroup(s, products, s->total);
    return binary(
        s, IR_OP_Mul, products,
        number(s, s->dtype,
               scale ? (double)ir_attr_float(e->op, "scale", 1) : 1 / sqrt((double)e->q.size)));
}

static struct ir_value *cap(struct scores *s, struct ir_value *scores)
{
    const double softcap = s->e->softcap;
    if (!(softcap > 0))
        return scores;
    scores = binary(s, IR_OP_Div, scores, number(s, s->dtype, softcap));
    scores = pass_make(s->m, IR_OP_Tanh, 1, scores, NULL);
    return binary(s, IR_OP_Mul, scores, number(s, s->dtype, softcap));
}

/* The first position that a query may not count, by lengths and where it stands itself; NULL: it
 * may count all. */
static struct ir_value *bound_of(struct scores *s)
{
    struct ir_value *one = of_number(s, 1), *lengths = ir_operand(s->e->op, ATTENTION_LENGTHS);
    if (lengths)
        lengths = unsqueeze(s, binary(s, IR_OP_Max, lengths, of_number(s, 0)), 3,
                            (const int64_t[]){1, 2, 3});
    if (!s->e->causal)
        return lengths;
    /* The last query stands at the last position that counts. */
    struct ir_value *first = lengths ? less(s, one, s->queries) : add(s, s->past, one);
    struct ir_value *bounds =
        unsqueeze(s, range(s, first, add(s, first, s->queries)), 1, (const int64_t[]){1});
    return lengths ? binary(s, IR_OP_Add, bounds, lengths) : bounds;
}

/* The mask's length. A mask that is longer than there are positions fails the run, as on the host:
 * it is looked up in a table of 0, 1, ..., total. */
static struct ir_value *check_length(struct scores *s, struct ir_value *length)
{
    int64_t known;
    struct rule_draft draft;
    if (is_known(length, &known) && is_known(s->total, &known))
        return length;
    struct ir_value *zero = of_number(s, 0), *end = add(s, s->total, of_number(s, 1));
    struct ir_value *table = range(s, zero, end);
    draft_begin(&draft, RULE_EXACT);
    draft_step_value(&draft, RULE_GATHER, 0, length);
    return access(s, table, &draft);
}

/* As long as there are positions: behind its end all is masked. */
static struct ir_value *lengthen(struct scores *s, struct ir_value *mask, struct ir_value *fill)
{
    const int last = mask->type->rank - 1;
    struct ir_value *sizes[4];
    struct rule_draft draft;
    for (int i = 0; i < last; i++)
        sizes[i] = size_of(s, mask, i);
    sizes[last] = less(s, s->total, check_length(s, size_of(s, mask, last)));
    draft_begin(&draft, RULE_EXACT);
    draft_sizes(&draft, RULE_EXPAND, (uint32_t)last + 1, NULL, sizes);
    mask = pass_make_with(s->m, IR_OP_Concat, mask, access(s, fill, &draft), "axis", last);
    sizes[last] = s->total;
    return reshape(s, mask, (uint32_t)last + 1, sizes);
}

static struct ir_value *mask_of(struct scores *s)
{
    struct ir_value *mask = ir_operand(s->e->op, ATTENTION_MASK);
    if (!mask)
        return NULL;
    const bool truths = mask->type->dtype == TSSA_BOOL;
    mask = truths ? mask : cast(s, mask, s->dtype);
    if (s->m->status || mask->type->dims[mask->type->rank - 1] == s->e->total)
        return mask;
    return lengthen(s, mask, number(s, truths ? TSSA_BOOL : s->dtype, truths ? 0 : -INFINITY));
}

/* What it masks is masked whatever the score is. */
static struct ir_value *add_mask(struct scores *s, struct ir_value *scores, struct ir_value *mask,
                                 struct ir_value *least)
{
    struct ir_value *masked = binary(s, IR_OP_Equal, mask, least);
    return pass_make_where(s->m, masked, least, binary(s, IR_OP_Add, scores, mask));
}

/* What is masked is -infinity, whatever the key is. */
static struct ir_value *mask_scores(struct scores *s, struct ir_value *scores)
{
    struct ir_value *mask = mask_of(s), *bound = bound_of(s),
                    *least = number(s, s->dtype, -INFINITY);
    if (s->m->status)
        return NULL;
    if (mask && mask->type->dtype == TSSA_BOOL)
        scores = pass_make_where(s->m, mask, scores, least);
    else if (mask)
        scores = add_mask(s, scores, mask, least);
    if (!bound)
        return scores;
    s->within = binary(s, IR_OP_Less, range(s, of_number(s, 0), s->total), bound);
    return pass_make_where(s->m, s->within, scores, least);
}

/* Where no position is left, none has a weight. */
static struct ir_value *weights_of(struct scores *s, struct ir_value *scores)
{
    struct ir_value *most = greatest(s, scores, -1);
    struct ir_value *masked = binary(s, IR_OP_Equal, most, number(s, s->dtype, -INFINITY));
    struct ir_value *weights = pass_make(s->m, IR_OP_Softmax, 1, scores, NULL);
    weights = pass_make_where(s->m, masked, number(s, s->dtype, 0), weights);
    /* Of a row that has a NaN, too. */
    if (s->within && s->e->mode == SCORES_SOFTMAX)
        keep(s, SCORES_SOFTMAX, pass_make_where(s->m, s->within, weights, number(s, s->dtype, 0)));
    else
        keep(s, SCORES_SOFTMAX, weights);
    return weights;
}

/* ---- Values ---------------------------------------------------------------------------------- */

/* Without those that no query has a weight for: they may be anything. */
static struct ir_value *values_of(struct scores *s, struct ir_value *weights)
{
    const struct ir_op *op = s->e->op;
    struct ir_value *values = cast(s, s->values, s->dtype);
    int64_t rows;
    if (!ir_operand(op, ATTENTION_MASK) && !ir_operand(op, ATTENTION_LENGTHS))
        return values;
    if (!is_known(s->rows, &rows) || rows != 1)
        weights = greatest(s, weights, 2);
    struct ir_value *zero = number(s, s->dtype, 0);
    struct ir_value *unseen = binary(s, IR_OP_Equal, weights, zero);
    unseen = permute(s, unseen, (const int64_t[]){0, 1, 3, 2});
    return pass_make_where(s->m, unseen, zero, values);
}

static struct ir_value *multiply_values(struct scores *s, struct ir_value *weights)
{
    const struct attention *e = s->e;
    struct ir_value *size = of_number(s, e->v.size);
    struct rule_draft draft;
    weights = group(s, weights, s->total);
    struct ir_value *y = binary(s, IR_OP_MatMul, weights, values_of(s, weights));
    y = ungroup(s, y, size);
    if (ir_operand(e->op, ATTENTION_Q)->type->rank == 4)
        return y;
    draft_begin(&draft, RULE_EXACT);
    draft_step(&draft, RULE_PERMUTE, 4, (const int64_t[]){0, 2, 1, 3});
    draft_sizes(&draft, RULE_RESHAPE, 3, NULL,
                (struct ir_value *const[]){s->batch, s->queries, times(s, size, e->q.count)});
    return access(s, y, &draft);
}

/* ---- Results --------------------------------------------------------------------------------- */

static void put_result(struct scores *s, uint32_t index)
{
    struct ir_value *result = ir_result(s->e->op, index), *made = s->results[index];
    if (s->m->status || !result || !result->wanted || !result->uses)
        return;
    made = cast(s, made, result->type->dtype);
    pass_put_result(s->m, result, made);
}

void expand_scores(struct attention *e)
{
    const bool wide = ir_operand(e->op, ATTENTION_Q)->type->dtype == TSSA_DOUBLE ||
                      ir_operand(e->op, ATTENTION_V)->type->dtype == TSSA_DOUBLE;
    struct scores s = {.e = e, .m = &e->maker, .dtype = wide ? TSSA_DOUBLE : TSSA_FLOAT};
    read_operands(&s);
    s.results[ATTENTION_PRESENT_K] = s.keys;
    s.results[ATTENTION_PRESENT_V] = s.values;
    struct ir_value *scores = multiply_keys(&s);
    keep(&s, SCORES_RAW, scores);
    scores = cap(&s, scores);
    keep(&s, SCORES_CAPPED, scores);
    scores = mask_scores(&s, scores);
    keep(&s, SCORES_MASKED, scores);
    struct ir_value *weights = weights_of(&s, scores);
    s.results[ATTENTION_Y] = multiply_values(&s, weights);
    for (uint32_t i = 0; i < ATTENTION_RESULTS; i++)
        put_result(&s, i);
}
