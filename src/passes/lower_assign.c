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
#define MAX_PIECES 32
#define MAX_PLACES 4096 /* of an axis that is written piece by piece */

struct writer {
    struct lowering *l;
    struct ir_value *x, *s;
    const struct rule *rule;
    struct ir_value *const *params;
    struct region region;
    /* Of a region that is a box, by axis of the base: is the source turned around to run forwards, and
     * which step of the rule alone cuts the axis. */
    bool is_box, turned[TSSA_MAX_RANK];
    const struct rule_step *dynamic[TSSA_MAX_RANK];
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
    struct ir_value *const from[] = {w->s, w->x};
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
    return axis->exact && dim_is_const(axis->start, start) && dim_is_const(axis->count, count);
}

/* ---- Places that are constants -------------------------------------------------------------------- */

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

/* Where the element at a place of an axis comes from: sources[source] at `at`. */
struct origin {
    uint32_t source;
    int64_t at;
};

/* An axis that is put together anew from sources, the base first. */
struct assembly {
    struct lowering *l;
    int axis;
    int64_t n; /* places */
    struct origin *origins;
    uint32_t n_sources;
    struct ir_value **sources;
};

static bool continues(const struct assembly *a, int64_t i)
{
    return i > 0 && a->origins[i].source == a->origins[i - 1].source &&
           a->origins[i].at == a->origins[i - 1].at + 1;
}

static struct ir_value *assemble_pieces(struct assembly *a)
{
    struct ir_value *parts[MAX_PIECES];
    uint32_t n = 0;
    for (int64_t i = 0, end; i < a->n; i = end) {
        const struct origin *from = &a->origins[i];
        for (end = i + 1; end < a->n && continues(a, end); end++)
            ;
        if (n == MAX_PIECES)
            return NULL;
        parts[n++] =
            lower_cut(a->l, a->sources[from->source], a->axis, from->at, from->at + end - i);
    }
    return lower_concat(a->l, n, parts, a->axis);
}

static int64_t count_pieces(const struct assembly *a)
{
    int64_t n = 0;
    for (int64_t i = 0; i < a->n; i++)
        n += !continues(a, i);
    return n;
}

/* From all sources that are used, one behind the other. */
static struct ir_value *assemble_gather(struct assembly *a, int64_t *places, int64_t *firsts)
{
    struct ir_value **used = a->sources; /* compacted in place */
    uint32_t n = 0;
    int64_t end = 0, size;
    for (uint32_t s = 0; s < a->n_sources; s++) {
        bool is_used = false;
        for (int64_t i = 0; i < a->n && !is_used; i++)
            is_used = a->origins[i].source == s;
        if (!is_used || a->l->status || lower_rank(a->sources[s]) <= a->axis ||
            !dim_is_const(a->sources[s]->type->dims[a->axis], &size))
            continue;
        firsts[s] = end;
        end += size;
        used[n++] = a->sources[s];
    }
    for (int64_t i = 0; i < a->n; i++)
        places[i] = firsts[a->origins[i].source] + a->origins[i].at;
    struct ir_value *const operands[] = {lower_concat(a->l, n, used, a->axis),
                                         lower_ints(a->l, 1, (size_t)a->n, places)};
    return lower_emit_axis(a->l, IR_OP_Gather, 2, operands, a->axis);
}

static struct ir_value *assemble(struct assembly *a)
{
    const tssa_allocator *allocator = a->l->graph->allocator;
    struct ir_value *y = NULL;
    if (a->l->status || a->n == 0)
        return a->sources[0];
    if (count_pieces(a) <= MAX_PIECES)
        return assemble_pieces(a);
    int64_t *places = allocator_calloc(allocator, (size_t)a->n, sizeof *places);
    int64_t *firsts = allocator_calloc(allocator, a->n_sources, sizeof *firsts);
    if (places && firsts)
        y = assemble_gather(a, places, firsts);
    else if (!a->l->status)
        a->l->status = status_out_of_memory();
    allocator_free(allocator, places);
    allocator_free(allocator, firsts);
    return y;
}

