/* SPDX-License-Identifier: Apache-2.0 */
#include "gir/mapper.h"

#include <string.h>

#include "ir/fuse.h"
#include "ir/row.h"

uint32_t mapper_refuse(struct mapper *m, const char *why)
{
    if (!m->maker.why)
        m->maker.why = why;
    return 0;
}

bool mapper_check(struct mapper *m, tssa_status *status, bool good)
{
    if (status) {
        tssa_status_free(m->status);
        m->status = status;
        mapper_refuse(m, "memory ran out");
    } else if (!good) {
        mapper_refuse(m, "how shapes are broadcast is not known");
    }
    return !m->maker.why;
}

/* ---- Arguments ------------------------------------------------------------------------------- */

static bool slices(const struct rule_step *step)
{
    return step->kind == RULE_SLICE || step->kind == RULE_SPAN;
}

static tssa_dtype loaded_as(tssa_dtype dtype)
{
    return dtype == TSSA_BOOL ? TSSA_UINT8 : dtype;
}

/* Is the view one column of a value that has a few: a field of records? *rest is then the view of
 * the records, whose last axis it does not touch. */
static tssa_status *find_field(struct ir_graph *graph, const struct ir_type *type,
                               const struct rule *rule, uint32_t *field, uint32_t *fields,
                               const struct rule **rest)
{
    struct rule_step steps[RULE_MAX_STEPS];
    int64_t size, axis = type->rank - 1, at = -1;
    uint32_t n = 0;
    *rest = rule;
    if (!rule || type->rank < 1 || !dim_is_const(type->dims[axis], &size) || size < 2 ||
        size > GIR_MAX_FIELDS)
        return NULL;
    for (uint32_t i = 0; i < rule->n_steps; i++) {
        const struct rule_step *step = &rule->steps[i];
        const struct rule_param *params = step->params;
        if (step->kind == RULE_SELECT && at < 0 && params[0].value == axis) {
            if (params[1].is_operand)
                return NULL;
            at = params[1].value < 0 ? params[1].value + size : params[1].value;
            if (at < 0 || at >= size)
                return NULL;
            continue;
        }
        if (step->kind == RULE_PERMUTE || (step->kind == RULE_UNSQUEEZE && at < 0) ||
            (slices(step) && params[0].value == axis))
            return NULL;
        if (step->kind == RULE_SELECT)
            axis--;
        else if (!slices(step))
            axis += step->kind == RULE_SQUEEZE ? -(int64_t)step->n_params : step->n_params;
        if (axis < 0)
            return NULL;
        steps[n++] = *step;
    }
    const struct rule *records = n ? rule_create(graph, n, steps) : NULL;
    if (n)
        TRY_ALLOC(records);
    const struct gir_layout layout = gir_view_layout(type, records);
    int last = layout.rank - 2;
    while (last >= 0 && layout.one[last])
        last--;
    if (at < 0 || (last >= 0 && layout.apart[last] != size))
        return NULL;
    *field = (uint32_t)at;
    *fields = (uint32_t)size;
    *rest = records;
    return NULL;
}

/* The argument that is this part of an operand or result, which has `fields`; made where there is
 * none. */
