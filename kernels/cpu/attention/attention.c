/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention (ai.onnx 23, 24): scaled dot products, softcap, masks, softmax, one query row at a time, in
 * double and rounded once. A masked position counts for nothing, whatever its key and value hold; a row
 * with no position left is 0.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "kernels/cpu/lib/lines.h"

enum { QUERY, KEY, VALUE, MASK, PAST_KEY, PAST_VALUE, LENGTHS, OPERANDS };
enum { Y, PRESENT_KEY, PRESENT_VALUE, SCORES, RESULTS };
enum scores_mode { SCORES_RAW, SCORES_CAPPED, SCORES_MASKED, SCORES_SOFTMAX };

struct attention_attrs {
    int64_t q_heads, kv_heads; /* 0: not given */
    enum scores_mode scores;
    bool causal, scaled;
    double scale, softcap;
};

static tssa_status *attention_prepare(const struct ir_op *op, const struct kernel_setup *setup,
                                      const void **state)
{
    struct attention_attrs *attrs = ARENA_NEW(setup->arena, struct attention_attrs);
    TRY_ALLOC(attrs);
    int64_t mode = ir_attr_int(op, "qk_matmul_output_mode", SCORES_RAW);
    attrs->q_heads = ir_attr_int(op, "q_num_heads", 0);
    attrs->kv_heads = ir_attr_int(op, "kv_num_heads", 0);
    attrs->causal = ir_attr_int(op, "is_causal", 0) != 0;
    attrs->scaled = ir_attr(op, "scale") != NULL;
    attrs->scale = (double)ir_attr_float(op, "scale", 1);
    attrs->softcap = (double)ir_attr_float(op, "softcap", 0);
    if (mode < SCORES_RAW || mode > SCORES_SOFTMAX || attrs->q_heads < 0 || attrs->kv_heads < 0)
        return ERROR(TSSA_MALFORMED,
                     "qk_matmul_output_mode %" PRId64 ", %" PRId64 " and %" PRId64 " heads", mode,
                     attrs->q_heads, attrs->kv_heads);
    /* Version 25 has windows; a model that uses them must not be run without. */
    if (ir_attr_int(op, "left_window_size", -1) != -1 ||
        ir_attr_int(op, "right_window_size", -1) != -1)
        return ERROR(TSSA_UNSUPPORTED, "attention windows (version 25) cannot be run");
    attrs->scores = (enum scores_mode)mode;
    *state = attrs;
    return NULL;
}

/* ---- Operands ------------------------------------------------------------------------------------- */

/* [batch][heads][length][size] wherever the elements are; strides in elements. */
struct heads {
    const struct tensor *tensor;
    int64_t batch, heads, length, size;
    int64_t batch_step, head_step, length_step;
};

static tssa_status *heads_init(struct heads *h, const struct tensor *x, int64_t given)
{
    char text[160];
    tensor_describe(x, text, sizeof text);
    h->tensor = x;
    if (x->rank == 4) {
        *h = (struct heads){x, x->dims[0], x->dims[1], x->dims[2], x->dims[3], 0, 0, x->dims[3]};
        h->head_step = h->length * h->size;
    } else if (x->rank == 3 && given > 0 && x->dims[2] >= given && x->dims[2] % given == 0) {
        *h = (struct heads){x, x->dims[0], given, x->dims[1], x->dims[2] / given, 0, 0, x->dims[2]};
        h->head_step = h->size;
    } else {
        return ERROR(TSSA_RUNTIME, "%s cannot be split into %" PRId64 " heads", text, given);
    }
    h->batch_step = h->heads * h->length * h->size;
    return NULL;
}

/* A mask laid over [batch][heads][query][position]; positions beyond its own are masked. */
struct mask {
    const struct tensor *tensor;
    int64_t steps[3], length;
};

struct attention {
    const struct attention_attrs *attrs;
    struct heads q, k, v;
    const struct tensor *past_key, *past_value, *lengths; /* may be NULL */
    struct mask mask;
    int64_t past, total; /* positions */
    double scale;
    const double *keys, *values; /* [batch][kv heads][total][size] */
    struct tensor *out[RESULTS];
};

