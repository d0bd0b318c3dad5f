/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ScatterND of one value to the places that NonZero lists: x[i][mask] = s. The list is as long as
 * data says; a Where needs none.
 *
 *     ScatterND(x, Concat(i.., Transpose(NonZero(mask))), Expand(s))   x[i] := Where(mask, s, x[i])
 */
#include "ir/infer.h"
#include "passes/recover/recover.h"

/* ---- Indices --------------------------------------------------------------------------------- */

/*
 * Column `column` of the indices: a row of what NonZero gives, at one coordinate of the position.
 */
static tssa_status *trace_column(struct pass_context *pass, const struct ir_op *op,
                                 const struct element_space *space, int column,
                                 struct ir_value **list, int64_t *row, int *coordinate)
{
    struct element at[TSSA_MAX_RANK], found[TSSA_MAX_RANK];
    for (int i = 0; i < space->rank; i++)
        if (!element_coordinate(pass->graph, i, &at[i]))
            return status_out_of_memory();
    if (!element_number(pass->graph, column, &at[space->rank]))
        return status_out_of_memory();
    TRY(element_trace(pass->graph, space, ir_operand(op, 1), at, IR_OP_NonZero, list, found));
    if (*list && (infer_rank((*list)->op, 0) < 1 || !element_is_number(&found[0], row)))
        *list = NULL;
    if (!*list)
        return NULL;
    *coordinate = element_coordinate_of(&found[1], space);
    if (*coordinate < 0 || space->extents[*coordinate] != (*list)->type->dims[1])
        *list = NULL;
    return NULL;
}

/* Every position is one place of the list. */
static bool lists_all(const struct element_space *space, int coordinate)
{
    for (int i = 0; i < space->rank; i++)
        if (i != coordinate && !dim_is(space->extents[i], 1))
            return false;
    return true;
}

static tssa_status *read_mask(struct pass_context *pass, const struct ir_op *op,
                              const struct element_space *space, int axis, int depth,
                              struct ir_value **mask)
{
    const struct ir_type *data = ir_operand(op, 0)->type;
    struct ir_value *list = NULL, *first = NULL;
    *mask = NULL;
    for (int k = axis; k < depth; k++) {
        int64_t row;
        int coordinate;
        TRY(trace_column(pass, op, space, k, &list, &row, &coordinate));
        if (!list || row != k - axis || (first && list != first) || !lists_all(space, coordinate))
            return NULL;
        first = list;
    }
    struct ir_value *listed = first ? ir_operand(first->op, 0) : NULL;
    if (!listed || listed->type->rank != depth - axis || listed->type->dtype != TSSA_BOOL)
        return NULL;
    for (int i = 0; i < listed->type->rank; i++)
        if (listed->type->dims[i] != data->dims[axis + i])
            return NULL;
    *mask = listed;
    return NULL;
}

/* ---- Updates --------------------------------------------------------------------------------- */

/* The value that all positions get, without axes for them; NULL: they may get different ones. */
static tssa_status *read_value(struct pass_context *pass, struct ir_op *op, int positions,
                               struct ir_value **value)
{
    struct ir_value *updates = ir_operand(op, 2), *inner;
    struct rule_draft squeeze = {0};
    int64_t axes[TSSA_MAX_RANK];
    *value = NULL;
    if (!updates->op || !ir_op_is(updates->op, IR_OP_Expand))
        return NULL;
    inner = ir_operand(updates->op, 0);
    int trailing = updates->type->rank - positions;
    int extra = recover_is_ranked(inner) ? inner->type->rank - trailing : -1;
    if (!recover_is_ranked(inner) || extra > positions)
        return NULL;
    for (int i = 0; i < extra; i++) {
        axes[i] = i;
        if (!dim_is(inner->type->dims[i], 1))
            return NULL;
    }
    if (extra > 0)
        draft_step(&squeeze, RULE_SQUEEZE, (uint32_t)extra, axes);
    return recover_insert_access(pass, op, inner, &squeeze, value);
}

tssa_status *recover_read_listed(struct pass_context *pass, struct ir_op *op,
                                 const struct element_space *space, int axis, int depth,
                                 struct listed_write *write)
{
    *write = (struct listed_write){.axis = axis};
    if (!dtype_in(PASS_SELECTABLE, ir_operand(op, 0)->type->dtype))
        return NULL;
    TRY(read_mask(pass, op, space, axis, depth, &write->mask));
    return write->mask ? read_value(pass, op, space->rank, &write->value) : NULL;
}

/* ---- The write ------------------------------------------------------------------------------- */

tssa_status *recover_write_listed(struct pass_context *pass, struct ir_op *op,
                                  const struct listed_write *write, const struct rule_draft *draft)
{
    struct ir_value *base = ir_operand(op, 0), *part, *mask;
    struct rule_draft behind = {0};
    int64_t axes[TSSA_MAX_RANK];
    int n = 0;
    for (int i = write->mask->type->rank; i < base->type->rank - write->axis; i++)
        axes[n++] = i;
    if (n)
        draft_step(&behind, RULE_UNSQUEEZE, (uint32_t)n, axes);
    TRY(recover_insert_access(pass, op, write->mask, &behind, &mask));
    TRY(recover_insert_access(pass, op, base, draft, &part));
    struct ir_op *where = ir_op_create(pass->graph, ir_op_info(IR_OP_Where), 3, 1);
    TRY_ALLOC(where);
    where->version = ir_op_bind(where->info, IR_NEWEST_OPSET);
    where->exact = true;
    ir_op_set_operand(where, 0, mask);
    ir_op_set_operand(where, 1, write->value);
    ir_op_set_operand(where, 2, part);
    TRY(pass_insert(where, op));
    where->results[0].type = part->type;
    if (draft->n_steps > 0)
        return recover_assign(pass, op, base, &where->results[0], draft);
    TRY(pass_remark(pass, TSSA_REMARK_APPLIED, op, "writes one value where a mask is true"));
    recover_replace(pass, op, &where->results[0]);
    return NULL;
}
