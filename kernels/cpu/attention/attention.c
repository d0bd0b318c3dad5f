/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention (ai.onnx 23, 24): scaled dot products, softcap, masks, softmax, of as many queries at a
 * time as leave their scores in the cache. DOUBLE is computed in double, narrower types in float32
 * and rounded once; sums are those of ir/reduction.def over an axis that is not the innermost one:
 * of products of queries and keys, one element after the other, and of weighed values, one position
 * after the other. A masked position counts for nothing, whatever its key and value hold; a row
 * with no position left is 0.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "kernels/cpu/attention/attention.h"
#include "kernels/cpu/lib/lines.h"
#include "kernels/cpu/lib/reduce_levels.h"
#include "kernels/cpu/lib/strided.h"
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
    const char *keys, *values; /* of their type: [batch][kv heads][total][size] */
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

/* Do the heads lie as [batch][heads][total][size], of the loops' type? */
static bool lies_ready(const struct attention *a, const struct heads *now,
                       const struct tensor *past)
{
    return !past && now->tensor->rank == 4 && now->tensor->dtype == a->loops->dtype;
}

/* Past and present positions together, of the loops' type; *buffer is NULL where they lie so. */
static tssa_status *join(struct kernel_args *args, const struct attention *a,
                         const struct heads *now, const struct tensor *past, struct tensor *present,
                         const char **all, struct buffer **buffer)
{
    size_t count, bytes, width = a->loops->width;
    const tssa_dtype dtype = a->loops->dtype;
    const int64_t dims[] = {now->batch, now->heads, a->total, now->size};
    const bool ready = lies_ready(a, now, past);
    *all = now->tensor->data;
    TRY(tensor_layout(dtype, 4, dims, &count, &bytes));
    if (!ready) {
        TRY(kernel_scratch(args, bytes, buffer));
        *all = (*buffer)->data;
    }
    for (int64_t i = 0; !ready && count > 0 && i < now->batch * now->heads; i++) {
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
        store_elements(present, 0, 1, (int64_t)count, dtype, *all);
    return NULL;
}

/* ---- Rows ------------------------------------------------------------------------------------ */

/* Queries that are computed together, whose scores are about so many if there are several; and
 * fewer that would be left over with the last ones. */
#define ROWS 24
#define LEFT_OVER 5
#define SCORES_TOGETHER 32768

/* Neighbouring queries of a head; scores of the first so many positions, beyond which all are
 * masked. */
struct rows {
    int64_t batch, head, query, n, columns;
};

/* Memory of a part, all of the loops' type. */
struct scratch {
    char *queries, *scores, *values; /* [n][size], [n][columns], [n][size] */
    char *other;                     /* as many as scores: biases, then exponentials */
    char *keys;                      /* a head's: [size][total] */
    char *sums;                      /* of values, at all levels */
};

static int64_t rows_together(const struct attention *a)
{
    const int64_t most = SCORES_TOGETHER / (a->total > 0 ? a->total : 1);
    return most < 1 ? 1 : most < ROWS ? most : ROWS;
}

static struct scratch scratch_of(const struct attention *a, char *memory)
{
    const size_t row = (size_t)(rows_together(a) + LEFT_OVER) * a->loops->width;
    struct scratch s = {.queries = memory};
    s.scores = s.queries + (size_t)a->q.size * row;
    s.other = s.scores + (size_t)a->total * row;
    s.values = s.other + (size_t)a->total * row;
    s.sums = s.values + (size_t)a->v.size * row;
    s.keys = s.sums + (size_t)(a->v.size * REDUCE_LEVELS) * a->loops->width;
    return s;
}

static bool scratch_bytes(const struct attention *a, size_t *bytes)
{
    int64_t all, sums, keys;
    return i64_mul(a->total, 2, &all) && i64_add(all, a->q.size, &all) &&
           i64_add(all, a->v.size, &all) && i64_mul(all, rows_together(a) + LEFT_OVER, &all) &&
           i64_mul(a->v.size, REDUCE_LEVELS, &sums) && i64_add(all, sums, &all) &&
           i64_mul(a->total, a->k.size, &keys) && i64_add(all, keys, &all) &&
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

/* Positions from here on are masked for query `query`. */
static int64_t masked_from(const struct attention *a, int64_t batch, int64_t query)
{
    int64_t end = a->total, before = a->past;
    if (a->lengths) {
        int64_t valid = ((const int64_t *)a->lengths->data)[batch];
        end = valid < end ? valid : end;
        before = valid < 0 ? INT64_MIN / 2 : valid - a->q.length;
    }
    if (a->attrs->causal && query + before < end)
        end = query + before + 1;
    if (a->mask.tensor && a->mask.length < end)
        end = a->mask.length;
    return end < 0 ? 0 : end;
}

static void mask_scores(const struct attention *a, const struct rows *rows, int64_t row,
                        const struct scratch *s)
{
    const struct attention_loops *loops = a->loops;
    const struct mask *m = &a->mask;
    const int64_t query = rows->query + row, end = masked_from(a, rows->batch, query);
    char *scores = s->scores + (size_t)(row * rows->columns) * loops->width;
    if (m->tensor) {
        load_elements(m->tensor,
                      rows->batch * m->steps[0] + rows->head * m->steps[1] + query * m->steps[2], 1,
                      end, loops->dtype, s->other);
        loops->add_bias(scores, s->other, end, m->tensor->dtype == TSSA_BOOL);
    }
    loops->fill(scores + (size_t)end * loops->width, rows->columns - end, -INFINITY);
}

/* Then all positions have scores. */
static void store_scores(const struct attention *a, const struct rows *rows, enum scores_mode mode,
                         const struct scratch *s)
{
    int64_t at = (rows->batch * a->q.heads + rows->head) * a->q.length + rows->query;
    if (a->out[SCORES] && a->attrs->scores == mode)
        store_elements(a->out[SCORES], at * a->total, 1, rows->n * a->total, a->loops->dtype,
                       s->scores);
}

static void softmax_rows(const struct attention *a, const struct rows *rows,
                         const struct scratch *s)
{
    const struct attention_loops *loops = a->loops;
    const int64_t n = rows->columns;
    bool masked[ROWS + LEFT_OVER];
    for (int64_t i = 0; i < rows->n; i++)
        masked[i] = loops->all_masked(s->scores + (size_t)(i * n) * loops->width, n);
    if (n > 0)
        softmax_of_lines(loops->dtype, s->scores, s->other, rows->n, n);
    for (int64_t i = 0; i < rows->n; i++)
        if (masked[i])
            loops->fill(s->scores + (size_t)(i * n) * loops->width, n, 0);
}

static void score(const struct attention *a, const struct rows *rows, const struct scratch *s)
{
    const struct attention_loops *loops = a->loops;
    const int64_t n = rows->n * rows->columns;
    struct gemm gemm = {.m = rows->n, .n = rows->columns, .k = a->q.size};
    gemm.a = s->queries;
    gemm.a_row = a->q.size;
    gemm.b = s->keys;
    gemm.b_row = a->total;
    gemm.c = s->scores;
    gemm.a_column = gemm.b_column = 1;
    loops->multiply(&gemm, 0, rows->n);
    loops->scale(s->scores, n, a->scale);
    store_scores(a, rows, SCORES_RAW, s);
    if (a->attrs->softcap > 0)
        loops->cap(s->scores, n, a->attrs->softcap);
    store_scores(a, rows, SCORES_CAPPED, s);
    for (int64_t i = 0; i < rows->n; i++)
        mask_scores(a, rows, i, s);
    store_scores(a, rows, SCORES_MASKED, s);
    softmax_rows(a, rows, s);
    store_scores(a, rows, SCORES_SOFTMAX, s);
}

/* What has weight 0 is left out, whatever it is: all other products add to what is finite as well.
 */
static void weigh_values(const struct attention *a, const struct rows *rows,
                         const struct scratch *s, const char *values)
{
    const size_t width = a->loops->width, size = (size_t)a->v.size * width;
    struct gemm gemm = {.m = rows->n, .n = a->v.size, .k = rows->columns};
    gemm.a = s->scores;
    gemm.a_row = rows->columns;
    gemm.b = values;
    gemm.b_row = a->v.size;
    gemm.c = s->values;
    gemm.a_column = gemm.b_column = 1;
    a->loops->multiply(&gemm, 0, rows->n);
    if (a->loops->all_finite(s->values, rows->n * a->v.size))
        return;
    for (int64_t i = 0; i < rows->n; i++) {
        char *sums = s->values + (size_t)i * size;
        const char *weights = s->scores + (size_t)(i * rows->columns) * width;
        if (!a->loops->all_finite(sums, a->v.size))
            memcpy(sums,
                   attention_weighed_sum(a->loops, values, weights, rows->columns, a->v.size, true,
                                         s->sums),
                   size);
    }
}

/* From query i of all on: of one head, and before `end`. */
static struct rows rows_from(const struct attention *a, int64_t i, int64_t end)
{
    const struct heads *q = &a->q;
    const int64_t most = rows_together(a);
    struct rows rows = {i / q->length / q->heads, i / q->length % q->heads, i % q->length,
                        q->length - i % q->length, a->out[SCORES] ? a->total : 0};
    rows.n = rows.n < end - i ? rows.n : end - i;
    rows.n = rows.n <= most + LEFT_OVER ? rows.n : most;
    for (int64_t row = 0; row < rows.n; row++) {
        const int64_t columns = masked_from(a, rows.batch, rows.query + row);
        rows.columns = columns > rows.columns ? columns : rows.columns;
    }
    return rows;
}

/* Those of a head, [total][size], to [size][total]. */
static void transpose_keys(const struct attention *a, int64_t group, char *keys)
{
    const int64_t total = a->total, size = a->k.size;
    struct strided_box box = {0};
    strided_push(&box, size, total, 1);
    strided_push(&box, total, 1, size);
    strided_copy(NULL, a->loops->width, &box, keys,
                 a->keys + (size_t)(group * total * size) * a->loops->width);
}

static void load_queries(const struct attention *a, const struct rows *rows,
                         const struct scratch *s)
{
    const struct heads *q = &a->q;
    const bool side_by_side = q->length_step == q->size;
    const int64_t together = side_by_side ? rows->n : 1;
    const int64_t from =
        rows->batch * q->batch_step + rows->head * q->head_step + rows->query * q->length_step;
    for (int64_t k = 0; k < rows->n; k += together)
        load_elements(q->tensor, from + k * q->length_step, 1, together * q->size, a->loops->dtype,
                      s->queries + (size_t)(k * q->size) * a->loops->width);
}

static void store_values(const struct attention *a, const struct rows *rows,
                         const struct scratch *s)
{
    const struct heads *q = &a->q;
    const int64_t size = a->v.size;
    const bool side_by_side = a->out[Y]->rank == 4;
    const int64_t together = side_by_side ? rows->n : 1;
    for (int64_t k = 0; k < rows->n; k += together) {
        const int64_t query = rows->query + k, head = rows->batch * q->heads + rows->head;
        const int64_t to = side_by_side ? head * q->length + query
                                        : (rows->batch * q->length + query) * q->heads + rows->head;
        store_elements(a->out[Y], to * size, 1, together * size, a->loops->dtype,
                       s->values + (size_t)(k * size) * a->loops->width);
    }
}

/* Indices are (batch, head, query) triples. */
static void attend(void *context, void *memory, int64_t begin, int64_t end)
{
    const struct attention *a = context;
    const struct scratch s = scratch_of(a, memory);
    const size_t width = a->loops->width;
    struct rows rows;
    int64_t transposed = -1;
    for (int64_t i = begin; i < end; i += rows.n) {
        rows = rows_from(a, i, end);
        const int64_t group = rows.batch * a->k.heads + rows.head / (a->q.heads / a->k.heads);
        if (group != transposed)
            transpose_keys(a, group, s.keys);
        transposed = group;
        load_queries(a, &rows, &s);
        score(a, &rows, &s);
        if (!a->out[Y])
            continue;
        weigh_values(a, &rows, &s, a->values + (size_t)(group * a->total * a->v.size) * width);
        store_values(a, &rows, &s);
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

static tssa_status *run_Attention(struct kernel_args *args)
{
    struct attention a = {.attrs = args->state};
    struct buffer *keys = NULL, *values = NULL;
    tssa_status *status;
    TRY(open_operands(args, &a));
    TRY(open_results(args, &a));
    TRY_GOTO(status, join(args, &a, &a.k, a.past_key, a.out[PRESENT_KEY], &a.keys, &keys), done);
    TRY_GOTO(status, join(args, &a, &a.v, a.past_value, a.out[PRESENT_VALUE], &a.values, &values),
             done);
    status = attend_all(args, &a);
done:
    buffer_release(keys);
    buffer_release(values);
    return status;
}

const struct kernel cpu_kernel_Attention = {.prepare = attention_prepare, .run = run_Attention};
