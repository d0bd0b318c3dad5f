/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A loop over blocks of iterations (strip_mine.h) whose block is one kernel is that kernel, of all
 * iterations: blocks are there so that what an iteration hands to the next operator stays in a
 * cache, and a kernel hands nothing.
 *
 *     y = Loop(ceil(n / b), _, x) { (j, c, t):
 *         l = min(b, n - j * b)
 *         return(c, assign(t, access(t, j * b, l) + 1, j * b, l)) }
 *
 *     y = fuse(x, n) { assign(x, access(x, 0, n) + 1, 0, n) }
 *
 *   needs   a table of what kernels take that says what is one (ir_fusion.refuses_whole), else
 *           nothing is done
 *   keeps   results' bits; loops in which something could fail without an iteration
 *   breaks  numbers of blocks that nobody needs (dead_code)
 */
#include "base/vec.h"
#include "ir/clone.h"
#include "ir/fuse.h"
#include "ir/infer.h"
#include "ir/rule.h"
#include "ir/total.h"
#include "passes/analysis/loops.h"
#include "passes/analysis/regions.h"
#include "passes/pass.h"

struct state {
    struct pass_context *pass;
    struct loop loop;
    struct ir_value *size, *first, *length, *trips; /* in the body, but for the last one */
    struct ir_cloner outside, inside;               /* of the body's values */
    struct ir_block *body;                          /* of the kernel */
    VEC(struct ir_value *) operands;                /* of it */
};

/* ---- Recognition ----------------------------------------------------------------------------- */

/* The other operand; NULL: the op is another one, or does not use the value. */
static struct ir_value *beside(const struct ir_op *op, enum ir_op_id id,
                               const struct ir_value *value)
{
    if (!op || !ir_op_is(op, id) || op->n_operands != 2)
        return NULL;
    return ir_operand(op, 0) == value   ? ir_operand(op, 1)
           : ir_operand(op, 1) == value ? ir_operand(op, 0)
                                        : NULL;
}

/* first = j * size; length = min(size, trips - first). */
static bool find_numbers(struct state *s)
{
    const struct ir_use *use = s->loop.body->params[0]->uses;
    s->size = use && !use->next ? beside(use->user, IR_OP_Mul, s->loop.body->params[0]) : NULL;
    if (!s->size || loop_makes(&s->loop, s->size))
        return false;
    s->first = &use->user->results[0];
    s->length = NULL;
    for (struct ir_op *op = s->loop.body->first; op && !s->length; op = op->next) {
        const struct ir_value *left = beside(op, IR_OP_Min, s->size);
        const struct ir_op *sub = left ? left->op : NULL;
        if (!sub || !ir_op_is(sub, IR_OP_Sub) || ir_operand(sub, 1) != s->first ||
            loop_makes(&s->loop, ir_operand(sub, 0)))
            continue;
        s->length = &op->results[0];
        s->trips = ir_operand(sub, 0);
    }
    return s->length != NULL;
}

static bool is_in_kernel(const struct ir_op *op)
{
    return !op->results[0].known &&
           (ir_op_is(op, IR_OP_access) || ir_op_is(op, IR_OP_assign) || op->info->ew);
}

/* The source has the region's shape, or is broadcast to it. */
static bool fits(struct ir_op *op)
{
    const struct dim *dims[TSSA_MAX_RANK];
    const struct ir_type *base = ir_operand(op, 0)->type, *source = ir_operand(op, 1)->type;
    int rank;
    if (source->kind != TYPE_TENSOR || source->rank < 0)
        return false;
    tssa_status *status = rule_region_shape(op, base->rank, base->dims, &rank, dims);
    bool good = !status && source->rank <= rank;
    tssa_status_free(status);
    for (int i = 1; good && i <= source->rank; i++) {
        const struct dim *dim = source->dims[source->rank - i];
        good = dim == dims[rank - i] || dim_is(dim, 1);
    }
    return good;
}

