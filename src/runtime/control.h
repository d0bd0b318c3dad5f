/* SPDX-License-Identifier: Apache-2.0 */
/* How the executor runs the ops that own blocks: If, Loop, Scan, SequenceMap, and fuse
 * where no kernel does. One table. */
#ifndef TSSA_RUNTIME_CONTROL_H
#define TSSA_RUNTIME_CONTROL_H

#include "runtime/plan.h"

/* NULL when the op is no control flow. */
step_run control_find(const struct ir_op *op);
/* Once, when the plan is made: checks the op and decodes its attributes into step->state. */
tssa_status *control_prepare(const struct ir_op *op, struct arena *arena, const void **state);
/* The op's i-th block in the order that the functions below rely on (then, else). */
struct ir_block *control_block(const struct ir_op *op, uint32_t index);

/*
 * How values pass through an op that repeats its block. Operand k is parameter k, from `operand`
 * on; the first n_carried of these are carried: return returned + k of an iteration is the
 * parameter of the next and, in the end, result k. What else is returned is copied or read.
 */
struct control_passing {
    uint32_t operand, returned, n_carried;
};
/* false: values pass in another way. */
bool control_passes(const struct step *step, struct control_passing *passing);
/* Does a Loop stack its result `index`, one element of it in every iteration? */
bool control_stacks(const struct step *step, uint32_t index);

/* ---- Shared by the files of control flow ----------------------------------------------------- */

/* Moves a value into result `index` of the step, or releases it when it is not wanted. */
void control_set_result(struct run *run, const struct step *step, uint32_t index,
                        struct value *value);
/* A one-element tensor in memory of its own. */
tssa_status *control_scalar(struct run *run, tssa_dtype dtype, int64_t value, struct value *out);
tssa_status *control_read_bool(const struct value *value, const char *what, bool *result);
tssa_status *control_read_int(const struct value *value, const char *what, int64_t *result);
/*
 * dtype and dims of a scan output's element when no iteration ran: of the value that would have
 * been returned as one, where that is captured as it is, else as inferred, and where that is not
 * known as declared. Dims that neither determines are 0, as is an unknown rank.
 */
void control_empty_element(const struct run *run, const struct ir_op *returned, uint32_t index,
                           struct tensor *element);

tssa_status *control_run_if(struct run *run, const struct step *step);
tssa_status *control_run_loop(struct run *run, const struct step *step);
tssa_status *control_run_scan(struct run *run, const struct step *step);
tssa_status *control_run_sequence_map(struct run *run, const struct step *step);
tssa_status *control_run_fuse(struct run *run, const struct step *step);
bool control_loop_passes(const struct step *step, struct control_passing *passing);
bool control_scan_passes(const struct step *step, struct control_passing *passing);
tssa_status *control_prepare_scan(const struct ir_op *op, struct arena *arena, const void **state);

#endif
