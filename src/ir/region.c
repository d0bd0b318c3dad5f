/* SPDX-License-Identifier: Apache-2.0 */
/* Regions: SSA scalars as dims, and the walk over a rule's steps. */
#include "ir/region.h"

#include <string.h>

#include "ir/wrap.h"

/* ---- Scalars -------------------------------------------------------------------------------------- */

/* Chains of arithmetic on one scalar that are longer are not looked through. */
#define MAX_DEPTH 64

void region_space_init(struct region_space *space, struct ir_graph *graph)
{
    *space = (struct region_space){.graph = graph};
    map_init(&space->symbols, graph->allocator);
}

void region_space_free(struct region_space *space)
{
    allocator_free(space->graph->allocator, space->scalars);
    map_free(&space->symbols);
}

static bool reserve(struct region_space *space, size_t n)
{
    if (n <= space->n_scalars)
        return true;
    if (n < 2 * space->n_scalars)
        n = 2 * space->n_scalars;
    const tssa_allocator *allocator = space->graph->allocator;
    const struct dim **grown = allocator_calloc(allocator, n, sizeof *grown);
    if (!grown)
        return false;
    if (space->n_scalars)
        memcpy(grown, space->scalars, space->n_scalars * sizeof *grown);
    allocator_free(allocator, space->scalars);
    space->scalars = grown;
    space->n_scalars = n;
    return true;
}

static tssa_dtype dtype_of(const struct ir_value *value)
{
    return value->type->kind == TYPE_TENSOR ? value->type->dtype : TSSA_UNDEFINED;
}

/* An op that hands its operand's only element on. */
static bool is_transparent(const struct ir_op *op)
{
    switch (op->info->id) {
    case IR_OP_Identity:
    case IR_OP_Reshape:
    case IR_OP_Squeeze:
    case IR_OP_Unsqueeze:
    case IR_OP_Flatten:
        return true;
    case IR_OP_Cast: /* narrower integers may wrap */
        return dtype_of(&op->results[0]) == TSSA_INT64 &&
               (dtype_of(ir_operand(op, 0)) == TSSA_INT32 ||
                dtype_of(ir_operand(op, 0)) == TSSA_INT64);
    default:
        return false;
    }
}

static const struct dim *scalar(struct region_space *space, const struct ir_value *value,
                                int depth);

typedef const struct dim *(*combine_fn)(struct dim_table *table, const struct dim *a,
                                        const struct dim *b);

static combine_fn combination(const struct ir_op *op)
{
    if (dtype_of(&op->results[0]) != TSSA_INT64) /* the others wrap within the range of indices */
        return NULL;
    if (ir_op_is(op, IR_OP_Add))
        return dim_add;
    if (ir_op_is(op, IR_OP_Sub))
        return dim_sub;
    return ir_op_is(op, IR_OP_Mul) ? dim_mul : NULL;
}

static const struct dim *new_symbol(struct region_space *space, const struct ir_value *value,
                                    const char *hint)
{
    const struct dim *dim = dim_fresh(&space->graph->dims, hint);
    /* The map never changes a value. */
    if (!dim || !map_put(&space->symbols, &dim->id, sizeof dim->id, (void *)(uintptr_t)value))
        return NULL;
    return dim;
}

static const struct dim *new_scalar(struct region_space *space, const struct ir_value *value,
                                    int depth)
{
    struct dim_table *table = &space->graph->dims;
    const struct ir_op *op = value->op;
    if (value->known && value->known->count == 1 && value->known->elements[0])
        return value->known->elements[0];
    if (value->block && value->index == 0 && value->block->owner &&
        ir_op_is(value->block->owner, IR_OP_Loop))
        return new_symbol(space, value, "counter");
    if (op && op->n_results == 1 && depth < MAX_DEPTH && ir_operand(op, 0)) {
        if (is_transparent(op))
            return scalar(space, ir_operand(op, 0), depth + 1);
        combine_fn combine = combination(op);
        if (combine && ir_operand(op, 1)) {
            const struct dim *dim = combine(table, scalar(space, ir_operand(op, 0), depth + 1),
                                            scalar(space, ir_operand(op, 1), depth + 1));
            if (!dim || wrap_never_as_index(space->graph, dim))
                return dim;
        }
    }
    return new_symbol(space, value, "any");
}

