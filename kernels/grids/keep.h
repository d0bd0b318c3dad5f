/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The numbers of elements that are not zero, in their order: how many each chunk has, how many
 * there are before each chunk, where there are many of these, and where the elements are. A block
 * has a chunk at a time, of which each thread has EACH elements that lie side by side. An element
 * is zero where these bits of it are.
 */
#define EACH 8
#define CHUNK (THREADS * EACH)
#define OWN (WARP * LANE_COUNT + LANE)

/* A bit for each of the thread's elements. */
SCALAR_FN int find(OPERAND_IN_PLACE x, int64_t first, int64_t count, int64_t bits)
{
    int found = 0;
    for (int e = 0; e < EACH && first + e < count; e++)
        if (LOAD(T, x, (first + e) * (int64_t)sizeof(T)) & (T)bits)
            found |= 1 << e;
    return found;
}

SCALAR_FN int count_bits(int bits)
{
    int count = 0;
    for (int e = 0; e < EACH; e++)
        count += bits >> e & 1;
    return count;
}

/* What all threads up to each have together. */
PART add_up(SHARED_PLACE(int64_t) sums, int64_t own)
{
    MEET;
    sums[OWN] = own;
    for (int step = 1; step < THREADS; step *= 2) {
        MEET;
        const int64_t before = OWN >= step ? sums[OWN - step] : 0;
        MEET;
        sums[OWN] += before;
    }
    MEET;
}

/* And, where it tells, the host. */
KERNEL k0(GIVEN(OPERAND, x), GIVEN(RESULT, counts), GIVEN(RESULT, told), int64_t count,
          int64_t bits, int64_t chunks, int64_t tells)
{
    AFTER_OTHERS;
    SHARED(int64_t, sums[THREADS]);
    for (int64_t chunk = BLOCK; chunk < chunks; chunk += BLOCKS) {
        const int64_t at = chunk * (int64_t)sizeof(int64_t);
        add_up(sums, count_bits(find(PLACE_OF(x), chunk * CHUNK + OWN * EACH, count, bits)));
        if (OWN == 0)
            STORE(int64_t, PLACE_OF(counts), at, sums[THREADS - 1]);
        if (OWN == 0 && tells)
            STORE(int64_t, PLACE_OF(told), at, sums[THREADS - 1]);
    }
}

/* One block; behind the last chunk is how many there are in all, which the host is told. */
KERNEL k1(GIVEN(RESULT, counts), GIVEN(RESULT, told), int64_t chunks)
{
    AFTER_OTHERS;
    SHARED(int64_t, sums[THREADS]);
    int64_t before = 0;
    for (int64_t first = 0; first <= chunks; first += THREADS) {
        const int64_t chunk = first + OWN, at = chunk * (int64_t)sizeof(int64_t);
        const int64_t own = chunk < chunks ? LOAD(int64_t, PLACE_OF(counts), at) : 0;
        add_up(sums, own);
        if (chunk <= chunks)
            STORE(int64_t, PLACE_OF(counts), at, before + sums[OWN] - own);
        before += sums[THREADS - 1];
    }
    if (OWN == 0)
        STORE(int64_t, PLACE_OF(told), 0, before);
}

/* How many there are before the chunk. */
SCALAR_FN int64_t find_before(OPERAND_IN_PLACE counts, int64_t chunk, int64_t are_before)
{
    int64_t before = 0;
    if (are_before)
        return OWN == 0 ? LOAD(int64_t, counts, chunk * (int64_t)sizeof(int64_t)) : 0;
    for (int64_t other = OWN; other < chunk; other += THREADS)
        before += LOAD(int64_t, counts, other * (int64_t)sizeof(int64_t));
    return before;
}

/* Coordinates in as many dims, a row of `found` for each axis. `counts` is of each chunk how many
 * it has, or how many are before it; of one chunk nobody needs it, and the host is told. */
KERNEL k2(GIVEN(OPERAND, x), GIVEN(OPERAND, counts), GIVEN(RESULT, told), GIVEN(RESULT, y),
          int64_t count, int64_t bits, int64_t chunks, int64_t are_before, int64_t found,
          int64_t rank, AXES(d))
{
    AFTER_OTHERS;
    SHARED(int64_t, sums[THREADS]);
    const int64_t dims[RANK] = {OF_AXES(d)};
    for (int64_t chunk = BLOCK; chunk < chunks; chunk += BLOCKS) {
        const int64_t first = chunk * CHUNK + OWN * EACH;
        const int own = find(PLACE_OF(x), first, count, bits);
        add_up(sums, find_before(PLACE_OF(counts), chunk, are_before));
        int64_t at = sums[THREADS - 1] - count_bits(own);
        add_up(sums, count_bits(own));
        at += sums[OWN];
        if (chunks == 1 && OWN == 0)
            STORE(int64_t, PLACE_OF(told), 0, sums[THREADS - 1]);
        for (int e = 0; e < EACH; e++) {
            if (!(own >> e & 1))
                continue;
            int64_t left = first + e;
            for (int64_t axis = rank - 1; axis > 0; axis--) {
                STORE(int64_t, PLACE_OF(y), (axis * found + at) * (int64_t)sizeof(int64_t),
                      left % dims[axis]);
                left /= dims[axis];
            }
            STORE(int64_t, PLACE_OF(y), at * (int64_t)sizeof(int64_t), left);
            at++;
        }
    }
}
