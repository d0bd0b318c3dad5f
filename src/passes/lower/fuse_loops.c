/* SPDX-License-Identifier: Apache-2.0 */
/* Fuse ops of loops: where an iteration is one kernel, and each element of what is carried depends
 * on no other one, all iterations are one (ir_fuse_loop). Who has kernels says where that is so. */
#include "ir/fuse.h"
#include "ir/infer.h"
#include "passes/lower/fuse.h"

struct wrapping {
    struct pass_context *pass;
    struct ir_op *loop, *fuse;
    struct ir_block *body;           /* of the fuse op */
    VEC(struct ir_value *) operands; /* of that, from outside */
};

/* Stands in the block for a value that is not the loop's. */
static struct ir_value *enter(struct wrapping *w, struct ir_value *value)
{
    for (size_t i = 0; i < w->operands.count; i++)
        if (w->operands.data[i] == value)
            return w->body->params[i];
    struct ir_value *param = ir_block_add_param(w->body);
    if (!param || !vec_push(&w->operands, value))
        return NULL;
    param->type = value->type;
    param->known = value->known;
    return param;
}

/* Is it made in the loop's body? */
static bool is_inside(const struct wrapping *w, const struct ir_value *value)
{
    return (value->op ? value->op->parent : value->block) == w->loop->blocks[0];
}

static tssa_status *enter_operands(struct wrapping *w, struct ir_op *op)
{
    for (uint32_t i = 0; i < op->n_operands; i++) {
        struct ir_value *value = ir_operand(op, i);
        if (!value || is_inside(w, value))
            continue;
        value = enter(w, value);
        TRY_ALLOC(value);
        ir_op_set_operand(op, i, value);
    }
    return NULL;
}

static uint32_t count_used(const struct ir_op *loop)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < loop->n_results; i++)
        n += loop->results[i].wanted && loop->results[i].uses;
    return n;
}

/* The fuse op stands before the loop, and takes it in. */
static tssa_status *wrap(struct wrapping *w)
{
    struct ir_graph *graph = w->pass->graph;
    struct ir_op *loop = w->loop, *ret;
    const uint32_t n = count_used(loop);
    w->body = ir_block_create(graph, NULL, 0);
    TRY_ALLOC(w->body);
    TRY(enter_operands(w, loop));
    for (struct ir_op *op = loop->blocks[0]->first; op; op = op->next)
        TRY(enter_operands(w, op));
    w->fuse = ir_op_create(graph, ir_op_info(IR_OP_fuse), w->body->n_params, n);
    ret = ir_op_create(graph, ir_op_info(IR_OP_return), n, 0);
    if (!w->fuse || !ret || !ir_op_set_blocks(graph, w->fuse, 1))
        return status_out_of_memory();
    w->fuse->blocks[0] = w->body;
    w->fuse->block_names[0] = intern_str(&graph->strings, IR_FUSE_BODY);
    TRY_ALLOC(w->fuse->block_names[0]);
    w->body->owner = w->fuse;
    w->fuse->name = loop->name;
    for (size_t i = 0; i < w->operands.count; i++)
        ir_op_set_operand(w->fuse, (uint32_t)i, w->operands.data[i]);
    ir_op_insert_before(w->fuse, loop);
    ir_op_append(w->body, ret);
    ir_op_move_before(loop, ret);
    for (uint32_t i = 0, k = 0; i < loop->n_results; i++) {
        if (!loop->results[i].wanted || !loop->results[i].uses)
            continue;
        fuse_hand_out(&loop->results[i], &w->fuse->results[k]);
        ir_op_set_operand(ret, k++, &loop->results[i]);
    }
    w->fuse->inferred_from = ir_infer_stamp(w->fuse);
    return NULL;
}

/* Not the loop: it is as it was. */
static tssa_status *unwrap(const struct wrapping *w, const char *why)
{
    ir_fuse_inline(w->fuse);
    return pass_remark(w->pass, TSSA_REMARK_MISSED, w->loop,
                       "each iteration is a kernel, and not all of them one: %s", why);
}

static tssa_status *fuse_loop(struct pass_context *pass, struct ir_op *loop)
{
    const struct ir_fusion *fusion = pass->fusion;
    struct wrapping w = {.pass = pass, .loop = loop};
    vec_init(&w.operands, pass->graph->allocator);
    tssa_status *status = wrap(&w);
    vec_free(&w.operands);
    TRY(status);
    const char *why = fusion->refuses_whole(fusion->user, w.fuse);
    if (why)
        return unwrap(&w, why);
    pass->changed = true;
    return pass_remark(pass, TSSA_REMARK_APPLIED, w.fuse, "one kernel of all iterations");
}

static bool is_loop(const struct ir_op *op)
{
    return (ir_op_is(op, IR_OP_Loop) || ir_op_is(op, IR_OP_Scan)) && !op->opaque &&
           ir_fuse_iteration(op) && count_used(op);
}

tssa_status *fuse_loops(struct pass_context *pass, struct ir_block *block)
{
    struct ir_op *next;
    if (!(pass->fusion->classes & IR_FUSES_LOOPS) || !pass->fusion->refuses_whole)
        return NULL;
    for (struct ir_op *op = block->first; op; op = next) {
        next = op->next;
        for (uint32_t i = 0; i < op->n_blocks && !op->opaque && !ir_fuse_body(op); i++)
            TRY(fuse_loops(pass, op->blocks[i]));
        if (is_loop(op))
            TRY(fuse_loop(pass, op));
    }
    return NULL;
}
