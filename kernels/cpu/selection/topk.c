/* SPDX-License-Identifier: Apache-2.0 */
/* TopK-24 of ai.onnx: the k largest or smallest along an axis. Equal elements: the lower index
 * first. */
#include <inttypes.h>
#include <string.h>

#include "kernels/cpu/lib/lines.h"
#include "kernels/cpu/selection/rank.h"
#include "kernels/cpu/selection/topk_floats.h"

struct topk {
    int64_t axis;
    bool largest;
};

static tssa_status *prepare(const struct ir_op *op, const struct kernel_setup *setup,
                            const void **state)
{
    struct topk *topk = ARENA_NEW(setup->arena, struct topk);
    TRY_ALLOC(topk);
    topk->axis = ir_op_axis(op);
    topk->largest = ir_attr_int(op, "largest", 1) != 0;
    *state = topk;
    return NULL;
}

struct work {
    const struct topk *topk;
    struct lines lines;
    int64_t k;
    const struct tensor *in, *values, *indices; /* results: NULL where not wanted */
};

/* `sorted = 0` allows any order; the sorted one costs nothing more. */
static void run_lines(void *context, void *scratch, int64_t begin, int64_t end)
{
    const struct work *w = context;
    struct ranked *heap = scratch;
    size_t size = dtype_info(w->in->dtype)->size;
    for (int64_t line = begin; line < end; line++) {
        int64_t outer = line / w->lines.inner, inner = line % w->lines.inner, n = w->lines.n;
        int64_t from = outer * n * w->lines.inner + inner;
        int64_t to = outer * w->k * w->lines.inner + inner;
        for (int64_t i = 0; i < n; i++) {
            const void *element = element_at(w->in, from + i * w->lines.inner);
            heap[i] = (struct ranked){rank_key(w->in->dtype, element, w->topk->largest), i};
        }
        rank_heapify(heap, n);
        for (int64_t i = 0; i < w->k; i++) {
            int64_t chosen = rank_pop(heap, &n).index, at = to + i * w->lines.inner;
            if (w->values)
                memcpy(element_at(w->values, at), element_at(w->in, from + chosen * w->lines.inner),
                       size);
            if (w->indices)
                memcpy(element_at(w->indices, at), &chosen, sizeof chosen);
        }
    }
}

static void run_floats(void *context, void *scratch, int64_t begin, int64_t end)
{
    const struct work *w = context;
    const int64_t step = w->lines.inner;
    for (int64_t i = begin; i < end; i++) {
        int64_t from = i / step * w->lines.n * step + i % step,
                to = i / step * w->k * step + i % step;
        const float *x = (const float *)w->in->data + from;
        const struct float_line line = {x, w->lines.n, step, w->topk->largest};
        const uint64_t *chosen = topk_floats(&line, w->k, scratch);
        float *values = w->values ? (float *)w->values->data + to : NULL;
        int64_t *indices = w->indices ? (int64_t *)w->indices->data + to : NULL;
        for (int64_t k = 0; k < w->k; k++) {
            int64_t index = (int64_t)(uint32_t)chosen[k];
            if (values)
                values[k * step] = x[index * step];
            if (indices)
                indices[k * step] = index;
        }
    }
}

static tssa_status *run(struct kernel_args *args)
{
    const struct topk *topk = args->state;
    const struct tensor *in;
    TRY(typed_tensor(args, 0, &in));
    int axis;
    TRY(kernel_axis(topk->axis, in->rank, &axis));
    int64_t k;
    TRY(kernel_scalar_int(args, 1, &k));
    if (k < 0 || k > in->dims[axis])
        return ERROR(TSSA_RUNTIME, "K is %" PRId64 ", but axis %d has %" PRId64 " elements", k,
                     axis, in->dims[axis]);
    int64_t dims[TSSA_MAX_RANK];
    for (int i = 0; i < in->rank; i++)
        dims[i] = i == axis ? k : in->dims[i];
    struct tensor *values, *indices;
    TRY(kernel_output(args, 0, in->dtype, in->rank, dims, &values));
    TRY(kernel_output(args, 1, TSSA_INT64, in->rank, dims, &indices));
    struct work work = {topk, lines_along(in, axis), k, in, values, indices};
    if (k == 0)
        return NULL;
    int64_t lines = work.lines.outer * work.lines.inner;
    size_t bytes;
    if (in->dtype == TSSA_FLOAT && topk_floats_scratch(work.lines.n, k, &bytes))
        return parts_for(args, lines, work.lines.n * 2, bytes, run_floats, &work);
    return parts_for(args, lines, work.lines.n * 8, (size_t)work.lines.n * sizeof(struct ranked),
                     run_lines, &work);
}

extern const struct kernel cpu_kernel_topk;
const struct kernel cpu_kernel_topk = {.prepare = prepare, .run = run};
