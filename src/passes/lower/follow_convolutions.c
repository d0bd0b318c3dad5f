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
#include "ir/clone.h"
#include "ir/fuse.h"
#include "ir/infer.h"
#include "passes/pass.h"

/* x, weights, bias, and what is added. */
enum { MOST_OPERANDS = 4 };

/* ---- Which ----------------------------------------------------------------------------------- */

static bool same_dims(const struct ir_type *a, const struct ir_type *b)
{
    bool same = a->kind == TYPE_TENSOR && b->kind == TYPE_TENSOR && a->rank == b->rank &&
                a->rank >= 0 && a->dtype == b->dtype;
    for (int i = 0; same && i < a->rank; i++)
        same = a->dims[i] == b->dims[i];
    return same;
}

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
            !same_dims(other->type, value->type))
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

/* ---- Making ---------------------------------------------------------------------------------- */

struct making {
    struct ir_graph *graph;
    struct ir_op *conv, *reader, *fuse, *ret;
    struct ir_block *body;
    uint32_t n;
    struct ir_value *operands[MOST_OPERANDS];
};

static struct ir_value *enter(struct making *m, struct ir_value *value)
{
    for (uint32_t i = 0; i < m->n; i++)
        if (m->operands[i] == value)
            return m->body->params[i];
    struct ir_value *param = ir_block_add_param(m->body);
    if (!param)
        return NULL;
    param->type = value->type;
    param->known = value->known;
    m->operands[m->n++] = value;
    return param;
}

static tssa_status *create(struct making *m)
{
    m->fuse = ir_op_create(m->graph, ir_op_info(IR_OP_fuse), m->n, 1);
    m->ret = ir_op_create(m->graph, ir_op_info(IR_OP_return), 1, 0);
    if (!m->fuse || !m->ret || !ir_op_set_blocks(m->graph, m->fuse, 1))
        return status_out_of_memory();
    m->fuse->blocks[0] = m->body;
    m->fuse->block_names[0] = intern_str(&m->graph->strings, IR_FUSE_BODY);
    TRY_ALLOC(m->fuse->block_names[0]);
    m->body->owner = m->fuse;
    m->fuse->name = m->conv->name;
    for (uint32_t i = 0; i < m->n; i++)
        ir_op_set_operand(m->fuse, i, m->operands[i]);
    ir_op_append(m->body, m->ret);
    return NULL;
}

static void move_in(struct making *m)
{
    struct ir_block *from = ir_fuse_body(m->reader);
    struct ir_value *result = &m->reader->results[0], *by = &m->fuse->results[0];
    for (uint32_t i = 0; i < m->reader->n_operands; i++)
        ir_op_set_operand(m->reader, i, NULL);
    ir_op_move_before(m->conv, m->ret);
    for (uint32_t i = 0; i < m->conv->n_operands; i++)
        ir_op_set_operand(m->conv, i, m->body->params[i]);
    for (struct ir_op *op = from->first, *next; !ir_op_is(op, IR_OP_return); op = next) {
        next = op->next;
        ir_op_move_before(op, m->ret);
    }
    ir_op_set_operand(m->ret, 0, ir_operand(ir_block_return(from), 0));
    by->type = result->type;
    by->known = result->known;
    by->declared = result->declared;
    by->name = result->name;
    result->name = NULL;
    ir_value_replace(result, by);
}

static tssa_status *make(struct making *m)
{
    struct ir_block *from = ir_fuse_body(m->reader);
    m->body = ir_block_create(m->graph, NULL, 0);
    TRY_ALLOC(m->body);
    for (uint32_t i = 0; i < m->conv->n_operands; i++)
        TRY_ALLOC(enter(m, ir_operand(m->conv, i)));
    for (uint32_t i = 0; i < m->reader->n_operands; i++) {
        struct ir_value *value = ir_operand(m->reader, i),
                        *by = value == &m->conv->results[0] ? value : enter(m, value);
        TRY_ALLOC(by);
        ir_value_replace(from->params[i], by);
    }
    TRY(create(m));
    ir_op_insert_before(m->fuse, m->reader);
    move_in(m);
    ir_release_blocks(m->reader);
    ir_op_remove(m->reader);
    m->fuse->inferred_from = ir_infer_stamp(m->fuse);
    return NULL;
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
    struct making m = {.graph = pass->graph, .reader = op};
    m.conv = conv_of(pass, op, &operand, &alone);
    if (!m.conv)
        return NULL;
    const char *why =
        alone ? refuse_body(op, ir_fuse_body(op)->params[operand]) : "others read its result, too";
    if (why)
        return pass_remark(pass, TSSA_REMARK_MISSED, m.conv,
                           "nothing is computed with the convolution: %s", why);
    TRY(make(&m));
    pass->changed = true;
    ir_fuse_convolves(m.fuse, &found);
    return pass_remark(pass, TSSA_REMARK_APPLIED, m.fuse, "%s computed with the convolution",
                       found.adds && found.clips ? "a sum and a Relu are"
                       : found.adds              ? "a sum is"
                                                 : "a Relu is");
}

tssa_status *pass_follow_convolutions(struct pass_context *pass)
{
    return pass->fusion && pass->fusion->follows ? ir_block_walk(pass->graph->body, visit, pass)
                                                 : NULL;
}
