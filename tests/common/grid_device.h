/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A device of the tests that fuses what a GPU would (device/null) and computes it twice: op by op,
 * with the CPU's kernels, and as a grid (gir/grid.h) by the shim's, once these are compiled
 * (common/shim_device.h). Where an element is not the same the test fails. What the run goes on
 * with is the former.
 */
#ifndef TSSA_TESTS_GRID_DEVICE_H
#define TSSA_TESTS_GRID_DEVICE_H

#include "device/device.h"

/* Valid until the process ends. */
const struct device *grid_device(void);
struct device_context *grid_context(void);

/* So far: fuse ops of plans that are grids, and that are none; runs of grids, and those whose
 * numbers nobody told; runs that wrote into what a loop carries on; parts that have lookups which
 * are turned; runs that no narrow text may do. */
struct grid_counts {
    uint32_t made, refused, ran, not_told, updated, turned, only_wide;
};
extern struct grid_counts grid_counts;
/* Of runs that failed for an index, how many have been grids' as well; all of them must be. */
extern uint32_t grid_failures;
/* Whether reasons of ops that are none are printed. */
extern bool grid_tells;

#endif
