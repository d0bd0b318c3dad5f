/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention (ai.onnx 23, 24): scaled dot products, softcap, masks, softmax, of as many queries at a
 * time as leave their scores in the cache. DOUBLE is computed in double, narrower types in float32
 * and rounded once; sums are those of ir/reduction.def over an axis that is not the innermost one,
 * by fused multiply-adds: of products of queries and keys, one element after the other, and of
 * weighed values, one position after the other. A query alone reads each key once, and sums
 * products with it as of an innermost axis (lib/gemm_dots.h). A masked position counts for nothing,
 * whatever its key and value hold; a row with no position left is 0.
 */
#include <inttypes.h>
#include <math.h>

#include "kernels/cpu/attention/attention_rows.h"
#include "kernels/cpu/lib/lines.h"

enum { QUERY, KEY, VALUE, MASK, PAST_KEY, PAST_VALUE, LENGTHS, OPERANDS };

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

static tssa_status *attend_all(struct kernel_args *args, struct attention *a)
{
    const struct heads *q = &a->q;
    int64_t rows, cost;
    size_t bytes;
    if (!i64_mul(q->batch, q->heads, &rows) || !i64_mul(rows, q->length, &rows) ||
        !attention_rows_bytes(a, &bytes))
        return ERROR(TSSA_RUNTIME, "there are too many positions");
    if (!i64_mul(a->total, a->k.size + a->v.size + 16, &cost))
        cost = INT64_MAX;
    return parts_for(args, rows, cost, bytes, attention_rows, a);
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
