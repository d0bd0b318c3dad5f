/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuse ops that read each other's results, and products of matrices between them, as one: where who
 * has kernels has one of both, which then has stages (gir/grid.h). A step of attention, say, whose
 * products for q, k and v are a fuse op, whose scores are a product of these, and so on.
 */
#include "ir/fuse.h"
#include "ir/infer.h"
#include "passes/lower/fuse_remake.h"
#include "passes/lower/fuse_wrap.h"

/* ---- Ops as one fuse op ---------------------------------------------------------------------- */

/* Ops that stand one behind the other in a block. */
struct range {
    struct ir_op *first, *last;
};

struct wrapping {
    struct fuse_wrap wrap;
    struct range range;
    VEC(struct ir_value *) results; /* that are used outside */
};

static bool is_in(const struct range *range, const struct ir_op *op)
{
    const struct ir_op *at = range->first;
    while (at != range->last && at != op)
        at = at->next;
    return at == op;
}

static bool is_used_outside(const struct wrapping *w, const struct ir_value *value)
{
    const struct ir_use *use = value->uses;
    while (use && is_in(&w->range, use->user))
        use = use->next;
    return use != NULL;
}

static tssa_status *find_results(struct wrapping *w)
{
    for (struct ir_op *op = w->range.first;; op = op->next) {
        for (uint32_t i = 0; i < op->n_results; i++)
            if (is_used_outside(w, &op->results[i]) && !vec_push(&w->results, &op->results[i]))
                return status_out_of_memory();
        if (op == w->range.last)
            return NULL;
    }
}

static tssa_status *enter_operands(struct wrapping *w)
{
    for (struct ir_op *op = w->range.first;; op = op->next) {
        for (uint32_t i = 0; i < op->n_operands; i++) {
            struct ir_value *value = ir_operand(op, i);
            if (!value || (value->op && is_in(&w->range, value->op)))
                continue;
            value = fuse_wrap_enter(&w->wrap, value);
            TRY_ALLOC(value);
            ir_op_set_operand(op, i, value);
        }
        if (op == w->range.last)
            return NULL;
    }
}

static void move_inside(const struct wrapping *w, struct ir_op *fuse)
{
    struct ir_op *ret = ir_block_return(ir_fuse_body(fuse)), *next, *end = w->range.last->next;
    for (struct ir_op *op = w->range.first; op != end; op = next) {
        next = op->next;
        ir_op_move_before(op, ret);
    }
    for (size_t i = 0; i < w->results.count; i++) {
        fuse_hand_out(w->results.data[i], &fuse->results[i]);
        ir_op_set_operand(ret, (uint32_t)i, w->results.data[i]);
    }
}

static tssa_status *wrap_as(struct wrapping *w, struct ir_op **fuse)
{
    TRY(find_results(w));
    TRY(enter_operands(w));
    TRY(fuse_wrap_make(&w->wrap, (uint32_t)w->results.count, w->range.last->name, w->range.first,
                       fuse));
    move_inside(w, *fuse);
    (*fuse)->inferred_from = ir_infer_stamp(*fuse);
    return NULL;
}

/* What is outside of it uses the results of the fuse op. */
static tssa_status *wrap(struct ir_graph *graph, struct range range, struct ir_op **fuse)
{
    struct wrapping w = {.range = range};
    vec_init(&w.results, graph->allocator);
    tssa_status *status = fuse_wrap_open(&w.wrap, graph);
    if (!status)
        status = wrap_as(&w, fuse);
    fuse_wrap_close(&w.wrap);
    vec_free(&w.results);
    return status;
}

/* ---- Two that are one ------------------------------------------------------------------------ */

static bool is_product(const struct ir_op *op)
{
    return !op->opaque && (ir_op_is(op, IR_OP_MatMul) || ir_op_is(op, IR_OP_Gemm));
}

/* May it be a stage, or several? */
static bool is_candidate(const struct pass_context *pass, const struct ir_op *op)
{
    const struct ir_fusion *fusion = pass->fusion;
    const struct ir_block *body = ir_fuse_body(op);
    if (!body)
        return is_product(op) && !(fusion->refuses && fusion->refuses(fusion->user, op));
    return !ir_fuse_loop(op) && !ir_fuse_boxes(op) && !ir_fuse_lists(body->first);
}

