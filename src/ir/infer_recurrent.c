/* SPDX-License-Identifier: Apache-2.0 */
/* Inference of RNN, GRU and LSTM: results are Y, Y_h and Y_c, of X's element type. */
#include <string.h>

#include "ir/infer.h"

static const struct dim *hidden_size(struct ir_graph *graph, struct ir_op *op)
{
    int64_t given = ir_attr_int(op, "hidden_size", 0);
    if (given > 0)
        return dim_const(&graph->dims, given);
    return infer_rank(op, 2) == 3 ? infer_dim(op, 2, 2) : infer_fresh(op);
}

INFER_RULE(recurrent)
{
    int rank = infer_rank(op, 0);
    tssa_dtype dtype = infer_dtype(op, 0);
    if (rank >= 0 && rank != 3)
        return ERROR(TSSA_MALFORMED, "operand 0 must have rank 3, not %d", rank);
    bool both = strcmp(ir_attr_str(op, "direction", "forward"), "bidirectional") == 0;
    bool batch_first = ir_attr_int(op, "layout", 0) != 0;
    const struct dim *steps = rank == 3 ? infer_dim(op, 0, batch_first ? 1 : 0) : infer_fresh(op);
    const struct dim *batch = rank == 3 ? infer_dim(op, 0, batch_first ? 0 : 1) : infer_fresh(op);
    const struct dim *directions = dim_const(&graph->dims, both ? 2 : 1);
    const struct dim *hidden = hidden_size(graph, op);
    const struct dim *all[] = {steps, directions, batch, hidden};
    const struct dim *all_batch_first[] = {batch, steps, directions, hidden};
    const struct dim *last[] = {directions, batch, hidden};
    const struct dim *last_batch_first[] = {batch, directions, hidden};
    TRY(infer_set_tensor(op, 0, dtype, 4, batch_first ? all_batch_first : all));
    for (uint32_t i = 1; i < op->n_results; i++)
        TRY(infer_set_tensor(op, i, dtype, 3, batch_first ? last_batch_first : last));
    return NULL;
}
