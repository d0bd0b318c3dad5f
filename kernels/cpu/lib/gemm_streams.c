/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/lib/gemm_streams.h"

#include "base/clones.h"
#include "ir/reduction.h"
#include "ir/scalar/exact.h"
#include "kernels/cpu/lib/each_lane.h"

#define INLINE static inline __attribute__((always_inline))

#define MOST_ROWS 16
/* Without AVX-512, whose registers keep a sum of each row beside what is multiplied. */
#define MOST_ROWS_NARROW 8
/* Of the matrix. Of fewer, which a second-level cache holds from one run to the next, 8 rows take
 * twice as long as in a library; more are mostly read from memory, and take half as long. */
#define MIN_BYTES (INT64_C(2) << 20)
/* Columns of a stretch from which on the machine sees by itself what is read next: of 768 rows of
 * 50,257, it takes 9.6 ms on one thread and not 10.6. Of shorter ones it is told. */
#define LONG 2048
#define PAGE 1024  /* elements: rows so far apart share sets of a first cache */
#define LEVEL 8192 /* sums that are kept at a time: 32 KiB */
#define APART 16   /* between rows of sums, which else lie in one bank where they are 2 KiB long */
#define CHUNK ((int64_t)REDUCTION_RADIX * REDUCTION_RADIX) /* terms of two levels */
#define MOST_TERMS (CHUNK * REDUCTION_RADIX)               /* of three */

/* Stretches of so many columns. */
struct streams {
    const struct gemm *gemm;
    int64_t width;
};

/* Some rows of the matrix, `down` from each to the next; what is `ahead` of an element is read
 * later. `weights`: MOST_ROWS for each. */
struct block {
    const float *b, *weights;
    int64_t down, ahead;
};

#define STREAM(x) x##_of_32
#define WIDTH 32
#include "kernels/cpu/lib/gemm_streams_width.h"

#define STREAM(x) x##_of_64
#define WIDTH 64
#include "kernels/cpu/lib/gemm_streams_width.h"

VECTOR_BY_WIDTH(streams, (const struct streams *s, int64_t begin, int64_t end), (s, begin, end))

static void run_stretches(void *context, int64_t begin, int64_t end)
{
    streams(context, begin, end);
}

bool gemm_streams_takes(tssa_dtype dtype, const struct gemm *gemm)
{
    const enum isa level = isa_level();
    const int64_t most = level == ISA_V4 ? MOST_ROWS : MOST_ROWS_NARROW;
    int64_t elements;
    return level >= ISA_V3 && dtype == TSSA_FLOAT && gemm->m >= 1 && gemm->m <= most &&
           gemm->b_column == 1 && gemm->k <= MOST_TERMS && i64_mul(gemm->k, gemm->n, &elements) &&
           elements >= MIN_BYTES / (int64_t)sizeof(float);
}

static int64_t parts_of(int64_t n, int64_t size)
{
    return (n + size - 1) / size;
}

/* Each thread has stretches of its own, of whole lines of the cache, and as many as the others. */
void gemm_streams_run(const struct team *team, const struct gemm *gemm)
{
    const int64_t line = 16, most = LEVEL / gemm->m / line * line;
    const int64_t share = parts_of(gemm->n, team ? team->threads : 1);
    const int64_t width = parts_of(parts_of(share, parts_of(share, most)), line) * line;
    const struct streams s = {gemm, width};
    team_for(team, parts_of(gemm->n, s.width), 1, run_stretches, (void *)&s);
}
