/* SPDX-License-Identifier: Apache-2.0 */
/* What only a run can tell, as a value before a loop: from the shapes of what the loop is given. */
#ifndef TSSA_PASSES_LOOPS_DIM_VALUE_H
#define TSSA_PASSES_LOOPS_DIM_VALUE_H

#include "passes/analysis/loops.h"
#include "passes/loops/batch.h"

/* An i64[] no less than the dim, which is not negative: the dim itself where nothing in it is taken
 * away, divided or chosen. NULL where no value tells its symbols, or with batch->status. */
struct ir_value *dim_value_bound(struct batch *batch, const struct loop *loop,
                                 const struct dim *dim);

#endif
