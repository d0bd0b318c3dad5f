/* SPDX-License-Identifier: Apache-2.0 */
/* Rules on concrete shapes. Written for clarity: generated kernels and lowered models never come
 * here. */
#include "kernels/cpu/mutation/rule_region.h"

#include <string.h>

#include "ir/slice.h"
#include "kernels/cpu/gather/indices.h"

struct walk {
    struct pool *pool;
    const struct tensor *const *params;
    struct rule_region *region;
};

typedef tssa_status *(*step_fn)(const struct walk *walk, const struct rule_step *step);

/* ---- Params ---------------------------------------------------------------------------------- */

static tssa_status *get(const struct walk *walk, const struct rule_step *step, uint32_t i,
                        int64_t *value)
{
    const struct rule_param *param = &step->params[i];
    *value = param->value;
    if (!param->is_operand)
        return NULL;
    const struct tensor *tensor = walk->params[param->value];
    if (!tensor || !dtype_is_integer(tensor->dtype) || tensor_count(tensor) != 1)
        return ERROR(TSSA_RUNTIME, "param $%lld of the rule is not one integer",
                     (long long)param->value);
    *value = dtype_load_int64(tensor->dtype, tensor->data);
    return NULL;
}

static tssa_status *get_axis(const struct walk *walk, int64_t axis, int limit)
{
    (void)walk;
    if (axis >= limit)
        return ERROR(TSSA_RUNTIME, "axis %lld of the rule is out of range for rank %d",
                     (long long)axis, limit);
    return NULL;
}

/* ---- Shapes ---------------------------------------------------------------------------------- */

static void remove_axis(struct rule_region *region, int64_t axis)
{
    size_t after = (size_t)(region->rank - axis - 1);
    memmove(region->dims + axis, region->dims + axis + 1, after * sizeof *region->dims);
    memmove(region->strides + axis, region->strides + axis + 1, after * sizeof *region->strides);
    region->rank--;
}

static tssa_status *insert_axis(struct rule_region *region, int64_t axis, int64_t dim,
                                int64_t stride)
{
    size_t after = (size_t)(region->rank - axis);
    if (region->rank == TSSA_MAX_RANK)
        return ERROR(TSSA_RUNTIME, "the region would have a rank above %d", TSSA_MAX_RANK);
    memmove(region->dims + axis + 1, region->dims + axis, after * sizeof *region->dims);
    memmove(region->strides + axis + 1, region->strides + axis, after * sizeof *region->strides);
    region->dims[axis] = dim;
    region->strides[axis] = stride;
    region->rank++;
    return NULL;
}

int64_t rule_region_count(const struct rule_region *region)
{
    int64_t count = 1;
    for (int i = 0; i < region->rank; i++)
        count *= region->dims[i];
    return count;
}

/* Row-major strides for the dims, over the table that the region now is. */
static void make_contiguous(struct rule_region *region)
{
    int64_t stride = 1;
    for (int i = region->rank - 1; i >= 0; i--) {
        region->strides[i] = stride;
        stride *= region->dims[i];
    }
    region->offset = 0;
}

static bool is_contiguous(const struct rule_region *region)
{
    int64_t stride = 1;
    for (int i = region->rank - 1; i >= 0; i--) {
        if (region->dims[i] != 1 && region->strides[i] != stride)
            return false;
        stride *= region->dims[i];
    }
    return true;
}

/* ---- Tables ---------------------------------------------------------------------------------- */

void rule_region_walk(const struct rule_region *region,
                      void (*visit)(void *context, int64_t n, int64_t offset), void *context)
{
    const int64_t *table = region->table ? region->table->data : NULL;
    int64_t count = rule_region_count(region);
    struct grid grid = {.rank = region->rank};
    memcpy(grid.dims, region->dims, sizeof grid.dims);
    memcpy(grid.strides, region->strides, sizeof grid.strides);
    for (int64_t n = 0; n < count; n++) {
        int64_t offset = region->offset + grid.offset;
        visit(context, n, table ? table[offset] : offset);
        grid_next(&grid);
    }
}

