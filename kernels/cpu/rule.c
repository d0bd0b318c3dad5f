/* SPDX-License-Identifier: Apache-2.0 */
/* access and assign of tssa (ir/rule.h), for every element type. */
#include <string.h>

#include "device/cpu/kernels.h"
#include "kernels/cpu/rule_region.h"

static tssa_status *rule_prepare(const struct ir_op *op, struct arena *arena, const void **state)
{
    const struct rule *rule = rule_of(op);
    (void)arena; /* the rule lives as long as the graph */
    if (!rule || rule_problem(rule) || op->n_operands != rule_first_operand(op) + rule->n_operands)
        return ERROR(TSSA_MALFORMED, "the op has no rule that fits its operands");
    *state = rule;
    return NULL;
}

/* The region of the op's rule in its input 0. */
static tssa_status *resolve(struct kernel_args *args, uint32_t first, struct rule_region *region)
{
    const struct rule *rule = args->state;
    const struct tensor *base, *params[IR_VARIADIC];
    TRY(kernel_tensor(args, 0, &base));
    for (uint32_t i = 0; i < rule->n_operands; i++)
        TRY(kernel_tensor(args, first + i, &params[i]));
    return rule_region_resolve(args->env->pool, rule, params, base->rank, base->dims, region);
}

/* Moves one element between a base and its region. */
struct move {
    char *to;
    const char *from;
    size_t size;
    const int64_t *table; /* of writes: where in the source each element comes from */
};

static void read_element(void *context, int64_t n, int64_t offset)
{
    const struct move *move = context;
    memcpy(move->to + (size_t)n * move->size, move->from + (size_t)offset * move->size, move->size);
}

static tssa_status *access_region(struct kernel_args *args, const struct rule_region *region)
{
    const struct tensor *base;
    struct tensor *out;
    TRY(kernel_tensor(args, 0, &base));
    TRY(kernel_output(args, 0, base->dtype, region->rank, region->dims, &out));
    if (!out)
        return NULL;
    struct move move = {.to = out->data, .from = base->data, .size = dtype_info(base->dtype)->size};
    rule_region_walk(region, read_element, &move);
    return NULL;
}

static tssa_status *access_run(struct kernel_args *args)
{
    struct rule_region region = {0};
    tssa_status *status = resolve(args, 1, &region);
    if (!status)
        status = access_region(args, &region);
    rule_region_release(&region);
    return status;
}

static void write_element(void *context, int64_t n, int64_t offset)
{
    const struct move *move = context;
    const char *from = move->from + (size_t)move->table[n] * move->size;
    memcpy(move->to + (size_t)offset * move->size, from, move->size);
}

static void store_offset(void *context, int64_t n, int64_t offset)
{
    ((int64_t *)context)[n] = offset;
}

/* Broadcasts the source to the region's shape, as a rule of its own: where each element comes from. */
static tssa_status *broadcast(struct kernel_args *args, const struct tensor *source,
                              const struct rule_region *region, struct buffer **table)
{
    struct rule_param params[TSSA_MAX_RANK];
    for (int i = 0; i < region->rank; i++)
        params[i] = rule_constant(region->dims[i]);
    const struct rule_step step = {RULE_EXPAND, (uint32_t)region->rank, params};
    const struct rule expand = {.n_steps = 1, .steps = &step};
    struct rule_region view = {0};
    TRY(rule_region_resolve(args->env->pool, &expand, NULL, source->rank, source->dims, &view));
    if (memcmp(view.dims, region->dims, (size_t)region->rank * sizeof *view.dims) != 0)
        return ERROR(TSSA_RUNTIME, "the source does not fit the region");
    *table = pool_alloc(args->env->pool, (size_t)rule_region_count(&view) * sizeof(int64_t) + 1);
    TRY_ALLOC(*table);
    rule_region_walk(&view, store_offset, (*table)->data);
    return NULL;
}

static tssa_status *assign_region(struct kernel_args *args, const struct rule_region *region)
{
    const struct tensor *base, *source;
    struct tensor *out;
    struct buffer *table = NULL;
    TRY(kernel_tensor(args, 0, &base));
    TRY(kernel_tensor(args, 1, &source));
    if (source->dtype != base->dtype)
        return ERROR(TSSA_RUNTIME, "the source has another element type than the base");
    TRY(broadcast(args, source, region, &table));
    tssa_status *status = kernel_output(args, 0, base->dtype, base->rank, base->dims, &out);
    if (!status && out) {
        if (tensor_count(base) > 0)
            memcpy(out->data, base->data, tensor_bytes(base));
        struct move move = {.to = out->data,
                            .from = source->data,
                            .size = dtype_info(base->dtype)->size,
                            .table = table->data};
        rule_region_walk(region, write_element, &move);
    }
    buffer_release(table);
    return status;
}

static tssa_status *assign_run(struct kernel_args *args)
{
    struct rule_region region = {0};
    tssa_status *status = resolve(args, 2, &region);
    if (!status)
        status = assign_region(args, &region);
    rule_region_release(&region);
    return status;
}

const struct cpu_kernel cpu_kernel_access = {rule_prepare, access_run};
const struct cpu_kernel cpu_kernel_assign = {rule_prepare, assign_run};
