/* SPDX-License-Identifier: Apache-2.0 */
/* What makers of kernels ask of a Loop or Scan of which an iteration is one kernel (ir_fuse_loop).
 */
#ifndef TSSA_GIR_ITERATION_H
#define TSSA_GIR_ITERATION_H

#include "ir/ir.h"

/* What an iteration returns as the loop's result; NULL: nothing. */
const struct ir_value *gir_loop_next(const struct ir_op *loop, uint32_t result);
/* Number `index` of a list that a Scan may have, of zeros if it has not. */
int64_t gir_loop_number(const struct ir_op *loop, const char *name, uint32_t index);
/* Is it told before how many iterations there are: by a trip count that no condition cuts short, or
 * by what a Scan reads? */
bool gir_loop_is_counted(const struct ir_op *loop);
/* Is the value there, of the dims that `like`, a tensor of known rank, has? */
bool gir_has_dims(const struct ir_value *value, const struct ir_type *like);

#endif
