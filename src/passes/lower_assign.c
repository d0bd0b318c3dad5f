/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes. Where the region is a box of the base (one progression of coordinates per axis), the source is
 * brought into the shape of that box, and written one axis after the other: by a Concat of what is
 * around it and itself, by ScatterND of rows, by Where. Other regions are written by the offsets of their
 * elements, which the rule gives when it reads a tensor of all offsets.
 */
#include <string.h>

#include "passes/lower.h"

/* More pieces of a Concat than this cost more than a Gather from all of them. */
#define MAX_PIECES 16

struct writer {
    struct lowering *l;
    struct ir_value *x, *s;
    const struct rule *rule;
    struct ir_value *const *params;
    struct region region;
};

static struct ir_value *binary(struct lowering *l, enum ir_op_id id, struct ir_value *a,
                               struct ir_value *b)
{
    struct ir_value *const operands[] = {a, b};
    return lower_emit(l, id, 2, operands);
}

/* ---- The source ----------------------------------------------------------------------------------- */

static bool has_dims(const struct ir_value *value, int rank, const struct dim *const *dims)
{
    return lower_rank(value) == rank && rank >= 0 &&
           (rank == 0 || memcmp(value->type->dims, dims, (size_t)rank * sizeof *dims) == 0);
}

/* The number that a dim is, from a tensor that has it; false: none of the two has. */
static bool find_dim(struct writer *w, const struct dim *dim, struct lower_number *number)
{
    struct ir_value *const from[] = {w->x, w->s};
    *number = (struct lower_number){0};
    if (dim_is_const(dim, &number->number))
        return true;
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < lower_rank(from[k]); i++)
            if (from[k]->type->dims[i] == dim) {
                *number = lower_dim(w->l, from[k], i);
                return true;
            }
    return false;
}

/* The region's shape as a list. */
static struct ir_value *region_shape(struct writer *w)
{
    struct lower_number numbers[TSSA_MAX_RANK];
    bool found = w->region.rank >= 0;
    for (int i = 0; i < w->region.rank && found; i++)
        found = find_dim(w, w->region.dims[i], &numbers[i]);
    if (found)
        return lower_numbers(w->l, w->region.rank, numbers);
    struct ir_value *there = lower_access(w->l, w->x, w->rule, w->params);
    return there ? lower_emit(w->l, IR_OP_Shape, 1, &there) : NULL;
}

/* The source in the region's shape. */
static struct ir_value *full_source(struct writer *w)
{
    if (has_dims(w->s, w->region.rank, w->region.dims))
        return w->s;
    struct ir_value *const operands[] = {w->s, region_shape(w)};
    return operands[1] ? lower_emit(w->l, IR_OP_Expand, 2, operands) : NULL;
}

/* ---- Boxes ---------------------------------------------------------------------------------------- */

/* Every element of the base is in the region once at most, at a place that its axis alone tells. */
static bool is_box(const struct region *region)
{
    bool used[TSSA_MAX_RANK] = {false};
    if (region->base_rank < 0 || !region->mapped || region->single != REGION_YES)
        return false;
    for (int i = 0; i < region->base_rank; i++) {
        int result = region->axes[i].result;
        if (result >= 0 && used[result])
            return false;
        if (result >= 0)
            used[result] = true;
    }
    /* The region's other axes have one element. */
    for (int i = 0; i < region->rank; i++)
        if (!used[i] && !lower_is_number(region->dims[i], 1))
            return false;
    return true;
}

/* The source with an axis for each axis of the base. */
static struct ir_value *box_source(struct writer *w)
{
    const struct region *region = &w->region;
    int64_t perm[TSSA_MAX_RANK], axes[TSSA_MAX_RANK];
    bool used[TSSA_MAX_RANK] = {false};
    int n = 0, n_axes = 0;
    struct ir_value *s = full_source(w);
    for (int i = 0; i < region->base_rank; i++)
        if (region->axes[i].result >= 0)
            used[region->axes[i].result] = true;
    for (int i = 0; i < region->rank; i++)
        if (!used[i])
            axes[n_axes++] = i;
    if (!s)
        return NULL;
    s = lower_squeeze(w->l, s, n_axes, axes);
    n_axes = 0;
    for (int i = 0; i < region->base_rank; i++) {
        int result = region->axes[i].result;
        if (result < 0) {
            axes[n_axes++] = i;
            continue;
        }
        perm[n] = 0; /* its place among those that are left */
        for (int r = 0; r < result; r++)
            perm[n] += used[r];
        n++;
    }
    s = lower_transpose(w->l, s, n, perm);
    return lower_unsqueeze(w->l, s, n_axes, axes);
}