static const struct dim *scalar(struct region_space *space, const struct ir_value *value, int depth)
{
    if (!reserve(space, (size_t)value->id + 1))
        return NULL;
    if (space->scalars[value->id])
        return space->scalars[value->id];
    const struct dim *dim = new_scalar(space, value, depth);
    space->scalars[value->id] = dim;
    return dim;
}

const struct dim *region_scalar(struct region_space *space, const struct ir_value *value)
{
    return scalar(space, value, 0);
}

/* ---- The walk ------------------------------------------------------------------------------------- */

/* One axis of the region on its way. */
struct walk_axis {
    const struct dim *dim, *stride; /* stride: of the row-major base, while the region is strided */
    int id;      /* base axes whose `result` this is are walked along it; none: a broadcast */
    bool opaque; /* what it walks along is not a plain progression */
};

struct walk {
    struct region_space *space;
    struct dim_table *table;
    struct region *region;
    int rank; /* -1: nothing is known any more */
    struct walk_axis axes[2 * TSSA_MAX_RANK];
    int n_ids;
};

typedef tssa_status *(*step_fn)(struct walk *walk, const struct rule_step *step);

#define LOST (-2) /* the `result` of a base axis that some opaque axis moves along */

static const struct dim *constant(const struct walk *walk, int64_t value)
{
    return dim_const(walk->table, value);
}

static bool is_number(const struct dim *dim, int64_t value)
{
    int64_t number;
    return dim_is_const(dim, &number) && number == value;
}

static bool at_least(const struct dim *dim, int64_t value)
{
    return dim && dim->low >= value;
}

static const struct dim *param(const struct walk *walk, const struct rule_step *step, uint32_t i)
{
    const struct rule_param *p = &step->params[i];
    return p->is_operand ? region_scalar(walk->space, walk->region->params[p->value])
                         : constant(walk, p->value);
}

static bool give_up(struct walk *walk)
{
    walk->rank = -1;
    return false;
}

static bool has_axis(struct walk *walk, int64_t axis)
{
    return axis < walk->rank || give_up(walk);
}

static void remove_axis(struct walk *walk, int64_t axis)
{
    walk->rank--;
    memmove(walk->axes + axis, walk->axes + axis + 1,
            (size_t)(walk->rank - axis) * sizeof *walk->axes);
}

static void insert_axis(struct walk *walk, int64_t axis, struct walk_axis new)
{
    memmove(walk->axes + axis + 1, walk->axes + axis,
            (size_t)(walk->rank - axis) * sizeof *walk->axes);
    walk->axes[axis] = new;
    walk->rank++;
}

/* An axis that moves along nothing. */
static struct walk_axis broadcast_axis(struct walk *walk, const struct dim *dim)
{
    return (struct walk_axis){.dim = dim, .stride = constant(walk, 0), .id = walk->n_ids++};
}

/* What was walked along the axis stands still, or is not a plain walk. */
static void detach(struct walk *walk, int id, int result)
{
    for (int i = 0; i < walk->region->base_rank; i++) {
        struct region_axis *axis = &walk->region->axes[i];
        if (axis->result != id)
            continue;
        axis->result = result;
        if (result == -1)
            axis->count = constant(walk, 1);
    }
}

static bool is_broadcast(const struct walk *walk, const struct walk_axis *axis)
{
    for (int i = 0; i < walk->region->base_rank; i++)
        if (walk->region->axes[i].result == axis->id)
            return false;
    return !axis->opaque;
}

/* Each element is there `count` times as often. */
static void repeated(struct walk *walk, const struct dim *count)
{
    struct region *region = walk->region;
    if (!count || count->high > 1)
        region->single =
            at_least(count, 2) && region->single != REGION_UNKNOWN ? REGION_NO : REGION_UNKNOWN;
}

