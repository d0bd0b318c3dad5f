/* SPDX-License-Identifier: Apache-2.0 */
/* Finishes `count` sums, in rows, that a library has computed, T each: where the result is that,
 * and they may lie there. */
KERNEL k0(GIVEN(OPERAND_IN_PLACE, sums), GIVEN(RESULT_IN_PLACE, y), GIVEN(OPERAND_IN_PLACE, c),
          int64_t count, int64_t columns, int64_t c_row, int64_t c_column, int64_t with_c,
          int64_t alpha, int64_t beta)
{
    AFTER_OTHERS;
    for (int64_t i = THREAD; i < count; i += ALL_THREADS) {
        const T sum = LOAD(T, PLACE_OF(sums), i * (int64_t)sizeof(T)),
                of_c = load_c(PLACE_OF(c), with_c, i / columns * c_row + i % columns * c_column);
        STORE_T(PLACE_OF(y), i, finish(sum, alpha, with_c, of_c, beta));
    }
}