/* Rows of the iterations: of none, nothing is asked for. */
static bool is_of_iterations(const struct state *s, const struct ir_op *op)
{
    const struct rule *rule = rule_of(op);
    const struct ir_type *type = ir_operand(op, 0)->type;
    return rule->n_steps == 1 && rule->steps[0].kind == RULE_SPAN &&
           rule_param_value(op, &rule->steps[0].params[2]) == s->length &&
           type->kind == TYPE_TENSOR && type->rank > rule->steps[0].params[0].value;
}

/* Can it fail where there is no iteration? */
static bool is_safe(const struct state *s, struct ir_op *op)
{
    const bool assigns = ir_op_is(op, IR_OP_assign);
    if (!assigns && !ir_op_is(op, IR_OP_access))
        return ir_op_is_total(op);
    return (is_of_iterations(s, op) || region_never_fails(op)) && (!assigns || fits(op));
}

/* Numbers, and what may be in a kernel. */
static bool is_one_kernel(const struct state *s)
{
    bool any = false;
    for (struct ir_op *op = s->loop.body->first; op != s->loop.ret; op = op->next) {
        const bool number = op->n_results == 1 && op->results[0].known;
        if (op->n_blocks || op->n_results != 1 || !ir_op_is_pure(op))
            return false;
        if (!number && !ir_op_is(op, IR_OP_Constant) && (!is_in_kernel(op) || !is_safe(s, op)))
            return false;
        any |= is_in_kernel(op);
    }
    for (uint32_t k = 0; k < s->loop.n_carried; k++) {
        const struct ir_op *op = loop_next(&s->loop, k)->op;
        if (!op || op->parent != s->loop.body || !is_in_kernel(op))
            return false;
    }
    return any;
}

/* ---- The kernel ------------------------------------------------------------------------------ */

/* What stands in the kernel for a value of the loop's body. */
static struct ir_value *enter(struct state *s, struct ir_value *value)
{
    struct ir_value *inner = ir_cloner_get(&s->inside, value);
    if (inner != value)
        return inner;
    struct ir_value *outer = ir_cloner_get(&s->outside, value);
    const struct tensor *constant = ir_value_constant(outer);
    if (constant && tensor_count(constant) == 1) {
        struct ir_op *copy = ir_clone_op(&s->inside, outer->op);
        if (!copy)
            return NULL;
        ir_op_append(s->body, copy);
        inner = &copy->results[0];
    } else {
        inner = ir_block_add_param(s->body);
        if (!inner || !vec_push(&s->operands, outer))
            return NULL;
    }
    inner->type = outer->type;
    inner->known = outer->known;
    return ir_cloner_map(&s->inside, value, inner) ? inner : NULL;
}

static tssa_status *add_to_kernel(struct state *s, const struct ir_op *op)
{
    for (uint32_t i = 0; i < op->n_operands; i++)
        if (ir_operand(op, i))
            TRY_ALLOC(enter(s, ir_operand(op, i)));
    struct ir_op *copy = ir_clone_op(&s->inside, op);
    TRY_ALLOC(copy);
    ir_op_append(s->body, copy);
    return ir_infer_op_lenient(copy);
}

static tssa_status *add_outside(struct state *s, const struct ir_op *op)
{
    if (&op->results[0] == s->first || &op->results[0] == s->length)
        return NULL;
    struct ir_op *copy = ir_clone_op(&s->outside, op);
    TRY_ALLOC(copy);
    return pass_insert(copy, s->loop.op);
}

/* The first block is all of them. */
static tssa_status *map_numbers(struct state *s)
{
    struct ir_value *zero;
    ir_cloner_reset(&s->outside);
    ir_cloner_reset(&s->inside);
    s->operands.count = 0;
    TRY(loop_make_int(s->loop.op, 0, 0, &zero));
    bool done = ir_cloner_map(&s->outside, s->first, zero) &&
                ir_cloner_map(&s->outside, s->length, s->trips);
    for (uint32_t k = 0; k < s->loop.n_carried; k++)
        done =
            done && ir_cloner_map(&s->outside, loop_param(&s->loop, k), loop_initial(&s->loop, k));
    return done ? NULL : status_out_of_memory();
}