/* The axis is about to be no plain one: what it repeats must be told now. */
static void account(struct walk *walk, const struct walk_axis *axis)
{
    if (is_broadcast(walk, axis))
        repeated(walk, axis->dim);
}

static void make_opaque(struct walk *walk, struct walk_axis *axis)
{
    account(walk, axis);
    detach(walk, axis->id, LOST);
    axis->opaque = true;
    axis->id = walk->n_ids++;
    walk->region->mapped = false;
}

/* Coordinates of the base axes along `axis` become start + by * ...; the offset follows. */
static void move_start(struct walk *walk, const struct walk_axis *axis, const struct dim *by)
{
    struct region *region = walk->region;
    for (int i = 0; i < region->base_rank; i++) {
        struct region_axis *base = &region->axes[i];
        if (base->result == axis->id)
            base->start = dim_add(walk->table, base->start,
                                  dim_mul(walk->table, by, constant(walk, base->step)));
    }
    region->offset = dim_add(walk->table, region->offset, dim_mul(walk->table, by, axis->stride));
}

/* Some elements of the region may be gone: of an opaque axis it is not known which. */
static void narrowed(struct walk *walk, const struct walk_axis *axis)
{
    struct region *region = walk->region;
    if (!axis->opaque)
        return;
    region->exact = false;
    if (region->single == REGION_NO)
        region->single = REGION_UNKNOWN;
}

static tssa_status *step_select(struct walk *walk, const struct rule_step *step)
{
    int64_t at = step->params[0].value, value;
    if (!has_axis(walk, at))
        return NULL;
    struct walk_axis axis = walk->axes[at];
    const struct dim *index = param(walk, step, 1);
    TRY_ALLOC(index);
    if (dim_is_const(index, &value) && value < 0)
        index = dim_add(walk->table, index, axis.dim);
    else if (index->low < 0) /* within -dim and dim, or the run fails */
        index = dim_mod(walk->table, index, axis.dim);
    narrowed(walk, &axis);
    move_start(walk, &axis, index);
    for (int i = 0; i < walk->region->base_rank; i++)
        if (walk->region->axes[i].result == axis.id)
            walk->region->axes[i].exact = true; /* the one coordinate is there */
    detach(walk, axis.id, -1);
    remove_axis(walk, at);
    return NULL;
}

/* ---- Slices --------------------------------------------------------------------------------------- */

#define FAR INT32_MAX /* no tensor that a run can have is as long: the bound means "the end" */

/* A slice of one axis: where it begins, how many it takes at most, and whether it takes them all. */
struct cut {
    const struct dim *start, *count; /* start NULL: not known */
    int64_t step;
    bool exact;
};

/* A bound of a forward slice counted from the front; it may be beyond the end. NULL: not known. */
static const struct dim *front(struct walk *walk, const struct dim *bound, const struct dim *dim)
{
    int64_t value;
    if (bound->low >= 0)
        return bound;
    if (!dim_is_const(bound, &value))
        return NULL;
    if (value <= -FAR)
        return constant(walk, 0);
    const struct dim *from_end = dim_add(walk->table, dim, bound);
    return at_least(from_end, 0) ? from_end : dim_max(walk->table, from_end, constant(walk, 0));
}

static bool proven_le(struct walk *walk, const struct dim *a, const struct dim *b)
{
    return at_least(dim_sub(walk->table, b, a), 0);
}

static void cut_forward(struct walk *walk, const struct dim *dim, const struct dim *start,
                        const struct dim *end, struct cut *cut)
{
    start = front(walk, start, dim);
    end = front(walk, end, dim);
    if (!start || !end)
        return;
    if (end->low >= FAR || proven_le(walk, dim, end))
        end = dim;
    /* Constants are clamped, which keeps them small; others when they must be for exactness. */
    if (start->low >= FAR)
        start = dim;
    int64_t ignored;
    if (dim_is_const(dim, &ignored)) {
        if (dim_is_const(start, &ignored))
            start = dim_min(walk->table, start, dim);
        if (dim_is_const(end, &ignored))
            end = dim_min(walk->table, end, dim);
    }
    const struct dim *length = dim_sub(walk->table, end, start);
    cut->start = start;
    cut->exact = length && proven_le(walk, end, dim);
    if (!at_least(length, 0))
        length = dim_max(walk->table, length, constant(walk, 0));
    cut->count =
        cut->step == 1 ? length : dim_ceildiv(walk->table, length, constant(walk, cut->step));
}

