/* SPDX-License-Identifier: Apache-2.0 */
/* What Gemm does of a product, of `count` elements in rows: y = alpha * y + beta * c, where there
 * is a c; its elements lie so far from each other. */
KERNEL k0(GIVEN(RESULT_IN_PLACE, y), GIVEN(OPERAND_IN_PLACE, c), int64_t count, int64_t columns,
          int64_t c_row, int64_t c_column, int64_t with_c, int64_t alpha, int64_t beta)
{
    for (int64_t i = THREAD; i < count; i += ALL_THREADS) {
        T element = OF_BITS(alpha) * LOAD(T, PLACE_OF(y), i * (int64_t)sizeof(T));
        if (with_c)
            element = element +
                      OF_BITS(beta) *
                          LOAD(T, PLACE_OF(c),
                               (i / columns * c_row + i % columns * c_column) * (int64_t)sizeof(T));
        STORE(T, PLACE_OF(y), i * (int64_t)sizeof(T), element);
    }
}