static bool is_whole_axis(const struct region *region, int i)
{
    const struct region_axis *axis = &region->axes[i];
    return axis->exact && axis->step == 1 && axis->count == region->base[i];
}

/* ---- One axis ------------------------------------------------------------------------------------- */

/* x with `part` at an axis's coordinates; NULL: it cannot be said here. */
typedef struct ir_value *(*write_axis_fn)(struct writer *w, struct ir_value *x,
                                          struct ir_value *part, int axis);

static bool const_axis(const struct region_axis *axis, int64_t *start, int64_t *count)
{
    return dim_is_const(axis->start, start) && dim_is_const(axis->count, count);
}

/* x[:start], part, x[end:] */
static struct ir_value *write_between(struct writer *w, struct ir_value *x, struct ir_value *part,
                                      int axis)
{
    const struct region_axis *at = &w->region.axes[axis];
    int64_t start, count;
    struct ir_value *parts[3];
    uint32_t n = 0;
    if (at->step != 1 || !at->exact || !dim_is_const(at->start, &start))
        return NULL;
    const struct dim *end = dim_add(&w->l->graph->dims, at->start, at->count);
    bool to_end = end == w->region.base[axis];
    if (!to_end && !dim_is_const(at->count, &count))
        return NULL;
    if (start > 0)
        parts[n++] = lower_cut(w->l, x, axis, 0, start);
    parts[n++] = part;
    if (!to_end)
        parts[n++] = lower_cut(w->l, x, axis, start + count, INT64_MAX);
    return lower_concat(w->l, n, parts, axis);
}

/* Pieces of x and of the part in turns. */
static struct ir_value *write_pieces(struct writer *w, struct ir_value *x, struct ir_value *part,
                                     int axis)
{
    const struct region_axis *at = &w->region.axes[axis];
    int64_t start, count, from = 0;
    struct ir_value *parts[2 * MAX_PIECES + 1];
    uint32_t n = 0;
    if (!at->exact || !const_axis(at, &start, &count) || count > MAX_PIECES)
        return NULL;
    for (int64_t i = 0; i < count; i++) {
        int64_t place = start + i * at->step;
        if (place > from)
            parts[n++] = lower_cut(w->l, x, axis, from, place);
        parts[n++] = lower_cut(w->l, part, axis, i, i + 1);
        from = place + 1;
    }
    if (!lower_is_number(w->region.base[axis], from))
        parts[n++] = lower_cut(w->l, x, axis, from, INT64_MAX);
    return lower_concat(w->l, n, parts, axis);
}

/* A Gather from both, one behind the other. */
static struct ir_value *write_gather(struct writer *w, struct ir_value *x, struct ir_value *part,
                                     int axis)
{
    const struct region_axis *at = &w->region.axes[axis];
    int64_t start, count, dim;
    if (!at->exact || !const_axis(at, &start, &count) ||
        !dim_is_const(w->region.base[axis], &dim) || dim > INT16_MAX || count < 1)
        return NULL;
    int64_t *from = allocator_calloc(w->l->graph->allocator, (size_t)dim, sizeof *from);
    if (!from) {
        w->l->status = w->l->status ? w->l->status : status_out_of_memory();
        return NULL;
    }
    for (int64_t i = 0; i < dim; i++)
        from[i] = i;
    for (int64_t i = 0; i < count; i++)
        from[start + i * at->step] = dim + i;
    struct ir_value *const both[] = {x, part};
    struct ir_value *const operands[] = {lower_concat(w->l, 2, both, axis),
                                         lower_ints(w->l, 1, (size_t)dim, from)};
    allocator_free(w->l->graph->allocator, from);
    return lower_emit_axis(w->l, IR_OP_Gather, 2, operands, axis);
}

