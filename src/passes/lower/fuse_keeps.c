/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is computed, element by element, of what a mask keeps of lists is computed of all elements
 * first, and then kept:
 *
 *     Mul(Compress(x, m), Compress(y, m))   ->   Compress(Mul(x, y), m)
 *
 * One kernel then computes the mask and the elements and keeps those, where else two lists would be
 * kept, and another kernel would wait for them: from how many elements there are of each nobody
 * could tell that there are as many. It is done where a kernel may compute the mask, nobody else
 * wants the lists, and what is computed of all elements is a few operations: while elements are
 * permuted, they take no time, and functions would.
 */
#include "ir/fuse.h"
#include "ir/infer.h"
#include "ir/total.h"
#include "passes/lower/fuse.h"

/* Multiplications for each element, of which a list that is not kept saves so many. */
#define MOST_WORK 3
#define KEEPING 8

/* An op that was put before a mask, and what more is computed for an element of it than is saved.
 */
struct moved_op {
    const struct ir_op *op;
    double work;
};

struct moving {
    struct fuse_plan *plan;
    struct ir_cloner cloner;
    VEC(struct moved_op) moved;
};

static bool may_join(const struct fuse_plan *plan, const struct ir_op *op)
{
    return fuse_is_candidate(plan, op) && !fuse_refusal(plan, op);
}

/* What keeps the value, a list, for ops like this one; NULL: nothing does. */
static struct ir_op *keeper_of(const struct fuse_plan *plan, const struct ir_value *value,
                               const struct ir_op *op)
{
    struct ir_op *keeper = value ? fuse_maker(value, op->parent) : NULL;
    return keeper && !ir_op_is(keeper, IR_OP_NonZero) && ir_fuse_kept_columns(keeper) == 1 &&
                   may_join(plan, keeper) &&
                   !ir_value_is_mutable(keeper->parent->graph, ir_operand(keeper, 0)) &&
                   !ir_value_is_mutable(keeper->parent->graph, ir_fuse_mask(keeper))
               ? keeper
               : NULL;
}

static bool is_one_element(const struct ir_value *value)
{
    const struct ir_type *type = value->type;
    return type->kind == TYPE_TENSOR &&
           (type->rank == 0 || (type->rank == 1 && dim_is(type->dims[0], 1)));
}

/* Does nobody else read it? */
static bool is_alone(const struct ir_value *value, const struct ir_op *reader)
{
    for (const struct ir_use *use = value->uses; use; use = use->next)
        if (use->user != reader)
            return false;
    return true;
}

/* What keeps all that the op reads, but for single elements, by one mask; NULL: there is none. */
static struct ir_op *find_keeper(const struct fuse_plan *plan, const struct ir_op *op)
{
    struct ir_op *found = NULL;
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const struct ir_value *value = ir_operand(op, i);
        struct ir_op *keeper = keeper_of(plan, value, op);
        if (!value || (!keeper && is_one_element(value)))
            continue;
        if (!keeper || !is_alone(value, op) ||
            (found && ir_fuse_mask(found) != ir_fuse_mask(keeper)))
            return NULL;
        found = keeper;
    }
    const struct ir_op *maker = found ? fuse_maker(ir_fuse_mask(found), op->parent) : NULL;
    return maker && may_join(plan, maker) ? found : NULL;
}

static bool is_elementwise(const struct fuse_plan *plan, const struct ir_op *op)
{
    return op->info->cls == IR_CLASS_ELEMENTWISE && op->n_results == 1 && !op->opaque &&
           !op->results[0].known && may_join(plan, op);
}

/* Of all that was put before the mask for the op, which has read so many lists, and of the op. */
static double work_of(const struct moving *m, const struct ir_op *op, uint32_t n_lists)
{
    double work = cost_element_work(op) - KEEPING * (n_lists - 1.0);
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const struct ir_op *keeper = keeper_of(m->plan, ir_operand(op, i), op);
        for (size_t k = 0; keeper && k < m->moved.count; k++)
            if (m->moved.data[k].op == ir_operand(keeper, 0)->op)
                work += m->moved.data[k].work;
    }
    return work < 0 ? 0 : work;
}

