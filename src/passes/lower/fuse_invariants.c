/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An element-wise op before a loop of which each iteration reads other elements, in a fuse op that
 * alone reads it: that computes them where it reads them, and a launch is saved.
 *
 *     %b = Add(%p, %bias): f32[50, 1024]
 *     Loop(%n, _, ...) { (%i, ...): ... %x = access(%b, %i) {rule = [select(0, $0)]} ... }
 */
#include "ir/fuse.h"
#include "ir/rule.h"
#include "passes/analysis/loops.h"
#include "passes/lower/fuse_remake.h"

/* ---- Sizes ----------------------------------------------------------------------------------- */

/* False: nobody knows, or it is none. */
static bool count_elements(const struct ir_value *value, int64_t *n)
{
    const struct ir_type *type = value->type;
    int64_t size;
    *n = 1;
    if (type->kind != TYPE_TENSOR || type->rank < 0)
        return false;
    for (int i = 0; i < type->rank; i++)
        if (!dim_is_const(type->dims[i], &size) || __builtin_mul_overflow(*n, size, n))
            return false;
    return true;
}

/* ---- Before a loop --------------------------------------------------------------------------- */

/* Of the parameter of a fuse op's block: how many elements of it are read, at most; INT64_MAX:
 * nobody knows. */
static int64_t count_read(const struct ir_value *param)
{
    int64_t all = 0, n;
    for (const struct ir_use *use = param->uses; use; use = use->next)
        if (!ir_op_is(use->user, IR_OP_access) || ir_operand(use->user, 0) != param ||
            !count_elements(&use->user->results[0], &n) || __builtin_add_overflow(all, n, &all))
            return INT64_MAX;
    return all;
}

/* Is no element of the operand computed more often if the iterations do? */
static bool is_read_in_turn(const struct ir_op *fuse, uint32_t operand, int64_t trips)
{
    const int64_t read = count_read(ir_fuse_body(fuse)->params[operand]);
    int64_t n, all;
    return count_elements(ir_operand(fuse, operand), &n) &&
           !__builtin_mul_overflow(read, trips, &all) && all <= n;
}

static bool is_elementwise(const struct ir_op *op)
{
    return !op->opaque && op->info->ew && op->n_results == 1;
}

/* Is it an element-wise op, or a kernel of one and of views? */
static bool is_simple(const struct ir_op *op)
{
    const struct ir_block *body = ir_fuse_body(op);
    uint32_t n = 0;
    if (!body)
        return is_elementwise(op);
    for (const struct ir_op *inner = body->first; inner != body->last; inner = inner->next)
        if (is_elementwise(inner))
            n++;
        else if (!ir_op_is(inner, IR_OP_access) || !rule_keeps_order(rule_of(inner)))
            return false;
    return n == 1 && op->n_results == 1;
}

/* An op before the loop which is computed for the operand alone; NULL: there is none. */
static struct ir_op *find_before(const struct loop *loop, const struct ir_op *fuse,
                                 uint32_t operand, int64_t trips)
{
    const struct ir_value *value = ir_operand(fuse, operand);
    struct ir_op *op = fuse_maker(value, loop->op->parent);
    return op && is_simple(op) && fuse_is_read_once(value) && is_read_in_turn(fuse, operand, trips)
               ? op
               : NULL;
}

/* Ops that stand one behind the other. */
struct moved {
    struct ir_op *first, *last;
};

/* The op itself, or those of the kernel, which stand in its place then. */
static struct moved take_out(struct ir_op *op)
{
    const struct ir_block *body = ir_fuse_body(op);
    const struct moved moved = {body ? body->first : op, body ? body->last->prev : op};
    if (body)
        ir_fuse_inline(op);
    return moved;
}

/* They come before `before`, and know no block that they were in. */
static void move(const struct moved *moved, struct ir_op *before, const struct ir_op *out_of)
{
    struct ir_op *next, *end = moved->last->next;
    for (struct ir_op *op = moved->first; op != end; op = next) {
        next = op->next;
        ir_op_move_before(op, before);
        if (out_of)
            fuse_leave_block(op, out_of);
    }
}

static tssa_status *say(struct pass_context *pass, const struct ir_op *fuse, const struct ir_op *op,
                        const char *why)
{
    if (!why)
        return pass_remark(pass, TSSA_REMARK_APPLIED, fuse,
                           "computes of the %s before the loop what it reads", op->info->name);
    return pass_remark(pass, TSSA_REMARK_MISSED, op, "iterations do not compute what they read: %s",
                       why);
}

/* Takes the op in if there is a kernel of that. */
static tssa_status *take_in(struct pass_context *pass, struct ir_op **fuse, struct ir_op *op,
                            struct ir_op *loop)
{
    const struct ir_block *body = ir_fuse_body(*fuse);
    uint32_t operand = 0;
    while (ir_operand(*fuse, operand) != &op->results[0])
        operand++;
    const struct moved moved = take_out(op);
    struct ir_value *value = ir_operand(*fuse, operand);
    move(&moved, body->first, NULL);
    ir_value_replace(body->params[operand], value);
    TRY(fuse_remake(pass, fuse));
    const char *why = fuse_refuses_whole(pass, *fuse);
    pass->changed |= !why;
    if (why) {
        move(&moved, loop, *fuse);
        TRY(fuse_remake(pass, fuse));
    }
    return say(pass, *fuse, moved.last, why);
}

static tssa_status *take_before(struct pass_context *pass, const struct loop *loop,
                                struct ir_op *fuse, int64_t trips)
{
    VEC(struct ir_op *) found;
    tssa_status *status = NULL;
    vec_init(&found, pass->graph->allocator);
    for (uint32_t i = 0; i < fuse->n_operands && !status; i++) {
        struct ir_op *op = find_before(loop, fuse, i, trips);
        if (op && !vec_push(&found, op))
            status = status_out_of_memory();
    }
    for (size_t k = 0; k < found.count && !status; k++)
        status = take_in(pass, &fuse, found.data[k], loop->op);
    vec_free(&found);
    return status;
}

/* ---- All ------------------------------------------------------------------------------------- */

static tssa_status *of_loop(struct pass_context *pass, struct ir_op *op)
{
    const struct loop loop = loop_of(op);
    struct ir_op *next;
    int64_t trips;
    if (!loop_trips(&loop, &trips))
        return NULL;
    for (struct ir_op *inner = loop.body->first; inner; inner = next) {
        next = inner->next;
        if (ir_fuse_body(inner) && !ir_fuse_loop(inner))
            TRY(take_before(pass, &loop, inner, trips));
    }
    return NULL;
}

tssa_status *fuse_invariants(struct pass_context *pass, struct ir_block *block)
{
    if (!pass->fusion->side_by_side || !pass->fusion->refuses_whole)
        return NULL;
    for (struct ir_op *op = block->first; op; op = op->next) {
        for (uint32_t i = 0; i < op->n_blocks && !op->opaque && !ir_fuse_body(op); i++)
            TRY(fuse_invariants(pass, op->blocks[i]));
        if (ir_op_is(op, IR_OP_Loop) && !op->opaque)
            TRY(of_loop(pass, op));
    }
    return NULL;
}
