/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ops of one kind on all the parts of tensors become one op on the whole tensors:
 *
 *     Add(a[0], b[0]), Add(a[1], b[1]), ..., Add(a[n-1], b[n-1])   ->   c = Add(a, b), c[0], ..., c[n-1]
 *
 * The gates of recurrent cells are written so: as many small additions as there are gates.
 *
 *   needs   accesses (recover)
 *   keeps   results' bits: element-wise ops only
 *   breaks  the accesses of the old wholes lose their uses (dead_code)
 */
#include "ir/equal.h"
#include "ir/infer.h"
#include "ir/rule.h"
#include "passes/pass.h"

#define MAX_PARTS 64
#define MAX_OPERANDS 4
#define MAX_USES 1024 /* of a whole, that are looked at */

/* One row of a tensor: whole[..., index, ...]. */
struct part {
    struct ir_value *whole;
    int64_t axis, index;
};

static bool find_part(const struct ir_value *value, struct part *part)
{
    const struct ir_op *op = value ? value->op : NULL;
    if (!op || !ir_op_is(op, IR_OP_access))
        return false;
    const struct rule *rule = rule_of(op);
    if (rule->n_steps != 1 || rule->steps[0].kind != RULE_SELECT)
        return false;
    part->whole = ir_operand(op, 0);
    part->axis = rule->steps[0].params[0].value;
    return dim_is_const(rule_param_dim(op, &rule->steps[0].params[1]), &part->index);
}

static bool is_scalar(const struct ir_value *value)
{
    return value && value->type->kind == TYPE_TENSOR && value->type->rank == 0;
}

/* What all the ops have in common, and those that were found. */
struct row {
    const struct ir_op *pattern;
    struct part operands[MAX_OPERANDS]; /* whole NULL: the scalar that the pattern has there */
    int64_t n_parts;
    struct ir_op *ops[MAX_PARTS];
};

/* Is `op` the pattern on part `index`? */
static bool matches(const struct row *row, const struct ir_op *op, int64_t index)
{
    const struct ir_op *pattern = row->pattern;
    if (op->info != pattern->info || op->version != pattern->version ||
        op->parent != pattern->parent || op->n_operands != pattern->n_operands ||
        !ir_attrs_equal(op, pattern))
        return false;
    for (uint32_t i = 0; i < op->n_operands; i++) {
        struct part part;
        if (!row->operands[i].whole) {
            if (ir_operand(op, i) != ir_operand(pattern, i))
                return false;
            continue;
        }
        if (!find_part(ir_operand(op, i), &part) || part.whole != row->operands[i].whole ||
            part.axis != row->operands[i].axis || part.index != index)
            return false;
    }
    return true;
}

/* The operands of the pattern: parts 0 of tensors of one shape along one axis, and scalars. */
static bool find_operands(struct row *row)
{
    const struct ir_op *pattern = row->pattern;
    const struct part *first = NULL;
    for (uint32_t i = 0; i < pattern->n_operands; i++) {
        struct part *part = &row->operands[i];
        if (!find_part(ir_operand(pattern, i), part)) {
            part->whole = NULL;
            if (!is_scalar(ir_operand(pattern, i)))
                return false;
            continue;
        }
        const struct ir_type *type = part->whole->type;
        if (part->index != 0 || type->kind != TYPE_TENSOR || type->rank < 1)
            return false;
        if (!first) {
            first = part;
            if (!dim_is_const(type->dims[part->axis], &row->n_parts))
                return false;
            continue;
        }
        const struct ir_type *other = first->whole->type;
        if (part->axis != first->axis || type->rank != other->rank)
            return false;
        for (int d = 0; d < type->rank; d++)
            if (type->dims[d] != other->dims[d])
                return false;
    }
    return first && row->n_parts >= 2 && row->n_parts <= MAX_PARTS;
}

/* The op that does for part `index` what the pattern does for part 0. */
static struct ir_op *find_sibling(const struct row *row, const struct ir_value *whole,
                                  uint32_t operand, int64_t index)
{
    int looked_at = 0;
    for (const struct ir_use *use = whole->uses; use && looked_at < MAX_USES;
         use = use->next, looked_at++) {
        struct part part;
        if (use->user->n_results != 1 || !find_part(&use->user->results[0], &part) ||
            part.whole != whole || part.index != index)
            continue;
        for (const struct ir_use *at = use->user->results[0].uses; at && looked_at < MAX_USES;
             at = at->next, looked_at++)
            if (operand < at->user->n_operands && at == &at->user->operands[operand] &&
                matches(row, at->user, index))
                return at->user;
    }
    return NULL;
}

