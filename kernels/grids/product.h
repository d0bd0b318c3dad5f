/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products of matrices (struct matmul_problem), whose result has steps as well, finished. A block
 * computes a tile of the result, of which a thread has ROWS_EACH by COLUMNS_EACH elements: rows
 * that are WARP_COUNT from each other, columns that are LANE_COUNT. Of the operands DEPTH terms at
 * a time are in the block's memory. One thread adds up all terms of an element, in their order,
 * each by a fused multiply-add, so that tiles do not tell in results.
 */
#define ROWS (WARP_COUNT * ROWS_EACH)
#define COLUMNS (LANE_COUNT * COLUMNS_EACH)

/* `width` lines of an operand, of which so many are there, by `depth` terms: those of a line lie
 * `term` from each other, and lines `line`. What threads read that are side by side lies so, too.
 */
PART fill(SHARED_PLACE(T) tile, int width, OPERAND_IN_PLACE memory, int64_t lines, int64_t depth,
          int64_t line, int64_t term)
{
    for (int at = WARP * LANE_COUNT + LANE; at < width * DEPTH; at += THREADS) {
        const int i = term == 1 ? at / DEPTH : at % width, d = term == 1 ? at % DEPTH : at / width;
        if (i < lines && d < depth)
            tile[d * (width + 1) + i] = LOAD_T(memory, i * line + d * term);
    }
}

KERNEL k0(GIVEN(OPERAND, a), GIVEN(OPERAND, b), GIVEN(OPERAND, c), GIVEN(RESULT, y), int64_t batch,
          int64_t m, int64_t n, int64_t k, int64_t a_batch, int64_t a_row, int64_t a_column,
          int64_t b_batch, int64_t b_row, int64_t b_column, int64_t y_row, int64_t y_column,
          int64_t c_row, int64_t c_column, int64_t with_c, int64_t alpha, int64_t beta,
          int64_t down, int64_t across)
{
    AFTER_OTHERS;
    SHARED(T, of_a[DEPTH * (ROWS + 1)]);
    SHARED(T, of_b[DEPTH * (COLUMNS + 1)]);
    for (int64_t tile = BLOCK; tile < batch * down * across; tile += BLOCKS) {
        const int64_t i = tile / across / down, row = tile / across % down * ROWS,
                      column = tile % across * COLUMNS;
        T sums[ROWS_EACH][COLUMNS_EACH];
        for (int r = 0; r < ROWS_EACH; r++)
            for (int x = 0; x < COLUMNS_EACH; x++)
                sums[r][x] = 0;
        for (int64_t at = 0; at < k; at += DEPTH) {
            const int depth = k - at < DEPTH ? (int)(k - at) : DEPTH;
            MEET;
            fill(of_a, ROWS, PLACE_OF(a) + (i * a_batch + row * a_row + at * a_column) * T_SIZE,
                 m - row, depth, a_row, a_column);
            fill(of_b, COLUMNS,
                 PLACE_OF(b) + (i * b_batch + column * b_column + at * b_row) * T_SIZE, n - column,
                 depth, b_column, b_row);
            MEET;
            for (int d = 0; d < depth; d++)
                for (int r = 0; r < ROWS_EACH; r++)
                    for (int x = 0; x < COLUMNS_EACH; x++)
                        sums[r][x] =
                            FMA(of_a[d * (ROWS + 1) + r * WARP_COUNT + WARP],
                                of_b[d * (COLUMNS + 1) + x * LANE_COUNT + LANE], sums[r][x]);
        }
        for (int r = 0; r < ROWS_EACH; r++)
            for (int x = 0; x < COLUMNS_EACH; x++) {
                const int64_t down_to = row + r * WARP_COUNT + WARP,
                              across_to = column + x * LANE_COUNT + LANE;
                if (down_to >= m || across_to >= n)
                    continue;
                const T of_c = load_c(PLACE_OF(c), with_c, down_to * c_row + across_to * c_column);
                STORE_T(PLACE_OF(y), i * m * n + down_to * y_row + across_to * y_column,
                        finish(sums[r][x], alpha, with_c, of_c, beta));
            }
    }
}
