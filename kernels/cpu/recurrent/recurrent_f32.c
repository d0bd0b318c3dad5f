/* SPDX-License-Identifier: Apache-2.0 */
/* Recurrent cells in FLOAT, and in the narrower types. */
#include <float.h>

#include "ir/scalar/exact.h"
#define T float
#define T_BYTES 4
#define T_HIGHEST FLT_MAX
#define T_CHUNK recurrent_chunk_f32
#define T_LOOP loop_f32
#define T_PROCEDURE VECTOR_PROCEDURE
#define MULTIPLY_ADD(a, b, c) f32_fma(a, b, c)
#include "kernels/cpu/recurrent/recurrent_steps.h"
