/* SPDX-License-Identifier: Apache-2.0 */
/* Inference of the rows of mutation.def: the shape of a rule's region. */
#include <string.h>

#include "ir/infer.h"
#include "ir/rule.h"

/* A shape on its way through the steps of a rule. */
struct walk {
    struct ir_graph *graph;
    struct ir_op *op;
    int rank; /* -1: unknown */
    const struct dim *dims[2 * TSSA_MAX_RANK];
};

typedef tssa_status *(*step_fn)(struct walk *walk, const struct rule_step *step);

static tssa_status *check_axis(const struct walk *walk, int64_t axis)
{
    if (axis >= walk->rank)
        return ERROR(TSSA_MALFORMED, "axis %lld of a rule is out of range for rank %d",
                     (long long)axis, walk->rank);
    return NULL;
}

static const struct dim *param(const struct walk *walk, const struct rule_step *step, uint32_t i)
{
    return rule_param_dim(walk->op, &step->params[i]);
}

static void remove_axes(struct walk *walk, int64_t axis, int count)
{
    memmove(walk->dims + axis, walk->dims + axis + count,
            (size_t)(walk->rank - axis - count) * sizeof *walk->dims);
    walk->rank -= count;
}

static void insert_axes(struct walk *walk, int64_t axis, int count)
{
    memmove(walk->dims + axis + count, walk->dims + axis,
            (size_t)(walk->rank - axis) * sizeof *walk->dims);
    walk->rank += count;
}

static tssa_status *step_select(struct walk *walk, const struct rule_step *step)
{
    int64_t axis = step->params[0].value, dim, index;
    TRY(check_axis(walk, axis));
    if (dim_is_const(walk->dims[axis], &dim) && dim_is_const(param(walk, step, 1), &index) &&
        (index < -dim || index >= dim))
        return ERROR(TSSA_MALFORMED, "index %lld is outside a dim of %lld", (long long)index,
                     (long long)dim);
    remove_axes(walk, axis, 1);
    return NULL;
}

static tssa_status *step_slice(struct walk *walk, const struct rule_step *step)
{
    int64_t axis = step->params[0].value, by = 0;
    TRY(check_axis(walk, axis));
    if (dim_is_const(param(walk, step, 3), &by) && by == 0)
        return ERROR(TSSA_MALFORMED, "the step of a slice is 0");
    const struct dim *length = infer_slice_length(walk->graph, walk->dims[axis],
                                                  param(walk, step, 1), param(walk, step, 2), by);
    walk->dims[axis] = length ? length : dim_fresh(&walk->graph->dims, "slice");
    return NULL;
}

/* As many elements as are asked for, in every run that does not fail. */
static tssa_status *step_span(struct walk *walk, const struct rule_step *step)
{
    int64_t axis = step->params[0].value;
    TRY(check_axis(walk, axis));
    struct dim_table *table = &walk->graph->dims;
    const struct dim *count = param(walk, step, 2);
    if (!count)
        walk->dims[axis] = dim_fresh(table, "span");
    else /* it is not negative, even if nobody can prove that */
        walk->dims[axis] = dim_max(table, dim_const(table, 0), count);
    return NULL;
}

static tssa_status *step_permute(struct walk *walk, const struct rule_step *step)
{
    const struct dim *dims[TSSA_MAX_RANK];
    bool seen[TSSA_MAX_RANK] = {false};
    if ((int)step->n_params != walk->rank)
        return ERROR(TSSA_MALFORMED, "a permutation of %u axes does not fit rank %d",
                     (unsigned)step->n_params, walk->rank);
    for (uint32_t i = 0; i < step->n_params; i++) {
        int64_t axis = step->params[i].value;
        TRY(check_axis(walk, axis));
        if (seen[axis])
            return ERROR(TSSA_MALFORMED, "axis %lld is permuted twice", (long long)axis);
        seen[axis] = true;
        dims[i] = walk->dims[axis];
    }
    memcpy(walk->dims, dims, step->n_params * sizeof *dims);
    return NULL;
}

