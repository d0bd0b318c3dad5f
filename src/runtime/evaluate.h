/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs single ops on constants with the kernels that a run uses, for constant folding: the results
 * are those of a run to the bit.
 *
 *     struct evaluator evaluator;
 *     evaluator_init(&evaluator, graph->allocator);
 *     pipeline = {.evaluate = evaluator_run, .evaluate_user = &evaluator};
 *     ...
 *     evaluator_free(&evaluator);
 *
 * One thread at a time.
 */
#ifndef TSSA_RUNTIME_EVALUATE_H
#define TSSA_RUNTIME_EVALUATE_H

#include "base/pool.h"
#include "device/device.h"

/* No kernel gets more memory at a time, or so many times what it reads: an Expand may name any
 * size, but large weights of four bits become floats. */
#define EVALUATOR_MAX_BYTES ((size_t)64 << 20)
#define EVALUATOR_MAX_GROWTH 8

struct evaluator {
    const tssa_allocator *source;
    tssa_allocator limited; /* refuses more than `most` bytes at a time */
    size_t most;            /* of the op that runs */
    bool refused;           /* it did, in the op that runs */
    struct device_context device;
    struct pool pool;
    struct arena scratch; /* of one op */
    /* In the arena of that graph, made for a result that there was not: for the next one. */
    const struct ir_graph *spare_of;
    void *spare;
    size_t spare_bytes;
};

/* The evaluator may not be moved afterwards. `allocator` outlives it, and so do the graphs that it
 * is run for. */
void evaluator_init(struct evaluator *evaluator, const tssa_allocator *allocator);
void evaluator_free(struct evaluator *evaluator);

/* A pass_evaluate_fn (passes/pass.h): `user` is the evaluator. */
tssa_status *evaluator_run(void *user, struct ir_graph *graph, const struct ir_op *op,
                           struct tensor **results);

#endif
