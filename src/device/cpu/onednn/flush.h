/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Denormal numbers are zero while a product is computed, in all threads that do: an x86 takes some
 * 150 cycles for each instruction that meets one, and masked attention makes them by the million
 * (exp(-100) of what is masked by -100). Of [64, 3, 49, 49] by [64, 3, 49, 32] in a swin_t, whose
 * images are shifted, a product took 3.4 ms and takes 0.2.
 */
#ifndef TSSA_DEVICE_CPU_ONEDNN_FLUSH_H
#define TSSA_DEVICE_CPU_ONEDNN_FLUSH_H

/* Of more, nothing is done. */
#define FLUSH_MOST_THREADS 64

/* Threads' modes as they were, of those that have entered. */
struct flush_setting {
    int threads;
    unsigned modes[FLUSH_MOST_THREADS];
};

/* For as many threads as oneDNN will have: those of OpenMP's next region. */
void flush_enter(struct flush_setting *setting, int threads);
void flush_leave(const struct flush_setting *setting);

#endif
