/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tensor that is updated part by part, until no part is left, with one element-wise op is updated
 * at once: columns 0, 2, ... clamped and then columns 1, 3, ... are the tensor clamped.
 *
 *     a = assign(x, Clip(access(x, [slice(1, 0, 4, 2)]), lo, hi), [slice(1, 0, 4, 2)])
 *     y = assign(a, Clip(access(x, [slice(1, 1, 4, 2)]), lo, hi), [slice(1, 1, 4, 2)])
 *     y = Clip(x, lo, hi)
 *
 *   needs   forward_assigns: accesses are of the tensor before the first assign
 *   keeps   types; the ops of the parts stay, without uses (dead_code removes them)
 *   breaks  nothing
 */
#include "ir/equal.h"
#include "ir/region.h"
#include "passes/analysis/regions.h"
#include "passes/pass.h"

/* The axis that is taken apart has at most so many elements, one bit each. */
#define MAX_SIZE 64

struct parts {
    struct ir_value *base;      /* x */
    const struct ir_op *update; /* the op of the last part */
    uint32_t operand;           /* which of its operands is x's part */
    int64_t axis, size;
    uint64_t done; /* elements of the axis that are written */
};

/* The rule's only step, and which elements of its axis it means. */
static tssa_status *read_elements(struct pass_context *pass, const struct ir_op *op, int64_t *axis,
                                  int64_t *size, uint64_t *elements)
{
    const struct rule *rule;
    const struct ir_type *type = ir_operand(op, 0)->type;
    *elements = 0;
    TRY(rule_simplify(pass->graph, type, rule_of(op), &rule));
    if (rule->n_steps != 1 || !rule_is_constant(rule) || type->kind != TYPE_TENSOR)
        return NULL;
    const struct rule_step *step = &rule->steps[0];
    if (step->kind != RULE_SELECT && step->kind != RULE_SLICE)
        return NULL;
    *axis = step->params[0].value;
    if (*axis >= type->rank || !dim_is_const(type->dims[*axis], size) || *size > MAX_SIZE)
        return NULL;
    int64_t start = step->params[1].value, end = start + 1, by = 1;
    if (step->kind == RULE_SLICE) {
        end = step->params[2].value < *size ? step->params[2].value : *size;
        by = step->params[3].value;
    }
    if (start < 0 || end < 0 || end > *size || by < 1)
        return NULL;
    for (int64_t i = start; i < end; i += by)
        *elements |= UINT64_C(1) << i;
    return NULL;
}

/*
 * Which operand of the update is an access of the region that its result is assigned to; -1: none.
 */
static int part_operand(struct region_space *space, const struct ir_op *assign,
                        const struct ir_op *update)
{
    int found = -1;
    for (uint32_t i = 0; i < update->n_operands; i++) {
        const struct ir_value *value = ir_operand(update, i);
        if (!value)
            continue;
        if (value->op && ir_op_is(value->op, IR_OP_access) && found < 0 &&
            value->type == update->results[0].type && regions_identical(space, assign, value->op))
            found = (int)i;
        else if (value->type->kind != TYPE_TENSOR || value->type->rank != 0)
            return -1;
    }
    return found;
}

/* The same op with the same other operands. */
static bool same_update(const struct ir_op *a, const struct ir_op *b, uint32_t part)
{
    if (a->info != b->info || a->version != b->version || a->n_operands != b->n_operands ||
        !ir_attrs_equal(a, b))
        return false;
    for (uint32_t i = 0; i < a->n_operands; i++)
        if (i != part && ir_operand(a, i) != ir_operand(b, i))
            return false;
    return true;
}

struct merging {
    struct pass_context *pass;
    struct region_space space;
};

/* Adds a part; false when the assign is none. */
static tssa_status *add_part(struct merging *m, struct parts *parts, const struct ir_op *assign,
                             bool *added)
{
    const struct ir_value *source = ir_operand(assign, 1);
    const struct ir_op *update = source->op;
    int64_t axis = 0, size = 0;
    uint64_t elements;
    *added = false;
    if (!update || !update->info->ew || update->n_results != 1 ||
        source->type->kind != TYPE_TENSOR ||
        source->type->dtype != ir_operand(assign, 0)->type->dtype)
        return NULL;
    int part = part_operand(&m->space, assign, update);
    if (part < 0)
        return NULL;
    TRY(read_elements(m->pass, assign, &axis, &size, &elements));
    struct ir_value *base = ir_operand(ir_operand(update, (uint32_t)part)->op, 0);
    if (!parts->update)
        *parts = (struct parts){
            .base = base, .update = update, .operand = (uint32_t)part, .axis = axis, .size = size};
    *added = elements && base == parts->base && axis == parts->axis &&
             (uint32_t)part == parts->operand && same_update(parts->update, update, parts->operand);
    parts->done |= elements;
    return NULL;
}

static bool is_complete(const struct parts *parts)
{
    return parts->done == UINT64_MAX >> (MAX_SIZE - parts->size);
}

static tssa_status *replace(struct pass_context *pass, const struct parts *parts,
                            struct ir_op *assign)
{
    struct ir_cloner cloner;
    const struct ir_value *part = ir_operand(parts->update, parts->operand);
    ir_cloner_init(&cloner, pass->graph);
    struct ir_op *op =
        ir_cloner_map(&cloner, part, parts->base) ? ir_clone_op(&cloner, parts->update) : NULL;
    ir_cloner_free(&cloner);
    TRY(pass_replace(pass, assign, op));
    op->name = parts->update->name;
    return NULL;
}

static tssa_status *visit(void *context, struct ir_op *op)
{
    struct merging *m = context;
    struct parts parts = {0};
    bool added = true;
    if (!ir_op_is(op, IR_OP_assign) || !rule_of(op))
        return NULL;
    for (const struct ir_op *assign = op; assign && ir_op_is(assign, IR_OP_assign);
         assign = ir_operand(assign, 0)->op) {
        TRY(add_part(m, &parts, assign, &added));
        if (!added)
            return NULL;
        if (is_complete(&parts))
            return parts.base->type == op->results[0].type ? replace(m->pass, &parts, op) : NULL;
    }
    return NULL;
}

tssa_status *pass_merge_updates(struct pass_context *pass)
{
    struct merging merging = {.pass = pass};
    region_space_init(&merging.space, pass->graph);
    tssa_status *status = ir_block_walk(pass->graph->body, visit, &merging);
    region_space_free(&merging.space);
    return status;
}
