/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stand-ins for CUDA's driver and libraries, so that what is done with them runs, under the
 * sanitizers too, where there is no card. All of them are one shared library with several names.
 * Each file is a room of it:
 *
 *     fake.c            failures on demand, what is alive
 *     fake_driver.c     the device and its context
 *     fake_memory.c     memory, which is the host's, and is checked
 *     fake_streams.c    streams, which do nothing until somebody waits, and events
 *     fake_graphs.c     captured graphs, run in a random order that their edges allow
 *     fake_modules.c    machine code, which is the source, and launches
 *     fake_kernels.c    what the kernels of cuda_probe do
 *     fake_compiler.c   kernels that tssa prints, by the C compiler
 *     fake_threads.c    threads of a block that meet
 *     fake_ranges.c     NVTX
 *     fake_nvrtc.c, fake_libraries.c, fake_cudnn.c
 *
 * Environment, read at each call:
 *
 *     FAKE_CUDA_FAIL=FUNCTION:CODE   the function returns an error; with `crash` or `hang` for the
 *                                    code it does that. `kernel`: what kernels end with, which who
 *                                    waits is told, and everybody after that
 *     FAKE_CUDA_ORDER=N              threads run forward (0), backward (1), or shuffled (2)
 *     FAKE_CUDA_COMPUTES=0           convolutions of cuDNN only write where their result begins
 *     FAKE_CUDA_DEVICES=N            how many cards there are, 1
 *     FAKE_CUDA_VERSION=N            the driver's, 13000
 *     FAKE_CUDA_CAPABILITY=N         the cards' compute capability, 90
 *
 * With FAKE_CUDA_OLD defined, functions for conditional nodes are missing.
 */
#ifndef TSSA_TESTS_CUDA_FAKE_H
#define TSSA_TESTS_CUDA_FAKE_H

#include <stdbool.h>
#include <string.h>

#include "device/cuda/cuda_api.h"
#include "tests/cuda/fake_threads.h"

#define EXPORT __attribute__((visibility("default")))
/* Defines a function of a library, with its prototype. */
#define FAKE(name, ...)                                                                            \
    EXPORT unsigned name(__VA_ARGS__);                                                             \
    unsigned name(__VA_ARGS__)

enum {
    FAKE_OK = 0,
    FAKE_INVALID_VALUE = 1,
    FAKE_OUT_OF_MEMORY = 2,
    FAKE_NOT_INITIALIZED = 3,
    FAKE_INVALID_IMAGE = 200,
    FAKE_INVALID_CONTEXT = 201,
    FAKE_INVALID_HANDLE = 400,
    FAKE_NOT_FOUND = 500,
    FAKE_NOT_READY = 600,
    FAKE_ILLEGAL_ADDRESS = 700,
    FAKE_LAUNCH_FAILED = 719,
    FAKE_CAPTURE_UNSUPPORTED = 900
};

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition))                                                                          \
            return FAKE_INVALID_VALUE;                                                             \
    } while (0)

/* ---- fake.c ---------------------------------------------------------------------------------- */

/* One thread at a time is in the libraries. */
struct fake_guard {
    char unused;
};
struct fake_guard fake_enter(void);
void fake_leave(struct fake_guard *guard);

/* What this call shall return instead of what it does; FAKE_OK: it does. */
unsigned fake_planned(const char *function);
/* By the environment alone: it is no call. */
unsigned fake_told(const char *function);

/* Begins a function. */
#define ENTER()                                                                                    \
    __attribute__((cleanup(fake_leave), unused)) struct fake_guard guard_ = fake_enter();          \
    const unsigned planned_ = fake_planned(__func__)
/* One that may fail, */
#define PLANNED()                                                                                  \
    ENTER();                                                                                       \
    if (planned_ != FAKE_OK)                                                                       \
    return planned_
/* and one of the driver that wants a context. */
#define IN_CONTEXT()                                                                               \
    PLANNED();                                                                                     \
    if (fake_context_state() != FAKE_OK)                                                           \
    return fake_context_state()

/* A number of the environment. */
unsigned fake_number(const char *name, unsigned otherwise);

/* Zeroed memory that is held until the process ends. */
void *fake_hold(size_t size);

/* What is handed out and not given back yet: changes that. */
void fake_count(int change);

