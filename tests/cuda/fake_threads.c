/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/cuda/fake.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
/* Frames are larger. What begins a thread never returns, and its frame has no traps to leave. */
#define STACK_BYTES ((size_t)256 << 10)
#define NO_TRAPS __attribute__((no_sanitize_address))
#else
#define STACK_BYTES ((size_t)64 << 10)
#define NO_TRAPS
#endif

/* ---- Switching ------------------------------------------------------------------------------- */

/* What goes on where it was left. `begin` makes one that calls a function on a stack, which never
 * returns. */
#if defined(__x86_64__)

struct context {
    void *at; /* on its stack, where registers are that functions keep */
};

void fake_switch(void **from, void *to);
__asm__(".text\n"
        ".globl fake_switch\n"
        ".hidden fake_switch\n"
        ".type fake_switch, @function\n"
        "fake_switch:\n"
        "pushq %rbp\npushq %rbx\npushq %r12\npushq %r13\npushq %r14\npushq %r15\n"
        "movq %rsp, (%rdi)\n"
        "movq %rsi, %rsp\n"
        "popq %r15\npopq %r14\npopq %r13\npopq %r12\npopq %rbx\npopq %rbp\n"
        "ret\n"
        ".size fake_switch, . - fake_switch\n");

static void switch_to(struct context *from, const struct context *to)
{
    fake_switch(&from->at, to->at);
}

/* Six registers, the function, which is returned to, and where that would return to. */
static void begin(struct context *context, char *stack, void (*function)(void))
{
    uintptr_t *top = (uintptr_t *)(stack + STACK_BYTES);
    for (int i = 1; i <= 8; i++)
        top[-i] = 0;
    top[-2] = (uintptr_t)function;
    context->at = top - 8;
}

#else

#include <ucontext.h>

struct context {
    ucontext_t of;
};

static void switch_to(struct context *from, const struct context *to)
{
    swapcontext(&from->of, &to->of);
}

static void begin(struct context *context, char *stack, void (*function)(void))
{
    if (getcontext(&context->of) != 0)
        abort();
    context->of.uc_stack.ss_sp = stack;
    context->of.uc_stack.ss_size = STACK_BYTES;
    context->of.uc_link = NULL;
    makecontext(&context->of, function, 0);
}

#endif

/* ---- Threads --------------------------------------------------------------------------------- */

enum { NOT_BEGUN = 0, ENDED = -1 }; /* or the line of a barrier */

/* Stacks lie so far from each other that they do not share lines of caches. */
#define STACK_STEP (STACK_BYTES + 832)

struct fiber {
    struct context context;
    int waits_at;
    char *stack;
    void *frames; /* of the sanitizer, while it does not run */
};

/* One block at a time runs: the libraries are one thread's (fake_enter). */
static struct fiber fibers[FAKE_MOST_THREADS], *running;
static struct context driver;
static const struct fake_threads *threads;

/* The word at a stack's end, which nobody comes to. */
static const uint64_t untouched = 0x5aa5c33c0ff0f00fu;

static uint64_t *end_of_stack(const struct fiber *fiber)
{
    return (uint64_t *)fiber->stack;
}

static void make_stacks(void)
{
    char *all = mmap(NULL, FAKE_MOST_THREADS * STACK_STEP, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (all == MAP_FAILED)
        abort();
    for (int i = 0; i < FAKE_MOST_THREADS; i++)
        fibers[i].stack = all + (size_t)i * STACK_STEP;
}

#ifdef __SANITIZE_ADDRESS__

static const void *driver_stack;
static size_t driver_stack_bytes;

static void leave_driver(const struct fiber *fiber, void **frames)
{
    __sanitizer_start_switch_fiber(frames, fiber->stack, STACK_BYTES);
}

static void come_to_driver(void *frames)
{
    __sanitizer_finish_switch_fiber(frames, NULL, NULL);
}

/* Of a thread that ends no frame is left: the next one has what they were in. To map and to unmap
 * that for each took most of a test's time. */
static void leave_fiber(struct fiber *fiber)
{
    __sanitizer_start_switch_fiber(&fiber->frames, driver_stack, driver_stack_bytes);
}

static void come_to_fiber(const struct fiber *fiber)
{
    __sanitizer_finish_switch_fiber(fiber->frames, &driver_stack, &driver_stack_bytes);
}

/* Of threads that never end traps and frames are left. */
static void clear_stack(struct fiber *fiber)
{
    ASAN_UNPOISON_MEMORY_REGION(fiber->stack, STACK_BYTES);
    fiber->frames = NULL;
}

#else

static void leave_driver(const struct fiber *fiber, void **frames)
{
    (void)fiber;
    (void)frames;
}

static void come_to_driver(void *frames)
{
    (void)frames;
}

static void leave_fiber(struct fiber *fiber)
{
    (void)fiber;
}

static void come_to_fiber(const struct fiber *fiber)
{
    (void)fiber;
}

static void clear_stack(struct fiber *fiber)
{
    (void)fiber;
}

#endif

NO_TRAPS static void run_thread(void)
{
    come_to_fiber(running);
    threads->run(threads->arguments);
    running->waits_at = ENDED;
    leave_fiber(running);
    switch_to(&running->context, &driver);
    abort(); /* has ended */
}

static void wait_at(int line)
{
    struct fiber *own = running;
    own->waits_at = line;
    leave_fiber(own);
    switch_to(&own->context, &driver);
    come_to_fiber(own);
}

static void go_on(int64_t thread)
{
    void *frames = NULL;
    running = &fibers[thread];
    threads->become(thread);
    leave_driver(running, &frames);
    switch_to(&driver, &running->context);
    come_to_driver(frames);
    if (*end_of_stack(running) != untouched)
        abort(); /* it needs a larger stack */
}

/* ---- Blocks ---------------------------------------------------------------------------------- */

static void begin_threads(void)
{
    if (!fibers->stack)
        make_stacks();
    for (int i = 0; i < threads->count; i++) {
        fibers[i].waits_at = NOT_BEGUN;
        *end_of_stack(&fibers[i]) = untouched;
        begin(&fibers[i].context, fibers[i].stack, run_thread);
    }
}

/* Do all threads wait at the same barrier, or have all ended? */
static bool have_met(void)
{
    int other = 0;
    while (other < threads->count && fibers[other].waits_at == fibers->waits_at)
        other++;
    if (other < threads->count)
        fprintf(stderr,
                "fake CUDA: at line %d (%d: it has ended) is thread 0, and at %d thread %d\n",
                fibers->waits_at, ENDED, fibers[other].waits_at, other);
    return other == threads->count;
}

static bool run(const struct fake_threads *block)
{
    bool met = true;
    threads = block;
    begin_threads();
    while (met && fibers->waits_at != ENDED) {
        for (int turn = 0; turn < block->count; turn++)
            go_on(block->turn(turn, block->count));
        met = have_met();
    }
    for (int i = 0; i < block->count && !met; i++)
        clear_stack(&fibers[i]);
    return met;
}

const struct fake_meeting fake_meeting = {run, wait_at, fake_set_condition};
