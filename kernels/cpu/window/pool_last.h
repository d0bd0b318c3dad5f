/* SPDX-License-Identifier: Apache-2.0 */
/* Windows of images whose channels are the last axis. */
#ifndef TSSA_KERNELS_CPU_WINDOW_POOL_LAST_H
#define TSSA_KERNELS_CPU_WINDOW_POOL_LAST_H

#include "kernels/cpu/window/pool.h"

/* MaxPool of operand 0, of float32 or bytes, with IR_CHANNELS_LAST; of indices there are none. */
tssa_status *pool_max_last(struct kernel_args *args);
/* AveragePool of float32: sums of each row of a window from left to right, from 0 on, and then of
 * its rows. */
tssa_status *pool_average_last(struct kernel_args *args);

#endif