/* For tests: how many calls there were that may fail; the number of one, from 0 on, that fails
 * with this code, and with it; what is alive. */
EXPORT unsigned long fake_calls(void);
EXPORT void fake_fail_at(unsigned long call, unsigned code);
EXPORT long fake_alive(void);
/* Ranges that were begun; how many of the thread's have not ended; the name of the latest one. */
EXPORT unsigned long fake_ranges(void);
EXPORT int fake_range_depth(void);
EXPORT const char *fake_latest_range(void);
/* This is called each time that somebody asks whether a stream is done; NULL: nothing is. */
EXPORT void fake_when_asked(void (*call)(void *data), void *data);

/* ---- The driver ------------------------------------------------------------------------------ */

/* Whether the thread has a context, and nothing in it has failed. */
unsigned fake_context_state(void);
/* Work has failed: so does all that follows, until nobody holds the context any more. */
void fake_break(unsigned code);
/* The thread's, of which memory, streams and kernels are that are made now. */
cuda_context fake_current(void);

/* Addresses are no pointers; what lies there, of memory that is alive and the
 * context's, or of the host's. NULL: it is not all in it. */
#define FAKE_FIRST_ADDRESS ((cuda_address)1 << 60)
void *fake_bytes(cuda_address address, size_t size);
bool fake_is_pinned(const void *memory);

/* What tensor cores make of it: 10 bits behind the point. */
static inline float fake_tf32(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits &= 0xffffe000u;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* What a stream does, or a node of a graph. */
struct fake_work {
    enum {
        FAKE_LAUNCH,
        FAKE_COPY,
        FAKE_FILL,
        FAKE_CONDITION,
        FAKE_GRAPH,
        FAKE_RECORD,
        FAKE_WAIT
    } kind;
    /* A launch. */
    cuda_function kernel;
    int64_t *arguments; /* copied at the call, as the driver does */
    unsigned blocks, height;
    /* A copy, a fill with so many units of so many bytes. */
    cuda_address to, from;
    void *staged; /* what is copied, where that was read at the call */
    size_t size, unit;
    unsigned value;
    /* A conditional node. */
    cuda_condition condition;
    unsigned condition_type, body_count;
    cuda_graph bodies[2];
    /* Others. */
    cuda_graph graph;
    cuda_event event;
    cuda_stream recorded;
    unsigned long number; /* of what is recorded */
};

/* Does it; what has failed. */
unsigned fake_do(const struct fake_work *work);
/* After what was asked of the stream, or into the graph that it captures. What the work points to
 * is the stream's then. */
unsigned fake_push(cuda_stream stream, const struct fake_work *work);
/* Is it being captured? Then into which graph. */
cuda_graph *fake_capturing(cuda_stream stream);
bool fake_is_body(cuda_graph graph);
unsigned fake_capture(cuda_stream stream, const struct fake_work *work);
unsigned fake_do_launch(const struct fake_work *work);
void fake_do_graph(cuda_graph graph);
void fake_do_condition(const struct fake_work *work);
void fake_set_condition(cuda_condition handle, unsigned value);

/* A kernel: of cuda_probe, or of a module. */
#define FAKE_SIZES 4
struct CUfunc_st {
    const char *name;
    cuda_context owner;         /* NULL: none */
    char printed_name[16];      /* of others */
    unsigned sizes[FAKE_SIZES]; /* of a kernel of cuda_probe: of its parameters, 0 at the end */
    void (*run)(const int64_t *arguments);
    unsigned n; /* of others: how many parameters there are, of 8 bytes */
    bool (*launch)(const int64_t *arguments, int64_t blocks, int64_t height, int order,
                   const struct fake_meeting *meeting);
};
/* A kernel of cuda_probe; NULL: there is none of this name. */
cuda_function fake_find_kernel(const char *name);

/* Kernels k0, k1, ... of a text that tssa printed. */
struct fake_code {
    unsigned n;
    struct CUfunc_st *kernels;
};
/* Is it one? */
bool fake_is_printed(const char *text);
/* Once for each text, until the process ends; NULL: the compiler fails. */
const struct fake_code *fake_compile(const char *text);

/* The fake driver's, for the fake libraries on it. */
unsigned cuMemsetD32Async(cuda_address target, unsigned value, size_t count, cuda_stream stream);

#endif
