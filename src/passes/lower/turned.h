/* SPDX-License-Identifier: Apache-2.0 */
/* Images whose channels are the last axis, beside the same with channels first. */
#ifndef TSSA_PASSES_LOWER_TURNED_H
#define TSSA_PASSES_LOWER_TURNED_H

#include "passes/pass.h"

/* The axis of an image that is axis i of the same with channels last (`last`), or first again. */
int64_t turned_axis(int rank, int i, bool last);

/* A new access of the value with channels last, or, of one that has them, first again: in no block
 * yet; NULL: memory ran out. */
struct ir_op *turned_access(struct ir_graph *graph, struct ir_value *value, bool last);

/* What the value is turned back from: the same with its channels last; NULL: it is not. */
struct ir_value *turned_from(const struct ir_value *value);

/* The value with its channels last, made before the op where nobody has. */
tssa_status *turned_value(struct ir_graph *graph, struct ir_value *value, struct ir_op *before,
                          struct ir_value **turned);

#endif
