/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ConvInteger (ai.onnx 10). Sums of products of 8-bit integers are exact, by the library in INT32
 * or by the reference in double.
 */
#include "kernels/cpu/quantization/conv_bytes.h"

extern const struct kernel cpu_kernel_ConvInteger;

static tssa_status *prepare(const struct ir_op *op, const struct kernel_setup *setup,
                            const void **state)
{
    struct conv_bytes_state *own = ARENA_NEW(setup->arena, struct conv_bytes_state);
    TRY_ALLOC(own);
    *state = own;
    return conv_bytes_prepare(op, setup, 1, own);
}

static void store_int32(const void *context, int64_t channel, const void *doubles, int64_t count,
                        void *out)
{
    const double *sums = doubles;
    int32_t *to = out;
    (void)context;
    (void)channel;
    for (int64_t i = 0; i < count; i++) /* wraps, as the accumulator of the standard does */
        to[i] = (int32_t)(uint32_t)(uint64_t)(int64_t)sums[i];
}

static tssa_status *sum(struct kernel_args *args, struct conv_bytes *bytes)
{
    struct tensor *y;
    bool done;
    TRY(conv_bytes_open(args, 1, 2, 3, bytes));
    TRY(kernel_output(args, 0, TSSA_INT32, bytes->job.x->rank, bytes->dims, &y));
    if (!y)
        return NULL;
    TRY(byte_sums_conv(args, conv_bytes_library(args), &bytes->job, false, &bytes->zeros, y->data,
                       &done));
    return done ? NULL : conv_bytes_reference(args, bytes, y, store_int32, NULL);
}

static tssa_status *run_ConvInteger(struct kernel_args *args)
{
    struct conv_bytes bytes = {0};
    tssa_status *status = sum(args, &bytes);
    conv_bytes_close(&bytes);
    return status;
}

static tssa_status *get_ready(struct kernel_args *args)
{
    struct conv_bytes bytes = {0};
    if (!conv_bytes_is_known(args, 1, 2, 3))
        return NULL;
    tssa_status *status = conv_bytes_open(args, 1, 2, 3, &bytes);
    if (!status)
        status = conv_bytes_get_ready(args, &bytes, TSSA_INT32, NULL);
    conv_bytes_close(&bytes);
    return status;
}

const struct kernel cpu_kernel_ConvInteger = {.prepare = prepare,
                                              .run = run_ConvInteger,
                                              .get_ready = get_ready,
                                              .release = conv_bytes_release};
