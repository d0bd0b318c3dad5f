/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes to a box of the base: one progression of coordinates per axis. The source is brought into
 * the shape of the box, and written one axis after the other: by a Concat of what is around it and
 * itself, or by ScatterND of rows.
 */
#include "passes/lower/lower_writer.h"

/* ---- Boxes ----------------------------------------------------------------------------------- */

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
        if (!used[i] && !dim_is(region->dims[i], 1))
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
    struct ir_value *s = lower_full_source(w);
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

/* ---- One axis -------------------------------------------------------------------------------- */

/* x with `part` at an axis's coordinates; NULL: it cannot be said here. */
typedef struct ir_value *(*write_axis_fn)(struct writer *w, struct ir_value *x,
                                          struct ir_value *part, int axis);

/* x[:start], part, x[end:] where the size of the axis need not be known. */
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

/* ---- Rows ------------------------------------------------------------------------------------ */

/*
 * So many rows or more of the first axis, of which few are written: what stays is not copied twice.
 */
#define MANY_ROWS 8
#define FEW_OF 4

/* Are few rows of many written? Where the number of rows is not known, there may be many. */
static bool are_few_rows(const struct writer *w, int64_t count)
{
    int64_t dim;
    if (!dim_is_const(w->region.base[0], &dim))
        return count <= FEW_OF;
    return dim >= MANY_ROWS && count * FEW_OF <= dim;
}

/* start, start + step, ... as a column, which ScatterND takes. */
static struct ir_value *column(struct lowering *l, int64_t start, int64_t step, int64_t count)
{
    int64_t rows[MANY_ROWS];
    for (int64_t i = 0; i < count; i++)
        rows[i] = start + i * step;
    struct ir_value *list = lower_ints(l, 1, (size_t)count, rows);
    return lower_unsqueeze(l, list, 1, (const int64_t[]){1});
}

static struct ir_value *constant_rows(struct writer *w)
{
    const struct region_axis *at = &w->region.axes[0];
    int64_t start, count;
    if (!lower_const_axis(at, &start, &count) || count > MANY_ROWS || !are_few_rows(w, count))
        return NULL;
    return column(w->l, start, at->step, count);
}

/* As many rows of a slice as there are: a run may have fewer than the slice asks for. */
static struct ir_value *sliced_rows(struct writer *w, struct ir_value *part)
{
    const struct rule_step *step = w->dynamic[0];
    int64_t count;
    if (!step || step->kind != RULE_SLICE || !lower_is_dynamic(w, 0))
        return NULL;
    const struct dim *start = lower_param_dim(w, &step->params[1]),
                     *end = lower_param_dim(w, &step->params[2]);
    if (!dim_is_const(dim_sub(&w->l->graph->dims, end, start), &count) || count < 1 ||
        count > MANY_ROWS || !are_few_rows(w, count))
        return NULL;
    struct lower_number first = lower_param(w->l, &step->params[1], w->params);
    struct ir_value *rows = column(w->l, first.value ? 0 : first.number, 1, count);
    if (first.value)
        rows = lower_binary(w->l, IR_OP_Add, rows, first.value);
    struct lower_number there = lower_dim(w->l, part, 0);
    if (!there.value && there.number == count)
        return rows;
    return lower_slice(w->l, rows, 0, lower_list(w->l, 0), lower_number_list(w->l, &there));
}

static struct ir_value *selected_row(struct writer *w)
{
    const struct rule_step *step = w->dynamic[0];
    if (!step || step->kind != RULE_SELECT || !step->params[1].is_operand)
        return NULL;
    struct ir_value *row = lower_scalar(w->l, w->params[step->params[1].value], 0);
    return lower_unsqueeze(w->l, row, 2, (const int64_t[]){0, 1});
}

/* A smaller tensor is copied in less time than another operator takes. */
#define LARGE_BASE 16384

