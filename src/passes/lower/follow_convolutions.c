/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes one `fuse` op of a Conv and of the fuse op that alone reads its result, where that is an
 * Add of a value of the same shape, then a Relu, or one of them (ir_fuse_convolves). A device
 * computes them with the convolution, in the library's call or in its own kernel, and so the result
 * is written once, and read by nobody in between.
 *
 *   needs   types, a table of what kernels take, else nothing is done
 *   keeps   results' bits, where no library computes them
 *   breaks  nothing
 */
#include "ir/fuse.h"
#include "passes/lower/fuse_remake.h"

/* x, weights, bias, and what is added. */
enum { MOST_OPERANDS = 4 };

/* ---- Which ----------------------------------------------------------------------------------- */

/* Of a fuse op that reads the result once, as this parameter: why it is more than that, or
 * something else; NULL: it is not. */
static const char *refuse_body(const struct ir_op *reader, const struct ir_value *param)
{
    const struct ir_op *op = ir_fuse_body(reader)->first;
    const struct ir_value *value = param;
    if (ir_op_is(op, IR_OP_Add) && !op->opaque) {
        const bool first = ir_operand(op, 0) == value;
        const struct ir_value *other = ir_operand(op, first);
        if (ir_operand(op, !first) != value || other == value || other->block != op->parent ||
            !type_same_dims(other->type, value->type) || other->type->dtype != value->type->dtype)
            return "what is added to it is no value of its shape";
        value = &op->results[0];
        op = op->next;
    }
    if (ir_op_is(op, IR_OP_Relu) && ir_operand(op, 0) == value) {
        value = &op->results[0];
        op = op->next;
    }
    return value != param && ir_op_is(op, IR_OP_return) && reader->n_results == 1 &&
                   ir_operand(op, 0) == value
               ? NULL
               : "what reads it is not an Add, a Relu, or these alone";
}

/* The fuse op that reads the result, and whether it alone does, once; NULL: none does. */
static struct ir_op *reader_of(const struct ir_op *conv, uint32_t *operand, bool *alone)
{
    struct ir_op *reader = NULL;
    uint32_t n = 0;
    for (const struct ir_use *use = conv->results[0].uses; use; use = use->next, n++)
        if (ir_fuse_body(use->user) && !use->user->opaque && use->user->parent == conv->parent)
            reader = use->user;
    *alone = n == 1;
    for (uint32_t i = 0; reader && i < reader->n_operands; i++)
        if (ir_operand(reader, i) == &conv->results[0])
            *operand = i;
    return reader;
}

/* Each of them another one. */
static bool has_plain_operands(const struct ir_op *conv)
{
    for (uint32_t i = 0; i < conv->n_operands; i++)
        for (uint32_t k = 0; k <= i; k++)
            if (!ir_operand(conv, i) || (k < i && ir_operand(conv, k) == ir_operand(conv, i)))
                return false;
    return conv->n_operands < MOST_OPERANDS;
}

/* ---------------------------------------------------------------------------------------------- */

/* The Conv of which the fuse op reads the result, as operand `*operand`, and the device computes
 * more with it; NULL: there is none, or another reader is told of it. */
static struct ir_op *conv_of(const struct pass_context *pass, const struct ir_op *reader,
                             uint32_t *operand, bool *alone)
{
    for (uint32_t i = 0; ir_fuse_body(reader) && i < reader->n_operands; i++) {
        struct ir_op *op = ir_operand(reader, i)->op;
        if (op && ir_op_is(op, IR_OP_Conv) && !op->opaque && has_plain_operands(op) &&
            reader_of(op, operand, alone) == reader &&
            pass->fusion->follows(pass->fusion->user, op))
            return op;
    }
    return NULL;
}

static tssa_status *visit(void *context, struct ir_op *op)
{
    struct pass_context *pass = context;
    struct ir_fuse_convolution found;
    uint32_t operand = 0;
    bool alone = false;
    struct ir_op *conv = conv_of(pass, op, &operand, &alone);
    if (!conv)
        return NULL;
    const char *why =
        alone ? refuse_body(op, ir_fuse_body(op)->params[operand]) : "others read its result, too";
    if (why)
        return pass_remark(pass, TSSA_REMARK_MISSED, conv,
                           "nothing is computed with the convolution: %s", why);
    TRY(fuse_take_in(pass, conv, &op));
    op->name = conv->name;
    pass->changed = true;
    ir_fuse_convolves(op, &found);
    return pass_remark(pass, TSSA_REMARK_APPLIED, op, "%s computed with the convolution",
                       found.adds && found.clips ? "a sum and a Relu are"
                       : found.adds              ? "a sum is"
                                                 : "a Relu is");
}

tssa_status *pass_follow_convolutions(struct pass_context *pass)
{
    return pass->fusion && pass->fusion->follows ? ir_block_walk(pass->graph->body, visit, pass)
                                                 : NULL;
}
