/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Broadcasts between tensors of short rows, of which columns are read, are computed column by
 * column:
 *
 *     c = Max(a[80, 200, 1, 2], b[80, 1, 200, 2]), c[..., 0], c[..., 1]
 *         ->   Max(a[..., 0], b[..., 0]), Max(a[..., 1], b[..., 1])
 *
 * All pairs of boxes are compared so. A row of two elements is the longest run that such a
 * broadcast has, and a loop over runs of two is many times slower than one over a whole axis. What
 * lies between the broadcast and the reads goes column by column as well.
 *
 *   needs   accesses (recover)
 *   keeps   results' bits: element-wise ops only
 *   breaks  accesses of accesses are there to be joined (forward_assigns)
 */
#include "ir/infer.h"
#include "ir/rule.h"
#include "passes/pass.h"

#define MAX_COLUMNS 4     /* longer rows are runs that are long enough */
#define MIN_ELEMENTS 4096 /* of the broadcast, where its size is known */

struct splitting {
    struct pass_context *pass;
    uint8_t *flags; /* by op id */
    uint32_t n_ops;
};

enum {
    READ_BY_COLUMN = 1, /* all reads of the result are of columns, at once or in the end */
    WORTH_IT = 2        /* and a broadcast of short rows is computed on the way */
};

/* ---- Shapes ---------------------------------------------------------------------------------- */

/* The number of columns of an element-wise op's result, or 0. */
static int64_t columns_of(const struct ir_op *op)
{
    const struct ir_type *type = op->n_results == 1 ? op->results[0].type : NULL;
    int64_t columns;
    if (!op->info->ew || !type || type->kind != TYPE_TENSOR || type->rank < 2 ||
        !dim_is_const(type->dims[type->rank - 1], &columns) || columns < 2 || columns > MAX_COLUMNS)
        return 0;
    return columns;
}

/* Is an operand a scalar, or has it as many columns or one? */
static bool has_columns(const struct ir_value *value, int64_t columns)
{
    int64_t own;
    if (!value)
        return true;
    const struct ir_type *type = value->type;
    if (type->kind != TYPE_TENSOR || type->rank < 0)
        return false;
    return type->rank == 0 ||
           (dim_is_const(type->dims[type->rank - 1], &own) && (own == columns || own == 1));
}

static bool is_large(const struct ir_type *type)
{
    int64_t count = 1, dim;
    for (int i = 0; i < type->rank; i++)
        if (!dim_is_const(type->dims[i], &dim) || __builtin_mul_overflow(count, dim, &count))
            return true;
    return count >= MIN_ELEMENTS;
}

/* Two tensors, one of which is repeated along an axis before the last. */
static bool is_short_broadcast(const struct ir_op *op)
{
    const struct ir_type *result = op->results[0].type;
    int tensors = 0;
    bool repeated = false;
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const struct ir_type *type = ir_operand(op, i) ? ir_operand(op, i)->type : NULL;
        if (!type || type->rank == 0)
            continue;
        tensors++;
        for (int d = 1; d < type->rank; d++)
            repeated |= type->dims[type->rank - 1 - d] != result->dims[result->rank - 1 - d];
    }
    return tensors > 1 && repeated && is_large(result);
}

/* ---- Uses ------------------------------------------------------------------------------------ */

/* The column that an access reads of a value of this rank; -1: it does not read one column. */
static int64_t column_read(const struct ir_op *op, int rank)
{
    int64_t index;
    if (!ir_op_is(op, IR_OP_access))
        return -1;
    const struct rule *rule = rule_of(op);
    if (rule->n_steps < 1 || rule->steps[0].kind != RULE_SELECT ||
        rule->steps[0].params[0].value != rank - 1 ||
        !dim_is_const(rule_param_dim(op, &rule->steps[0].params[1]), &index) ||
        rule->steps[0].params[1].is_operand)
        return -1;
    return index;
}

static bool is_read_by_column(const struct splitting *s, const struct ir_op *op)
{
    int64_t columns = columns_of(op);
    int rank = op->results[0].type->rank;
    for (const struct ir_use *use = op->results[0].uses; use; use = use->next) {
        const struct ir_op *user = use->user;
        int64_t column = column_read(user, rank);
        bool passed_on = user->parent == op->parent && columns_of(user) == columns &&
                         user->results[0].type->rank == rank && user->id < s->n_ops &&
                         (s->flags[user->id] & READ_BY_COLUMN);
        bool first = use == &user->operands[0];
        if (!(column >= 0 && column < columns && first) && !passed_on)
            return false;
    }
    return op->results[0].uses != NULL;
}

static bool can_split(const struct ir_op *op)
{
    int64_t columns = columns_of(op);
    if (columns == 0)
        return false;
    for (uint32_t i = 0; i < op->n_operands; i++)
        if (!has_columns(ir_operand(op, i), columns))
            return false;
    return true;
}

/* ---- Rewriting ------------------------------------------------------------------------------- */

