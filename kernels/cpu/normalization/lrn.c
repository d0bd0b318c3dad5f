/* SPDX-License-Identifier: Apache-2.0 */
/* LRN-13 of ai.onnx: elements by what is around them along the channels. Computed in double. */
#include <inttypes.h>
#include <math.h>

#include "kernels/cpu/lib/lines.h"

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

/* x to y, n elements each. */
static void lrn_line(const struct lrn *state, const double *x, double *y, int64_t n)
{
    /* size - 1 neighbours; the odd one comes after. */
    int64_t before = (state->size - 1) / 2, after = state->size - 1 - before;
    for (int64_t i = 0; i < n; i++) {
        int64_t first = i > before ? i - before : 0, last = after < n - 1 - i ? i + after : n - 1;
        double squares = 0;
        for (int64_t k = first; k <= last; k++)
            squares += x[k] * x[k];
        y[i] = x[i] / pow(state->bias + state->alpha / (double)state->size * squares, state->beta);
    }
}

struct work {
    const struct lrn *state;
    const struct tensor *in, *out;
    struct lines lines;
};

static void run_lines(void *context, void *scratch, int64_t begin, int64_t end)
{
    const struct work *w = context;
    int64_t n = w->lines.n, inner = w->lines.inner;
    double *x = scratch, *y = x + n;
    for (int64_t line = begin; line < end; line++) {
        int64_t offset = line / inner * n * inner + line % inner;
        load_doubles(w->in, offset, inner, n, x);
        lrn_line(w->state, x, y, n);
        store_doubles(w->out, offset, inner, n, y);
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
    size_t bytes;
    if (!size_mul((size_t)work.lines.n, 2 * sizeof(double), &bytes))
        return ERROR(TSSA_LIMIT, "a line of %" PRId64 " elements is too long", work.lines.n);
    return parts_for(args, work.lines.outer * work.lines.inner, work.lines.n * 8, bytes, run_lines,
                     &work);
}

extern const struct kernel cpu_kernel_lrn;
const struct kernel cpu_kernel_lrn = {.prepare = prepare, .run = run};
