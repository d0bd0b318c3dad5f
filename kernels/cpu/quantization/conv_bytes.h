/* SPDX-License-Identifier: Apache-2.0 */
/* What QLinearConv and ConvInteger share: steps and their operands. */
#ifndef TSSA_KERNELS_CPU_QUANTIZATION_CONV_BYTES_H
#define TSSA_KERNELS_CPU_QUANTIZATION_CONV_BYTES_H

#include "kernels/cpu/quantization/byte_sums.h"
#include "kernels/cpu/quantization/requantize.h"

struct conv_bytes_state {
    struct conv_attrs attrs;
    bool channels_last; /* IR_CHANNELS_LAST */
    bool turned;        /* IR_WEIGHTS_TURNED */
    struct library_cache library;
};

/* Weights are operand `w`. */
tssa_status *conv_bytes_prepare(const struct ir_op *op, const struct kernel_setup *setup,
                                uint32_t w, struct conv_bytes_state *state);
void conv_bytes_release(const void *state);
struct library_cache *conv_bytes_library(const struct kernel_args *args);

/* What a run is given: x, w and their zero points. */
struct conv_bytes {
    struct conv_job job;
    struct tensor x; /* the job's: channels first */
    struct tensor w; /* the job's: [out][in][1][1], where it lies turned */
    struct conv_zeros zeros;
    struct buffer *w_zeros;
    int64_t dims[TSSA_MAX_RANK]; /* of the result, as it lies */
};

/* Zero points are operands `x_zero` and `w_zero`, which may be absent. */
tssa_status *conv_bytes_open(struct kernel_args *args, uint32_t w, uint32_t x_zero, uint32_t w_zero,
                             struct conv_bytes *bytes);
void conv_bytes_close(struct conv_bytes *bytes);

/* For kernel.get_ready: do the operands that conv_bytes_open reads have elements, and all shapes?
 */
bool conv_bytes_is_known(const struct kernel_args *args, uint32_t w, uint32_t x_zero,
                         uint32_t w_zero);
/* What a run of these operands, with results of this type, would first make. `quantizer` as in
 * byte_sums.h. */
tssa_status *conv_bytes_get_ready(struct kernel_args *args, const struct conv_bytes *bytes,
                                  tssa_dtype dtype, const struct library_quantizer *quantizer);

/* conv_reference, wherever channels are; y's elements are bytes where they are the last axis. */
tssa_status *conv_bytes_reference(struct kernel_args *args, const struct conv_bytes *bytes,
                                  struct tensor *y, conv_finish finish, const void *context);

#endif
