/* SPDX-License-Identifier: Apache-2.0 */
#include "gir/planes.h"

#include <string.h>

#include "gir/gir.h"

/* ---- Pieces ---------------------------------------------------------------------------------- */

static bool add_subaxis(struct gir_planes *p, struct gir_subaxis subaxis)
{
    if (subaxis.size == 1)
        return true;
    if (p->n_subaxes == TSSA_MAX_RANK)
        return false;
    p->subaxes[p->n_subaxes++] = subaxis;
    return true;
}

static void begin(struct gir_planes *p, int rank, const int64_t *dims)
{
    int64_t step = 1;
    *p = (struct gir_planes){.operand_rank = rank, .rank = rank};
    for (int i = 0; i < rank; i++) {
        p->operand_dims[i] = p->dims[i] = dims[i];
        step *= dims[i];
    }
    for (int i = 0; i < rank; i++) {
        step /= dims[i];
        add_subaxis(p, (struct gir_subaxis){i, dims[i], step});
    }
}

/* The only subaxis of an axis; NULL: it has none, or several. */
static struct gir_subaxis *subaxis_of(struct gir_planes *p, int64_t axis)
{
    struct gir_subaxis *found = NULL;
    int n = 0;
    for (int i = 0; i < p->n_subaxes; i++)
        if (p->subaxes[i].axis == axis && n++ == 0)
            found = &p->subaxes[i];
    return n == 1 ? found : NULL;
}

static void drop_subaxis(struct gir_planes *p, const struct gir_subaxis *subaxis)
{
    const int at = (int)(subaxis - p->subaxes);
    p->n_subaxes--;
    memmove(p->subaxes + at, p->subaxes + at + 1, (size_t)(p->n_subaxes - at) * sizeof *p->subaxes);
}

/* Axes behind it, and from it on, are `by` further on. */
static void move_axes(struct gir_planes *p, int64_t from, int by)
{
    for (int i = 0; i < p->n_subaxes; i++)
        if (p->subaxes[i].axis >= from)
            p->subaxes[i].axis += by;
}

/* ---- Steps of rules -------------------------------------------------------------------------- */

static bool lay_select(struct gir_planes *p, const struct rule_step *step)
{
    const int64_t axis = step->params[0].value, size = p->dims[axis];
    const int64_t at =
        step->params[1].value < 0 ? step->params[1].value + size : step->params[1].value;
    struct gir_subaxis *subaxis = subaxis_of(p, axis);
    if (at < 0 || at >= size || (size > 1 && !subaxis))
        return false;
    if (subaxis) {
        p->offset += at * subaxis->step;
        drop_subaxis(p, subaxis);
    }
    p->rank--;
    memmove(p->dims + axis, p->dims + axis + 1, (size_t)(p->rank - axis) * sizeof *p->dims);
    move_axes(p, axis + 1, -1);
    return true;
}

static bool lay_permute(struct gir_planes *p, const struct rule_step *step)
{
    const struct gir_planes old = *p;
    p->n_subaxes = 0;
    for (int i = 0; i < p->rank; i++) {
        const int64_t axis = step->params[i].value;
        p->dims[i] = old.dims[axis];
        for (int k = 0; k < old.n_subaxes; k++)
            if (old.subaxes[k].axis == axis)
                add_subaxis(p, (struct gir_subaxis){i, old.subaxes[k].size, old.subaxes[k].step});
    }
    return true;
}

static bool lay_squeeze(struct gir_planes *p, const struct rule_step *step)
{
    for (uint32_t i = step->n_params; i-- > 0;) {
        const int64_t axis = step->params[i].value;
        if (p->dims[axis] != 1)
            return false;
        p->rank--;
        memmove(p->dims + axis, p->dims + axis + 1, (size_t)(p->rank - axis) * sizeof *p->dims);
        move_axes(p, axis + 1, -1);
    }
    return true;
}

static bool lay_unsqueeze(struct gir_planes *p, const struct rule_step *step)
{
    for (uint32_t i = 0; i < step->n_params; i++) {
        const int64_t axis = step->params[i].value;
        if (p->rank == TSSA_MAX_RANK || axis > p->rank)
            return false;
        memmove(p->dims + axis + 1, p->dims + axis, (size_t)(p->rank - axis) * sizeof *p->dims);
        p->dims[axis] = 1;
        p->rank++;
        move_axes(p, axis, 1);
    }
    return true;
}

