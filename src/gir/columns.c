/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of columns (gir.h): what they have in common with each other, and not with other parts;
 * see maps.h. */
#include "gir/iteration.h"
#include "gir/mapper.h"
#include "gir/rows.h"
#include "ir/row.h"

static bool keeps_axis(const struct ir_op *op)
{
    return ir_attr_int(op, "keepdims", 1) != 0;
}

const struct ir_op *mapper_find_reduction(const struct mapper *m, bool *any)
{
    const struct ir_op *first = NULL, *folding = NULL;
    *any = false;
    for (const struct ir_op *op = m->body->first; op; op = op->next) {
        if (!op->info->reduction && ir_column_axis(op) < 0)
            continue;
        *any = true;
        first = first ? first : op;
        if (ir_column_axis(op) < 0 || ir_column_axis(op) != ir_column_axis(first) ||
            !gir_has_dims(ir_operand(op, 0), ir_operand(first, 0)->type))
            return NULL;
        if (!ir_column_folds(op))
            continue;
        folding = folding ? folding : op;
        if (keeps_axis(op) != keeps_axis(folding))
            return NULL;
    }
    return folding ? folding : first;
}

/* Of columns of one element that is gone, nobody could tell their elements from what they come to:
 * no argument has that axis. */
bool mapper_fits_columns(const struct mapper *m, const struct ir_op *reduction)
{
    const struct ir_op *ret = ir_block_return(m->body);
    const struct ir_type *type = reduction->results[0].type,
                         *space = ir_operand(reduction, 0)->type;
    const bool told = keeps_axis(reduction) || !dim_is(space->dims[ir_column_axis(reduction)], 1);
    for (uint32_t i = 0; i < m->fuse->n_results; i++)
        if (m->fuse->results[i].wanted && !gir_has_dims(ir_operand(ret, i), type) &&
            !(told && gir_has_dims(ir_operand(ret, i), space)))
            return false;
    return true;
}

struct gir_view mapper_root_of(const struct mapper *m, const struct ir_value *value)
{
    const struct gir_view whole = {0};
    return m->part->space.column < 0 || gir_has_dims(value, m->like) ? m->root : whole;
}

tssa_status *mapper_begin_columns(struct mapper *m, const struct ir_op *reduction)
{
    const struct ir_type *type = ir_operand(reduction, 0)->type;
    const struct rule_param axis = rule_constant(ir_column_axis(reduction));
    const struct rule_step step = {RULE_UNSQUEEZE, 1, &axis};
    m->part->space.column = ir_column_axis(reduction);
    m->part->space.keeps = keeps_axis(reduction);
    for (int i = 0; i < type->rank; i++)
        (void)dim_is_const(type->dims[i], &m->part->space.dims[i]);
    m->root = (struct gir_view){0};
    if (m->part->space.keeps)
        return NULL;
    m->root.rule = rule_create(m->body->graph, 1, &step);
    TRY_ALLOC(m->root.rule);
    return NULL;
}

void mapper_mark_columns(struct mapper *m)
{
    const uint32_t axis = 1u << m->part->space.column;
    uint32_t all = 0;
    for (uint32_t i = 0; i < m->n_args; i++) {
        m->args[i].per_column = !(m->part->maps[i].axes & axis);
        all |= m->part->maps[i].axes;
    }
    if (all < 2 * axis) /* no argument has an axis behind it */
        mapper_refuse(m, "there is one column");
}

void mapper_finish_columns(struct mapper *m)
{
    const uint32_t axis = 1u << m->part->space.column;
    uint32_t told = m->part->space.dims[m->part->space.column] >= 0 ? axis : 0, n = 0;
    mapper_mark_columns(m);
    for (uint32_t i = 0; i < m->n_args; i++)
        told |=
            m->args[i].is_result || !gir_tells_size(&m->part->maps[i]) ? 0 : m->part->maps[i].axes;
    for (uint32_t i = 0; i < m->maker.n; i++)
        n += m->maker.codes[i].op == GIR_REDUCE;
    if (n > GIR_MAX_REDUCTIONS)
        mapper_refuse(m, "it has more reductions than kernels may have");
    if (!(told & axis))
        mapper_refuse(m, "how many elements are reduced is not known");
}

/* Does the view see what each column comes to, in the column or in each row of it? A first axis
 * that is gone is there again where shapes are broadcast. */
static bool is_here(const struct mapper *m, const struct gir_view *view)
{
    const struct gir_part_space *space = &m->part->space;
    struct gir_view here = *view;
    here.ones &= ~(1u << space->column);
    if (space->column == 0 && !space->keeps && !here.rule)
        here.rule = m->root.rule;
    return gir_view_equal(&here, &m->root);
}

uint32_t mapper_reduce(struct mapper *m, const struct ir_op *op, const struct gir_view *view)
{
    const struct gir_view whole = {0};
    if (!(ir_column_folds(op) ? is_here(m, view) : gir_view_equal(view, &whole)) ||
        m->part->space.column != ir_column_axis(op))
        return mapper_refuse(m, "what it reduces to is needed elsewhere");
    const uint32_t value = mapper_evaluate(m, ir_operand(op, 0), whole);
    return m->maker.why ? 0 : gir_make_row_op(&m->maker, op, &value);
}