static void cut_backward(struct walk *walk, const struct dim *dim, const struct dim *start,
                         const struct dim *end, struct cut *cut)
{
    int64_t d = 0, s = 0, e = 0;
    const struct dim *last = dim_sub(walk->table, dim, constant(walk, 1));
    bool start_known = dim_is_const(start, &s), end_known = dim_is_const(end, &e);
    if (start_known && end_known && dim_is_const(dim, &d) && d < FAR) {
        s = s < -d ? -1 : s < 0 ? s + d : s >= d ? d - 1 : s;
        e = e < -d ? -1 : e < 0 ? e + d : e >= d ? d - 1 : e;
        int64_t count = s > e ? (s - e - 1) / -cut->step + 1 : 0;
        cut->start = constant(walk, s);
        cut->count = constant(walk, count);
        cut->exact = true;
    } else if (start_known && (s == -1 || s >= FAR) && end_known && e <= -FAR) {
        cut->start = last;
        cut->count = dim_ceildiv(walk->table, dim, constant(walk, -cut->step));
        cut->exact = true;
    }
}

static tssa_status *cut_axis(struct walk *walk, const struct rule_step *step, const struct dim *dim,
                             struct cut *cut)
{
    const struct dim *start = param(walk, step, 1), *end = param(walk, step, 2),
                     *by = param(walk, step, 3);
    TRY_ALLOC(start);
    TRY_ALLOC(end);
    TRY_ALLOC(by);
    *cut = (struct cut){0};
    if (!dim_is_const(by, &cut->step) || cut->step == 0 || cut->step <= -FAR || cut->step >= FAR)
        return NULL;
    if (cut->step > 0)
        cut_forward(walk, dim, start, end, cut);
    else
        cut_backward(walk, dim, start, end, cut);
    return NULL;
}

/* The length of a slice in every run: that of the cut when it is exact, else clamped at the end. */
static const struct dim *cut_length(struct walk *walk, const struct dim *dim, const struct cut *cut)
{
    if (cut->exact)
        return cut->count;
    const struct dim *left =
        dim_max(walk->table, dim_sub(walk->table, dim, cut->start), constant(walk, 0));
    if (cut->step != 1)
        left = dim_ceildiv(walk->table, left, constant(walk, cut->step));
    return dim_min(walk->table, cut->count, left);
}

static void slice_unknown(struct walk *walk, struct walk_axis *axis)
{
    struct region *region = walk->region;
    for (int i = 0; i < region->base_rank; i++)
        if (region->axes[i].result == axis->id)
            region->axes[i].exact = false;
    make_opaque(walk, axis);
    narrowed(walk, axis);
    region->strided = false;
    axis->dim = dim_fresh(walk->table, "slice");
}

static tssa_status *step_slice(struct walk *walk, const struct rule_step *step)
{
    int64_t at = step->params[0].value, factor;
    struct cut cut;
    if (!has_axis(walk, at))
        return NULL;
    struct walk_axis *axis = &walk->axes[at];
    struct region *region = walk->region;
    TRY(cut_axis(walk, step, axis->dim, &cut));
    if (!cut.start) {
        slice_unknown(walk, axis);
        return NULL;
    }
    if (is_number(cut.start, 0) && cut.step == 1 && cut.count == axis->dim)
        return NULL;
    narrowed(walk, axis);
    if (is_broadcast(walk, axis) && !(cut.exact && at_least(cut.count, 1)))
        region->exact = false; /* it may hold nothing */
    move_start(walk, axis, cut.start);
    const struct dim *length = cut_length(walk, axis->dim, &cut);
    for (int i = 0; i < region->base_rank; i++) {
        struct region_axis *base = &region->axes[i];
        if (base->result != axis->id)
            continue;
        if (__builtin_mul_overflow(base->step, cut.step, &factor)) {
            slice_unknown(walk, axis);
            return NULL;
        }
        base->step = factor;
        base->exact = base->exact && cut.exact;
        base->count = cut.count;
    }
    axis->dim = length;
    axis->stride = dim_mul(walk->table, axis->stride, constant(walk, cut.step));
    return NULL;
}