/* The dims that a reshape asks for. False: they are not those of as many elements. */
static bool find_dims(const struct gir_planes *p, const struct rule_step *step, int64_t *dims)
{
    int64_t count = 1, given = 1;
    int rest = -1;
    for (int i = 0; i < p->rank; i++)
        count *= p->dims[i];
    for (uint32_t i = 0; i < step->n_params; i++) {
        dims[i] = step->params[i].value;
        if (dims[i] == -1 && rest < 0)
            rest = (int)i;
        else if (dims[i] < 1 || __builtin_mul_overflow(given, dims[i], &given))
            return false;
    }
    if (rest >= 0) {
        dims[rest] = count / given;
        given *= dims[rest];
    }
    return given == count;
}

/* Pieces are dealt out, and cut, to the axes from the first one on. */
static bool lay_reshape(struct gir_planes *p, const struct rule_step *step)
{
    const struct gir_planes old = *p;
    struct gir_subaxis left = {0, 1, 0};
    int64_t dims[TSSA_MAX_RANK];
    int next = 0;
    if (!find_dims(p, step, dims))
        return false;
    p->n_subaxes = 0;
    p->rank = (int)step->n_params;
    for (int i = 0; i < p->rank; i++) {
        p->dims[i] = dims[i];
        for (int64_t wanted = dims[i]; wanted > 1;) {
            if (left.size == 1)
                left = old.subaxes[next++];
            const int64_t size = left.size < wanted ? left.size : wanted;
            if (left.size % size || wanted % size)
                return false;
            left.size /= size;
            if (!add_subaxis(p, (struct gir_subaxis){i, size, left.step * left.size}))
                return false;
            wanted /= size;
        }
    }
    return true;
}

static bool lay_step(struct gir_planes *p, const struct rule_step *step)
{
    for (uint32_t i = 0; i < step->n_params; i++)
        if (step->params[i].is_operand)
            return false;
    switch (step->kind) {
    case RULE_SELECT:
        return lay_select(p, step);
    case RULE_PERMUTE:
        return lay_permute(p, step);
    case RULE_SQUEEZE:
        return lay_squeeze(p, step);
    case RULE_UNSQUEEZE:
        return lay_unsqueeze(p, step);
    case RULE_RESHAPE:
        return lay_reshape(p, step);
    default:
        return false;
    }
}

bool gir_lay_planes(const struct rule *rule, int rank, const int64_t *dims,
                    struct gir_planes *planes)
{
    begin(planes, rank, dims);
    for (uint32_t i = 0; i < rule->n_steps; i++)
        if (!lay_step(planes, &rule->steps[i]))
            return false;
    return true;
}

/* ---- Accesses -------------------------------------------------------------------------------- */

static bool find_sizes(const struct ir_type *type, int64_t *dims)
{
    if (type->kind != TYPE_TENSOR || type->rank < 1)
        return false;
    int64_t count = 1;
    for (int i = 0; i < type->rank; i++)
        if (!dim_is_const(type->dims[i], &dims[i]) || dims[i] < 1 ||
            __builtin_mul_overflow(count, dims[i], &count))
            return false;
    return true;
}

int64_t gir_rows_of_planes(const struct gir_planes *planes)
{
    int64_t rows = 1;
    for (int i = planes->n_subaxes; i-- > 0;)
        if (planes->subaxes[i].axis < planes->rank - 1 && planes->subaxes[i].step == rows)
            rows *= planes->subaxes[i].size;
    return rows;
}

const char *gir_planes_refuses(const struct ir_op *op, struct gir_planes *planes)
{
    const struct rule *rule = ir_op_is(op, IR_OP_access) ? rule_of(op) : NULL;
    int64_t dims[TSSA_MAX_RANK];
    if (!rule || rule->n_operands)
        return "it has no rule of constants";
    if (!dtype_in(T_FLOAT | T_INT | T_BOOL, ir_operand(op, 0)->type->dtype))
        return "kernels have no such elements";
    if (!find_sizes(ir_operand(op, 0)->type, dims))
        return "the shape of what it permutes is not the same in every run";
    if (!gir_lay_planes(rule, ir_operand(op, 0)->type->rank, dims, planes))
        return "what it moves does not lie in steps";
    const struct gir_subaxis *row = subaxis_of(planes, planes->rank - 1);
    if (!row || row->step == 1 || gir_rows_of_planes(planes) < 2)
        return "rows of what it permutes are not side by side";
    return row->size > GIR_MAX_PLANES ? "its rows are too long to be laid side by side" : NULL;
}
