/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers of rows that are not there: what is wrong is said as the operator says it that asks, and
 * of several, of the first one that the interpreter would come to.
 */
#include "device/cpu/mapped.h"

#include <inttypes.h>

tssa_status *mapped_blame(tssa_status *status, const struct gir_map *map)
{
    return map->op ? ir_op_blame(status, map->op) : status;
}

/* The number of the first row of an operand that iterations do not have: the last one before its
 * end, or the one that the first iteration reads behind that. */
static int64_t missing_row(const struct gir_map *map, int64_t all)
{
    int64_t first = 0;
    for (uint32_t i = 0; map->rule && i < map->rule->n_steps; i++)
        if (map->rule->steps[i].kind == RULE_SLICE && map->rule->steps[i].params[0].value == 0)
            first = map->rule->steps[i].params[1].value;
    return first > all ? first : all;
}

bool mapped_is_before(const struct ir_op *a, const struct ir_op *b)
{
    if (a == b)
        return false;
    while (a && a != b)
        a = a->next;
    return a != NULL;
}

tssa_status *mapped_check_iterations(const struct mapped_setup *s)
{
    const struct gir_map *first = NULL;
    const struct tensor *tensor;
    int64_t least = s->part->space.trips ? s->dims[s->part->space.column] : 0;
    for (uint32_t k = 0; k < s->part->kernel->n_args && s->part->space.trips; k++) {
        const struct gir_map *map = &s->part->maps[k];
        const int64_t n = s->n_iterations[k];
        if (n < 0 || n > least || (n == least && (!first || !mapped_is_before(map->op, first->op))))
            continue;
        least = n;
        first = map;
    }
    if (!first)
        return NULL;
    TRY(kernel_tensor(s->args, first->index, &tensor));
    return mapped_blame(ERROR(TSSA_RUNTIME, "index %" PRId64 " is outside a dim of %" PRId64,
                              missing_row(first, tensor->dims[0]), tensor->dims[0]),
                        first);
}

/* As a Gather does. */
static tssa_status *check_lookup(const struct mapped_setup *s, uint32_t k)
{
    const struct gir_map *map = &s->part->maps[k];
    const uint32_t from = (uint32_t)map->indices, field = (uint32_t)(map->indices >> 32);
    const tssa_dtype dtype = gir_args(s->part->kernel)[from].dtype;
    const char *data = s->data[from] + field * dtype_info(dtype)->size;
    const bool many = s->part->maps[from].axes >> map->lookup & 1;
    const int64_t step = s->steps[from][map->lookup], n = many ? s->dims[map->lookup] : 1,
                  n_rows = s->n_rows[k];
    for (int64_t i = 0; i < n; i++) {
        const int64_t row = dtype_load_int64(dtype, data + i * step);
        if (row < -n_rows || row >= n_rows)
            return ERROR(TSSA_RUNTIME,
                         "index %" PRId64 " (number %" PRId64 ") is outside a dim of %" PRId64, row,
                         i, n_rows);
    }
    return NULL;
}

tssa_status *mapped_check_lookups(const struct mapped_setup *s, bool is_empty)
{
    const struct gir_map *first = NULL;
    tssa_status *status = NULL;
    for (uint32_t k = 0; k < s->part->kernel->n_args; k++) {
        const struct gir_map *map = &s->part->maps[k];
        if (!gir_args(s->part->kernel)[k].is_looked_up ||
            (is_empty ? (map->indices & GIR_COMPUTED) != 0 : s->part->kernel->checks) ||
            (first && !mapped_is_before(map->op, first->op)))
            continue;
        tssa_status *found = check_lookup(s, k);
        if (!found)
            continue;
        tssa_status_free(status);
        status = found;
        first = map;
    }
    return first ? mapped_blame(status, first) : NULL;
}

/* ---- Kernels that check ---------------------------------------------------------------------- */

/* Threads that share the elements, and what each was told. */
struct checking {
    const struct walk *walk;
    int64_t count, n; /* elements, slices */
    int64_t told[WALK_MOST_SLICES][2 * GIR_MAX_ARGS + 1];
};

static void check_slices(void *context, int64_t begin, int64_t end)
{
    struct checking *checking = context;
    for (int64_t slice = begin; slice < end; slice++) {
        for (uint32_t k = 0; k < checking->walk->n_args; k++)
            checking->told[slice][k] = -1;
        walk_run_checked(checking->walk, walk_slice_begin(checking->count, checking->n, slice),
                         walk_slice_begin(checking->count, checking->n, slice + 1),
                         checking->told[slice]);
    }
}

/* Where there is no row at all, nothing may be read but what is there instead: so much of it that
 * one element is computed, whose number is wrong. */
static int64_t stand_in(const struct mapped_setup *s, struct walk *walk, int64_t count)
{
    static const char nothing[GIR_MAX_FIELDS * sizeof(uint64_t)];
    for (uint32_t k = 0; k < walk->n_args; k++)
        if (gir_args(s->part->kernel)[k].is_looked_up && s->n_rows[k] == 0) {
            walk->data[k] = (char *)nothing;
            count = 1;
        }
    return count;
}

/* Of the argument that the first op asks for what it has not; NULL: there is none. */
static const struct gir_map *find_failed(const struct checking *checking,
                                         const struct device_part *part, uint32_t *arg,
                                         const int64_t **told)
{
    const struct gir_map *first = NULL;
    for (uint32_t k = 0; k < part->kernel->n_args; k++) {
        int64_t slice = 0;
        while (slice < checking->n && checking->told[slice][k] < 0)
            slice++;
        if (slice == checking->n || (first && !mapped_is_before(part->maps[k].op, first->op)))
            continue;
        first = &part->maps[k];
        *arg = k;
        *told = checking->told[slice];
    }
    return first;
}

/* The error is a Gather's, whose numbers lie along one axis of the space. */
tssa_status *mapped_run_checking(const struct mapped_setup *s, struct walk *walk, int64_t count)
{
    struct checking checking; /* large, and filled as far as there are slices */
    const int64_t *told;
    uint32_t k;
    checking.walk = walk;
    checking.count = stand_in(s, walk, count);
    checking.n = walk_slices(s->args->env->team, checking.count);
    team_for(s->args->env->team, checking.n, 1, check_slices, &checking);
    const struct gir_map *map = find_failed(&checking, s->part, &k, &told);
    if (!map)
        return NULL;
    int64_t at = told[k];
    for (int axis = s->part->space.rank - 1; axis > map->lookup; axis--)
        at /= s->dims[axis];
    at %= s->dims[map->lookup];
    return mapped_blame(ERROR(TSSA_RUNTIME,
                              "index %" PRId64 " (number %" PRId64 ") is outside a dim of %" PRId64,
                              told[walk->n_args + k], at, s->n_rows[k]),
                        map);
}
