/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control flow in the body of a loop all of whose iterations are computed at once (batch.h):
 *
 *     an If that all iterations decide alike       stays, and both branches are computed for all
 *                                                  iterations
 *     an If that each iteration decides            goes: both branches are computed, and Where
 *                                                  chooses, when they are cheap and cannot fail
 *     a Loop that runs as often in all iterations  stays, outside: its body is computed for all
 *                                                  iterations and carries what they carry, stacked
 */
#include "ir/infer.h"
#include "ir/total.h"
#include "passes/analysis/loops.h"
#include "passes/analysis/regions.h"
#include "passes/loops/batch.h"

#define MAX_CHOSEN_OPS 32         /* in both branches, where both are computed */
#define MAX_CHOSEN_ELEMENTS 16384 /* that they compute in one iteration */

/* ---- Blocks ---------------------------------------------------------------------------------- */

/* Where ops are made, and values that may only be used there. */
struct place {
    struct ir_op *before;
    struct ir_value *trips_1d, *range;
};

static struct place enter(struct batch *batch, const struct ir_block *block)
{
    const struct place outer = {batch->before, batch->trips_1d, batch->range};
    batch->before = ir_block_return(block);
    return outer;
}

static void leave(struct batch *batch, const struct place *outer)
{
    batch->before = outer->before;
    batch->trips_1d = outer->trips_1d;
    batch->range = outer->range;
}

/* A copy of `op` before batch->before whose blocks are empty. `params`: those of its block. */
static struct ir_op *put_frame(struct batch *batch, const struct ir_op *op)
{
    struct ir_op *copy = batch_copy(batch, op);
    if (!copy || !ir_op_set_blocks(batch->graph, copy, op->n_blocks)) {
        batch_out_of_memory(batch);
        return NULL;
    }
    for (uint32_t b = 0; b < op->n_blocks; b++) {
        struct ir_block *block = ir_block_create(batch->graph, copy, op->blocks[b]->n_params);
        struct ir_op *ret = ir_op_create(batch->graph, ir_op_info(IR_OP_return),
                                         ir_block_return(op->blocks[b])->n_operands, 0);
        if (!block || !ret) {
            batch_out_of_memory(batch);
            return NULL;
        }
        ir_op_append(block, ret);
        copy->blocks[b] = block;
        copy->block_names[b] = op->block_names[b];
    }
    ir_op_insert_before(copy, batch->before);
    return copy;
}

static bool make_block(struct batch *batch, const struct ir_block *from, const struct ir_block *to)
{
    const struct place outer = enter(batch, to);
    bool done = batch_ops(batch, from);
    leave(batch, &outer);
    return done;
}

/* What stands for the value, with the axis when `batched`, becomes operand `index` of what `to`
 * returns. */
static bool set_return(struct batch *batch, const struct ir_op *op, const struct ir_value *value,
                       const struct ir_block *to, uint32_t index, bool batched)
{
    bool has_axis;
    const struct place outer = enter(batch, to);
    struct ir_value *made =
        batched ? batch_stacked(batch, value, op) : batch_get(batch, value, &has_axis);
    leave(batch, &outer);
    if (made)
        ir_op_set_operand(ir_block_return(to), index, made);
    return made || batch_refuse(batch, op, "a result of it has no form for all iterations");
}

static bool is_batched(const struct batch *batch, const struct ir_value *value)
{
    bool batched = false;
    return value && batch_get(batch, value, &batched) && batched;
}

/* ---- If, the same way in all iterations ------------------------------------------------------ */