static tssa_status *mask_init(struct attention *a, const struct tensor *mask)
{
    const int64_t dims[3] = {a->q.batch, a->q.heads, a->q.length};
    int64_t strides[TSSA_MAX_RANK];
    a->mask.tensor = mask;
    if (!mask)
        return NULL;
    bool fits = mask->rank >= 1 && mask->rank <= 4 && convert_supports(mask->dtype) &&
                mask->dims[mask->rank - 1] <= a->total;
    tensor_strides(mask->rank, mask->dims, strides);
    for (int i = 0; fits && i < mask->rank - 1; i++) {
        int at = 4 - mask->rank + i;
        fits = mask->dims[i] == 1 || mask->dims[i] == dims[at];
        a->mask.steps[at] = mask->dims[i] == 1 ? 0 : strides[i];
    }
    a->mask.length = fits ? mask->dims[mask->rank - 1] : 0;
    return fits ? NULL : operand_error(MASK, mask, "a mask of the scores");
}

static tssa_status *check_past(const struct attention *a, const struct tensor *past,
                               const struct heads *now)
{
    if (!past)
        return NULL;
    if (past->dtype == now->tensor->dtype && past->rank == 4 && past->dims[0] == now->batch &&
        past->dims[1] == now->heads && past->dims[2] == a->past && past->dims[3] == now->size)
        return NULL;
    char text[160];
    tensor_describe(past, text, sizeof text);
    return ERROR(TSSA_RUNTIME, "the past, %s, does not fit the keys or values", text);
}

static tssa_status *check_lengths(const struct attention *a)
{
    if (!a->lengths)
        return NULL;
    if (a->lengths->dtype != TSSA_INT64 || a->lengths->rank != 1 ||
        a->lengths->dims[0] != a->q.batch)
        return operand_error(LENGTHS, a->lengths, "an i64 per item");
    return NULL;
}

static tssa_status *open_operands(struct kernel_args *args, struct attention *a)
{
    const struct tensor *in[OPERANDS];
    for (uint32_t i = 0; i < OPERANDS; i++) {
        if (i <= VALUE)
            TRY(typed_tensor(args, i, &in[i]));
        else
            TRY(kernel_optional_tensor(args, i, &in[i]));
    }
    TRY(heads_init(&a->q, in[QUERY], a->attrs->q_heads));
    TRY(heads_init(&a->k, in[KEY], a->attrs->kv_heads));
    TRY(heads_init(&a->v, in[VALUE], a->attrs->kv_heads));
    if (in[KEY]->dtype != in[QUERY]->dtype || a->k.batch != a->q.batch ||
        a->v.batch != a->q.batch || a->k.size != a->q.size || a->v.length != a->k.length ||
        a->v.heads != a->k.heads || a->k.heads == 0 || a->q.heads % a->k.heads)
        return ERROR(TSSA_RUNTIME,
                     "%" PRId64 " heads of queries do not fit %" PRId64 " of keys, %" PRId64
                     " of values, or their sizes differ",
                     a->q.heads, a->k.heads, a->v.heads);
    a->past_key = in[PAST_KEY];
    a->past_value = in[PAST_VALUE];
    a->lengths = in[LENGTHS];
    if (!a->past_key != !a->past_value)
        return ERROR(TSSA_RUNTIME, "a past of keys or of values alone");
    a->past = a->past_key && a->past_key->rank == 4 ? a->past_key->dims[2] : 0;
    TRY(check_past(a, a->past_key, &a->k));
    TRY(check_past(a, a->past_value, &a->v));
    if (!i64_add(a->past, a->k.length, &a->total))
        return ERROR(TSSA_RUNTIME, "there are too many positions");
    a->scale = a->attrs->scaled ? a->attrs->scale : 1 / sqrt((double)a->q.size);
    TRY(check_lengths(a));
    return mask_init(a, in[MASK]);
}

