/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels of running sums and products (CumSum, CumProd): of columns, whose rows are what is summed
 * up, one after the other (gir.h); see maps.h. What was summed up before a row is a state. Where
 * sums go from the last element back, rows are in that order, in all arguments.
 */
#include "gir/iteration.h"
#include "gir/mapper.h"
#include "gir/rows.h"
#include "ir/fuse.h"
#include "ir/row.h"

static bool is_reversed(const struct ir_op *op)
{
    return ir_attr_int(op, "reverse", 0) != 0;
}

const struct ir_op *mapper_find_scan(const struct mapper *m, bool *any)
{
    const struct ir_op *found = NULL;
    *any = false;
    for (const struct ir_op *op = m->body->first; op; op = op->next) {
        if (ir_scan_axis(op) < 0)
            continue;
        *any = true;
        found = found ? found : op;
        if (!m->like || ir_scan_axis(op) != ir_scan_axis(found) ||
            is_reversed(op) != is_reversed(found) || !gir_has_dims(&op->results[0], m->like))
            return NULL;
    }
    return found;
}

tssa_status *mapper_begin_scans(struct mapper *m, const struct ir_op *scan)
{
    const int axis = ir_scan_axis(scan);
    const struct rule_param params[] = {rule_constant(axis), rule_constant(-1),
                                        rule_constant(INT64_MIN), rule_constant(-1)};
    const struct rule_step back = {RULE_SLICE, 4, params};
    m->part->space.column = axis;
    for (int i = 0; i < m->like->rank; i++)
        m->part->space.dims[i] = m->part->space.result_dims[i];
    m->root = (struct gir_view){0};
    if (!is_reversed(scan))
        return NULL;
    m->root.rule = rule_create(m->body->graph, 1, &back);
    TRY_ALLOC(m->root.rule);
    return NULL;
}

void mapper_finish_scans(struct mapper *m)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < m->maker.n; i++)
        n += m->maker.codes[i].op == GIR_STATE;
    if (n == 0)
        mapper_refuse(m, "nobody wants its running sums");
    mapper_mark_columns(m);
}

uint32_t mapper_scan(struct mapper *m, const struct ir_op *op, const struct gir_view *view)
{
    if (!gir_view_equal(view, &m->root) || m->part->space.column != ir_scan_axis(op))
        return mapper_refuse(m, "what it sums up is needed elsewhere");
    return gir_make_scan(&m->maker, op, mapper_evaluate(m, ir_operand(op, 0), *view));
}
