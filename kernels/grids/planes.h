/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The mean, or the largest, of each of `rows` rows of n elements, in the order of ir/reduction.def.
 * A warp has a row, and a lane what the order gives it.
 */
#define OWN (WARP * LANE_COUNT + LANE)
#define ADD(a, b) ((a) + (b))

/* Of equal ones the first, of what is no number the last. */
SCALAR_FN T larger(T a, T b)
{
    return a < b || b != b ? b : a;
}

#define JOIN_LANES(join, all)                                                                      \
    for (int others = LANE_COUNT / 2; others > 0; others /= 2) {                                   \
        MEET;                                                                                      \
        if (LANE < others)                                                                         \
            all[OWN] = join(all[OWN], all[OWN + others]);                                          \
    }

KERNEL k0(GIVEN(OPERAND, x), GIVEN(RESULT, y), int64_t rows, int64_t n)
{
    AFTER_OTHERS;
    SHARED(T, sums[THREADS]);
    for (int64_t first = BLOCK * WARP_COUNT; first < rows; first += BLOCKS * WARP_COUNT) {
        const int64_t row = first + WARP;
        int64_t steps = 0;
        BEGIN_LEVELS(T, sum, levels, 0);
        for (int64_t i = LANE; row < rows && i < n; i += LANE_COUNT) {
            sum += LOAD(T, PLACE_OF(x), (row * n + i) * (int64_t)sizeof(T));
            if (++steps % RADIX == 0)
                CARRY(ADD, sum, levels, 0, steps / RADIX);
        }
        JOIN_LEVELS(ADD, sum, levels, steps);
        MEET; /* the row before is stored */
        sums[OWN] = sum;
        JOIN_LANES(ADD, sums)
        if (LANE == 0 && row < rows)
            STORE(T, PLACE_OF(y), row * (int64_t)sizeof(T), sums[OWN] / (T)n);
    }
}

KERNEL k1(GIVEN(OPERAND, x), GIVEN(RESULT, y), int64_t rows, int64_t n)
{
    AFTER_OTHERS;
    SHARED(T, most[THREADS]);
    for (int64_t first = BLOCK * WARP_COUNT; first < rows; first += BLOCKS * WARP_COUNT) {
        const int64_t row = first + WARP;
        T own = -(T)INFINITY;
        for (int64_t i = LANE; row < rows && i < n; i += LANE_COUNT)
            own = larger(own, LOAD(T, PLACE_OF(x), (row * n + i) * (int64_t)sizeof(T)));
        MEET;
        most[OWN] = own;
        JOIN_LANES(larger, most)
        if (LANE == 0 && row < rows)
            STORE(T, PLACE_OF(y), row * (int64_t)sizeof(T), most[OWN]);
    }
}