static tssa_status *open_results(struct kernel_args *args, struct attention *a)
{
    const struct heads *q = &a->q, *k = &a->k, *v = &a->v;
    tssa_dtype dtype = q->tensor->dtype;
    int rank = q->tensor->rank;
    int64_t packed;
    if (!i64_mul(q->heads, v->size, &packed))
        return ERROR(TSSA_RUNTIME, "the heads are too large");
    const int64_t four[] = {q->batch, q->heads, q->length, v->size};
    const int64_t three[] = {q->batch, q->length, packed};
    const int64_t keys[] = {q->batch, k->heads, a->total, k->size};
    const int64_t values[] = {q->batch, k->heads, a->total, v->size};
    const int64_t scores[] = {q->batch, q->heads, q->length, a->total};
    TRY(kernel_output(args, Y, dtype, rank, rank == 3 ? three : four, &a->out[Y]));
    TRY(kernel_output(args, PRESENT_KEY, dtype, 4, keys, &a->out[PRESENT_KEY]));
    TRY(kernel_output(args, PRESENT_VALUE, v->tensor->dtype, 4, values, &a->out[PRESENT_VALUE]));
    return kernel_output(args, SCORES, dtype, 4, scores, &a->out[SCORES]);
}

/* Past and present positions together, as doubles. */
static tssa_status *join(struct kernel_args *args, const struct attention *a,
                         const struct heads *now, const struct tensor *past, struct tensor *present,
                         struct buffer **buffer)
{
    size_t count, bytes;
    const int64_t dims[] = {now->batch, now->heads, a->total, now->size};
    TRY(tensor_layout(TSSA_DOUBLE, 4, dims, &count, &bytes));
    TRY(kernel_scratch(args, bytes, buffer));
    for (int64_t i = 0; count > 0 && i < now->batch * now->heads; i++) {
        double *to = (double *)(*buffer)->data + i * a->total * now->size;
        int64_t from = i / now->heads * now->batch_step + i % now->heads * now->head_step;
        if (past)
            load_doubles(past, i * a->past * now->size, 1, a->past * now->size, to);
        to += a->past * now->size;
        for (int64_t p = 0; p < now->length; p++)
            load_doubles(now->tensor, from + p * now->length_step, 1, now->size,
                         to + p * now->size);
    }
    if (present)
        store_doubles(present, 0, 1, (int64_t)count, (*buffer)->data);
    return NULL;
}

/* ---- Rows ----------------------------------------------------------------------------------------- */

struct row {
    int64_t batch, head, query;
};

static double dot(const double *a, const double *b, int64_t n)
{
    double sums[8] = {0}, total = 0;
    int64_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (int k = 0; k < 8; k++)
            sums[k] += a[i + k] * b[i + k];
    for (; i < n; i++)
        total += a[i] * b[i];
    for (int k = 0; k < 8; k++)
        total += sums[k];
    return total;
}

/* What is added to the score of a position; -INFINITY: masked. */
static double bias_at(const struct attention *a, const struct row *row, int64_t position)
{
    const struct mask *m = &a->mask;
    int64_t valid = a->total, before = a->past;
    if (a->lengths) {
        valid = ((const int64_t *)a->lengths->data)[row->batch];
        before = valid < 0 ? INT64_MIN / 2 : valid - a->q.length;
    }
    if (position >= valid || (a->attrs->causal && position > row->query + before))
        return -INFINITY;
    if (!m->tensor)
        return 0;
    if (position >= m->length)
        return -INFINITY;
    double value = dtype_load_double(
        m->tensor->dtype, element_at(m->tensor, row->batch * m->steps[0] + row->head * m->steps[1] +
                                                    row->query * m->steps[2] + position));
    if (m->tensor->dtype == TSSA_BOOL)
        return value != 0 ? 0 : -INFINITY;
    return value;
}

static void store_scores(const struct attention *a, const struct row *row, enum scores_mode mode,
                         const double *scores)
{
    int64_t at = (row->batch * a->q.heads + row->head) * a->q.length + row->query;
    if (a->out[SCORES] && a->attrs->scores == mode)
        store_doubles(a->out[SCORES], at * a->total, 1, a->total, scores);
}

