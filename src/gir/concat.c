/* SPDX-License-Identifier: Apache-2.0 */
/* Of a Concat, the piece that a view sees; see mapper.h. */
#include <string.h>

#include "gir/mapper.h"
#include "ir/infer.h"
#include "ir/rule_axes.h"

/* ---- Boxes ----------------------------------------------------------------------------------- */

/* The elements of a value that a view sees lie between these bounds. */
struct box {
    int64_t begin[TSSA_MAX_RANK],
        end[TSSA_MAX_RANK];       /* along an axis of the value; end -1: not known */
    uint32_t step[TSSA_MAX_RANK]; /* 1 + the number of the step that says so; 0: all of the axis */
    bool is_plain; /* element by element along each axis, with no axis more or less */
};

/* The step narrows the box. False: a run tells how, or it has been narrowed there. */
static bool narrow(struct box *box, const struct rule_step *step, uint32_t number, int axis)
{
    if (axis < 0 || box->step[axis] || box->end[axis] < 0)
        return false;
    for (uint32_t i = 0; i < step->n_params; i++)
        if (step->params[i].is_operand)
            return false;
    const int64_t size = box->end[axis];
    int64_t first = step->params[1].value, by = 1;
    first += first < 0 ? size : 0;
    int64_t end = first + 1;
    if (step->kind == RULE_SLICE) {
        end = step->params[2].value;
        by = step->params[3].value;
        first = first < 0 ? 0 : first;
        end = end < -size ? 0 : end < 0 ? end + size : end > size ? size : end;
    }
    if (by < 1 || first < 0 || first >= end || end > size)
        return false;
    box->is_plain &= step->kind == RULE_SLICE && by == 1;
    box->begin[axis] = first;
    box->end[axis] = first + (end - 1 - first) / by * by + 1;
    box->step[axis] = number + 1;
    return true;
}

static bool follow(struct box *box, const struct rule_step *step, uint32_t number,
                   struct rule_axes *axes)
{
    const struct rule_axes old = *axes;
    const int64_t axis = step->n_params ? step->params[0].value : 0;
    switch (step->kind) {
    case RULE_SLICE:
        return narrow(box, step, number, axes->of[axis]);
    case RULE_SELECT:
        rule_axes_remove(axes, axis);
        return narrow(box, step, number, old.of[axis]);
    default:
        box->is_plain = false;
        return rule_axes_rearrange(axes, step);
    }
}

/* What cannot be followed only narrows it further. */
static struct box box_of(const struct ir_type *type, const struct rule *rule)
{
    struct box box = {.is_plain = true};
    struct rule_axes axes;
    rule_axes_begin(&axes, type->rank);
    for (int i = 0; i < type->rank; i++)
        if (!dim_is_const(type->dims[i], &box.end[i]))
            box.end[i] = -1;
    for (uint32_t i = 0; rule && i < rule->n_steps; i++)
        if (!follow(&box, &rule->steps[i], i, &axes)) {
            box.is_plain = false;
            break;
        }
    return box;
}

/* ---- Pieces ---------------------------------------------------------------------------------- */

/* The same view, of elements [begin, end) of the axis alone, between which the box lies. */
static tssa_status *enter(struct ir_graph *graph, const struct box *box, int axis, int64_t begin,
                          int64_t end, const struct rule **rule)
{
    struct rule_step steps[RULE_MAX_STEPS];
    const uint32_t number = box->step[axis] - 1;
    if (!box->step[axis])
        return NULL;
    uint32_t n = (*rule)->n_steps;
    memcpy(steps, (*rule)->steps, n * sizeof *steps);
    const struct rule_param *old = steps[number].params;
    const int64_t first = box->begin[axis] - begin, last = box->end[axis] - begin;
    const bool slices = steps[number].kind == RULE_SLICE;
    const struct rule_param params[] = {old[0], rule_constant(first), rule_constant(last),
                                        slices ? old[3] : rule_constant(1)};
    if (slices && first == 0 && last == end - begin && params[3].value == 1)
        memmove(steps + number, steps + number + 1, (--n - number) * sizeof *steps);
    else
        steps[number].params = params;
    *rule = n ? rule_create(graph, n, steps) : NULL;
    if (n)
        TRY_ALLOC(*rule);
    return NULL;
}

/* The part is made again as two, of which the second begins where the view comes to element `at` of
 * the axis. Of columns there is one part: their space has an axis more than what is cut. */
