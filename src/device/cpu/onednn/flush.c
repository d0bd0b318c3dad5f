/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cpu/onednn/flush.h"

#if defined(__SSE__)

#include <omp.h>
#include <string.h>
#include <xmmintrin.h>

/* MXCSR: results that are denormal are 0, and so are such operands. */
#define FLUSH_TO_ZERO 0x8000u
#define DENORMALS_ARE_ZERO 0x0040u
/* Beside a mode, which has fewer bits: a thread has entered. */
#define ENTERED 0x80000000u

static void enter(unsigned *mode)
{
    const unsigned before = _mm_getcsr();
    *mode = before | ENTERED;
    _mm_setcsr(before | FLUSH_TO_ZERO | DENORMALS_ARE_ZERO);
}

static void leave(unsigned mode)
{
    if (mode & ENTERED)
        _mm_setcsr(mode & ~ENTERED);
}

void flush_enter(struct flush_setting *setting, int threads)
{
    setting->threads = threads > FLUSH_MOST_THREADS ? 0 : threads;
    if (setting->threads == 1) {
        enter(setting->modes);
    } else if (setting->threads > 1) {
        memset(setting->modes, 0,
               sizeof setting->modes); /* the next region may have more threads */
#pragma omp parallel num_threads(setting->threads)
        enter(&setting->modes[omp_get_thread_num()]);
    }
}

void flush_leave(const struct flush_setting *setting)
{
    if (setting->threads == 1) {
        leave(setting->modes[0]);
    } else if (setting->threads > 1) {
#pragma omp parallel num_threads(setting->threads)
        leave(setting->modes[omp_get_thread_num()]);
    }
}

#else

void flush_enter(struct flush_setting *setting, int threads)
{
    (void)threads;
    setting->threads = 0;
}

void flush_leave(const struct flush_setting *setting)
{
    (void)setting;
}

#endif