static bool make_branches(struct batch *batch, const struct ir_op *op)
{
    bool has_axis;
    const struct ir_op *a = ir_block_return(op->blocks[0]), *b = ir_block_return(op->blocks[1]);
    struct ir_op *made = put_frame(batch, op);
    if (!made)
        return false;
    ir_op_set_operand(made, 0, batch_get(batch, ir_operand(op, 0), &has_axis));
    for (uint32_t i = 0; i < 2; i++)
        if (!make_block(batch, op->blocks[i], made->blocks[i]))
            return false;
    for (uint32_t i = 0; i < op->n_results; i++) {
        bool batched = is_batched(batch, ir_operand(a, i)) || is_batched(batch, ir_operand(b, i));
        if (!set_return(batch, op, ir_operand(a, i), made->blocks[0], i, batched) ||
            !set_return(batch, op, ir_operand(b, i), made->blocks[1], i, batched) ||
            !batch_define(batch, op, i, &made->results[i], batched))
            return false;
    }
    return batch_infer(batch, made);
}

/* ---- If, each iteration in its way ----------------------------------------------------------- */

static bool cannot_fail(const struct ir_op *op)
{
    return ir_op_is(op, IR_OP_access) || ir_op_is(op, IR_OP_assign)
               ? region_never_fails_in_loops(op)
               : ir_op_is_total(op);
}

static bool add_elements(const struct ir_value *value, int64_t *elements)
{
    int64_t count = 1, size;
    const struct ir_type *type = value->type;
    if (type->kind != TYPE_TENSOR || type->rank < 0)
        return false;
    for (int i = 0; i < type->rank; i++)
        if (!dim_is_const(type->dims[i], &size) || __builtin_mul_overflow(count, size, &count))
            return false;
    return !__builtin_add_overflow(*elements, count, elements) && *elements <= MAX_CHOSEN_ELEMENTS;
}

/* NULL, or why the block may not be computed where it was not chosen. */
static const char *why_not(const struct ir_block *block, int *ops, int64_t *elements)
{
    for (const struct ir_op *op = block->first; op != ir_block_return(block); op = op->next) {
        const char *why = NULL;
        if (ir_op_is(op, IR_OP_MatMul) || ++*ops > MAX_CHOSEN_OPS)
            return "each iteration decides it, and to compute both branches is too much work";
        if (!ir_op_is(op, IR_OP_If) && !cannot_fail(op))
            return "each iteration decides it, and a branch might fail where it is not taken";
        for (uint32_t i = 0; i < op->n_results; i++)
            if (op->results[i].wanted && !add_elements(&op->results[i], elements))
                return "each iteration decides it, and to compute both branches may be too much "
                       "work";
        for (uint32_t b = 0; b < op->n_blocks && !why; b++)
            why = why_not(op->blocks[b], ops, elements);
        if (why)
            return why;
    }
    return NULL;
}

/* The condition with as many axes behind the one in front as what it chooses. */
static struct ir_value *choice(struct batch *batch, const struct ir_op *op, int rank)
{
    bool batched;
    struct ir_value *condition = batch_get(batch, ir_operand(op, 0), &batched);
    int own = ir_operand(op, 0)->type->rank;
    if (own > rank)
        return batch_flat_index(batch, op, condition);
    return batch_unsqueeze(batch, op, condition, 1, rank - own);
}

static bool choose(struct batch *batch, const struct ir_op *op, uint32_t index)
{
    bool a_batched, b_batched;
    const struct ir_value *a = ir_operand(ir_block_return(ir_op_block(op, "then_branch")), index);
    const struct ir_value *b = ir_operand(ir_block_return(ir_op_block(op, "else_branch")), index);
    struct ir_value *x = batch_get(batch, a, &a_batched), *y = batch_get(batch, b, &b_batched);
    if (!x || !y)
        return batch_refuse(batch, op, "it needs what another iteration computed");
    if (x == y)
        return batch_define(batch, op, index, x, a_batched);
    if (a->type != b->type || a->type->kind != TYPE_TENSOR || a->type->rank < 0 ||
        a->type->rank >= TSSA_MAX_RANK || !dtype_in(PASS_SELECTABLE, a->type->dtype))
        return batch_refuse(batch, op,
                            "each iteration decides it, and its branches differ in type");
    struct ir_value *operands[] = {choice(batch, op, a->type->rank), x, y};
    struct ir_op *where = batch_make(batch, op, IR_OP_Where, 3, operands);
    if (!where)
        return false;
    where->exact = true;
    return batch_define(batch, op, index, &where->results[0], true);
}