static uint32_t find_arg(struct mapper *m, const struct ir_value *value, uint32_t index,
                         bool is_result, uint32_t fields, const struct gir_view *view, int lookup,
                         uint64_t indices)
{
    struct gir_layout layout = gir_view_layout(value->type, view->rule);
    const int rank = layout.rank - (fields > 1), first = m->part->space.rank - rank;
    struct gir_map map = {.index = index,
                          .rank = value->type->rank,
                          .lookup = lookup,
                          .indices = indices,
                          .rule = view->rule,
                          .op = view->chosen};
    uint32_t side_by_side = 0;
    if (first < 0)
        return mapper_refuse(m, "how shapes are broadcast is not known");
    if (lookup >= 0)
        layout.one[lookup - first] = true;
    for (int i = 0; i < rank; i++) {
        const uint32_t bit = 1u << (first + i);
        if (!layout.one[i] && !(view->ones & bit) && m->part->space.dims[first + i] != 1)
            map.axes |= bit;
        if (layout.apart[i] == fields)
            side_by_side |= bit;
    }
    for (uint32_t k = 0; k < m->n_args; k++) {
        const struct gir_map *other = &m->part->maps[k];
        if (m->args[k].is_result == is_result && other->index == index && other->axes == map.axes &&
            m->args[k].fields == fields && other->lookup == map.lookup &&
            other->indices == map.indices &&
            (other->rule == map.rule ||
             (other->rule && map.rule && rule_equal(other->rule, map.rule))))
            return k;
    }
    if (m->n_args == GIR_MAX_ARGS)
        return mapper_refuse(m, "it has more arguments than kernels may have");
    if (!dtype_in(T_FLOAT | T_INT | T_BOOL, value->type->dtype))
        return mapper_refuse(m, "kernels have no such elements");
    m->part->maps[m->n_args] = map;
    memcpy(&m->apart[m->n_args][first], layout.apart, (size_t)rank * sizeof *layout.apart);
    m->side_by_side[m->n_args] = side_by_side;
    m->args[m->n_args] = (struct gir_arg){.dtype = (uint8_t)value->type->dtype,
                                          .is_result = is_result,
                                          .fields = (uint8_t)fields,
                                          .is_looked_up = lookup >= 0};
    return m->n_args++;
}

static const struct ir_value *find_value(const struct mapper *m, uint32_t id)
{
    for (uint32_t i = 0; i < m->body->n_params; i++)
        if (m->body->params[i]->id == id)
            return m->body->params[i];
    for (const struct ir_op *op = m->body->first; op; op = op->next)
        for (uint32_t i = 0; i < op->n_results; i++)
            if (op->results[i].id == id)
                return &op->results[i];
    return NULL;
}

/* Are all elements of the part computed, so that the kernel itself can look whether there are the
 * rows that it looks up? */
static bool computes_all(const struct mapper *m)
{
    for (const struct ir_op *op = m->body->first; op; op = op->next)
        if (ir_op_is(op, IR_OP_assign) || ir_fuse_keeps(op))
            return false;
    return !m->loop;
}

/* Where there are no elements along another axis, nothing looks at numbers that nobody else has. */
static bool is_never_empty(const struct mapper *m, int axis)
{
    for (int i = 0; i < m->part->space.rank; i++)
        if (i != axis && m->part->space.dims[i] < 1)
            return false;
    return true;
}

/* The numbers of rows, which lie along this axis of the part. Those that are not computed are
 * there before, and who calls the kernel may look at them. */
static uint32_t load_indices(struct mapper *m, uint32_t id, int axis)
{
    struct rule_param params[TSSA_MAX_RANK];
    const struct ir_value *value = find_value(m, id);
    const uint32_t n = (uint32_t)(m->part->space.rank - 1 - axis);
    struct gir_view view = {0};
    if (!value || value->type->kind != TYPE_TENSOR || value->type->rank != 1)
        return mapper_refuse(m, "what it looks up is not told before");
    for (uint32_t i = 0; i < n; i++)
        params[i] = rule_constant(1 + i);
    const struct rule_step step = {RULE_UNSQUEEZE, n, params};
    if (n) {
        view.rule = rule_create(m->body->graph, 1, &step);
        if (!view.rule)
            return mapper_check(m, status_out_of_memory(), true);
    }
    return mapper_evaluate(m, value, view);
}

/* Are they computed by the kernel? */
static bool is_computed(const struct mapper *m, uint32_t indices)
{
    return m->maker.codes[indices].op != GIR_LOAD;
}

