/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ops of one kind on all the parts of tensors become one op on the whole tensors:
 *
 *     Add(a[0], b[0]), Add(a[1], b[1]), ..., Add(a[n-1], b[n-1])
 *       ->   c = Add(a, b), c[0], c[1], ..., c[n-1]
 *
 * The gates of recurrent cells are written so: as many small additions as there are gates.
 * Constants that differ from part to part (a bias per gate) are put into one.
 *
 *   needs   accesses (recover)
 *   keeps   results' bits: element-wise ops only
 *   breaks  the accesses of the old wholes lose their uses (dead_code)
 */
#include <string.h>

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

enum operand_kind {
    PART,    /* of a whole */
    SCALAR,  /* the same one for all parts */
    CONSTANT /* one for each part, all of one shape */
};

/* What all the ops have in common, and those that were found. */
struct row {
    const struct ir_op *pattern;
    enum operand_kind kinds[MAX_OPERANDS];
    struct part operands[MAX_OPERANDS]; /* of kind PART: of the pattern */
    int64_t axis, n_parts;
    int rank; /* of the wholes */
    struct ir_op *ops[MAX_PARTS];
};

/* A constant that can be one row of a larger one. */
static const struct tensor *find_constant(const struct row *row, const struct ir_value *value)
{
    const struct tensor *tensor = value ? ir_value_constant(value) : NULL;
    return tensor && tensor->rank < row->rank ? tensor : NULL;
}

static bool operand_matches(const struct row *row, const struct ir_op *op, uint32_t i,
                            int64_t index)
{
    const struct part *first = &row->operands[i];
    struct part part;
    if (row->kinds[i] == SCALAR)
        return ir_operand(op, i) == ir_operand(row->pattern, i);
    if (row->kinds[i] == PART)
        return find_part(ir_operand(op, i), &part) && part.whole == first->whole &&
               part.axis == first->axis && part.index == index;
    const struct tensor *a = find_constant(row, ir_operand(op, i));
    const struct tensor *b = find_constant(row, ir_operand(row->pattern, i));
    return a && a->dtype == b->dtype && tensor_same_shape(a, b);
}

/* Is `op` the pattern on part `index`? */
static bool matches(const struct row *row, const struct ir_op *op, int64_t index)
{
    const struct ir_op *pattern = row->pattern;
    if (op->info != pattern->info || op->version != pattern->version ||
        op->parent != pattern->parent || op->n_operands != pattern->n_operands ||
        !ir_attrs_equal(op, pattern))
        return false;
    for (uint32_t i = 0; i < op->n_operands; i++)
        if (!operand_matches(row, op, i, index))
            return false;
    return true;
}

/* Is a part like the others: part 0 of a tensor of their shape, along their axis? */
static bool fits(struct row *row, const struct part *part, const struct part *first)
{
    const struct ir_type *type = part->whole->type, *other = first->whole->type;
    if (part->index != 0 || type->kind != TYPE_TENSOR || type->rank < 1)
        return false;
    row->axis = part->axis;
    row->rank = type->rank;
    if (part == first)
        return dim_is_const(type->dims[part->axis], &row->n_parts);
    if (part->axis != first->axis || type->rank != other->rank)
        return false;
    for (int d = 0; d < type->rank; d++)
        if (type->dims[d] != other->dims[d])
            return false;
    return true;
}

/*
 * The operands of the pattern: parts 0 of tensors of one shape along one axis, scalars, constants.
 */
static bool find_operands(struct row *row)
{
    const struct ir_op *pattern = row->pattern;
    const struct part *first = NULL;
    for (uint32_t i = 0; i < pattern->n_operands; i++) {
        struct part *part = &row->operands[i];
        if (!find_part(ir_operand(pattern, i), part)) {
            row->kinds[i] = is_scalar(ir_operand(pattern, i)) ? SCALAR : CONSTANT;
            continue;
        }
        first = first ? first : part;
        if (!fits(row, part, first))
            return false;
    }
    for (uint32_t i = 0; i < pattern->n_operands; i++)
        if (row->kinds[i] == CONSTANT && !find_constant(row, ir_operand(pattern, i)))
            return false;
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
    while (row->kinds[operand] != PART)
        operand++;
    row->ops[0] = (struct ir_op *)row->pattern;
    for (int64_t k = 1; k < row->n_parts; k++) {
        row->ops[k] = find_sibling(row, row->operands[operand].whole, operand, k);
        if (!row->ops[k])
            return false;
    }
    return true;
}

