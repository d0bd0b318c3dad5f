/* SPDX-License-Identifier: Apache-2.0 */
/* What `convolve` does to sums where no library does it. */
#ifndef TSSA_KERNELS_CPU_CONTRACTION_CONVOLVE_H
#define TSSA_KERNELS_CPU_CONTRACTION_CONVOLVE_H

#include "device/conv.h"

/*
 * y = after(sums + added), of a resolved job: sums and added are float32, and so is y, which may
 * lie where added lies. The sums have channels first, y and added what the job says of y.
 */
void convolve_finish(const struct team *team, const struct conv_job *job, const float *sums,
                     float *y);

/* y = after(y + bias) of some rows of images with channels first, by (batch, channel). */
void convolve_finish_rows(const struct conv_job *job, float *y, int64_t begin, int64_t end);

/* Images [batch][rows][columns] to [batch][columns][rows]. */
void convolve_turn(int64_t batch, int64_t rows, int64_t columns, const float *from, float *to);

#endif
