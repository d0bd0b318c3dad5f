/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/lib/halves.h"

#include "base/clones.h"
#include "ir/scalar/convert.h"
#ifdef VECTOR_V3
#include <immintrin.h>
#endif

static void widen_base(int64_t n, const uint16_t *from, float *to)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = f32_of_f16(from[i]);
}

static void narrow_base(int64_t n, const float *from, uint16_t *to)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = f16_of_f32(from[i]);
}

#ifdef VECTOR_V3
#define LANES 8

/* x86-64-v3 has F16C, which keeps denormals whatever modes are set. */
VECTOR_V3 static int64_t widen_v3(int64_t n, const uint16_t *from, float *to)
{
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const void *)(from + i))));
    return i;
}

VECTOR_V3 static int64_t narrow_v3(int64_t n, const float *from, uint16_t *to)
{
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES)
        _mm_storeu_si128((void *)(to + i),
                         _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT));
    return i;
}
#endif

void halves_widen(int64_t n, const uint16_t *from, float *to)
{
    int64_t done = 0;
#ifdef VECTOR_V3
    if (isa_level() >= ISA_V3)
        done = widen_v3(n, from, to);
#endif
    widen_base(n - done, from + done, to + done);
}

void halves_narrow(int64_t n, const float *from, uint16_t *to)
{
    int64_t done = 0;
#ifdef VECTOR_V3
    if (isa_level() >= ISA_V3)
        done = narrow_v3(n, from, to);
#endif
    narrow_base(n - done, from + done, to + done);
}
