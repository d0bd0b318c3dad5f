/* SPDX-License-Identifier: Apache-2.0 */
/* Reads: each step becomes one operator where that is possible, slices in a row become one. */
#include <string.h>

#include "passes/lower/lower.h"

/* The steps of a rule from `at` on. */
struct reader {
    struct lowering *l;
    const struct rule *rule;
    struct ir_value *const *params;
    uint32_t at;
    struct ir_value *x; /* what was read so far */
};

typedef void (*read_fn)(struct reader *r, const struct rule_step *step);

static int64_t number(const struct rule_step *step, uint32_t i)
{
    return step->params[i].value;
}

static const struct rule_step *next_step(const struct reader *r)
{
    return r->at < r->rule->n_steps ? &r->rule->steps[r->at] : NULL;
}

/* ---- Gathers --------------------------------------------------------------------------------- */

static struct ir_value *index_of(struct lowering *l, struct ir_value *value)
{
    bool narrow = value->type->kind == TYPE_TENSOR && value->type->dtype == TSSA_INT32;
    return narrow ? value : lower_cast(l, value, TSSA_INT64);
}

/* How many axes from `axis` on the next step puts where a select took its axis away. */
static uint32_t axes_put_back(const struct reader *r, int64_t axis)
{
    const struct rule_step *next = next_step(r);
    if (!next || next->kind != RULE_UNSQUEEZE)
        return 0;
    for (uint32_t i = 0; i < next->n_params; i++)
        if (number(next, i) != axis + (int64_t)i)
            return 0;
    return next->n_params;
}

/* The only element of an axis: nothing is copied. */
static bool selects_only(const struct reader *r, const struct rule_step *step, int64_t axis)
{
    return !step->params[1].is_operand && (number(step, 1) == 0 || number(step, 1) == -1) &&
           lower_rank(r->x) > axis && dim_is(r->x->type->dims[axis], 1);
}

static void read_select(struct reader *r, const struct rule_step *step)
{
    struct lowering *l = r->l;
    int64_t axis = number(step, 0);
    uint32_t back = axes_put_back(r, axis);
    struct ir_value *index;
    if (selects_only(r, step, axis)) {
        if (back == 1)
            r->at++;
        else
            r->x = lower_squeeze(l, r->x, 1, &axis);
        return;
    }
    if (!step->params[1].is_operand) {
        index = back == 1 ? lower_list(l, number(step, 1)) : lower_int(l, number(step, 1));
        r->at += back == 1;
    } else {
        struct ir_value *param = r->params[number(step, 1)];
        int rank = lower_rank(param);
        if (rank >= 0 && (uint32_t)rank == back) {
            index = index_of(l, param);
            r->at += back > 0;
        } else {
            index = lower_scalar(l, param, back == 1 ? 1 : 0);
            r->at += back == 1;
        }
    }
    struct ir_value *const operands[] = {r->x, index};
    r->x = lower_emit_axis(l, IR_OP_Gather, 2, operands, axis);
}

static void read_gather(struct reader *r, const struct rule_step *step)
{
    struct ir_value *const operands[] = {r->x, index_of(r->l, r->params[number(step, 1)])};
    r->x = lower_emit_axis(r->l, IR_OP_Gather, 2, operands, number(step, 0));
}

/* ---- Slices ---------------------------------------------------------------------------------- */

/* Slices of different axes in a row are one operator. */
static void read_slice(struct reader *r, const struct rule_step *step)
{
    struct lowering *l = r->l;
    struct lower_number bounds[3][TSSA_MAX_RANK]; /* starts, ends, steps */
    int64_t axes[TSSA_MAX_RANK];
    bool seen[TSSA_MAX_RANK] = {false}, unit = true;
    int n = 0;
    for (;;) {
        axes[n] = number(step, 0);
        seen[axes[n]] = true;
        for (uint32_t k = 0; k < 3; k++)
            bounds[k][n] = lower_param(l, &step->params[1 + k], r->params);
        unit = unit && !bounds[2][n].value && bounds[2][n].number == 1;
        n++;
        step = next_step(r);
        if (!step || step->kind != RULE_SLICE || seen[number(step, 0)])
            break;
        r->at++;
    }
    struct ir_value *const operands[] = {
        r->x, lower_numbers(l, n, bounds[0]), lower_numbers(l, n, bounds[1]),
        lower_ints(l, 1, (size_t)n, axes), unit ? NULL : lower_numbers(l, n, bounds[2])};
    r->x = lower_emit(l, IR_OP_Slice, unit ? 4 : 5, operands);
}