static uint32_t look_up(struct mapper *m, const struct ir_value *param, struct gir_view view,
                        const struct gir_lookup *lookup)
{
    view.rule = lookup->rest;
    const int rank = gir_view_layout(param->type, view.rule).rank,
              axis = m->part->space.rank - rank + (int)lookup->axis;
    if (axis < 0)
        return mapper_refuse(m, "how shapes are broadcast is not known");
    if (m->part->space.column >= 0)
        return mapper_refuse(m, "what it looks up is reduced");
    const uint32_t from = load_indices(m, lookup->indices, axis);
    if (m->maker.why)
        return 0;
    const bool computed = is_computed(m, from), checked = computes_all(m);
    if (computed && (!checked || !view.chosen))
        return mapper_refuse(m, "what it looks up is computed in it");
    if (computed && !is_never_empty(m, axis))
        return mapper_refuse(m, "what it looks up by computed numbers may have no elements");
    const uint64_t indices = computed ? GIR_COMPUTED | from : m->maker.codes[from].bits;
    const uint32_t number = gir_make_as(&m->maker, from, TSSA_INT64);
    const uint32_t arg = find_arg(m, param, param->index, false, 1, &view, axis, indices);
    if (m->maker.why)
        return 0;
    m->checks = checked;
    return gir_make(&m->maker, (struct gir_code){.op = GIR_LOOKUP,
                                                 .type = (uint8_t)loaded_as(param->type->dtype),
                                                 .operands = {number},
                                                 .bits = gir_bits(arg, 0)});
}

uint32_t mapper_load(struct mapper *m, const struct ir_value *param, const struct gir_view *view)
{
    struct gir_view whole = *view;
    struct gir_lookup lookup;
    uint32_t field = 0, fields = 1;
    bool good;
    if (param->type->kind != TYPE_TENSOR || param->type->rank < 0)
        return mapper_refuse(m, "the shape of what it reads is not known");
    tssa_status *status = gir_view_lookup(m->body->graph, view->rule, &lookup, &good);
    if (!mapper_check(m, status, good))
        return 0;
    if (lookup.axis >= 0)
        return look_up(m, param, *view, &lookup);
    if (!mapper_check(
            m, find_field(m->body->graph, param->type, view->rule, &field, &fields, &whole.rule),
            true))
        return 0;
    const uint32_t arg = find_arg(m, param, param->index, false, fields, &whole, -1, 0);
    return gir_make(&m->maker, (struct gir_code){.op = GIR_LOAD,
                                                 .type = (uint8_t)loaded_as(param->type->dtype),
                                                 .bits = gir_bits(arg, field)});
}

/* ---- Values ---------------------------------------------------------------------------------- */

uint32_t mapper_number(struct mapper *m, const struct ir_value *value)
{
    const struct tensor *tensor = ir_value_constant(value);
    if (!tensor || tensor_count(tensor) != 1 || !dtype_in(T_FLOAT | T_INT | T_BOOL, tensor->dtype))
        return mapper_refuse(m, "it holds a constant that is no number");
    struct gir_code code = {.op = GIR_CONSTANT, .type = (uint8_t)loaded_as(tensor->dtype)};
    memcpy(&code.bits, tensor->data, dtype_info(tensor->dtype)->size);
    return gir_make(&m->maker, code);
}

static uint32_t element_wise(struct mapper *m, const struct ir_op *op, const struct gir_view *view)
{
    const struct ir_type *type = op->results[0].type;
    uint32_t operands[GIR_MAX_ARGS];
    if (op->n_operands > GIR_MAX_ARGS || op->n_results != 1 || type->kind != TYPE_TENSOR ||
        type->rank < 0)
        return mapper_refuse(m, "it has more arguments than kernels may have");
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const struct ir_value *operand = ir_operand(op, i);
        struct gir_view own = *view;
        tssa_status *status = NULL;
        bool good = true;
        operands[i] = GIR_NONE;
        if (!operand || !ir_fuse_reads(op, i))
            continue;
        if (!ir_value_constant(operand))
            status = gir_view_of_operand(m->body->graph, type->rank, type->dims, operand->type,
                                         m->part->space.rank, &own, &good);
        if (!mapper_check(m, status, good))
            return 0;
        operands[i] = mapper_evaluate(m, operand, own);
    }
    return m->maker.why ? 0 : gir_make_op(&m->maker, op, operands);
}

static uint32_t access(struct mapper *m, const struct ir_op *op, struct gir_view view)
{
    bool good;
    const struct ir_type *type = ir_operand(op, 0)->type, *result = op->results[0].type;
    if (type->kind != TYPE_TENSOR || type->rank < 0 || result->kind != TYPE_TENSOR ||
        result->rank < 0 || gir_view_refuses(op))
        return mapper_refuse(m, "what it moves does not lie in steps");
    if (m->loop)
        return mapper_iteration_access(m, op, &view);
    tssa_status *status = gir_view_through(op, m->part->space.rank, &view, &good);
    return mapper_check(m, status, good) ? mapper_evaluate(m, ir_operand(op, 0), view) : 0;
}

