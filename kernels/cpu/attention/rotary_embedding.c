/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RotaryEmbedding (ai.onnx 23): turns pairs of a head's elements by cached angles. DOUBLE is
 * computed in double, narrower types in float32, each product and sum rounded.
 */
#include <inttypes.h>

#include "base/clones.h"
#include "kernels/cpu/lib/lines.h"

struct rotary_attrs {
    bool interleaved;
    int64_t heads, size; /* 0: not given; all */
};

static tssa_status *rotary_prepare(const struct ir_op *op, const struct kernel_setup *setup,
                                   const void **state)
{
    struct rotary_attrs *attrs = ARENA_NEW(setup->arena, struct rotary_attrs);
    TRY_ALLOC(attrs);
    attrs->interleaved = ir_attr_int(op, "interleaved", 0) != 0;
    attrs->heads = ir_attr_int(op, "num_heads", 0);
    attrs->size = ir_attr_int(op, "rotary_embedding_dim", 0);
    if (attrs->heads < 0 || attrs->size < 0)
        return ERROR(TSSA_MALFORMED, "%" PRId64 " heads, %" PRId64 " elements turned", attrs->heads,
                     attrs->size);
    *state = attrs;
    return NULL;
}

struct rotary {
    const struct rotary_attrs *attrs;
    const struct tensor *x, *cosines, *sines, *positions; /* positions may be NULL */
    struct tensor *y;
    int64_t heads, length, size, turned; /* of a head: elements, how many are turned */
    tssa_dtype dtype;                    /* that is computed in */
    size_t width;
};

/* In place: pairs of elements `gap` apart, the next pair `step` further. */
#define TURN(name, T)                                                                              \
    VECTOR_PROCEDURE(name,                                                                         \
                     (T *restrict x, const T *restrict cosines, const T *restrict sines,           \
                      int64_t pairs, int64_t step, int64_t gap),                                   \
                     (x, cosines, sines, pairs, step, gap))                                        \
    {                                                                                              \
        for (int64_t k = 0; k < pairs; k++) {                                                      \
            const T a = x[k * step], b = x[k * step + gap], c = cosines[k], s = sines[k];          \
            x[k * step] = c * a - s * b;                                                           \
            x[k * step + gap] = s * a + c * b;                                                     \
        }                                                                                          \
    }
TURN(turn_floats, float)
TURN(turn_doubles, double)

/* Indices are heads in memory order: [batch][head][position] or [batch][position][head]. Scratch: a
 * head's elements, cosines and sines. */
static void turn_heads(void *context, void *scratch, int64_t begin, int64_t end)
{
    const struct rotary *r = context;
    const int64_t half = r->turned / 2, step = r->attrs->interleaved ? 2 : 1;
    const int64_t gap = r->attrs->interleaved ? 1 : half;
    char *x = scratch, *cosines = x + (size_t)r->size * r->width;
    char *sines = cosines + (size_t)half * r->width;
    for (int64_t i = begin; i < end; i++) {
        int64_t batch = i / (r->heads * r->length);
        int64_t position = r->x->rank == 4 ? i % r->length : i / r->heads % r->length;
        int64_t row = batch * r->length + position;
        if (r->positions)
            row = ((const int64_t *)r->positions->data)[row];
        load_elements(r->x, i * r->size, 1, r->size, r->dtype, x);
        load_elements(r->cosines, row * half, 1, half, r->dtype, cosines);
        load_elements(r->sines, row * half, 1, half, r->dtype, sines);
        if (r->dtype == TSSA_FLOAT)
            turn_floats((float *)(void *)x, (const float *)(void *)cosines,
                        (const float *)(void *)sines, half, step, gap);
        else
            turn_doubles((double *)(void *)x, (const double *)(void *)cosines,
                         (const double *)(void *)sines, half, step, gap);
        store_elements(r->y, i * r->size, 1, r->size, r->dtype, x);
    }
}

/* [rows, turned / 2] with positions, else [batch, length, turned / 2]. */
static tssa_status *check_cache(const struct rotary *r, uint32_t index, const struct tensor *cache)
{
    int64_t half = r->turned / 2;
    bool fits = cache->dtype == r->x->dtype;
    if (r->positions)
        fits = fits && cache->rank == 2 && cache->dims[1] == half;
    else
        fits = fits && cache->rank == 3 && cache->dims[0] == r->x->dims[0] &&
               cache->dims[1] == r->length && cache->dims[2] == half;
    return fits ? NULL : operand_error(index, cache, "a cache for the heads");
}

static tssa_status *check_positions(const struct rotary *r)
{
    const struct tensor *p = r->positions;
    if (!p)
        return NULL;
    if (p->dtype != TSSA_INT64 || p->rank != 2 || p->dims[0] != r->x->dims[0] ||
        p->dims[1] != r->length)
        return operand_error(3, p, "an i64 per item and position");
    for (size_t i = 0; i < tensor_count(p); i++) {
        int64_t at = ((const int64_t *)p->data)[i];
        if (at < 0 || at >= r->cosines->dims[0] || at >= r->sines->dims[0])
            return ERROR(TSSA_RUNTIME, "position %" PRId64 " is outside the caches", at);
    }
    return NULL;
}

static tssa_status *open_operands(struct kernel_args *args, struct rotary *r)
{
    TRY(typed_tensor(args, 0, &r->x));
    TRY(kernel_tensor(args, 1, &r->cosines));
    TRY(kernel_tensor(args, 2, &r->sines));
    TRY(kernel_optional_tensor(args, 3, &r->positions));
    const struct tensor *x = r->x;
    int64_t given = r->attrs->heads;
    if (x->rank == 3 && given > 0 && x->dims[2] % given == 0) {
        r->heads = given;
        r->length = x->dims[1];
        r->size = x->dims[2] / given;
    } else if (x->rank == 4) {
        r->heads = x->dims[1];
        r->length = x->dims[2];
        r->size = x->dims[3];
    } else {
        return operand_error(0, x, "a tensor of heads");
    }
    r->turned = r->attrs->size ? r->attrs->size : r->size;
    if (r->turned > r->size || r->turned % 2)
        return ERROR(TSSA_RUNTIME, "%" PRId64 " of %" PRId64 " elements cannot be turned in pairs",
                     r->turned, r->size);
    TRY(check_cache(r, 1, r->cosines));
    TRY(check_cache(r, 2, r->sines));
    return check_positions(r);
}

static tssa_status *run_RotaryEmbedding(struct kernel_args *args)
{
    struct rotary r = {.attrs = args->state};
    TRY(open_operands(args, &r));
    TRY(kernel_output(args, 0, r.x->dtype, r.x->rank, r.x->dims, &r.y));
    if (!r.y || tensor_count(r.y) == 0)
        return NULL;
    r.dtype = computed_in(r.x->dtype);
    r.width = tssa_dtype_size(r.dtype);
    return parts_for(args, (int64_t)tensor_count(r.y) / r.size, r.size,
                     2 * (size_t)r.size * r.width, turn_heads, &r);
}

const struct kernel cpu_kernel_RotaryEmbedding = {.prepare = rotary_prepare,
                                                  .run = run_RotaryEmbedding};
