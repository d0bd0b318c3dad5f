/* SPDX-License-Identifier: Apache-2.0 */
/* HannWindow, HammingWindow, BlackmanWindow, MelWeightMatrix (ai.onnx 17), made in double. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "ir/scalar/f64_pow.h"
#include "ir/scalar/f64_trig.h"
#include "kernels/cpu/lib/lines.h"

#define PI 3.14159265358979323846
#define LN_10 2.30258509299404568402

struct signal_attrs {
    tssa_dtype dtype;
    bool periodic;
};

static tssa_status *signal_prepare(const struct ir_op *op, const struct kernel_setup *setup,
                                   const void **state)
{
    struct signal_attrs *attrs = ARENA_NEW(setup->arena, struct signal_attrs);
    TRY_ALLOC(attrs);
    int64_t dtype = ir_attr_int(op, "output_datatype", TSSA_FLOAT);
    if (dtype < 0 || dtype >= TSSA_DTYPE_COUNT || !dtype_in(T_NUMERIC, (tssa_dtype)dtype))
        return ERROR(TSSA_MALFORMED, "output_datatype is %" PRId64, dtype);
    attrs->dtype = (tssa_dtype)dtype;
    attrs->periodic = ir_attr_int(op, "periodic", 1) != 0;
    *state = attrs;
    return NULL;
}

/* ---- Windows: a0 - a1 cos(2 pi i / n) + a2 cos(4 pi i / n) ----------------------------------- */

static tssa_status *make_window(struct kernel_args *args, double a0, double a1, double a2)
{
    const struct signal_attrs *attrs = args->state;
    struct tensor *out;
    int64_t size;
    TRY(kernel_scalar_int(args, 0, &size));
    if (size < 0)
        return ERROR(TSSA_RUNTIME, "a window of %" PRId64 " elements", size);
    TRY(kernel_output(args, 0, attrs->dtype, 1, &size, &out));
    if (!out)
        return NULL;
    double period = (double)(attrs->periodic || size == 1 ? size : size - 1);
    for (int64_t i = 0; i < size; i++) {
        double turn = 2 * PI * (double)i / period;
        dtype_store_double(out->dtype, element_at(out, i),
                           a0 - a1 * f64_cos(turn) + a2 * f64_cos(2 * turn));
    }
    return NULL;
}

#define WINDOW(name, a0, a1, a2)                                                                   \
    static tssa_status *run_##name(struct kernel_args *args)                                       \
    {                                                                                              \
        return make_window(args, a0, a1, a2);                                                      \
    }                                                                                              \
    const struct kernel cpu_kernel_##name = {.prepare = signal_prepare, .run = run_##name};

WINDOW(HannWindow, 0.5, 0.5, 0)
WINDOW(HammingWindow, 25.0 / 46.0, 21.0 / 46.0, 0)
WINDOW(BlackmanWindow, 0.42, 0.5, 0.08)

/* ---- MelWeightMatrix ------------------------------------------------------------------------- */

struct mel {
    int64_t bins, length, rate, rows; /* rows: of the spectrum */
    double low, high;                 /* in mel */
};

static double hertz_to_mel(double hertz)
{
    return 2595 * (f64_log(1 + hertz / 700) / LN_10);
}

/* The row of the spectrum at which band edge i lies; false: it is not in the spectrum. */
static bool edge_row(const struct mel *mel, int64_t i, int64_t *row)
{
    double step = (mel->high - mel->low) / (double)(mel->bins + 2);
    double hertz = 700 * (f64_pow(10, ((double)i * step + mel->low) / 2595) - 1);
    double at = floor((double)(mel->length + 1) * hertz / (double)mel->rate);
    if (!(at >= 0 && at < (double)mel->rows))
        return false;
    *row = (int64_t)at;
    return true;
}

/* A triangle over rows [low, high) with its top at `center`. */
static void store_band(struct tensor *out, int64_t band, int64_t low, int64_t center, int64_t high)
{
    for (int64_t row = low; row <= center; row++) {
        double rise = center > low ? (double)(row - low) / (double)(center - low) : 1;
        dtype_store_double(out->dtype, element_at(out, row * out->dims[1] + band), rise);
    }
    for (int64_t row = center; row < high; row++)
        dtype_store_double(out->dtype, element_at(out, row * out->dims[1] + band),
                           (double)(high - row) / (double)(high - center));
}

static tssa_status *read_mel(const struct kernel_args *args, struct mel *mel)
{
    TRY(kernel_scalar_int(args, 0, &mel->bins));
    TRY(kernel_scalar_int(args, 1, &mel->length));
    TRY(kernel_scalar_int(args, 2, &mel->rate));
    TRY(kernel_scalar_double(args, 3, &mel->low));
    TRY(kernel_scalar_double(args, 4, &mel->high));
    if (mel->bins < 0 || mel->bins > INT32_MAX || mel->length < 0 || mel->length > INT32_MAX ||
        mel->rate < 1)
        return ERROR(TSSA_RUNTIME,
                     "%" PRId64 " bands of a transform of %" PRId64 " elements at %" PRId64
                     " per second",
                     mel->bins, mel->length, mel->rate);
    mel->rows = mel->length / 2 + 1;
    mel->low = hertz_to_mel(mel->low);
    mel->high = hertz_to_mel(mel->high);
    return NULL;
}

static tssa_status *run_MelWeightMatrix(struct kernel_args *args)
{
    const struct signal_attrs *attrs = args->state;
    struct tensor *out;
    struct mel mel;
    TRY(read_mel(args, &mel));
    TRY(kernel_output(args, 0, attrs->dtype, 2, (const int64_t[]){mel.rows, mel.bins}, &out));
    if (!out || tensor_count(out) == 0)
        return NULL;
    memset(out->data, 0, tensor_bytes(out));
    for (int64_t band = 0; band < mel.bins; band++) {
        int64_t low, center, high;
        if (!edge_row(&mel, band, &low) || !edge_row(&mel, band + 1, &center) ||
            !edge_row(&mel, band + 2, &high))
            return ERROR(TSSA_RUNTIME, "band %" PRId64 " is outside the spectrum", band);
        store_band(out, band, low, center, high);
    }
    return NULL;
}

const struct kernel cpu_kernel_MelWeightMatrix = {.prepare = signal_prepare,
                                                  .run = run_MelWeightMatrix};
