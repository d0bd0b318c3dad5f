/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the preludes of all dialects end with: the order of ir/reduction.def. One thread has a lane,
 * or a column: 64 steps are combined one after the other, and what they come to in levels, by 64,
 * 64 times 64, ... What is left of a level that has not been begun is the identity.
 */
#define LANE_COUNT 32
#define RADIX 64
#define LEVEL_COUNT 7 /* enough for 2^53 elements */

/* Numbers of rows and elements that a launch has, and what they are computed of; a part of a
 * narrow launch says that it has 32 bits. */
typedef int64_t index_t;

#define BEGIN_LEVELS(type, sum, levels, identity)                                                  \
    type sum = identity, levels[LEVEL_COUNT];                                                      \
    UNROLL for (int level = 0; level < LEVEL_COUNT; level++) levels[level] = identity

/* Group number `groups`, counted from 1, is complete. */
#define CARRY(combine, sum, levels, identity, groups)                                              \
    do {                                                                                           \
        index_t left = groups;                                                                     \
        UNROLL for (int level = 0; level < LEVEL_COUNT; level++)                                   \
        {                                                                                          \
            sum = combine(levels[level], sum);                                                     \
            if (left % RADIX) {                                                                    \
                levels[level] = sum;                                                               \
                break;                                                                             \
            }                                                                                      \
            levels[level] = identity;                                                              \
            left /= RADIX;                                                                         \
        }                                                                                          \
        sum = identity;                                                                            \
    } while (0)

/* So many steps are combined. */
#define JOIN_LEVELS(combine, sum, levels, steps)                                                   \
    if ((steps) >= RADIX)                                                                          \
    UNROLL for (int level = 0; level < LEVEL_COUNT; level++) sum = combine(levels[level], sum)

/* A row's number that is counted from the end where it is negative. */
#define ROW_OF(number, count) ((number) < 0 ? (number) + (count) : (number))

/* What a thread does of a part of a launch. */
#define EACH_THREAD(i, n) EACH_THREAD_FROM(PART_THREAD, i, n)
#define EACH_THREAD_FROM(first, i, n) for (index_t i = first; i < (n); i += PART_THREADS)
/* Or `each` of its elements at a time, from `first` on, while there are as many. */
#define EACH_TIME_OF_THREAD(first, n, each)                                                        \
    index_t first = PART_THREAD;                                                                   \
    UNROLL_BY(1) for (; first + ((each)-1) * PART_THREADS < (n); first += (each)*PART_THREADS)
#define OF_TIME(first, next) (first) + (next)*PART_THREADS

/*
 * The terms of a group of a tile, from GROUP on, as many steps of GROUPS from each other as there
 * are groups: `each` of them are read before the first is needed, those behind the end among them,
 * which are none.
 */
#define EACH_TERM(first, n, shift, each)                                                           \
    for (index_t first = GROUP(shift); first < (n); first += GROUPS(shift) * (index_t)(each))      \
    UNROLL for (int term = 0; term < (each); term++)
#define TERM_FROM(first, shift) first + term *(index_t)GROUPS(shift)

/*
 * Patches of elements, of which some lookups are turned: 1 << shift neighbours, of which there are
 * `inner`, by as many as that leaves of `along`, each `inner` elements behind the one before. What
 * would be behind the end of either is no element. Threads go through a patch as it is turned, and
 * then as it is stored; `a` and `b` say where in it they are.
 */
#define PATCH_SHIFT 10
#define BEGIN_PATCHES(n, along, inner, shift)                                                      \
    const index_t patches_inner = (((inner)-1) >> (int)(shift)) + 1,                               \
                  patches_along = (((along)-1) >> (PATCH_SHIFT - (int)(shift))) + 1,               \
                  patches =                                                                        \
                      (n) > 0 ? (n) / ((along) * (inner)) * patches_along * patches_inner : 0
#define EACH_PATCH(patch)                                                                          \
    for (index_t patch = FIRST_PATCH; patch < patches; patch += PATCHES_AT_ONCE, MEET)