/* The step of the rule that takes an axis away at a place that only the run knows. */
static const struct rule_step *dynamic_select(const struct writer *w, int axis)
{
    if (w->rule->n_steps == 0 || w->rule->steps[0].kind != RULE_SELECT)
        return NULL;
    const struct rule_step *step = &w->rule->steps[0];
    return step->params[0].value == axis && step->params[1].is_operand ? step : NULL;
}

/* Rows of the first axis: ScatterND with the smallest indices. */
static struct ir_value *scatter_row(struct writer *w, struct ir_value *x, struct ir_value *part,
                                    int axis)
{
    const struct rule_step *step = dynamic_select(w, axis);
    if (!step || axis != 0)
        return NULL;
    struct lower_number index = lower_param(w->l, &step->params[1], w->params);
    struct ir_value *row = lower_number_list(w->l, &index);
    struct ir_value *const operands[] = {x, lower_unsqueeze(w->l, row, 1, (const int64_t[]){0}),
                                         part};
    return lower_emit(w->l, IR_OP_ScatterND, 3, operands);
}

/* 0, 1, ... along an axis of x, with the rank that x has from there on. */
static struct ir_value *positions(struct writer *w, struct ir_value *x, int axis)
{
    struct lower_number dim = lower_dim(w->l, x, axis);
    int64_t axes[TSSA_MAX_RANK];
    int n = 0;
    struct ir_value *end = dim.value ? lower_squeeze(w->l, dim.value, 1, (const int64_t[]){0})
                                     : lower_int(w->l, dim.number);
    struct ir_value *const range[] = {lower_int(w->l, 0), end, lower_int(w->l, 1)};
    for (int i = axis + 1; i < lower_rank(x); i++)
        axes[n++] = i - axis;
    return lower_unsqueeze(w->l, lower_emit(w->l, IR_OP_Range, 3, range), n, axes);
}

/* Where the position along the axis is the one. */
static struct ir_value *write_where(struct writer *w, struct ir_value *x, struct ir_value *part,
                                    int axis)
{
    const struct rule_step *step = dynamic_select(w, axis);
    if (!step)
        return NULL;
    struct ir_value *index = lower_scalar(w->l, w->params[step->params[1].value], 0);
    struct ir_value *at = positions(w, x, axis);
    struct ir_value *mask = binary(w->l, IR_OP_Equal, at, index);
    const struct dim *scalar = region_scalar(w->l->space, w->params[step->params[1].value]);
    if (!scalar || scalar->low < 0) { /* it may count from the end */
        struct lower_number dim = lower_dim(w->l, x, axis);
        struct ir_value *back = binary(w->l, IR_OP_Sub, at, lower_number_list(w->l, &dim));
        mask = binary(w->l, IR_OP_Or, mask, binary(w->l, IR_OP_Equal, back, index));
    }
    struct ir_value *const operands[] = {mask, part, x};
    return lower_emit(w->l, IR_OP_Where, 3, operands);
}

static struct ir_value *write_axis(struct writer *w, struct ir_value *x, struct ir_value *part,
                                   int axis)
{
    static const write_axis_fn ways[] = {write_between, write_pieces, write_gather, scatter_row,
                                         write_where};
    struct ir_value *y = NULL;
    for (size_t i = 0; i < sizeof ways / sizeof *ways && !y && !w->l->status; i++)
        y = ways[i](w, x, part, axis);
    return y;
}

/* x[start:end:step] of an axis whose coordinates are constants. */
static struct ir_value *read_axis(struct writer *w, struct ir_value *x, int axis)
{
    const struct region_axis *at = &w->region.axes[axis];
    int64_t start, count;
    if (!at->exact || !const_axis(at, &start, &count))
        return NULL;
    if (at->step == 1)
        return lower_cut(w->l, x, axis, start, start + count);
    struct ir_value *const operands[] = {x, lower_list(w->l, start),
                                         lower_list(w->l, start + count * at->step),
                                         lower_list(w->l, axis), lower_list(w->l, at->step)};
    return lower_emit(w->l, IR_OP_Slice, 5, operands);
}

