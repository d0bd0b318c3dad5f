/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Coordinates through rules, step by step (ir/rule.def): of an element of the region to those in
 * the base, and the other way, where an element of the base may be in the region or not.
 */
#include <string.h>

#include "gir/grid_maker.h"

/* A shape between steps of a rule. */
struct shape {
    int rank;
    const struct dim *dims[TSSA_MAX_RANK];
};

/* A step, and the shapes before and behind it. */
struct step {
    const struct ir_op *op;
    const struct rule_step *rule;
    struct shape before, behind;
};

static int64_t number_of(const struct step *s, uint32_t param)
{
    return s->rule->params[param].value;
}

/* A param, which may be told by an operand. */
static uint32_t param_of(struct grid_maker *m, const struct step *s, uint32_t param)
{
    const struct ir_value *value = rule_param_value(s->op, &s->rule->params[param]);
    struct grid_place place = {0};
    if (!value)
        return grid_constant(m, number_of(s, param));
    if (value->type->kind != TYPE_TENSOR || value->type->rank < 0)
        return grid_refuse(m, "the shape of what it reads is not known");
    place.rank = value->type->rank;
    for (int i = 0; i < place.rank; i++)
        place.at[i] = grid_constant(m, 0);
    return gir_make_as(&m->maker, grid_evaluate(m, value, &place), TSSA_INT64);
}

static void erase(struct grid_place *place, int64_t axis)
{
    place->rank--;
    memmove(&place->at[axis], &place->at[axis + 1],
            (size_t)(place->rank - axis) * sizeof *place->at);
}

/* ---- Where slices begin ---------------------------------------------------------------------- */

/* ONNX's bounds: negative ones count from the end, and all are clamped. */
static uint32_t begin_of_slice(struct grid_maker *m, const struct step *s, uint32_t size)
{
    const uint32_t zero = grid_constant(m, 0);
    const bool forward = number_of(s, 3) > 0;
    const uint32_t last = forward ? size : grid_add(m, size, grid_constant(m, -1));
    const uint32_t first = grid_from_end(m, param_of(m, s, 1), size);
    return grid_max(m, zero, grid_min(m, first, last));
}

/* Of a slice or span. */
static uint32_t begin_of(struct grid_maker *m, const struct step *s)
{
    const struct dim *dim = s->before.dims[number_of(s, 0)];
    if (s->rule->kind == RULE_SPAN)
        return param_of(m, s, 1);
    if (s->rule->params[3].is_operand || number_of(s, 3) == 0)
        return grid_refuse(m, "the step of a slice is not known");
    /* It is inside of the axis, whatever the size: nobody needs to tell that. */
    if (!s->rule->params[1].is_operand && number_of(s, 3) > 0 && number_of(s, 1) >= 0 &&
        dim_at_least(dim, number_of(s, 1)))
        return grid_constant(m, number_of(s, 1));
    return begin_of_slice(m, s, grid_dim(m, dim));
}

static uint32_t count_of(struct grid_maker *m, const struct step *s)
{
    return s->rule->kind == RULE_SPAN ? param_of(m, s, 2)
                                      : grid_dim(m, s->behind.dims[number_of(s, 0)]);
}

static uint32_t step_of_slice(struct grid_maker *m, const struct step *s)
{
    return grid_constant(m, s->rule->kind == RULE_SPAN ? 1 : number_of(s, 3));
}

/* ---- Backwards ------------------------------------------------------------------------------- */

static void select_back(struct grid_maker *m, const struct step *s, struct grid_place *place)
{
    const uint32_t size = grid_dim(m, s->before.dims[number_of(s, 0)]);
    const uint32_t at = grid_from_end(m, param_of(m, s, 1), size);
    grid_check(m, at, size);
    grid_insert(place, number_of(s, 0), at);
}

static void slice_back(struct grid_maker *m, const struct step *s, struct grid_place *place)
{
    uint32_t *at = &place->at[number_of(s, 0)];
    *at = grid_add(m, grid_mul(m, *at, step_of_slice(m, s)), begin_of(m, s));
    if (s->rule->kind == RULE_SPAN)
        grid_check(m, *at, grid_dim(m, s->before.dims[number_of(s, 0)]));
}

static void permute_back(struct grid_maker *m, const struct step *s, struct grid_place *place)
{
    const struct grid_place from = *place;
    (void)m;
    for (uint32_t i = 0; i < s->rule->n_params; i++)
        place->at[number_of(s, i)] = from.at[i];
}

static void reshape_back(struct grid_maker *m, const struct step *s, struct grid_place *place)
{
    grid_claim_count(m, s->before.dims, s->before.rank, s->behind.dims, s->behind.rank);
    const uint32_t number = grid_flatten(m, place, s->behind.dims);
    grid_unflatten(m, number, s->before.rank, s->before.dims, place);
}

/* Of axes that the shape without them does not have. */
static void insert_zeros(struct grid_maker *m, const struct step *s, struct grid_place *place)
{
    for (uint32_t i = 0; i < s->rule->n_params; i++)
        grid_insert(place, number_of(s, i), grid_constant(m, 0));
}