#define IN_PATCH(left) ((left) < 1 << PATCH_SHIFT ? (int)(left) : 1 << PATCH_SHIFT)
#define BEGIN_PATCH(patch, along, inner, shift)                                                    \
    const index_t patch_along = patch / patches_inner, patch_outer = patch_along / patches_along,  \
                  begin_inner = (patch - patch_along * patches_inner) << (int)(shift),             \
                  begin_along = (patch_along - patch_outer * patches_along)                        \
                                << (PATCH_SHIFT - (int)(shift)),                                   \
                  patch_begin = (patch_outer * (along) + begin_along) * (inner) + begin_inner;     \
    const int count_inner = IN_PATCH((inner)-begin_inner),                                         \
              count_along = IN_PATCH((along)-begin_along)
#define IS_IN_PATCH(a, b) ((a) < count_along && (b) < count_inner)
#define AT_PATCH(turn) ((turn)*BLOCK_THREADS + BLOCK_THREAD)
#define PATCH_AHEAD 4
#define EACH_TIME_OF_PATCH(first)                                                                  \
    for (int first = 0; first < (1 << PATCH_SHIFT) / BLOCK_THREADS; first += PATCH_AHEAD)
#define EACH_OF_PATCH(next, first, low, high, bits)                                                \
    UNROLL for (int next = first, low = 0, high = 0;                                               \
                low = AT_PATCH(next) & ((1 << (bits)) - 1), high = AT_PATCH(next) >> (bits),       \
                next < first + PATCH_AHEAD;                                                        \
                next++)
/* Some elements of each thread, as they are turned, and as they are stored: what is looked up of
 * all of them is read before the first is needed, so nothing is asked in between: in the place of
 * what is no element there is the patch's first one. */
#define EACH_ALONG(next, first, a, b, shift)                                                       \
    EACH_OF_PATCH(next, first, a, b, PATCH_SHIFT - (int)(shift))
#define EACH_INNER(next, first, a, b, shift) EACH_OF_PATCH(next, first, b, a, (int)(shift))
#define OF_PATCH_OR_FIRST(a, b, inner) IS_IN_PATCH(a, b) ? OF_PATCH(a, b, inner) : patch_begin
#define IF_IN_PATCH(a, b) if (IS_IN_PATCH(a, b))
#define OF_PATCH(a, b, inner) patch_begin + (a) * (inner) + (b)
/* In memory of the block, behind every 32 of which there is room for one more: threads that are
 * side by side are in different banks whichever way they go. */
#define SPOT_OF_PATCH(a, b, shift) ((((a) << (int)(shift)) + (b)) * 33 >> 5)
#define TURNED(type, words, a, b, shift)                                                           \
    ((SHARED_PLACE(type))(turned + (words)))[SPOT_OF_PATCH(a, b, shift)]

/* Of a whole, by number; outside of it there is nothing. */
#define IS_IN(number, count) ((uint64_t)(number) < (uint64_t)(count))
#define LOOK_UP(type, memory, number, count)                                                       \
    (IS_IN(number, count) ? LOAD(type, memory, (number) * (int64_t)sizeof(type)) : (type)0)
#define STORE_AT(type, memory, number, count, value)                                               \
    if (IS_IN(number, count))                                                                      \
    STORE(type, memory, (number) * (int64_t)sizeof(type), value)
/* Where there surely is something; the shim looks nevertheless. */
#define LOOK_UP_INSIDE(type, memory, number, count)                                                \
    (MUST_BE(IS_IN(number, count)), LOAD(type, memory, (number) * (int64_t)sizeof(type)))
#define STORE_INSIDE(type, memory, number, count, value)                                           \
    MUST_BE(IS_IN(number, count));                                                                 \
    STORE(type, memory, (number) * (int64_t)sizeof(type), value)
/* A number by a size. Nearly all are below 2^32, and to divide 64 bits takes several times as long.
 */
#define i64_BY_SIZE(number, size)                                                                  \
    (((uint64_t)(number) | (uint64_t)(size)) <= UINT32_MAX                                         \
         ? (int64_t)((uint32_t)(number) / ((uint32_t)(size) + ((size) == 0)))                      \
         : (number) / ((size) + ((size) == 0)))
/* The same of indices that 32 bits hold; by the first, of what is not negative. */
#define u32_BY_SIZE(number, size)                                                                  \
    ((int32_t)((uint32_t)(number) / ((uint32_t)(size) + ((size) == 0))))
#define i32_BY_SIZE(number, size) ((number) / ((size) + ((size) == 0)))
/* Who fails says so, and nobody else writes there. */
#define CHECK(holds)                                                                               \
    if (!(holds))                                                                                  \
    STORE(uint8_t, status, 0, 1)
