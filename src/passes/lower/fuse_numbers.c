/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is read by the numbers that NonZero finds of a list is what the list, as a mask, keeps:
 *
 *     n = NonZero(m)
 *     GatherND(x, n[permute(1, 0)])       ->   x[mask(0, m)]
 *     y[gather(0, n[reshape(-1)])]        ->   y[mask(0, m)]
 *
 * The kernel that computes the mask then keeps lists as well, and computes the rows of a few
 * columns that it keeps; where nobody else wants numbers none are stored. It is done where there
 * are as many elements as the mask has, else a mask would be refused that numbers suit, and where
 * none of them is computed of numbers, so that no kernel waits for what it finds itself. Rows that
 * are there already are copied by numbers as before: where few are kept, a mask takes longer.
 */
#include "ir/fuse.h"
#include "ir/infer.h"
#include "ir/rule.h"
#include "passes/lower/fuse.h"

/* Between numbers and who reads by them there are not many views. */
#define MOST_VIEWS 8

struct order {
    uint32_t found;  /* a NonZero's number, from 1 on; 0: it is none */
    uint32_t behind; /* of the last one of its block that it may depend on; 0: on none */
};

struct numbering {
    struct fuse_plan *plan;
    VEC(struct order) orders; /* per op id, of those that were visited */
    uint32_t n_found;
};

/* ---- Numbers --------------------------------------------------------------------------------- */

/* Has it but one axis of other than one element? */
static bool is_line(const struct ir_value *value)
{
    const struct ir_type *type = value->type;
    int n = 0;
    if (type->kind != TYPE_TENSOR || type->rank < 0)
        return false;
    for (int i = 0; i < type->rank; i++)
        n += !dim_is(type->dims[i], 1);
    return n <= 1;
}

/* Is it an access of a line that has all of its elements, in their order? */
static bool is_view_of_line(const struct ir_op *op)
{
    const struct rule *rule = ir_op_is(op, IR_OP_access) ? rule_of(op) : NULL;
    if (!rule || op->opaque || !is_line(ir_operand(op, 0)) || !is_line(&op->results[0]))
        return false;
    if (rule_keeps_order(rule))
        return true;
    const struct rule_step *step = rule->steps;
    if (rule->n_steps != 1 || step->kind != RULE_SELECT)
        return rule->n_steps == 1 && step->kind == RULE_PERMUTE;
    return dim_is(ir_operand(op, 0)->type->dims[step->params[0].value], 1) &&
           !step->params[1].is_operand && step->params[1].value == 0;
}

/* The NonZero of a list that finds all of these, in their order; NULL: none does. */
static struct ir_op *finder_of(const struct ir_value *numbers, const struct ir_block *block)
{
    struct ir_op *op = fuse_maker(numbers, block);
    for (int i = 0; i < MOST_VIEWS && op && is_view_of_line(op); i++)
        op = fuse_maker(ir_operand(op, 0), block);
    return op && ir_op_is(op, IR_OP_NonZero) && ir_fuse_keeps(op) ? op : NULL;
}

/* By which numbers the op reads rows, or elements, along the first axis; NULL: it reads otherwise.
 */
static struct ir_value *numbers_of(const struct ir_op *op)
{
    const struct rule *rule = ir_op_is(op, IR_OP_access) ? rule_of(op) : NULL;
    if (rule && rule->n_steps == 1 && rule->steps[0].kind == RULE_GATHER &&
        rule->steps[0].params[0].value == 0) {
        struct ir_value *list = rule_param_value(op, &rule->steps[0].params[1]);
        return infer_value_rank(list) == 1 ? list : NULL;
    }
    if (!ir_op_is(op, IR_OP_GatherND) || ir_attr_int(op, "batch_dims", 0) != 0)
        return NULL;
    struct ir_value *tuples = ir_operand(op, 1);
    return infer_value_rank(tuples) == 2 && dim_is(tuples->type->dims[1], 1) ? tuples : NULL;
}

/* ---- Masks ----------------------------------------------------------------------------------- */

/* The last of the NonZeros that the value may depend on. What blocks capture may depend on any. */
static uint32_t last_behind(const struct numbering *n, const struct ir_value *value,
                            const struct ir_block *block)
{
    const struct ir_op *maker = fuse_maker(value, block);
    const struct order *order = maker ? &n->orders.data[maker->id] : NULL;
    return !order ? 0 : order->found ? order->found : order->behind;
}

static tssa_status *put_in_order(struct numbering *n, const struct ir_op *op, struct order order)
{
    while (n->orders.count <= op->id)
        if (!vec_push(&n->orders, (struct order){0}))
            return status_out_of_memory();
    n->orders.data[op->id] = order;
    return NULL;
}

