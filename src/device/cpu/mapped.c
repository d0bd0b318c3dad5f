/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs compiled kernels of fuse ops with accesses and assigns, a part of the op after the other;
 * the first one without what another part writes over, where that lies in one stretch. Rules are
 * applied to the arguments' shapes once a call; then each argument is a place in memory and a step
 * along each axis of the space. Axes along which all arguments walk on are merged; of what is left
 * the innermost is a row, the next one the rows of a call. Of kernels of columns the rows of a call
 * are the axis that is reduced, all of it, or all iterations of a loop.
 */
#include <inttypes.h>
#include <string.h>

#include "device/cpu/kept.h"
#include "device/cpu/mapped.h"
#include "kernels/cpu/generator/range.h"
#include "kernels/cpu/lib/lines.h"
#include "kernels/cpu/mutation/rule_region.h"

/* ---- Arguments ------------------------------------------------------------------------------- */

/* All of the tensor. */
static void find_whole(const struct tensor *tensor, struct rule_region *region)
{
    int64_t stride = 1;
    region->rank = tensor->rank;
    for (int i = tensor->rank - 1; i >= 0; i--) {
        region->dims[i] = tensor->dims[i];
        region->strides[i] = stride;
        stride *= tensor->dims[i];
    }
}

/* Which elements of the tensor the argument is. */
static tssa_status *find_region(struct mapped_setup *s, const struct gir_map *map,
                                const struct tensor *tensor, struct rule_region *region)
{
    if (!map->rule) {
        find_whole(tensor, region);
        return NULL;
    }
    tssa_status *status = rule_region_resolve(s->args->env->pool, map->rule, s->inputs,
                                              tensor->rank, tensor->dims, region);
    if (!status && region->table)
        status = ERROR(TSSA_INTERNAL, "a kernel's argument does not lie in steps");
    s->is_bent |= region->is_bent;
    rule_region_release(region);
    return mapped_blame(status, map);
}

static tssa_status *add_arg(struct mapped_setup *s, uint32_t k, const struct tensor *tensor)
{
    const struct gir_map *map = &s->part->maps[k];
    const struct gir_arg *arg = &gir_args(s->part->kernel)[k];
    const int64_t size = (int64_t)dtype_info(arg->dtype)->size;
    struct rule_region region = {0};
    if (tensor->dtype != (tssa_dtype)arg->dtype || tensor->rank != map->rank)
        return walk_does_not_fit(map->index, tensor);
    TRY(find_region(s, map, tensor, &region));
    const int rank = region.rank - (arg->fields > 1), first = s->part->space.rank - rank;
    if (first < 0 || (arg->fields > 1 && region.dims[rank] != arg->fields))
        return walk_does_not_fit(map->index, tensor);
    memset(s->steps[k], 0, sizeof s->steps[k]);
    for (int i = 0; i < rank; i++) {
        int64_t *dim = &s->dims[first + i];
        const bool has = map->axes >> (first + i) & 1;
        if (arg->is_looked_up && first + i == map->lookup) {
            s->row_steps[k] = region.strides[i] * size;
            s->n_rows[k] = region.dims[i];
            continue;
        }
        if (has && *dim < 0)
            *dim = region.dims[i];
        const bool is_column = first + i == s->part->space.column;
        if (has && is_column && s->part->space.trips && !arg->is_result)
            s->n_iterations[k] = region.dims[i];
        else if (has ? region.dims[i] != *dim : region.dims[i] > 1)
            return walk_does_not_fit(map->index, tensor);
        s->is_empty |= region.dims[i] == 0 && !is_column;
        s->writes_none |= region.dims[i] == 0 && arg->is_result && !is_column;
        s->steps[k][first + i] = has ? region.strides[i] * size : 0;
    }
    s->data[k] = (char *)tensor->data + region.offset * size;
    return NULL;
}

/* Of several errors the first op's. */
static tssa_status *add_operands(struct mapped_setup *s)
{
    const struct gir_kernel *kernel = s->part->kernel;
    const struct gir_map *failed = NULL;
    tssa_status *first = NULL;
    for (uint32_t k = 0; k < kernel->n_args; k++) {
        const struct gir_map *map = &s->part->maps[k];
        const struct tensor *tensor;
        if (gir_args(kernel)[k].is_result || map->index == GIR_POSITIONS ||
            (failed && !mapped_is_before(map->op, failed->op)))
            continue;
        tssa_status *status = kernel_tensor(s->args, map->index, &tensor);
        if (!status)
            status = add_arg(s, k, tensor);
        if (!status)
            continue;
        tssa_status_free(first);
        first = status;
        failed = map;
    }
    return first;
}