/* What the dim that is -1 comes to. */
static const struct dim *rest_of(struct walk *walk, const struct dim *const *dims, uint32_t n)
{
    struct dim_table *table = &walk->graph->dims;
    const struct dim *all = dim_const(table, 1), *given = dim_const(table, 1);
    for (int i = 0; i < walk->rank; i++)
        all = dim_mul(table, all, walk->dims[i]);
    for (uint32_t i = 0; i < n; i++)
        if (!dim_is(dims[i], -1))
            given = dim_mul(table, given, dims[i]);
    /* A product of 0 leaves the rest open. */
    if (dim_is(given, 0))
        return dim_const(table, 0);
    return dim_floordiv(table, all, given);
}

static tssa_status *step_reshape(struct walk *walk, const struct rule_step *step)
{
    const struct dim *dims[TSSA_MAX_RANK];
    int64_t value;
    int rest = -1;
    for (uint32_t i = 0; i < step->n_params; i++) {
        dims[i] = param(walk, step, i);
        if (!dims[i])
            dims[i] = dim_fresh(&walk->graph->dims, "reshape");
        TRY_ALLOC(dims[i]);
        if (!dim_is_const(dims[i], &value) || value >= 0)
            continue;
        if (value != -1 || rest >= 0)
            return ERROR(TSSA_MALFORMED, "a rule's reshape has a dim of %lld", (long long)value);
        rest = (int)i;
    }
    if (rest >= 0)
        dims[rest] = rest_of(walk, dims, step->n_params);
    memcpy(walk->dims, dims, step->n_params * sizeof *dims);
    walk->rank = (int)step->n_params;
    return NULL;
}

static tssa_status *step_squeeze(struct walk *walk, const struct rule_step *step)
{
    for (uint32_t i = step->n_params; i-- > 0;) {
        int64_t axis = step->params[i].value, dim;
        TRY(check_axis(walk, axis));
        if (dim_is_const(walk->dims[axis], &dim) && dim != 1)
            return ERROR(TSSA_MALFORMED, "axis %lld has size %lld and cannot be squeezed",
                         (long long)axis, (long long)dim);
        remove_axes(walk, axis, 1);
    }
    return NULL;
}

static tssa_status *step_unsqueeze(struct walk *walk, const struct rule_step *step)
{
    int rank = walk->rank + (int)step->n_params;
    if (rank > TSSA_MAX_RANK)
        return ERROR(TSSA_UNSUPPORTED, "the region would have rank %d, at most %d is supported",
                     rank, TSSA_MAX_RANK);
    for (uint32_t i = 0; i < step->n_params; i++) {
        int64_t axis = step->params[i].value;
        if (axis > walk->rank)
            return ERROR(TSSA_MALFORMED, "axis %lld of a rule is out of range for rank %d",
                         (long long)axis, rank);
        insert_axes(walk, axis, 1);
        walk->dims[axis] = dim_const(&walk->graph->dims, 1);
    }
    return NULL;
}

/* What one dim is broadcast to. A 1, on either side, gives way. */
static tssa_status *expand_dim(struct walk *walk, const struct dim *from, const struct dim *to,
                               const struct dim **result)
{
    int64_t have = 0, want = 0;
    bool known = dim_is_const(from, &have), asked = dim_is_const(to, &want);
    if (known && asked && have != 1 && want != 1 && have != want)
        return ERROR(TSSA_MALFORMED, "a dim of %lld is expanded to %lld", (long long)have,
                     (long long)want);
    if (from == to || (known && have != 1) || (asked && want == 1))
        *result = from;
    else if (to && ((known && have == 1) || asked || to->low >= 2))
        *result = to;
    else
        *result = dim_fresh(&walk->graph->dims, "expand");
    return NULL;
}

