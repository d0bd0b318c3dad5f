/* SPDX-License-Identifier: Apache-2.0 */
/* Inference for normalizations: results mostly have their operand's type. */
#include "ir/infer.h"

/* Result 0 has the type of operand 0. */
static INFER_RULE(normalized)
{
    return infer_set(op, 0, infer_operand_type(graph, op, 0));
}

/* The same, with an axis that must lie within the operand; before opset 13 the tensor is flattened. */
INFER_RULE(softmax)
{
    int rank = infer_rank(op, 0), axis;
    bool flattened = op->version != 0 && op->version < 13;
    int64_t given = ir_attr_int(op, "axis", flattened ? 1 : -1);
    if (rank >= 0 && !(flattened && given == rank))
        TRY(infer_axis(op, given, rank, &axis));
    return infer_normalized(graph, op);
}