/* Axes of the box that are not whole, the first one outermost; NULL: some cannot be written here. */
static struct ir_value *write_box(struct writer *w, struct ir_value *x, struct ir_value *part,
                                  int n, const int *axes)
{
    if (n == 0)
        return part;
    if (n == 1)
        return write_axis(w, x, part, axes[0]);
    struct ir_value *inner = read_axis(w, x, axes[0]);
    if (inner)
        inner = write_box(w, inner, part, n - 1, axes + 1);
    return inner ? write_axis(w, x, inner, axes[0]) : NULL;
}

/* Tells whether the axes can be written, without making anything. */
static bool is_writable(const struct writer *w, int n, const int *axes)
{
    for (int i = 0; i < n; i++) {
        const struct region_axis *at = &w->region.axes[axes[i]];
        int64_t start, count, dim;
        bool known = at->exact && const_axis(at, &start, &count);
        bool between = at->exact && at->step == 1 && dim_is_const(at->start, &start) &&
                       (dim_is_const(at->count, &count) || n == 1);
        bool pieces = known && (count <= MAX_PIECES ||
                                (dim_is_const(w->region.base[axes[i]], &dim) && dim <= INT16_MAX));
        bool dynamic = n == 1 && dynamic_select(w, axes[i]);
        if (!between && !pieces && !dynamic)
            return false;
    }
    return true;
}

/* An axis that is written backwards becomes one that is written forwards; its source is turned. */
static bool runs_forwards(struct writer *w, int i)
{
    struct region_axis *at = &w->region.axes[i];
    struct dim_table *table = &w->l->graph->dims;
    if (lower_is_number(at->count, 1))
        at->step = 1;
    if (at->step > 0 || !at->exact)
        return true;
    const struct dim *way =
        dim_mul(table, dim_sub(table, at->count, dim_const(table, 1)), dim_const(table, at->step));
    at->start = dim_add(table, at->start, way);
    at->step = -at->step;
    return false;
}

static struct ir_value *turn(struct writer *w, struct ir_value *part, int axis)
{
    struct ir_value *const operands[] = {part, lower_list(w->l, -1), lower_list(w->l, INT64_MIN),
                                         lower_list(w->l, axis), lower_list(w->l, -1)};
    return lower_emit(w->l, IR_OP_Slice, 5, operands);
}

static struct ir_value *assign_box(struct writer *w)
{
    int axes[TSSA_MAX_RANK], n = 0;
    bool turned[TSSA_MAX_RANK];
    if (!is_box(&w->region))
        return NULL;
    for (int i = 0; i < w->region.base_rank; i++)
        turned[i] = !runs_forwards(w, i);
    for (int i = 0; i < w->region.base_rank; i++)
        if (!is_whole_axis(&w->region, i))
            axes[n++] = i;
    if (!is_writable(w, n, axes))
        return NULL;
    struct ir_value *part = box_source(w);
    for (int i = 0; i < w->region.base_rank && part; i++)
        if (turned[i])
            part = turn(w, part, i);
    return part ? write_box(w, w->x, part, n, axes) : NULL;
}

/* ---- Masks and rows ------------------------------------------------------------------------------- */

/* The only step, if it is of this kind; its param is an operand. */
static const struct rule_step *only_step(const struct writer *w, enum rule_kind kind)
{
    return w->rule->n_steps == 1 && w->rule->steps[0].kind == kind ? &w->rule->steps[0] : NULL;
}

/* A source of one element where the mask is true. */
static struct ir_value *assign_mask(struct writer *w)
{
    const struct rule_step *step = only_step(w, RULE_MASK);
    int rank = lower_rank(w->x), n = 0;
    int64_t axes[TSSA_MAX_RANK];
    if (!step || rank < 0 || lower_rank(w->s) < 0)
        return NULL;
    for (int i = 0; i < lower_rank(w->s); i++)
        if (!lower_is_number(w->s->type->dims[i], 1))
            return NULL;
    struct ir_value *mask = w->params[step->params[1].value];
    int first = (int)step->params[0].value + lower_rank(mask);
    if (lower_rank(mask) < 1 || first > rank)
        return NULL;
    for (int i = first; i < rank; i++)
        axes[n++] = lower_rank(mask) + i - first;
    mask = lower_unsqueeze(w->l, mask, n, axes);
    const struct lower_shape scalar = {0};
    struct ir_value *const operands[] = {
        mask, lower_rank(w->s) ? lower_reshape(w->l, w->s, &scalar) : w->s, w->x};
    return lower_emit(w->l, IR_OP_Where, 3, operands);
}

