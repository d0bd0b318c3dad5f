/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The largest or smallest of all elements, with the bits that the order of ir/reduction.def gives:
 * of equal elements (zeros of both signs) the first one is taken, of several NaN the last one.
 * There the elements of a lane come one after the other, and lanes as they meet: 0, 16, 8, 24, 4,
 * ... So each element has a number in that order, and threads may take them in any. A block makes
 * one of what its threads have; of several blocks, another launch goes on with what these made, and
 * the numbers of these.
 */
#define OWN (WARP * LANE_COUNT + LANE)
#define NUMBER(i) ((i) * (int64_t)sizeof(int64_t))

SCALAR_FN int64_t number_of(int64_t i)
{
    int64_t lane = 0;
    for (int bit = 0; bit < 5; bit++)
        lane = lane * 2 + (i >> bit & 1);
    return lane << 56 | i / LANE_COUNT;
}

/* Does b come out of both? */
SCALAR_FN int wins(T a, int64_t a_number, T b, int64_t b_number, int64_t largest)
{
#ifdef T_IS_FLOAT
    if (a != a || b != b)
        return b != b && (a == a || b_number > a_number);
#endif
    if (a == b)
        return b_number < a_number;
    return largest ? a < b : a > b;
}

KERNEL k0(GIVEN(OPERAND, x), GIVEN(OPERAND, x_numbers), GIVEN(RESULT, y), GIVEN(RESULT, y_numbers),
          int64_t n, int64_t has_numbers, int64_t wants_numbers, int64_t largest)
{
    AFTER_OTHERS;
    SHARED(T, values[THREADS]);
    SHARED(int64_t, numbers[THREADS]);
    if (THREAD < n) {
        T value = LOAD(T, PLACE_OF(x), THREAD * (int64_t)sizeof(T));
        int64_t number =
            has_numbers ? LOAD(int64_t, PLACE_OF(x_numbers), NUMBER(THREAD)) : number_of(THREAD);
        for (int64_t i = THREAD + ALL_THREADS; i < n; i += ALL_THREADS) {
            const T other = LOAD(T, PLACE_OF(x), i * (int64_t)sizeof(T));
            const int64_t other_number =
                has_numbers ? LOAD(int64_t, PLACE_OF(x_numbers), NUMBER(i)) : number_of(i);
            if (wins(value, number, other, other_number, largest)) {
                value = other;
                number = other_number;
            }
        }
        values[OWN] = value;
        numbers[OWN] = number;
    }
    /* Threads that have something are the first ones. */
    const int64_t left = n - BLOCK * THREADS;
    const int there = left < THREADS ? (int)left : THREADS;
    for (int count = THREADS, others; count > 1; count = others) {
        others = (count + 1) / 2;
        MEET;
        if (OWN + others < count && OWN + others < there &&
            wins(values[OWN], numbers[OWN], values[OWN + others], numbers[OWN + others], largest)) {
            values[OWN] = values[OWN + others];
            numbers[OWN] = numbers[OWN + others];
        }
    }
    if (OWN == 0) {
        STORE(T, PLACE_OF(y), BLOCK * (int64_t)sizeof(T), values[0]);
        if (wants_numbers)
            STORE(int64_t, PLACE_OF(y_numbers), NUMBER(BLOCK), numbers[0]);
    }
}
