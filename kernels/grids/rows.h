/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products of matrices as in product.h, of which the result has few rows, or few elements at all: a
 * block computes a tile of ROWS_EACH rows by 1 << shift columns, of which there are `down` and
 * `across`, and its threads share the terms. Threads that are side by side have columns that are,
 * or, where `terms_first`, terms that are, so that they read what lies side by side. A thread reads
 * TERMS terms, which it has as many groups of threads from each other as there are, before it needs
 * the first one: there is nothing else to do meanwhile. What threads have is added up in pairs, so
 * that the order of a sum follows from the sizes alone.
 */
#define OWN (WARP * LANE_COUNT + LANE)

/* Two blocks on a multiprocessor: half of its registers are for what one of them reads. */
#define KERNEL_OF_TWO KERNEL_FOR(THREADS, 2)

KERNEL_OF_TWO k0(GIVEN(OPERAND, a), GIVEN(OPERAND, b), GIVEN(OPERAND, c), GIVEN(RESULT, y),
                 int64_t batch, int64_t m, int64_t n, int64_t k, int64_t a_batch, int64_t a_row,
                 int64_t a_column, int64_t b_batch, int64_t b_row, int64_t b_column, int64_t y_row,
                 int64_t y_column, int64_t c_row, int64_t c_column, int64_t with_c, int64_t alpha,
                 int64_t beta, int64_t down, int64_t across, int64_t shift, int64_t terms_first)
{
    AFTER_OTHERS;
    SHARED(T, sums_of[ROWS_EACH * THREADS]);
    const int columns = 1 << (int)shift, groups = THREADS >> (int)shift;
    const int own = terms_first ? OWN * columns / THREADS : OWN & (columns - 1),
              group = terms_first ? OWN - own * groups : OWN >> (int)shift;
    const int next = terms_first ? 1 : columns;
    const int64_t a_step = groups * a_column * T_SIZE, b_step = groups * b_row * T_SIZE;
    for (int64_t tile = BLOCK; tile < batch * down * across; tile += BLOCKS) {
        int64_t i = 0, row = 0, column = tile;
        if (tile >= across) { /* which takes divisions; one row alone never is */
            i = tile / across / down;
            row = tile / across % down * ROWS_EACH;
            column = tile % across;
        }
        column = column * columns + own;
        const bool stores = group == 0 && column < n;
        /* rows that are not there are the last one, again */
        T sums[ROWS_EACH], of_c[ROWS_EACH];
        OPERAND_IN_PLACE at_a[ROWS_EACH];
        OPERAND_IN_PLACE at_b =
            PLACE_OF(b) + (i * b_batch + group * b_row + column * b_column) * T_SIZE;
        for (int r = 0; r < ROWS_EACH; r++) {
            const int64_t from = row + r < m ? row + r : m - 1;
            at_a[r] = PLACE_OF(a) + (i * a_batch + from * a_row + group * a_column) * T_SIZE;
            of_c[r] = load_c(PLACE_OF(c), with_c && stores, from * c_row + column * c_column);
            sums[r] = 0;
        }
        for (int64_t left = column < n ? k - group : 0; left > 0; left -= groups * TERMS) {
            T of_a[ROWS_EACH][TERMS], of_b[TERMS];
            for (int e = 0; e < TERMS; e++) {
                const bool is_there = e * groups < left;
                of_b[e] = is_there ? LOAD_T(at_b, 0) : 0;
                at_b += b_step;
                for (int r = 0; r < ROWS_EACH; r++) {
                    of_a[r][e] = is_there ? LOAD_T(at_a[r], 0) : 0;
                    at_a[r] += a_step;
                }
            }
            for (int e = 0; e < TERMS; e++)
                for (int r = 0; r < ROWS_EACH; r++)
                    sums[r] = FMA(of_a[r][e], of_b[e], sums[r]);
        }
        MEET; /* the tile before is stored */
        for (int r = 0; r < ROWS_EACH; r++)
            sums_of[r * THREADS + OWN] = sums[r];
        for (int left = groups, others; left > 1; left = others) {
            others = (left + 1) / 2;
            MEET;
            if (group + others < left)
                for (int r = 0; r < ROWS_EACH; r++)
                    sums_of[r * THREADS + OWN] += sums_of[r * THREADS + OWN + others * next];
        }
        for (int r = 0; r < ROWS_EACH; r++)
            if (stores && row + r < m)
                STORE_T(PLACE_OF(y), i * m * n + (row + r) * y_row + column * y_column,
                        finish(sums_of[r * THREADS + OWN], alpha, with_c, of_c[r], beta));
    }
}
