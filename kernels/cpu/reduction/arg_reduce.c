/* SPDX-License-Identifier: Apache-2.0 */
/* ArgMax and ArgMin (ai.onnx 1 to 13): where along an axis the extremum is. A NaN is beyond all. */
#include <inttypes.h>

#include "device/kernel.h"
#include "kernels/cpu/lib/lines.h"
#include "kernels/cpu/lib/reduce.h"
#include "kernels/cpu/reduction/arg_reduce.h"

#define BLOCK 256 /* results that are found together, at most */
#define WIDEST 8  /* bytes of an element */

struct arg_attrs {
    int64_t axis;
    bool keepdims, last;
};

static tssa_status *arg_prepare(const struct ir_op *op, const struct kernel_setup *setup,
                                const void **state)
{
    struct arg_attrs *attrs = ARENA_NEW(setup->arena, struct arg_attrs);
    TRY_ALLOC(attrs);
    attrs->axis = ir_op_axis(op);
    attrs->keepdims = ir_attr_int(op, "keepdims", 1) != 0;
    attrs->last = ir_attr_int(op, "select_last_index", 0) != 0;
    *state = attrs;
    return NULL;
}

struct work {
    const struct tensor *in;
    int64_t *out;
    struct axis_split split;
    bool largest, last;
    tssa_dtype dtype; /* that is computed in */
    size_t width;
    const struct arg_loops *loops;
};

static const struct arg_loops *loops_of(tssa_dtype dtype)
{
    return dtype == TSSA_FLOAT    ? &arg_loops_f32
           : dtype == TSSA_DOUBLE ? &arg_loops_f64
           : dtype == TSSA_INT32  ? &arg_loops_i32
           : dtype == TSSA_UINT64 ? &arg_loops_u64
                                  : &arg_loops_i64;
}

/* n neighbours, in the type that is computed in. */
static const char *elements(const struct work *w, int64_t offset, int64_t n, void *scratch)
{
    if (w->in->dtype == w->dtype)
        return element_at(w->in, offset);
    convert_elements(n, w->in->dtype, element_at(w->in, offset), 1, w->dtype, scratch, 1,
                     &convert_default);
    return scratch;
}

/* Lines of neighbours: the extreme of each, and where that is. */
static void run_lines(void *context, void *scratch, int64_t begin, int64_t end)
{
    const struct work *w = context;
    _Alignas(64) char best[BLOCK * WIDEST];
    enum reduction_row row = w->largest ? REDUCTION_Max : REDUCTION_Min;
    int64_t n = w->split.size, most = w->in->dtype == w->dtype ? 16 : 1;
    for (int64_t first = begin, count; first < end; first += count) {
        count = end - first < most ? end - first : most;
        const char *x = elements(w, first * n, count * n, scratch);
        reduce_lines(row, w->dtype, best, x, n, count, n, NULL);
        for (int64_t i = 0; i < count; i++)
            w->out[first + i] = w->loops->find[w->last](x + (size_t)(i * n) * w->width, n,
                                                        best + (size_t)i * w->width);
    }
}

/* Results that lie side by side, as their elements do. In scratch memory: all elements of BLOCK
 * results. */
static void run_rows(void *context, void *scratch, int64_t begin, int64_t end)
{
    const struct work *w = context;
    _Alignas(64) char best[BLOCK * WIDEST], at[BLOCK * WIDEST];
    int64_t size = w->split.size, inner = w->split.inner;
    for (int64_t first = begin, n; first < end; first += n) {
        int64_t skip = first % inner,
                left = inner - skip < end - first ? inner - skip : end - first;
        int64_t offset = first / inner * size * inner + skip, stride = inner;
        n = left < BLOCK ? left : BLOCK;
        const char *x = element_at(w->in, offset);
        if (w->in->dtype != w->dtype) {
            for (int64_t j = 0; j < size; j++)
                elements(w, offset + j * inner, n, (char *)scratch + (size_t)(j * n) * w->width);
            x = scratch;
            stride = n;
        }
        w->loops->rows[w->largest][w->last](best, at, x, stride, size, n);
        w->loops->widen(at, w->out + first, n);
    }
}

static tssa_status *arg_find(struct kernel_args *args, struct work *w)
{
    int64_t size = w->split.size, inner = w->split.inner;
    w->dtype = reduction_type(REDUCTION_Max, w->in->dtype);
    if (size > INT32_MAX && w->dtype == TSSA_FLOAT) /* for the index */
        w->dtype = TSSA_DOUBLE;
    if (size > INT32_MAX && w->dtype == TSSA_INT32)
        w->dtype = TSSA_INT64;
    w->width = tssa_dtype_size(w->dtype);
    w->loops = loops_of(w->dtype);
    int64_t block = inner < BLOCK ? inner : BLOCK;
    size_t bytes;
    if (!size_mul((size_t)size, (size_t)block * w->width, &bytes))
        return ERROR(TSSA_LIMIT, "an axis of %" PRId64 " elements is too long", size);
    return parts_for(args, w->split.outer * inner, size * 2, w->in->dtype == w->dtype ? 0 : bytes,
                     inner == 1 ? run_lines : run_rows, w);
}

static tssa_status *arg_run(struct kernel_args *args, bool largest)
{
    const struct arg_attrs *attrs = args->state;
    struct work work = {.largest = largest, .last = attrs->last};
    struct tensor *out;
    int axis, rank = 0;
    int64_t dims[TSSA_MAX_RANK];
    TRY(kernel_tensor(args, 0, &work.in));
    const struct tensor *in = work.in;
    if (!dtype_in(args->op->info->types, in->dtype))
        return ERROR(TSSA_RUNTIME, "elements of type %s have no order", tssa_dtype_name(in->dtype));
    TRY(kernel_axis(attrs->axis, in->rank, &axis));
    for (int i = 0; i < in->rank; i++)
        if (i != axis || attrs->keepdims)
            dims[rank++] = i == axis ? 1 : in->dims[i];
    work.split = axis_split(in, axis);
    if (work.split.size == 0 && work.split.outer * work.split.inner > 0)
        return ERROR(TSSA_RUNTIME, "axis %d has no elements", axis);
    TRY(kernel_output(args, 0, TSSA_INT64, rank, dims, &out));
    if (!out || tensor_count(out) == 0)
        return NULL;
    work.out = out->data;
    return arg_find(args, &work);
}

static tssa_status *run_ArgMax(struct kernel_args *args)
{
    return arg_run(args, true);
}
static tssa_status *run_ArgMin(struct kernel_args *args)
{
    return arg_run(args, false);
}
extern const struct kernel cpu_kernel_ArgMax, cpu_kernel_ArgMin;
const struct kernel cpu_kernel_ArgMax = {.prepare = arg_prepare, .run = run_ArgMax};
const struct kernel cpu_kernel_ArgMin = {.prepare = arg_prepare, .run = run_ArgMin};
