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

/* ---- Several lists --------------------------------------------------------------------------- */

/*
 * Of truth values, each by itself: so many chunks are a unit, and units up to `end` are of one
 * list.
 */
#define LIST(i) GIVEN(OPERAND, x##i), int64_t end##i, int64_t count##i
#define TAKE(i)                                                                                    \
    {                                                                                              \
        x = PLACE_OF(x##i);                                                                        \
        end = end##i;                                                                              \
        count = count##i;                                                                          \
    }
#define IS_TRUE 255 /* any of these bits */

/* What the thread has of the unit that begins there. */
SCALAR_FN int64_t count_own(OPERAND_IN_PLACE x, int64_t first, int64_t count, int64_t span)
{
    int64_t own = 0;
    for (int64_t chunk = 0; chunk < span; chunk++)
        own += count_bits(find(x, first + chunk * CHUNK + OWN * EACH, count, IS_TRUE));
    return own;
}

/* How many each unit has, for the host as well. */
KERNEL k3(LIST(0), LIST(1), LIST(2), LIST(3), LIST(4), LIST(5), LIST(6), LIST(7),
          GIVEN(RESULT, counts), GIVEN(RESULT, told), int64_t units, int64_t span)
{
    AFTER_OTHERS;
    SHARED(int64_t, sums[THREADS]);
    for (int64_t unit = BLOCK; unit < units; unit += BLOCKS) {
        const int64_t at = unit * (int64_t)sizeof(int64_t);
        OPERAND_IN_PLACE x;
        int64_t begin = 0, end, count;
        TAKE_LIST_OF(unit)
        add_up(sums, count_own(x, (unit - begin) * span * CHUNK, count, span));
        if (OWN == 0) {
            STORE(int64_t, PLACE_OF(counts), at, sums[THREADS - 1]);
            STORE(int64_t, PLACE_OF(told), at, sums[THREADS - 1]);
        }
    }
}

#undef LIST
#undef TAKE
#define LIST(i)                                                                                    \
    GIVEN(OPERAND, x##i), GIVEN(RESULT, y##i), int64_t end##i, int64_t count##i, int64_t columns##i
#define TAKE(i)                                                                                    \
    {                                                                                              \
        x = PLACE_OF(x##i);                                                                        \
        y = PLACE_OF(y##i);                                                                        \
        end = end##i;                                                                              \
        count = count##i;                                                                          \
        columns = columns##i;                                                                      \
    }

/* An element's number; of rows its row, and then, behind all rows, its column. */
SCALAR_FN void put(RESULT_IN_PLACE y, int64_t at, int64_t number, int64_t columns, int64_t found)
{
    STORE(int64_t, y, at * (int64_t)sizeof(int64_t), columns ? number / columns : number);
    if (columns)
        STORE(int64_t, y, (found + at) * (int64_t)sizeof(int64_t), number % columns);
}

/* Of each list as many coordinates as it has elements that are true. If nothing is counted, a unit
 * is all of its list, and the host is told here. */
KERNEL k4(LIST(0), LIST(1), LIST(2), LIST(3), LIST(4), LIST(5), LIST(6), LIST(7),
          GIVEN(OPERAND, counts), GIVEN(RESULT, told), int64_t units, int64_t span,
          int64_t is_counted)
{
    AFTER_OTHERS;
    SHARED(int64_t, sums[THREADS]);
    for (int64_t unit = BLOCK; unit < units; unit += BLOCKS) {
        OPERAND_IN_PLACE x;
        RESULT_IN_PLACE y;
        int64_t begin = 0, end, count, columns, before = 0, all = 0;
        TAKE_LIST_OF(unit)
        const int64_t first = (unit - begin) * span * CHUNK;
        for (int64_t other = begin + OWN; is_counted && other < end; other += THREADS) {
            const int64_t found = LOAD(int64_t, PLACE_OF(counts), other * (int64_t)sizeof(int64_t));
            all += found;
            before += other < unit ? found : 0;
        }
        if (!is_counted)
            all = count_own(x, first, count, span);
        add_up(sums, before);
        int64_t at = sums[THREADS - 1];
        add_up(sums, all);
        const int64_t found = sums[THREADS - 1];
        if (!is_counted && OWN == 0)
            STORE(int64_t, PLACE_OF(told), unit * (int64_t)sizeof(int64_t), found);
        for (int64_t chunk = 0; chunk < span; chunk++) {
            const int64_t own_first = first + chunk * CHUNK + OWN * EACH;
            const int own = find(x, own_first, count, IS_TRUE);
            add_up(sums, count_bits(own));
            int64_t place = at + sums[OWN] - count_bits(own);
            at += sums[THREADS - 1];
            for (int e = 0; e < EACH; e++)
                if (own >> e & 1)
                    put(y, place++, own_first + e, columns, found);
        }
    }
}
