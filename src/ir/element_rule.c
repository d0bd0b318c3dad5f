/* SPDX-License-Identifier: Apache-2.0 */
/* Elements of accesses: the place goes back through the steps of the rule. */
#include <string.h>

#include "ir/element_reader.h"
#include "ir/infer.h"
#include "ir/rule.h"

/* A place in a region, on its way back through the steps of a rule. */
struct place {
    int rank;
    struct element at[TSSA_MAX_RANK + 1];
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

/* A param that is an index from the front: the number, or an element that is never negative. */
static bool read_param(struct reader *reader, const struct ir_op *op,
                       const struct rule_param *param, struct element *out)
{
    struct element at[TSSA_MAX_RANK];
    if (!param->is_operand)
        return param->value >= 0 && element_set(reader, param->value, out);
    struct ir_value *value = rule_param_value(op, param);
    int rank = value && value->type->kind == TYPE_TENSOR ? value->type->rank : -1;
    for (int i = 0; i < rank; i++)
        if (!element_set(reader, 0, &at[i]))
            return false;
    return rank >= 0 && element_read_value(reader, value, at, out) && element_is_index(reader, out);
}

static bool undo_slice(struct reader *reader, const struct ir_op *op, const struct rule_step *step,
                       struct place *place)
{
    struct element start, rest;
    int64_t axis = step->params[0].value;
    if (step->params[3].is_operand || axis >= place->rank ||
        !read_param(reader, op, &step->params[1], &start))
        return false;
    const struct dim *by = dim_const(&reader->graph->dims, step->params[3].value);
    if (!element_made(reader, by) ||
        by->value < 0) /* from beyond the end it would begin at the end */
        return false;
    return element_scale(reader, &place->at[axis], by, &rest) &&
           element_add(reader, &start, &rest, &place->at[axis]);
}

static bool undo_gather(struct reader *reader, const struct ir_op *op, const struct rule_step *step,
                        struct place *place)
{
    struct ir_value *indices = rule_param_value(op, &step->params[1]);
    int64_t axis = step->params[0].value;
    int rank = indices && indices->type->kind == TYPE_TENSOR ? indices->type->rank : -1;
    struct element index;
    return rank >= 0 && axis + rank <= place->rank &&
           element_read_value(reader, indices, place->at + axis, &index) &&
           element_is_index(reader, &index) && remove_place(place, axis, rank) &&
           insert_place(place, axis, &index);
}

static bool undo_permute(const struct rule_step *step, struct place *place)
{
    struct place old = *place;
    for (uint32_t i = 0; i < step->n_params; i++)
        place->at[step->params[i].value] = old.at[i];
    return (int)step->n_params == place->rank;
}

static bool undo_step(struct reader *reader, const struct ir_op *op, const struct rule_step *step,
                      struct place *place)
{
    struct element at;
    switch (step->kind) {
    case RULE_SELECT:
        return read_param(reader, op, &step->params[1], &at) &&
               insert_place(place, step->params[0].value, &at);
    case RULE_SLICE:
        return undo_slice(reader, op, step, place);
    case RULE_PERMUTE:
        return undo_permute(step, place);
    case RULE_GATHER:
        return undo_gather(reader, op, step, place);
    case RULE_SQUEEZE:
        for (uint32_t i = 0; i < step->n_params; i++)
            if (!element_set(reader, 0, &at) || !insert_place(place, step->params[i].value, &at))
                return false;
        return true;
    case RULE_UNSQUEEZE:
        for (uint32_t i = step->n_params; i-- > 0;)
            if (!remove_place(place, step->params[i].value, 1))
                return false;
        return true;
    default:
        return false;
    }
}

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
    struct place place = {.rank = value->type->rank};
    element_read_fn *read = rule ? reader_of_shape(rule) : NULL;
    if (read)
        return read(reader, value, at, out);
    memcpy(place.at, at, (size_t)place.rank * sizeof *at);
    for (uint32_t i = rule ? rule->n_steps : 0; i-- > 0;)
        if (!undo_step(reader, value->op, &rule->steps[i], &place))
            return false;
    return rule && place.rank == infer_rank(value->op, 0) &&
           element_read_value(reader, ir_operand(value->op, 0), place.at, out);
}