/* ---- Rewriting ------------------------------------------------------------------------------- */

/* The first of the ops in the block; `position` is by op id. */
static struct ir_op *first_of(const struct row *row, const uint32_t *position)
{
    struct ir_op *first = row->ops[0];
    for (int64_t k = 1; k < row->n_parts; k++)
        if (position[row->ops[k]->id] < position[first->id])
            first = row->ops[k];
    return first;
}

/* The constants of all parts, stacked along the axis. */
static struct ir_op *stack_constants(struct ir_graph *graph, const struct row *row,
                                     uint32_t operand)
{
    const struct tensor *part = find_constant(row, ir_operand(row->pattern, operand));
    struct tensor *all = ARENA_NEW(&graph->arena, struct tensor);
    size_t bytes = tensor_bytes(part), outer = 1;
    char *data =
        arena_alloc_aligned(&graph->arena, (size_t)row->n_parts * bytes + 1, TENSOR_ALIGNMENT);
    if (!all || !data)
        return NULL;
    /* The dims that the part has not are 1; the parts' axis comes in between. */
    *all = (struct tensor){.dtype = part->dtype, .rank = row->rank, .data = data};
    for (int d = 0, missing = row->rank - 1 - part->rank; d < row->rank - 1; d++) {
        int64_t dim = d < missing ? 1 : part->dims[d - missing];
        all->dims[d < row->axis ? d : d + 1] = dim;
        outer *= d < row->axis ? (size_t)dim : 1;
    }
    all->dims[row->axis] = row->n_parts;
    size_t line = outer ? bytes / outer : 0;
    for (size_t o = 0; o < outer; o++)
        for (int64_t k = 0; k < row->n_parts && line; k++) {
            const struct tensor *from = find_constant(row, ir_operand(row->ops[k], operand));
            memcpy(data, (const char *)from->data + o * line, line);
            data += line;
        }
    return ir_constant_create(graph, all);
}

static tssa_status *make_operand(struct ir_graph *graph, const struct row *row, uint32_t i,
                                 struct ir_op *before, struct ir_value **operand)
{
    *operand = row->kinds[i] == PART ? row->operands[i].whole : ir_operand(row->pattern, i);
    if (row->kinds[i] != CONSTANT)
        return NULL;
    struct ir_op *constant = stack_constants(graph, row, i);
    TRY_ALLOC(constant);
    constant->name = row->pattern->name;
    ir_op_insert_before(constant, before);
    *operand = &constant->results[0];
    return ir_infer_op_lenient(constant);
}

static tssa_status *make_whole(struct ir_graph *graph, const struct row *row, struct ir_op *before,
                               struct ir_op **whole)
{
    const struct ir_op *pattern = row->pattern;
    struct ir_op *op = ir_op_create(graph, pattern->info, pattern->n_operands, 1);
    TRY_ALLOC(op);
    op->version = pattern->version;
    op->name = pattern->name;
    if (!ir_op_copy_attrs(graph, op, pattern))
        return status_out_of_memory();
    for (uint32_t i = 0; i < pattern->n_operands; i++) {
        struct ir_value *operand;
        TRY(make_operand(graph, row, i, before, &operand));
        ir_op_set_operand(op, i, operand);
    }
    ir_op_insert_before(op, before);
    *whole = op;
    return ir_infer_op_lenient(op);
}

static tssa_status *replace(struct pass_context *pass, struct ir_op *op, struct ir_value *whole,
                            int64_t axis, int64_t index)
{
    struct ir_graph *graph = pass->graph;
    const struct rule_param params[2] = {rule_constant(axis), rule_constant(index)};
    const struct rule_step step = {RULE_SELECT, 2, params};
    struct ir_op *access = rule_access_create(graph, whole, rule_create(graph, 1, &step), 0, NULL);
    return pass_replace(pass, op, access);
}

static tssa_status *widen(struct pass_context *pass, const struct row *row,
                          const uint32_t *position)
{
    struct ir_op *op;
    TRY(make_whole(pass->graph, row, first_of(row, position), &op));
    TRY(pass_remark(pass, TSSA_REMARK_APPLIED, op, "%lld ops on parts became one on the whole",
                    (long long)row->n_parts));
    for (int64_t k = 0; k < row->n_parts; k++)
        TRY(replace(pass, row->ops[k], &op->results[0], row->axis, k));
    return NULL;
}

/* ---- The pass -------------------------------------------------------------------------------- */

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
