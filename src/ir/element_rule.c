/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of accesses, and of ops that stand for one: the place goes back through the steps of the
 * rule. */
#include <string.h>

#include "ir/element_reader.h"
#include "ir/infer.h"
#include "ir/rule_draft.h"

/* A place in a region, on its way back through the steps of a rule. */
struct place {
    int rank;
    struct element at[TSSA_MAX_RANK + 1];
};

/* The steps of the op that makes the value asked for. */
struct path {
    struct reader *reader;
    const struct ir_op *op;
    const struct rule_step *steps;
    uint32_t n_steps;
    struct ir_value *const *operands; /* what params count; NULL: the op's own */
};

static bool insert_place(struct place *place, int64_t axis, const struct element *at)
{
    if (place->rank == TSSA_MAX_RANK || axis > place->rank)
        return false;
    memmove(place->at + axis + 1, place->at + axis,
            (size_t)(place->rank - axis) * sizeof *place->at);
    place->at[axis] = *at;
    place->rank++;
    return true;
}

static bool remove_place(struct place *place, int64_t axis, int count)
{
    if (axis + count > place->rank)
        return false;
    memmove(place->at + axis, place->at + axis + count,
            (size_t)(place->rank - axis - count) * sizeof *place->at);
    place->rank -= count;
    return true;
}

/* ---- Params ---------------------------------------------------------------------------------- */

static struct ir_value *param_value(const struct path *path, const struct rule_param *param)
{
    return path->operands ? path->operands[param->value] : rule_param_value(path->op, param);
}

/* An index is computed: it is not what an element is traced through. */
static bool read_index(const struct path *path, struct ir_value *value, const struct element *at,
                       struct element *out)
{
    bool traces = path->reader->traces;
    path->reader->traces = false;
    bool read = element_read_value(path->reader, value, at, out);
    path->reader->traces = traces;
    return read;
}

/* A param that is an index from the front: the number, or an element that is never negative. */
static bool read_param(const struct path *path, const struct rule_param *param, struct element *out)
{
    struct element at[TSSA_MAX_RANK];
    if (!param->is_operand)
        return param->value >= 0 && element_set(path->reader, param->value, out);
    struct ir_value *value = param_value(path, param);
    int rank = value && value->type->kind == TYPE_TENSOR ? value->type->rank : -1;
    for (int i = 0; i < rank; i++)
        if (!element_set(path->reader, 0, &at[i]))
            return false;
    return rank >= 0 && read_index(path, value, at, out) && element_is_index(path->reader, out);
}

/*
 * How long the axis is that step i is applied to; NULL where steps before it may have changed that.
 */
static const struct dim *axis_dim(const struct path *path, uint32_t i)
{
    int64_t axis = path->steps[i].params[0].value;
    for (uint32_t k = 0; k < i; k++)
        if (path->steps[k].kind != RULE_SLICE || path->steps[k].params[0].value == axis)
            return NULL;
    return axis < infer_rank(path->op, 0) ? infer_dim(path->op, 0, (int)axis) : NULL;
}

/* ---- Steps ----------------------------------------------------------------------------------- */

/* Where a slice that is not empty begins, of an axis that is `dim` long (NULL: not known). */
static bool slice_start(struct reader *reader, int64_t start, int64_t step, const struct dim *dim,
                        struct element *out)
{
    int64_t size;
    if (dim && dim_is_const(dim, &size)) {
        start = start < -size ? 0 : start < 0 ? start + size : start;
        return element_set(reader, step < 0 && start >= size ? size - 1 : start, out);
    }
    if (start >= 0 && step > 0)
        return element_set(reader, start, out);
    if (!dim || !(step < 0 && (start == -1 || start == INT64_MAX)))
        return false;
    struct element all = {.offset = dim}, one;
    return element_set(reader, -1, &one) && element_add(reader, &all, &one, out);
}

static bool undo_slice(const struct path *path, uint32_t i, struct place *place)
{
    const struct rule_param *params = path->steps[i].params;
    struct element start, rest;
    int64_t axis = params[0].value, step = params[3].value;
    bool fixed = !params[1].is_operand;
    if (params[3].is_operand || axis >= place->rank)
        return false;
    if (fixed && !slice_start(path->reader, params[1].value, step, axis_dim(path, i), &start))
        return false;
    /* From beyond the end, a step down would begin at the end. */
    if (!fixed && (step < 0 || !read_param(path, &params[1], &start)))
        return false;
    if (fixed && step == 1 && params[1].value < INT64_MAX && !params[2].is_operand &&
        params[2].value == params[1].value + 1) {
        place->at[axis] = start; /* of one element */
        return true;
    }
    const struct dim *by = dim_const(&path->reader->graph->dims, step);
    return element_made(path->reader, by) &&
           element_scale(path->reader, &place->at[axis], by, &rest) &&
           element_add(path->reader, &start, &rest, &place->at[axis]);
}

static bool undo_span(const struct path *path, uint32_t i, struct place *place)
{
    const struct rule_param *params = path->steps[i].params;
    struct element start;
    int64_t axis = params[0].value;
    return axis < place->rank && read_param(path, &params[1], &start) &&
           element_add(path->reader, &start, &place->at[axis], &place->at[axis]);
}