static bool is_large(const struct ir_type *type)
{
    int64_t count = 1, dim;
    for (int i = 0; i < type->rank; i++)
        if (!dim_is_const(type->dims[i], &dim) || __builtin_mul_overflow(count, dim, &count))
            return true;
    return count >= LARGE_BASE;
}

/* Was the base made for this write alone? */
static bool is_own(const struct writer *w, const struct ir_value *x)
{
    return x->op && !ir_value_constant(x) && x->op->parent == w->l->op->parent && x->uses &&
           !x->uses->next && x->uses->user == w->l->op;
}

/* ScatterElements writes in place in ONNX Runtime where it may; ScatterND copies. */
bool lower_is_in_place(const struct writer *w, const struct ir_value *x)
{
    return lower_rank(x) == 2 && is_large(x->type) && is_own(w, x);
}

static struct ir_value *scatter_in_place(struct writer *w, struct ir_value *x,
                                         struct ir_value *rows, struct ir_value *part)
{
    struct ir_value *shape = lower_emit(w->l, IR_OP_Shape, 1, &part);
    struct ir_value *const expanded[] = {rows, shape};
    struct ir_value *const operands[] = {x, lower_emit(w->l, IR_OP_Expand, 2, expanded), part};
    return lower_emit_axis(w->l, IR_OP_ScatterElements, 3, operands, 0);
}

/* Rows of the first axis are scattered. */
static struct ir_value *scatter_rows(struct writer *w, struct ir_value *x, struct ir_value *part,
                                     int axis)
{
    if (axis != 0)
        return NULL;
    struct ir_value *rows = selected_row(w);
    rows = rows ? rows : constant_rows(w);
    rows = rows ? rows : sliced_rows(w, part);
    if (rows && lower_is_in_place(w, x))
        return scatter_in_place(w, x, rows, part);
    struct ir_value *const operands[] = {x, rows, part};
    return rows ? lower_emit(w->l, IR_OP_ScatterND, 3, operands) : NULL;
}

/* ---- What is around -------------------------------------------------------------------------- */

/* x[:start], part, x[end:]; a start beyond the end leaves all of x and nothing else. */
static struct ir_value *write_around(struct writer *w, struct ir_value *x, struct ir_value *part,
                                     int axis)
{
    struct ir_value *start, *end;
    if (!lower_is_dynamic(w, axis))
        return NULL;
    lower_dynamic_bounds(w, x, axis, &start, &end);
    struct ir_value *const parts[] = {lower_slice(w->l, x, axis, lower_list(w->l, 0), start), part,
                                      lower_slice(w->l, x, axis, end, lower_list(w->l, INT64_MAX))};
    uint32_t first = dim_is(lower_param_dim(w, &w->dynamic[axis]->params[1]), 0); /* nothing */
    return lower_concat(w->l, 3 - first, parts + first, axis);
}

static struct ir_value *write_axis(struct writer *w, struct ir_value *x, struct ir_value *part,
                                   int axis)
{
    static const write_axis_fn ways[] = {lower_write_span, scatter_rows, write_between,
                                         lower_write_pieces, write_around};
    struct ir_value *y = NULL;
    for (size_t i = 0; i < sizeof ways / sizeof *ways && !y && !w->l->status; i++)
        y = ways[i](w, x, part, axis);
    return y;
}

/* ---- Several axes ---------------------------------------------------------------------------- */

/* What x holds at the axis's places. */
static struct ir_value *read_axis(struct writer *w, struct ir_value *x, int axis)
{
    const struct region_axis *at = &w->region.axes[axis];
    int64_t start, count;
    struct ir_value *from, *to;
    if (lower_span_of(w, axis))
        return lower_read_span(w->l, x, axis, w->dynamic[axis], w->params);
    if (lower_const_axis(at, &start, &count)) {
        if (at->step == 1)
            return lower_cut(w->l, x, axis, start, start + count);
        struct ir_value *const operands[] = {x, lower_list(w->l, start),
                                             lower_list(w->l, start + count * at->step),
                                             lower_list(w->l, axis), lower_list(w->l, at->step)};
        return lower_emit(w->l, IR_OP_Slice, 5, operands);
    }
    if (!lower_is_dynamic(w, axis))
        return NULL;
    lower_dynamic_bounds(w, x, axis, &from, &to);
    return lower_slice(w->l, x, axis, from, to);
}