/* ---- Positions ------------------------------------------------------------------------------- */

/* Addresses, which stand for 0, 1, ... along the axis. */
static void add_positions(struct mapped_setup *s)
{
    const struct gir_kernel *kernel = s->part->kernel;
    for (uint32_t k = 0; k < kernel->n_args; k++) {
        const struct gir_map *map = &s->part->maps[k];
        if (map->index != GIR_POSITIONS)
            continue;
        memset(s->steps[k], 0, sizeof s->steps[k]);
        s->steps[k][__builtin_ctz(map->axes)] =
            (int64_t)dtype_info(gir_args(kernel)[k].dtype)->size;
        s->data[k] = (char *)(uintptr_t)GIR_POSITIONS_AT;
    }
}

/* The Range tells how long the axis is, or as long as others say it must be. */
static tssa_status *add_range(struct mapped_setup *s, const struct gir_map *map)
{
    const struct gir_range *range = map->range;
    const struct tensor *operands[3];
    struct tensor numbers[3];
    int64_t length, *dim = &s->dims[__builtin_ctz(map->axes)];
    for (uint32_t i = 0; i < 3; i++) {
        numbers[i] =
            (struct tensor){.dtype = range->dtype, .data = (void *)(uintptr_t)&range->numbers[i]};
        operands[i] = &numbers[i];
        if (range->operands[i] >= 0)
            TRY(kernel_tensor(s->args, (uint32_t)range->operands[i], &operands[i]));
    }
    TRY(mapped_blame(range_length(operands, &length), map));
    if (*dim >= 0 && *dim != length)
        return mapped_blame(
            ERROR(TSSA_RUNTIME, "a dim of %" PRId64 " is to be one of %" PRId64, length, *dim),
            map);
    *dim = length;
    return NULL;
}

static tssa_status *add_ranges(struct mapped_setup *s)
{
    for (uint32_t k = 0; k < s->part->kernel->n_args; k++)
        if (s->part->maps[k].range)
            TRY(add_range(s, &s->part->maps[k]));
    return NULL;
}

/* ---- Results --------------------------------------------------------------------------------- */

/* Of what a loop stacks, all axes. */
static int find_stacked_dims(const struct mapped_setup *s, int64_t *dims)
{
    for (int i = 0; i < s->part->space.rank; i++)
        dims[i] = s->dims[i] < 0 ? 1 : s->dims[i];
    return s->part->space.rank;
}

/* A dim that nobody has told is that of an axis which no argument has. */
static int find_result_dims(const struct mapped_setup *s, int64_t *dims)
{
    const int gone = s->part->space.column < 0 || s->part->space.keeps ? s->part->space.rank
                                                                       : s->part->space.column;
    for (int i = 0; i < s->part->space.result_rank; i++) {
        const int axis = i + (i >= gone);
        dims[i] = s->part->space.result_dims[i];
        if (dims[i] < 0)
            dims[i] = axis < s->part->space.rank && s->dims[axis] >= 0 ? s->dims[axis] : 1;
    }
    return s->part->space.result_rank;
}

/* Room for all: that axis is the space's. */
static int find_kept_dims(const struct mapped_setup *s, uint32_t k, int64_t *dims)
{
    const struct gir_arg *arg = &gir_args(s->part->kernel)[k];
    const int axis = cpu_kept_axis(s->part, k);
    for (int i = 0; i < axis; i++)
        dims[i] = 1;
    dims[axis] = s->dims[0] < 0 ? 1 : s->dims[0];
    if (arg->fields > 1)
        dims[axis + 1] = arg->fields;
    return s->part->maps[k].rank;
}

/* Room for what tells of all elements which are kept. */
static tssa_status *add_mask(struct mapped_setup *s, uint32_t k)
{
    const int64_t all = s->dims[0] < 0 ? 1 : s->dims[0];
    struct buffer *made = pool_alloc(s->args->env->pool, (size_t)all + 1);
    TRY_ALLOC(made);
    s->masks[s->n_masks++] = made;
    memset(s->steps[k], 0, sizeof s->steps[k]);
    s->steps[k][0] = 1;
    s->data[k] = made->data;
    return NULL;
}

static void release_masks(struct mapped_setup *s)
{
    while (s->n_masks)
        buffer_release(s->masks[--s->n_masks]);
}

/* Has the part made the result for an argument before? Columns of one are several arguments. */
static bool is_made(const struct mapped_setup *s, uint32_t k)
{
    const struct gir_arg *args = gir_args(s->part->kernel);
    for (uint32_t i = 0; i < k; i++)
        if (args[i].is_result && s->part->maps[i].index == s->part->maps[k].index)
            return true;
    return false;
}

