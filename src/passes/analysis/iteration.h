/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Iterations of a Loop written out in front of it (unroll, peel).
 *
 *     carried[k] = loop_initial(loop, k);                          for each carried value
 *     TRY(iteration_copy(cloner, loop, number, carried, elements));
 *     ...                                                          carried: what the next one is
 *                                                                  given
 *     TRY(iteration_stack(at, elements + k, stride, count, &result));
 */
#ifndef TSSA_PASSES_ANALYSIS_ITERATION_H
#define TSSA_PASSES_ANALYSIS_ITERATION_H

#include "ir/clone.h"
#include "passes/analysis/loops.h"

/* Something that the loop is given, or that an iteration returns, is absent: nothing can stand for
 * it. */
bool iteration_has_absent(const struct loop *loop);

/*
 * The iteration `number` (an i64[]), which is given `carried` and a condition that holds.
 * Afterwards carried is what it returned, and elements[k] the row that it adds to scan output k,
 * with the axis in front, where that output is used. The cloner tells what stands for the values of
 * the body.
 */
tssa_status *iteration_copy(struct ir_cloner *cloner, const struct loop *loop,
                            struct ir_value *number, struct ir_value **carried,
                            struct ir_value **elements);
/* The same for the only iteration: the ops are moved, so that values keep their names. */
tssa_status *iteration_move(struct ir_cloner *cloner, const struct loop *loop,
                            struct ir_value *number, struct ir_value **carried,
                            struct ir_value **elements);

/* A scan output from `count` parts that have the axis: elements[0], elements[stride], ... */
tssa_status *iteration_stack(struct ir_op *at, struct ir_value *const *elements, size_t stride,
                             int64_t count, struct ir_value **result);

#endif