/*
 * Axes of the box that are not whole, the first one outermost; NULL: some cannot be written here.
 */
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
static bool is_writable(struct writer *w, int n, const int *axes)
{
    for (int i = 0; i < n; i++) {
        const struct region_axis *at = &w->region.axes[axes[i]];
        int64_t start, count, dim;
        bool between = at->exact && at->step == 1 && dim_is_const(at->start, &start) &&
                       (dim_is_const(at->count, &count) ||
                        (n == 1 && dim_add(&w->l->graph->dims, at->start, at->count) ==
                                       w->region.base[axes[i]]));
        if (!lower_span_of(w, axes[i]) && !between &&
            !lower_has_places(&w->region, axes[i], &dim) && !lower_is_dynamic(w, axes[i]))
            return false;
    }
    return true;
}

/* An axis that is written backwards becomes one that is written forwards; its source is turned. */
static bool run_forwards(struct writer *w, int i)
{
    struct region_axis *at = &w->region.axes[i];
    struct dim_table *table = &w->l->graph->dims;
    if (dim_is(at->count, 1))
        at->step = 1;
    if (at->step > 0 || !at->exact)
        return false;
    const struct dim *way =
        dim_mul(table, dim_sub(table, at->count, dim_const(table, 1)), dim_const(table, at->step));
    at->start = dim_add(table, at->start, way);
    at->step = -at->step;
    return true;
}

static void open_box(struct writer *w)
{
    w->is_box = is_box(&w->region);
    for (int i = 0; i < w->region.base_rank && w->is_box; i++)
        w->turned[i] = run_forwards(w, i);
    if (w->is_box)
        lower_find_dynamic(w);
}

tssa_status *lower_open_writer(struct writer *w, struct lowering *l, struct ir_value *x,
                               struct ir_value *s, const struct rule *rule,
                               struct ir_value *const *params)
{
    *w = (struct writer){.l = l, .x = x, .s = s, .rule = rule, .params = params};
    TRY(region_make(l->space, x->type, rule, params, &w->region));
    open_box(w);
    return NULL;
}

static struct ir_value *turn(struct writer *w, struct ir_value *part, int axis)
{
    struct ir_value *const operands[] = {part, lower_list(w->l, -1), lower_list(w->l, INT64_MIN),
                                         lower_list(w->l, axis), lower_list(w->l, -1)};
    return lower_emit(w->l, IR_OP_Slice, 5, operands);
}

struct ir_value *lower_forward_source(struct writer *w)
{
    struct ir_value *part = box_source(w);
    for (int i = 0; i < w->region.base_rank && part; i++)
        if (w->turned[i])
            part = turn(w, part, i);
    return part;
}

int lower_partial_axes(const struct region *region, int *axes)
{
    int n = 0;
    for (int i = 0; i < region->base_rank; i++)
        if (!is_whole_axis(region, i))
            axes[n++] = i;
    return n;
}

/* What a span asks for may not be there, even if it is as much as there is. */
static int axes_to_write(const struct writer *w, int *axes)
{
    int n = 0;
    for (int i = 0; i < w->region.base_rank; i++)
        if (!is_whole_axis(&w->region, i) || lower_span_of(w, i))
            axes[n++] = i;
    return n;
}

struct ir_value *lower_assign_box(struct writer *w)
{
    int axes[TSSA_MAX_RANK], n = w->is_box ? axes_to_write(w, axes) : 0;
    if (!w->is_box || !lower_spans_cut_alone(w) || !is_writable(w, n, axes))
        return NULL;
    struct ir_value *part = lower_forward_source(w);
    return part ? write_box(w, w->x, part, n, axes) : NULL;
}