static void softmax(double *scores, int64_t n)
{
    double largest = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++)
        largest = scores[i] > largest || isnan(scores[i]) ? scores[i] : largest;
    for (int64_t i = 0; i < n; i++) {
        scores[i] = largest == -INFINITY ? 0 : exp(scores[i] - largest);
        sum += scores[i];
    }
    for (int64_t i = 0; i < n && sum != 0; i++)
        scores[i] /= sum;
}

static void score(const struct attention *a, const struct row *row, const double *query,
                  const double *keys, double *scores)
{
    double softcap = a->attrs->softcap;
    for (int64_t p = 0; p < a->total; p++)
        scores[p] = a->scale * dot(query, keys + p * a->k.size, a->k.size);
    store_scores(a, row, SCORES_RAW, scores);
    for (int64_t p = 0; softcap > 0 && p < a->total; p++)
        scores[p] = softcap * tanh(scores[p] / softcap);
    store_scores(a, row, SCORES_CAPPED, scores);
    for (int64_t p = 0; p < a->total; p++) {
        double bias = bias_at(a, row, p);
        scores[p] = bias == -INFINITY ? bias : scores[p] + bias;
    }
    store_scores(a, row, SCORES_MASKED, scores);
    softmax(scores, a->total);
    store_scores(a, row, SCORES_SOFTMAX, scores);
}

/* Indices are (batch, head, query) triples. Scratch: a query, scores, a sum of values. */
static void attend(void *context, void *scratch, int64_t begin, int64_t end)
{
    const struct attention *a = context;
    const struct heads *q = &a->q;
    double *query = scratch, *scores = query + q->size, *sums = scores + a->total;
    for (int64_t i = begin; i < end; i++) {
        struct row row = {i / q->length / q->heads, i / q->length % q->heads, i % q->length};
        int64_t group = row.batch * a->k.heads + row.head / (q->heads / a->k.heads);
        load_doubles(q->tensor,
                     row.batch * q->batch_step + row.head * q->head_step +
                         row.query * q->length_step,
                     1, q->size, query);
        score(a, &row, query, a->keys + group * a->total * a->k.size, scores);
        if (!a->out[Y])
            continue;
        memset(sums, 0, (size_t)a->v.size * sizeof *sums);
        const double *values = a->values + group * a->total * a->v.size;
        for (int64_t p = 0; p < a->total; p++)
            for (int64_t k = 0; scores[p] != 0 && k < a->v.size; k++)
                sums[k] += scores[p] * values[p * a->v.size + k];
        int64_t to =
            a->out[Y]->rank == 4 ? i : (row.batch * q->length + row.query) * q->heads + row.head;
        store_doubles(a->out[Y], to * a->v.size, 1, a->v.size, sums);
    }
}

static tssa_status *attend_all(struct kernel_args *args, struct attention *a)
{
    const struct heads *q = &a->q;
    int64_t rows, doubles, cost;
    size_t bytes;
    if (!i64_mul(q->batch, q->heads, &rows) || !i64_mul(rows, q->length, &rows) ||
        !i64_add(q->size, a->total, &doubles) || !i64_add(doubles, a->v.size, &doubles) ||
        !size_mul((size_t)doubles, sizeof(double), &bytes))
        return ERROR(TSSA_RUNTIME, "there are too many positions");
    if (!i64_mul(a->total, a->k.size + a->v.size + 16, &cost))
        cost = INT64_MAX;
    return parts_for(args, rows, cost, bytes, attend, a);
}

static tssa_status *run_Attention(struct kernel_args *args)
{
    struct attention a = {.attrs = args->state};
    struct buffer *keys = NULL, *values = NULL;
    tssa_status *status;
    TRY(open_operands(args, &a));
    TRY(open_results(args, &a));
    TRY_GOTO(status, join(args, &a, &a.k, a.past_key, a.out[PRESENT_KEY], &keys), done);
    TRY_GOTO(status, join(args, &a, &a.v, a.past_value, a.out[PRESENT_VALUE], &values), done);
    a.keys = keys->data;
    a.values = values->data;
    status = attend_all(args, &a);
done:
    buffer_release(keys);
    buffer_release(values);
    return status;
}

const struct kernel cpu_kernel_Attention = {.prepare = attention_prepare, .run = run_Attention};
