/* SPDX-License-Identifier: Apache-2.0 */
/* Order keys of float32 in 32 bits. */
#ifndef TSSA_KERNELS_CPU_SELECTION_FLOAT_KEY_H
#define TSSA_KERNELS_CPU_SELECTION_FLOAT_KEY_H

#include <stdint.h>
#include <string.h>

/* In the order of rank_key's; `flip` is UINT32_MAX for larger ones first, or else 0. */
static inline __attribute__((always_inline)) uint32_t float_key(float x, uint32_t flip)
{
    uint32_t bits;
    float v = x + 0.0f; /* -0 becomes 0 */
    memcpy(&bits, &v, sizeof bits);
    uint32_t key = bits ^ ((0 - (bits >> 31)) | UINT32_C(1) << 31);
    return (x != x ? UINT32_MAX : key) ^ flip;
}

#endif