/* ---- Steps that rearrange ------------------------------------------------------------------------- */

static tssa_status *step_permute(struct walk *walk, const struct rule_step *step)
{
    struct walk_axis axes[TSSA_MAX_RANK];
    if ((int)step->n_params != walk->rank) {
        give_up(walk);
        return NULL;
    }
    for (uint32_t i = 0; i < step->n_params; i++) {
        if (!has_axis(walk, step->params[i].value))
            return NULL;
        axes[i] = walk->axes[step->params[i].value];
    }
    memcpy(walk->axes, axes, step->n_params * sizeof *axes);
    return NULL;
}

static void squeeze_axis(struct walk *walk, int64_t at)
{
    detach(walk, walk->axes[at].id, -1);
    remove_axis(walk, at);
}

static tssa_status *step_squeeze(struct walk *walk, const struct rule_step *step)
{
    for (uint32_t i = step->n_params; i-- > 0;) {
        if (!has_axis(walk, step->params[i].value))
            return NULL;
        squeeze_axis(walk, step->params[i].value);
    }
    return NULL;
}

static tssa_status *step_unsqueeze(struct walk *walk, const struct rule_step *step)
{
    for (uint32_t i = 0; i < step->n_params; i++) {
        if (step->params[i].value > walk->rank || walk->rank == TSSA_MAX_RANK) {
            give_up(walk);
            return NULL;
        }
        insert_axis(walk, step->params[i].value, broadcast_axis(walk, constant(walk, 1)));
    }
    return NULL;
}

static void expand_axis(struct walk *walk, struct walk_axis *axis, const struct dim *to)
{
    if (to == axis->dim || is_number(to, 1))
        return;
    int64_t from;
    if (dim_is_const(axis->dim, &from)) {
        if (from != 1)
            return;
        if (!at_least(to, 1))
            walk->region->exact = false;
        detach(walk, axis->id, -1);
        *axis = broadcast_axis(walk, to);
        return;
    }
    /* It was 1, or it is what it is expanded to. */
    if (!at_least(to, 1))
        walk->region->exact = false;
    walk->region->single = REGION_UNKNOWN;
    walk->region->strided = false;
    make_opaque(walk, axis);
    axis->dim = at_least(to, 2) ? to : dim_fresh(walk->table, "expand");
}

static tssa_status *step_expand(struct walk *walk, const struct rule_step *step)
{
    while (walk->rank < (int)step->n_params)
        insert_axis(walk, 0, broadcast_axis(walk, constant(walk, 1)));
    if (walk->rank > (int)step->n_params) {
        give_up(walk);
        return NULL;
    }
    for (uint32_t i = 0; i < step->n_params; i++) {
        const struct dim *to = param(walk, step, i);
        TRY_ALLOC(to);
        expand_axis(walk, &walk->axes[i], to);
    }
    return NULL;
}

static tssa_status *step_tile(struct walk *walk, const struct rule_step *step)
{
    if ((int)step->n_params != walk->rank) {
        give_up(walk);
        return NULL;
    }
    for (uint32_t i = 0; i < step->n_params; i++) {
        const struct dim *count = param(walk, step, i);
        struct walk_axis *axis = &walk->axes[i];
        TRY_ALLOC(count);
        if (is_number(count, 1))
            continue;
        if (is_number(axis->dim, 1)) {
            expand_axis(walk, axis, count);
            continue;
        }
        if (!at_least(count, 1))
            walk->region->exact = false;
        make_opaque(walk, axis);
        repeated(walk, count);
        walk->region->strided = false;
        axis->dim = dim_mul(walk->table, axis->dim, count);
    }
    return NULL;
}

