/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles kernels of the fuse ops of a graph, before a plan is made of it. */
#ifndef TSSA_RUNTIME_COMPILE_H
#define TSSA_RUNTIME_COMPILE_H

#include "device/device.h"

/* How many fuse ops have kernels now, and why not all. */
struct compile_report {
    uint32_t compiled, refused;
    uint32_t cached; /* of those compiled: all of the op's earlier, and kept on disk */
    bool stopped;
    char why[160];           /* the first one was refused; cut */
    char cache_problem[160]; /* as in struct device_compiling */
};

/*
 * Asks the device, whose `compile` is there, for code for every fuse op of the graph. An op that
 * has got it (ir_op.kernel) is run by it in every plan made from the graph; the others are as they
 * were. The context outlives the graph. `stop` as in struct device_compiling. Errors: out of
 * memory.
 */
tssa_status *compile_fused(struct ir_graph *graph, struct device_context *context, int stop,
                           struct compile_report *report);

#endif
