/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention (ai.onnx 23, 24): scaled dot products, softcap, masks, softmax, one query row at a
 * time. DOUBLE is computed in double, narrower types in float32 and rounded once; sums are those of
 * ir/reduction.def over an axis that is not the innermost one: of products of queries and keys, one
 * element after the other, and of weighed values, one position after the other. A masked position
 * counts for nothing, whatever its key and value hold; a row with no position left is 0.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "kernels/cpu/attention/attention.h"
#include "kernels/cpu/lib/lines.h"
#include "kernels/cpu/lib/reduce_levels.h"
#include "kernels/cpu/normalization/softmax.h"

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

/* ---- Operands -------------------------------------------------------------------------------- */

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
    const struct attention_loops *loops;
    /* Of their type: [batch][kv heads][size][total], and [total][size]. */
    const char *keys, *values;
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
    bool wide = in[QUERY]->dtype == TSSA_DOUBLE || in[VALUE]->dtype == TSSA_DOUBLE;
    a->loops = wide ? &attention_loops_f64 : &attention_loops_f32;
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

/* Past and present positions together, of the loops' type. */
static tssa_status *join(struct kernel_args *args, const struct attention *a,
                         const struct heads *now, const struct tensor *past, struct tensor *present,
                         struct buffer **buffer)
{
    size_t count, bytes, width = a->loops->width;
    const tssa_dtype dtype = a->loops->dtype;
    const int64_t dims[] = {now->batch, now->heads, a->total, now->size};
    TRY(tensor_layout(dtype, 4, dims, &count, &bytes));
    TRY(kernel_scratch(args, bytes, buffer));
    for (int64_t i = 0; count > 0 && i < now->batch * now->heads; i++) {
        char *to = (char *)(*buffer)->data + (size_t)(i * a->total * now->size) * width;
        int64_t from = i / now->heads * now->batch_step + i % now->heads * now->head_step;
        if (past)
            load_elements(past, i * a->past * now->size, 1, a->past * now->size, dtype, to);
        to += (size_t)(a->past * now->size) * width;
        for (int64_t p = 0; p < now->length; p++)
            load_elements(now->tensor, from + p * now->length_step, 1, now->size, dtype,
                          to + (size_t)(p * now->size) * width);
    }
    if (present)
        store_elements(present, 0, 1, (int64_t)count, dtype, (*buffer)->data);
    return NULL;
}

/* ---- Rows ------------------------------------------------------------------------------------ */

struct row {
    int64_t batch, head, query;
};

/* Memory of a part, all of the loops' type. */
struct scratch {
    char *query, *scores;
    char *other; /* as many as scores: biases, then exponentials */
    char *sums;  /* of scores or values, at all levels */
};

static struct scratch scratch_of(const struct attention *a, char *memory)
{
    size_t width = a->loops->width, row = (size_t)a->total * width;
    struct scratch s = {.query = memory};
    s.scores = s.query + (size_t)a->q.size * width;
    s.other = s.scores + row;
    s.sums = s.other + row;
    return s;
}

static bool scratch_bytes(const struct attention *a, size_t *bytes)
{
    int64_t most = a->v.size > a->total ? a->v.size : a->total, all;
    return i64_mul(most, REDUCE_LEVELS + 2, &all) && i64_add(all, a->q.size, &all) &&
           size_mul((size_t)all, a->loops->width, bytes);
}

const void *attention_weighed_sum(const struct attention_loops *loops, const void *values,
                                  const void *weights, int64_t rows, int64_t n, bool skips,
                                  void *memory)
{
    struct reduce_levels levels;
    reduce_levels_begin(&levels, reduce_loops_of(REDUCTION_Sum, loops->dtype), loops->width, n,
                        memory);
    for (int64_t row = 0, count; row < rows; row += count) {
        count = reduce_levels_room(&levels, rows - row);
        loops->weigh((const char *)values + (size_t)(row * n) * loops->width,
                     (const char *)weights + (size_t)row * loops->width, count, n, skips,
                     levels.memory);
        reduce_levels_add(&levels, count);
    }
    return reduce_levels_end(&levels);
}

/* Positions from here on are masked. */
static int64_t masked_from(const struct attention *a, const struct row *row)
{
    int64_t end = a->total, before = a->past;
    if (a->lengths) {
        int64_t valid = ((const int64_t *)a->lengths->data)[row->batch];
        end = valid < end ? valid : end;
        before = valid < 0 ? INT64_MIN / 2 : valid - a->q.length;
    }
    if (a->attrs->causal && row->query + before < end)
        end = row->query + before + 1;
    if (a->mask.tensor && a->mask.length < end)
        end = a->mask.length;
    return end < 0 ? 0 : end;
}