static tssa_status *assembly_init(struct assembly *a, struct lowering *l, struct ir_value *x,
                                  int axis, int64_t n, uint32_t n_writes)
{
    const tssa_allocator *allocator = l->graph->allocator;
    *a = (struct assembly){.l = l, .axis = axis, .n = n, .n_sources = 1};
    a->origins = allocator_calloc(allocator, (size_t)n + 1, sizeof *a->origins);
    a->sources = allocator_calloc(allocator, (size_t)n_writes + 1, sizeof *a->sources);
    TRY_ALLOC(a->origins);
    TRY_ALLOC(a->sources);
    a->sources[0] = x;
    for (int64_t i = 0; i < n; i++)
        a->origins[i].at = i;
    return NULL;
}

static void assembly_free(struct assembly *a)
{
    allocator_free(a->l->graph->allocator, a->origins);
    allocator_free(a->l->graph->allocator, a->sources);
}

static void assembly_write(struct assembly *a, const struct region_axis *at, struct ir_value *part)
{
    int64_t start = 0, count = 0;
    (void)const_axis(at, &start, &count);
    a->sources[a->n_sources] = part;
    for (int64_t i = 0; i < count; i++)
        a->origins[start + i * at->step] = (struct origin){a->n_sources, i};
    a->n_sources++;
}

static struct ir_value *write_pieces(struct writer *w, struct ir_value *x, struct ir_value *part,
                                     int axis)
{
    struct assembly a;
    struct ir_value *y = NULL;
    int64_t start, count, dim;
    if (!const_axis(&w->region.axes[axis], &start, &count) ||
        !dim_is_const(w->region.base[axis], &dim) || dim > MAX_PLACES)
        return NULL;
    tssa_status *status = assembly_init(&a, w->l, x, axis, dim, 1);
    if (!status) {
        assembly_write(&a, &w->region.axes[axis], part);
        y = assemble(&a);
    } else if (!w->l->status) {
        w->l->status = status;
    } else {
        tssa_status_free(status);
    }
    assembly_free(&a);
    return y;
}

/* ---- Places that a run tells ---------------------------------------------------------------------- */

/* Steps that cut axes of the base, as long as there is nothing else; a step that cuts one alone. */
static void find_dynamic(struct writer *w)
{
    int axis_of[TSSA_MAX_RANK], rank = w->region.base_rank;
    bool seen[TSSA_MAX_RANK] = {false};
    for (int i = 0; i < rank; i++)
        axis_of[i] = i;
    for (uint32_t i = 0; i < w->rule->n_steps; i++) {
        const struct rule_step *step = &w->rule->steps[i];
        if (step->kind != RULE_SELECT && step->kind != RULE_SLICE)
            return;
        int64_t at = step->params[0].value;
        int axis = axis_of[at];
        w->dynamic[axis] = seen[axis] ? NULL : step;
        seen[axis] = true;
        if (step->kind == RULE_SLICE)
            continue;
        rank--;
        memmove(axis_of + at, axis_of + at + 1, (size_t)(rank - at) * sizeof *axis_of);
    }
}

static const struct dim *param_dim(struct writer *w, const struct rule_param *param)
{
    return param->is_operand ? region_scalar(w->l->space, w->params[param->value])
                             : dim_const(&w->l->graph->dims, param->value);
}

static bool at_least(const struct dim *dim, int64_t value)
{
    return dim && dim->low >= value;
}

/* Is there a step that cuts the axis at [start, end), which needs no counting from the end? An index
 * may: it is made one that does not. */
static bool is_dynamic(struct writer *w, int axis)
{
    const struct rule_step *step = w->dynamic[axis];
    if (!step || step->kind == RULE_SELECT)
        return step != NULL;
    const struct dim *start = param_dim(w, &step->params[1]), *end = param_dim(w, &step->params[2]);
    return lower_is_number(param_dim(w, &step->params[3]), 1) && at_least(start, 0) &&
           at_least(dim_sub(&w->l->graph->dims, end, start), 0);
}

