/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/lower/fuse_remake.h"

#include "ir/fuse.h"
#include "ir/infer.h"

struct remaking {
    struct ir_graph *graph;
    struct ir_op *fuse;              /* as it was */
    struct ir_block *body;           /* the new one's */
    VEC(struct ir_value *) operands; /* of that, from outside */
};

/* Stands in the new block for a value that ops of the old one read. */
static struct ir_value *enter(struct remaking *r, struct ir_value *value)
{
    if (value->block == ir_fuse_body(r->fuse))
        value = ir_operand(r->fuse, value->index);
    for (size_t i = 0; i < r->operands.count; i++)
        if (r->operands.data[i] == value)
            return r->body->params[i];
    struct ir_value *param = ir_block_add_param(r->body);
    if (!param || !vec_push(&r->operands, value))
        return NULL;
    param->type = value->type;
    param->known = value->known;
    return param;
}

static tssa_status *move_ops(struct remaking *r)
{
    struct ir_block *old = ir_fuse_body(r->fuse);
    const uint32_t n = ir_block_return(old)->n_operands;
    struct ir_op *ret = ir_op_create(r->graph, ir_op_info(IR_OP_return), n, 0);
    TRY_ALLOC(ret);
    for (struct ir_op *op = old->first; op; op = op->next)
        for (uint32_t i = 0; i < op->n_operands; i++) {
            struct ir_value *value = ir_operand(op, i);
            if (!value || fuse_maker(value, old))
                continue;
            value = enter(r, value);
            TRY_ALLOC(value);
            ir_op_set_operand(op, i, value);
        }
    ir_op_append(r->body, ret);
    for (uint32_t i = 0; i < ret->n_operands; i++)
        ir_op_set_operand(ret, i, ir_operand(ir_block_return(old), i));
    ir_move_ops(old, ret);
    return NULL;
}

static void hand_on(struct ir_value *from, struct ir_value *to)
{
    to->type = from->type;
    to->known = from->known;
    to->wanted = from->wanted;
    to->declared = from->declared;
    to->name = from->name;
    from->declared = NULL;
    from->name = NULL;
    ir_value_replace(from, to);
}

/* What the block returns is a result, of which there may be more or less than before. */
static void hand_on_all(struct ir_op *old, struct ir_op *fuse)
{
    for (uint32_t i = 0; i < fuse->n_results; i++)
        if (i < old->n_results) {
            hand_on(&old->results[i], &fuse->results[i]);
        } else {
            const struct ir_value *made = ir_operand(ir_block_return(ir_fuse_body(fuse)), i);
            fuse->results[i].type = made->type;
            fuse->results[i].known = made->known;
        }
}

static tssa_status *remake_as(struct remaking *r, struct ir_op **made)
{
    struct ir_graph *graph = r->graph;
    struct ir_op *old = r->fuse;
    r->body = ir_block_create(graph, NULL, 0);
    TRY_ALLOC(r->body);
    TRY(move_ops(r));
    struct ir_op *fuse = ir_op_create(graph, ir_op_info(IR_OP_fuse), r->body->n_params,
                                      ir_block_return(r->body)->n_operands);
    if (!fuse || !ir_op_set_blocks(graph, fuse, 1))
        return status_out_of_memory();
    fuse->blocks[0] = r->body;
    fuse->block_names[0] = old->block_names[0];
    fuse->name = old->name;
    r->body->owner = fuse;
    for (size_t i = 0; i < r->operands.count; i++)
        ir_op_set_operand(fuse, (uint32_t)i, r->operands.data[i]);
    hand_on_all(old, fuse);
    ir_op_insert_before(fuse, old);
    ir_release_blocks(old);
    ir_op_remove(old);
    fuse->inferred_from = ir_infer_stamp(fuse);
    *made = fuse;
    return NULL;
}

tssa_status *fuse_remake(struct pass_context *pass, struct ir_op **fuse)
{
    struct remaking r = {.graph = pass->graph, .fuse = *fuse};
    vec_init(&r.operands, pass->graph->allocator);
    tssa_status *status = remake_as(&r, fuse);
    vec_free(&r.operands);
    return status;
}

tssa_status *fuse_take_in(struct pass_context *pass, struct ir_op *op, struct ir_op **fuse)
{
    struct ir_block *body = ir_fuse_body(*fuse);
    for (uint32_t i = 0; i < (*fuse)->n_operands; i++)
        if (ir_operand(*fuse, i) == &op->results[0])
            ir_value_replace(body->params[i], &op->results[0]);
    ir_op_move_before(op, body->first);
    return fuse_remake(pass, fuse);
}

void fuse_leave_block(struct ir_op *op, const struct ir_op *fuse)
{
    for (uint32_t i = 0; i < op->n_operands; i++) {
        struct ir_value *value = ir_operand(op, i);
        if (value && value->block)
            ir_op_set_operand(op, i, ir_operand(fuse, value->index));
    }
}

const char *fuse_refuses_whole(const struct pass_context *pass, const struct ir_op *fuse)
{
    const struct ir_fusion *fusion = pass->fusion;
    return fuse->n_operands > fusion->most_operands ? "it has more operands than kernels may have"
                                                    : fusion->refuses_whole(fusion->user, fuse);
}
