/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NonMaxSuppression in three launches, of one class in two. First each score's place among those of
 * its class that are candidates: how many of these are before it, as TopK has it. Then a block goes
 * through the candidates of a class in that order, as many at a time as it has threads: each thread
 * compares its box with all that are kept so far, and then the block goes through those that are
 * left, one after the other, of which each drops what overlaps it. Last, the rows of classes are
 * joined. Boxes are corners in order; the arithmetic is the CPU's (kernels/cpu/selection/nms.c),
 * operation by operation.
 */
#define AT(i) ((i) * (int64_t)sizeof(int64_t))
#define NO_CANDIDATE UINT32_MAX

struct box {
    T top, left, bottom, right, area;
};

/* Of a number and a NaN, the number. */
SCALAR_FN T least(T a, T b)
{
    return a < b || b != b ? a : b;
}

SCALAR_FN T most(T a, T b)
{
    return a > b || b != b ? a : b;
}

SCALAR_FN struct box box_at(OPERAND_IN_PLACE boxes, int64_t i, int64_t center)
{
    const int64_t at = 4 * i * (int64_t)sizeof(T), step = (int64_t)sizeof(T);
    const T a = LOAD(T, boxes, at), b = LOAD(T, boxes, at + step),
            c = LOAD(T, boxes, at + 2 * step), d = LOAD(T, boxes, at + 3 * step);
    struct box box;
    if (center) {
        const T half_width = c / 2, half_height = d / 2;
        box.top = b - half_height;
        box.left = a - half_width;
        box.bottom = b + half_height;
        box.right = a + half_width;
    } else {
        box.top = least(a, c);
        box.left = least(b, d);
        box.bottom = most(a, c);
        box.right = most(b, d);
    }
    box.area = (box.bottom - box.top) * (box.right - box.left);
    return box;
}

/* Without area, or with a NaN, it overlaps nothing. */
SCALAR_FN int overlap(struct box a, struct box b, T threshold)
{
    const T height = (a.bottom < b.bottom ? a.bottom : b.bottom) - (a.top > b.top ? a.top : b.top),
            width = (a.right < b.right ? a.right : b.right) - (a.left > b.left ? a.left : b.left),
            both = height * width;
    return a.area > 0 && b.area > 0 && height > 0 && width > 0 &&
           both / (a.area + b.area - both) > threshold;
}

/* Smaller for larger scores; NaN is no candidate. */
SCALAR_FN T_BITS key_of(T score, int64_t all_scores, T threshold)
{
    const T_BITS sign = (T_BITS)1 << 31, bits = BITS_OF(score);
    if (all_scores ? score != score : !(score > threshold))
        return NO_CANDIDATE;
    if (bits << 1 == 0)
        return ~sign; /* -0, too */
    return bits & sign ? bits : ~(bits | sign);
}

/* Of an element of a class; there are n. */
SCALAR_FN T_BITS key_at(OPERAND_IN_PLACE scores, int64_t c, int64_t n, int i, int64_t all_scores,
                        T threshold)
{
    return i < n ? key_of(LOAD(T, scores, (c * n + i) * (int64_t)sizeof(T)), all_scores, threshold)
                 : NO_CANDIDATE;
}

/* In `order`, a row of n + 1 for each class: its candidates, and at the end how many there are. */
KERNEL k0(GIVEN(OPERAND, scores), GIVEN(RESULT, order), int64_t classes, int64_t n,
          int64_t all_scores, int64_t threshold)
{
    AFTER_OTHERS;
    SHARED(T_BITS, keys[THREADS]);
    SHARED(int, counts[THREADS]);
    const int64_t groups = n / LANE_COUNT + 1;
    for (int64_t job = BLOCK; job < classes * groups; job += BLOCKS) {
        const int64_t c = job / groups;
        const int i = (int)(job % groups) * LANE_COUNT + LANE;
        const T_BITS key = key_at(PLACE_OF(scores), c, n, i, all_scores, OF_BITS(threshold));
        const int number = key == NO_CANDIDATE ? 0 : i; /* what is none counts the candidates */
        int before = 0;
        for (int first = 0; first < n; first += THREADS) {
            MEET;
            keys[OWN] = key_at(PLACE_OF(scores), c, n, first + OWN, all_scores, OF_BITS(threshold));
            MEET;
            before += count_before(keys, first, key, number);
        }
        before = add_warps(counts, before);
        if (WARP == 0 && key != NO_CANDIDATE)
            STORE(int64_t, PLACE_OF(order), AT(c * (n + 1) + before), i);
        if (WARP == 0 && i == n)
            STORE(int64_t, PLACE_OF(order), AT(c * (n + 1) + n), before);
    }
}

