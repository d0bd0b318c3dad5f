/* SPDX-License-Identifier: Apache-2.0 */
/* access and assign of tssa (ir/rule.h), for every element type. */
#include <string.h>

#include "kernels/cpu/lib/strided.h"
#include "kernels/cpu/mutation/rule_region.h"

static tssa_status *rule_prepare(const struct ir_op *op, const struct kernel_setup *setup,
                                 const void **state)
{
    const struct rule *rule = rule_of(op);
    (void)setup; /* the rule lives as long as the graph */
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

/* Elements that lie in steps, as those of a region without a table do. */
static struct strided_box box_of(const struct rule_region *region)
{
    struct strided_box box = {0};
    for (int i = 0; i < region->rank; i++)
        strided_push(&box, region->dims[i], region->strides[i], region->strides[i]);
    return box;
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
    if (!out || tensor_count(out) == 0)
        return NULL;
    size_t size = dtype_info(base->dtype)->size;
    if (!region->table) {
        struct strided_box box = box_of(region);
        tensor_strides(region->rank, region->dims, box.to);
        strided_copy(args->env->team, size, &box, out->data,
                     (const char *)base->data + (size_t)region->offset * size);
        return NULL;
    }
    struct move move = {.to = out->data, .from = base->data, .size = size};
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

/* The source as a rule of its own sees it, with the region's shape. */
static tssa_status *broadcast(struct kernel_args *args, const struct tensor *source,
                              const struct rule_region *region, struct rule_region *view)
{
    struct rule_param params[TSSA_MAX_RANK];
    for (int i = 0; i < region->rank; i++)
        params[i] = rule_constant(region->dims[i]);
    const struct rule_step step = {RULE_EXPAND, (uint32_t)region->rank, params};
    const struct rule expand = {.n_steps = 1, .steps = &step};
    TRY(rule_region_resolve(args->env->pool, &expand, NULL, source->rank, source->dims, view));
    if (memcmp(view->dims, region->dims, (size_t)region->rank * sizeof *view->dims) != 0)
        return ERROR(TSSA_RUNTIME, "the source does not fit the region");
    return NULL;
}

/* Is no element of the base in it twice? No step makes it so but an expansion, which repeats
 * elements. */
static bool is_single(const struct rule_region *region)
{
    for (int i = 0; i < region->rank; i++)
        if (region->strides[i] == 0 && region->dims[i] > 1)
            return false;
    return true;
}

/* One element after the other, so that of those that are written twice the last one stays. */
static tssa_status *write_elements(struct kernel_args *args, const struct rule_region *region,
                                   const struct rule_region *view, const struct tensor *source,
                                   struct tensor *out)
{
    struct buffer *table;
    TRY(kernel_scratch(args, (size_t)rule_region_count(view) * sizeof(int64_t), &table));
    rule_region_walk(view, store_offset, table->data);
    struct move move = {.to = out->data,
                        .from = source->data,
                        .size = dtype_info(out->dtype)->size,
                        .table = table->data};
    rule_region_walk(region, write_element, &move);
    buffer_release(table);
    return NULL;
}

static tssa_status *assign_region(struct kernel_args *args, const struct rule_region *region)
{
    const struct tensor *base, *source;
    struct tensor *out;
    struct rule_region view = {0};
    TRY(kernel_tensor(args, 0, &base));
    TRY(kernel_tensor(args, 1, &source));
    if (source->dtype != base->dtype)
        return ERROR(TSSA_RUNTIME, "the source has another element type than the base");
    TRY(broadcast(args, source, region, &view));
    TRY(update_input(args, &out));
    if (!out || rule_region_count(region) == 0)
        return NULL;
    if (region->table || !is_single(region))
        return write_elements(args, region, &view, source, out);
    size_t size = dtype_info(out->dtype)->size;
    struct strided_box box = box_of(region);
    memcpy(box.from, view.strides, sizeof view.strides);
    strided_copy(args->env->team, size, &box, (char *)out->data + (size_t)region->offset * size,
                 source->data);
    return NULL;
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

/* ---- Calls that are set up ------------------------------------------------------------------- */

enum { TO, FROM };

struct assign_call {
    struct kernel_call call;
    struct strided_box box;
    size_t size;  /* of an element */
    size_t bytes; /* of the region, which both sides have in one stretch; 0: they do not */
    char *data[2];
};

/* Copies of more are worth the team. */
#define ALONE ((size_t)1 << 16)

static void make_assign(struct kernel_call *call)
{
    const struct assign_call *c = (const struct assign_call *)call;
    if (!c->bytes)
        strided_copy(call->team, c->size, &c->box, c->data[TO], c->data[FROM]);
    else if (c->bytes < ALONE)
        memcpy(c->data[TO], c->data[FROM], c->bytes);
    else
        contiguous_copy(call->team, c->data[TO], c->data[FROM], c->bytes);
}

static bool lies_in_one(const struct strided_box *box, const int64_t *strides)
{
    int64_t stride = 1;
    for (int i = box->rank - 1; i >= 0; i--) {
        if (box->dims[i] != 1 && strides[i] != stride)
            return false;
        stride *= box->dims[i];
    }
    return true;
}

/* May the region's shape be another one with other operands? Then the source's shape tells it, if
 * nothing of it is repeated. */
static bool may_change_shape(const struct rule *rule)
{
    for (uint32_t i = 0; i < rule->n_steps; i++)
        for (uint32_t k = 0; k < rule->steps[i].n_params; k++)
            if (rule->steps[i].kind != RULE_SELECT && rule->steps[i].params[k].is_operand)
                return true;
    return false;
}

static tssa_status *find_boxes(struct kernel_args *args, struct assign_call *c, bool *good)
{
    const struct tensor *source;
    struct tensor *out;
    struct rule_region region = {0}, view = {0};
    TRY(kernel_tensor(args, 1, &source));
    TRY(resolve(args, 2, &region));
    *good = false;
    if (region.table || region.is_bent || !is_single(&region) ||
        source->dtype != args->inputs[0]->tensor.dtype || rule_region_count(&region) == 0 ||
        (may_change_shape(args->state) &&
         tensor_count(source) != (size_t)rule_region_count(&region))) {
        rule_region_release(&region);
        return NULL;
    }
    TRY(broadcast(args, source, &region, &view));
    if (!kernel_take(args, 0, 0, &out))
        return NULL;
    c->size = dtype_info(out->dtype)->size;
    c->box = box_of(&region);
    memcpy(c->box.from, view.strides, sizeof view.strides);
    const bool dense = lies_in_one(&c->box, c->box.to) && lies_in_one(&c->box, c->box.from);
    c->bytes = dense ? (size_t)rule_region_count(&region) * c->size : 0;
    c->data[TO] = (char *)out->data + (size_t)region.offset * c->size;
    c->data[FROM] = source->data;
    *good = true;
    return NULL;
}

/* Numbers of the loop may tell steps, too. */
static bool is_same_assign(const struct kernel_call *x, const struct kernel_call *y)
{
    const struct assign_call *a = (const struct assign_call *)x, *b = (const struct assign_call *)y;
    const size_t bytes = (size_t)a->box.rank * sizeof *a->box.dims;
    return a->bytes == b->bytes && a->box.rank == b->box.rank &&
           memcmp(a->box.dims, b->box.dims, bytes) == 0 &&
           memcmp(a->box.to, b->box.to, bytes) == 0 && memcmp(a->box.from, b->box.from, bytes) == 0;
}

static bool assign_set_up(struct kernel_args *args, const bool *known, struct kernel_call *call)
{
    struct assign_call *c = (struct assign_call *)call;
    bool good = false;
    for (uint32_t k = 2; k < args->n_inputs; k++)
        if (!known[k])
            return false;
    tssa_status *status = find_boxes(args, c, &good);
    tssa_status_free(status);
    *call = (struct kernel_call){.make = make_assign,
                                 .data = c->data,
                                 .n_data = 2,
                                 .team = args->env->team,
                                 .is_same = is_same_assign};
    return !status && good;
}

const struct kernel cpu_kernel_access = {.prepare = rule_prepare, .run = access_run};
const struct kernel cpu_kernel_assign = {.prepare = rule_prepare,
                                         .run = assign_run,
                                         .set_up = assign_set_up,
                                         .call_size = sizeof(struct assign_call)};
