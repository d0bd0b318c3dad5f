/* SPDX-License-Identifier: Apache-2.0 */
/* The activation functions that RNN, GRU and LSTM name in attributes (ai.onnx 1 to 22). */
#ifndef TSSA_KERNELS_CPU_RECURRENT_ACTIVATION_H
#define TSSA_KERNELS_CPU_RECURRENT_ACTIVATION_H

#include "ir/recurrent.h"
#include "kernels/cpu/elementwise/elementwise.h"

struct activation {
    ew_loop loop_f32, loop_f64;
    struct ew_uniform uniform; /* alpha and beta, where the function has them */
};

struct activation activation_of(const struct recurrent_function *function);

#endif
