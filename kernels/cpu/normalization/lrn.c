/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LRN-13 of ai.onnx: elements by what is around them along the channels. DOUBLE is computed in
 * double, narrower types in float32; squares are summed as those of a reduced axis that is not the
 * innermost one (ir/reduction.def).
 */
#include <inttypes.h>

#include "base/clones.h"
#include "ir/scalar/f32_wide.h"
#include "ir/scalar/f64_pow.h"
#include "kernels/cpu/lib/lines.h"
#include "kernels/cpu/lib/reduce_levels.h"

#define BLOCK 256 /* neighbours that are computed together */

struct lrn {
    int64_t size;
    double alpha, beta, bias;
};

static tssa_status *prepare(const struct ir_op *op, const struct kernel_setup *setup,
                            const void **result)
{
    struct lrn *state = ARENA_NEW(setup->arena, struct lrn);
    TRY_ALLOC(state);
    *result = state;
    state->size = ir_attr_int(op, "size", 0);
    state->alpha = (double)ir_attr_float(op, "alpha", 1e-4f);
    state->beta = (double)ir_attr_float(op, "beta", 0.75f);
    state->bias = (double)ir_attr_float(op, "bias", 1.0f);
    if (state->size < 1)
        return ERROR(TSSA_MALFORMED, "size is %" PRId64, state->size);
    return NULL;
}

/* x / (bias + factor * squares) ^ beta */
#define SCALE(T, name, power)                                                                      \
    VECTOR_PROCEDURE(                                                                              \
        name, (const struct lrn *state, const void *from, const void *sums, void *to, int64_t n),  \
        (state, from, sums, to, n))                                                                \
    {                                                                                              \
        const T *x = from, *squares = sums, bias = (T)state->bias, beta = (T)state->beta;          \
        const T factor = (T)(state->alpha / (double)state->size);                                  \
        T *y = to;                                                                                 \
        for (int64_t i = 0; i < n; i++)                                                            \
            y[i] = x[i] / power(bias + factor * squares[i], beta);                                 \
    }
SCALE(float, scale_floats, f32_pow)
SCALE(double, scale_doubles, f64_pow)

struct work {
    const struct lrn *state;
    const struct tensor *in, *out;
    struct lines lines;
    tssa_dtype dtype; /* that is computed in */
    size_t width;
    int64_t blocks; /* of an outer index */
};

/* n neighbours of channels [first, end), which lie `stride` apart. */
static void *sum_squares(const struct work *w, const char *x, int64_t stride, int64_t first,
                         int64_t end, int64_t n, void *memory)
{
    const struct reduce_loops *loops = reduce_loops_of(REDUCTION_SumSquare, w->dtype);
    struct reduce_levels levels;
    reduce_levels_begin(&levels, loops, w->width, n, memory);
    for (int64_t channel = first, count; channel < end; channel += count) {
        count = reduce_levels_room(&levels, end - channel);
        loops->rows(levels.memory, x + (size_t)(channel * stride) * w->width, stride, count, n,
                    NULL);
        reduce_levels_add(&levels, count);
    }
    return reduce_levels_end(&levels);
}

/* n neighbours of all channels from `offset` on. Scratch: for what is converted, as many and n
 * results. */
static void run_block(const struct work *w, char *scratch, int64_t offset, int64_t n)
{
    _Alignas(64) char memory[REDUCE_LEVELS * BLOCK * REDUCE_WIDEST];
    /* size - 1 neighbours; the odd one comes after. */
    int64_t before = (w->state->size - 1) / 2, after = w->state->size - 1 - before;
    int64_t channels = w->lines.n, inner = w->lines.inner, stride = inner;
    const char *x = element_at(w->in, offset);
    bool converts = w->in->dtype != w->dtype;
    if (converts) {
        stride = n;
        for (int64_t c = 0; c < channels; c++)
            load_elements(w->in, offset + c * inner, 1, n, w->dtype,
                          scratch + (size_t)(c * n) * w->width);
        x = scratch;
    }
    for (int64_t c = 0; c < channels; c++) {
        int64_t first = c > before ? c - before : 0,
                end = after < channels - 1 - c ? c + after + 1 : channels;
        void *sums = sum_squares(w, x, stride, first, end, n, memory);
        void *y = converts ? scratch + (size_t)(channels * n) * w->width
                           : element_at(w->out, offset + c * inner);
        (w->dtype == TSSA_DOUBLE ? scale_doubles : scale_floats)(
            w->state, x + (size_t)(c * stride) * w->width, sums, y, n);
        if (converts)
            store_elements(w->out, offset + c * inner, 1, n, w->dtype, y);
    }
}

static void run_blocks(void *context, void *scratch, int64_t begin, int64_t end)
{
    const struct work *w = context;
    for (int64_t i = begin; i < end; i++) {
        int64_t first = i % w->blocks * BLOCK, inner = w->lines.inner;
        run_block(w, scratch, i / w->blocks * w->lines.n * inner + first,
                  inner - first < BLOCK ? inner - first : BLOCK);
    }
}

static tssa_status *run(struct kernel_args *args)
{
    struct work work = {.state = args->state};
    const struct tensor *in;
    struct tensor *out;
    int axis;
    TRY(typed_tensor(args, 0, &in));
    TRY(kernel_axis(1, in->rank, &axis));
    TRY(kernel_output(args, 0, in->dtype, in->rank, in->dims, &out));
    if (!out)
        return NULL;
    work.in = in;
    work.out = out;
    work.lines = lines_along(in, axis);
    work.dtype = computed_in(in->dtype);
    work.width = tssa_dtype_size(work.dtype);
    work.blocks = (work.lines.inner + BLOCK - 1) / BLOCK;
    int64_t n = work.lines.inner < BLOCK ? work.lines.inner : BLOCK;
    size_t bytes = 0;
    if (in->dtype != work.dtype &&
        !size_mul((size_t)work.lines.n + 1, (size_t)n * work.width, &bytes))
        return ERROR(TSSA_LIMIT, "a line of %" PRId64 " elements is too long", work.lines.n);
    return parts_for(args, work.lines.outer * work.blocks, work.lines.n * n * 8, bytes, run_blocks,
                     &work);
}

extern const struct kernel cpu_kernel_lrn;
const struct kernel cpu_kernel_lrn = {.prepare = prepare, .run = run};