static uint32_t cut(struct mapper *m, const struct ir_type *type, const struct gir_view *view,
                    const struct box *box, int axis, int64_t at)
{
    const int own = m->part->space.rank - type->rank + axis;
    int64_t size;
    if (m->maker.why || !box->is_plain || m->unrolls || m->active || own < 0 ||
        m->part->space.column >= 0 || own >= m->like->rank || (view->ones >> own & 1) ||
        !dim_is_const(m->like->dims[own], &size))
        return mapper_refuse(m, "pieces of a Concat lie across what is computed of them");
    const int64_t begin = m->region.cut >> own & 1 ? m->region.begin[own] : 0,
                  end = m->region.cut >> own & 1 ? m->region.end[own] : size;
    m->cut_axis = own;
    m->cut_at = begin + at - box->begin[axis];
    m->is_cut = m->cut_at > begin && m->cut_at < end;
    return mapper_refuse(m, "pieces of a Concat lie across what is computed of them");
}

/* Has the operand the dims of what is put together, but for the axis? */
static bool is_alike(const struct ir_type *type, const struct ir_type *operand, int axis)
{
    for (int i = 0; i < type->rank; i++)
        if (i != axis && type->dims[i] != operand->dims[i])
            return false;
    return true;
}

static uint32_t piece(struct mapper *m, const struct ir_op *op, int axis, uint32_t operand,
                      struct gir_view view)
{
    const struct ir_value *value = ir_operand(op, operand);
    if (!is_alike(op->results[0].type, value->type, axis))
        return mapper_refuse(m, "how shapes are broadcast is not known");
    return mapper_evaluate(m, value, view);
}

/* NULL, or why its pieces are not known. */
static const char *find_axis(const struct ir_op *op, int *axis)
{
    const struct ir_type *type = op->results[0].type;
    int64_t size;
    if (type->kind != TYPE_TENSOR || !infer_find_axis(ir_op_axis(op), type->rank, axis))
        return "the shape of what it computes is not known";
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const struct ir_type *own = ir_operand(op, i)->type;
        if (own->kind != TYPE_TENSOR || own->rank != type->rank)
            return "the shape of what it reads is not known";
        if (!dim_is_const(own->dims[*axis], &size))
            return "where its pieces lie is told by a run";
    }
    return NULL;
}

const char *mapper_concat_refuses(const struct ir_op *op)
{
    int axis;
    return find_axis(op, &axis);
}

uint32_t mapper_concat(struct mapper *m, const struct ir_op *op, struct gir_view view)
{
    const struct ir_type *type = op->results[0].type;
    int64_t begin = 0, size = 0;
    int axis;
    const char *why = find_axis(op, &axis);
    if (why)
        return mapper_refuse(m, why);
    const struct box box = box_of(type, view.rule);
    for (uint32_t i = 0; i < op->n_operands; i++, begin += size) {
        (void)dim_is_const(ir_operand(op, i)->type->dims[axis], &size);
        if (box.begin[axis] >= begin + size || size == 0)
            continue;
        if (box.end[axis] > begin + size)
            return cut(m, type, &view, &box, axis, begin + size);
        return mapper_check(m, enter(m->body->graph, &box, axis, begin, begin + size, &view.rule),
                            true)
                   ? piece(m, op, axis, i, view)
                   : 0;
    }
    return mapper_refuse(m, "a Concat has no elements");
}

/* ---- Regions --------------------------------------------------------------------------------- */

tssa_status *mapper_region_rule(struct mapper *m, const struct mapper_region *region, int column,
                                const struct rule **rule)
{
    struct rule_step steps[TSSA_MAX_RANK + 1];
    struct rule_param params[TSSA_MAX_RANK + 1][4];
    const int rank = m->like->rank, last = column < 0 ? -1 : rank - 1;
    uint32_t n = 0;
    for (int i = 0; i < rank; i++) {
        if (i != last && !(region->cut >> i & 1))
            continue;
        params[n][0] = rule_constant(i);
        params[n][1] = rule_constant(i == last ? column : region->begin[i]);
        params[n][2] = rule_constant(region->end[i]);
        params[n][3] = rule_constant(1);
        steps[n] =
            (struct rule_step){i == last ? RULE_SELECT : RULE_SLICE, i == last ? 2 : 4, params[n]};
        n++;
    }
    *rule = n ? rule_create(m->body->graph, n, steps) : NULL;
    if (n)
        TRY_ALLOC(*rule);
    return NULL;
}
