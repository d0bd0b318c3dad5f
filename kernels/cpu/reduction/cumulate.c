/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CumSum (ai.onnx 11, 14) and CumProd (26): running sums and products along an axis. Floats
 * accumulate in double and are rounded once each; integers wrap.
 */
#include "base/clones.h"
#include "device/kernel.h"
#include "kernels/cpu/lib/axes.h"

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

struct row {
    const char *in;
    char *out;
    int64_t n;
    ptrdiff_t stride; /* bytes; negative in reverse */
    tssa_dtype dtype;
    bool exclusive, product;
};

static void cumulate_floats(const struct row *row)
{
    double total = row->product ? 1 : 0;
    for (int64_t i = 0; i < row->n; i++) {
        double x = dtype_load_double(row->dtype, row->in + i * row->stride);
        double next = row->product ? total * x : total + x;
        dtype_store_double(row->dtype, row->out + i * row->stride, row->exclusive ? total : next);
        total = next;
    }
}

static void cumulate_integers(const struct row *row)
{
    uint64_t total = row->product ? 1 : 0;
    for (int64_t i = 0; i < row->n; i++) {
        uint64_t x = (uint64_t)dtype_load_int64(row->dtype, row->in + i * row->stride);
        uint64_t next = row->product ? total * x : total + x;
        dtype_store_int64(row->dtype, row->out + i * row->stride,
                          (int64_t)(row->exclusive ? total : next));
        total = next;
    }
}

/* ---- float32: neighbouring lines together ----------------------------------------------------------- */

#define LINES 64

struct float_lines {
    const float *in;
    float *out;
    int64_t n, stride; /* in elements; negative in reverse */
    int64_t lines;     /* at most LINES, one element apart */
    bool exclusive, product;
};

VECTOR_PROCEDURE(cumulate_float_lines, (const struct float_lines *given), (given))
{
    const struct float_lines l = *given;
    double totals[LINES];
    for (int64_t k = 0; k < LINES; k++)
        totals[k] = l.product ? 1 : 0;
    for (int64_t i = 0; i < l.n; i++) {
        const float *restrict x = l.in + i * l.stride;
        float *restrict y = l.out + i * l.stride;
        for (int64_t k = 0; k < l.lines; k++) {
            double total = totals[k], v = (double)x[k];
            double next = l.product ? total * v : total + v;
            y[k] = (float)(l.exclusive ? total : next);
            totals[k] = next;
        }
    }
}

/* A line whose elements are neighbours. */
static void cumulate_float_line(const struct float_lines *l)
{
    const float *x = l->in;
    float *y = l->out;
    const int64_t n = l->n, stride = l->stride;
    double total = l->product ? 1 : 0;
    for (int64_t i = 0; i < n; i++) {
        double v = (double)x[i * stride], next = l->product ? total * v : total + v;
        y[i * stride] = (float)(l->exclusive ? total : next);
        total = next;
    }
}

static void cumulate_floats_of(const struct tensor *in, const struct tensor *out,
                               const struct axis_split *split, const struct cumulate_attrs *attrs,
                               bool product)
{
    for (int64_t o = 0; o < split->outer; o++)
        for (int64_t i = 0; i < split->inner; i += LINES) {
            int64_t first = o * split->size * split->inner + i +
                            (attrs->reverse ? (split->size - 1) * split->inner : 0);
            int64_t rest = split->inner - i;
            const struct float_lines lines = {(const float *)in->data + first,
                                              (float *)out->data + first,
                                              split->size,
                                              attrs->reverse ? -split->inner : split->inner,
                                              rest < LINES ? rest : LINES,
                                              attrs->exclusive,
                                              product};
            (split->inner == 1 ? cumulate_float_line : cumulate_float_lines)(&lines);
        }
}

static tssa_status *cumulate_run(struct kernel_args *args, bool product)
{
    const struct cumulate_attrs *attrs = args->state;
    const struct tensor *in;
    struct tensor *out;
    int64_t wanted;
    int axis;
    TRY(kernel_tensor(args, 0, &in));
    if (!dtype_in(args->op->info->types, in->dtype))
        return ERROR(TSSA_RUNTIME, "elements of type %s cannot be accumulated",
                     tssa_dtype_name(in->dtype));
    TRY(kernel_scalar_int(args, 1, &wanted));
    TRY(kernel_axis(wanted, in->rank, &axis));
    TRY(kernel_output(args, 0, in->dtype, in->rank, in->dims, &out));
    struct axis_split split = axis_split(in, axis);
    if (!out || tensor_count(in) == 0)
        return NULL;
    if (in->dtype == TSSA_FLOAT) {
        cumulate_floats_of(in, out, &split, attrs, product);
        return NULL;
    }
    ptrdiff_t width = (ptrdiff_t)tssa_dtype_size(in->dtype), stride = split.inner * width;
    for (int64_t o = 0; o < split.outer; o++)
        for (int64_t i = 0; i < split.inner; i++) {
            int64_t first = o * split.size * split.inner + i +
                            (attrs->reverse ? (split.size - 1) * split.inner : 0);
            struct row row = {.in = (const char *)in->data + first * width,
                              .out = (char *)out->data + first * width,
                              .n = split.size,
                              .stride = attrs->reverse ? -stride : stride,
                              .dtype = in->dtype,
                              .exclusive = attrs->exclusive,
                              .product = product};
            if (dtype_is_float(in->dtype))
                cumulate_floats(&row);
            else
                cumulate_integers(&row);
        }
    return NULL;
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
