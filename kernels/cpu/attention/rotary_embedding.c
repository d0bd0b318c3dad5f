/* SPDX-License-Identifier: Apache-2.0 */
/* RotaryEmbedding (ai.onnx 23): turns pairs of a head's elements by cached angles. */
#include <inttypes.h>

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
};

/* Indices are heads in memory order: [batch][head][position] or [batch][position][head]. */
static void turn_heads(void *context, int64_t begin, int64_t end)
{
    const struct rotary *r = context;
    tssa_dtype dtype = r->x->dtype;
    int64_t half = r->turned / 2;
    for (int64_t i = begin; i < end; i++) {
        int64_t batch = i / (r->heads * r->length);
        int64_t position = r->x->rank == 4 ? i % r->length : i / r->heads % r->length;
        int64_t row = batch * r->length + position, base = i * r->size;
        if (r->positions)
            row = ((const int64_t *)r->positions->data)[row];
        for (int64_t k = 0; k < half; k++) {
            double c = dtype_load_double(dtype, element_at(r->cosines, row * half + k));
            double s = dtype_load_double(dtype, element_at(r->sines, row * half + k));
            int64_t first = base + (r->attrs->interleaved ? 2 * k : k);
            int64_t second = base + (r->attrs->interleaved ? 2 * k + 1 : half + k);
            double a = dtype_load_double(dtype, element_at(r->x, first));
            double b = dtype_load_double(dtype, element_at(r->x, second));
            dtype_store_double(dtype, element_at(r->y, first), c * a - s * b);
            dtype_store_double(dtype, element_at(r->y, second), s * a + c * b);
        }
        for (int64_t k = r->turned; k < r->size; k++) {
            double kept = dtype_load_double(dtype, element_at(r->x, base + k));
            dtype_store_double(dtype, element_at(r->y, base + k), kept);
        }
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
    team_for(args->env->team, (int64_t)tensor_count(r.y) / r.size, 1 + 4096 / r.size, turn_heads,
             &r);
    return NULL;
}

const struct kernel cpu_kernel_RotaryEmbedding = {.prepare = rotary_prepare,
                                                  .run = run_RotaryEmbedding};
