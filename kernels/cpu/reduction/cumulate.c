/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CumSum (ai.onnx 11, 14) and CumProd (26): running sums and products along an axis, one element
 * after the other from 0 or 1 on; inclusive sums from the first element on, which may be -0. DOUBLE
 * accumulates in double, narrower floats in float32; integers wrap, in words of their own size.
 */
#include <inttypes.h>

#include "base/clones.h"
#include "kernels/cpu/lib/lines.h"

struct cumulate_attrs {
    bool exclusive, reverse;
};

static tssa_status *cumulate_prepare(const struct ir_op *op, const struct kernel_setup *setup,
                                     const void **state)
{
    struct cumulate_attrs *attrs = ARENA_NEW(setup->arena, struct cumulate_attrs);
    TRY_ALLOC(attrs);
    attrs->exclusive = ir_attr_int(op, "exclusive", 0) != 0;
    attrs->reverse = ir_attr_int(op, "reverse", 0) != 0;
    *state = attrs;
    return NULL;
}

/* ---- Several lines together ------------------------------------------------------------------ */

#define NEIGHBOURS 64 /* lines that lie one element apart, at most */
#define APART 8       /* lines that lie one after the other */

#define INLINE static inline __attribute__((always_inline))

struct block {
    const void *in;
    void *out;
    int64_t n, stride;    /* of a line; in elements, negative in reverse */
    int64_t lines, pitch; /* pitch: from one to the next, 1 or the length of a line */
    bool exclusive, product;
};

/* What nothing has been added to: -0 is, of all numbers, what leaves any other as it is. */
INLINE float start_of(bool product, bool exclusive)
{
    return product ? 1.0F : exclusive ? 0.0F : -0.0F;
}

#define OF_FLOATS(product, exclusive) start_of(product, exclusive)
#define OF_INTEGERS(product, exclusive) ((product) ? 1 : 0)

/* `lines` and the flags are constants to the compiler. W: the type that a T becomes in C, unsigned.
 */
#define CUMULATE(T, W, start, neighbours, apart)                                                   \
    INLINE void apart##_lines(const struct block *b, const T *x, T *y, int64_t lines,              \
                              bool product, bool exclusive)                                        \
    {                                                                                              \
        T totals[APART];                                                                           \
        for (int64_t k = 0; k < lines; k++)                                                        \
            totals[k] = start(product, exclusive);                                                 \
        for (int64_t i = 0; i < b->n; i++, x += b->stride, y += b->stride)                         \
            for (int64_t k = 0; k < lines; k++) {                                                  \
                const T v = x[k * b->pitch];                                                       \
                const T next = (T)(product ? (W)totals[k] * (W)v : (W)totals[k] + (W)v);           \
                y[k * b->pitch] = exclusive ? totals[k] : next;                                    \
                totals[k] = next;                                                                  \
            }                                                                                      \
    }                                                                                              \
    INLINE void apart##_of(const struct block *b, const T *x, T *y, int64_t lines)                 \
    {                                                                                              \
        if (b->product && b->exclusive)                                                            \
            apart##_lines(b, x, y, lines, true, true);                                             \
        else if (b->product)                                                                       \
            apart##_lines(b, x, y, lines, true, false);                                            \
        else if (b->exclusive)                                                                     \
            apart##_lines(b, x, y, lines, false, true);                                            \
        else                                                                                       \
            apart##_lines(b, x, y, lines, false, false);                                           \
    }                                                                                              \
    static void apart(const struct block *b)                                                       \
    {                                                                                              \
        if (b->lines == APART)                                                                     \
            apart##_of(b, b->in, b->out, APART);                                                   \
        else                                                                                       \
            for (int64_t k = 0; k < b->lines; k++)                                                 \
                apart##_of(b, (const T *)b->in + k * b->pitch, (T *)b->out + k * b->pitch, 1);     \
    }                                                                                              \
    VECTOR_PROCEDURE(neighbours, (const struct block *given), (given))                             \
    {                                                                                              \
        const struct block b = *given;                                                             \
        T totals[NEIGHBOURS];                                                                      \
        for (int64_t k = 0; k < b.lines; k++)                                                      \
            totals[k] = start(b.product, b.exclusive);                                             \
        for (int64_t i = 0; i < b.n; i++) {                                                        \
            const T *restrict x = (const T *)b.in + i * b.stride;                                  \
            T *restrict y = (T *)b.out + i * b.stride;                                             \
            for (int64_t k = 0; k < b.lines; k++) {                                                \
                const T total = totals[k];                                                         \
                const T next = (T)(b.product ? (W)total * (W)x[k] : (W)total + (W)x[k]);           \
                y[k] = b.exclusive ? total : next;                                                 \
                totals[k] = next;                                                                  \
            }                                                                                      \
        }                                                                                          \
    }
CUMULATE(float, float, OF_FLOATS, float_neighbours, floats_apart)
CUMULATE(double, double, OF_FLOATS, double_neighbours, doubles_apart)
CUMULATE(uint8_t, uint32_t, OF_INTEGERS, bytes_neighbours, bytes_apart)
CUMULATE(uint16_t, uint32_t, OF_INTEGERS, halves_neighbours, halves_apart)
CUMULATE(uint32_t, uint32_t, OF_INTEGERS, words_neighbours, words_apart)
CUMULATE(uint64_t, uint64_t, OF_INTEGERS, longs_neighbours, longs_apart)

