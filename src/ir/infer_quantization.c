/* SPDX-License-Identifier: Apache-2.0 */
/* Inference of the rows of quantization.def. */
#include <inttypes.h>

#include "ir/infer_contraction.h"
#include "ir/infer_conversion.h"

INFER_RULE(quantize_linear)
{
    (void)graph;
    tssa_dtype to;
    TRY(infer_check_dtype(op, infer_dtype(op, 0)));
    TRY(infer_dtype_attr(op, "output_dtype", T_QUANTIZED, &to));
    if (to == TSSA_UNDEFINED)
        to = ir_operand(op, 2) ? infer_dtype(op, 2) : TSSA_UINT8;
    return infer_set_like_first(op, 0, to);
}

INFER_RULE(dequantize_linear)
{
    (void)graph;
    tssa_dtype to;
    TRY(infer_check_dtype(op, infer_dtype(op, 0)));
    TRY(infer_dtype_attr(op, "output_dtype", T_FLOAT, &to));
    if (to == TSSA_UNDEFINED)
        to = infer_dtype(op, 1);
    return infer_set_like_first(op, 0, to);
}

INFER_RULE(dynamic_quantize_linear)
{
    (void)graph;
    TRY(infer_check_dtype(op, infer_dtype(op, 0)));
    TRY(infer_set_like_first(op, 0, TSSA_UINT8));
    TRY(infer_set_tensor(op, 1, TSSA_FLOAT, 0, NULL));
    return infer_set_tensor(op, 2, TSSA_UINT8, 0, NULL);
}

INFER_RULE(matmul_integer)
{
    (void)graph;
    return infer_set_matmul(op, 0, 1, TSSA_INT32);
}

/* The result has the type of its zero point. */
INFER_RULE(qlinear_matmul)
{
    (void)graph;
    return infer_set_matmul(op, 0, 3, infer_dtype(op, 7));
}

INFER_RULE(conv_integer)
{
    return infer_set_conv(graph, op, 1, TSSA_INT32);
}

INFER_RULE(qlinear_conv)
{
    return infer_set_conv(graph, op, 3, infer_dtype(op, 7));
}

INFER_RULE(byte_table)
{
    const struct ir_type *table = infer_operand_type(graph, op, 1);
    int64_t entries;
    TRY(infer_check_dtype(op, infer_dtype(op, 0)));
    if (infer_rank(op, 1) == 1 && dim_is_const(table->dims[0], &entries) && entries != 256)
        return ERROR(TSSA_MALFORMED, "a table of bytes has %" PRId64 " entries, not 256", entries);
    return infer_set_like_first(op, 0, infer_dtype(op, 1));
}
