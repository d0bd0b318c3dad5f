/* SPDX-License-Identifier: Apache-2.0 */
#include "gir/alignment.h"

#include "ir/row.h"

bool gir_rows_of(const struct ir_block *body, struct gir_rows *rows)
{
    *rows = (struct gir_rows){0};
    for (const struct ir_op *op = body->first; op; op = op->next) {
        const int n = op->info->ew ? 0 : ir_row_axes(op);
        if (n == 0)
            continue;
        const struct ir_type *type = ir_operand(op, 0)->type;
        if (rows->like && (rows->n != n || rows->like->rank != type->rank))
            return false;
        for (int i = 0; rows->like && i < type->rank; i++)
            if (rows->like->dims[i] != type->dims[i])
                return false;
        *rows = (struct gir_rows){type, n};
    }
    return true;
}

struct alignment {
    const struct gir_rows *rows;
    uint32_t first;
    bool *dropped;
    bool changed, wrong;
};

/* A value of one element lies in any way. */
static bool has_axes(const struct ir_value *value)
{
    for (int i = 0; value && i < value->type->rank; i++)
        if (!dim_is(value->type->dims[i], 1))
            return true;
    return false;
}

static bool is_dropped(const struct alignment *a, const struct ir_value *value)
{
    return has_axes(value) && a->dropped[value->id - a->first];
}

static void drop(struct alignment *a, const struct ir_value *value)
{
    if (!has_axes(value) || is_dropped(a, value))
        return;
    a->dropped[value->id - a->first] = true;
    a->changed = true;
    a->wrong |= value->type->rank > a->rows->like->rank - a->rows->n;
}

static void align_op(struct alignment *a, const struct ir_op *op)
{
    const bool rows = !op->info->ew && ir_row_axes(op);
    bool any = is_dropped(a, &op->results[0]);
    for (uint32_t i = 0; i < op->n_operands; i++)
        any |= is_dropped(a, ir_operand(op, i));
    if (rows) {
        for (uint32_t i = 0; i < op->n_operands; i++)
            if (ir_row_is_each(op, i))
                drop(a, ir_operand(op, i));
            else
                a->wrong |= is_dropped(a, ir_operand(op, i));
        if (ir_row_folds(op) && !ir_attr_int(op, "keepdims", 1))
            drop(a, &op->results[0]);
        return;
    }
    for (uint32_t i = 0; any && i < op->n_operands; i++)
        drop(a, ir_operand(op, i));
    if (any)
        drop(a, &op->results[0]);
}

bool gir_align(const struct ir_block *body, const struct gir_rows *rows, uint32_t first,
               bool *dropped)
{
    struct alignment a = {.rows = rows, .first = first, .dropped = dropped, .changed = true};
    while (a.changed && !a.wrong) {
        a.changed = false;
        for (const struct ir_op *op = body->first; op; op = op->next)
            if (ir_op_computes(op) &&
                !ir_op_is(op, IR_OP_access)) /* of operands, which lie as they like */
                align_op(&a, op);
    }
    return !a.wrong;
}
