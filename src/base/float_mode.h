/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processor's floating-point modes: rounding to nearest, denormals kept, no traps, whatever the
 * program that calls the library has set. Each thread of a run enters before it computes and leaves
 * afterwards.
 */
#ifndef TSSA_BASE_FLOAT_MODE_H
#define TSSA_BASE_FLOAT_MODE_H

#include <stdint.h>

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

/* What to return to. */
struct float_mode {
    uint64_t bits;
};

#if defined(__SSE__)

#define FLOAT_MODE_DEFAULT 0x1f80u /* MXCSR: every exception masked, all else off */
#define FLOAT_MODE_FLAGS 0x3fu     /* exceptions that were met, which say nothing about modes */

static inline struct float_mode float_mode_enter(void)
{
    unsigned control = _mm_getcsr();
    if ((control & ~FLOAT_MODE_FLAGS) != FLOAT_MODE_DEFAULT)
        _mm_setcsr(FLOAT_MODE_DEFAULT);
    return (struct float_mode){control};
}

static inline void float_mode_leave(struct float_mode mode)
{
    if ((mode.bits & ~FLOAT_MODE_FLAGS) != FLOAT_MODE_DEFAULT)
        _mm_setcsr((unsigned)mode.bits);
}

#elif defined(__aarch64__)

static inline void float_mode_leave(struct float_mode mode)
{
    __asm__ volatile("msr fpcr, %0" : : "r"(mode.bits));
}

static inline struct float_mode float_mode_enter(void)
{
    struct float_mode mode;
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode.bits));
    if (mode.bits != 0)
        float_mode_leave((struct float_mode){0});
    return mode;
}

#else

static inline struct float_mode float_mode_enter(void)
{
    return (struct float_mode){0};
}

static inline void float_mode_leave(struct float_mode mode)
{
    (void)mode;
}

#endif

#endif