static void store_offset(void *context, int64_t n, int64_t offset)
{
    ((int64_t *)context)[n] = offset;
}

/* The region becomes a table of its elements' offsets. */
static tssa_status *tabulate(const struct walk *walk)
{
    struct rule_region *region = walk->region;
    size_t count, bytes;
    TRY(tensor_layout(TSSA_INT64, region->rank, region->dims, &count, &bytes));
    struct buffer *table = pool_alloc(walk->pool, bytes ? bytes : 1);
    TRY_ALLOC(table);
    rule_region_walk(region, store_offset, table->data);
    if (region->table)
        buffer_release(region->table);
    region->table = table;
    make_contiguous(region);
    return NULL;
}

void rule_region_release(struct rule_region *region)
{
    if (region->table)
        buffer_release(region->table);
    region->table = NULL;
}

/* ---- Steps that strides describe ------------------------------------------------------------- */

static tssa_status *step_select(const struct walk *walk, const struct rule_step *step)
{
    struct rule_region *region = walk->region;
    int64_t axis = step->params[0].value, index;
    TRY(get_axis(walk, axis, region->rank));
    TRY(get(walk, step, 1, &index));
    if (index < -region->dims[axis] || index >= region->dims[axis])
        return ERROR(TSSA_RUNTIME, "index %lld is outside a dim of %lld", (long long)index,
                     (long long)region->dims[axis]);
    region->is_bent |= index < 0 && step->params[1].is_operand;
    index += index < 0 ? region->dims[axis] : 0;
    region->offset += index * region->strides[axis];
    remove_axis(region, axis);
    return NULL;
}

static int64_t clamp(int64_t value, int64_t low, int64_t high)
{
    return value < low ? low : value > high ? high : value;
}

/* Is the number of an operand one that does not stand for itself? */
static bool bends(const struct rule_param *param, int64_t value, int64_t most)
{
    return param->is_operand && (value < 0 || value > most);
}

static tssa_status *step_slice(const struct walk *walk, const struct rule_step *step)
{
    struct rule_region *region = walk->region;
    int64_t axis = step->params[0].value, start, end, by;
    TRY(get_axis(walk, axis, region->rank));
    TRY(get(walk, step, 1, &start));
    TRY(get(walk, step, 2, &end));
    TRY(get(walk, step, 3, &by));
    if (by == 0)
        return ERROR(TSSA_RUNTIME, "the step of a slice is 0");
    int64_t dim = region->dims[axis], length;
    region->is_bent |= bends(&step->params[1], start, dim - 1) ||
                       bends(&step->params[2], end, dim) || step->params[3].is_operand;
    length = slice_cut(dim, &start, end, by);
    if (length > 0)
        region->offset += start * region->strides[axis];
    region->dims[axis] = length;
    region->strides[axis] *= length > 1 ? by : 1;
    return NULL;
}

static tssa_status *step_span(const struct walk *walk, const struct rule_step *step)
{
    struct rule_region *region = walk->region;
    int64_t axis = step->params[0].value, start, count;
    TRY(get_axis(walk, axis, region->rank));
    TRY(get(walk, step, 1, &start));
    TRY(get(walk, step, 2, &count));
    if (start < 0 || count < 0 ||
        (count > 0 && (start >= region->dims[axis] || count > region->dims[axis] - start)))
        return ERROR(TSSA_RUNTIME, "%lld elements from index %lld on are outside a dim of %lld",
                     (long long)count, (long long)start, (long long)region->dims[axis]);
    if (count > 0)
        region->offset += start * region->strides[axis];
    region->dims[axis] = count;
    return NULL;
}