static void claim_ones(struct grid_maker *m, const struct step *s)
{
    const struct dim *one = dim_const(&m->body->graph->dims, 1);
    for (uint32_t i = 0; one && i < s->rule->n_params; i++)
        grid_claim(m, s->before.dims[number_of(s, i)], one, GIR_SAME);
}

static void squeeze_back(struct grid_maker *m, const struct step *s, struct grid_place *place)
{
    claim_ones(m, s);
    insert_zeros(m, s, place);
}

static void unsqueeze_back(struct grid_maker *m, const struct step *s, struct grid_place *place)
{
    (void)m;
    for (uint32_t i = s->rule->n_params; i-- > 0;)
        erase(place, number_of(s, i));
}

static void expand_back(struct grid_maker *m, const struct step *s, struct grid_place *place)
{
    grid_broadcast(m, s->behind.dims, s->before.rank, s->before.dims, place);
}

static void tile_back(struct grid_maker *m, const struct step *s, struct grid_place *place)
{
    for (int i = 0; i < place->rank; i++)
        if (s->before.dims[i] != s->behind.dims[i])
            place->at[i] = grid_rest(m, place->at[i], grid_dim(m, s->before.dims[i]));
}

static void diagonal_back(struct grid_maker *m, const struct step *s, struct grid_place *place)
{
    const int64_t first = number_of(s, 0), second = number_of(s, 1), offset = number_of(s, 2);
    const uint32_t at = place->at[--place->rank];
    const uint32_t ats[2] = {grid_add(m, at, grid_constant(m, offset < 0 ? -offset : 0)),
                             grid_add(m, at, grid_constant(m, offset > 0 ? offset : 0))};
    grid_insert(place, first < second ? first : second, ats[first < second ? 0 : 1]);
    grid_insert(place, first < second ? second : first, ats[first < second ? 1 : 0]);
}

static void gather_back(struct grid_maker *m, const struct step *s, struct grid_place *place)
{
    const struct ir_value *indices = rule_param_value(s->op, &s->rule->params[1]);
    const int64_t axis = number_of(s, 0);
    struct grid_place at = {0};
    if (!indices || indices->type->kind != TYPE_TENSOR || indices->type->rank < 0) {
        grid_refuse(m, "what it gathers by is not known");
        return;
    }
    for (int i = 0; i < indices->type->rank; i++) {
        at.at[at.rank++] = place->at[axis];
        erase(place, axis);
    }
    const uint32_t size = grid_dim(m, s->before.dims[axis]);
    const uint32_t number = gir_make_as(&m->maker, grid_evaluate(m, indices, &at), TSSA_INT64);
    const uint32_t row = grid_from_end(m, number, size);
    grid_check(m, row, size);
    grid_insert(place, axis, row);
}

typedef void (*back_fn)(struct grid_maker *m, const struct step *s, struct grid_place *place);

/* NULL: data tells how many elements there are, which no element can tell of itself. */
static const back_fn back[RULE_KIND_COUNT] = {
    [RULE_SELECT] = select_back,       [RULE_SLICE] = slice_back,     [RULE_SPAN] = slice_back,
    [RULE_PERMUTE] = permute_back,     [RULE_RESHAPE] = reshape_back, [RULE_SQUEEZE] = squeeze_back,
    [RULE_UNSQUEEZE] = unsqueeze_back, [RULE_EXPAND] = expand_back,   [RULE_TILE] = tile_back,
    [RULE_DIAGONAL] = diagonal_back,   [RULE_GATHER] = gather_back,
};

/* ---- Forwards -------------------------------------------------------------------------------- */

/* Where in the region it is is left in `place`; returns whether it is there; GIR_NONE: it is. */
typedef uint32_t (*into_fn)(struct grid_maker *m, const struct step *s, struct grid_place *place);

static uint32_t select_into(struct grid_maker *m, const struct step *s, struct grid_place *place)
{
    const int64_t axis = number_of(s, 0);
    const uint32_t size = grid_dim(m, s->before.dims[axis]), own = place->at[axis];
    const uint32_t at = grid_from_end(m, param_of(m, s, 1), size);
    grid_check(m, at, size);
    erase(place, axis);
    return own == at ? GIR_NONE : grid_test(m, SCALAR_EQ, own, at);
}

static uint32_t slice_into(struct grid_maker *m, const struct step *s, struct grid_place *place)
{
    const int64_t axis = number_of(s, 0);
    const uint32_t zero = grid_constant(m, 0), step = step_of_slice(m, s), begin = begin_of(m, s);
    const uint32_t far = grid_sub(m, place->at[axis], begin);
    const uint32_t at = grid_div(m, far, step), count = count_of(m, s);
    uint32_t is_there =
        grid_both(m, grid_test(m, SCALAR_GE, at, zero), grid_test(m, SCALAR_LT, at, count));
    if (s->rule->kind == RULE_SPAN) /* the last one is there, if there is one */
        grid_check(m, grid_add(m, begin, count),
                   grid_add(m, grid_dim(m, s->before.dims[axis]), grid_constant(m, 1)));
    if (at != far)
        is_there = grid_both(m, is_there, grid_test(m, SCALAR_EQ, grid_mul(m, at, step), far));
    place->at[axis] = at;
    return is_there;
}