/* ---- Assigns --------------------------------------------------------------------------------- */

/* The source of an assign, of which the view sees the region. */
static uint32_t source(struct mapper *m, const struct ir_op *op, int n_dims,
                       const struct dim *const *dims, struct gir_view view)
{
    const struct ir_value *value = ir_operand(op, 1);
    bool good = true;
    if (ir_value_constant(value))
        return mapper_number(m, value);
    tssa_status *status = gir_view_of_operand(m->body->graph, n_dims, dims, value->type,
                                              m->part->space.rank, &view, &good);
    return mapper_check(m, status, good) ? mapper_evaluate(m, value, view) : 0;
}

/* Where a column lies in what a step writes along its axis, of `size` columns: its number there, or
 * -1: it is not written. False: a run tells. */
static bool find_column(const struct rule_step *step, int64_t size, int64_t column, int64_t *at)
{
    for (uint32_t i = 0; i < step->n_params; i++)
        if (step->params[i].is_operand)
            return false;
    int64_t first = step->params[1].value;
    *at = -1;
    if (step->kind == RULE_SELECT) {
        first += first < 0 ? size : 0;
        *at = first == column ? 0 : -1;
        return first >= 0 && first < size;
    }
    int64_t end = step->params[2].value;
    const int64_t by = step->params[3].value;
    if (step->kind != RULE_SLICE || by < 1)
        return false;
    first = first < -size ? 0 : first < 0 ? first + size : first;
    end = end < -size ? 0 : end < 0 ? end + size : end > size ? size : end;
    if (column >= first && column < end && (column - first) % by == 0)
        *at = (column - first) / by;
    return true;
}

/*
 * The rule with another first step, a choice of this column; no first step at all where it is -1.
 */
static tssa_status *replace_first(struct ir_graph *graph, const struct rule *rule, int64_t column,
                                  const struct rule **out)
{
    const uint32_t gone = column < 0;
    struct rule_step steps[RULE_MAX_STEPS];
    const struct rule_param params[] = {rule->steps[0].params[0], rule_constant(column)};
    *out = NULL;
    if (rule->n_steps == gone)
        return NULL;
    memcpy(steps, rule->steps + gone, (rule->n_steps - gone) * sizeof *steps);
    if (!gone)
        steps[0].params = params;
    *out = rule_create(graph, rule->n_steps - gone, steps);
    TRY_ALLOC(*out);
    return NULL;
}

/* A choice of a column behind a squeeze, before it: of elements of [1, N, 4] instead of [N, 4]. */
static tssa_status *choose_first(struct ir_graph *graph, const struct rule **rule)
{
    struct rule_step steps[RULE_MAX_STEPS];
    struct rule_param axes[TSSA_MAX_RANK], chosen[2];
    const struct rule_step *old = *rule ? (*rule)->steps : NULL;
    if (!old || (*rule)->n_steps < 2 || old[0].kind != RULE_SQUEEZE || old[1].kind != RULE_SELECT)
        return NULL;
    chosen[0] = old[1].params[0];
    chosen[1] = old[1].params[1];
    for (uint32_t i = 0; i < old[0].n_params; i++)
        chosen[0].value += old[0].params[i].value <= chosen[0].value;
    for (uint32_t i = 0; i < old[0].n_params; i++)
        axes[i] =
            rule_constant(old[0].params[i].value - (old[0].params[i].value > chosen[0].value));
    memcpy(steps, old, (*rule)->n_steps * sizeof *steps);
    steps[0] = (struct rule_step){RULE_SELECT, 2, chosen};
    steps[1] = (struct rule_step){RULE_SQUEEZE, old[0].n_params, axes};
    *rule = rule_create(graph, (*rule)->n_steps, steps);
    TRY_ALLOC(*rule);
    return NULL;
}

