/* SPDX-License-Identifier: Apache-2.0 */
/* Elements that are moved as they are: T is a word of their size. */

/* y = bits, everywhere. */
KERNEL k0(GIVEN(RESULT, y), int64_t count, int64_t bits)
{
    AFTER_OTHERS;
    for (int64_t i = THREAD; i < count; i += ALL_THREADS)
        STORE(T, PLACE_OF(y), i * (int64_t)sizeof(T), (T)bits);
}

/* y[...] = x[...], from whose elements each axis of y goes so many steps. */
KERNEL k1(GIVEN(OPERAND, x), GIVEN(RESULT, y), int64_t count, AXES(d), AXES(s))
{
    AFTER_OTHERS;
    const int64_t dims[RANK] = {OF_AXES(d)}, steps[RANK] = {OF_AXES(s)};
    for (int64_t i = THREAD; i < count; i += ALL_THREADS) {
        int64_t from = 0, left = i;
        for (int axis = RANK - 1; axis >= 0; axis--) {
            from += left % dims[axis] * steps[axis];
            left /= dims[axis];
        }
        STORE(T, PLACE_OF(y), i * (int64_t)sizeof(T),
              LOAD(T, PLACE_OF(x), from * (int64_t)sizeof(T)));
    }
}

/* y[a][i][b] = x[a][numbers[i]][b], where y has `rows` along the axis, x `limit`, and behind it are
 * `width` elements. */
KERNEL k2(GIVEN(OPERAND, x), GIVEN(OPERAND, numbers), GIVEN(RESULT, y), int64_t count, int64_t rows,
          int64_t limit, int64_t width)
{
    AFTER_OTHERS;
    for (int64_t i = THREAD; i < count; i += ALL_THREADS) {
        const int64_t row = i / width % rows, a = i / width / rows,
                      number = LOAD(int64_t, PLACE_OF(numbers), row * (int64_t)sizeof(int64_t));
        STORE(
            T, PLACE_OF(y), i * (int64_t)sizeof(T),
            LOAD(T, PLACE_OF(x), ((a * limit + number) * width + i % width) * (int64_t)sizeof(T)));
    }
}
