/* SPDX-License-Identifier: Apache-2.0 */
/* Resize that moves elements, of any type. */
#ifndef TSSA_KERNELS_CPU_WINDOW_RESIZE_NEAREST_H
#define TSSA_KERNELS_CPU_WINDOW_RESIZE_NEAREST_H

#include "device/resample.h"

/*
 * Both tensors have elements and the same rank. tables: one per axis, with one tap; index NULL: the
 * axis stays as it is. fill: the element for what lies outside; read only where a table says that
 * there is some.
 */
tssa_status *resize_nearest(struct kernel_args *args, const struct tensor *in,
                            const struct tensor *out, const struct resample_table *tables,
                            const void *fill);

#endif
