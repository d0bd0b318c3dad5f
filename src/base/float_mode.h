/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The processor's floating-point modes: rounding to nearest, denormals kept, no traps, whatever the
 * program that calls the library has set. A function of tssa.h that computes, reads or writes
 * numbers enters first and leaves when it returns; so does each thread that works for it and may be
 * older. Nobody else looks at modes.
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
    uint16_t x87; /* x86 alone */
};

#if defined(__SSE__)

#define FLOAT_MODE_DEFAULT 0x1f80u /* MXCSR: every exception masked, all else off */
#define FLOAT_MODE_FLAGS 0x3fu     /* exceptions that were met, which say nothing about modes */
/* The control word of the x87, by which libc rounds decimal numbers that it reads or prints. */
#define FLOAT_MODE_X87 0x037fu

static inline uint16_t float_mode_x87(void)
{
    uint16_t control;
    __asm__ volatile("fnstcw %0" : "=m"(control));
    return control;
}

static inline void float_mode_set_x87(uint16_t control)
{
    __asm__ volatile("fldcw %0" : : "m"(control));
}

static inline struct float_mode float_mode_enter(void)
{
    const struct float_mode mode = {_mm_getcsr(), float_mode_x87()};
    if ((mode.bits & ~FLOAT_MODE_FLAGS) != FLOAT_MODE_DEFAULT)
        _mm_setcsr(FLOAT_MODE_DEFAULT);
    if (mode.x87 != FLOAT_MODE_X87)
        float_mode_set_x87(FLOAT_MODE_X87);
    return mode;
}

static inline void float_mode_leave(const struct float_mode *mode)
{
    if ((mode->bits & ~FLOAT_MODE_FLAGS) != FLOAT_MODE_DEFAULT)
        _mm_setcsr((unsigned)mode->bits);
    if (mode->x87 != FLOAT_MODE_X87)
        float_mode_set_x87(mode->x87);
}

#elif defined(__aarch64__)

static inline void float_mode_set(uint64_t bits)
{
    __asm__ volatile("msr fpcr, %0" : : "r"(bits));
}

static inline struct float_mode float_mode_enter(void)
{
    uint64_t bits;
    __asm__ volatile("mrs %0, fpcr" : "=r"(bits));
    if (bits != 0)
        float_mode_set(0);
    return (struct float_mode){.bits = bits};
}

static inline void float_mode_leave(const struct float_mode *mode)
{
    float_mode_set(mode->bits);
}

#else

static inline struct float_mode float_mode_enter(void)
{
    return (struct float_mode){0};
}

static inline void float_mode_leave(const struct float_mode *mode)
{
    (void)mode;
}

#endif

/* From here on, until the block is left in whatever way. */
#define FLOAT_MODE_ENTER()                                                                         \
    const struct float_mode float_mode_before_                                                     \
        __attribute__((cleanup(float_mode_leave), unused)) = float_mode_enter()

#endif
