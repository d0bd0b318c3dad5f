/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What depends on where an element is. A position is an argument like others: the numbers 0, 1, ...
 * along one axis of the space, which are no memory (gir_map.index GIR_POSITIONS,
 * gir_arg.is_position).
 */
#include <string.h>

#include "gir/mapper.h"
#include "ir/fuse.h"

#define MOST_NARROW (INT64_C(1) << 30) /* positions below, and sums of two, are int32 */

/* Where an axis of a value is in the region that a rule leaves: the axis, or the one element of it
 * that is there; and of the axis, which elements are. */
struct followed {
    int64_t axis;
    int64_t at;        /* -1: all */
    int64_t begin, by; /* of these, from one on, one of so many */
};

/* A part of the axis that begins at a number of it, which is the same in every run. */
static bool follow_slice(const struct rule_param *params, struct followed *f)
{
    const int64_t most = INT64_C(1) << 24;
    if (params[0].value != f->axis)
        return true;
    if (params[1].is_operand || params[1].value < 0 || params[1].value > most ||
        params[3].is_operand || params[3].value < 1 || params[3].value > most || f->by > most ||
        f->begin > most)
        return false;
    f->begin += f->by * params[1].value;
    f->by *= params[3].value;
    return true;
}

static bool follow(const struct rule_step *step, struct followed *f)
{
    const struct rule_param *params = step->params;
    const int64_t axis = f->axis;
    switch (step->kind) {
    case RULE_SELECT:
        if (params[0].value == axis)
            f->at = params[1].is_operand || params[1].value < 0
                        ? -2
                        : f->begin + f->by * params[1].value;
        f->axis -= params[0].value < axis;
        return f->at > -2;
    case RULE_SLICE:
        return follow_slice(params, f);
    case RULE_SPAN:
        return params[0].value != axis;
    case RULE_PERMUTE:
        for (uint32_t i = 0; i < step->n_params; i++)
            if (params[i].value == axis)
                f->axis = i;
        return true;
    case RULE_SQUEEZE:
        for (uint32_t i = 0; i < step->n_params; i++) {
            f->axis -= params[i].value < axis;
            if (params[i].value == axis)
                f->at = f->begin;
        }
        return true;
    case RULE_UNSQUEEZE: /* axes of the result, in order */
        for (uint32_t i = 0; i < step->n_params; i++)
            f->axis += params[i].value <= f->axis;
        return true;
    default:
        return false;
    }
}

static bool tell_range(struct mapper *m, const struct ir_op *op, struct gir_map *map)
{
    struct gir_range *range = ARENA_NEW(&m->body->graph->arena, struct gir_range);
    if (!range)
        return mapper_check(m, status_out_of_memory(), true);
    *range = (struct gir_range){.dtype = op->results[0].type->dtype};
    for (uint32_t i = 0; i < 3; i++) {
        const struct ir_value *operand = ir_operand(op, i);
        const struct tensor *number = ir_value_constant(operand);
        if ((!number && operand->op) || operand->type->dtype != range->dtype ||
            (number && tensor_count(number) != 1))
            return mapper_refuse(m, "what it goes by is no number of one type") != 0;
        range->operands[i] = number ? -1 : (int32_t)operand->index;
        if (number)
            memcpy(&range->numbers[i], number->data, dtype_info(range->dtype)->size);
    }
    map->range = range;
    return true;
}

/* The step that is the position of an element along an axis of the space, int32 or int64. `range`
 * tells how long the axis is; NULL: others do. */
static uint32_t position_along(struct mapper *m, uint32_t axis, tssa_dtype type,
                               const struct ir_op *range)
{
    uint32_t arg = 0;
    if (m->part->space.dims[axis] == 1)
        return gir_make_number(&m->maker, type, 0);
    while (arg < m->n_args &&
           (m->part->maps[arg].index != GIR_POSITIONS || m->part->maps[arg].axes != 1u << axis ||
            m->args[arg].dtype != type || m->part->maps[arg].op != range))
        arg++;
    if (arg == GIR_MAX_ARGS)
        return mapper_refuse(m, "it has more arguments than kernels may have");
    if (arg == m->n_args) {
        m->part->maps[arg] =
            (struct gir_map){.index = GIR_POSITIONS, .lookup = -1, .axes = 1u << axis, .op = range};
        if (range && !tell_range(m, range, &m->part->maps[arg]))
            return 0;
        m->side_by_side[arg] = 1u << axis;
        m->apart[arg][axis] = 1;
        m->args[m->n_args++] =
            (struct gir_arg){.dtype = (uint8_t)type, .fields = 1, .is_position = 1};
    }
    return gir_make(&m->maker,
                    (struct gir_code){.op = GIR_LOAD, .type = (uint8_t)type, .bits = arg});
}

