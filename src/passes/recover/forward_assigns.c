/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads of what was just written: an access of an assign's result becomes what was assigned, or an
 * access of what was there before, where the two regions are proven to be equal or disjoint, or the
 * first lies in the second. Assigns that a later one overwrites go, and so do assigns that write
 * what is there. An access of an access becomes one when that takes no more steps. What was written
 * inside a region that is read is written to what is read of it:
 *
 *     access(assign(x, s){[row, columns]}){[row]}   ->   assign(access(x){[row]}, s){[columns]}
 *
 *   needs   types
 *   keeps   types; assigns that nothing reads stay without uses (dead_code removes them)
 *   breaks  nothing
 *
 * What a run would have refused in an assign that is forwarded around (an index out of range) is
 * refused no more when nothing else uses the assign.
 */
#include "ir/rebuild.h"
#include "ir/region.h"
#include "passes/analysis/regions.h"
#include "passes/pass.h"

/* Assigns that are looked through for one access. */
#define MAX_CHAIN 256

struct forwarding {
    struct pass_context *pass;
    struct region_space space;
};

static bool is_assign(const struct ir_value *value)
{
    return value && value->op && ir_op_is(value->op, IR_OP_assign);
}

static struct ir_value **params_of(struct ir_graph *graph, const struct ir_op *op)
{
    uint32_t first = rule_first_operand(op);
    struct ir_value **params =
        ARENA_ARRAY(&graph->arena, struct ir_value *, op->n_operands - first);
    for (uint32_t i = first; params && i < op->n_operands; i++)
        params[i - first] = op->operands[i].value;
    return params;
}

/* `op`'s result is `value` from now on; `op` goes. */
static void replace(struct pass_context *pass, struct ir_op *op, struct ir_value *value)
{
    if (!value->name) {
        value->name = op->results[0].name;
        op->results[0].name = NULL;
    }
    ir_value_replace(&op->results[0], value);
    ir_op_remove(op);
    pass->changed = true;
}

/* An access of `base` by `rule` takes the place of the access `op`. */
static tssa_status *replace_by_access(struct pass_context *pass, struct ir_op *op,
                                      struct ir_value *base, const struct rule *rule)
{
    struct ir_value **params = params_of(pass->graph, op);
    TRY_ALLOC(params);
    TRY_ALLOC(rule);
    struct ir_op *access = rule_access_create(pass->graph, base, rule, rule->n_operands, params);
    return pass_replace(pass, op, access);
}

/* Is what was assigned as large as the region, no broadcast needed? */
static tssa_status *fills_region(struct ir_op *assign, bool *fills)
{
    const struct ir_type *base = assign->operands[0].value->type;
    const struct ir_type *source = assign->operands[1].value->type;
    const struct dim *dims[TSSA_MAX_RANK];
    int rank;
    *fills = false;
    if (base->kind != TYPE_TENSOR || base->rank < 0 || source->kind != TYPE_TENSOR)
        return NULL;
    TRY(rule_region_shape(assign, base->rank, base->dims, &rank, dims));
    if (rank < 0 || source->rank != rank)
        return NULL;
    for (int i = 0; i < rank; i++)
        if (source->dims[i] != dims[i])
            return NULL;
    *fills = true;
    return NULL;
}

/* A tensor's shape as constants, to expand to. */
static const struct rule *expand_rule(struct ir_graph *graph, const struct ir_type *type)
{
    struct rule_param params[TSSA_MAX_RANK];
    for (int i = 0; i < type->rank; i++) {
        int64_t dim;
        if (!dim_is_const(type->dims[i], &dim))
            return NULL;
        params[i] = rule_constant(dim);
    }
    return rule_create(graph, 1, &(struct rule_step){RULE_EXPAND, (uint32_t)type->rank, params});
}

static bool has_constant_shape(const struct ir_type *type)
{
    for (int i = 0; i < type->rank; i++)
        if (type->dims[i]->kind != DIM_CONST)
            return false;
    return type->kind == TYPE_TENSOR && type->rank >= 0;
}

/* Have both the same shape? Types of unknown ranks are one type, and do not tell. */
static bool says_same(const struct ir_type *a, const struct ir_type *b)
{
    return a == b && a->kind == TYPE_TENSOR && a->rank >= 0;
}

/* The access reads just what was assigned. */
static tssa_status *take_source(struct pass_context *pass, struct ir_op *access,
                                struct ir_op *assign)
{
    struct ir_value *source = assign->operands[1].value;
    const struct ir_type *type = access->results[0].type;
    bool fills;
    TRY(fills_region(assign, &fills));
    if (fills || says_same(source->type, type))
        replace(pass, access, source);
    else if (has_constant_shape(type))
        return replace_by_access(pass, access, source, expand_rule(pass->graph, type));
    return NULL;
}

