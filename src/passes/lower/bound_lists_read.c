/* SPDX-License-Identifier: Apache-2.0 */
/* What is read of what is kept, and by its numbers (bound_lists.h). */
#include "ir/infer.h"
#include "passes/lower/bound_lists.h"

/* ---- NonZero --------------------------------------------------------------------------------- */

/* On an H200 YOLOv3, with room for 8,112, takes 99 us and not 125, but SSD and FCOS, with room for
 * 192,000 and 128,000, take 55 and 78 us more than waiting. */
#define MOST_ROOM 32768

static bool may_root(const struct bounding *b, const struct ir_op *op)
{
    const struct ir_value *mask = ir_operand(op, 0), *found = &op->results[0];
    return bound_is_ranked(mask) && mask->type->dtype == TSSA_BOOL &&
           (mask->type->rank == 1 || mask->type->rank == 2) && bound_list_count(mask) > 0 &&
           bound_list_count(mask) <= MOST_ROOM && bound_is_ranked(found) &&
           found->type->rank == 2 && b->n_roots < BOUND_ROOTS;
}

static tssa_status *visit_root(struct bounding *b, struct ir_op *op)
{
    uint32_t set;
    if (!may_root(b, op))
        return NULL;
    TRY(bound_add_set(b,
                      (struct bound_set){.dim = op->results[0].type->dims[1],
                                         .bound = bound_list_count(ir_operand(op, 0)),
                                         .roots = UINT64_C(1) << b->n_roots,
                                         .mask = ir_operand(op, 0)},
                      &set));
    b->finders[b->n_roots++] = op;
    bound_note(b, op, 0, (struct bound_value){.kind = BOUND_NUMBERS, .set = set});
    return NULL;
}

/* Of a list that is the rows of a matrix, that matrix; else NULL. */
static struct ir_value *matrix_of(const struct bounding *b, const struct bound_value *list)
{
    const struct ir_op *op = list->value->op;
    const struct bound_set *set = bound_set_at(b, list->set);
    struct ir_value *x = op && ir_op_is(op, IR_OP_access) ? ir_operand(op, 0) : NULL;
    return set->parent && x && bound_is_ranked(x) && x->type->rank == 2 &&
                   rule_of(op)->n_steps == 1 && rule_of(op)->steps[0].kind == RULE_RESHAPE &&
                   dim_is(x->type->dims[1], set->factor)
               ? x
               : NULL;
}

/* What is true of the list, and there; of rows, a row at a time. */
static struct ir_value *make_found(struct bounding *b, struct pass_maker *m,
                                   const struct bound_value *list)
{
    const struct bound_set set = *bound_set_at(b, list->set);
    struct ir_value *matrix = matrix_of(b, list);
    const int64_t last = 1;
    if (!matrix)
        return pass_make(m, IR_OP_And, 2, list->value, bound_valid(b, m, list->set));
    struct ir_value *valid = bound_valid(b, m, set.parent - 1);
    valid = pass_make_access(m, valid, RULE_UNSQUEEZE, 1, &last, NULL);
    valid = pass_make(m, IR_OP_And, 2, matrix, valid);
    return pass_make_access(m, valid, RULE_RESHAPE, 1, &set.bound, NULL);
}

/* Of a list that is bounded: what is not there is not found. */
tssa_status *bound_visit_non_zero(struct bounding *b, struct ir_op *op)
{
    struct pass_maker m = {.at = op, .graph = b->pass->graph};
    const struct bound_value *mask = bound_of(b, ir_operand(op, 0));
    if (mask->kind != BOUND_PADDED)
        return visit_root(b, op);
    if (ir_operand(op, 0)->type->dtype != TSSA_BOOL || ir_operand(op, 0)->type->rank != 1)
        return NULL;
    const uint32_t set = mask->set;
    struct ir_value *found = make_found(b, &m, mask);
    TRY(m.status);
    bound_note(b, op, 0, (struct bound_value){.kind = BOUND_FOUND, .set = set});
    return bound_note_end(b, op, 0, found, set);
}

/* ---- What is read by numbers ----------------------------------------------------------------- */

/* Of x, whose first axes are the mask's or longer, what has the mask's. */
static struct ir_value *shorten(struct pass_maker *m, struct ir_value *x,
                                const struct ir_type *mask)
{
    for (int i = 0; i < mask->rank && x; i++)
        if (x->type->dims[i] != mask->dims[i])
            x = pass_make_access(m, x, RULE_SLICE, 4, (int64_t[]){i, 0, mask->dims[i]->value, 1},
                                 NULL);
    return x;
}

