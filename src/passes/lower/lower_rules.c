/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Turns accesses and assigns into ONNX's operators, the cheapest that say the same: one Gather,
 * Slice, Transpose, ... for a step of a read, one Split for slices that cut an axis into parts;
 * Concat, Where or ScatterND for a write. Slices of slices are one operator, where nothing else
 * reads what is between.
 *
 *   needs   types, known elements
 *   keeps   types; results' bits
 *   breaks  nothing; shape arithmetic that it makes may be folded, constants may be there twice
 *
 * Afterwards no access or assign is left, but where the rank of the base is unknown and its rule
 * asks for it, assigns without a type, which can perhaps never run, and, in what is for a session,
 * assigns to boxes: in ONNX they would be copies. What fuse ops hold is left as it is.
 */
#include "base/vec.h"
#include "ir/fuse.h"
#include "passes/lower/lower.h"

static bool is_read(const struct ir_op *op)
{
    return ir_op_is(op, IR_OP_access);
}

/* What is in a fuse op, a kernel reads and writes where it is. */
static bool is_fused(const struct ir_op *op)
{
    return op->parent->owner && ir_fuse_body(op->parent->owner);
}

/* The same sizes, under the symbols that other types already use. */
static void take_over(struct ir_value *old, struct ir_value *new)
{
    if (old->type->kind == TYPE_TENSOR && old->type->rank >= 0)
        new->type = old->type;
    ir_value_replace(old, new);
    if (!new->name) {
        new->name = old->name;
        old->name = NULL;
    }
}

static tssa_status *simplified(const struct ir_op *op, const struct rule **rule)
{
    const struct rule *own = rule_of(op);
    TRY(rule_simplify(op->parent->graph, ir_operand(op, 0)->type, own, rule));
    if (!*rule)
        *rule = own;
    return NULL;
}

/* ---- Slices of slices ------------------------------------------------------------------------ */

/* Marks the axes of an access that only slices, by numbers, and each of them once; false for any
 * other op. Bounds that the run tells would have to be put together. */
static bool mark_slices(const struct ir_op *op, bool *marked)
{
    const struct rule *rule = is_read(op) ? rule_of(op) : NULL;
    if (!rule || rule->n_operands)
        return false;
    for (uint32_t i = 0; i < rule->n_steps; i++) {
        const struct rule_step *step = &rule->steps[i];
        int64_t axis = step->params[0].value;
        if (step->kind != RULE_SLICE || axis >= TSSA_MAX_RANK || marked[axis])
            return false;
        marked[axis] = true;
    }
    return true;
}

/* Is the value sliced by all its users, along other axes than it was sliced along itself? A user in
 * a loop would keep the larger tensor alive. */
static bool is_only_sliced(const struct ir_value *value)
{
    for (const struct ir_use *use = value->uses; use; use = use->next) {
        bool marked[TSSA_MAX_RANK] = {false};
        const struct ir_op *user = use->user;
        if (use != user->operands || user->parent != value->op->parent ||
            !mark_slices(value->op, marked) || !mark_slices(user, marked))
            return false;
    }
    return true;
}

static tssa_status *join_slices(void *context, struct ir_op *op)
{
    struct pass_context *pass = context;
    struct ir_value *between = op->n_operands && is_read(op) ? ir_operand(op, 0) : NULL;
    struct ir_op *joined;
    if (is_fused(op) || !between || !between->op || !is_only_sliced(between))
        return NULL;
    struct ir_op *first = between->op;
    const struct ir_type *type = op->results[0].type;
    TRY(rule_access_chain(pass->graph, first, op, &joined));
    if (!joined)
        return NULL;
    TRY(pass_replace(pass, op, joined));
    joined->results[0].type = type; /* the same sizes, under the symbols that other types use */
    if (!between->uses)
        ir_op_remove(first);
    return NULL;
}

/* ---- The pass -------------------------------------------------------------------------------- */

struct visitor {
    struct pass_context *pass;
    struct region_space space;
    VEC(struct ir_op *) chain; /* assigns that are lowered together */
};