/*
 * The assign writes inside the access's region: it writes to the access of what was there before.
 */
static tssa_status *write_inside(struct forwarding *f, struct ir_op *access,
                                 const struct ir_op *assign)
{
    struct pass_context *pass = f->pass;
    struct ir_graph *graph = pass->graph;
    struct ir_value **read = params_of(graph, access), **written = params_of(graph, assign);
    const struct rule *rest = rule_inside(&f->space, access, assign);
    TRY_ALLOC(read);
    TRY_ALLOC(written);
    TRY_ALLOC(rest);
    struct ir_op *part = rule_access_create(graph, ir_operand(assign, 0), rule_of(access),
                                            rule_of(access)->n_operands, read);
    TRY_ALLOC(part);
    part->name = access->name;
    TRY(pass_insert(part, access));
    part->results[0].type = access->results[0].type;
    struct ir_op *write = rule_assign_create(graph, &part->results[0], ir_operand(assign, 1), rest,
                                             rest->n_operands, written);
    return pass_replace(pass, access, write);
}

static tssa_status *forward(struct forwarding *f, struct ir_op *access)
{
    struct pass_context *pass = f->pass;
    struct ir_value *base = ir_operand(access, 0);
    enum region_relation relation;
    bool fills;
    for (int i = 0; i < MAX_CHAIN && is_assign(base); i++) {
        struct ir_op *assign = base->op;
        TRY(regions_relate(&f->space, assign, access, &relation));
        switch (relation) {
        case RELATION_EQUAL:
            if (base != ir_operand(access, 0))
                pass->changed = true;
            ir_op_set_operand(access, 0, base);
            return take_source(pass, access, assign);
        case RELATION_INSIDE:
            TRY(fills_region(assign, &fills));
            if (fills)
                return replace_by_access(pass, access, assign->operands[1].value,
                                         rule_inside(&f->space, assign, access));
            i = MAX_CHAIN;
            break;
        case RELATION_DISJOINT:
            base = assign->operands[0].value;
            break;
        case RELATION_UNKNOWN:
            TRY(regions_relate(&f->space, access, assign, &relation));
            if (relation == RELATION_INSIDE) {
                ir_op_set_operand(access, 0, base);
                return write_inside(f, access, assign);
            }
            i = MAX_CHAIN;
            break;
        }
    }
    if (base != ir_operand(access, 0)) {
        ir_op_set_operand(access, 0, base);
        pass->changed = true;
    }
    return NULL;
}

/* An access of an access is one access of the first base, when that takes no more steps. */
static tssa_status *merge_accesses(struct pass_context *pass, struct ir_op *op)
{
    const struct ir_op *inner = ir_operand(op, 0)->op;
    struct ir_value *base = ir_operand(inner, 0);
    uint32_t n_first = inner->n_operands - 1, n_second = op->n_operands - 1;
    const struct rule *rule;
    if (base->type->kind != TYPE_TENSOR || base->type->rank < 0 ||
        n_first + n_second > IR_VARIADIC - 2)
        return NULL;
    TRY(rule_compose(pass->graph, base->type, rule_of(inner), rule_of(op), n_first, &rule));
    if (!rule || rule->n_steps > rule_of(op)->n_steps)
        return NULL;
    struct ir_value **params =
        ARENA_ARRAY(&pass->graph->arena, struct ir_value *, (size_t)n_first + n_second + 1);
    TRY_ALLOC(params);
    for (uint32_t i = 0; i < n_first + n_second; i++)
        params[i] = i < n_first ? ir_operand(inner, i + 1) : ir_operand(op, i - n_first + 1);
    struct ir_op *access = rule_access_create(pass->graph, base, rule, rule->n_operands, params);
    return pass_replace(pass, op, access);
}

/* Fewer steps are easier to compare. */
static tssa_status *simplify(struct pass_context *pass, struct ir_op *op)
{
    const struct ir_type *base = ir_operand(op, 0)->type;
    uint32_t first = rule_first_operand(op);
    const struct rule *rule;
    if (base->kind != TYPE_TENSOR || base->rank < 0)
        return NULL;
    TRY(rule_simplify(pass->graph, base, rule_of(op), &rule));
    if (rule->n_steps >= rule_of(op)->n_steps)
        return NULL;
    const struct ir_attr attr = {
        .name = intern_str(&pass->graph->strings, "rule"), .kind = IR_ATTR_RULE, .rule = rule};
    struct ir_value **operands =
        ARENA_ARRAY(&pass->graph->arena, struct ir_value *, op->n_operands);
    if (!attr.name || !operands || !ir_op_set_attr(pass->graph, op, &attr))
        return status_out_of_memory();
    for (uint32_t i = 0; i < op->n_operands; i++)
        operands[i] = op->operands[i].value;
    if (!ir_op_set_operands(op, first + rule->n_operands, operands))
        return status_out_of_memory();
    pass->changed = true;
    return NULL;
}