static void mask_scores(const struct attention *a, const struct row *row, const struct scratch *s)
{
    const struct attention_loops *loops = a->loops;
    const struct mask *m = &a->mask;
    int64_t end = masked_from(a, row);
    if (m->tensor) {
        load_elements(m->tensor,
                      row->batch * m->steps[0] + row->head * m->steps[1] + row->query * m->steps[2],
                      1, end, loops->dtype, s->other);
        loops->add_bias(s->scores, s->other, end, m->tensor->dtype == TSSA_BOOL);
    }
    loops->fill(s->scores + (size_t)end * loops->width, a->total - end, -INFINITY);
}

static void store_scores(const struct attention *a, const struct row *row, enum scores_mode mode,
                         const struct scratch *s)
{
    int64_t at = (row->batch * a->q.heads + row->head) * a->q.length + row->query;
    if (a->out[SCORES] && a->attrs->scores == mode)
        store_elements(a->out[SCORES], at * a->total, 1, a->total, a->loops->dtype, s->scores);
}

static void score(const struct attention *a, const struct row *row, const struct scratch *s,
                  const char *keys)
{
    const struct attention_loops *loops = a->loops;
    memcpy(s->scores,
           attention_weighed_sum(a->loops, keys, s->query, a->q.size, a->total, false, s->sums),
           (size_t)a->total * loops->width);
    loops->scale(s->scores, a->total, a->scale);
    store_scores(a, row, SCORES_RAW, s);
    if (a->attrs->softcap > 0)
        loops->cap(s->scores, a->total, a->attrs->softcap);
    store_scores(a, row, SCORES_CAPPED, s);
    mask_scores(a, row, s);
    store_scores(a, row, SCORES_MASKED, s);
    if (loops->all_masked(s->scores, a->total))
        loops->fill(s->scores, a->total, 0);
    else
        softmax_of_line(loops->dtype, s->scores, s->other, a->total);
    store_scores(a, row, SCORES_SOFTMAX, s);
}

/* Indices are (batch, head, query) triples. */
static void attend(void *context, void *memory, int64_t begin, int64_t end)
{
    const struct attention *a = context;
    const struct heads *q = &a->q;
    const struct scratch s = scratch_of(a, memory);
    const tssa_dtype dtype = a->loops->dtype;
    size_t width = a->loops->width;
    for (int64_t i = begin; i < end; i++) {
        struct row row = {i / q->length / q->heads, i / q->length % q->heads, i % q->length};
        int64_t group = row.batch * a->k.heads + row.head / (q->heads / a->k.heads);
        load_elements(q->tensor,
                      row.batch * q->batch_step + row.head * q->head_step +
                          row.query * q->length_step,
                      1, q->size, dtype, s.query);
        score(a, &row, &s, a->keys + (size_t)(group * a->total * a->k.size) * width);
        if (!a->out[Y])
            continue;
        const char *values = a->values + (size_t)(group * a->total * a->v.size) * width;
        const void *sums =
            attention_weighed_sum(a->loops, values, s.scores, a->total, a->v.size, true, s.sums);
        int64_t to =
            a->out[Y]->rank == 4 ? i : (row.batch * q->length + row.query) * q->heads + row.head;
        store_elements(a->out[Y], to * a->v.size, 1, a->v.size, dtype, sums);
    }
}

static tssa_status *attend_all(struct kernel_args *args, struct attention *a)
{
    const struct heads *q = &a->q;
    int64_t rows, cost;
    size_t bytes;
    if (!i64_mul(q->batch, q->heads, &rows) || !i64_mul(rows, q->length, &rows) ||
        !scratch_bytes(a, &bytes))
        return ERROR(TSSA_RUNTIME, "there are too many positions");
    if (!i64_mul(a->total, a->k.size + a->v.size + 16, &cost))
        cost = INT64_MAX;
    return parts_for(args, rows, cost, bytes, attend, a);
}

static tssa_status *transpose_keys(struct kernel_args *args, const struct attention *a,
                                   struct buffer **keys)
{
    const struct attention_loops *loops = a->loops;
    struct buffer *joined = *keys, *turned;
    size_t each = (size_t)(a->total * a->k.size) * loops->width;
    size_t heads = (size_t)(a->k.batch * a->k.heads);
    TRY(kernel_scratch(args, heads * each, &turned));
    for (size_t i = 0; i < heads; i++)
        loops->transpose((const char *)joined->data + i * each, a->total, a->k.size,
                         (char *)turned->data + i * each);
    *keys = turned;
    buffer_release(joined);
    return NULL;
}

static tssa_status *run_Attention(struct kernel_args *args)
{
    struct attention a = {.attrs = args->state};
    struct buffer *keys = NULL, *values = NULL;
    tssa_status *status;
    TRY(open_operands(args, &a));
    TRY(open_results(args, &a));
    TRY_GOTO(status, join(args, &a, &a.k, a.past_key, a.out[PRESENT_KEY], &keys), done);
    TRY_GOTO(status, transpose_keys(args, &a, &keys), done);
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