static bool choose_all(struct batch *batch, const struct ir_op *op)
{
    int ops = 0;
    int64_t elements = 0;
    const struct ir_type *condition = ir_operand(op, 0)->type;
    const char *why =
        condition->kind == TYPE_TENSOR && (condition->rank == 0 || condition->rank == 1)
            ? NULL
            : "the rank of its condition is not known";
    for (uint32_t b = 0; b < op->n_blocks && !why; b++)
        why = why_not(op->blocks[b], &ops, &elements);
    if (why)
        return batch_refuse_operand(batch, op, 0, why);
    for (uint32_t b = 0; b < op->n_blocks; b++)
        if (!batch_ops(batch, op->blocks[b]))
            return false;
    for (uint32_t i = 0; i < op->n_results; i++)
        if (op->results[i].uses && !choose(batch, op, i))
            return false;
    return true;
}

/* ---- Loop ------------------------------------------------------------------------------------ */

/* Of one shape in all steps and in all iterations. */
static bool keeps_shape(const struct loop *loop, uint32_t k)
{
    const struct ir_value *initial = loop_initial(loop, k), *next = loop_next(loop, k);
    return initial && next && initial->type->kind == TYPE_TENSOR && initial->type->rank >= 0 &&
           initial->type->rank < TSSA_MAX_RANK && loop_param(loop, k)->type == initial->type &&
           next->type == initial->type;
}

/* Does it make as many steps, of the same shapes, in all iterations of the loop around it? */
static bool is_uniform(struct batch *batch, const struct loop *loop)
{
    int64_t n;
    for (uint32_t i = 0; i < 2; i++)
        if (is_batched(batch, ir_operand(loop->op, i)))
            return batch_refuse_operand(batch, loop->op, i,
                                        "each iteration decides how often it runs");
    if (!ir_operand(loop->op, 0) && batch_may_be_empty(batch))
        return batch_refuse(batch, loop->op,
                            "it might not end where the loop around it makes no iteration");
    if (loop->n_stacked && !ir_loop_runs(loop->op) && !dim_is_const(batch->n_trips, &n))
        return batch_refuse_operand(batch, loop->op, 0,
                                    "the size of what it stacks is not known without a step");
    for (uint32_t k = 0; k < loop->n_carried; k++)
        if (!keeps_shape(loop, k))
            return batch_refuse_operand(batch, loop->op, k + 2,
                                        "the shape of what it carries may change");
    return true;
}

/* The parameters of the new body; carried values have the axis where `batched` says so. */
static bool set_params(struct batch *batch, const struct loop *loop, struct ir_op *made,
                       const bool *batched)
{
    struct ir_block *body = made->blocks[0];
    struct ir_op *before = batch->before;
    for (uint32_t p = 0; p < body->n_params; p++) {
        bool has_axis, stacked = p >= 2 && batched[p - 2];
        struct ir_value *from = loop->body->params[p], *to = body->params[p];
        struct ir_value *operand = ir_operand(loop->op, p);
        batch->before = made; /* which is there already */
        struct ir_value *outer = !operand  ? NULL
                                 : stacked ? batch_stacked(batch, operand, loop->op)
                                           : batch_get(batch, operand, &has_axis);
        batch->before = before;
        if (operand && !outer)
            return batch_refuse(batch, loop->op, "it needs what another iteration computed");
        ir_op_set_operand(made, p, outer);
        to->type = p < 2 ? from->type : outer->type;
        to->known = p < 2 ? from->known : NULL;
        if (!ir_cloner_map(stacked ? batch->stacked : batch->shared, from, to))
            return batch_out_of_memory(batch);
    }
    return true;
}

/*
 * Carried values that turn out to differ between iterations; false: there are none but those known.
 */