/* The first part makes them, for all. */
static tssa_status *add_results(struct mapped_setup *s, bool made)
{
    const struct gir_kernel *kernel = s->part->kernel;
    for (uint32_t k = 0; k < kernel->n_args; k++) {
        const struct gir_arg *arg = &gir_args(kernel)[k];
        const uint32_t index = s->part->maps[k].index;
        struct tensor *tensor;
        if (!arg->is_result)
            continue;
        if (index == GIR_MASK) {
            TRY(add_mask(s, k));
            continue;
        }
        if (made || is_made(s, k)) {
            tensor = &s->args->outputs[index]->tensor;
        } else {
            int64_t dims[TSSA_MAX_RANK];
            const bool stacked = s->part->space.column >= 0 && !arg->per_column;
            const int rank = arg->is_kept ? find_kept_dims(s, k, dims)
                             : stacked    ? find_stacked_dims(s, dims)
                                          : find_result_dims(s, dims);
            TRY(kernel_output(s->args, index, arg->dtype, rank, dims, &tensor));
        }
        if (!tensor)
            return ERROR(TSSA_INTERNAL, "a kernel's result is not wanted");
        TRY(add_arg(s, k, tensor));
    }
    return NULL;
}

/* Of results. An axis that no argument has is of length 1. */
static int64_t count_elements(struct mapped_setup *s)
{
    int64_t count = 1;
    for (int i = 0; i < s->part->space.rank; i++) {
        s->dims[i] = s->dims[i] < 0 ? 1 : s->dims[i];
        count *= i == s->part->space.column ? 1 : s->dims[i];
    }
    return count;
}

/* ---- Axes ------------------------------------------------------------------------------------ */

static bool has_axis(const struct mapped_setup *s, int axis)
{
    for (uint32_t k = 0; k < s->part->kernel->n_args; k++)
        if (s->part->maps[k].axes >> axis & 1)
            return true;
    return false;
}

/* Do all arguments go on along the space's axis where they end along the walk's last one? */
static bool goes_on(const struct mapped_setup *s, const struct walk *walk, int axis)
{
    const int last = walk->n_axes - 1;
    for (uint32_t k = 0; k < walk->n_args; k++)
        if (s->steps[k][axis] != walk->steps[last][k] * walk->sizes[last])
            return false;
    return true;
}

/* From one element or record to the next one: where there is only one, any step would do but that
 * which the code has. */
static int64_t element_step(const struct mapped_setup *s, uint32_t k, int axis)
{
    const struct gir_arg *arg = &gir_args(s->part->kernel)[k];
    if (arg->moves == GIR_STAYS)
        return 0;
    return arg->moves == GIR_STRIDED ? s->steps[k][axis]
                                     : (int64_t)dtype_info(arg->dtype)->size * arg->fields;
}

static tssa_status *add_axis(const struct mapped_setup *s, struct walk *walk, int axis)
{
    if (walk->n_axes && goes_on(s, walk, axis)) {
        walk->sizes[walk->n_axes - 1] *= s->dims[axis];
        return NULL;
    }
    const int at = walk->n_axes++;
    walk->sizes[at] = s->dims[axis];
    for (uint32_t k = 0; k < walk->n_args; k++) {
        walk->steps[at][k] = at ? s->steps[k][axis] : element_step(s, k, axis);
        if (s->dims[axis] > 1 && walk->steps[at][k] != s->steps[k][axis])
            return ERROR(TSSA_INTERNAL, "an argument of a kernel lies elsewhere");
    }
    return NULL;
}

static tssa_status *find_axes(const struct mapped_setup *s, struct walk *walk)
{
    walk->code = s->part->code;
    walk->n_args = s->part->kernel->n_args;
    walk->n_axes = 0;
    for (int axis = s->part->space.rank - 1; axis >= 0; axis--)
        if (axis != s->part->space.column && has_axis(s, axis))
            TRY(add_axis(s, walk, axis));
    memcpy(walk->data, s->data, walk->n_args * sizeof *walk->data);
    walk_finish(walk);
    walk->reduced = s->part->space.column < 0 ? 0 : s->dims[s->part->space.column];
    walk->is_triangle = s->part->is_triangle;
    walk->diagonal = s->part->diagonal;
    for (uint32_t k = 0; s->part->space.column >= 0 && k < walk->n_args; k++)
        walk->given[k] = s->steps[k][s->part->space.column];
    memcpy(walk->given + 2 * walk->n_args, s->row_steps, walk->n_args * sizeof *walk->given);
    memcpy(walk->given + 3 * walk->n_args, s->n_rows, walk->n_args * sizeof *walk->given);
    return NULL;
}