/* Of what an assign computes, a view that begins with the choice of a column. */
static uint32_t assigned_column(struct mapper *m, const struct ir_op *op, struct gir_view view)
{
    const struct ir_type *type = op->results[0].type;
    const struct rule *rule;
    const struct dim *dims[TSSA_MAX_RANK];
    int64_t size, at;
    int n = 0;
    if (!mapper_check(m, choose_first(m->body->graph, &view.rule), true) ||
        !mapper_check(m, gir_view_rule(op, &rule), true))
        return 0;
    const struct rule_step *seen = view.rule && view.rule->n_steps ? view.rule->steps : NULL,
                           *step = rule && rule->n_steps == 1 ? rule->steps : NULL;
    if (!seen || !step || seen->kind != RULE_SELECT || seen->params[1].is_operand ||
        (step->kind != RULE_SELECT && step->kind != RULE_SLICE) ||
        step->params[0].value != seen->params[0].value ||
        !dim_is_const(type->dims[seen->params[0].value], &size) || seen->params[1].value < 0 ||
        !find_column(step, size, seen->params[1].value, &at))
        return mapper_refuse(m, "which elements an assign writes is not known in advance");
    if (at < 0)
        return mapper_evaluate(m, ir_operand(op, 0), view);
    for (int i = 0; i < type->rank; i++)
        if (i != seen->params[0].value)
            dims[n++] = type->dims[i];
        else if (step->kind == RULE_SLICE)
            dims[n++] = NULL; /* no dim of a source, so that one of 1 is broadcast */
    const struct ir_type *own = ir_operand(op, 1)->type;
    const int axis = (int)seen->params[0].value, missing = n - own->rank;
    if (step->kind == RULE_SLICE && own->kind == TYPE_TENSOR && own->rank >= 0 && axis >= missing &&
        !dim_is(own->dims[axis - missing], 1))
        dims[axis] = own->dims[axis - missing];
    tssa_status *status =
        replace_first(m->body->graph, view.rule, step->kind == RULE_SELECT ? -1 : at, &view.rule);
    return mapper_check(m, status, true) ? source(m, op, n, dims, view) : 0;
}

static bool is_before(const struct mapper *m, const struct ir_op *a, const struct ir_op *b)
{
    return m->order[a->results[0].id - m->first_value] <
           m->order[b->results[0].id - m->first_value];
}

/* Without unrolling: what parts that come later write, they write over this one. */
static uint32_t assigned(struct mapper *m, const struct ir_op *op, const struct gir_view *view)
{
    const struct ir_type *type = op->results[0].type;
    const struct dim *dims[TSSA_MAX_RANK];
    int rank;
    if (!gir_view_equal(view, &m->root))
        return mapper_refuse(m, "an access reads what an assign may have written");
    bool same = type->rank == m->like->rank;
    for (int i = 0; same && i < type->rank; i++)
        same = type->dims[i] == m->like->dims[i];
    if (!same || (m->active && is_before(m, op, m->active)))
        return mapper_refuse(m, "assigns are not made one after the other");
    if (op != m->active)
        return mapper_evaluate(m, ir_operand(op, 0), *view);
    tssa_status *status =
        rule_region_shape((struct ir_op *)op, type->rank, type->dims, &rank, dims);
    const struct gir_view whole = {0};
    return mapper_check(m, status, rank >= 0) ? source(m, op, rank, dims, whole) : 0;
}

static uint32_t compute(struct mapper *m, const struct ir_value *value, struct gir_view view)
{
    if (!value->op)
        return m->loop ? mapper_iteration_param(m, value, &view) : mapper_load(m, value, &view);
    if (ir_op_is(value->op, IR_OP_Constant))
        return mapper_number(m, value);
    if (ir_op_is(value->op, IR_OP_access))
        return access(m, value->op, view);
    if (m->loop && value->op->info->cls != IR_CLASS_ELEMENTWISE)
        return mapper_refuse(m, "an iteration does not only compute elements");
    if (ir_op_is(value->op, IR_OP_Concat))
        return mapper_concat(m, value->op, view);
    if (ir_op_is(value->op, IR_OP_Trilu))
        return mapper_triangle(m, value->op, &view);
    if (ir_op_is(value->op, IR_OP_Range))
        return mapper_range(m, value->op, &view);
    if (value->op->info->reduction || ir_column_axis(value->op) >= 0)
        return mapper_reduce(m, value->op, &view);
    if (ir_scan_axis(value->op) >= 0)
        return mapper_scan(m, value->op, &view);
    if (!ir_op_is(value->op, IR_OP_assign))
        return element_wise(m, value->op, &view);
    return m->unrolls ? assigned_column(m, value->op, view) : assigned(m, value->op, &view);
}

