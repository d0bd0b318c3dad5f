/* SPDX-License-Identifier: Apache-2.0 */
/* Recurrent cells in DOUBLE. */
#include <float.h>
#define T double
#define T_BYTES 8
#define T_HIGHEST DBL_MAX
#define T_CHUNK recurrent_chunk_f64
#define T_LOOP loop_f64
#define T_PROCEDURE VECTOR_PROCEDURE
#define MULTIPLY_ADD(a, b, c) ((a) * (b) + (c))
#include "kernels/cpu/recurrent/recurrent_steps.h"