static bool has_product(const struct ir_op *op)
{
    const struct ir_block *body = ir_fuse_body(op);
    return is_product(op) ||
           (body && (ir_block_has(body, IR_OP_MatMul) || ir_block_has(body, IR_OP_Gemm)));
}

/* Does an op between the two use what the first one computes? */
static bool is_used_between(const struct ir_op *first, const struct ir_op *second)
{
    for (uint32_t i = 0; i < first->n_results; i++)
        for (const struct ir_use *use = first->results[i].uses; use; use = use->next)
            for (const struct ir_op *op = first->next; op != second; op = op->next) {
                const struct ir_op *user = use->user;
                while (user && user != op)
                    user = user->parent ? user->parent->owner : NULL;
                if (user)
                    return true;
            }
    return false;
}

static bool stands_before(const struct ir_op *first, const struct ir_op *second)
{
    while (first && first != second)
        first = first->next;
    return first != NULL;
}

/* The last op before it of which it reads a result, and which may be one with it; NULL: none. */
static struct ir_op *find_first(const struct pass_context *pass, const struct ir_op *second)
{
    struct ir_op *first = NULL;
    for (uint32_t i = 0; i < second->n_operands; i++) {
        struct ir_op *maker = fuse_maker(ir_operand(second, i), second->parent);
        if (maker && (!first || stands_before(first, maker)))
            first = maker;
    }
    return first && is_candidate(pass, first) && (has_product(first) && has_product(second)) &&
                   !is_used_between(first, second)
               ? first
               : NULL;
}

/* Puts the ops of a fuse op in its place, or leaves another one where it is. */
static struct range unwrap(struct ir_op *op)
{
    const struct ir_block *body = ir_fuse_body(op);
    const struct range range = {body ? body->first : op, body ? body->last->prev : op};
    if (body)
        ir_fuse_inline(op);
    return range;
}

/* *fuse is what the second op is then, alone or with the first. */
static tssa_status *join(struct pass_context *pass, struct ir_op *first, struct ir_op **second,
                         bool *joined)
{
    struct ir_graph *graph = pass->graph;
    struct ir_op *fuse, *again;
    const bool was_fuse[2] = {ir_fuse_body(first), ir_fuse_body(*second)};
    const char *const name = first->info->name;
    ir_op_move_before(first, *second);
    const struct range a = unwrap(first), b = unwrap(*second);
    TRY(wrap(graph, (struct range){a.first, b.last}, &fuse));
    const char *why = fuse_refuses_whole(pass, fuse);
    *joined = !why;
    if (!why) {
        *second = fuse;
        pass->changed = true;
        return pass_remark(pass, TSSA_REMARK_APPLIED, fuse,
                           "one kernel, in stages, with the %s "
                           "that it reads",
                           name);
    }
    ir_fuse_inline(fuse);
    if (was_fuse[0])
        TRY(wrap(graph, a, &again));
    *second = b.last;
    return was_fuse[1] ? wrap(graph, b, second) : NULL;
}

static tssa_status *join_all(struct pass_context *pass, struct ir_op **second)
{
    bool joined = true;
    struct ir_op *first;
    while (joined && (first = find_first(pass, *second)))
        TRY(join(pass, first, second, &joined));
    return NULL;
}

/* ---- All ------------------------------------------------------------------------------------- */

static tssa_status *visit(struct pass_context *pass, struct ir_block *block)
{
    for (struct ir_op *op = block->first; op; op = op->next) {
        for (uint32_t i = 0; i < op->n_blocks && !op->opaque && !ir_fuse_body(op); i++)
            TRY(visit(pass, op->blocks[i]));
        if (is_candidate(pass, op))
            TRY(join_all(pass, &op));
    }
    return NULL;
}

tssa_status *fuse_stages(struct pass_context *pass, struct ir_block *block)
{
    const struct ir_fusion *fusion = pass->fusion;
    return (fusion->classes & IR_FUSES_PRODUCTS) && fusion->refuses_whole ? visit(pass, block)
                                                                          : NULL;
}
