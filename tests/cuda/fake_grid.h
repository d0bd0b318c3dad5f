/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stands behind the shim's prelude (codegen/clike/shim.h) where the fake driver compiles a
 * text: which threads there are is told by the launch, and not by the shim. A block is 32 threads
 * in x, which the shim's loops over lanes are where they share a row; there the first of them is
 * all. Where threads meet (FAKE_MEETS, which is 0 or 1), they are the driver's fibers, a block at a
 * time; elsewhere they run one after the other.
 */
#include "tests/cuda/fake_threads.h"

#undef IN_PART
#undef OF_PART
#undef EACH_GROUP
#undef EACH_TRIP
#undef IN_STAGE
#undef END_STAGE
#undef PART_THREAD
#undef PART_THREADS
#undef EACH_WARP_OF_PART
#undef EACH_ROW_OF_TILE
#undef SHARED
#undef SHARED_PLACE
#undef MEET
#undef FIRST_PATCH
#undef PATCHES_AT_ONCE
#undef BLOCK_THREAD
#undef BLOCK_THREADS
/* No launch has these. */
#undef EACH_ROW
#undef EACH_ELEMENT
#undef EACH_COLUMN
#undef EACH_WARP

enum { FAKE_WIDTH = 32 };

/* Of the thread that runs. */
static int64_t fake_block, fake_blocks, fake_height, fake_y;
static int fake_x;

#define IN_PART(begin, end) (fake_block >= (begin) && fake_block < (end))
#define OF_PART(begin, end) fake_block - (begin), (end) - (begin)
#define EACH_GROUP(group, groups)                                                                  \
    for (int64_t group = fake_block; group < (groups); group += fake_blocks)
#define EACH_TRIP(trip, trips) for (int64_t trip = 0; trip < (trips); trip++)
#define IN_STAGE(stage)
#define END_STAGE MEET
#define PART_THREAD ((block * fake_height + fake_y) * FAKE_WIDTH + fake_x)
#define PART_THREADS (blocks * fake_height * FAKE_WIDTH)
#define EACH_WARP_OF_PART(r, rows)                                                                 \
    for (index_t r = fake_x ? (rows) : block * fake_height + fake_y; r < (rows);                   \
         r += blocks * fake_height)

#define FIRST_PATCH block
#define PATCHES_AT_ONCE blocks
#define BLOCK_THREAD ((int)fake_y * FAKE_WIDTH + fake_x)
#define BLOCK_THREADS ((int)fake_height * FAKE_WIDTH)

/* The first group's thread does what all of them do. */
#define EACH_ROW_OF_TILE(r, rows, shift)                                                           \
    for (index_t of_tile = fake_y * FAKE_WIDTH + fake_x,                                           \
                 r = of_tile >> (shift) ? (rows) : (block << (shift)) + of_tile;                   \
         r < (rows); r += blocks << (shift))

/* A block's row: lanes of the first warp are threads. */
#define EACH_ROW_OF_BLOCK(r, rows) for (index_t r = block; r < (rows); r += blocks)
#define TELL_BLOCK(type, name, combine, lanes)                                                     \
    SHARED(type, all_of_##lanes[FAKE_WIDTH]);                                                      \
    if (WARP == 0)                                                                                 \
        all_of_##lanes[LANE] = lanes;                                                              \
    MEET;                                                                                          \
    type of_##lanes[FAKE_WIDTH];                                                                   \
    memcpy(of_##lanes, all_of_##lanes, sizeof of_##lanes);                                         \
    REDUCE_LANES(type, name, combine, of_##lanes)

/* ---- Texts that are kernels ------------------------------------------------------------------ */

static const struct fake_meeting *fake_meeting_of_driver;

/* In loops over lanes it is a variable of theirs. */
#define LANE fake_x
#define BLOCK fake_block
#define BLOCKS fake_blocks
#define WARP ((int)fake_y)
#define SHARED(type, name) static type name __attribute__((section("fake_shared")))
#define SHARED_PLACE(type) type *
#define MEET fake_meeting_of_driver->wait(__LINE__)
#define MEET_IN_MEMORY MEET
/* Of the one that decides conditional nodes (kernels/cuda). */
#define SET_CONDITION(handle, value)                                                               \
    fake_meeting_of_driver->set_condition((uint64_t)(handle), (unsigned)(value))
#define MEMORY_AT(address) fake_memory(address)

/* All that blocks share, of all kernels of the text, with what the sanitizer has between. */
extern char __start_fake_shared[] __attribute__((weak, visibility("hidden")));
extern char __stop_fake_shared[] __attribute__((weak, visibility("hidden")));

__attribute__((no_sanitize_address)) static inline void fake_fill_shared(void)
{
    for (volatile char *byte = __start_fake_shared; byte < __stop_fake_shared; byte++)
        *byte = -1;
}

/* ---- Launches -------------------------------------------------------------------------------- */

/* Who has turn number `turn` of `count`, which is a power of 2 times less than 10^9. */
static inline int64_t fake_turn(int64_t turn, int64_t count)
{
    const int64_t odd = 1000000007; /* a prime */
    if (shim_order == SHIM_FORWARD)
        return turn;
    return shim_order == SHIM_BACKWARD ? count - 1 - turn
                                       : (turn % count * (odd % count) + 3) % count;
}

/* Parameters: addresses are those of the host's memory, and a bit; numbers are no less. */
static inline char *fake_memory(int64_t value)
{
    const int64_t first = (int64_t)1 << 60;
    return (char *)(value >= first ? value - first : value);
}

static inline void fake_become(int64_t thread)
{
    fake_y = thread / FAKE_WIDTH;
    fake_x = (int)(thread % FAKE_WIDTH);
}

static inline void fake_run_all(void (*run)(const int64_t *), const int64_t *p)
{
    const int64_t count = fake_blocks * fake_height * FAKE_WIDTH;
    for (int64_t turn = 0; turn < count; turn++) {
        const int64_t thread = fake_turn(turn, count);
        fake_block = thread / FAKE_WIDTH / fake_height;
        fake_become(thread % (FAKE_WIDTH * fake_height));
        run(p);
    }
}

static inline bool fake_run_blocks(void (*run)(const int64_t *), const int64_t *p)
{
    const struct fake_threads threads = {(int)fake_height * FAKE_WIDTH, fake_turn, fake_become, run,
                                         p};
    bool good = true;
    for (int64_t turn = 0; good && turn < fake_blocks; turn++) {
        fake_block = fake_turn(turn, fake_blocks);
        fake_fill_shared();
        good = fake_meeting_of_driver->run(&threads);
    }
    return good;
}

/* Runs all threads of a launch; false: they do not meet where they should. */
#define FAKE_LAUNCH(name, ...)                                                                     \
    static void name##_thread(const int64_t *p)                                                    \
    {                                                                                              \
        name(__VA_ARGS__);                                                                         \
    }                                                                                              \
    bool name##_launch(const int64_t *p, int64_t blocks, int64_t height, int order,                \
                       const struct fake_meeting *meeting);                                        \
    bool name##_launch(const int64_t *p, int64_t blocks, int64_t height, int order,                \
                       const struct fake_meeting *meeting)                                         \
    {                                                                                              \
        shim_order = order;                                                                        \
        fake_blocks = blocks;                                                                      \
        fake_height = height;                                                                      \
        fake_meeting_of_driver = meeting;                                                          \
        if (FAKE_MEETS)                                                                            \
            return fake_run_blocks(name##_thread, p);                                              \
        fake_run_all(name##_thread, p);                                                            \
        return true;                                                                               \
    }