/* [start, end) as lists of one element. */
static void dynamic_bounds(struct writer *w, struct ir_value *x, int axis, struct ir_value **start,
                           struct ir_value **end)
{
    const struct rule_step *step = w->dynamic[axis];
    struct lower_number number = lower_param(w->l, &step->params[1], w->params);
    *start = lower_number_list(w->l, &number);
    if (step->kind == RULE_SLICE) {
        number = lower_param(w->l, &step->params[2], w->params);
        *end = lower_number_list(w->l, &number);
        return;
    }
    if (!at_least(param_dim(w, &step->params[1]), 0)) {
        struct lower_number dim = lower_dim(w->l, x, axis);
        *start = binary(w->l, IR_OP_Mod, *start, lower_number_list(w->l, &dim));
    }
    *end = binary(w->l, IR_OP_Add, *start, lower_list(w->l, 1));
}

static struct ir_value *cut(struct lowering *l, struct ir_value *x, int axis,
                            struct ir_value *start, struct ir_value *end)
{
    struct ir_value *const operands[] = {x, start, end, lower_list(l, axis)};
    return lower_emit(l, IR_OP_Slice, 4, operands);
}

/* ---- Rows ----------------------------------------------------------------------------------------- */

/* So many rows or more of the first axis, of which few are written: what stays is not copied twice. */
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
    if (!const_axis(at, &start, &count) || count > MANY_ROWS || !are_few_rows(w, count))
        return NULL;
    return column(w->l, start, at->step, count);
}

/* As many rows of a slice as there are: a run may have fewer than the slice asks for. */
static struct ir_value *sliced_rows(struct writer *w, struct ir_value *part)
{
    const struct rule_step *step = w->dynamic[0];
    int64_t count;
    if (!step || step->kind != RULE_SLICE || !is_dynamic(w, 0))
        return NULL;
    const struct dim *start = param_dim(w, &step->params[1]), *end = param_dim(w, &step->params[2]);
    if (!dim_is_const(dim_sub(&w->l->graph->dims, end, start), &count) || count < 1 ||
        count > MANY_ROWS || !are_few_rows(w, count))
        return NULL;
    struct lower_number first = lower_param(w->l, &step->params[1], w->params);
    struct ir_value *rows = column(w->l, first.value ? 0 : first.number, 1, count);
    if (first.value)
        rows = binary(w->l, IR_OP_Add, rows, first.value);
    struct lower_number there = lower_dim(w->l, part, 0);
    if (!there.value && there.number == count)
        return rows;
    return cut(w->l, rows, 0, lower_list(w->l, 0), lower_number_list(w->l, &there));
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
static bool is_in_place(const struct writer *w, const struct ir_value *x)
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
    if (rows && is_in_place(w, x))
        return scatter_in_place(w, x, rows, part);
    struct ir_value *const operands[] = {x, rows, part};
    return rows ? lower_emit(w->l, IR_OP_ScatterND, 3, operands) : NULL;
}

/* ---- What is around ------------------------------------------------------------------------------- */

/* x[:start], part, x[end:]; a start beyond the end leaves all of x and nothing else. */
static struct ir_value *write_around(struct writer *w, struct ir_value *x, struct ir_value *part,
                                     int axis)
{
    struct ir_value *start, *end;
    if (!is_dynamic(w, axis))
        return NULL;
    dynamic_bounds(w, x, axis, &start, &end);
    struct ir_value *const parts[] = {cut(w->l, x, axis, lower_list(w->l, 0), start), part,
                                      cut(w->l, x, axis, end, lower_list(w->l, INT64_MAX))};
    uint32_t first = lower_is_number(param_dim(w, &w->dynamic[axis]->params[1]), 0); /* nothing */
    return lower_concat(w->l, 3 - first, parts + first, axis);
}

static struct ir_value *write_axis(struct writer *w, struct ir_value *x, struct ir_value *part,
                                   int axis)
{
    static const write_axis_fn ways[] = {scatter_rows, write_between, write_pieces, write_around};
    struct ir_value *y = NULL;
    for (size_t i = 0; i < sizeof ways / sizeof *ways && !y && !w->l->status; i++)
        y = ways[i](w, x, part, axis);
    return y;
}