static void read_span(struct reader *r, const struct rule_step *step)
{
    r->x = lower_read_span(r->l, r->x, (int)number(step, 0), step, r->params);
}

/* ---- Shapes ---------------------------------------------------------------------------------- */

static int read_numbers(const struct rule_step *step, int64_t *numbers)
{
    for (uint32_t i = 0; i < step->n_params; i++)
        numbers[i] = number(step, i);
    return (int)step->n_params;
}

static void read_permute(struct reader *r, const struct rule_step *step)
{
    int64_t perm[TSSA_MAX_RANK];
    int rank = read_numbers(step, perm);
    r->x = lower_transpose(r->l, r->x, rank, perm);
}

static void read_squeeze(struct reader *r, const struct rule_step *step)
{
    int64_t axes[TSSA_MAX_RANK];
    int n = read_numbers(step, axes);
    r->x = lower_squeeze(r->l, r->x, n, axes);
}

static void read_unsqueeze(struct reader *r, const struct rule_step *step)
{
    int64_t axes[TSSA_MAX_RANK];
    int n = read_numbers(step, axes);
    r->x = lower_unsqueeze(r->l, r->x, n, axes);
}

static void shape_param(struct reader *r, const struct rule_step *step, struct lower_shape *shape)
{
    shape->rank = (int)step->n_params;
    for (uint32_t i = 0; i < step->n_params; i++)
        shape->dims[i] = lower_param(r->l, &step->params[i], r->params);
}

static void read_reshape(struct reader *r, const struct rule_step *step)
{
    struct lower_shape shape;
    shape_param(r, step, &shape);
    r->x = lower_reshape(r->l, r->x, &shape);
}

static void read_list(struct reader *r, const struct rule_step *step, enum ir_op_id id)
{
    struct lower_shape shape;
    shape_param(r, step, &shape);
    struct ir_value *const operands[] = {r->x, lower_numbers(r->l, shape.rank, shape.dims)};
    r->x = lower_emit(r->l, id, 2, operands);
}

static void read_expand(struct reader *r, const struct rule_step *step)
{
    read_list(r, step, IR_OP_Expand);
}

static void read_tile(struct reader *r, const struct rule_step *step)
{
    read_list(r, step, IR_OP_Tile);
}

/* ---- Masks and diagonals --------------------------------------------------------------------- */

/* Axes [axis, axis + n) become one, of this size. */
static void merge_axes(struct reader *r, int64_t axis, int n, struct lower_number size)
{
    int rank = lower_rank(r->x);
    struct lower_shape shape = {.rank = rank - n + 1};
    for (int i = 0; i < shape.rank; i++)
        shape.dims[i] = i == axis ? size : lower_dim(r->l, r->x, i < axis ? i : i + n - 1);
    r->x = lower_rearrange(r->l, r->x, &shape);
}

static void read_mask(struct reader *r, const struct rule_step *step)
{
    struct lowering *l = r->l;
    struct ir_value *mask = r->params[number(step, 1)];
    int64_t axis = number(step, 0), rank = lower_rank(mask), size = 1, dim;
    if (rank < 1 || (rank > 1 && lower_rank(r->x) < 0)) {
        r->x = NULL;
        return;
    }
    if (rank > 1) {
        struct lower_number merged = {0};
        for (int i = 0; i < rank && size >= 0; i++)
            size = dim_is_const(mask->type->dims[i], &dim) ? size * dim : -1;
        merged.number = size;
        if (size < 0) {
            struct ir_value *count = lower_emit(l, IR_OP_Size, 1, &mask);
            merged.value = lower_scalar(l, count, 1);
        }
        merge_axes(r, axis, (int)rank, merged);
        mask = lower_flatten(l, mask);
    }
    struct ir_value *const operands[] = {r->x, mask};
    r->x = lower_emit_axis(l, IR_OP_Compress, 2, operands, axis);
}