static tssa_status *step_diagonal(struct walk *walk, const struct rule_step *step)
{
    int64_t a = step->params[0].value, b = step->params[1].value, offset = step->params[2].value;
    struct region *region = walk->region;
    if (!has_axis(walk, a) || !has_axis(walk, b) || a == b || offset <= -FAR || offset >= FAR) {
        give_up(walk);
        return NULL;
    }
    struct walk_axis row = walk->axes[a], column = walk->axes[b], both = {.id = walk->n_ids++};
    const struct dim *rows = row.dim, *columns = column.dim;
    if (offset >= 0)
        columns = dim_sub(walk->table, columns, constant(walk, offset));
    else
        rows = dim_add(walk->table, rows, constant(walk, offset));
    both.dim = dim_max(walk->table, constant(walk, 0), dim_min(walk->table, rows, columns));
    both.stride = dim_add(walk->table, row.stride, column.stride);
    both.opaque = row.opaque || column.opaque;
    move_start(walk, &row, constant(walk, offset < 0 ? -offset : 0));
    move_start(walk, &column, constant(walk, offset > 0 ? offset : 0));
    for (int i = 0; i < region->base_rank; i++)
        if (region->axes[i].result == row.id || region->axes[i].result == column.id) {
            region->axes[i].result = both.id;
            region->axes[i].count = both.dim;
        }
    narrowed(walk, &row);
    narrowed(walk, &column);
    region->exact = false; /* not every combination */
    if (both.opaque)
        detach(walk, both.id, LOST);
    remove_axis(walk, a > b ? a : b);
    remove_axis(walk, a > b ? b : a);
    insert_axis(walk, walk->rank, both);
    return NULL;
}

/* ---- Reshapes ------------------------------------------------------------------------------------- */

/* Axes [from, to) of the old and the new shape, whose elements are the same, row-major. */
struct group {
    int from, to;            /* of the walk's */
    const struct dim **dims; /* the new ones */
    int n_dims;
};

/* The stride of the innermost axis of more than one element, when the others follow from it; else NULL. */
static const struct dim *contiguous_stride(struct walk *walk, int from, int to)
{
    const struct dim *stride = NULL, *expected = NULL;
    for (int i = to; i-- > from;) {
        const struct walk_axis *axis = &walk->axes[i];
        if (is_number(axis->dim, 1))
            continue;
        if (stride && axis->stride != expected)
            return NULL;
        stride = stride ? stride : axis->stride;
        expected = dim_mul(walk->table, axis->stride, axis->dim);
    }
    return stride ? stride : constant(walk, 1);
}

/* Replaces a group of axes by opaque ones; strides survive where the old ones are contiguous. */
static void regroup(struct walk *walk, const struct group *group)
{
    struct walk_axis axes[TSSA_MAX_RANK];
    const struct dim *stride = contiguous_stride(walk, group->from, group->to);
    if (!stride) {
        walk->region->strided = false;
        stride = constant(walk, 0);
    }
    for (int i = group->n_dims; i-- > 0;) {
        axes[i] = (struct walk_axis){
            .dim = group->dims[i], .stride = stride, .id = walk->n_ids++, .opaque = true};
        stride = dim_mul(walk->table, stride, group->dims[i]);
    }
    for (int i = group->to; i-- > group->from;) {
        account(walk, &walk->axes[i]);
        detach(walk, walk->axes[i].id, LOST);
        remove_axis(walk, i);
    }
    for (int i = 0; i < group->n_dims; i++)
        insert_axis(walk, group->from + i, axes[i]);
    walk->region->mapped = false;
}

/* Goes over the equal dims at the front of [*from, to) and of dims, and over ones: how many dims. */
static int match_front(struct walk *walk, int *from, int *to, const struct dim **dims, int n)
{
    int i = 0;
    while (i < n || *from < *to) {
        if (*from < *to && i < n && walk->axes[*from].dim == dims[i]) {
            ++*from;
            i++;
        } else if (*from < *to && is_number(walk->axes[*from].dim, 1)) {
            squeeze_axis(walk, *from);
            --*to;
        } else if (i < n && is_number(dims[i], 1)) {
            insert_axis(walk, *from, broadcast_axis(walk, dims[i]));
            ++*from;
            ++*to;
            i++;
        } else {
            break;
        }
    }
    return i;
}

