/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a NonMaxSuppression keeps, as detectors use it: the numbers of boxes, column 2 of its
 * result, of which scores and boxes are gathered.
 */
#ifndef TSSA_PASSES_ANALYSIS_BOXES_H
#define TSSA_PASSES_ANALYSIS_BOXES_H

#include "ir/ir.h"

/* Is the value the numbers of the boxes that a NonMaxSuppression keeps? Which one; else NULL. */
const struct ir_op *boxes_kept_by(const struct ir_value *value);
/* The same numbers, which are all that is used of what the op keeps; NULL: there is more. */
const struct ir_value *boxes_kept(const struct ir_op *nms);
/* The scores as a list, of one batch and class; else NULL. */
const struct ir_value *boxes_scores(const struct ir_op *nms);

#endif
