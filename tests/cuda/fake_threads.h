/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads of a block that meet at barriers: what the fake driver has for the texts that it compiles
 * (fake_grid.h). Each of them is a fiber, with a stack of its own, and runs until it waits or ends.
 */
#ifndef TSSA_TESTS_CUDA_FAKE_THREADS_H
#define TSSA_TESTS_CUDA_FAKE_THREADS_H

#include <stdbool.h>
#include <stdint.h>

enum { FAKE_MOST_THREADS = 1024 }; /* of a block */

struct fake_threads {
    int count;
    int64_t (*turn)(int64_t turn, int64_t count); /* who has which turn, before each barrier */
    void (*become)(int64_t thread);               /* it is this one that runs from here on */
    void (*run)(const int64_t *arguments);
    const int64_t *arguments;
};

struct fake_meeting {
    /* Runs all threads to their ends; false: some wait at another barrier than others, or at one
     * that others have not come to. */
    bool (*run)(const struct fake_threads *threads);
    /* Of a thread: waits at the barrier of this line until all others do. */
    void (*wait)(int line);
    /* Of a graph's conditional node. */
    void (*set_condition)(uint64_t handle, unsigned value);
};

extern const struct fake_meeting fake_meeting;

#endif