static tssa_status *step_permute(const struct walk *walk, const struct rule_step *step)
{
    struct rule_region *region = walk->region, old = *region;
    bool seen[TSSA_MAX_RANK] = {false};
    if ((int)step->n_params != region->rank)
        return ERROR(TSSA_RUNTIME, "a permutation of %u axes does not fit rank %d",
                     (unsigned)step->n_params, region->rank);
    for (int i = 0; i < region->rank; i++) {
        int64_t axis = step->params[i].value;
        TRY(get_axis(walk, axis, region->rank));
        if (seen[axis])
            return ERROR(TSSA_RUNTIME, "axis %lld is permuted twice", (long long)axis);
        seen[axis] = true;
        region->dims[i] = old.dims[axis];
        region->strides[i] = old.strides[axis];
    }
    return NULL;
}

static tssa_status *step_squeeze(const struct walk *walk, const struct rule_step *step)
{
    struct rule_region *region = walk->region;
    for (uint32_t i = step->n_params; i-- > 0;) {
        int64_t axis = step->params[i].value;
        TRY(get_axis(walk, axis, region->rank));
        if (region->dims[axis] != 1)
            return ERROR(TSSA_RUNTIME, "axis %lld has size %lld and cannot be squeezed",
                         (long long)axis, (long long)region->dims[axis]);
        remove_axis(region, axis);
    }
    return NULL;
}

static tssa_status *step_unsqueeze(const struct walk *walk, const struct rule_step *step)
{
    for (uint32_t i = 0; i < step->n_params; i++) {
        TRY(get_axis(walk, step->params[i].value, walk->region->rank + 1));
        TRY(insert_axis(walk->region, step->params[i].value, 1, 0));
    }
    return NULL;
}

static tssa_status *step_expand(const struct walk *walk, const struct rule_step *step)
{
    struct rule_region *region = walk->region;
    while (region->rank < (int)step->n_params)
        TRY(insert_axis(region, 0, 1, 0));
    if (region->rank > (int)step->n_params)
        return ERROR(TSSA_RUNTIME, "rank %d cannot be expanded to %u dims", region->rank,
                     (unsigned)step->n_params);
    for (int i = 0; i < region->rank; i++) {
        int64_t dim;
        TRY(get(walk, step, (uint32_t)i, &dim));
        if (dim < 0 || (dim != region->dims[i] && region->dims[i] != 1 && dim != 1))
            return ERROR(TSSA_RUNTIME, "a dim of %lld cannot be expanded to %lld",
                         (long long)region->dims[i], (long long)dim);
        if (region->dims[i] != 1)
            continue;
        region->dims[i] = dim;
        region->strides[i] = 0;
    }
    size_t count, bytes;
    return tensor_layout(TSSA_INT64, region->rank, region->dims, &count, &bytes);
}

static tssa_status *step_diagonal(const struct walk *walk, const struct rule_step *step)
{
    struct rule_region *region = walk->region;
    int64_t a = step->params[0].value, b = step->params[1].value, offset = step->params[2].value;
    TRY(get_axis(walk, a, region->rank));
    TRY(get_axis(walk, b, region->rank));
    if (a == b)
        return ERROR(TSSA_RUNTIME, "a diagonal has two axes");
    int64_t rows = region->dims[a], columns = region->dims[b];
    /* Beyond the edge the diagonal is empty, and its offset must not overflow. */
    int64_t right = clamp(offset, 0, columns), down = clamp(offset, -rows, 0);
    int64_t length = rows + down < columns - right ? rows + down : columns - right;
    int64_t stride = region->strides[a] + region->strides[b];
    if (length > 0)
        region->offset += right * region->strides[b] - down * region->strides[a];
    remove_axis(region, a > b ? a : b);
    remove_axis(region, a > b ? b : a);
    return insert_axis(region, region->rank, length, stride);
}

/* ---- Steps that need a table ----------------------------------------------------------------- */