static struct order order_of(struct numbering *n, const struct ir_op *op)
{
    struct order order = {.behind = op->n_blocks ? n->n_found : 0};
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const uint32_t last = last_behind(n, ir_operand(op, i), op->parent);
        order.behind = last > order.behind ? last : order.behind;
    }
    if (ir_op_is(op, IR_OP_NonZero))
        order.found = ++n->n_found;
    return order;
}

/* The op of which the value is a result in a kernel with the others of the block; NULL: there is
 * none. */
static const struct ir_op *maker_in_kernel(const struct numbering *n, const struct ir_value *value,
                                           const struct ir_block *block)
{
    const struct ir_op *maker = fuse_maker(value, block);
    return maker && fuse_is_candidate(n->plan, maker) && !fuse_refusal(n->plan, maker) ? maker
                                                                                       : NULL;
}

/* May elements of x, or rows, be kept where the op finds numbers? */
static bool may_keep(const struct numbering *n, const struct ir_value *x,
                     const struct ir_op *finder)
{
    const struct ir_block *block = finder->parent;
    return ir_fuse_keeps_rows(x->type, 0, ir_fuse_mask(finder)) &&
           !ir_value_is_mutable(block->graph, x) &&
           last_behind(n, x, block) < n->orders.data[finder->id].found &&
           (x->type->rank == 1 ||
            (ir_fuse_columns(x->type, 0) > 1 && maker_in_kernel(n, x, block)));
}

/* By which mask the op may read what it reads by numbers; NULL: by none. */
static struct ir_value *find_mask(const struct numbering *n, const struct ir_op *op)
{
    const struct ir_value *numbers = op->opaque ? NULL : numbers_of(op);
    const struct ir_op *finder = numbers ? finder_of(numbers, op->parent) : NULL;
    struct ir_value *mask = finder ? ir_fuse_mask(finder) : NULL;
    return mask && maker_in_kernel(n, &finder->results[0], op->parent) &&
                   maker_in_kernel(n, mask, op->parent) &&
                   !ir_value_is_mutable(op->parent->graph, mask) &&
                   may_keep(n, ir_operand(op, 0), finder)
               ? mask
               : NULL;
}

/* ---- Reading --------------------------------------------------------------------------------- */

/* The numbers go, and what they are views of, as long as nobody wants them. */
static void remove_unwanted(struct ir_value *numbers)
{
    for (struct ir_op *op = numbers->op; op && !op->results[0].uses;) {
        struct ir_op *before = ir_op_is(op, IR_OP_NonZero) ? NULL : ir_operand(op, 0)->op;
        ir_op_remove(op);
        op = before;
    }
}

/* Sizes are what they were, and so are their names. */
static tssa_status *keep_by_mask(struct numbering *n, struct ir_op *op, struct ir_value *mask,
                                 struct ir_op **kept)
{
    struct ir_graph *graph = n->plan->pass->graph;
    const struct rule_param params[] = {rule_constant(0), rule_operand(0)};
    const struct rule *rule = rule_create(graph, 1, &(struct rule_step){RULE_MASK, 2, params});
    struct ir_value *numbers = numbers_of(op);
    const struct ir_type *type = op->results[0].type;
    TRY_ALLOC(rule);
    *kept = rule_access_create(graph, ir_operand(op, 0), rule, 1, &mask);
    TRY_ALLOC(*kept);
    /* What is computed of it is computed behind the same kernel as before. */
    TRY(put_in_order(n, *kept, n->orders.data[op->id]));
    TRY(pass_replace(n->plan->pass, op, *kept));
    (*kept)->results[0].type = type;
    (*kept)->inferred_from = ir_infer_stamp(*kept);
    remove_unwanted(numbers);
    return pass_remark(n->plan->pass, TSSA_REMARK_APPLIED, *kept,
                       "kept by the mask of which NonZero finds the numbers");
}

static tssa_status *visit_block(struct numbering *n, struct ir_block *block)
{
    for (struct ir_op *op = block->first; op; op = op->next) {
        for (uint32_t i = 0; i < op->n_blocks && !op->opaque && !ir_op_is(op, IR_OP_fuse); i++)
            TRY(visit_block(n, op->blocks[i]));
        TRY(put_in_order(n, op, order_of(n, op)));
        struct ir_value *mask = find_mask(n, op);
        if (mask)
            TRY(keep_by_mask(n, op, mask, &op));
    }
    return NULL;
}

tssa_status *fuse_keep_numbers(struct fuse_plan *plan)
{
    struct numbering n = {.plan = plan};
    if (!(plan->fusion->classes & IR_FUSES_KEEPS))
        return NULL;
    vec_init(&n.orders, plan->pass->graph->allocator);
    tssa_status *status = visit_block(&n, plan->pass->graph->body);
    vec_free(&n.orders);
    return status;
}
