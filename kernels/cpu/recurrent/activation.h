/* SPDX-License-Identifier: Apache-2.0 */
/* The activation functions that RNN, GRU and LSTM name in attributes (ai.onnx 1 to 22). */
#ifndef TSSA_KERNELS_CPU_RECURRENT_ACTIVATION_H
#define TSSA_KERNELS_CPU_RECURRENT_ACTIVATION_H

#include "kernels/cpu/elementwise/elementwise.h"

struct activation {
    ew_loop loop_f32, loop_f64;
    struct ew_uniform uniform; /* alpha and beta, where the function has them */
};

/*
 * Decodes `activations`, `activation_alpha` and `activation_beta`: `per_direction` functions for
 * each of `directions`, `defaults` where there are none. The lists of alphas and betas are read in
 * order, by those functions only that have such a parameter; what is not given is the function's
 * default.
 */
tssa_status *activations_decode(const struct ir_op *op, const char *const *defaults,
                                size_t per_direction, size_t directions,
                                struct activation *activations);

#endif
