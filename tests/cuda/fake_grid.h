/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stands behind the shim's prelude (codegen/clike/shim.h) where the fake driver compiles a
 * text: which threads there are is told by the launch, and not by the shim. A block is 32 threads
 * in x, which the shim's loops over lanes are where they share a row; there the first of them is
 * all.
 */
#undef DO_PART
#undef EACH_THREAD
#undef EACH_WARP_OF_PART
/* No launch has these. */
#undef EACH_ROW
#undef EACH_ELEMENT
#undef EACH_COLUMN
#undef EACH_WARP

enum { FAKE_WIDTH = 32 };

static _Thread_local int64_t fake_block, fake_height, fake_y;
static _Thread_local int fake_x;

#define DO_PART(begin, end, part, ...)                                                             \
    if (fake_block >= (begin) && fake_block < (end))                                               \
    part(__VA_ARGS__, fake_block - (begin), (end) - (begin))
#define EACH_THREAD(i, n)                                                                          \
    for (int64_t i = (block * fake_height + fake_y) * FAKE_WIDTH + fake_x; i < (n);                \
         i += blocks * fake_height * FAKE_WIDTH)
#define EACH_WARP_OF_PART(r, rows)                                                                 \
    for (int64_t r = fake_x ? (rows) : block * fake_height + fake_y; r < (rows);                   \
         r += blocks * fake_height)

/* Who has turn number `turn` of `count`, which is a power of 2 times less than 2^31. */
static inline int64_t fake_turn(int64_t turn, int64_t count)
{
    const int64_t odd = 2147483647; /* a prime */
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

/* Runs all threads of a launch. */
#define FAKE_LAUNCH(name, ...)                                                                     \
    void name##_launch(const int64_t *p, int64_t grid, int64_t height, int order);                 \
    void name##_launch(const int64_t *p, int64_t grid, int64_t height, int order)                  \
    {                                                                                              \
        const int64_t count = grid * height * FAKE_WIDTH;                                          \
        shim_order = order;                                                                        \
        fake_height = height;                                                                      \
        for (int64_t turn = 0; turn < count; turn++) {                                             \
            const int64_t thread = fake_turn(turn, count);                                         \
            fake_block = thread / FAKE_WIDTH / height;                                             \
            fake_y = thread / FAKE_WIDTH % height;                                                 \
            fake_x = (int)(thread % FAKE_WIDTH);                                                   \
            name(__VA_ARGS__);                                                                     \
        }                                                                                          \
    }
