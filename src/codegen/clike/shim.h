/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The prelude of the shim: a kernel in C, whose threads run one after the other, in an order that
 * is chosen. Threads meet where lanes are reduced, and there alone, so what lanes do between two
 * such places is a loop over them.
 */
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define KERNEL static void
#define KERNEL_FOR(threads, blocks) KERNEL
#define KERNEL_THAT_COMBINES KERNEL
#define KERNEL_THAT_TURNS KERNEL
#define OPERAND const char *restrict
#define RESULT char *restrict
#define OPERAND_IN_PLACE const char *
#define RESULT_IN_PLACE char *
#define LOAD(type, memory, offset) (*(const type *)((memory) + (offset)))
/* Of what is no memory, how many elements it is behind GIR_POSITIONS_AT. */
#define PLACE(type, memory, offset)                                                                \
    ((type)(((int64_t)(memory) + (offset) - ((int64_t)1 << 46)) / (int64_t)sizeof(type)))
#define STORE(type, memory, offset, value) (*(type *)((memory) + (offset)) = (value))

#define MUST_BE(holds) ((holds) ? (void)0 : __builtin_trap())

/* Few, so that each has several elements or rows, and columns of no power of two. */
enum { SHIM_WIDTH = 7, SHIM_HEIGHT = 3, SHIM_THREADS = SHIM_WIDTH * SHIM_HEIGHT };
enum { SHIM_FORWARD, SHIM_BACKWARD, SHIM_SHUFFLED };

static int shim_order; /* of all that run */
static _Thread_local int shim_thread;
static _Thread_local uint32_t shim_stage; /* 0: there are none */
static _Thread_local int64_t shim_group, shim_trip;

void shim_set_order(int order);
void shim_set_order(int order)
{
    shim_order = order;
}

/* Who has turn number `turn` of `count`, which is no multiple of 5. */
static inline int shim_turn(int turn, int count)
{
    if (shim_order == SHIM_FORWARD)
        return turn;
    return shim_order == SHIM_BACKWARD ? count - 1 - turn : (turn * 5 + 3) % count;
}

#define EACH_ROW(r, rows) for (int64_t r = shim_thread / SHIM_WIDTH; r < (rows); r += SHIM_HEIGHT)
#define EACH_ELEMENT(i, n) for (int64_t i = shim_thread % SHIM_WIDTH; i < (n); i += SHIM_WIDTH)
#define EACH_COLUMN(i, n) for (int64_t i = shim_thread; i < (n); i += SHIM_THREADS)
#define EACH_WARP(r, rows) for (index_t r = shim_thread; r < (rows); r += SHIM_THREADS)

/* What a launch is given: memory, and where in it the part's begins. */
#define GIVEN(kind, name) kind name
#define PLACE_OF(name) name
#define AFTER_OTHERS
#define BEGIN_LAUNCH(reductions)
/* All threads are in all parts of a launch. */
#define PART_PARAMS index_t block, index_t blocks
#define PART static void
#define IN_PART(begin, end) true
#define OF_PART(begin, end) begin, end
/* All threads are in one stage at a time, of one group and iteration. */
#define EACH_GROUP(group, groups)                                                                  \
    for (int64_t group = shim_group; group == shim_group && group < (groups); group++)
#define EACH_TRIP(trip, trips)                                                                     \
    for (int64_t trip = shim_trip; trip == shim_trip && trip < (trips); trip++)
#define IN_STAGE(stage) if (shim_stage == (stage))
#define END_STAGE
#define OF_GROUP 0, 1
#define PART_THREAD shim_thread
#define PART_THREADS SHIM_THREADS
#define EACH_WARP_OF_PART(r, rows) EACH_WARP(r, rows)

/* Tiles are of one row, of which lanes are the groups. */
#define EACH_ROW_OF_TILE(r, rows, shift) EACH_WARP(r, rows)
#define GROUP(shift) ((void)(shift), LANE)
#define GROUPS(shift) LANE_COUNT
#define FIRST_GROUP(r, rows, shift)
#define SHARE_GROUPS(type, combine, sums, number, shift)
#define MEET_GROUPS
#define JOIN_GROUPS(type, name, combine, sums, number, shift)                                      \
    REDUCE_LANES(type, name, combine, sums)

/* A thread does all of a patch. */
#define SHARED(type, name) type name
#define SHARED_PLACE(type) type *
#define MEET (void)0
#define FIRST_PATCH shim_thread
#define PATCHES_AT_ONCE SHIM_THREADS
#define BLOCK_THREAD 0
#define BLOCK_THREADS 1

#define LANES(type, name) type name[LANE_COUNT]
#define OF_LANE(name) name[LANE]
#define EACH_LANE                                                                                  \
    for (int turn = 0, LANE = shim_turn(0, LANE_COUNT); turn < LANE_COUNT;                         \
         LANE = shim_turn(++turn, LANE_COUNT))
#define FIRST_LANE
#define UNROLL
#define UNROLL_BY(n)
#define REDUCE_LANES(type, name, combine, lanes)                                                   \
    for (int others = LANE_COUNT / 2; others > 0; others /= 2)                                     \
        for (int lane = 0; lane < others; lane++)                                                  \
            lanes[lane] = combine(lanes[lane], lanes[lane + others]);                              \
    const type name = lanes[0]

/* Group number `turn` of all: who has one does all iterations before the next group begins. */
static inline int64_t shim_group_of(int64_t turn, int64_t groups)
{
    if (shim_order == SHIM_FORWARD)
        return turn;
    if (shim_order == SHIM_BACKWARD)
        return groups - 1 - turn;
    return turn % 2 ? turn - 1 : turn + 1 < groups ? turn + 1 : turn;
}

/* All of a stage. */
#define RUN_THREADS(name, ...)                                                                     \
    for (int turn = 0; turn < SHIM_THREADS; turn++) {                                              \
        shim_thread = shim_turn(turn, SHIM_THREADS);                                               \
        name(__VA_ARGS__);                                                                         \
    }

/* The kernel as a codegen_run. */
#define LAUNCHER(name, ...) LAUNCHER_OF(name, shim_stage = 0; RUN_THREADS(name, __VA_ARGS__))
#define LAUNCHER_OF_STAGES(last, name, ...)                                                        \
    LAUNCHER_OF(                                                                                   \
        name, for (int64_t group = 0; group < rows; group++) {                                     \
            shim_group = shim_group_of(group, rows);                                               \
            for (shim_trip = 0; shim_trip < n; shim_trip++)                                        \
                for (shim_stage = 1; shim_stage <= (last); shim_stage++)                           \
                    RUN_THREADS(name, __VA_ARGS__)                                                 \
        })
#define LAUNCHER_OF(name, ...)                                                                     \
    void name##_run(void *const *args, const int64_t *steps, int64_t rows, int64_t n,              \
                    const void *calls, void *scratch);                                             \
    void name##_run(void *const *args, const int64_t *steps, int64_t rows, int64_t n,              \
                    const void *calls, void *scratch)                                              \
    {                                                                                              \
        (void)args, (void)steps, (void)calls, (void)scratch;                                       \
        __VA_ARGS__                                                                                \
    }