/* A column of an operand: the only one where it has one. */
static tssa_status *read_column(struct ir_graph *graph, struct ir_op *before,
                                struct ir_value *value, int64_t column, struct ir_value **out)
{
    *out = value;
    if (!value || value->type->rank == 0)
        return NULL;
    int axis = value->type->rank - 1;
    if (dim_is(value->type->dims[axis], 1))
        column = 0;
    const struct rule_param params[2] = {rule_constant(axis), rule_constant(column)};
    const struct rule_step step = {RULE_SELECT, 2, params};
    struct ir_op *access = rule_access_create(graph, value, rule_create(graph, 1, &step), 0, NULL);
    TRY(pass_insert(access, before));
    *out = &access->results[0];
    return NULL;
}

/* The op on one column of its operands. */
static tssa_status *make_column(struct ir_graph *graph, struct ir_op *op, int64_t column,
                                struct ir_value **out)
{
    struct ir_op *made = ir_op_create(graph, op->info, op->n_operands, 1);
    TRY_ALLOC(made);
    made->version = op->version;
    if (!ir_op_copy_attrs(graph, made, op))
        return status_out_of_memory();
    for (uint32_t i = 0; i < op->n_operands; i++) {
        struct ir_value *operand;
        TRY(read_column(graph, op, ir_operand(op, i), column, &operand));
        ir_op_set_operand(made, i, operand);
    }
    TRY(pass_insert(made, op));
    *out = &made->results[0];
    return NULL;
}

/* `access` reads the column that is a value of its own now: what is left of its rule. */
static tssa_status *read_from(struct ir_graph *graph, struct ir_op *access, struct ir_value *column)
{
    const struct rule *rule = rule_of(access);
    struct ir_value *result = &access->results[0];
    if (rule->n_steps == 1) {
        ir_value_replace(result, column);
        if (!column->name) {
            column->name = result->name;
            result->name = NULL;
        }
        ir_op_remove(access);
        return NULL;
    }
    struct ir_attr attr = {.name = access->attrs[0].name, .kind = IR_ATTR_RULE};
    attr.rule = rule_create(graph, rule->n_steps - 1, rule->steps + 1);
    if (!attr.rule || !ir_op_set_attr(graph, access, &attr))
        return status_out_of_memory();
    ir_op_set_operand(access, 0, column);
    return ir_infer_op_lenient(access);
}

static tssa_status *split(struct splitting *s, struct ir_op *op)
{
    struct ir_graph *graph = s->pass->graph;
    struct ir_value *columns[MAX_COLUMNS] = {NULL};
    int rank = op->results[0].type->rank;
    /* An op that reads it may not have been split after all. */
    for (const struct ir_use *use = op->results[0].uses; use; use = use->next)
        if (use != &use->user->operands[0] || column_read(use->user, rank) < 0)
            return NULL;
    while (op->results[0].uses) {
        struct ir_op *access = op->results[0].uses->user;
        int64_t column = column_read(access, rank);
        if (!columns[column])
            TRY(make_column(graph, op, column, &columns[column]));
        TRY(read_from(graph, access, columns[column]));
    }
    TRY(pass_remark(s->pass, TSSA_REMARK_APPLIED, op, "a broadcast of short rows, by columns"));
    ir_op_remove(op);
    s->pass->changed = true;
    return NULL;
}

/* ---- The pass -------------------------------------------------------------------------------- */

static bool operand_is_worth_it(const struct splitting *s, const struct ir_op *op)
{
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const struct ir_value *value = ir_operand(op, i);
        if (value && value->op && value->op->parent == op->parent &&
            (s->flags[value->op->id] & WORTH_IT))
            return true;
    }
    return false;
}

static tssa_status *visit_block(struct splitting *s, struct ir_block *block)
{
    struct ir_op *previous;
    for (struct ir_op *op = block->last; op; op = op->prev) {
        for (uint32_t i = 0; i < op->n_blocks; i++)
            TRY(visit_block(s, op->blocks[i]));
        if (op->id < s->n_ops && can_split(op) && is_read_by_column(s, op))
            s->flags[op->id] |= READ_BY_COLUMN;
    }
    for (struct ir_op *op = block->first; op; op = op->next)
        if (op->id < s->n_ops && (s->flags[op->id] & READ_BY_COLUMN) &&
            (is_short_broadcast(op) || operand_is_worth_it(s, op)))
            s->flags[op->id] |= WORTH_IT;
    for (struct ir_op *op = block->last; op; op = previous) {
        previous = op->prev;
        if (op->id < s->n_ops && (s->flags[op->id] & WORTH_IT))
            TRY(split(s, op));
    }
    return NULL;
}

tssa_status *pass_split_columns(struct pass_context *pass)
{
    const tssa_allocator *allocator = pass->graph->allocator;
    struct splitting s = {.pass = pass, .n_ops = pass->graph->n_ops};
    s.flags = allocator_calloc(allocator, (size_t)s.n_ops + 1, sizeof *s.flags);
    TRY_ALLOC(s.flags);
    tssa_status *status = visit_block(&s, pass->graph->body);
    allocator_free(allocator, s.flags);
    return status;
}
