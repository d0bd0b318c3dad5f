/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conditional nodes of graphs, which are CUDA's alone: what a loop carries goes to where the next
 * iteration reads it, and then it is decided whether there is one. Numbers that are addresses are 0
 * where there is nothing.
 */

/* `size` bytes, by all threads; words where both begin at one. */
SCALAR_FN void move_bytes(int64_t to, int64_t from, int64_t size, int64_t step, int64_t number)
{
    char *target = MEMORY_AT(to + number * step);
    const char *source = MEMORY_AT(from);
    const int64_t words = (to | from | step) % 4 == 0 ? size / 4 : 0;
    for (int64_t i = THREAD; i < words; i += ALL_THREADS)
        STORE(uint32_t, target, 4 * i, LOAD(uint32_t, source, 4 * i));
    for (int64_t i = 4 * words + THREAD; i < size; i += ALL_THREADS)
        STORE(uint8_t, target, i, LOAD(uint8_t, source, i));
}

#define MOVE(i)                                                                                    \
    if (n_moves > (i))                                                                             \
    move_bytes(to##i, from##i, size##i, step##i, number)

/*
 * decides: this is one block, and sets the condition `handle`; else there may be more. begins: it
 * stands before the first iteration. count: where the number of the iteration is. go: where a bool
 * is that says whether there is another one, of `trips` at most. halts: where the host says that
 * there shall be none, which is far away, and looked at now and then.
 */
KERNEL k0(int64_t decides, int64_t handle, int64_t begins, int64_t count, int64_t go, int64_t trips,
          int64_t halts, int64_t n_moves, AXES(to), AXES(from), AXES(size), AXES(step))
{
    const int64_t number = begins ? 0 : LOAD(int64_t, MEMORY_AT(count), 0);
    MOVE(0);
    MOVE(1);
    MOVE(2);
    MOVE(3);
    MOVE(4);
    MOVE(5);
    MOVE(6);
    MOVE(7);
    if (!decides)
        return;
    MEET_IN_MEMORY;
    if (THREAD == 0) {
        const int64_t next = begins ? 0 : number + 1;
        const int looks = halts && next % 256 == 255;
        const int goes = next < trips && (!go || LOAD(uint8_t, MEMORY_AT(go), 0)) &&
                         !(looks && LOAD(int64_t, MEMORY_AT(halts), 0));
        if (count)
            STORE(int64_t, MEMORY_AT(count), 0, next);
        SET_CONDITION(handle, goes);
    }
}
