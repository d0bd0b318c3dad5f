/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program on a device, of which every op has a kernel there, and on the CPU:
 *
 *     struct grids_run run;
 *     grids_run_open(&run, "opencl", "graph @g ... ");     (skips the test where there is none)
 *     grids_run_go(&run, inputs);
 *     ... run.made[0], run.wanted[0] ...
 *     grids_run_close(&run);
 */
#ifndef TSSA_TESTS_COMMON_GRIDS_RUN_H
#define TSSA_TESTS_COMMON_GRIDS_RUN_H

#include "device/device.h"
#include "runtime/plan.h"

#define GRIDS_RUN_MAX 4 /* outputs */

/* Sanitizers make the fake's threads ten times slower: tests have fewer rounds, and one order. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define GRIDS_ROUNDS(n) ((n) / 5)
#define GRIDS_FIRST_ORDER 2
#else
#define GRIDS_ROUNDS(n) (n)
#define GRIDS_FIRST_ORDER 0
#endif

struct grids_run {
    struct device_context device;
    struct ir_graph *graph;
    struct plan *on_device, *on_host;
    struct value made[GRIDS_RUN_MAX], wanted[GRIDS_RUN_MAX]; /* of the last run */
    struct device_counts counts;                             /* the device's */
};

void grids_run_open(struct grids_run *run, const char *device, const char *text);
void grids_run_close(struct grids_run *run);
/* On the device alone. */
tssa_status *grids_run_try(struct grids_run *run, const struct value *const *inputs);
/* On the CPU alone. */
tssa_status *grids_run_on_host(struct grids_run *run, const struct value *const *inputs);
/* Fails the test unless both succeed, or both fail with the same message; false: they failed. */
bool grids_run_go(struct grids_run *run, const struct value *const *inputs);
/* And all outputs have the same bits. */
void grids_run_same(struct grids_run *run, const struct value *const *inputs);

/* No more than so many in the last run on `cuda`: OpenCL has launches for operands of a few bytes,
 * which are filled in. */
void grids_expect_launches(const struct grids_run *run, const char *device, uint64_t most);

/* Runs tests on `opencl`, and on `cuda` in each order of the fake's threads, or on the card; how
 * many failed. */
int grids_run_on_each(int (*run_on)(const char *device));

#endif
