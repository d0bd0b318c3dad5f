/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The k first elements of each line, in order. An element's place is how many are before it, so
 * that a thread, which has one, compares it with all others; keys of these are in the block's
 * memory, as many as it has threads at a time. NaN counts as larger than everything, and of equal
 * elements the one with the lower number is first.
 */
#define OWN (WARP * LANE_COUNT + LANE)

/* Smaller for what comes earlier. */
SCALAR_FN uint64_t key_of(T x, int64_t largest)
{
#ifdef T_IS_FLOAT
    const T_BITS sign = (T_BITS)1 << (8 * sizeof(T) - 1), bits = BITS_OF(x);
    uint64_t key = UINT64_MAX - 1;
    if ((T_BITS)(bits << 1) == 0)
        key = sign; /* -0, too */
    else if (x == x)
        key = bits & sign ? (T_BITS)~bits : bits | sign;
#else
    const uint64_t key = (uint64_t)x ^ ((T)-1 < 0 ? (uint64_t)1 << 63 : 0);
#endif
    return largest ? ~key : key;
}

KERNEL k0(GIVEN(OPERAND, x), GIVEN(RESULT, values), GIVEN(RESULT, indices), int64_t lines,
          int64_t n, int64_t inner, int64_t k, int64_t largest, int64_t with_values,
          int64_t with_indices)
{
    AFTER_OTHERS;
    SHARED(uint64_t, keys[THREADS]);
    const int64_t groups = (n + THREADS - 1) / THREADS, step = inner * (int64_t)sizeof(T);
    for (int64_t job = BLOCK; job < lines * groups; job += BLOCKS) {
        const int64_t line = job / groups, i = job % groups * THREADS + OWN,
                      from = (line / inner * n * inner + line % inner) * (int64_t)sizeof(T);
        const T own = i < n ? LOAD(T, PLACE_OF(x), from + i * step) : 0;
        const uint64_t key = key_of(own, largest);
        int64_t before = 0;
        for (int64_t first = 0; first < n; first += THREADS) {
            const int there = n - first < THREADS ? (int)(n - first) : THREADS;
            MEET;
            if (OWN < there)
                keys[OWN] = key_of(LOAD(T, PLACE_OF(x), from + (first + OWN) * step), largest);
            MEET;
            for (int other = 0; other < there; other++)
                before += keys[other] < key || (keys[other] == key && first + other < i);
        }
        if (i < n && before < k) {
            const int64_t to = (line / inner * k + before) * inner + line % inner;
            if (with_values)
                STORE(T, PLACE_OF(values), to * (int64_t)sizeof(T), own);
            if (with_indices)
                STORE(int64_t, PLACE_OF(indices), to * (int64_t)sizeof(int64_t), i);
        }
    }
}
