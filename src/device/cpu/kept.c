/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads share the elements: each keeps of a slice of them, where that begins in the results, and
 * in the end they are joined. Rows that the kernel does not compute are copied behind it, by the
 * mask or by their numbers, to a result that has room for no more than these.
 */
#include "device/cpu/kept.h"

#include <string.h>

#include "kernels/cpu/lib/axes.h"
#include "kernels/cpu/lib/keep.h"

struct keeping {
    const struct walk *walk;
    int64_t count, n;                                 /* elements, slices */
    int64_t told[WALK_MOST_SLICES][GIR_MAX_ARGS + 1]; /* as the code is told it */
};

static int64_t begin_of(const struct keeping *keeping, int64_t slice)
{
    return walk_slice_begin(keeping->count, keeping->n, slice);
}

static void keep_slices(void *context, int64_t begin, int64_t end)
{
    struct keeping *keeping = context;
    const struct walk *walk = keeping->walk;
    for (int64_t slice = begin; slice < end; slice++) {
        const int64_t first = begin_of(keeping, slice), next = begin_of(keeping, slice + 1);
        int64_t *told = keeping->told[slice];
        char *at[GIR_MAX_ARGS];
        for (uint32_t k = 0; k < walk->n_args; k++)
            at[k] = walk->data[k] + first * walk->steps[0][k];
        memset(told, 0, walk->n_args * sizeof *told);
        told[walk->n_args] = first;
        walk->code->run((void *const *)at, walk->given, 1, next - first, &walk->code->calls, told);
    }
}

/* What slices have kept in an argument goes to its front; returns how much that is. */
static int64_t join_slices(const struct keeping *keeping, uint32_t k)
{
    const int64_t size = keeping->walk->steps[0][k];
    char *to = keeping->walk->data[k];
    int64_t all = keeping->told[0][k];
    for (int64_t slice = 1; slice < keeping->n; slice++) {
        const int64_t kept = keeping->told[slice][k];
        memmove(to + all * size, to + begin_of(keeping, slice) * size, (size_t)(kept * size));
        all += kept;
    }
    return all;
}

/* ---- Rows that are copied -------------------------------------------------------------------- */

struct copying {
    const struct keeping *keeping;
    const char *told; /* the mask, or numbers of a slice from where that begins */
    bool by_mask;
    const char *from;
    char *to;
    size_t bytes;                         /* of a row */
    int64_t before[WALK_MOST_SLICES + 1]; /* that are kept of slices before */
};

/* Boxes, and what else is short, of sizes that the compiler knows. */
#define COPY_ROWS(size)                                                                            \
    for (int64_t i = 0; i < n; i++)                                                                \
    memcpy(to + (size_t)i * (size), from + (size_t)numbers[i] * (size), size)

static void copy_rows(const int64_t *numbers, int64_t n, const char *from, size_t bytes, char *to)
{
    switch (bytes) {
    case 8:
        COPY_ROWS(8);
        break;
    case 16:
        COPY_ROWS(16);
        break;
    case 32:
        COPY_ROWS(32);
        break;
    default:
        COPY_ROWS(bytes);
    }
}

static void copy_slices(void *context, int64_t begin, int64_t end)
{
    const struct copying *c = context;
    for (int64_t slice = begin; slice < end; slice++) {
        const int64_t first = begin_of(c->keeping, slice), next = begin_of(c->keeping, slice + 1),
                      kept = c->before[slice + 1] - c->before[slice];
        char *to = c->to + (size_t)c->before[slice] * c->bytes;
        if (c->by_mask)
            keep_rows((const uint8_t *)c->told + first, next - first,
                      c->from + (size_t)first * c->bytes, c->bytes, to, kept);
        else
            copy_rows((const int64_t *)(const void *)c->told + first, kept, c->from, c->bytes, to);
    }
}

/* How many are kept of each slice, and of those before. */
static void count_kept(struct copying *c, uint32_t told_by)
{
    c->before[0] = 0;
    for (int64_t slice = 0; slice < c->keeping->n; slice++) {
        const int64_t first = begin_of(c->keeping, slice),
                      n = begin_of(c->keeping, slice + 1) - first;
        c->before[slice + 1] =
            c->before[slice] + (c->by_mask ? keep_count((const uint8_t *)c->told + first, n)
                                           : c->keeping->told[slice][told_by]);
    }
}

/* Are there as many rows as the mask has elements? */
static bool has_rows(const struct tensor *tensor, int axis, int64_t count)
{
    for (int i = 0; i < axis; i++)
        if (tensor->dims[i] != 1)
            return false;
    return axis < tensor->rank && tensor->dims[axis] == count;
}

#define COPY_GRAIN 262144 /* bytes that threads are started for */

static tssa_status *copy_kept(struct kernel_args *args, const struct device_part *part,
                              const struct keeping *keeping, const struct gir_copy *copy)
{
    struct copying copying;
    const struct tensor *rows;
    struct tensor *kept;
    int64_t dims[TSSA_MAX_RANK];
    TRY(kernel_tensor(args, copy->operand, &rows));
    if (!has_rows(rows, copy->axis, keeping->count))
        return walk_does_not_fit(copy->operand, rows);
    copying.keeping = keeping;
    copying.by_mask = !gir_args(part->kernel)[copy->told_by].is_kept;
    copying.told = keeping->count ? keeping->walk->data[copy->told_by] : NULL;
    count_kept(&copying, copy->told_by);
    memcpy(dims, rows->dims, (size_t)rows->rank * sizeof *dims);
    dims[copy->axis] = copying.before[keeping->n];
    TRY(kernel_output(args, copy->result, rows->dtype, rows->rank, dims, &kept));
    if (!kept || tensor_count(kept) == 0)
        return NULL;
    copying.from = rows->data;
    copying.to = kept->data;
    copying.bytes = dtype_info(rows->dtype)->size *
                    (size_t)dims_product(rows->dims, copy->axis + 1, rows->rank);
    const int64_t all = dims[copy->axis] * (int64_t)copying.bytes;
    team_for(args->env->team, keeping->n, all < COPY_GRAIN ? keeping->n : 1, copy_slices, &copying);
    return NULL;
}

/* ---- Running --------------------------------------------------------------------------------- */

bool cpu_keeps(const struct device_part *part)
{
    return part->n_copies || gir_keeps(part->kernel);
}

int cpu_kept_axis(const struct device_part *part, uint32_t arg)
{
    return part->maps[arg].rank - 1 - (gir_args(part->kernel)[arg].fields > 1);
}

tssa_status *cpu_run_keeping(struct kernel_args *args, const struct device_part *part,
                             const struct walk *walk, int64_t count)
{
    struct keeping keeping; /* large, and filled as far as there are slices */
    keeping.walk = walk;
    keeping.count = count;
    keeping.n = walk_slices(args->env->team, count);
    memset(keeping.told[0], 0, sizeof keeping.told[0]); /* where there is nothing to run */
    if (count)
        team_for(args->env->team, keeping.n, 1, keep_slices, &keeping);
    for (uint32_t i = 0; i < part->n_copies; i++)
        TRY(copy_kept(args, part, &keeping, &part->copies[i]));
    for (uint32_t k = 0; k < part->kernel->n_args && count; k++)
        if (gir_args(part->kernel)[k].is_kept && gir_is_of_op(&part->maps[k]))
            args->outputs[part->maps[k].index]->tensor.dims[cpu_kept_axis(part, k)] =
                join_slices(&keeping, k);
    return NULL;
}