/* ---- Running --------------------------------------------------------------------------------- */

/* How many iterations there are. */
static tssa_status *read_trips(struct mapped_setup *s)
{
    const struct tensor *tensor;
    if (!s->part->space.trips)
        return NULL;
    TRY(kernel_tensor(s->args, s->part->space.trips - 1, &tensor));
    if (tensor->dtype != TSSA_INT64 || tensor_count(tensor) != 1)
        return ERROR(TSSA_RUNTIME, "the number of iterations is no number");
    const int64_t trips = *(const int64_t *)tensor->data;
    s->dims[s->part->space.column] = trips < 0 ? 0 : trips;
    return NULL;
}

/* Finds the part's walk; *count: the elements of its results. */
static tssa_status *find_walk(struct mapped_setup *s, bool made, struct walk *walk, int64_t *count)
{
    const size_t bytes = s->part->kernel->n_args * sizeof *s->row_steps;
    memcpy(s->dims, s->part->space.dims, sizeof s->dims);
    memset(s->row_steps, 0, bytes);
    memset(s->n_rows, 0, bytes);
    memset(s->n_iterations, -1, bytes);
    s->is_empty = s->writes_none = false;
    TRY(read_trips(s));
    if (made)
        TRY(add_results(s, made));
    TRY(add_operands(s));
    TRY(add_ranges(s));
    TRY(mapped_check_iterations(s));
    TRY(mapped_check_lookups(s, false));
    if (!made)
        TRY(add_results(s, made));
    *count = s->writes_none ? 0 : count_elements(s);
    if (*count == 0)
        return mapped_check_lookups(s, true);
    if (s->is_empty)
        return ERROR(TSSA_RUNTIME, "shapes do not fit each other");
    add_positions(s);
    return find_axes(s, walk);
}

/* Elements [begin, end) of results, in row-major order. */
struct stretch {
    const struct walk *walk;
    int64_t begin, end;
};

static void run_stretch(void *context, int64_t begin, int64_t end)
{
    const struct stretch *stretch = context;
    walk_run((void *)stretch->walk, stretch->begin + begin, stretch->begin + end);
}

/* Which elements of a result another part writes, where they lie in one stretch. */
static bool find_stretch(struct mapped_setup *s, const struct device_part *part, uint32_t result,
                         struct stretch *stretch)
{
    const struct gir_kernel *kernel = part->kernel;
    struct rule_region region = {0};
    uint32_t k = 0;
    while (k < kernel->n_args && (!gir_args(kernel)[k].is_result || part->maps[k].index != result))
        k++;
    if (k == kernel->n_args || gir_args(kernel)[k].fields > 1 || !part->maps[k].rule)
        return false;
    const struct tensor *tensor = &s->args->outputs[result]->tensor;
    tssa_status *status = rule_region_resolve(s->args->env->pool, part->maps[k].rule, s->inputs,
                                              tensor->rank, tensor->dims, &region);
    int64_t count = 1;
    bool one = !status && !region.table;
    for (int i = region.rank - 1; one && i >= 0; i--) {
        one = region.dims[i] == 1 || region.strides[i] == count;
        count *= region.dims[i];
    }
    tssa_status_free(status); /* whose part it is says so */
    rule_region_release(&region);
    stretch->begin = region.offset;
    stretch->end = region.offset + count;
    return one && count > 0;
}

/* A stretch of all results of the first part that one behind it writes over, the longest: nobody
 * need compute it twice. Results are as large as the walk, `count`. */
static struct stretch find_covered(struct mapped_setup *s, const struct device_fused *fused,
                                   int64_t count)
{
    const struct gir_kernel *kernel = s->part->kernel;
    struct stretch longest = {0};
    for (uint32_t i = 1; i < fused->n_parts; i++) {
        struct stretch all = {.end = count}, one;
        for (uint32_t k = 0; k < kernel->n_args && all.begin < all.end; k++) {
            if (!gir_args(kernel)[k].is_result)
                continue;
            if (s->part->maps[k].rule || gir_args(kernel)[k].fields > 1 ||
                !find_stretch(s, &fused->parts[i], s->part->maps[k].index, &one))
                one.end = one.begin = 0;
            all.begin = one.begin > all.begin ? one.begin : all.begin;
            all.end = one.end < all.end ? one.end : all.end;
        }
        if (all.end - all.begin > longest.end - longest.begin)
            longest = all;
    }
    return longest;
}

