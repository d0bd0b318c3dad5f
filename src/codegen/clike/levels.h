/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the preludes of all dialects end with: the order of ir/reduction.def. One thread has a lane,
 * or a column: 64 steps are combined one after the other, and what they come to in levels, by 64,
 * 64 times 64, ... What is left of a level that has not been begun is the identity.
 */
#define LANE_COUNT 32
#define RADIX 64
#define LEVEL_COUNT 7 /* enough for 2^53 elements */

#define BEGIN_LEVELS(type, sum, levels, identity)                                                  \
    type sum = identity, levels[LEVEL_COUNT];                                                      \
    UNROLL for (int level = 0; level < LEVEL_COUNT; level++) levels[level] = identity

/* Group number `groups`, counted from 1, is complete. */
#define CARRY(combine, sum, levels, identity, groups)                                              \
    do {                                                                                           \
        int64_t left = groups;                                                                     \
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
#define EACH_THREAD_FROM(first, i, n) for (int64_t i = first; i < (n); i += PART_THREADS)
/* Or `each` of its elements at a time, from `first` on, while there are as many. */
#define EACH_TIME_OF_THREAD(first, n, each)                                                        \
    int64_t first = PART_THREAD;                                                                   \
    UNROLL_BY(1) for (; first + ((each)-1) * PART_THREADS < (n); first += (each)*PART_THREADS)
#define OF_TIME(first, next) (first) + (next)*PART_THREADS

/*
 * The terms of a group of a tile, from GROUP on, as many steps of GROUPS from each other as there
 * are groups: `each` of them are read before the first is needed, those behind the end among them,
 * which are none.
 */
#define EACH_TERM(first, n, shift, each)                                                           \
    for (int64_t first = GROUP(shift); first < (n); first += GROUPS(shift) * (int64_t)(each))      \
    UNROLL for (int term = 0; term < (each); term++)
#define TERM_FROM(first, shift) first + term *(int64_t)GROUPS(shift)

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
/* Who fails says so, and nobody else writes there. */
#define CHECK(holds)                                                                               \
    if (!(holds))                                                                                  \
    STORE(uint8_t, status, 0, 1)
