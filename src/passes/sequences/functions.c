/* SPDX-License-Identifier: Apache-2.0 */
/* What ONNX Runtime has kernels for, of the operators that are functions:
 * tests/rewritten/functions.py asks it. */
#include "passes/sequences/functions.h"

#define NEVER 1 /* no kernel, whatever the element type is */
#define F32 DTYPE_BIT(TSSA_FLOAT)
#define HALF (F32 | DTYPE_BIT(TSSA_FLOAT16))
#define WIDE (T_F32F64 | T_I32I64)

/* The element types of operand 0 that there is a kernel for. 0: the operator is no function, or has
 * them for all. */
static const dtype_mask kernels[IR_OP_COUNT] = {
    [IR_OP_AffineGrid] = T_F32F64,
    [IR_OP_Attention] = HALF,
    [IR_OP_BlackmanWindow] = NEVER,
    [IR_OP_CastLike] = NEVER,
    [IR_OP_CausalConvWithState] = NEVER,
    [IR_OP_Celu] = F32,
    [IR_OP_CenterCropPad] = NEVER,
    [IR_OP_Clip] =
        T_NUMERIC & ~(DTYPE_BIT(TSSA_BFLOAT16) | DTYPE_BIT(TSSA_INT16) | DTYPE_BIT(TSSA_UINT16)),
    [IR_OP_Elu] = F32,
    [IR_OP_Gelu] = F32,
    [IR_OP_GreaterOrEqual] = T_F32F64 | T_INT,
    [IR_OP_GroupNormalization] = NEVER,
    [IR_OP_HammingWindow] = NEVER,
    [IR_OP_HannWindow] = NEVER,
    [IR_OP_HardSigmoid] = F32,
    [IR_OP_HardSwish] = NEVER,
    [IR_OP_LayerNormalization] = T_FLOAT,
    [IR_OP_LeakyRelu] = F32,
    [IR_OP_LessOrEqual] = T_F32F64 | T_INT,
    [IR_OP_LinearAttention] = NEVER,
    [IR_OP_LogSoftmax] = T_F32F64,
    [IR_OP_MeanVarianceNormalization] = F32,
    [IR_OP_Mish] = NEVER,
    [IR_OP_NegativeLogLikelihoodLoss] = NEVER,
    [IR_OP_PRelu] = F32,
    [IR_OP_RMSNormalization] = T_F32F64 | DTYPE_BIT(TSSA_FLOAT16),
    [IR_OP_Range] = WIDE | DTYPE_BIT(TSSA_INT16),
    [IR_OP_ReduceL1] = WIDE,
    [IR_OP_ReduceL2] = WIDE,
    [IR_OP_ReduceLogSum] = WIDE,
    [IR_OP_ReduceLogSumExp] = WIDE,
    [IR_OP_ReduceSumSquare] = WIDE,
    [IR_OP_Relu] = T_F32F64 | DTYPE_BIT(TSSA_INT8) | DTYPE_BIT(TSSA_INT32),
    [IR_OP_RotaryEmbedding] = HALF,
    [IR_OP_Selu] = F32,
    [IR_OP_Softmax] = T_F32F64,
    [IR_OP_SoftmaxCrossEntropyLoss] = NEVER,
    [IR_OP_Softplus] = F32,
    [IR_OP_Softsign] = F32,
    [IR_OP_Swish] = NEVER,
    [IR_OP_ThresholdedRelu] = F32,
};

bool is_written_out(const struct ir_op *op)
{
    dtype_mask known = op->info->id < IR_OP_COUNT ? kernels[op->info->id] : 0;
    if (!known)
        return false;
    const struct ir_value *operand = ir_operand(op, 0);
    return !operand || operand->type->kind != TYPE_TENSOR ||
           !(known & DTYPE_BIT(operand->type->dtype));
}