/* The elements that the mask is of, one after the other. */
static struct ir_value *flatten(struct pass_maker *m, struct ir_value *x,
                                const struct ir_type *mask, int64_t bound)
{
    int64_t dims[TSSA_MAX_RANK] = {bound};
    int n = 1;
    for (int i = mask->rank; x && i < x->type->rank; i++)
        dims[n++] = x->type->dims[i]->value;
    return mask->rank == 1 ? x : pass_make_access(m, x, RULE_RESHAPE, (uint32_t)n, dims, NULL);
}

static bool has_room(const struct ir_value *x, const struct ir_type *mask)
{
    bool has = bound_is_ranked(x) && x->type->rank >= mask->rank &&
               x->type->rank - mask->rank < TSSA_MAX_RANK && bound_list_count(x) >= 0;
    for (int i = 0; has && i < mask->rank; i++)
        has = x->type->dims[i]->value >= mask->dims[i]->value;
    return has;
}

/* x at all numbers that a NonZero finds: all of x. */
static tssa_status *read_all(struct bounding *b, struct ir_op *op, uint32_t set)
{
    struct pass_maker m = {.at = op, .graph = b->pass->graph};
    struct ir_value *x = ir_operand(op, 0);
    const struct ir_type *mask = bound_set_at(b, set)->mask->type;
    if (bound_of(b, x)->kind != BOUND_NOTHING || !has_room(x, mask))
        return NULL;
    struct ir_value *whole = shorten(&m, x, mask),
                    *flat = flatten(&m, whole, mask, bound_set_at(b, set)->bound);
    TRY(m.status);
    bound_note_padded(b, op, (struct bound_value){.set = set, .value = flat, .whole = whole});
    return NULL;
}

tssa_status *bound_visit_gather_nd(struct bounding *b, struct ir_op *op)
{
    const struct bound_value *numbers = bound_of(b, ir_operand(op, 1));
    return numbers->kind == BOUND_NUMBERS && numbers->turned &&
                   ir_attr_int(op, "batch_dims", 0) == 0
               ? read_all(b, op, numbers->set)
               : NULL;
}

/* Rows at these places, by an access. */
static struct ir_value *gather_at(struct pass_maker *m, struct ir_value *x, int64_t axis,
                                  struct ir_value *places)
{
    return pass_make_access(m, x, RULE_GATHER, 2, (int64_t[]){axis, 0}, places);
}

/* What row `row` of a NonZero's numbers is at these places. */
static struct ir_value *number_at(struct pass_maker *m, const struct ir_type *mask, int row,
                                  struct ir_value *places)
{
    if (mask->rank == 1)
        return places;
    struct ir_value *columns = pass_make_int(m, 0, mask->dims[1]->value);
    return pass_make(m, row ? IR_OP_Mod : IR_OP_Div, 2, places, columns);
}

/* Reads by places in a set, which more or less of may be there. */
static tssa_status *gather_by_places(struct bounding *b, struct ir_op *op, int64_t axis,
                                     const struct bound_value *list)
{
    struct pass_maker m = {.at = op, .graph = b->pass->graph};
    const struct bound_value *x = bound_of(b, ir_operand(op, 0));
    if (x->kind == BOUND_PADDED && x->set == list->places - 1 && x->axis == axis) {
        if (list->kind == BOUND_PLACES)
            return bound_note_end(b, op, 0, x->value, x->set);
        struct ir_value *value = gather_at(&m, x->value, axis, list->value);
        TRY(m.status);
        bound_note_padded(
            b, op, (struct bound_value){.set = list->set, .axis = (int)axis, .value = value});
        return NULL;
    }
    if (x->kind != BOUND_NUMBER || list->kind != BOUND_PADDED || x->set != list->places - 1)
        return NULL;
    const struct ir_type *mask = bound_set_at(b, x->set)->mask->type;
    struct ir_value *value = number_at(&m, mask, x->row, list->value);
    TRY(m.status);
    bound_note_padded(
        b, op,
        (struct bound_value){.set = list->set, .value = value, .below = mask->dims[x->row]->value});
    return NULL;
}

/* By numbers that are all in range. */
static tssa_status *gather_rows(struct bounding *b, struct ir_op *op, int64_t axis,
                                const struct bound_value *list)
{
    struct pass_maker m = {.at = op, .graph = b->pass->graph};
    const struct ir_value *x = ir_operand(op, 0);
    if (bound_of(b, x)->kind != BOUND_NOTHING || !bound_is_ranked(x) || list->below <= 0 ||
        x->type->dims[axis]->low < list->below)
        return NULL;
    struct ir_value *value = gather_at(&m, ir_operand(op, 0), axis, list->value);
    TRY(m.status);
    bound_note_padded(b, op,
                      (struct bound_value){.set = list->set, .axis = (int)axis, .value = value});
    return NULL;
}