/* A rule without steps is the whole tensor. */
static tssa_status *visit_access(struct forwarding *f, struct ir_op *op)
{
    struct pass_context *pass = f->pass;
    const struct rule *rule = rule_of(op);
    struct ir_value *base = ir_operand(op, 0);
    if (rule->n_steps == 0) {
        replace(pass, op, base);
        return NULL;
    }
    if (is_assign(base))
        return forward(f, op);
    if (base->op && ir_op_is(base->op, IR_OP_access) && rule_of(base->op))
        return merge_accesses(pass, op);
    return NULL;
}

/* The value that enters the loop for a carried value that the assign's result goes round for. */
static struct ir_value *entering(const struct ir_op *assign)
{
    const struct ir_value *param = ir_operand(assign, 0);
    const struct ir_block *block = param->block;
    if (!block || !block->owner || !ir_op_is(block->owner, IR_OP_Loop) || param->index < 2 ||
        ir_operand(ir_block_return(block), param->index - 1) != &assign->results[0])
        return NULL;
    return ir_operand(block->owner, param->index);
}

/*
 * What the assign writes is an access of the same region of its base, or of what its base was
 * before it was written elsewhere. A carried value that is only written so is what it was before
 * the loop, by induction over the iterations.
 */
static tssa_status *writes_what_is_there(struct forwarding *f, const struct ir_op *assign,
                                         bool *answer)
{
    const struct ir_value *source = ir_operand(assign, 1), *base = ir_operand(assign, 0);
    enum region_relation relation;
    *answer = false;
    if (!source->op || !ir_op_is(source->op, IR_OP_access) ||
        !regions_identical(&f->space, assign, source->op))
        return NULL;
    const struct ir_value *from = ir_operand(source->op, 0);
    for (int i = 0; i < MAX_CHAIN && base != from && entering(assign) != from; i++) {
        if (!is_assign(base))
            return NULL;
        TRY(regions_relate(&f->space, base->op, assign, &relation));
        if (relation != RELATION_DISJOINT)
            return NULL;
        base = ir_operand(base->op, 0);
    }
    *answer = base == from || entering(assign) == from;
    return NULL;
}

/* An assign below that this one overwrites is passed by. */
static tssa_status *skip_dead(struct forwarding *f, struct ir_op *assign)
{
    struct ir_value *base = ir_operand(assign, 0);
    enum region_relation relation;
    while (is_assign(base)) {
        TRY(regions_relate(&f->space, assign, base->op, &relation));
        if (relation != RELATION_EQUAL && relation != RELATION_INSIDE &&
            !regions_identical(&f->space, assign, base->op))
            return NULL;
        base = ir_operand(base->op, 0);
        ir_op_set_operand(assign, 0, base);
        f->pass->changed = true;
    }
    return NULL;
}

static tssa_status *visit_assign(struct forwarding *f, struct ir_op *op)
{
    struct pass_context *pass = f->pass;
    bool is_there;
    struct ir_value *base = ir_operand(op, 0), *source = ir_operand(op, 1);
    if (rule_of(op)->n_steps == 0) {
        if (says_same(source->type, base->type))
            replace(pass, op, source);
        return NULL;
    }
    TRY(writes_what_is_there(f, op, &is_there));
    if (is_there) {
        replace(pass, op, base);
        return NULL;
    }
    return skip_dead(f, op);
}

static tssa_status *visit(void *context, struct ir_op *op)
{
    bool is_access = ir_op_is(op, IR_OP_access);
    if ((!is_access && !ir_op_is(op, IR_OP_assign)) || !rule_of(op))
        return NULL;
    struct forwarding *f = context;
    TRY(simplify(f->pass, op));
    return is_access ? visit_access(f, op) : visit_assign(f, op);
}

tssa_status *pass_forward_assigns(struct pass_context *pass)
{
    struct forwarding f = {.pass = pass};
    region_space_init(&f.space, pass->graph);
    tssa_status *status = ir_block_walk(pass->graph->body, visit, &f);
    region_space_free(&f.space);
    return status;
}
