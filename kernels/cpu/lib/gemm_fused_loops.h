/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Matrix products by fused multiply-adds. A file gemm_fused_TYPE.c defines T, the C type of an
 * element; T_BYTES, its size; T_DTYPE, its number; T_FMA, its a * b + c; and T_MULTIPLY, the
 * function's name; and includes this file.
 */
#include <string.h>

#include "base/clones.h"
#include "ir/scalar/exact.h"
#include "kernels/cpu/lib/each_lane.h"
#include "kernels/cpu/lib/gemm_fused.h"
#include "kernels/cpu/lib/reduce_levels.h"

#define INLINE static inline __attribute__((always_inline))

#define CHUNK ((int64_t)REDUCTION_RADIX * REDUCTION_RADIX) /* terms of two levels */

/* With AVX-512 there are 32 registers, otherwise 16: for a tile's sums, a row's columns of b, and
 * an element of a. */
#define TILE(x) x##_of_32
#define WIDTH 32
#define TALLEST 6
#include "kernels/cpu/lib/gemm_fused_tiles.h"

#define TILE(x) x##_of_64
#define WIDTH 64
#define TALLEST 12
#include "kernels/cpu/lib/gemm_fused_tiles.h"

VECTOR_BY_WIDTH(multiply, (const struct gemm_fused *g), (g))

void T_MULTIPLY(const struct gemm_fused *gemm)
{
    multiply(gemm);
}