static tssa_status *close_kernel(struct state *s, struct ir_op **made)
{
    struct ir_graph *graph = s->pass->graph;
    const uint32_t n = s->loop.n_carried;
    struct ir_op *op = ir_op_create(graph, ir_op_info(IR_OP_fuse), s->body->n_params, n);
    struct ir_op *ret = ir_op_create(graph, ir_op_info(IR_OP_return), n, 0);
    if (!op || !ret || !ir_op_set_blocks(graph, op, 1))
        return status_out_of_memory();
    op->blocks[0] = s->body;
    op->block_names[0] = intern_str(&graph->strings, IR_FUSE_BODY);
    TRY_ALLOC(op->block_names[0]);
    s->body->owner = op;
    op->name = s->loop.op->name;
    for (uint32_t i = 0; i < s->body->n_params; i++)
        ir_op_set_operand(op, i, s->operands.data[i]);
    for (uint32_t k = 0; k < n; k++) {
        struct ir_value *value = ir_cloner_get(&s->inside, loop_next(&s->loop, k));
        ir_op_set_operand(ret, k, value);
        op->results[k].type = value->type;
    }
    ir_op_append(s->body, ret);
    ir_op_insert_before(op, s->loop.op);
    op->inferred_from = ir_infer_stamp(op);
    *made = op;
    return NULL;
}

/* Is there a kernel of it, of the results that the loop has? */
static bool is_kernel(const struct state *s, const struct ir_op *fuse)
{
    const struct ir_fusion *fusion = s->pass->fusion;
    for (uint32_t k = 0; k < s->loop.n_carried; k++)
        if (fuse->results[k].type != s->loop.op->results[k].type)
            return false;
    return !fusion->refuses_whole(fusion->user, fuse);
}

static tssa_status *rewrite(struct state *s)
{
    struct ir_op *fuse, *loop = s->loop.op;
    TRY(map_numbers(s));
    s->body = ir_block_create(s->pass->graph, NULL, 0);
    TRY_ALLOC(s->body);
    for (struct ir_op *op = s->loop.body->first; op != s->loop.ret; op = op->next)
        TRY(is_in_kernel(op) ? add_to_kernel(s, op) : add_outside(s, op));
    TRY(close_kernel(s, &fuse));
    s->pass->changed = true;
    if (!is_kernel(s, fuse)) {
        ir_release_blocks(fuse);
        ir_op_remove(fuse);
        return NULL;
    }
    for (uint32_t k = 0; k < s->loop.n_carried; k++)
        loop_replace(&loop->results[k], &fuse->results[k]);
    ir_release_blocks(loop);
    ir_op_remove(loop);
    return pass_remark(s->pass, TSSA_REMARK_APPLIED, fuse,
                       "one kernel of all iterations, no longer of blocks of them");
}

static tssa_status *visit(void *context, struct ir_op *op)
{
    struct state *s = context;
    if (!ir_op_is(op, IR_OP_Loop) || !op->in_blocks || op->n_blocks != 1)
        return NULL;
    s->loop = loop_of(op);
    return s->loop.n_stacked == 0 && s->loop.n_carried > 0 && find_numbers(s) && is_one_kernel(s)
               ? rewrite(s)
               : NULL;
}

tssa_status *pass_one_block(struct pass_context *pass)
{
    struct state s = {.pass = pass, .operands = VEC_INIT(pass->graph->allocator)};
    if (!pass->fusion || !pass->fusion->refuses_whole)
        return NULL;
    ir_cloner_init(&s.outside, pass->graph);
    ir_cloner_init(&s.inside, pass->graph);
    tssa_status *status = ir_block_walk(pass->graph->body, visit, &s);
    ir_cloner_free(&s.inside);
    ir_cloner_free(&s.outside);
    vec_free(&s.operands);
    return status;
}
