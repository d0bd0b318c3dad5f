/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A product with a constant matrix and a bias that is added to it is one Gemm:
 *
 *     Add(MatMul(x[M, K], W[K, N]), b[N])   ->   Gemm(x, W, b)
 *
 * Only matrices of FLOAT and DOUBLE, and a bias of one number for each column. In ONNX Runtime with
 * its optimizations this takes as long as before (it makes the same Gemm), without them 0.7 to 1.0
 * times as long; other runtimes have less to find. Not for sessions, whose Gemm adds in a step of
 * its own.
 *
 *   needs   types
 *   keeps   nothing of the last bits: a library may begin its sums with the bias
 *   breaks  nothing
 */
#include "passes/lower/products.h"

static bool is_bias(const struct ir_value *value, const struct product *p)
{
    const struct ir_type *type = value ? value->type : NULL;
    if (p->w->dtype == TSSA_FLOAT16 || !type || type->kind != TYPE_TENSOR ||
        type->dtype != p->w->dtype || type->rank < 1 || type->rank > 2)
        return false;
    return dim_is(type->dims[type->rank - 1], p->out) &&
           (type->rank == 1 || dim_is(type->dims[0], 1));
}

static tssa_status *visit(void *context, struct ir_op *op)
{
    struct pass_context *pass = context;
    struct product p;
    if (!ir_op_is(op, IR_OP_Add))
        return NULL;
    for (uint32_t i = 0; i < 2; i++) {
        const struct ir_value *product = ir_operand(op, i);
        struct ir_value *bias = ir_operand(op, 1 - i);
        struct ir_op *matmul = product ? product->op : NULL;
        if (!matmul || !ir_op_is(matmul, IR_OP_MatMul) || product->uses->next ||
            matmul->parent != op->parent || !product_open(matmul, &p) || p.rank != 2 ||
            !is_bias(bias, &p))
            continue;
        struct ir_op *gemm = ir_op_create(pass->graph, ir_op_info(IR_OP_Gemm), 3, 1);
        TRY_ALLOC(gemm);
        gemm->version = ir_op_bind(gemm->info, IR_NEWEST_OPSET);
        ir_op_set_operand(gemm, 0, ir_operand(matmul, 0));
        ir_op_set_operand(gemm, 1, ir_operand(matmul, 1));
        ir_op_set_operand(gemm, 2, bias);
        TRY(pass_remark(pass, TSSA_REMARK_APPLIED, op, "is the bias of a Gemm"));
        TRY(pass_replace(pass, op, gemm));
        ir_op_remove(matmul);
        return NULL;
    }
    return NULL;
}

tssa_status *pass_make_gemms(struct pass_context *pass)
{
    return pass_is_for_session(pass) ? NULL : ir_block_walk(pass->graph->body, visit, pass);
}