static tssa_status *lower_alone(struct lowering *l, struct ir_value **y)
{
    const struct ir_op *op = l->op;
    struct ir_value *params[IR_VARIADIC], *x = ir_operand(op, 0);
    const struct rule *rule;
    for (uint32_t i = 0; i < rule_of(op)->n_operands; i++)
        params[i] = ir_operand(op, rule_first_operand(op) + i);
    TRY(simplified(op, &rule));
    *y = is_read(op) ? lower_access(l, x, rule, params)
                     : lower_assign(l, x, ir_operand(op, 1), rule, params);
    return l->status;
}

/* The assigns that wait for `op`, the first one first, and `op` itself behind them. */
static tssa_status *find_chain(struct visitor *visitor, struct lowering *l)
{
    bool chained = true;
    visitor->chain.count = 0;
    for (struct ir_op *op = l->op; op; op = chained ? ir_operand(op, 0)->op : NULL) {
        if (op != l->op) {
            chained = false;
            if (ir_op_is(op, IR_OP_assign))
                TRY(lower_is_chained(l, op, &chained));
        }
        if (chained && !vec_push(&visitor->chain, op))
            return status_out_of_memory();
    }
    struct ir_op **ops = visitor->chain.data;
    for (size_t i = 0, k = visitor->chain.count - 1; i < k; i++, k--) {
        struct ir_op *op = ops[i];
        ops[i] = ops[k];
        ops[k] = op;
    }
    return NULL;
}

static tssa_status *lower(struct visitor *visitor, struct ir_op *op)
{
    struct lowering l = {
        .pass = visitor->pass, .graph = visitor->pass->graph, .space = &visitor->space, .op = op};
    struct ir_value *y = NULL;
    bool chained = false;
    visitor->chain.count = 0;
    if (!is_read(op))
        TRY(lower_is_chained(&l, op, &chained));
    if (chained)
        return NULL;
    if (!is_read(op))
        TRY(find_chain(visitor, &l));
    size_t n = visitor->chain.count;
    if (n == 1 && pass_is_for_session(visitor->pass)) {
        bool cheap;
        TRY(lower_is_cheap_write(&l, op, &cheap));
        if (cheap)
            return NULL;
    }
    /* What a write would become need not fit where it stands. */
    if (!is_read(op) && op->results[0].type->kind != TYPE_TENSOR)
        return pass_remark(visitor->pass, TSSA_REMARK_MISSED, op,
                           "cannot be said in ONNX: it has no type, so it can perhaps never run");
    TRY(n > 1 ? lower_chain(&l, visitor->chain.data, (uint32_t)n, &y) : lower_alone(&l, &y));
    if (!y)
        return pass_remark(visitor->pass, TSSA_REMARK_MISSED, op,
                           "cannot be said in ONNX: the rank of its operand is not known");
    take_over(&op->results[0], y);
    ir_op_remove(op);
    for (size_t i = n; i-- > 1;) /* op itself is the last one */
        ir_op_remove(visitor->chain.data[i - 1]);
    visitor->pass->changed = true;
    return NULL;
}

static tssa_status *visit(void *context, struct ir_op *op)
{
    bool lowered = (is_read(op) || ir_op_is(op, IR_OP_assign)) && !is_fused(op);
    return lowered ? lower(context, op) : NULL;
}

tssa_status *pass_lower_rules(struct pass_context *pass)
{
    struct visitor visitor = {.pass = pass, .chain = VEC_INIT(pass->graph->allocator)};
    TRY(ir_block_walk(pass->graph->body, join_slices, pass));
    region_space_init(&visitor.space, pass->graph);
    tssa_status *status = ir_block_walk(pass->graph->body, visit, &visitor);
    if (!status && !pass_is_for_session(pass)) /* which reads slices where they are */
        status = lower_splits(pass);
    region_space_free(&visitor.space);
    vec_free(&visitor.chain);
    return status;
}