/* By all numbers of a list. */
static tssa_status *gather_all(struct bounding *b, struct ir_op *op, int64_t axis,
                               const struct bound_value *numbers)
{
    struct ir_value *x = ir_operand(op, 0);
    const struct bound_set *set = bound_set_at(b, numbers->set);
    if (bound_of(b, x)->kind != BOUND_NOTHING || !bound_is_ranked(x) ||
        set->mask->type->rank != 1 || !dim_is(x->type->dims[axis], set->bound))
        return NULL;
    bound_note_padded(
        b, op,
        (struct bound_value){
            .set = numbers->set, .axis = (int)axis, .value = x, .whole = axis == 0 ? x : NULL});
    return NULL;
}

static tssa_status *visit_gather(struct bounding *b, struct ir_op *op, const struct rule_step *step)
{
    const int64_t axis = step->params[0].value;
    const struct ir_value *list = rule_param_value(op, &step->params[1]);
    const struct bound_value *bound = bound_of(b, list);
    if (!bound_is_ranked(ir_operand(op, 0)) || infer_value_rank(list) != 1)
        return NULL;
    if (bound->kind == BOUND_NUMBER)
        return gather_all(b, op, axis, bound);
    if (bound->kind == BOUND_PLACES || (bound->kind == BOUND_PADDED && bound->places))
        return gather_by_places(b, op, axis, bound);
    return bound->kind == BOUND_PADDED ? gather_rows(b, op, axis, bound) : NULL;
}

/* ---- Views and regions ----------------------------------------------------------------------- */

/* What the step has of a matrix: one of its rows, or columns, along that axis. */
static bool selects(const struct rule_step *step, int64_t axis)
{
    return step->kind == RULE_SELECT && step->params[0].value == axis &&
           !step->params[1].is_operand && step->params[1].value >= 0;
}

/* Is it all of a matrix of which the axis has one element? */
static bool is_list_of(const struct rule_step *step, int64_t axis)
{
    const struct rule_param *params = step->params;
    return (selects(step, axis) && params[1].value == 0) ||
           (step->kind == RULE_SQUEEZE && step->n_params == 1 && params[0].value == axis) ||
           (step->kind == RULE_RESHAPE && step->n_params == 1 && !params[0].is_operand &&
            params[0].value == -1);
}

static bool turns(const struct rule_step *step)
{
    return step->kind == RULE_PERMUTE && step->n_params == 2 && step->params[0].value == 1;
}

static void visit_numbers(struct bounding *b, struct ir_op *op, const struct rule_step *step,
                          struct bound_value value)
{
    const int axis = value.turned ? 1 : 0;
    const bool is_list =
        bound_set_at(b, value.set)->mask->type->rank == 1 && is_list_of(step, axis);
    if (turns(step) && !value.turned) {
        value.turned = true;
    } else if (is_list || selects(step, axis)) {
        value.row = is_list ? 0 : (int)step->params[1].value;
        value.kind = BOUND_NUMBER;
    } else {
        return;
    }
    bound_note(b, op, 0, value);
}

/* Of places that a NonZero or a NonMaxSuppression finds. */
static void visit_found(struct bounding *b, struct ir_op *op, const struct rule_step *step,
                        struct bound_value value)
{
    const bool is_list = value.kind == BOUND_FOUND ? is_list_of(step, 0)
                                                   : selects(step, 1) && step->params[1].value == 2;
    value.kind = BOUND_PLACES;
    value.places = value.set + 1;
    if (is_list)
        bound_note(b, op, 0, value);
}

bool bound_are_constants(const struct rule_step *step)
{
    bool constant = true;
    for (uint32_t i = 0; i < step->n_params; i++)
        constant &= !step->params[i].is_operand;
    return constant;
}

/* Where the axis is behind the step, which leaves it as it is; -1: it does not. */
static int follow_axis(const struct rule_step *step, int rank, int axis)
{
    const struct rule_param *params = step->params;
    const int n = (int)step->n_params, before = axis;
    switch (step->kind) {
    case RULE_SELECT:
        return params[0].value == axis ? -1 : axis - (params[0].value < axis);
    case RULE_SLICE:
    case RULE_SPAN:
        return params[0].value == axis ? -1 : axis;
    case RULE_PERMUTE:
        for (int i = 0; i < n; i++)
            if (params[i].value == axis)
                return i;
        return -1;
    case RULE_SQUEEZE:
        for (int i = 0; i < n; i++) {
            if (params[i].value == before)
                return -1; /* one is kept, or it is an error */
            axis -= params[i].value < before;
        }
        return axis;
    case RULE_UNSQUEEZE:
        for (int i = 0; i < n; i++)
            axis += params[i].value <= axis;
        return axis;
    case RULE_EXPAND:
        return n >= rank && params[axis + n - rank].value == 1 ? axis + n - rank : -1;
    default:
        return -1;
    }
}

