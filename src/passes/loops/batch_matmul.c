/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products for all iterations at once (batch_rules.h). */
#include "passes/loops/batch_rules.h"

/* [n, m, k] x [..., k, c]: rows of all iterations under each other, one product instead of n. */
static bool matmul_rows(struct batch *batch, const struct ir_op *op)
{
    bool batched;
    int64_t m, k, c;
    int right = batch_rank(op, 1);
    const struct ir_type *a = ir_operand(op, 0)->type, *b = ir_operand(op, 1)->type;
    int64_t dims[TSSA_MAX_RANK + 1], n;
    if (!dim_is_const(a->dims[0], &m) || !dim_is_const(a->dims[1], &k) ||
        !dim_is_const(b->dims[right - 1], &c) || !dim_is_const(batch->n_trips, &n) || n < 1 ||
        m < 1 || k < 1 || c < 1)
        return false;
    for (int i = 0; i < right - 2; i++)
        if (!dim_is_const(b->dims[i], &dims[i]) || dims[i] < 1)
            return false;
    const int64_t flat[] = {n * m, k};
    struct ir_value *rows[] = {batch_operand(batch, op, 0, &batched),
                               batch_ints(batch, 1, 2, flat)};
    struct ir_op *reshaped = batch_make(batch, op, IR_OP_Reshape, 2, rows);
    if (!reshaped)
        return false;
    struct ir_value *factors[] = {&reshaped->results[0], batch_operand(batch, op, 1, &batched)};
    struct ir_op *product = batch_make(batch, op, IR_OP_MatMul, 2, factors);
    dims[right - 2] = n;
    dims[right - 1] = m;
    dims[right] = c;
    struct ir_value *back[] = {product ? &product->results[0] : NULL,
                               batch_ints(batch, 1, (size_t)right + 1, dims)};
    struct ir_op *split = batch_make(batch, op, IR_OP_Reshape, 2, back);
    struct ir_value *value =
        split ? batch_move_axis(batch, op, &split->results[0], right - 2, 0) : NULL;
    return value && batch_define(batch, op, 0, value, true);
}

/* A vector becomes a matrix of one row or column. */
static struct ir_value *as_matrix(struct batch *batch, const struct ir_op *op, uint32_t index)
{
    bool batched;
    struct ir_value *value = batch_operand(batch, op, index, &batched);
    if (batch_rank(op, index) >= 2)
        return value;
    return batch_unsqueeze(batch, op, value, (batched ? 1 : 0) + (int)index, 1);
}

bool batch_rule_matmul(struct batch *batch, const struct ir_op *op)
{
    int left = batch_rank(op, 0), right = batch_rank(op, 1);
    if (left < 1 || right < 1)
        return false;
    if (left == 2 && right >= 2 && !batch_has_axis(batch, op, 1) && matmul_rows(batch, op))
        return true;
    if (batch->status)
        return false;
    int rank = left > right ? left : right;
    struct ir_value *factors[2];
    rank = rank < 2 ? 2 : rank;
    for (uint32_t i = 0; i < 2; i++) {
        int have = batch_rank(op, i) < 2 ? 2 : batch_rank(op, i);
        factors[i] = as_matrix(batch, op, i);
        if (factors[i] && batch_has_axis(batch, op, i))
            factors[i] = batch_unsqueeze(batch, op, factors[i], 1, rank - have);
    }
    struct ir_op *product = batch_make(batch, op, IR_OP_MatMul, 2, factors);
    struct ir_value *value = product ? &product->results[0] : NULL;
    int64_t axes[2];
    size_t n = 0;
    if (left == 1)
        axes[n++] = rank - 1;
    if (right == 1)
        axes[n++] = rank;
    if (value && n) {
        struct ir_value *operands[] = {value, batch_ints(batch, 1, n, axes)};
        struct ir_op *squeezed = batch_make(batch, op, IR_OP_Squeeze, 2, operands);
        value = squeezed ? &squeezed->results[0] : NULL;
    }
    return value && batch_define(batch, op, 0, value, true);
}

/* alpha and beta of 1, no transposed factor that has the axis: MatMul and Add. */
bool batch_rule_gemm(struct batch *batch, const struct ir_op *op)
{
    static const int64_t swap[] = {1, 0};
    bool batched;
    struct ir_value *factors[2];
    if (ir_attr_float(op, "alpha", 1) != 1 || ir_attr_float(op, "beta", 1) != 1)
        return false;
    for (uint32_t i = 0; i < 2; i++) {
        bool transposed = ir_attr_int(op, i ? "transB" : "transA", 0) != 0;
        factors[i] = batch_operand(batch, op, i, &batched);
        if (transposed && batched)
            return false;
        if (transposed)
            factors[i] = batch_permute(batch, op, factors[i], swap);
    }
    struct ir_op *made = batch_make(batch, op, IR_OP_MatMul, 2, factors);
    if (made && ir_operand(op, 2)) {
        struct ir_value *terms[] = {&made->results[0], batch_aligned(batch, op, 2, 2)};
        made = batch_make(batch, op, IR_OP_Add, 2, terms);
    }
    return made && batch_define(batch, op, 0, &made->results[0], true);
}