static bool undo_gather(const struct path *path, uint32_t i, struct place *place)
{
    const struct rule_step *step = &path->steps[i];
    struct ir_value *indices = param_value(path, &step->params[1]);
    int64_t axis = step->params[0].value, number, size;
    int rank = indices && indices->type->kind == TYPE_TENSOR ? indices->type->rank : -1;
    struct element index;
    if (rank < 0 || axis + rank > place->rank ||
        !read_index(path, indices, place->at + axis, &index))
        return false;
    const struct dim *dim = axis_dim(path, i);
    if (element_is_number(&index, &number) && number < 0 && dim && dim_is_const(dim, &size) &&
        !element_set(path->reader, number + size, &index))
        return false;
    return element_is_index(path->reader, &index) && remove_place(place, axis, rank) &&
           insert_place(place, axis, &index);
}

static bool undo_permute(const struct rule_step *step, struct place *place)
{
    struct place old = *place;
    for (uint32_t i = 0; i < step->n_params; i++)
        place->at[step->params[i].value] = old.at[i];
    return (int)step->n_params == place->rank;
}

static bool undo_step(const struct path *path, uint32_t i, struct place *place)
{
    const struct rule_step *step = &path->steps[i];
    struct element at;
    switch (step->kind) {
    case RULE_SELECT:
        return read_param(path, &step->params[1], &at) &&
               insert_place(place, step->params[0].value, &at);
    case RULE_SLICE:
        return undo_slice(path, i, place);
    case RULE_SPAN:
        return undo_span(path, i, place);
    case RULE_PERMUTE:
        return undo_permute(step, place);
    case RULE_GATHER:
        return undo_gather(path, i, place);
    case RULE_SQUEEZE:
        for (uint32_t k = 0; k < step->n_params; k++)
            if (!element_set(path->reader, 0, &at) ||
                !insert_place(place, step->params[k].value, &at))
                return false;
        return true;
    case RULE_UNSQUEEZE:
        for (uint32_t k = step->n_params; k-- > 0;)
            if (!remove_place(place, step->params[k].value, 1))
                return false;
        return true;
    default:
        return false;
    }
}

static bool read_path(const struct path *path, const struct ir_value *value,
                      const struct element *at, struct element *out)
{
    struct place place = {.rank = value->type->rank};
    memcpy(place.at, at, (size_t)place.rank * sizeof *at);
    for (uint32_t i = path->n_steps; i-- > 0;)
        if (!undo_step(path, i, &place))
            return false;
    return place.rank == infer_rank(path->op, 0) &&
           element_read_value(path->reader, ir_operand(path->op, 0), place.at, out);
}

/* ---- Accesses -------------------------------------------------------------------------------- */

/* A rule of one step whose shapes are those of operand and result. */
static element_read_fn *reader_of_shape(const struct rule *rule)
{
    if (rule->n_steps != 1)
        return NULL;
    switch (rule->steps[0].kind) {
    case RULE_RESHAPE:
        return element_read_reshape;
    case RULE_EXPAND:
        return element_read_same;
    case RULE_TILE:
        return element_read_tile;
    default:
        return NULL;
    }
}

bool element_read_access(struct reader *reader, const struct ir_value *value,
                         const struct element *at, struct element *out)
{
    const struct rule *rule = rule_of(value->op);
    element_read_fn *read = rule ? reader_of_shape(rule) : NULL;
    if (!rule || read)
        return read && read(reader, value, at, out);
    const struct path path = {
        .reader = reader, .op = value->op, .steps = rule->steps, .n_steps = rule->n_steps};
    return read_path(&path, value, at, out);
}

/* ---- Movements ------------------------------------------------------------------------------- */

/* What an op of ONNX stands for at most: a step for each axis. A whole draft is too large for every
 * level of a question. */
struct movement {
    struct rule_step steps[TSSA_MAX_RANK];
    struct rule_param params[4 * TSSA_MAX_RANK];
    struct ir_value *operands[2];
    uint32_t n_steps;
};

static bool find_movement(const struct ir_op *op, struct movement *movement)
{
    struct rule_draft draft;
    draft_begin(&draft, RULE_ORIGINS);
    if (!rule_of_movement(op, &draft) || draft.n_steps > TSSA_MAX_RANK ||
        draft.n_params > 4 * TSSA_MAX_RANK || draft.n_operands > 2)
        return false;
    memcpy(movement->params, draft.params, draft.n_params * sizeof *draft.params);
    memcpy(movement->operands, draft.operands, draft.n_operands * sizeof(struct ir_value *));
    for (uint32_t i = 0; i < draft.n_steps; i++) {
        movement->steps[i] = draft.steps[i];
        movement->steps[i].params = movement->params + (draft.steps[i].params - draft.params);
    }
    movement->n_steps = draft.n_steps;
    return true;
}

bool element_read_movement(struct reader *reader, const struct ir_value *value,
                           const struct element *at, struct element *out)
{
    struct movement movement;
    if (!find_movement(value->op, &movement))
        return false;
    const struct path path = {.reader = reader,
                              .op = value->op,
                              .steps = movement.steps,
                              .n_steps = movement.n_steps,
                              .operands = movement.operands};
    return read_path(&path, value, at, out);
}
