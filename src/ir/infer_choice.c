/* SPDX-License-Identifier: Apache-2.0 */
/* Inference for TopK and NonMaxSuppression: which elements, the data decides. */
#include <inttypes.h>

#include "ir/infer.h"

INFER_RULE(topk)
{
    (void)graph;
    int rank = infer_rank(op, 0), axis;
    tssa_dtype dtype = infer_dtype(op, 0);
    if (rank < 0) {
        TRY(infer_set_unranked(op, 0, dtype));
        return infer_set_unranked(op, 1, TSSA_INT64);
    }
    TRY(infer_axis(op, ir_attr_int(op, "axis", -1), rank, &axis));
    const struct ir_known *known = infer_known(op, 1);
    const struct dim *k = known && known->count == 1 ? known->elements[0] : NULL;
    int64_t wanted, there;
    if (dim_is_const(k, &wanted) && dim_is_const(infer_dim(op, 0, axis), &there) &&
        (wanted < 0 || wanted > there))
        return ERROR(TSSA_MALFORMED, "K is %" PRId64 ", but axis %d has %" PRId64 " elements",
                     wanted, axis, there);
    if (!k)
        k = infer_fresh(op);
    const struct dim *dims[TSSA_MAX_RANK];
    for (int i = 0; i < rank; i++)
        dims[i] = i == axis ? k : infer_dim(op, 0, i);
    TRY(infer_set_tensor(op, 0, dtype, rank, dims));
    return infer_set_tensor(op, 1, TSSA_INT64, rank, dims);
}

INFER_RULE(non_max_suppression)
{
    for (uint32_t i = 0; i < 2; i++)
        if (infer_rank(op, i) >= 0 && infer_rank(op, i) != 3)
            return ERROR(TSSA_MALFORMED, "operand %" PRIu32 " has rank %d, not 3", i,
                         infer_rank(op, i));
    const struct dim *dims[2] = {infer_fresh(op), dim_const(&graph->dims, 3)};
    return infer_set_tensor(op, 0, TSSA_INT64, 2, dims);
}