typedef void cumulate_fn(const struct block *block);

/* Lines that are neighbours, or apart, of elements that are computed in the type. */
static cumulate_fn *lines_of(tssa_dtype dtype, bool apart)
{
    if (dtype == TSSA_FLOAT)
        return apart ? floats_apart : float_neighbours;
    if (dtype == TSSA_DOUBLE)
        return apart ? doubles_apart : double_neighbours;
    switch (tssa_dtype_size(dtype)) {
    case 1:
        return apart ? bytes_apart : bytes_neighbours;
    case 2:
        return apart ? halves_apart : halves_neighbours;
    case 4:
        return apart ? words_apart : words_neighbours;
    default:
        return apart ? longs_apart : longs_neighbours;
    }
}

struct work {
    const struct tensor *in, *out;
    const struct cumulate_attrs *attrs;
    struct lines lines;
    tssa_dtype dtype; /* that is computed in */
    bool product;
    int64_t most;   /* lines of a block */
    int64_t blocks; /* of an outer index; of all lines, where they are apart */
};

/* Where the k-th element of a block's lines lies, and where it is in scratch memory: as many lines,
 * closed up. */
static void run_block(const struct work *w, char *scratch, int64_t first, int64_t lines)
{
    const bool converts = w->in->dtype != w->dtype, apart = w->lines.inner == 1;
    const int64_t n = w->lines.n, width = (int64_t)tssa_dtype_size(w->dtype);
    int64_t stride = w->lines.inner;
    char *x = element_at(w->in, first), *y = element_at(w->out, first);
    if (converts) {
        stride = apart ? 1 : lines;
        x = scratch;
        y = scratch + n * lines * width;
        for (int64_t i = 0; i < (apart ? 1 : n); i++)
            load_elements(w->in, first + i * w->lines.inner, 1, apart ? n * lines : lines, w->dtype,
                          x + i * lines * width);
    }
    const int64_t start = w->attrs->reverse ? (n - 1) * stride * width : 0;
    const struct block block = {
        x + start,     y + start,           n,         w->attrs->reverse ? -stride : stride, lines,
        apart ? n : 1, w->attrs->exclusive, w->product};
    lines_of(w->dtype, apart)(&block);
    for (int64_t i = 0; converts && i < (apart ? 1 : n); i++)
        store_elements(w->out, first + i * w->lines.inner, 1, apart ? n * lines : lines, w->dtype,
                       y + i * lines * width);
}

static void run_blocks(void *context, void *scratch, int64_t begin, int64_t end)
{
    const struct work *w = context;
    const bool apart = w->lines.inner == 1;
    const int64_t lines = apart ? w->lines.outer : w->lines.inner;
    for (int64_t i = begin; i < end; i++) {
        int64_t line = i % w->blocks * w->most, rest = lines - line;
        int64_t outer = i / w->blocks * w->lines.n * w->lines.inner;
        run_block(w, scratch, outer + line * (apart ? w->lines.n : 1),
                  rest < w->most ? rest : w->most);
    }
}

static tssa_status *cumulate_lines(struct kernel_args *args, struct work *w)
{
    const bool apart = w->lines.inner == 1;
    const int64_t lines = apart ? w->lines.outer : w->lines.inner;
    int64_t cost;
    size_t bytes = 0;
    w->dtype = dtype_is_float(w->in->dtype) ? computed_in(w->in->dtype) : w->in->dtype;
    w->most = apart ? APART : NEIGHBOURS;
    w->most = lines < w->most ? lines : w->most;
    w->blocks = (lines + w->most - 1) / w->most;
    if (!i64_mul(w->lines.n, w->most, &cost) ||
        (w->in->dtype != w->dtype &&
         !size_mul((size_t)cost, 2 * tssa_dtype_size(w->dtype), &bytes)))
        return ERROR(TSSA_LIMIT, "lines of %" PRId64 " elements are too long", w->lines.n);
    return parts_for(args, apart ? w->blocks : w->lines.outer * w->blocks, cost, bytes, run_blocks,
                     w);
}

/* ---- The operators --------------------------------------------------------------------------- */

static tssa_status *cumulate_run(struct kernel_args *args, bool product)
{
    struct work work = {.attrs = args->state, .product = product};
    struct tensor *out;
    int64_t wanted;
    int axis;
    TRY(typed_tensor(args, 0, &work.in));
    TRY(kernel_scalar_int(args, 1, &wanted));
    TRY(kernel_axis(wanted, work.in->rank, &axis));
    TRY(kernel_output(args, 0, work.in->dtype, work.in->rank, work.in->dims, &out));
    if (!out || tensor_count(work.in) == 0)
        return NULL;
    work.out = out;
    work.lines = lines_along(work.in, axis);
    return cumulate_lines(args, &work);
}

static tssa_status *run_CumSum(struct kernel_args *args)
{
    return cumulate_run(args, false);
}
static tssa_status *run_CumProd(struct kernel_args *args)
{
    return cumulate_run(args, true);
}
const struct kernel cpu_kernel_CumSum = {.prepare = cumulate_prepare, .run = run_CumSum};
const struct kernel cpu_kernel_CumProd = {.prepare = cumulate_prepare, .run = run_CumProd};
