/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a call tells of sizes in a fuse op: by the dims of operands and results, by the elements of
 * operands that the host has, and by what the run knows (struct kernel_sizes).
 */
#ifndef TSSA_DEVICE_GRIDS_SIZES_H
#define TSSA_DEVICE_GRIDS_SIZES_H

#include "device/kernel.h"
#include "gir/grid.h"

/* False: nobody tells. Of results only those count that are made. */
bool grids_tell(const struct kernel_args *args, const struct dim *dim, int64_t *value);

/* Dims of a result that is not made yet. */
tssa_status *grids_result_dims(const struct kernel_args *args, uint32_t index, int64_t *dims);

/* How many rows, or else 1, and elements of each a part goes over. */
tssa_status *grids_part_space(const struct kernel_args *args, const struct gir_grid_part *part,
                              int64_t *rows, int64_t *n);
/* How often the launch goes through its stages. */
tssa_status *grids_trips(const struct kernel_args *args, const struct gir_grid *grid,
                         int64_t *trips);
/* Of one that has lookups that are turned: elements along the axes in question, and along all of
 * those behind them. */
tssa_status *grids_part_axes(const struct kernel_args *args, const struct gir_grid_part *part,
                             int64_t *along, int64_t *inner);

#endif