/* ---- Several axes --------------------------------------------------------------------------------- */

/* What x holds at the axis's places. */
static struct ir_value *read_axis(struct writer *w, struct ir_value *x, int axis)
{
    const struct region_axis *at = &w->region.axes[axis];
    int64_t start, count;
    struct ir_value *from, *to;
    if (const_axis(at, &start, &count)) {
        if (at->step == 1)
            return lower_cut(w->l, x, axis, start, start + count);
        struct ir_value *const operands[] = {x, lower_list(w->l, start),
                                             lower_list(w->l, start + count * at->step),
                                             lower_list(w->l, axis), lower_list(w->l, at->step)};
        return lower_emit(w->l, IR_OP_Slice, 5, operands);
    }
    if (!is_dynamic(w, axis))
        return NULL;
    dynamic_bounds(w, x, axis, &from, &to);
    return cut(w->l, x, axis, from, to);
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
static bool is_writable(struct writer *w, int n, const int *axes)
{
    for (int i = 0; i < n; i++) {
        const struct region_axis *at = &w->region.axes[axes[i]];
        int64_t start, count, dim;
        bool between = at->exact && at->step == 1 && dim_is_const(at->start, &start) &&
                       (dim_is_const(at->count, &count) ||
                        (n == 1 && dim_add(&w->l->graph->dims, at->start, at->count) ==
                                       w->region.base[axes[i]]));
        bool pieces = const_axis(at, &start, &count) &&
                      dim_is_const(w->region.base[axes[i]], &dim) && dim <= MAX_PLACES;
        if (!between && !pieces && !is_dynamic(w, axes[i]))
            return false;
    }
    return true;
}

/* An axis that is written backwards becomes one that is written forwards; its source is turned. */
static bool run_forwards(struct writer *w, int i)
{
    struct region_axis *at = &w->region.axes[i];
    struct dim_table *table = &w->l->graph->dims;
    if (lower_is_number(at->count, 1))
        at->step = 1;
    if (at->step > 0 || !at->exact)
        return false;
    const struct dim *way =
        dim_mul(table, dim_sub(table, at->count, dim_const(table, 1)), dim_const(table, at->step));
    at->start = dim_add(table, at->start, way);
    at->step = -at->step;
    return true;
}

static struct ir_value *turn(struct writer *w, struct ir_value *part, int axis)
{
    struct ir_value *const operands[] = {part, lower_list(w->l, -1), lower_list(w->l, INT64_MIN),
                                         lower_list(w->l, axis), lower_list(w->l, -1)};
    return lower_emit(w->l, IR_OP_Slice, 5, operands);
}

/* The source in the shape of the box, running forwards along each axis. */
static struct ir_value *forward_source(struct writer *w)
{
    struct ir_value *part = box_source(w);
    for (int i = 0; i < w->region.base_rank && part; i++)
        if (w->turned[i])
            part = turn(w, part, i);
    return part;
}

static int partial_axes(const struct region *region, int *axes)
{
    int n = 0;
    for (int i = 0; i < region->base_rank; i++)
        if (!is_whole_axis(region, i))
            axes[n++] = i;
    return n;
}

static struct ir_value *assign_box(struct writer *w)
{
    int axes[TSSA_MAX_RANK], n = w->is_box ? partial_axes(&w->region, axes) : 0;
    if (!w->is_box || !is_writable(w, n, axes))
        return NULL;
    struct ir_value *part = forward_source(w);
    return part ? write_box(w, w->x, part, n, axes) : NULL;
}

/* ---- Masks and rows ------------------------------------------------------------------------------- */

/* The only step, if it is of this kind; its param is an operand. */
static const struct rule_step *only_step(const struct writer *w, enum rule_kind kind)
{
    return w->rule->n_steps == 1 && w->rule->steps[0].kind == kind ? &w->rule->steps[0] : NULL;
}

/* mask ? a : b. Where is not made for BOOL in every runtime: logic says the same. */
static struct ir_value *choose(struct lowering *l, struct ir_value *mask, struct ir_value *a,
                               struct ir_value *b)
{
    struct ir_value *const operands[] = {mask, a, b};
    if (b->type->dtype != TSSA_BOOL)
        return lower_emit(l, IR_OP_Where, 3, operands);
    struct ir_value *outside = lower_emit(l, IR_OP_Not, 1, &mask);
    return binary(l, IR_OP_Or, binary(l, IR_OP_And, mask, a), binary(l, IR_OP_And, outside, b));
}

/* The source as it broadcasts to the base, when it is the same wherever the mask is true; else NULL. */
static struct ir_value *uniform_source(struct writer *w, int axis, int mask_rank)
{
    int64_t axes[TSSA_MAX_RANK];
    int region_rank = lower_rank(w->x) - mask_rank + 1;
    int at = axis - (region_rank - lower_rank(w->s)); /* of the source, that the mask's axis is */
    if (lower_rank(w->s) < 0 || lower_rank(w->s) > region_rank)
        return NULL;
    if (at < 0)
        return w->s;
    if (!lower_is_number(w->s->type->dims[at], 1))
        return NULL;
    for (int i = 0; i < mask_rank - 1; i++)
        axes[i] = at + i;
    return lower_unsqueeze(w->l, w->s, mask_rank - 1, axes);
}

/* One source wherever the mask is true, or its rows where the true ones are. */
static struct ir_value *assign_mask(struct writer *w)
{
    const struct rule_step *step = only_step(w, RULE_MASK);
    int rank = lower_rank(w->x), n = 0;
    int64_t axes[TSSA_MAX_RANK];
    if (!step || rank < 0)
        return NULL;
    struct ir_value *mask = w->params[step->params[1].value];
    int axis = (int)step->params[0].value, behind = axis + lower_rank(mask);
    if (lower_rank(mask) < 1 || behind > rank)
        return NULL;
    struct ir_value *s = uniform_source(w, axis, lower_rank(mask));
    for (int i = behind; i < rank; i++)
        axes[n++] = lower_rank(mask) + i - behind;
    if (s)
        return choose(w->l, lower_unsqueeze(w->l, mask, n, axes), s, w->x);
    s = axis == 0 ? full_source(w) : NULL;
    if (!s)
        return NULL;
    struct ir_value *places = lower_emit(w->l, IR_OP_NonZero, 1, &mask);
    struct ir_value *const operands[] = {
        w->x, lower_transpose(w->l, places, 2, (const int64_t[]){1, 0}), s};
    return lower_emit(w->l, IR_OP_ScatterND, 3, operands);
}

/* One element, row or slab, that numbers name, not all of them constants: their list is the index, and no
 * axis is needed around it or the source. */
static struct ir_value *assign_element(struct writer *w)
{
    struct lower_number numbers[TSSA_MAX_RANK];
    uint32_t n = w->rule->n_steps;
    bool constant = true;
    if (n < 1 || n > TSSA_MAX_RANK || w->region.rank < 0 || (n == 1 && is_in_place(w, w->x)))
        return NULL;
    for (uint32_t i = 0; i < n; i++) {
        const struct rule_step *step = &w->rule->steps[i];
        if (step->kind != RULE_SELECT || step->params[0].value != 0)
            return NULL;
        numbers[i] = lower_param(w->l, &step->params[1], w->params);
        constant = constant && !numbers[i].value;
    }
    struct ir_value *s = constant ? NULL : full_source(w);
    if (!s)
        return NULL;
    struct ir_value *const operands[] = {w->x, lower_numbers(w->l, (int)n, numbers), s};
    return lower_emit(w->l, IR_OP_ScatterND, 3, operands);
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

static tssa_status *open_writer(struct writer *w, struct lowering *l, struct ir_value *x,
                                struct ir_value *s, const struct rule *rule,
                                struct ir_value *const *params)
{
    *w = (struct writer){.l = l, .x = x, .s = s, .rule = rule, .params = params};
    TRY(region_make(l->space, x->type, rule, params, &w->region));
    w->is_box = is_box(&w->region);
    for (int i = 0; i < w->region.base_rank && w->is_box; i++)
        w->turned[i] = run_forwards(w, i);
    if (w->is_box)
        find_dynamic(w);
    return NULL;
}

struct ir_value *lower_assign(struct lowering *l, struct ir_value *x, struct ir_value *s,
                              const struct rule *rule, struct ir_value *const *params)
{
    static struct ir_value *(*const ways[])(struct writer * w) = {
        assign_all, assign_element, assign_box, assign_mask, assign_rows, assign_any};
    struct writer w;
    tssa_status *status = open_writer(&w, l, x, s, rule, params);
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

/* ---- Chains --------------------------------------------------------------------------------------- */

/* The one axis that an assign writes a constant part of, all others being whole; -1: it is not so. */
static tssa_status *constant_axis(struct lowering *l, const struct ir_op *op, int *axis)
{
    struct ir_value *params[IR_VARIADIC];
    struct writer w;
    int axes[TSSA_MAX_RANK];
    int64_t start, count, dim;
    for (uint32_t i = 0; i < rule_of(op)->n_operands; i++)
        params[i] = ir_operand(op, rule_first_operand(op) + i);
    TRY(open_writer(&w, l, ir_operand(op, 0), ir_operand(op, 1), rule_of(op), params));
    bool one = w.is_box && partial_axes(&w.region, axes) == 1 &&
               const_axis(&w.region.axes[axes[0]], &start, &count) &&
               dim_is_const(w.region.base[axes[0]], &dim) && dim <= MAX_PLACES;
    *axis = one ? axes[0] : -1;
    return NULL;
}

/* The assign whose base is this assign's result, which nothing else uses; NULL: none. */
static struct ir_op *next_write(const struct ir_op *op)
{
    const struct ir_use *use = op->results[0].uses;
    if (!use || use->next || !ir_op_is(use->user, IR_OP_assign) ||
        use->user->parent != op->parent || ir_operand(use->user, 0) != &op->results[0])
        return NULL;
    return use->user;
}

tssa_status *lower_is_chained(struct lowering *l, const struct ir_op *op, bool *chained)
{
    const struct ir_op *next = next_write(op);
    int axis, next_axis;
    *chained = false;
    if (!next)
        return NULL;
    TRY(constant_axis(l, op, &axis));
    if (axis < 0)
        return NULL;
    TRY(constant_axis(l, next, &next_axis));
    *chained = next_axis == axis;
    return NULL;
}

/* Puts one write into the assembly. */
static tssa_status *add_write(struct assembly *a, const struct ir_op *op)
{
    struct ir_value *params[IR_VARIADIC];
    struct writer w;
    for (uint32_t i = 0; i < rule_of(op)->n_operands; i++)
        params[i] = ir_operand(op, rule_first_operand(op) + i);
    TRY(open_writer(&w, a->l, ir_operand(op, 0), ir_operand(op, 1), rule_of(op), params));
    w.x = a->sources[0]; /* of the same shape; the assign between goes */
    assembly_write(a, &w.region.axes[a->axis], forward_source(&w));
    return a->l->status;
}

static tssa_status *write_chain(struct assembly *a, struct ir_op *const *ops, uint32_t n,
                                struct ir_value **y)
{
    for (uint32_t i = 0; i < n; i++)
        TRY(add_write(a, ops[i]));
    *y = assemble(a);
    return a->l->status;
}

tssa_status *lower_chain(struct lowering *l, struct ir_op *const *ops, uint32_t n,
                         struct ir_value **y)
{
    struct assembly a;
    int64_t dim = 0;
    int axis;
    TRY(constant_axis(l, ops[0], &axis));
    struct ir_value *x = ir_operand(ops[0], 0);
    (void)dim_is_const(x->type->dims[axis], &dim);
    tssa_status *status = assembly_init(&a, l, x, axis, dim, n);
    if (!status)
        status = write_chain(&a, ops, n, y);
    assembly_free(&a);
    return status;
}