static uint32_t permute_into(struct grid_maker *m, const struct step *s, struct grid_place *place)
{
    const struct grid_place from = *place;
    (void)m;
    for (uint32_t i = 0; i < s->rule->n_params; i++)
        place->at[i] = from.at[number_of(s, i)];
    return GIR_NONE;
}

static uint32_t reshape_into(struct grid_maker *m, const struct step *s, struct grid_place *place)
{
    grid_claim_count(m, s->before.dims, s->before.rank, s->behind.dims, s->behind.rank);
    const uint32_t number = grid_flatten(m, place, s->before.dims);
    grid_unflatten(m, number, s->behind.rank, s->behind.dims, place);
    return GIR_NONE;
}

static uint32_t squeeze_into(struct grid_maker *m, const struct step *s, struct grid_place *place)
{
    claim_ones(m, s);
    unsqueeze_back(m, s, place);
    return GIR_NONE;
}

static uint32_t unsqueeze_into(struct grid_maker *m, const struct step *s, struct grid_place *place)
{
    insert_zeros(m, s, place);
    return GIR_NONE;
}

/* NULL: an element of the base may be in the region more than once. */
static const into_fn into[RULE_KIND_COUNT] = {
    [RULE_SELECT] = select_into,       [RULE_SLICE] = slice_into,     [RULE_SPAN] = slice_into,
    [RULE_PERMUTE] = permute_into,     [RULE_RESHAPE] = reshape_into, [RULE_SQUEEZE] = squeeze_into,
    [RULE_UNSQUEEZE] = unsqueeze_into,
};

/* ---- Rules ----------------------------------------------------------------------------------- */

/* The shape after the first n steps of the op's rule. */
static bool shape_after(struct grid_maker *m, const struct ir_op *op, uint32_t n,
                        struct shape *shape)
{
    const struct rule *rule = rule_of(op);
    const struct ir_type *type = ir_operand(op, 0)->type;
    const struct rule prefix = {.n_steps = n, .steps = rule->steps};
    const bool is_last = n == rule->n_steps && ir_op_is(op, IR_OP_access);
    if (is_last)
        type = op->results[0].type;
    if (type->kind != TYPE_TENSOR || type->rank < 0)
        return grid_refuse(m, "the shape of what it reads is not known");
    shape->rank = type->rank;
    for (int i = 0; i < type->rank; i++)
        shape->dims[i] = type->dims[i];
    if (is_last || n == 0)
        return true;
    /* Only the op's graph is written to. */
    tssa_status *status = rule_prefix_shape((struct ir_op *)op, &prefix, type->rank, type->dims,
                                            &shape->rank, shape->dims);
    const bool good = !status && shape->rank >= 0;
    tssa_status_free(status);
    return good || grid_refuse(m, "the shape of what it reads is not known");
}

const char *grid_rule_refuses(const struct ir_op *op)
{
    const struct rule *rule = rule_of(op);
    for (uint32_t i = 0; i < rule->n_steps; i++) {
        const enum rule_kind kind = rule->steps[i].kind;
        if (!back[kind])
            return "data tells how much it moves";
        if (ir_op_is(op, IR_OP_assign) && !into[kind])
            return "it may write an element more than once";
    }
    return NULL;
}

bool grid_through(struct grid_maker *m, const struct ir_op *access, struct grid_place *place)
{
    const struct rule *rule = rule_of(access);
    const char *why = grid_rule_refuses(access);
    struct step s = {.op = access};
    if (why)
        return grid_refuse(m, why);
    if (!shape_after(m, access, rule->n_steps, &s.behind))
        return false;
    for (uint32_t i = rule->n_steps; i-- > 0 && !m->maker.why; s.behind = s.before) {
        s.rule = &rule->steps[i];
        if (!shape_after(m, access, i, &s.before))
            return false;
        back[s.rule->kind](m, &s, place);
    }
    return !m->maker.why;
}

bool grid_into(struct grid_maker *m, const struct ir_op *op, struct grid_place *place,
               uint32_t *is_there)
{
    const struct rule *rule = rule_of(op);
    struct step s = {.op = op};
    *is_there = GIR_NONE;
    for (uint32_t i = 0; i < rule->n_steps; i++)
        if (!into[rule->steps[i].kind])
            return grid_refuse(m, "it may write an element more than once");
    if (!shape_after(m, op, 0, &s.before))
        return false;
    for (uint32_t i = 0; i < rule->n_steps && !m->maker.why; i++, s.before = s.behind) {
        s.rule = &rule->steps[i];
        if (!shape_after(m, op, i + 1, &s.behind))
            return false;
        *is_there = grid_both(m, *is_there, into[s.rule->kind](m, &s, place));
    }
    return !m->maker.why;
}