uint32_t mapper_evaluate(struct mapper *m, const struct ir_value *value, struct gir_view view)
{
    if (m->maker.why)
        return 0;
    uint32_t *head = &m->heads[value->id - m->first_value];
    for (uint32_t at = *head; at; at = m->seen.data[at - 1].next)
        if (gir_view_equal(&m->seen.data[at - 1].view, &view))
            return m->seen.data[at - 1].step;
    const uint32_t step = compute(m, value, view);
    if (m->maker.why)
        return 0;
    const struct mapper_seen seen = {.next = *head, .step = step, .view = view};
    if (!vec_push(&m->seen, seen))
        mapper_check(m, status_out_of_memory(), true);
    *head = (uint32_t)m->seen.count;
    return step;
}

/* ---- Results --------------------------------------------------------------------------------- */

void mapper_store(struct mapper *m, const struct ir_value *value, uint32_t index,
                  const struct rule *rule, uint32_t field, uint32_t fields, uint32_t step)
{
    const struct gir_view view = {.rule = rule};
    const uint32_t arg = find_arg(m, value, index, true, fields, &view, -1, 0);
    const tssa_dtype type = loaded_as(value->type->dtype);
    step = gir_make_as(&m->maker, step, type);
    gir_make(&m->maker, (struct gir_code){.op = GIR_STORE,
                                          .type = (uint8_t)type,
                                          .operands = {step},
                                          .bits = gir_bits(arg, field)});
}

void mapper_keep(struct mapper *m, const struct ir_value *value, uint32_t index, uint32_t field,
                 uint32_t fields, uint32_t step, uint32_t where)
{
    const struct rule_param first[] = {rule_constant(0), rule_constant(0)};
    const struct rule_step select = {RULE_SELECT, 2, first};
    struct gir_view view = {0};
    if (value->type->rank > 1 && fields == 1) { /* numbers of one axis */
        view.rule = rule_create(m->body->graph, 1, &select);
        if (!mapper_check(m, view.rule ? NULL : status_out_of_memory(), true))
            return;
    }
    const uint32_t arg = find_arg(m, value, index, true, fields, &view, -1, 0);
    const tssa_dtype type = loaded_as(value->type->dtype);
    step = gir_make_as(&m->maker, step, type);
    if (m->maker.why)
        return;
    m->args[arg].is_kept = true;
    gir_make(&m->maker, (struct gir_code){.op = GIR_KEEP,
                                          .type = (uint8_t)type,
                                          .operands = {step, where},
                                          .bits = gir_bits(arg, field)});
}

uint32_t mapper_store_mask(struct mapper *m, uint32_t where)
{
    const struct gir_map map = {.index = GIR_MASK, .rank = 1, .axes = 1, .lookup = -1};
    const uint32_t step = gir_make_as(&m->maker, where, TSSA_UINT8);
    for (uint32_t i = 0; i < m->maker.n; i++) /* it may be a result of the op, too */
        if (m->maker.codes[i].op == GIR_STORE && m->maker.codes[i].operands[0] == step &&
            m->args[gir_arg_of(&m->maker.codes[i])].dtype == TSSA_BOOL)
            return gir_arg_of(&m->maker.codes[i]);
    if (m->n_args == GIR_MAX_ARGS)
        return mapper_refuse(m, "it has more arguments than kernels may have");
    m->part->maps[m->n_args] = map;
    m->side_by_side[m->n_args] = 1;
    m->args[m->n_args] = (struct gir_arg){.dtype = TSSA_BOOL, .is_result = true, .fields = 1};
    gir_make(&m->maker, (struct gir_code){.op = GIR_STORE,
                                          .type = TSSA_UINT8,
                                          .operands = {step},
                                          .bits = gir_bits(m->n_args, 0)});
    return m->n_args++;
}