static tssa_status *step_reshape(const struct walk *walk, const struct rule_step *step)
{
    struct rule_region *region = walk->region;
    int64_t count = rule_region_count(region), given = 1, dims[TSSA_MAX_RANK];
    int rest = -1;
    for (uint32_t i = 0; i < step->n_params; i++) {
        TRY(get(walk, step, i, &dims[i]));
        if (dims[i] == -1 && rest < 0)
            rest = (int)i;
        else if (dims[i] < 0 || __builtin_mul_overflow(given, dims[i], &given))
            return ERROR(TSSA_RUNTIME, "a rule's reshape has a dim of %lld", (long long)dims[i]);
    }
    if (rest >= 0) {
        dims[rest] = given ? count / given : 0;
        given *= dims[rest];
    }
    if (given != count)
        return ERROR(TSSA_RUNTIME, "a region of %lld elements cannot have %lld", (long long)count,
                     (long long)given);
    if (!is_contiguous(region))
        TRY(tabulate(walk));
    int64_t offset = region->offset;
    region->rank = (int)step->n_params;
    memcpy(region->dims, dims, step->n_params * sizeof *dims);
    make_contiguous(region);
    region->offset = offset;
    return NULL;
}

/*
 * Every axis becomes a pair, (count, dim) with strides (0, stride), and a reshape joins the pairs.
 */
static tssa_status *step_tile(const struct walk *walk, const struct rule_step *step)
{
    struct rule_region *region = walk->region;
    int64_t dims[TSSA_MAX_RANK];
    if ((int)step->n_params != region->rank)
        return ERROR(TSSA_RUNTIME, "%u counts do not tile rank %d", (unsigned)step->n_params,
                     region->rank);
    /* One axis at a time, so that the rank grows by one only. */
    for (int i = 0; i < region->rank; i++) {
        int64_t count;
        TRY(get(walk, step, (uint32_t)i, &count));
        if (count < 0 || __builtin_mul_overflow(count, region->dims[i], &dims[i]))
            return ERROR(TSSA_RUNTIME, "a count of %lld cannot tile", (long long)count);
        if (count == 1)
            continue;
        TRY(insert_axis(region, i, count, 0));
        TRY(tabulate(walk));
        remove_axis(region, i);
        region->dims[i] = dims[i];
        make_contiguous(region);
    }
    return NULL;
}

/* The region's elements at `count` positions of an axis, which take the place of the axis. */
static tssa_status *pick(const struct walk *walk, int64_t axis, int64_t count,
                         const int64_t *positions)
{
    struct rule_region *region = walk->region, old = *region;
    int64_t dim = region->dims[axis];
    size_t total, bytes;
    /* The axis goes last, where the table's rows are what is picked from. */
    remove_axis(region, axis);
    TRY(insert_axis(region, region->rank, count, 0));
    TRY(tensor_layout(TSSA_INT64, region->rank, region->dims, &total, &bytes));
    *region = old;
    remove_axis(region, axis);
    TRY(insert_axis(region, region->rank, dim, old.strides[axis]));
    TRY(tabulate(walk));
    struct buffer *table = pool_alloc(walk->pool, bytes ? bytes : 1);
    TRY_ALLOC(table);
    int64_t *to = table->data;
    const int64_t *from = region->table->data;
    for (size_t n = 0; n < total; n++)
        to[n] = from[(int64_t)(n / (size_t)count) * dim + positions[n % (size_t)count]];
    buffer_release(region->table);
    region->table = table;
    region->dims[region->rank - 1] = count;
    make_contiguous(region);
    /* And back to where the axis was. */
    int64_t stride = region->strides[region->rank - 1];
    remove_axis(region, region->rank - 1);
    return insert_axis(region, axis, count, stride);
}

/* Splits the picked axis into the dims of the index tensor. */
static tssa_status *split_axis(struct rule_region *region, int64_t axis,
                               const struct tensor *indices)
{
    int64_t stride = region->strides[axis];
    remove_axis(region, axis);
    for (int i = indices->rank - 1; i >= 0; i--) {
        TRY(insert_axis(region, axis, indices->dims[i], stride));
        stride *= indices->dims[i];
    }
    return NULL;
}