/* Behind a reshape: it is alone, or one with axes behind it, of `factor` elements. */
static int follow_reshape(const struct bounding *b, const struct ir_op *op,
                          const struct bound_value *x, int64_t *factor)
{
    const struct ir_type *from = ir_operand(op, 0)->type, *to = op->results[0].type;
    struct dim_table *dims = &b->pass->graph->dims;
    const int64_t before = bound_count_dims(from, 0, x->axis);
    int axis = 0, next = x->axis + 1;
    int64_t size;
    while (axis < to->rank && dim_is_const(to->dims[axis], &size))
        axis++;
    if (before < 0 || axis == to->rank || bound_count_dims(to, 0, axis) != before ||
        rule_of(op)->steps[0].params[axis].value != -1)
        return -1;
    for (*factor = 1; next <= from->rank; next++) {
        if (dim_mul(dims, bound_set_at(b, x->set)->dim, dim_const(dims, *factor)) == to->dims[axis])
            return axis;
        if (next == from->rank || !dim_is_const(from->dims[next], &size) || size < 1 ||
            !i64_mul(*factor, size, factor))
            return -1;
    }
    return -1;
}

static tssa_status *visit_region(struct bounding *b, struct ir_op *op, const struct rule_step *step,
                                 const struct bound_value *x)
{
    struct bound_value made = {.set = x->set};
    int64_t factor = 1;
    if (!bound_are_constants(step) || !bound_is_ranked(ir_operand(op, 0)) ||
        !bound_is_ranked(&op->results[0]))
        return NULL;
    made.axis = step->kind == RULE_RESHAPE
                    ? follow_reshape(b, op, x, &factor)
                    : follow_axis(step, ir_operand(op, 0)->type->rank, x->axis);
    if (made.axis < 0)
        return NULL;
    TRY(bound_find_multiple(b, x->set, factor, &made.set));
    TRY(bound_copy(b, op, NULL, NULL, &made.value));
    bound_note_padded(b, op, made);
    return NULL;
}

/* A list as often as there are elements. */
static tssa_status *visit_tile(struct bounding *b, struct ir_op *op, const struct rule_step *step)
{
    const struct ir_value *x = ir_operand(op, 0), *times = rule_param_value(op, &step->params[0]);
    const struct dim *n = rule_param_dim(op, &step->params[0]);
    struct pass_maker m = {.at = op, .graph = b->pass->graph};
    const int64_t factor = bound_is_ranked(x) && x->type->rank == 1 ? bound_list_count(x) : -1;
    struct bound_value made = {0};
    uint32_t set = 0;
    while (n && set < b->sets.count &&
           (!bound_set_at(b, set)->mask || bound_set_at(b, set)->dim != n))
        set++;
    if (factor < 1 || !n || set == b->sets.count || !bound_is_ranked(times) ||
        bound_of(b, x)->kind != BOUND_NOTHING || bound_of(b, times)->kind != BOUND_SIZE)
        return NULL;
    struct ir_value *bound = pass_make_int(&m, times->type->rank, bound_set_at(b, set)->bound);
    TRY(m.status);
    TRY(bound_find_multiple(b, set, factor, &made.set));
    TRY(bound_copy(b, op, times, bound, &made.value));
    bound_note_padded(b, op, made);
    return NULL;
}

tssa_status *bound_visit_access(struct bounding *b, struct ir_op *op)
{
    const struct rule *rule = rule_of(op);
    const struct bound_value *x = bound_of(b, ir_operand(op, 0));
    if (rule->n_steps != 1)
        return NULL;
    const struct rule_step *step = rule->steps;
    if (step->kind == RULE_GATHER)
        return visit_gather(b, op, step);
    if (step->kind == RULE_TILE && step->n_params == 1 && step->params[0].is_operand)
        return visit_tile(b, op, step);
    if (x->kind == BOUND_PADDED)
        return visit_region(b, op, step, x);
    if (x->kind == BOUND_NUMBERS)
        visit_numbers(b, op, step, *x);
    if (x->kind == BOUND_FOUND || x->kind == BOUND_ROWS)
        visit_found(b, op, step, *x);
    return NULL;
}