static bool spread(const struct batch *batch, const struct loop *loop, bool *batched)
{
    bool more = false;
    for (uint32_t k = 0; k < loop->n_carried; k++)
        if (!batched[k] && is_batched(batch, loop_next(loop, k)))
            batched[k] = more = true;
    return more;
}

/*
 * Only what is in use has the axis, so that counters stay numbers: tried again until that is right.
 */
static struct ir_op *make_body(struct batch *batch, const struct loop *loop, bool *batched)
{
    for (;;) {
        struct ir_op *made = put_frame(batch, loop->op);
        if (!made || !set_params(batch, loop, made, batched) ||
            !make_block(batch, loop->body, made->blocks[0]))
            return NULL;
        if (!spread(batch, loop, batched))
            return made;
        ir_release_blocks(made);
        ir_op_remove(made);
    }
}

/* Steps in front, then iterations: the other way round. */
static struct ir_value *swap_front(struct batch *batch, const struct ir_op *op,
                                   struct ir_value *value)
{
    return value->type->kind == TYPE_TENSOR && value->type->rank >= 2
               ? batch_move_axis(batch, op, value, 0, 1)
               : NULL;
}

static bool define_results(struct batch *batch, const struct loop *loop, struct ir_op *made,
                           const bool *batched, const bool *stacked)
{
    for (uint32_t i = 0; i < made->n_results; i++) {
        bool is_stack = i >= loop->n_carried;
        bool has_axis = is_stack ? stacked[i - loop->n_carried] : batched[i];
        struct ir_value *value = &made->results[i];
        if (!loop->op->results[i].uses)
            continue;
        if (is_stack && has_axis)
            value = swap_front(batch, loop->op, value);
        if (!value || !batch_define(batch, loop->op, i, value, has_axis))
            return false;
    }
    return true;
}

static bool make_loop(struct batch *batch, const struct ir_op *op)
{
    const struct loop loop = loop_of((struct ir_op *)op);
    bool *batched = ARENA_ARRAY(&batch->graph->arena, bool, loop.n_carried + 1u);
    bool *stacked = ARENA_ARRAY(&batch->graph->arena, bool, loop.n_stacked + 1u);
    if (!batched || !stacked)
        return batch_out_of_memory(batch);
    if (!is_uniform(batch, &loop))
        return false;
    for (uint32_t k = 0; k < loop.n_carried; k++)
        batched[k] = is_batched(batch, loop_initial(&loop, k));
    struct ir_op *made = make_body(batch, &loop, batched);
    if (!made)
        return false;
    const struct ir_value *condition = ir_operand(loop.ret, 0);
    if (is_batched(batch, condition)) {
        batch->blamed_value = batch->reason ? batch->blamed_value : condition;
        return batch_refuse(batch, op, "each iteration decides how often it runs");
    }
    if (!set_return(batch, op, condition, made->blocks[0], 0, false))
        return false;
    for (uint32_t i = 0; i < op->n_results; i++) {
        const struct ir_value *value = ir_operand(loop.ret, i + 1);
        bool with_axis = i < loop.n_carried ? batched[i] : is_batched(batch, value);
        if (i >= loop.n_carried)
            stacked[i - loop.n_carried] = with_axis;
        if (!set_return(batch, op, value, made->blocks[0], i + 1, with_axis))
            return false;
    }
    return batch_infer(batch, made) && define_results(batch, &loop, made, batched, stacked);
}

/* ---- All ------------------------------------------------------------------------------------- */

bool batch_control(struct batch *batch, const struct ir_op *op)
{
    if (ir_op_is(op, IR_OP_If) && op->n_blocks == 2)
        return is_batched(batch, ir_operand(op, 0)) ? choose_all(batch, op)
                                                    : make_branches(batch, op);
    if (ir_op_is(op, IR_OP_Loop) && op->n_operands >= 2)
        return make_loop(batch, op);
    return batch_refuse(batch, op, "there is no form of it for all iterations at once");
}