/* The op of all elements, before it. */
static tssa_status *compute_all(struct moving *m, struct ir_op *op, struct ir_op **all)
{
    ir_cloner_reset(&m->cloner);
    *all = ir_clone_op(&m->cloner, op);
    TRY_ALLOC(*all);
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const struct ir_op *keeper = keeper_of(m->plan, ir_operand(op, i), op);
        if (keeper)
            ir_op_set_operand(*all, i, ir_operand(keeper, 0));
    }
    return pass_insert(*all, op);
}

/* In the place of the op, something that keeps of all. Sizes are what they were, and so are their
 * names. */
static tssa_status *keep_of(struct moving *m, struct ir_op *op, const struct ir_op *keeper,
                            struct ir_op *all, struct ir_op **kept)
{
    const struct ir_type *type = op->results[0].type;
    ir_cloner_reset(&m->cloner);
    *kept = ir_clone_op(&m->cloner, keeper);
    TRY_ALLOC(*kept);
    ir_op_set_operand(*kept, 0, &all->results[0]);
    TRY(pass_replace(m->plan->pass, op, *kept));
    (*kept)->results[0].type = type;
    (*kept)->inferred_from = ir_infer_stamp(*kept);
    return pass_remark(m->plan->pass, TSSA_REMARK_APPLIED, all,
                       "computed of all elements before a mask keeps some");
}

/* The lists that the op has read, if nobody else does. */
static uint32_t find_lists(const struct moving *m, const struct ir_op *op, struct ir_op **lists)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < op->n_operands; i++) {
        struct ir_op *own = keeper_of(m->plan, ir_operand(op, i), op);
        bool known = !own;
        for (uint32_t k = 0; k < n; k++)
            known |= lists[k] == own;
        if (!known)
            lists[n++] = own;
    }
    return n;
}

static tssa_status *visit(struct moving *m, struct ir_op *op, struct ir_op **last)
{
    struct ir_op *lists[FUSE_OPERANDS], *all;
    const struct ir_op *keeper = is_elementwise(m->plan, op) ? find_keeper(m->plan, op) : NULL;
    if (!keeper)
        return NULL;
    const uint32_t n = find_lists(m, op, lists);
    const double work = work_of(m, op, n);
    if (work > MOST_WORK)
        return pass_remark(m->plan->pass, TSSA_REMARK_MISSED, op,
                           "it would take longer of all elements than of those that a mask keeps");
    TRY(compute_all(m, op, &all));
    if (!ir_op_is_total(all)) { /* nothing that could fail is computed of more than it was */
        ir_op_remove(all);
        return NULL;
    }
    if (!vec_push(&m->moved, ((struct moved_op){all, work})))
        return status_out_of_memory();
    TRY(keep_of(m, op, keeper, all, last));
    for (uint32_t i = 0; i < n; i++)
        ir_op_remove(lists[i]);
    return NULL;
}

static tssa_status *visit_block(struct moving *m, struct ir_block *block)
{
    for (struct ir_op *op = block->first; op; op = op->next) {
        for (uint32_t i = 0; i < op->n_blocks && !op->opaque && !ir_op_is(op, IR_OP_fuse); i++)
            TRY(visit_block(m, op->blocks[i]));
        TRY(visit(m, op, &op));
    }
    return NULL;
}

tssa_status *fuse_keep_later(struct fuse_plan *plan)
{
    struct moving moving = {.plan = plan};
    if (!(plan->fusion->classes & IR_FUSES_KEEPS))
        return NULL;
    vec_init(&moving.moved, plan->pass->graph->allocator);
    ir_cloner_init(&moving.cloner, plan->pass->graph);
    tssa_status *status = visit_block(&moving, plan->pass->graph->body);
    ir_cloner_free(&moving.cloner);
    vec_free(&moving.moved);
    return status;
}
