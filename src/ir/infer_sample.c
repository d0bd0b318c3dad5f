/* SPDX-License-Identifier: Apache-2.0 */
/* Inference of GridSample, RoiAlign and DeformConv. */
#include "ir/infer.h"

/* The d-th dim of an operand, or a fresh one where its rank is unknown or too low. */
static const struct dim *dim_of(struct ir_op *op, uint32_t operand, int d)
{
    return d < infer_rank(op, operand) ? infer_dim(op, operand, d) : infer_fresh(op);
}

INFER_RULE(grid_sample)
{
    const struct dim *dims[TSSA_MAX_RANK];
    int rank = infer_rank(op, 0) >= 0 ? infer_rank(op, 0) : infer_rank(op, 1);
    (void)graph;
    if (rank < 0)
        return infer_set_unranked(op, 0, infer_dtype(op, 0));
    if (rank < 3 || (infer_rank(op, 1) >= 0 && infer_rank(op, 1) != rank))
        return ERROR(TSSA_MALFORMED, "the input has rank %d, the grid %d", rank, infer_rank(op, 1));
    for (int i = 0; i < rank; i++)
        dims[i] = i < 2 ? dim_of(op, 0, i) : dim_of(op, 1, i - 1);
    return infer_set_tensor(op, 0, infer_dtype(op, 0), rank, dims);
}

INFER_RULE(roi_align)
{
    const struct dim *dims[4] = {infer_rank(op, 1) < 0 ? dim_of(op, 2, 0) : dim_of(op, 1, 0),
                                 dim_of(op, 0, 1),
                                 dim_const(&graph->dims, ir_attr_int(op, "output_height", 1)),
                                 dim_const(&graph->dims, ir_attr_int(op, "output_width", 1))};
    return infer_set_tensor(op, 0, infer_dtype(op, 0), 4, dims);
}

INFER_RULE(deform_conv)
{
    const struct dim *dims[TSSA_MAX_RANK];
    int rank = infer_rank(op, 0);
    (void)graph;
    if (rank < 3)
        return infer_set_unranked(op, 0, infer_dtype(op, 0));
    for (int i = 0; i < rank; i++)
        dims[i] = i == 1 ? dim_of(op, 1, 0) : dim_of(op, i == 0 ? 0 : 2, i);
    return infer_set_tensor(op, 0, infer_dtype(op, 0), rank, dims);
}