static tssa_status *step_expand(struct walk *walk, const struct rule_step *step)
{
    int added = (int)step->n_params - walk->rank;
    if (added < 0)
        return ERROR(TSSA_MALFORMED, "a shape of rank %u is expanded to by one of rank %d",
                     (unsigned)step->n_params, walk->rank);
    insert_axes(walk, 0, added);
    for (uint32_t i = 0; i < step->n_params; i++) {
        const struct dim *old = (int)i < added ? dim_const(&walk->graph->dims, 1) : walk->dims[i];
        TRY_ALLOC(old);
        TRY(expand_dim(walk, old, param(walk, step, i), &walk->dims[i]));
    }
    return NULL;
}

static tssa_status *step_tile(struct walk *walk, const struct rule_step *step)
{
    if ((int)step->n_params != walk->rank)
        return ERROR(TSSA_MALFORMED, "%u counts do not tile rank %d", (unsigned)step->n_params,
                     walk->rank);
    for (uint32_t i = 0; i < step->n_params; i++) {
        const struct dim *count = param(walk, step, i);
        walk->dims[i] = count ? dim_mul(&walk->graph->dims, walk->dims[i], count)
                              : dim_fresh(&walk->graph->dims, "tile");
    }
    return NULL;
}

static tssa_status *step_diagonal(struct walk *walk, const struct rule_step *step)
{
    struct dim_table *table = &walk->graph->dims;
    int64_t a = step->params[0].value, b = step->params[1].value, offset = step->params[2].value;
    TRY(check_axis(walk, a));
    TRY(check_axis(walk, b));
    if (a == b)
        return ERROR(TSSA_MALFORMED, "a diagonal has two axes");
    const struct dim *rows = walk->dims[a], *columns = walk->dims[b];
    if (offset >= 0)
        columns = dim_sub(table, columns, dim_const(table, offset));
    else
        rows = dim_add(table, rows, dim_const(table, offset));
    const struct dim *length = dim_max(table, dim_const(table, 0), dim_min(table, rows, columns));
    remove_axes(walk, a > b ? a : b, 1);
    remove_axes(walk, a > b ? b : a, 1);
    walk->dims[walk->rank++] = length;
    return NULL;
}

/* The type of the tensor that is param 1 of a gather or mask; NULL: unknown rank. */
static const struct ir_type *tensor_param(const struct walk *walk, const struct rule_step *step)
{
    const struct ir_value *value = rule_param_value(walk->op, &step->params[1]);
    return value && value->type->kind == TYPE_TENSOR && value->type->rank >= 0 ? value->type : NULL;
}

static tssa_status *step_gather(struct walk *walk, const struct rule_step *step)
{
    int64_t axis = step->params[0].value;
    const struct ir_type *indices = tensor_param(walk, step);
    TRY(check_axis(walk, axis));
    if (!indices) {
        walk->rank = -1;
        return NULL;
    }
    if (walk->rank - 1 + indices->rank > TSSA_MAX_RANK)
        return ERROR(TSSA_UNSUPPORTED, "the region would have rank %d, at most %d is supported",
                     walk->rank - 1 + indices->rank, TSSA_MAX_RANK);
    remove_axes(walk, axis, 1);
    insert_axes(walk, axis, indices->rank);
    for (int i = 0; i < indices->rank; i++)
        walk->dims[axis + i] = indices->dims[i];
    return NULL;
}

static tssa_status *step_mask(struct walk *walk, const struct rule_step *step)
{
    int64_t axis = step->params[0].value;
    const struct ir_type *mask = tensor_param(walk, step);
    if (!mask) {
        walk->rank = -1;
        return NULL;
    }
    if (mask->rank < 1 || axis + mask->rank > walk->rank)
        return ERROR(TSSA_MALFORMED, "a mask of rank %d at axis %lld does not fit rank %d",
                     mask->rank, (long long)axis, walk->rank);
    remove_axes(walk, axis, mask->rank);
    insert_axes(walk, axis, 1);
    walk->dims[axis] = dim_fresh(&walk->graph->dims, "mask");
    return NULL;
}

static const step_fn step_rules[RULE_KIND_COUNT] = {
#define RULE(id, text, ...) [RULE_##id] = step_##text,
#include "ir/rule.def"
#undef RULE
};

