/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Groups of equal items, which are elements, or slices along an axis: lists of elements in a tensor
 * [outer, count, inner]. Items are sorted by their numbers, first in runs, of which a block has
 * one, then runs are merged, some at a time. Where an item differs from the one before it a group
 * begins. Which places these are is found by the text that finds what is not zero (keep.h); the
 * last launch here tells of each group the first item and how many it has, and of each item its
 * group.
 */
#define OWN (WARP * LANE_COUNT + LANE)
#define AT(i) ((i) * (int64_t)sizeof(int64_t))
#define MERGED 4 /* runs: as unique.c has it */

struct items {
    OPERAND_IN_PLACE x;
    int64_t outer, count, inner;
};

SCALAR_FN struct items items_of(OPERAND_IN_PLACE x, int64_t outer, int64_t count, int64_t inner)
{
    struct items items;
    items.x = x;
    items.outer = outer;
    items.count = count;
    items.inner = inner;
    return items;
}

SCALAR_FN T_BITS key_at(struct items items, int64_t i)
{
#ifdef T_IS_FLOAT
    return key_of(LOAD_T(items.x, i), 0);
#else
    return key_of(LOAD(T, items.x, i * (int64_t)sizeof(T)), 0);
#endif
}

/* Below 0: a comes before b; above: behind it. 0: they are equal. */
SCALAR_FN int compare(struct items items, int64_t a, int64_t b)
{
    for (int64_t outer = 0; outer < items.outer; outer++)
        for (int64_t i = 0; i < items.inner; i++) {
            const int64_t first = outer * items.count;
            const T_BITS of_a = key_at(items, (first + a) * items.inner + i),
                         of_b = key_at(items, (first + b) * items.inner + i);
            if (of_a != of_b)
                return of_a < of_b ? -1 : 1;
        }
    return 0;
}

/* Of equal items the one with the lower number is first. */
SCALAR_FN int is_before(struct items items, int64_t a, int64_t b)
{
    const int order = compare(items, a, b);
    return order ? order < 0 : a < b;
}

/* Runs of as many items as a block has threads. Most are told apart by their first elements, which
 * are in the block's memory. */
KERNEL k0(GIVEN(OPERAND, x), int64_t outer, int64_t count, int64_t inner, GIVEN(RESULT, order))
{
    AFTER_OTHERS;
    SHARED(T_BITS, keys[THREADS]);
    const struct items items = items_of(PLACE_OF(x), outer, count, inner);
    const int64_t elements = outer * inner;
    for (int64_t first = BLOCK * THREADS; first < count; first += BLOCKS * THREADS) {
        const int64_t item = first + OWN, left = count - first;
        const int others = item >= count ? 0 : left < THREADS ? (int)left : THREADS;
        int before = 0;
        MEET;
        keys[OWN] = item < count && elements > 0 ? key_at(items, item * inner) : 0;
        MEET;
        for (int other = 0; other < others; other++)
            if (keys[other] < keys[OWN])
                before++;
            else if (keys[other] == keys[OWN])
                before += elements > 1 ? is_before(items, first + other, item) : other < OWN;
        if (item < count)
            STORE(int64_t, PLACE_OF(order), AT(first + before), item);
    }
}

/* How many of a run from `begin` on come before the item. */
SCALAR_FN int64_t count_before(struct items items, OPERAND_IN_PLACE order, int64_t begin,
                               int64_t end, int64_t item)
{
    int64_t low = begin, high = end;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (is_before(items, LOAD(int64_t, order, AT(middle)), item))
            low = middle + 1;
        else
            high = middle;
    }
    return low - begin;
}

/* Runs become one of MERGED: an item's place is how many are before it in each of them. */
KERNEL k1(GIVEN(OPERAND, x), int64_t outer, int64_t count, int64_t inner, GIVEN(OPERAND, from),
          GIVEN(RESULT, to), int64_t run)
{
    AFTER_OTHERS;
    const struct items items = items_of(PLACE_OF(x), outer, count, inner);
    for (int64_t i = THREAD; i < count; i += ALL_THREADS) {
        const int64_t item = LOAD(int64_t, PLACE_OF(from), AT(i)), own = i / run * run,
                      first = i / (MERGED * run) * (MERGED * run);
        int64_t place = first + i - own;
        for (int other = 0; other < MERGED; other++) {
            const int64_t begin = first + other * run,
                          end = begin + run < count ? begin + run : count;
            if (begin != own)
                place += begin < end ? count_before(items, PLACE_OF(from), begin, end, item) : 0;
        }
        STORE(int64_t, PLACE_OF(to), AT(place), item);
    }
}

/* 1 where a group begins, for each place in order; if groups are not to be sorted, behind these for
 * each item, too. */
KERNEL k2(GIVEN(OPERAND, x), int64_t outer, int64_t count, int64_t inner, GIVEN(OPERAND, order),
          GIVEN(RESULT, begins), int64_t sorted)
{
    AFTER_OTHERS;
    const struct items items = items_of(PLACE_OF(x), outer, count, inner);
    for (int64_t i = THREAD; i < count; i += ALL_THREADS) {
        const int64_t item = LOAD(int64_t, PLACE_OF(order), AT(i));
        const int begin =
            i == 0 || compare(items, LOAD(int64_t, PLACE_OF(order), AT(i - 1)), item) != 0;
        STORE(uint8_t, PLACE_OF(begins), i, (uint8_t)begin);
        if (!sorted)
            STORE(uint8_t, PLACE_OF(begins), count + item, (uint8_t)begin);
    }
}

/* Of numbers that ascend the last one that is no more than this; the first one is not. */
SCALAR_FN int64_t find_last(OPERAND_IN_PLACE numbers, int64_t first, int64_t count, int64_t most)
{
    int64_t low = 0, high = count;
    while (high - low > 1) {
        const int64_t middle = low + (high - low) / 2;
        if (LOAD(int64_t, numbers, AT(first + middle)) <= most)
            low = middle;
        else
            high = middle;
    }
    return low;
}

#define WITH_FIRST 1
#define WITH_GROUPS 2
#define WITH_MEMBERS 4

/* `begins` are numbers of what k2 has set: places where groups begin, and behind them, if groups
 * are not sorted, their first items, which order groups then. */
KERNEL k3(GIVEN(OPERAND, order), GIVEN(OPERAND, begins), GIVEN(RESULT, firsts),
          GIVEN(RESULT, group_of), GIVEN(RESULT, members), int64_t count, int64_t groups,
          int64_t sorted, int64_t with)
{
    AFTER_OTHERS;
    for (int64_t i = THREAD; i < count; i += ALL_THREADS) {
        const int64_t item = LOAD(int64_t, PLACE_OF(order), AT(i)),
                      found = find_last(PLACE_OF(begins), 0, groups, i),
                      begin = LOAD(int64_t, PLACE_OF(begins), AT(found));
        int64_t group = found, end = count;
        if (!sorted)
            group = find_last(PLACE_OF(begins), groups, groups,
                              count + LOAD(int64_t, PLACE_OF(order), AT(begin)));
        if (found + 1 < groups)
            end = LOAD(int64_t, PLACE_OF(begins), AT(found + 1));
        if (with & WITH_GROUPS)
            STORE(int64_t, PLACE_OF(group_of), AT(item), group);
        if (i == begin && with & WITH_FIRST)
            STORE(int64_t, PLACE_OF(firsts), AT(group), item);
        if (i == begin && with & WITH_MEMBERS)
            STORE(int64_t, PLACE_OF(members), AT(group), end - begin);
    }
}
