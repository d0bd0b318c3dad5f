/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cpu/onednn/winograd_weights.h"

#include "base/clones.h"
#include "base/integers.h"
#include "device/cpu/onednn/winograd_points.h"

#define LANES WINOGRAD_LANES
#define OF_PAIR (TAPS * TAPS)
#define AHEAD 16 /* pairs of channels */
#if defined(__x86_64__)
#define FAST VECTOR_V3
#else
#define FAST
#endif

typedef float lanes __attribute__((vector_size(LANES * sizeof(float)), may_alias));
typedef float lanes_at
    __attribute__((vector_size(LANES * sizeof(float)), aligned(sizeof(float)), may_alias));

size_t winograd_weights_bytes(int64_t in, int64_t out)
{
    return (size_t)(in * out * OF_PAIR) * sizeof(float);
}

/* LANES channels of results, of which `there` have weights. */
static void pack_lanes(const float *weights, int64_t in, int64_t there, float *packed)
{
    for (int64_t i = 0; i < in * OF_PAIR; i++)
        for (int64_t lane = 0; lane < LANES; lane++)
            packed[i * LANES + lane] = lane < there ? weights[lane * in * OF_PAIR + i] : 0;
}

void winograd_weights_pack(const float *weights, int64_t in, int64_t there, int64_t out,
                           int threads, float *packed)
{
#pragma omp parallel for if (threads > 1)
    for (int64_t o = 0; o < out; o += LANES)
        pack_lanes(weights + least(o, there) * in * OF_PAIR, in, there - o,
                   packed + o * in * OF_PAIR);
}

/* Of LANES pairs of channels. Weights come from memory, numbers stay in a cache. */
FAST static inline void spread_pairs(const lanes *g, int64_t pitch, float *matrices)
{
    lanes down[TILE * TAPS], across[TILE];
    for (int i = 0; i < OF_PAIR; i += 2)
        __builtin_prefetch(g + AHEAD * OF_PAIR + i);
    for (int j = 0; j < TAPS; j++)
        SPREAD(lanes, g + j, TAPS, down + j, TAPS);
    for (int i = 0; i < TILE; i++) {
        const lanes *row = down + (size_t)i * TAPS;
        SPREAD(lanes, row, 1, across, 1);
        for (int j = 0; j < TILE; j++)
            *(lanes_at *)(matrices + (i * TILE + j) * pitch) = across[j];
    }
}

FAST void winograd_weights_spread(const float *packed, int64_t in, int64_t first, int64_t count,
                                  int64_t pitch, float *matrices)
{
    const lanes *weights = (const lanes *)(const void *)(packed + first * in * OF_PAIR);
    for (int64_t i = 0; i < count / LANES * in; i++)
        spread_pairs(weights + i * OF_PAIR, pitch, matrices + i * LANES);
}