static int match_back(struct walk *walk, int from, int *to, const struct dim **dims, int n)
{
    int i = 0;
    while (i < n && from < *to && walk->axes[*to - 1].dim == dims[n - 1 - i]) {
        --*to;
        i++;
    }
    return i;
}

static tssa_status *target(struct walk *walk, const struct rule_step *step, const struct dim **dims)
{
    const struct dim *all = constant(walk, 1), *given = constant(walk, 1);
    int rest = -1;
    for (int i = 0; i < walk->rank; i++)
        all = dim_mul(walk->table, all, walk->axes[i].dim);
    for (uint32_t i = 0; i < step->n_params; i++) {
        dims[i] = param(walk, step, i);
        TRY_ALLOC(dims[i]);
        if (is_number(dims[i], -1))
            rest = (int)i;
        else if (dims[i]->low < 0) /* a -1 that only the run knows */
            dims[i] = dim_fresh(walk->table, "reshape");
        if (rest != (int)i)
            given = dim_mul(walk->table, given, dims[i]);
    }
    if (rest >= 0)
        dims[rest] =
            is_number(given, 0) ? constant(walk, 0) : dim_floordiv(walk->table, all, given);
    return NULL;
}

static tssa_status *step_reshape(struct walk *walk, const struct rule_step *step)
{
    const struct dim *dims[TSSA_MAX_RANK];
    int from = 0, to = walk->rank, n = (int)step->n_params;
    TRY(target(walk, step, dims));
    /* An empty region keeps no shape that its dims would have to agree with. */
    int front_dims = match_front(walk, &from, &to, dims, n);
    int back_dims = match_back(walk, from, &to, dims + front_dims, n - front_dims);
    const struct group group = {
        .from = from, .to = to, .dims = dims + front_dims, .n_dims = n - front_dims - back_dims};
    if (group.from < group.to || group.n_dims > 0)
        regroup(walk, &group);
    return NULL;
}

/* ---- Index tensors -------------------------------------------------------------------------------- */

/* Any of the coordinates, in any order. */
static void forget(struct walk *walk, const struct walk_axis *axis)
{
    struct region *region = walk->region;
    account(walk, axis);
    for (int i = 0; i < region->base_rank; i++)
        if (region->axes[i].result == axis->id) {
            region->axes[i].exact = false;
            region->axes[i].result = LOST;
        }
    region->exact = region->mapped = region->strided = false;
}

static const struct ir_type *tensor_param(const struct walk *walk, const struct rule_step *step)
{
    const struct ir_value *value = walk->region->params[step->params[1].value];
    return value && value->type->kind == TYPE_TENSOR && value->type->rank >= 0 ? value->type : NULL;
}

static tssa_status *step_gather(struct walk *walk, const struct rule_step *step)
{
    int64_t at = step->params[0].value;
    const struct ir_type *indices = tensor_param(walk, step);
    if (!has_axis(walk, at))
        return NULL;
    if (!indices || walk->rank - 1 + indices->rank > TSSA_MAX_RANK) {
        give_up(walk);
        return NULL;
    }
    forget(walk, &walk->axes[at]);
    walk->region->single = REGION_UNKNOWN;
    remove_axis(walk, at);
    for (int i = 0; i < indices->rank; i++)
        insert_axis(walk, at + i,
                    (struct walk_axis){.dim = indices->dims[i],
                                       .stride = constant(walk, 0),
                                       .id = walk->n_ids++,
                                       .opaque = true});
    return NULL;
}

static tssa_status *step_mask(struct walk *walk, const struct rule_step *step)
{
    int64_t at = step->params[0].value;
    const struct ir_type *mask = tensor_param(walk, step);
    if (!mask || mask->rank < 1 || at + mask->rank > walk->rank) {
        give_up(walk);
        return NULL;
    }
    for (int i = 0; i < mask->rank; i++) {
        forget(walk, &walk->axes[at]);
        remove_axis(walk, at);
    }
    insert_axis(walk, at,
                (struct walk_axis){.dim = dim_fresh(walk->table, "mask"),
                                   .stride = constant(walk, 0),
                                   .id = walk->n_ids++,
                                   .opaque = true});
    if (walk->region->single == REGION_NO) /* what was there twice may be gone */
        walk->region->single = REGION_UNKNOWN;
    return NULL;
}

