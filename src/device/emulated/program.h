/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a step of the emulated device computes, with the host's kernels: its op, or one by one the
 * ops that a fuse op holds. Values in between, and the results, are the host's, each with a number:
 * first the operands, then the constants and results of ops.
 */
#ifndef TSSA_DEVICE_EMULATED_PROGRAM_H
#define TSSA_DEVICE_EMULATED_PROGRAM_H

#include "device/kernel.h"

#define EMULATED_ABSENT UINT32_MAX

struct emulated_op {
    const struct ir_op *op;
    const struct kernel *kernel;
    const void *state;
    uint32_t *inputs;      /* numbers; EMULATED_ABSENT */
    uint32_t first_output; /* numbers follow one another */
};

struct emulated_program {
    const tssa_allocator *allocator;
    uint32_t n_inputs, n_ops, n_values;
    uint32_t most_operands, most_results; /* of an op */
    struct emulated_op *ops;
    const struct tensor **constants; /* per number; NULL: it is computed, or an operand */
    uint32_t *outputs;               /* numbers of the step's results */
};

/* Does the host have what it takes? */
bool emulated_can(const struct ir_op *op);
/* In the arena, but for what the host's kernels hold, which goes with emulated_program_free. */
tssa_status *emulated_program_make(const struct ir_op *op, const struct kernel_setup *setup,
                                   struct emulated_program *program);
void emulated_program_free(const struct emulated_program *program);

/* `values`, n_values of them that are nothing but for the operands, have all results when it is
 * done, from the environment's pool; the caller releases them, whether it fails or not. */
tssa_status *emulated_program_run(const struct emulated_program *program, struct kernel_env *env,
                                  struct value *values);

#endif