tssa_status *rule_region_shape(struct ir_op *op, int base_rank, const struct dim *const *base,
                               int *rank, const struct dim **dims)
{
    return rule_prefix_shape(op, rule_of(op), base_rank, base, rank, dims);
}

tssa_status *rule_prefix_shape(struct ir_op *op, const struct rule *rule, int base_rank,
                               const struct dim *const *base, int *rank, const struct dim **dims)
{
    struct walk walk = {.graph = op->parent->graph, .op = op, .rank = base_rank};
    for (int i = 0; i < base_rank; i++)
        walk.dims[i] = base[i];
    for (uint32_t i = 0; rule && i < rule->n_steps && walk.rank >= 0; i++) {
        TRY(step_rules[rule->steps[i].kind](&walk, &rule->steps[i]));
        for (int d = 0; d < walk.rank; d++)
            TRY_ALLOC(walk.dims[d]);
    }
    *rank = rule ? walk.rank : -1;
    for (int i = 0; i < *rank; i++)
        dims[i] = walk.dims[i];
    return NULL;
}

/* ---- Rules of mutation.def ------------------------------------------------------------------- */

static tssa_status *region_of(struct ir_op *op, int *rank, const struct dim **dims)
{
    const struct ir_type *base = infer_operand_type(op->parent->graph, op, 0);
    *rank = -1;
    if (base->kind != TYPE_TENSOR || base->rank < 0)
        return NULL;
    return rule_region_shape(op, base->rank, base->dims, rank, dims);
}

/* view and access. */
INFER_RULE(access)
{
    const struct dim *dims[TSSA_MAX_RANK];
    int rank;
    (void)graph;
    TRY(region_of(op, &rank, dims));
    if (rank < 0)
        return infer_set_unranked(op, 0, infer_dtype(op, 0));
    return infer_set_tensor(op, 0, infer_dtype(op, 0), rank, dims);
}

/* Does a source of this type fit the region? */
static tssa_status *check_source(const struct ir_type *source, int rank,
                                 const struct dim *const *dims)
{
    if (source->kind != TYPE_TENSOR || source->rank < 0 || rank < 0)
        return NULL;
    if (source->rank > rank)
        return ERROR(TSSA_MALFORMED, "a source of rank %d does not fit a region of rank %d",
                     source->rank, rank);
    for (int i = 0; i < source->rank; i++) {
        int64_t have, want;
        if (dim_is_const(source->dims[i], &have) && have != 1 &&
            dim_is_const(dims[rank - source->rank + i], &want) && have != want)
            return ERROR(TSSA_MALFORMED, "a source's dim of %lld does not fit a region's of %lld",
                         (long long)have, (long long)want);
    }
    return NULL;
}

static tssa_status *check_dtypes(const struct ir_op *op)
{
    tssa_dtype to = infer_dtype(op, 0), from = infer_dtype(op, 1);
    if (to != from && to != TSSA_UNDEFINED && from != TSSA_UNDEFINED)
        return ERROR(TSSA_MALFORMED, "a %s tensor cannot be written into a %s tensor",
                     dtype_info(from)->ir_name, dtype_info(to)->ir_name);
    return NULL;
}

INFER_RULE(assign)
{
    const struct dim *dims[TSSA_MAX_RANK];
    const struct ir_type *base = infer_operand_type(graph, op, 0);
    int rank;
    TRY(check_dtypes(op));
    TRY(region_of(op, &rank, dims));
    TRY(check_source(infer_operand_type(graph, op, 1), rank, dims));
    if (base->kind != TYPE_TENSOR)
        return infer_set_unranked(op, 0, infer_dtype(op, 0));
    return infer_set(op, 0, base);
}

/* write and update. */
INFER_RULE(write)
{
    const struct ir_type *to = infer_operand_type(graph, op, 0);
    TRY(check_dtypes(op));
    if (to->kind != TYPE_TENSOR || to->rank < 0)
        return NULL;
    return check_source(infer_operand_type(graph, op, 1), to->rank, to->dims);
}