/* Rows by an index tensor. */
static struct ir_value *assign_rows(struct writer *w)
{
    const struct rule_step *step = only_step(w, RULE_GATHER);
    if (!step || step->params[0].value != 0)
        return NULL;
    struct ir_value *indices = lower_cast(w->l, w->params[step->params[1].value], TSSA_INT64);
    int rank = lower_rank(indices);
    struct ir_value *s = rank >= 0 ? full_source(w) : NULL;
    if (!s)
        return NULL;
    struct ir_value *const operands[] = {
        w->x, lower_unsqueeze(w->l, indices, 1, (const int64_t[]){rank}), s};
    return lower_emit(w->l, IR_OP_ScatterND, 3, operands);
}

/* ---- Any region ----------------------------------------------------------------------------------- */

/* All of the base: the source, put back into its shape. */
static struct ir_value *assign_all(struct writer *w)
{
    const struct rule *inverse = NULL;
    if (region_is_whole(w->l->space, &w->region) != REGION_YES)
        return NULL;
    tssa_status *status = rule_invert(w->l->graph, w->x->type, w->rule, &inverse);
    if (status) {
        w->l->status = status;
        return NULL;
    }
    struct ir_value *s = inverse ? full_source(w) : NULL;
    return s ? lower_access(w->l, s, inverse, NULL) : NULL;
}

static struct ir_value *like(struct writer *w, struct ir_value *flat)
{
    struct lower_shape shape = {.rank = lower_rank(w->x)};
    for (int i = 0; i < shape.rank; i++)
        shape.dims[i] = lower_dim(w->l, w->x, i);
    return shape.rank == 1 ? flat : lower_rearrange(w->l, flat, &shape);
}

/* By offsets, which the rule reads from 0, 1, ... in the shape of the base. */
static struct ir_value *assign_any(struct writer *w)
{
    struct lowering *l = w->l;
    if (lower_rank(w->x) < 0)
        return NULL;
    struct ir_value *size = lower_emit(l, IR_OP_Size, 1, &w->x);
    struct ir_value *const range[] = {lower_int(l, 0), size, lower_int(l, 1)};
    struct ir_value *all = like(w, lower_emit(l, IR_OP_Range, 3, range));
    struct ir_value *offsets = lower_access(l, all, w->rule, w->params);
    if (!offsets)
        return NULL;
    struct ir_value *s = w->s;
    if (!has_dims(s, lower_rank(offsets), offsets->type->dims)) {
        struct ir_value *const operands[] = {s, lower_emit(l, IR_OP_Shape, 1, &offsets)};
        s = lower_emit(l, IR_OP_Expand, 2, operands);
    }
    struct ir_value *const column[] = {offsets, lower_ints(l, 1, 2, (const int64_t[]){-1, 1})};
    struct ir_value *const operands[] = {
        lower_flatten(l, w->x), lower_emit(l, IR_OP_Reshape, 2, column), lower_flatten(l, s)};
    return like(w, lower_emit(l, IR_OP_ScatterND, 3, operands));
}

struct ir_value *lower_assign(struct lowering *l, struct ir_value *x, struct ir_value *s,
                              const struct rule *rule, struct ir_value *const *params)
{
    static struct ir_value *(*const ways[])(struct writer * w) = {
        assign_all, assign_box, assign_mask, assign_rows, assign_any};
    struct writer w = {.l = l, .x = x, .s = s, .rule = rule, .params = params};
    tssa_status *status = region_make(l->space, x->type, rule, params, &w.region);
    struct ir_value *y = NULL;
    if (status) {
        l->status = status;
        return NULL;
    }
    if (w.region.rank >= 0 && region_is_empty(&w.region))
        return x;
    for (size_t i = 0; i < sizeof ways / sizeof *ways && !y && !l->status; i++)
        y = ways[i](&w);
    return l->status ? NULL : y;
}