/* An element's position along an axis of the value that the view sees, as a number of the type. */
static uint32_t position(struct mapper *m, const struct ir_type *type, int axis,
                         const struct gir_view *view, tssa_dtype as, const struct ir_op *range)
{
    struct followed f = {.axis = axis, .at = -1, .by = 1};
    for (uint32_t i = 0; view->rule && i < view->rule->n_steps && f.at < 0; i++)
        if (!follow(&view->rule->steps[i], &f))
            return mapper_refuse(m, "where its elements are is not known in advance");
    if (f.at >= 0)
        return gir_make_number(&m->maker, as, (double)f.at);
    const int rank = gir_view_layout(type, view->rule).rank;
    const int64_t at = m->part->space.rank - rank + f.axis;
    if (at < 0 || dim_is(type->dims[axis], 1) || (view->ones >> at & 1))
        return gir_make_number(&m->maker, as, (double)f.begin);
    const uint32_t here = position_along(m, (uint32_t)at, as, f.begin || f.by > 1 ? NULL : range);
    if (!f.begin && f.by == 1)
        return here;
    const uint32_t way =
        gir_make_scalar(&m->maker, SCALAR_MUL, as,
                        (uint32_t[]){here, gir_make_number(&m->maker, as, (double)f.by)});
    return gir_make_scalar(&m->maker, SCALAR_ADD, as,
                           (uint32_t[]){way, gir_make_number(&m->maker, as, (double)f.begin)});
}

/* The type in which positions along an axis are, and sums of them and a number. */
static bool is_narrow(const struct dim *dim)
{
    return dim->high < MOST_NARROW;
}

/* Which diagonal, so near that sums do not overflow, as far away as makes no difference. */
static uint32_t diagonal(struct mapper *m, const struct ir_op *op, const struct gir_view *view,
                         tssa_dtype *type)
{
    const struct ir_type *own = op->results[0].type;
    const struct ir_value *k = ir_operand(op, 1);
    const struct tensor *number = k ? ir_value_constant(k) : NULL;
    struct gir_view seen = *view;
    bool good = true;
    const bool narrow = is_narrow(own->dims[own->rank - 2]) && is_narrow(own->dims[own->rank - 1]);
    *type = narrow && (!k || number) ? TSSA_INT32 : TSSA_INT64;
    if (!k)
        return gir_make_number(&m->maker, *type, 0);
    const double most = narrow ? (double)MOST_NARROW : 0x1p62;
    if (number) {
        if (tensor_count(number) != 1 || !dtype_is_integer(number->dtype))
            return mapper_refuse(m, "it holds a constant that is no number");
        const double value = (double)dtype_load_int64(number->dtype, number->data);
        return gir_make_number(&m->maker, *type,
                               value < -most  ? -most
                               : value > most ? most
                                              : value);
    }
    tssa_status *status = gir_view_of_operand(m->body->graph, own->rank, own->dims, k->type,
                                              m->part->space.rank, &seen, &good);
    if (!mapper_check(m, status, good))
        return 0;
    const uint32_t value = gir_make_as(&m->maker, mapper_evaluate(m, k, seen), *type);
    const uint32_t low[] = {value, gir_make_number(&m->maker, *type, -most)};
    const uint32_t high[] = {gir_make_scalar(&m->maker, SCALAR_MAX, *type, low),
                             gir_make_number(&m->maker, *type, most)};
    return gir_make_scalar(&m->maker, SCALAR_MIN, *type, high);
}

uint32_t mapper_triangle(struct mapper *m, const struct ir_op *op, const struct gir_view *view)
{
    const struct ir_type *type = op->results[0].type;
    const bool upper = ir_attr_int(op, "upper", 1) != 0;
    tssa_dtype as;
    if (type->kind != TYPE_TENSOR || type->rank < 2)
        return mapper_refuse(m, "the shape of what it reads is not known");
    const tssa_dtype element = type->dtype == TSSA_BOOL ? TSSA_UINT8 : type->dtype;
    const uint32_t x = mapper_evaluate(m, ir_operand(op, 0), *view), k = diagonal(m, op, view, &as);
    if (m->maker.why)
        return 0;
    const uint32_t row = position(m, type, type->rank - 2, view, as, NULL),
                   column = position(m, type, type->rank - 1, view, as, NULL);
    const uint32_t first =
        m->maker.why ? 0 : gir_make_scalar(&m->maker, SCALAR_ADD, as, (uint32_t[]){row, k});
    const uint32_t kept = gir_make_scalar(&m->maker, upper ? SCALAR_GE : SCALAR_LE, TSSA_BOOL,
                                          (uint32_t[]){column, first});
    const uint32_t zero =
        gir_make(&m->maker, (struct gir_code){.op = GIR_CONSTANT, .type = (uint8_t)element});
    const uint32_t value = gir_make_as(&m->maker, x, element);
    return gir_make_scalar(&m->maker, SCALAR_SEL, element, (uint32_t[]){kept, value, zero});
}

uint32_t mapper_range(struct mapper *m, const struct ir_op *op, const struct gir_view *view)
{
    const struct ir_type *type = op->results[0].type;
    const bool narrow = is_narrow(type->dims[0]) ||
                        (dtype_is_integer(type->dtype) && dtype_info(type->dtype)->size <= 4);
    const uint32_t at = position(m, type, 0, view, narrow ? TSSA_INT32 : TSSA_INT64, op);
    uint32_t numbers[3];
    for (uint32_t i = 0; i < 3; i += 2) {
        const struct ir_value *operand = ir_operand(op, i);
        struct gir_view seen = *view;
        bool good = true;
        tssa_status *status = NULL;
        if (!ir_value_constant(operand))
            status = gir_view_of_operand(m->body->graph, 1, type->dims, operand->type,
                                         m->part->space.rank, &seen, &good);
        numbers[i] = mapper_check(m, status, good) ? mapper_evaluate(m, operand, seen) : 0;
    }
    return m->maker.why ? 0 : gir_make_range(&m->maker, op, at, numbers[0], numbers[2]);
}