static tssa_status *load_positions(const struct tensor *indices, int64_t dim, int64_t *positions)
{
    size_t count = tensor_count(indices), size = dtype_info(indices->dtype)->size;
    for (size_t i = 0; i < count; i++) {
        int64_t at = dtype_load_int64(indices->dtype, (const char *)indices->data + i * size);
        if (at < -dim || at >= dim)
            return ERROR(TSSA_RUNTIME, "index %lld (number %zu) is outside a dim of %lld",
                         (long long)at, i, (long long)dim);
        positions[i] = at < 0 ? at + dim : at;
    }
    return NULL;
}

static tssa_status *step_gather(const struct walk *walk, const struct rule_step *step)
{
    struct rule_region *region = walk->region;
    int64_t axis = step->params[0].value;
    const struct tensor *indices = walk->params[step->params[1].value];
    TRY(get_axis(walk, axis, region->rank));
    if (!indices || !dtype_is_integer(indices->dtype))
        return ERROR(TSSA_RUNTIME, "the indices of a gather are no integer tensor");
    int64_t count = (int64_t)tensor_count(indices);
    struct buffer *positions = pool_alloc(walk->pool, (size_t)count * sizeof(int64_t) + 1);
    TRY_ALLOC(positions);
    tssa_status *status = load_positions(indices, region->dims[axis], positions->data);
    if (!status)
        status = pick(walk, axis, count, positions->data);
    buffer_release(positions);
    return status ? status : split_axis(region, axis, indices);
}

static int64_t load_mask(const struct tensor *mask, int64_t *positions)
{
    int64_t count = 0;
    for (size_t i = 0; i < tensor_count(mask); i++)
        if (((const uint8_t *)mask->data)[i])
            positions[count++] = (int64_t)i;
    return count;
}

static tssa_status *step_mask(const struct walk *walk, const struct rule_step *step)
{
    struct rule_region *region = walk->region;
    int64_t axis = step->params[0].value;
    const struct tensor *mask = walk->params[step->params[1].value];
    if (!mask || mask->dtype != TSSA_BOOL || mask->rank < 1 || axis + mask->rank > region->rank ||
        memcmp(mask->dims, region->dims + axis, (size_t)mask->rank * sizeof *mask->dims) != 0)
        return ERROR(TSSA_RUNTIME, "the mask does not fit the region");
    /* The axes that it covers become one. */
    if (mask->rank > 1) {
        TRY(tabulate(walk));
        for (int i = 1; i < mask->rank; i++) {
            region->dims[axis + 1] *= region->dims[axis];
            remove_axis(region, axis);
        }
        make_contiguous(region);
    }
    struct buffer *positions = pool_alloc(walk->pool, tensor_count(mask) * sizeof(int64_t) + 1);
    TRY_ALLOC(positions);
    tssa_status *status = pick(walk, axis, load_mask(mask, positions->data), positions->data);
    buffer_release(positions);
    return status;
}

static const step_fn steps[RULE_KIND_COUNT] = {
#define RULE(id, text, ...) [RULE_##id] = step_##text,
#include "ir/rule.def"
#undef RULE
};

tssa_status *rule_region_resolve(struct pool *pool, const struct rule *rule,
                                 const struct tensor *const *params, int rank, const int64_t *dims,
                                 struct rule_region *region)
{
    const struct walk walk = {.pool = pool, .params = params, .region = region};
    region->rank = rank;
    memcpy(region->dims, dims, (size_t)rank * sizeof *dims);
    make_contiguous(region);
    for (uint32_t i = 0; i < rule->n_steps; i++)
        TRY(steps[rule->steps[i].kind](&walk, &rule->steps[i]));
    return NULL;
}