/* All but the stretch. */
static void run_around(const struct mapped_setup *s, const struct walk *walk, int64_t count,
                       const struct stretch *covered)
{
    struct stretch before = {walk, 0, covered->begin}, behind = {walk, covered->end, count};
    team_for(s->args->env->team, before.end, WALK_GRAIN, run_stretch, &before);
    team_for(s->args->env->team, behind.end - behind.begin, WALK_GRAIN, run_stretch, &behind);
}

static tssa_status *run_columns(const struct mapped_setup *s, struct walk *walk, int64_t count)
{
    size_t bytes;
    if (walk_keeps_little(walk)) {
        team_for(s->args->env->team, count, WALK_GRAIN / (walk->reduced + 1) + 1, walk_run_columns,
                 walk);
        return NULL;
    }
    if (!walk_kept_bytes(walk, &bytes))
        return ERROR(TSSA_LIMIT, "columns of %" PRId64 " elements are too long", walk->reduced);
    return parts_for(s->args, count, walk->reduced * 2, bytes, walk_run_columns_in, walk);
}

static tssa_status *run_part(struct mapped_setup *s, const struct device_fused *fused, bool made)
{
    struct walk walk;
    struct stretch covered = {0};
    int64_t count;
    TRY(find_walk(s, made, &walk, &count));
    if (!made && fused->n_parts > 1)
        covered = find_covered(s, fused, count);
    if (cpu_keeps(s->part))
        return cpu_run_keeping(s->args, s->part, &walk, count);
    if (count && s->part->kernel->checks)
        return mapped_run_checking(s, &walk, count);
    if (s->part->space.column < 0)
        run_around(s, &walk, count, &covered);
    else if (count)
        return run_columns(s, &walk, count);
    return NULL;
}

/* What is large is filled as far as a part asks for it. */
static void begin(struct mapped_setup *s, struct kernel_args *args)
{
    s->args = args;
    s->is_bent = false;
    memset(s->inputs, 0, sizeof s->inputs);
    s->n_masks = 0;
    for (uint32_t i = 0; i < args->n_inputs && i < GIR_MAX_ARGS; i++)
        if (args->inputs[i] && args->inputs[i]->kind == TSSA_KIND_TENSOR)
            s->inputs[i] = &args->inputs[i]->tensor;
}

tssa_status *cpu_run_mapped(struct kernel_args *args, const struct device_fused *fused)
{
    struct mapped_setup setup;
    begin(&setup, args);
    for (uint32_t i = 0; i < fused->n_parts; i++) {
        setup.part = &fused->parts[i];
        tssa_status *status = run_part(&setup, fused, i > 0);
        release_masks(&setup);
        TRY(status);
    }
    return NULL;
}

/* ---- Calls that are set up ------------------------------------------------------------------- */

static bool asks_known(const struct rule *rule, const bool *known)
{
    for (uint32_t i = 0; rule && i < rule->n_steps; i++)
        for (uint32_t k = 0; k < rule->steps[i].n_params; k++) {
            const struct rule_param *param = &rule->steps[i].params[k];
            if (param->is_operand && !known[param->value])
                return false;
        }
    return true;
}

/* Are start, limit and delta the same in each call? */
static bool asks_known_range(const struct gir_range *range, const bool *known)
{
    bool all = true;
    for (uint32_t i = 0; range && i < 3; i++)
        all &= range->operands[i] < 0 || known[range->operands[i]];
    return all;
}

/* Not what looks at numbers first. */
static bool is_plain(const struct device_part *part, const bool *known)
{
    if ((part->space.trips && !known[part->space.trips - 1]) || cpu_keeps(part))
        return false;
    for (uint32_t k = 0; k < part->kernel->n_args; k++)
        if (gir_args(part->kernel)[k].is_looked_up || !asks_known(part->maps[k].rule, known) ||
            !asks_known_range(part->maps[k].range, known))
            return false;
    return true;
}

bool cpu_set_up_mapped(struct kernel_args *args, const struct device_fused *fused,
                       const bool *known, struct walk_call *call)
{
    struct mapped_setup setup;
    begin(&setup, args);
    setup.part = fused->parts;
    if (fused->n_parts != 1 || !is_plain(setup.part, known))
        return false;
    tssa_status *status = find_walk(&setup, false, &call->walk, &call->count);
    tssa_status_free(status);
    return !status && call->count && !setup.is_bent &&
           walk_set_up(call, args->env->team,
                       setup.part->space.column < 0 ? WALK_ELEMENTS : WALK_COLUMNS);
}
