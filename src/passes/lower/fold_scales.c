/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What multiplies or shifts each channel by a constant becomes part of the weights of the Conv,
 * ConvTranspose, Gemm or MatMul before or behind it:
 *
 *     Conv(x, W, b) * s + t                 ->   Conv(x, W * s, b * s + t)
 *     BatchNormalization(Conv(x, W))        ->   Conv(x, W', b')
 *     Gemm(x * s + t, W, b)                 ->   Gemm(x, s * W, b + t W)
 *     MatMul(x, W) / s                      ->   MatMul(x, W / s)
 *
 * Mul, Div, Add, Sub and BatchNormalization are followed as far as each is the only user of the one
 * before. A shift needs a bias, which MatMul has not, and before a Conv it must not meet padding,
 * which is not shifted; before a ConvTranspose it never may, whose edges see less of the input than
 * its middle. New weights are computed in double and rounded once. They are not made where one
 * would not be finite, nor where others read the old ones and the file would grow too much
 * (pass_file_growth). In FLOAT16 only factors that are powers of two are folded, which round
 * nothing: another one, or a shift, changes results by more than --check tolerates (their error is
 * 1.4 times as large, over convolutions of 8 to 576 products), as ONNX Runtime does when it loads
 * the file. BFLOAT16 stays. Weights that are dequantised are no constants here: such models stay as
 * they are.
 *
 *   needs   constants where they are (fold_constants)
 *   keeps   nothing of the last bits: a product is rounded elsewhere. A zero keeps its sign: a
 *           negative factor without a shift behind it stays
 *   breaks  nothing
 */
#include "ir/rebuild.h"
#include "passes/lower/scaled_weights.h"

/* ---- The budget ------------------------------------------------------------------------------ */

static int64_t freed(const struct ir_value *value)
{
    const struct tensor *constant = value ? ir_value_constant(value) : NULL;
    return constant && value->uses && !value->uses->next ? (int64_t)tensor_bytes(constant) : 0;
}

static int64_t freed_by(const struct scale_chain *chain)
{
    int64_t bytes = 0;
    for (uint32_t k = 0; k < chain->count; k++)
        for (uint32_t i = 0; i < chain->ops[k]->n_operands; i++)
            bytes += freed(ir_operand(chain->ops[k], i));
    return bytes;
}

/* Also counts what is made. */
static bool is_affordable(struct pass_context *pass, const struct product *p,
                          const struct scale_chain *before, const struct scale_chain *after,
                          int64_t *more)
{
    bool scales = before->affine.scales || after->affine.scales;
    int64_t size = (int64_t)dtype_info(p->w->dtype)->size;
    *more = p->out * size - freed_by(before) - freed_by(after);
    if (p->bias)
        *more -= freed(ir_operand(p->op, 2));
    if (scales)
        *more += (int64_t)tensor_bytes(p->w) - freed(ir_operand(p->op, 1));
    if (*more <= 0 || pass_is_for_session(pass))
        return true;
    if (pass->graph->folded_growth + *more > pass_file_growth(pass))
        return false;
    pass->graph->folded_growth += *more;
    return true;
}

/* ---- The pass -------------------------------------------------------------------------------- */

static tssa_status *put_constant(struct ir_graph *graph, struct ir_op *op, uint32_t index,
                                 const struct tensor *tensor)
{
    if (!tensor)
        return NULL;
    struct ir_op *constant = ir_constant_create(graph, tensor);
    TRY(pass_insert(constant, op));
    if (index >= op->n_operands) {
        struct ir_value *const all[] = {ir_operand(op, 0), ir_operand(op, 1),
                                        &constant->results[0]};
        return ir_op_set_operands(op, 3, all) ? NULL : status_out_of_memory();
    }
    ir_op_set_operand(op, index, &constant->results[0]);
    return NULL;
}

/* The product takes the place of the chains. */
static void take_place(struct product *p, const struct scale_chain *before,
                       const struct scale_chain *after)
{
    struct ir_value *result = &p->op->results[0];
    if (before->count)
        ir_op_set_operand(p->op, 0, before->from);
    for (uint32_t i = 0; i < before->count; i++) /* the nearest one first */
        ir_op_remove(before->ops[i]);
    if (!after->count)
        return;
    struct ir_value *last = &after->ops[after->count - 1]->results[0];
    result->type = last->type;
    result->name = last->name;
    result->declared = last->declared;
    last->name = NULL;
    ir_value_replace(last, result);
    for (uint32_t i = after->count; i-- > 0;)
        ir_op_remove(after->ops[i]);
}

static tssa_status *fold(struct pass_context *pass, struct product *p,
                         const struct scale_chain *before, const struct scale_chain *after)
{
    struct scaled_weights made;
    int64_t more;
    if (!is_affordable(pass, p, before, after, &more))
        return pass_remark(pass, TSSA_REMARK_MISSED, p->op,
                           "factors beside it stay: its weights have other users, and the file "
                           "would be %lld bytes larger",
                           (long long)more);
    TRY(scaled_weights_make(pass->graph, p, &before->affine, &after->affine, &made));
    if (made.obstacle)
        return pass_remark(pass, TSSA_REMARK_MISSED, p->op, "factors beside it stay: %s",
                           made.obstacle);
    ir_graph_forget(pass->graph, p->w->data, tensor_bytes(p->w));
    TRY(put_constant(pass->graph, p->op, 1, made.w));
    TRY(put_constant(pass->graph, p->op, 2, made.bias));
    TRY(pass_remark(pass, TSSA_REMARK_APPLIED, p->op, "its weights have taken in %u ops",
                    (unsigned)(before->count + after->count)));
    take_place(p, before, after);
    pass->changed = true;
    return NULL;
}

static tssa_status *explain(struct pass_context *pass, const struct scale_chain *chain)
{
    if (!chain->stays)
        return NULL;
    return pass_remark(pass, TSSA_REMARK_MISSED, chain->stays,
                       "does not become part of the weights beside it: %s", chain->obstacle);
}

static tssa_status *follow(struct pass_context *pass, struct product *p, struct scale_chain *before,
                           struct scale_chain *after)
{
    TRY(scale_chain_create(pass->graph->allocator, p->in, before));
    TRY(scale_chain_create(pass->graph->allocator, p->out, after));
    scale_chain_precede(p, before);
    scale_chain_follow(p, after);
    TRY(explain(pass, before));
    TRY(explain(pass, after));
    return before->count || after->count ? fold(pass, p, before, after) : NULL;
}

static tssa_status *visit_block(struct pass_context *pass, struct ir_block *block)
{
    struct product p;
    for (struct ir_op *op = block->first; op; op = op->next) {
        for (uint32_t i = 0; i < op->n_blocks; i++)
            TRY(visit_block(pass, op->blocks[i]));
        if (!product_open(op, &p) || !scale_chain_exists(&p))
            continue;
        struct scale_chain before = {0}, after = {0};
        tssa_status *status = follow(pass, &p, &before, &after);
        scale_chain_free(pass->graph->allocator, &before);
        scale_chain_free(pass->graph->allocator, &after);
        TRY(status);
    }
    return NULL;
}

tssa_status *pass_fold_scales(struct pass_context *pass)
{
    return visit_block(pass, pass->graph->body);
}
