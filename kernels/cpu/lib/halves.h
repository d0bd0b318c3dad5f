/* SPDX-License-Identifier: Apache-2.0 */
/* FLOAT16 to float32 and back by the instructions for it, where the machine has them. */
#ifndef TSSA_KERNELS_CPU_LIB_HALVES_H
#define TSSA_KERNELS_CPU_LIB_HALVES_H

#include <stdint.h>

/* n elements one behind the other; the arrays do not overlap. The bits are those of f32_of_f16 and
 * f16_of_f32 (ir/scalar/convert.h), but for the payloads of NaNs. */
void halves_widen(int64_t n, const uint16_t *from, float *to);
void halves_narrow(int64_t n, const float *from, uint16_t *to);

#endif
