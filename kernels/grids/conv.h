/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolutions of up to three axes, as products of matrices of which one is never written: of a
 * group, its weights have a row for each of its `filters`, and what these meet has a column for
 * each place of a result and each item. A block computes a tile, of which a thread has ROWS_EACH by
 * COLUMNS_EACH elements: rows that are WARP_COUNT from each other, columns that are LANE_COUNT.
 * DEPTH terms at a time are in the block's memory, padding as zeros, and so is where the next ones
 * lie, which one thread each finds out for all. A thread adds up all terms of an element, channels
 * first, then the kernel's positions in row-major order, each by a fused multiply-add; the bias
 * comes last, and what follows the convolution behind it.
 */
#define ROWS (WARP_COUNT * ROWS_EACH)
#define COLUMNS (LANE_COUNT * COLUMNS_EACH)
#define OWN (WARP * LANE_COUNT + LANE)
/* What a thread has, which is in registers where all of this is unrolled. */
#define EACH_SUM(r, c)                                                                             \
    UNROLL for (int r = 0; r < ROWS_EACH; r++) UNROLL for (int c = 0; c < COLUMNS_EACH; c++)

KERNEL k0(GIVEN(OPERAND, x), GIVEN(OPERAND, w), GIVEN(OPERAND, bias), GIVEN(OPERAND, added),
          GIVEN(RESULT, y), int64_t batch, int64_t groups, int64_t channels, int64_t filters,
          int64_t in0, int64_t in1, int64_t in2, int64_t out0, int64_t out1, int64_t out2,
          int64_t taps0, int64_t taps1, int64_t taps2, int64_t stride0, int64_t stride1,
          int64_t stride2, int64_t dilation0, int64_t dilation1, int64_t dilation2, int64_t pad0,
          int64_t pad1, int64_t pad2, int64_t with_bias, int64_t follows, int64_t down,
          int64_t across)
{
    AFTER_OTHERS;
    SHARED(T, of_w[DEPTH * (ROWS + 1)]);
    SHARED(T, of_x[DEPTH * COLUMNS]);
    /* Of a term, how far it is from where the window begins, in all and along each axis: of the
     * terms that are read, and of the next ones. */
    SHARED(int64_t, places[2 * DEPTH]);
    SHARED(int, steps0[2 * DEPTH]);
    SHARED(int, steps1[2 * DEPTH]);
    SHARED(int, steps2[2 * DEPTH]);
    const int64_t size = in0 * in1 * in2, outs = out0 * out1 * out2, taps = taps0 * taps1 * taps2,
                  terms = channels * taps, all = batch * outs;
    for (int64_t tile = BLOCK; tile < groups * down * across; tile += BLOCKS) {
        const int64_t group = tile / across / down, row = tile / across % down * ROWS,
                      column = tile % across * COLUMNS, filter = group * filters + row;
        int64_t windows[COLUMNS_EACH];
        int at0[COLUMNS_EACH], at1[COLUMNS_EACH], at2[COLUMNS_EACH];
        T sums[ROWS_EACH][COLUMNS_EACH];
        for (int c = 0; c < COLUMNS_EACH; c++) {
            /* columns that are not there are the last one, again */
            const int64_t own = column + c * LANE_COUNT + LANE, there = own < all ? own : all - 1,
                          item = there / outs;
            const int place = (int)(there % outs);
            at0[c] = (int)(place / out2 / out1 * stride0 - pad0);
            at1[c] = (int)(place / out2 % out1 * stride1 - pad1);
            at2[c] = (int)(place % out2 * stride2 - pad2);
            windows[c] = (item * groups + group) * channels * size +
                         ((int64_t)at0[c] * in1 + at1[c]) * in2 + at2[c];
            for (int r = 0; r < ROWS_EACH; r++)
                sums[r][c] = 0;
        }
        for (int64_t at = -DEPTH, read = 0; at < terms; at += DEPTH, read = 1 - read) {
            const int depth = at < 0 ? 0 : terms - at < DEPTH ? (int)(terms - at) : DEPTH;
            const int64_t next = at + DEPTH + OWN;
            MEET;
            for (int i = OWN; i < ROWS * DEPTH; i += THREADS)
                if (i % DEPTH < depth && row + i / DEPTH < filters)
                    of_w[i % DEPTH * (ROWS + 1) + i / DEPTH] =
                        LOAD_T(PLACE_OF(w), (filter + i / DEPTH) * terms + at + i % DEPTH);
            for (int d = WARP; d < depth; d += WARP_COUNT) {
                const int term = (int)read * DEPTH + d;
                for (int c = 0; c < COLUMNS_EACH; c++) {
                    const int is_there = (uint32_t)(at0[c] + steps0[term]) < (uint32_t)in0 &&
                                         (uint32_t)(at1[c] + steps1[term]) < (uint32_t)in1 &&
                                         (uint32_t)(at2[c] + steps2[term]) < (uint32_t)in2;
                    of_x[d * COLUMNS + c * LANE_COUNT + LANE] =
                        is_there ? LOAD_T(PLACE_OF(x), windows[c] + places[term]) : 0;
                }
            }
            if (OWN < DEPTH && next < terms) {
                const int term = (int)(1 - read) * DEPTH + OWN;
                const int tap = (int)(next % taps);
                steps0[term] = (int)(tap / taps2 / taps1 * dilation0);
                steps1[term] = (int)(tap / taps2 % taps1 * dilation1);
                steps2[term] = (int)(tap % taps2 * dilation2);
                places[term] = next / taps * size +
                               ((int64_t)steps0[term] * in1 + steps1[term]) * in2 + steps2[term];
            }
            MEET;
            for (int d = 0; d < depth; d++) {
                EACH_SUM(r, c)
                {
                    sums[r][c] = FMA(of_w[d * (ROWS + 1) + r * WARP_COUNT + WARP],
                                     of_x[d * COLUMNS + c * LANE_COUNT + LANE], sums[r][c]);
                }
            }
        }
        EACH_SUM(r, c)
        {
            const int64_t own = column + c * LANE_COUNT + LANE, below = r * WARP_COUNT + WARP;
            if (row + below >= filters || own >= all)
                continue;
            const int64_t place =
                (own / outs * groups * filters + filter + below) * outs + own % outs;
            const T sum =
                with_bias ? sums[r][c] + load_c(PLACE_OF(bias), 1, filter + below) : sums[r][c];
            STORE_T(PLACE_OF(y), place, follow(sum, PLACE_OF(added), place, follows));
        }
    }
}