static const step_fn steps[RULE_KIND_COUNT] = {
#define RULE(id, text, ...) [RULE_##id] = step_##text,
#include "ir/rule.def"
#undef RULE
};

/* ---- Making --------------------------------------------------------------------------------------- */

static tssa_status *begin(struct walk *walk, const struct ir_type *base)
{
    struct region *region = walk->region;
    const struct dim *stride = constant(walk, 1);
    region->base_rank = walk->rank = walk->n_ids = base->rank;
    region->offset = constant(walk, 0);
    for (int i = base->rank; i-- > 0;) {
        region->base[i] = base->dims[i];
        region->axes[i] = (struct region_axis){.exact = true,
                                               .start = constant(walk, 0),
                                               .count = base->dims[i],
                                               .step = 1,
                                               .result = i};
        walk->axes[i] = (struct walk_axis){.dim = base->dims[i], .stride = stride, .id = i};
        stride = dim_mul(walk->table, stride, base->dims[i]);
        TRY_ALLOC(region->axes[i].start);
    }
    region->exact = region->mapped = region->strided = true;
    region->single = REGION_YES;
    return NULL;
}

/* Duplicates are only there where anything is. */
static void settle_single(const struct walk *walk)
{
    struct region *region = walk->region;
    for (int i = 0; i < region->rank; i++)
        if (region->single == REGION_NO && region->dims[i]->low < 1)
            region->single = REGION_UNKNOWN;
}

static tssa_status *finish(struct walk *walk)
{
    struct region *region = walk->region;
    int result[TSSA_MAX_RANK];
    region->rank = walk->rank;
    for (int r = 0; r < walk->rank; r++)
        account(walk, &walk->axes[r]);
    for (int i = 0; i < region->base_rank; i++) {
        region->exact = region->exact && region->axes[i].exact;
        result[i] = -1;
        for (int r = 0; r < walk->rank; r++)
            if (walk->axes[r].id == region->axes[i].result)
                result[i] = r;
        TRY_ALLOC(region->axes[i].start);
        TRY_ALLOC(region->axes[i].count);
    }
    for (int i = 0; i < region->base_rank; i++)
        region->axes[i].result = result[i];
    for (int r = 0; r < walk->rank; r++) {
        region->dims[r] = walk->axes[r].dim;
        region->strides[r] = walk->axes[r].stride;
        TRY_ALLOC(region->dims[r]);
        TRY_ALLOC(region->strides[r]);
    }
    TRY_ALLOC(region->offset);
    settle_single(walk);
    return NULL;
}

tssa_status *region_make(struct region_space *space, const struct ir_type *base,
                         const struct rule *rule, struct ir_value *const *params,
                         struct region *region)
{
    *region = (struct region){.rule = rule, .params = params, .base_rank = -1, .rank = -1};
    struct walk walk = {.space = space, .table = &space->graph->dims, .region = region};
    if (base->kind != TYPE_TENSOR || base->rank < 0)
        return NULL;
    TRY(begin(&walk, base));
    for (uint32_t i = 0; i < rule->n_steps && walk.rank >= 0; i++)
        TRY(steps[rule->steps[i].kind](&walk, &rule->steps[i]));
    if (walk.rank < 0 || walk.rank > TSSA_MAX_RANK) {
        *region = (struct region){.rule = rule, .params = params, .base_rank = -1, .rank = -1};
        return NULL;
    }
    return finish(&walk);
}

tssa_status *region_of(struct region_space *space, const struct ir_op *op, struct ir_value **params,
                       struct region *region)
{
    const struct rule *rule = rule_of(op);
    uint32_t first = rule_first_operand(op);
    for (uint32_t i = 0; i < rule->n_operands; i++)
        params[i] = ir_operand(op, first + i);
    return region_make(space, ir_operand(op, 0)->type, rule, params, region);
}