static bool find_siblings(struct row *row)
{
    uint32_t operand = 0;
    while (!row->operands[operand].whole)
        operand++;
    row->ops[0] = (struct ir_op *)row->pattern;
    for (int64_t k = 1; k < row->n_parts; k++) {
        row->ops[k] = find_sibling(row, row->operands[operand].whole, operand, k);
        if (!row->ops[k])
            return false;
    }
    return true;
}

/* ---- Rewriting ------------------------------------------------------------------------------------ */

/* The first of the ops in the block; `position` is by op id. */
static struct ir_op *first_of(const struct row *row, const uint32_t *position)
{
    struct ir_op *first = row->ops[0];
    for (int64_t k = 1; k < row->n_parts; k++)
        if (position[row->ops[k]->id] < position[first->id])
            first = row->ops[k];
    return first;
}

static struct ir_op *make_whole(struct ir_graph *graph, const struct row *row)
{
    const struct ir_op *pattern = row->pattern;
    struct ir_op *op = ir_op_create(graph, pattern->info, pattern->n_operands, 1);
    if (!op)
        return NULL;
    op->version = pattern->version;
    op->name = pattern->name;
    for (uint32_t i = 0; i < pattern->n_attrs; i++)
        if (!ir_op_set_attr(graph, op, &pattern->attrs[i]))
            return NULL;
    for (uint32_t i = 0; i < pattern->n_operands; i++)
        ir_op_set_operand(op, i,
                          row->operands[i].whole ? row->operands[i].whole : ir_operand(pattern, i));
    return op;
}

static tssa_status *replace(struct ir_graph *graph, struct ir_op *op, struct ir_value *whole,
                            int64_t axis, int64_t index)
{
    const struct rule_param params[2] = {rule_constant(axis), rule_constant(index)};
    const struct rule_step step = {RULE_SELECT, 2, params};
    struct ir_op *access = rule_access_create(graph, whole, rule_create(graph, 1, &step), 0, NULL);
    TRY_ALLOC(access);
    access->name = op->name;
    ir_op_insert_before(access, op);
    TRY(ir_infer_op(access));
    access->results[0].name = op->results[0].name;
    op->results[0].name = NULL;
    ir_value_replace(&op->results[0], &access->results[0]);
    ir_op_remove(op);
    return NULL;
}

static tssa_status *widen(struct pass_context *pass, const struct row *row,
                          const uint32_t *position)
{
    struct ir_op *op = make_whole(pass->graph, row);
    int64_t axis = 0;
    TRY_ALLOC(op);
    for (uint32_t i = 0; i < row->pattern->n_operands; i++)
        if (row->operands[i].whole)
            axis = row->operands[i].axis;
    ir_op_insert_before(op, first_of(row, position));
    TRY(ir_infer_op(op));
    TRY(pass_remark(pass, TSSA_REMARK_APPLIED, op, "%lld ops on parts became one on the whole",
                    (long long)row->n_parts));
    for (int64_t k = 0; k < row->n_parts; k++)
        TRY(replace(pass->graph, row->ops[k], &op->results[0], axis, k));
    pass->changed = true;
    return NULL;
}

/* ---- The pass ------------------------------------------------------------------------------------- */

static bool is_one_of(const struct row *row, const struct ir_op *op)
{
    for (int64_t k = 0; k < row->n_parts; k++)
        if (row->ops[k] == op)
            return true;
    return false;
}

static tssa_status *visit_block(struct pass_context *pass, struct ir_block *block,
                                uint32_t *position, uint32_t n_ops)
{
    uint32_t at = 0;
    for (struct ir_op *op = block->first; op; op = op->next)
        if (op->id < n_ops)
            position[op->id] = at++;
    for (struct ir_op *op = block->first, *next; op; op = next) {
        struct row row = {.pattern = op};
        next = op->next;
        for (uint32_t i = 0; i < op->n_blocks; i++)
            TRY(visit_block(pass, op->blocks[i], position, n_ops));
        if (!op->info->ew || op->n_operands == 0 || op->n_operands > MAX_OPERANDS ||
            op->id >= n_ops || !find_operands(&row) || !find_siblings(&row))
            continue;
        while (next && is_one_of(&row, next)) /* these will be gone */
            next = next->next;
        TRY(widen(pass, &row, position));
    }
    return NULL;
}

tssa_status *pass_widen(struct pass_context *pass)
{
    const tssa_allocator *allocator = pass->graph->allocator;
    uint32_t n_ops = pass->graph->n_ops;
    uint32_t *position = allocator_calloc(allocator, (size_t)n_ops + 1, sizeof *position);
    TRY_ALLOC(position);
    tssa_status *status = visit_block(pass, pass->graph->body, position, n_ops);
    allocator_free(allocator, position);
    return status;
}