/* The next one that is left, from `o` on, or `there`; eight at a time are looked at, as bytes. */
SCALAR_FN int find_left(SHARED_PLACE(uint64_t) is_left, int o, int there)
{
    while (o < there) {
        const uint64_t rest = is_left[o / 8] >> 8 * (o % 8);
        if (rest & 0xff)
            return o;
        o = rest ? o + 1 : (o / 8 + 1) * 8;
    }
    return there;
}

SCALAR_FN void write_row(RESULT_IN_PLACE rows, int64_t row, int64_t batch, int64_t of_batch,
                         int64_t box)
{
    STORE(int64_t, rows, AT(3 * row), batch);
    STORE(int64_t, rows, AT(3 * row + 1), of_batch);
    STORE(int64_t, rows, AT(3 * row + 2), box);
}

/* Of each class `limit` rows, of which so many are kept as `counts` tells; the others are filled
 * with zeros where somebody reads them, too. */
KERNEL k1(GIVEN(OPERAND, boxes), GIVEN(OPERAND, order), GIVEN(RESULT, kept), GIVEN(RESULT, counts),
          int64_t all, int64_t classes, int64_t n, int64_t limit, int64_t center, int64_t threshold,
          int64_t fills)
{
    AFTER_OTHERS;
    SHARED(struct box, tile[THREADS]);
    SHARED(uint64_t, all_left[THREADS / 8]);
    SHARED_PLACE(uint8_t) is_left = (SHARED_PLACE(uint8_t))all_left;
    for (int64_t c = BLOCK; c < all; c += BLOCKS) {
        const int64_t found = LOAD(int64_t, PLACE_OF(order), AT(c * (n + 1) + n)),
                      first_box = c / classes * n;
        int64_t count = 0;
        for (int64_t first = 0; first < found && count < limit; first += THREADS) {
            const int there = found - first < THREADS ? (int)(found - first) : THREADS;
            const int64_t index =
                OWN < there ? LOAD(int64_t, PLACE_OF(order), AT(c * (n + 1) + first + OWN)) : 0;
            const struct box own = box_at(PLACE_OF(boxes), first_box + index, center);
            int left = OWN < there;
            for (int64_t before = 0; before < count; before += THREADS) {
                const int others = count - before < THREADS ? (int)(count - before) : THREADS;
                MEET_IN_MEMORY;
                if (OWN < others)
                    tile[OWN] = box_at(PLACE_OF(boxes),
                                       first_box + LOAD(int64_t, PLACE_OF(kept),
                                                        AT(3 * (c * limit + before + OWN) + 2)),
                                       center);
                MEET;
                for (int o = 0; o < others && left; o++)
                    left = !overlap(own, tile[o], OF_BITS(threshold));
            }
            MEET;
            tile[OWN] = own;
            is_left[OWN] = (uint8_t)left;
            MEET;
            for (int o = find_left(all_left, 0, there); o < there && count < limit;
                 o = find_left(all_left, o + 1, there)) {
                MEET; /* all have looked */
                if (OWN == o)
                    write_row(PLACE_OF(kept), c * limit + count, c / classes, c % classes, index);
                else if (OWN > o && is_left[OWN] && overlap(own, tile[o], OF_BITS(threshold)))
                    is_left[OWN] = 0;
                count++;
                MEET;
            }
        }
        MEET;
        if (OWN == 0)
            STORE(int64_t, PLACE_OF(counts), AT(c), count);
        for (int64_t place = count + OWN; fills && place < limit; place += THREADS)
            write_row(PLACE_OF(kept), c * limit + place, 0, 0, 0);
    }
}

/* The rows of all classes, one behind the other. */
KERNEL k2(GIVEN(OPERAND, kept), GIVEN(OPERAND, counts), GIVEN(RESULT, y), int64_t all,
          int64_t limit)
{
    AFTER_OTHERS;
    for (int64_t i = THREAD; i < all * limit * 3; i += ALL_THREADS) {
        const int64_t c = i / 3 / limit, place = i / 3 % limit,
                      row = LOAD(int64_t, PLACE_OF(counts), AT(c)) + place;
        if (row < LOAD(int64_t, PLACE_OF(counts), AT(c + 1)))
            STORE(int64_t, PLACE_OF(y), AT(3 * row + i % 3), LOAD(int64_t, PLACE_OF(kept), AT(i)));
    }
}