/* The two axes of a diagonal go last, and become one. */
static void bring_last(struct reader *r, int64_t a, int64_t b)
{
    int rank = lower_rank(r->x), n = 0;
    int64_t perm[TSSA_MAX_RANK];
    for (int i = 0; i < rank; i++)
        if (i != a && i != b)
            perm[n++] = i;
    perm[n++] = a;
    perm[n] = b;
    r->x = lower_transpose(r->l, r->x, rank, perm);
}

static struct ir_value *binary(struct lowering *l, enum ir_op_id id, struct ir_value *a,
                               struct ir_value *b)
{
    struct ir_value *const operands[] = {a, b};
    return lower_emit(l, id, 2, operands);
}

/* max(0, min(rows - down, columns - right)) */
static struct ir_value *diagonal_length(struct lowering *l, const struct lower_number *rows,
                                        const struct lower_number *columns, int64_t down,
                                        int64_t right)
{
    struct ir_value *height = binary(l, IR_OP_Sub, lower_number_list(l, rows), lower_list(l, down));
    struct ir_value *width =
        binary(l, IR_OP_Sub, lower_number_list(l, columns), lower_list(l, right));
    return binary(l, IR_OP_Max, binary(l, IR_OP_Min, height, width), lower_list(l, 0));
}

/* In the row-major matrix every element is columns + 1 after the one before. */
static void read_diagonal(struct reader *r, const struct rule_step *step)
{
    struct lowering *l = r->l;
    int rank = lower_rank(r->x);
    int64_t offset = number(step, 2), down = offset < 0 ? -offset : 0,
            right = offset > 0 ? offset : 0;
    if (rank < 2) {
        r->x = NULL;
        return;
    }
    bring_last(r, number(step, 0), number(step, 1));
    struct lower_number rows = lower_dim(l, r->x, rank - 2), columns = lower_dim(l, r->x, rank - 1);
    struct ir_value *length = diagonal_length(l, &rows, &columns, down, right);
    struct lower_number size = {.number = rows.number * columns.number};
    struct ir_value *wide = lower_number_list(l, &columns);
    if (rows.value || columns.value)
        size =
            (struct lower_number){.value = binary(l, IR_OP_Mul, lower_number_list(l, &rows), wide)};
    struct ir_value *by = binary(l, IR_OP_Add, wide, lower_list(l, 1));
    struct ir_value *start =
        binary(l, IR_OP_Add, binary(l, IR_OP_Mul, wide, lower_list(l, down)), lower_list(l, right));
    /* A bound of an empty diagonal may lie beyond the end: it is clamped. */
    struct ir_value *end = binary(l, IR_OP_Add, start, binary(l, IR_OP_Mul, by, length));
    merge_axes(r, rank - 2, 2, size);
    struct ir_value *const operands[] = {r->x, start, end, lower_list(l, rank - 2), by};
    r->x = lower_emit(l, IR_OP_Slice, 5, operands);
}

static const read_fn readers[RULE_KIND_COUNT] = {
#define RULE(id, text, ...) [RULE_##id] = read_##text,
#include "ir/rule.def"
#undef RULE
};

struct ir_value *lower_access(struct lowering *l, struct ir_value *x, const struct rule *rule,
                              struct ir_value *const *params)
{
    struct reader r = {.l = l, .rule = rule, .params = params, .x = x};
    while (r.at < rule->n_steps && r.x && !l->status) {
        const struct rule_step *step = &rule->steps[r.at++];
        readers[step->kind](&r, step);
    }
    return l->status ? NULL : r.x;
}
