/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/loops/batch.h"

#include <string.h>

#include "ir/infer.h"
#include "ir/total.h"
#include "passes/analysis/loops.h"
#include "passes/analysis/recurrence.h"
#include "passes/analysis/regions.h"

tssa_status *batch_init(struct batch *batch, struct pass_context *pass, struct ir_cloner *shared,
                        struct ir_cloner *stacked, struct ir_op *loop, struct ir_value *trips)
{
    struct ir_value *counter = loop->blocks[0]->params[0];
    *batch = (struct batch){.pass = pass,
                            .graph = pass->graph,
                            .before = loop,
                            .mark = loop->prev,
                            .body = loop->blocks[0],
                            .trips = trips,
                            .shared = shared,
                            .stacked = stacked};
    ir_cloner_reset(shared);
    ir_cloner_reset(stacked);
    batch->n_trips = trips->known ? trips->known->elements[0] : dim_fresh(&pass->graph->dims, "n");
    TRY_ALLOC(batch->n_trips);
    batch->n_all = batch->n_trips;
    batch->may_be_empty = batch->n_trips->low < 1;
    if (counter->known && counter->known->count == 1)
        batch->counter = counter->known->elements[0];
    return NULL;
}

void batch_undo(struct batch *batch)
{
    struct ir_op *previous;
    for (struct ir_op *op = batch->before->prev; op != batch->mark; op = previous) {
        previous = op->prev;
        ir_release_blocks(op);
        ir_op_remove(op);
    }
}

/* ---- What stands for what ------------------------------------------------------------------------- */

tssa_status *batch_share(struct batch *batch, struct ir_value *value, struct ir_value *outer)
{
    return ir_cloner_map(batch->shared, value, outer) ? NULL : status_out_of_memory();
}

tssa_status *batch_stack(struct batch *batch, struct ir_value *value, struct ir_value *stacked)
{
    return ir_cloner_map(batch->stacked, value, stacked) ? NULL : status_out_of_memory();
}

static bool is_in(const struct batch *batch, const struct ir_block *block)
{
    for (; block; block = block->owner ? block->owner->parent : NULL)
        if (block == batch->body)
            return true;
    return false;
}

struct ir_value *batch_get(const struct batch *batch, const struct ir_value *value, bool *batched)
{
    struct ir_value *stacked = ir_cloner_get(batch->stacked, value);
    *batched = stacked != value;
    if (*batched)
        return stacked;
    struct ir_value *shared = ir_cloner_get(batch->shared, value);
    if (shared != value)
        return shared;
    return is_in(batch, value->op ? value->op->parent : value->block) ? NULL : shared;
}

bool batch_define(struct batch *batch, const struct ir_op *op, uint32_t result, struct ir_value *to,
                  bool batched)
{
    struct ir_cloner *map = batched ? batch->stacked : batch->shared;
    if (!to)
        return false;
    if (ir_cloner_map(map, &op->results[result], to))
        return true;
    batch->status = batch->status ? batch->status : status_out_of_memory();
    return false;
}

/* ---- Makers --------------------------------------------------------------------------------------- */

bool batch_out_of_memory(struct batch *batch)
{
    if (!batch->status)
        batch->status = status_out_of_memory();
    return false;
}

bool batch_put(struct batch *batch, struct ir_op *op)
{
    if (!op)
        return batch_out_of_memory(batch);
    ir_op_insert_before(op, batch->before);
    return batch_infer(batch, op);
}

bool batch_infer(struct batch *batch, struct ir_op *op)
{
    tssa_status *status = ir_infer_op(op);
    if (!status)
        return true;
    if (tssa_status_code(status) == TSSA_OUT_OF_MEMORY && !batch->status)
        batch->status = status;
    else
        tssa_status_free(status); /* no run of it could succeed: the loop stays as it is */
    return false;
}

struct ir_op *batch_copy(struct batch *batch, const struct ir_op *op)
{
    struct ir_op *copy = ir_op_create(batch->graph, op->info, op->n_operands, op->n_results);
    if (!copy) {
        batch_out_of_memory(batch);
        return NULL;
    }
    copy->opaque = op->opaque;
    copy->version = op->version;
    copy->exact = op->exact;
    copy->name = op->name;
    for (uint32_t i = 0; i < op->n_results; i++)
        copy->results[i].wanted = op->results[i].wanted;
    for (uint32_t i = 0; i < op->n_attrs; i++)
        if (!ir_op_set_attr(batch->graph, copy, &op->attrs[i])) {
            batch_out_of_memory(batch);
            return NULL;
        }
    return copy;
}

/* Ops that are in no block must not use anything: undoing would not find them. */
static bool all_there(uint32_t n, struct ir_value *const *values)
{
    for (uint32_t i = 0; i < n; i++)
        if (!values[i])
            return false;
    return true;
}

/* An op of the newest version, not put anywhere yet. */
struct ir_op *batch_new(struct batch *batch, const struct ir_op *origin, enum ir_op_id id,
                        uint32_t n_operands, struct ir_value *const *operands)
{
    const struct ir_op_info *info = ir_op_info(id);
    if (!all_there(n_operands, operands))
        return NULL;
    struct ir_op *op = ir_op_create(batch->graph, info, n_operands, 1);
    if (!op) {
        batch_out_of_memory(batch);
        return NULL;
    }
    op->version = ir_op_is_own(op) ? 0 : ir_op_bind(info, IR_NEWEST_OPSET);
    op->name = origin ? origin->name : NULL;
    op->exact = origin && origin->exact && origin->info == info;
    for (uint32_t i = 0; i < n_operands; i++)
        ir_op_set_operand(op, i, operands[i]);
    return op;
}

struct ir_op *batch_make(struct batch *batch, const struct ir_op *origin, enum ir_op_id id,
                         uint32_t n_operands, struct ir_value *const *operands)
{
    struct ir_op *op = batch_new(batch, origin, id, n_operands, operands);
    return op && batch_put(batch, op) ? op : NULL;
}

static struct ir_value *result_of(struct ir_op *op)
{
    return op ? &op->results[0] : NULL;
}

struct ir_value *batch_ints(struct batch *batch, int rank, size_t count, const int64_t *values)
{
    struct ir_op *op = ir_constant_ints(batch->graph, rank, count, values);
    return batch_put(batch, op) ? &op->results[0] : NULL;
}

struct ir_value *batch_number(struct batch *batch, int64_t value)
{
    return batch_ints(batch, 0, 1, &value);
}

struct ir_value *batch_binary(struct batch *batch, enum ir_op_id id, struct ir_value *a,
                              struct ir_value *b)
{
    struct ir_value *operands[] = {a, b};
    return result_of(batch_make(batch, NULL, id, 2, operands));
}

struct ir_value *batch_unsqueeze(struct batch *batch, const struct ir_op *origin,
                                 struct ir_value *value, int first, int count)
{
    int64_t axes[TSSA_MAX_RANK];
    if (count == 0)
        return value;
    if (!value || value->type->rank + count > TSSA_MAX_RANK)
        return NULL;
    for (int i = 0; i < count; i++)
        axes[i] = first + i;
    struct ir_value *operands[] = {value, batch_ints(batch, 1, (size_t)count, axes)};
    return result_of(batch_make(batch, origin, IR_OP_Unsqueeze, 2, operands));
}

bool batch_set_int(struct batch *batch, struct ir_op *op, const char *name, int64_t value)
{
    struct ir_attr attr = {
        .name = intern_str(&batch->graph->strings, name), .kind = IR_ATTR_INT, .i = value};
    return (attr.name && ir_op_set_attr(batch->graph, op, &attr)) || batch_out_of_memory(batch);
}

bool batch_set_ints(struct batch *batch, struct ir_op *op, const char *name, size_t count,
                    const int64_t *values)
{
    struct ir_attr attr = {
        .name = intern_str(&batch->graph->strings, name), .kind = IR_ATTR_INTS, .count = count};
    attr.ints = arena_copy(&batch->graph->arena, values, count * sizeof *values);
    return (attr.name && attr.ints && ir_op_set_attr(batch->graph, op, &attr)) ||
           batch_out_of_memory(batch);
}

struct ir_value *batch_permute(struct batch *batch, const struct ir_op *origin,
                               struct ir_value *value, const int64_t *perm)
{
    struct ir_op *op = batch_new(batch, origin, IR_OP_Transpose, 1, &value);
    if (!op || !batch_set_ints(batch, op, "perm", (size_t)value->type->rank, perm) ||
        !batch_put(batch, op))
        return NULL;
    return &op->results[0];
}

struct ir_value *batch_move_axis(struct batch *batch, const struct ir_op *origin,
                                 struct ir_value *value, int from, int to)
{
    int64_t perm[TSSA_MAX_RANK];
    if (!value || from == to)
        return value;
    for (int i = 0, k = 0; i < value->type->rank; i++) {
        if (k == from)
            k++;
        perm[i] = i == to ? from : k++;
    }
    return batch_permute(batch, origin, value, perm);
}

struct ir_value *batch_trips_1d(struct batch *batch)
{
    if (!batch->trips_1d)
        batch->trips_1d = batch_unsqueeze(batch, NULL, batch->trips, 0, 1);
    return batch->trips_1d;
}

static struct ir_value *arithmetic(struct batch *batch, const struct ir_op *origin,
                                   enum ir_op_id id, struct ir_value *a, struct ir_value *b)
{
    struct ir_value *operands[] = {a, b};
    return result_of(batch_make(batch, origin, id, 2, operands));
}

struct ir_value *batch_start(struct batch *batch, const struct ir_op *origin, int64_t factor,
                             int64_t offset)
{
    struct ir_value *start = batch->first;
    if (!start)
        return batch_ints(batch, 0, 1, &offset);
    if (factor != 1)
        start = arithmetic(batch, origin, IR_OP_Mul, start, batch_ints(batch, 0, 1, &factor));
    if (offset != 0)
        start = arithmetic(batch, origin, IR_OP_Add, start, batch_ints(batch, 0, 1, &offset));
    return start;
}

/*
 * In a session, where a loop in a loop is a few calls whose number counts: what the iterations were counted by before
 * that was raised to 0, which for a Range is the same. NULL: it was not.
 */
static struct ir_value *raised_to_0(const struct batch *batch)
{
    const struct ir_op *op = batch->trips->op;
    int64_t least;
    if (!pass_is_for_session(batch->pass) || batch->first || !op || !ir_op_is(op, IR_OP_Max) ||
        op->n_operands != 2 || !loop_known_int(ir_operand(op, 1), &least) || least != 0)
        return NULL;
    return ir_operand(op, 0);
}

/* Their number is the length of the Range then, so that nothing is raised at all. */
static struct ir_value *number_range(struct batch *batch, struct ir_value *end)
{
    static const int64_t zero = 0, one = 1;
    struct ir_value *operands[] = {batch_ints(batch, 0, 1, &zero), end,
                                   batch_ints(batch, 0, 1, &one)};
    struct ir_value *range = result_of(batch_make(batch, NULL, IR_OP_Range, 3, operands));
    const struct ir_type *type = type_tensor(&batch->graph->types, TSSA_INT64, 1, &batch->n_trips);
    if (!range || !type) {
        batch_out_of_memory(batch);
        return NULL;
    }
    range->type = type; /* the same size, under the symbol that other types use */
    if (!batch->trips_1d)
        batch->trips_1d = result_of(batch_make(batch, NULL, IR_OP_Shape, 1, &range));
    return range;
}

struct ir_value *batch_range(struct batch *batch)
{
    static const int64_t one = 1;
    struct ir_value *end = batch->range ? NULL : raised_to_0(batch);
    if (end) {
        batch->range = number_range(batch, end);
    } else if (!batch->range) {
        end = batch->trips;
        if (batch->first)
            end = arithmetic(batch, NULL, IR_OP_Add, batch->first, end);
        struct ir_value *operands[] = {batch_start(batch, NULL, 1, 0), end,
                                       batch_ints(batch, 0, 1, &one)};
        batch->range = result_of(batch_make(batch, NULL, IR_OP_Range, 3, operands));
    }
    return batch->range;
}

struct ir_value *batch_concat(struct batch *batch, const struct ir_op *origin, int64_t axis,
                              uint32_t n, struct ir_value *const *parts)
{
    struct ir_op *op = batch_new(batch, origin, IR_OP_Concat, n, parts);
    if (!op || !batch_set_int(batch, op, "axis", axis) || !batch_put(batch, op))
        return NULL;
    return &op->results[0];
}

struct ir_value *batch_shape(struct batch *batch, size_t count, const int64_t *dims)
{
    int64_t all[TSSA_MAX_RANK + 1];
    if (count == 0)
        return batch_trips_1d(batch);
    if (count > TSSA_MAX_RANK)
        return NULL;
    memcpy(all + 1, dims, count * sizeof *dims);
    if (dim_is_const(batch->n_trips, &all[0]) && all[0] > 0)
        return batch_ints(batch, 1, count + 1, all);
    struct ir_value *parts[] = {batch_trips_1d(batch), batch_ints(batch, 1, count, dims)};
    return batch_concat(batch, NULL, 0, 2, parts);
}

/* A Reshape to [n, as it is, ...] copies nothing, and fails when axis 0 is not n long. */
struct ir_value *batch_check(struct batch *batch, const struct ir_op *origin,
                             struct ir_value *value)
{
    static const int64_t zeros[TSSA_MAX_RANK];
    if (!value || value->type->rank < 1)
        return NULL;
    struct ir_value *operands[] = {value, batch_shape(batch, (size_t)value->type->rank - 1, zeros)};
    return result_of(batch_make(batch, origin, IR_OP_Reshape, 2, operands));
}

struct ir_value *batch_stacked(struct batch *batch, const struct ir_value *value,
                               const struct ir_op *origin)
{
    static const int64_t ones[TSSA_MAX_RANK] = {1, 1, 1, 1, 1, 1, 1, 1};
    bool batched;
    struct ir_value *outer = batch_get(batch, value, &batched);
    if (!outer || batched)
        return outer;
    if (outer->type->kind != TYPE_TENSOR || outer->type->rank < 0 ||
        outer->type->rank >= TSSA_MAX_RANK)
        return NULL;
    struct ir_value *operands[] = {outer, batch_shape(batch, (size_t)outer->type->rank, ones)};
    return result_of(batch_make(batch, origin, IR_OP_Expand, 2, operands));
}

/* ---- The body ------------------------------------------------------------------------------------- */

/* Does the op, or what is in it, use a value that differs between iterations? */
static bool uses_batched(const struct batch *batch, const struct ir_op *op)
{
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const struct ir_value *value = op->operands[i].value;
        if (value && ir_cloner_get(batch->stacked, value) != value)
            return true;
    }
    for (uint32_t b = 0; b < op->n_blocks; b++)
        for (const struct ir_op *inner = op->blocks[b]->first; inner; inner = inner->next)
            if (uses_batched(batch, inner))
                return true;
    return false;
}

bool batch_refuse(struct batch *batch, const struct ir_op *op, const char *reason)
{
    if (!batch->reason) {
        batch->blamed = op;
        batch->reason = reason;
    }
    return false;
}

bool batch_refuse_operand(struct batch *batch, const struct ir_op *op, uint32_t index,
                          const char *reason)
{
    if (!batch->reason)
        batch->blamed_value = ir_operand(op, index);
    return batch_refuse(batch, op, reason);
}

/* The same in all iterations: computed once. */
static bool share_op(struct batch *batch, const struct ir_op *op)
{
    if (!ir_op_is_pure(op) || ir_op_is(op, IR_OP_Dropout))
        return batch_refuse(batch, op, "it is not pure");
    if (!ir_op_is_total(op) && batch_may_be_empty(batch))
        return batch_refuse(batch, op, "it could fail where the loop makes no iteration");
    struct ir_op *copy = ir_clone_op(batch->shared, op);
    return batch_put(batch, copy) || batch_refuse(batch, op, "its types cannot be told");
}

/* The region is there in every run, and the source has its shape, or is broadcast to it. */
static bool is_assign_total(const struct ir_op *op)
{
    const struct dim *dims[TSSA_MAX_RANK];
    const struct ir_type *base = ir_operand(op, 0)->type, *source = ir_operand(op, 1)->type;
    int rank;
    if (!region_never_fails(op) || source->kind != TYPE_TENSOR || source->rank < 0)
        return false;
    /* Only the op's graph is written to. */
    tssa_status *status =
        rule_region_shape((struct ir_op *)op, base->rank, base->dims, &rank, dims);
    bool fits = !status && source->rank <= rank;
    tssa_status_free(status);
    for (int i = 1; fits && i <= source->rank; i++) {
        const struct dim *dim = source->dims[source->rank - i];
        fits = dim == dims[rank - i] || dim_is(dim, 1);
    }
    return fits;
}

/* Reads and writes at an index that depends on the iteration fail in no iteration that is not made. */
static bool is_safe(struct batch *batch, const struct ir_op *op)
{
    if (ir_op_is(op, IR_OP_access) || ir_op_is(op, IR_OP_Gather))
        return true;
    return (ir_op_is(op, IR_OP_assign) ? is_assign_total(op) : ir_op_is_total(op)) ||
           !batch_may_be_empty(batch);
}

static bool batch_op(struct batch *batch, const struct ir_op *op)
{
    batch_rule rule = batch_find_rule(op);
    if (op->n_blocks)
        return batch_control(batch, op);
    if (!rule)
        return batch_refuse(batch, op, "there is no form of it for all iterations at once");
    if (!is_safe(batch, op))
        return batch_refuse(batch, op, "it could fail where the loop makes no iteration");
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const struct ir_value *value = op->operands[i].value;
        if (value && (value->type->kind != TYPE_TENSOR || value->type->rank < 0 ||
                      value->type->rank >= TSSA_MAX_RANK))
            return batch_refuse(batch, op, "the rank of an operand is not known");
    }
    return rule(batch, op) ||
           batch_refuse(batch, op, "this use of it has no form for all iterations");
}

static bool is_used(const struct ir_op *op)
{
    for (uint32_t i = 0; i < op->n_results; i++)
        if (op->results[i].uses)
            return true;
    return false;
}

static bool has_unknown_operand(const struct batch *batch, const struct ir_op *op)
{
    bool batched;
    for (uint32_t i = 0; i < op->n_operands; i++)
        if (op->operands[i].value && !batch_get(batch, op->operands[i].value, &batched))
            return true;
    return false;
}

static bool is_skipped(const struct ir_op *op, const struct ir_op *const *skip, size_t n_skip)
{
    for (size_t i = 0; i < n_skip; i++)
        if (skip[i] == op)
            return true;
    return false;
}

/* false with batch->status or a reason. */
static bool make_form(struct batch *batch, const struct ir_op *op)
{
    if (has_unknown_operand(batch, op))
        return batch_refuse(batch, op, "it needs what another iteration computed");
    return (uses_batched(batch, op) ? batch_op(batch, op) : share_op(batch, op)) && !batch->status;
}

bool batch_ops(struct batch *batch, const struct ir_block *block)
{
    for (const struct ir_op *op = block->first; op != ir_block_return(block); op = op->next) {
        if (!is_used(op))
            continue;
        if (batch->nested == 0)
            return batch_refuse(batch, op, "there are too many ops in branches and loops");
        batch->nested--;
        if (!make_form(batch, op))
            return false;
    }
    return true;
}

static bool has_form(const struct batch *batch, const struct ir_op *op)
{
    bool batched;
    for (uint32_t i = 0; i < op->n_results; i++)
        if (op->results[i].uses && !batch_get(batch, &op->results[i], &batched))
            return false;
    return true;
}

tssa_status *batch_body(struct batch *batch, const struct ir_op *const *skip, size_t n_skip,
                        bool *done)
{
    *done = false;
    for (const struct ir_op *op = batch->body->first; op != ir_block_return(batch->body);
         op = op->next)
        if (is_used(op) && !is_skipped(op, skip, n_skip) && !has_form(batch, op) &&
            !make_form(batch, op))
            return batch->status;
    *done = true;
    return NULL;
}

struct slice {
    const struct batch *batch;
    bool *needed; /* by op id */
};

/* The op of the body that a value is a result of, or a value in a block of it. */
static bool mark_op(void *context, struct ir_value *value)
{
    const struct slice *slice = context;
    if (value->op && value->op->parent == slice->batch->body)
        slice->needed[value->op->id] = true;
    return true;
}

tssa_status *batch_slice(struct batch *batch, const struct ir_value *value, bool *done)
{
    const tssa_allocator *allocator = batch->graph->allocator;
    struct slice slice = {batch, allocator_calloc(allocator, batch->graph->n_ops, sizeof(bool))};
    TRY_ALLOC(slice.needed);
    (void)mark_op(&slice, (struct ir_value *)value);
    for (const struct ir_op *op = ir_block_return(batch->body); op; op = op->prev)
        if (slice.needed[op->id])
            (void)recurrence_visit_operands(op, mark_op, &slice);
    *done = true;
    /* What is made meanwhile stands before the loop, not in its body. */
    for (const struct ir_op *op = batch->body->first; *done && op; op = op->next)
        *done = !slice.needed[op->id] || has_form(batch, op) || make_form(batch, op);
    allocator_free(allocator, slice.needed);
    return batch->status;
}

/* i64[n, 1] as i64[n]. */
struct ir_value *batch_flat_index(struct batch *batch, const struct ir_op *origin,
                                  struct ir_value *index)
{
    int64_t axes[TSSA_MAX_RANK], size;
    int rank = index->type->rank;
    for (int i = 1; i < rank; i++) {
        if (!dim_is_const(index->type->dims[i], &size) || size != 1)
            return NULL;
        axes[i - 1] = i;
    }
    if (rank < 2)
        return index;
    struct ir_value *operands[] = {index, batch_ints(batch, 1, (size_t)rank - 1, axes)};
    return result_of(batch_make(batch, origin, IR_OP_Squeeze, 2, operands));
}

/* ---- Regions -------------------------------------------------------------------------------------- */

bool batch_affine(const struct batch *batch, const struct dim *value, int64_t *factor,
                  int64_t *offset)
{
    const struct dim *by, *at_zero;
    return value && batch->counter &&
           dim_affine(&batch->graph->dims, value, batch->counter, &by, &at_zero) &&
           dim_is_const(by, factor) && dim_is_const(at_zero, offset);
}

/* The steps that are being made. */
struct maker {
    struct batch *batch;
    const struct ir_op *op;
    struct batch_region *region;
    struct rule_step steps[RULE_MAX_STEPS + 2];
    uint32_t n_steps;
    bool in_front; /* the axis is there */
};

static struct rule_param *new_params(struct maker *m, uint32_t count)
{
    struct rule_param *params =
        ARENA_ARRAY(&m->batch->graph->arena, struct rule_param, (size_t)count + 1);
    if (!params)
        batch_out_of_memory(m->batch);
    return params;
}

static bool push(struct maker *m, enum rule_kind kind, uint32_t n, const struct rule_param *params)
{
    if (!params || m->n_steps == RULE_MAX_STEPS)
        return false;
    m->steps[m->n_steps++] = (struct rule_step){kind, n, params};
    return true;
}

static bool operand_param(struct maker *m, struct ir_value *value, struct rule_param *param)
{
    if (!value || m->region->n_params == IR_VARIADIC - 4)
        return false;
    *param = rule_operand(m->region->n_params);
    m->region->params[m->region->n_params++] = value;
    return true;
}

/* The number of iterations as a param. */
static bool trips_param(struct maker *m, struct rule_param *param)
{
    int64_t n;
    if (!dim_is_const(m->batch->n_trips, &n))
        return operand_param(m, m->batch->trips, param);
    *param = rule_constant(n);
    return true;
}

/* A param outside the loop; false when it differs between iterations. */
static bool outer_param(struct maker *m, const struct rule_param *from, struct rule_param *to)
{
    bool batched;
    const struct ir_value *value = rule_param_value(m->op, from);
    *to = *from;
    if (!from->is_operand)
        return true;
    struct ir_value *outer = value ? batch_get(m->batch, value, &batched) : NULL;
    return outer && !batched && operand_param(m, outer, to);
}

static bool is_batched_param(const struct maker *m, const struct rule_param *param)
{
    bool batched = false;
    const struct ir_value *value = rule_param_value(m->op, param);
    return value && batch_get(m->batch, value, &batched) && batched;
}

/* permute(axis, the others in order): the axis comes to the front. */
static bool push_to_front(struct maker *m, uint32_t axis, int rank)
{
    struct rule_param *params = new_params(m, (uint32_t)rank);
    if (!params || axis == 0)
        return params != NULL;
    for (int i = 0, k = 0; i < rank; i++)
        if (i != (int)axis)
            params[++k] = rule_constant(i);
    params[0] = rule_constant(axis);
    return push(m, RULE_PERMUTE, (uint32_t)rank, params);
}

/* The same for a block of the iterations. */
static bool push_block(struct maker *m, uint32_t axis, int64_t factor, int64_t offset,
                       const struct dim *dim)
{
    struct batch *batch = m->batch;
    int64_t n, size, length;
    struct rule_param *params = new_params(m, 4);
    if (!params || offset < 0 || factor < 1)
        return false;
    struct ir_value *start = batch_start(batch, m->op, factor, offset), *span = batch->trips;
    if (factor != 1 && dim_is_const(batch->n_trips, &n)) {
        if (__builtin_mul_overflow(factor, n, &length))
            return false;
        span = batch_ints(batch, 0, 1, &length);
    } else if (factor != 1) {
        span = arithmetic(batch, m->op, IR_OP_Mul, span, batch_ints(batch, 0, 1, &factor));
    }
    struct ir_value *end = arithmetic(batch, m->op, IR_OP_Add, start, span);
    params[0] = rule_constant(axis);
    params[3] = rule_constant(factor);
    if (!operand_param(m, start, &params[1]) || !operand_param(m, end, &params[2]))
        return false;
    if (!dim_is_const(batch->n_all, &n) || !dim_is_const(dim, &size) ||
        __builtin_mul_overflow(factor, n - 1, &length) ||
        __builtin_add_overflow(length, offset, &length) || length >= size)
        m->region->in_range = false;
    return push(m, RULE_SLICE, 4, params);
}

/* factor * i + offset for i = 0 ... n - 1 is slice(axis, first, end, factor). */
static bool push_affine(struct maker *m, uint32_t axis, int64_t factor, int64_t offset,
                        const struct dim *dim)
{
    int64_t n = -1, last = 0, size;
    bool fixed = dim_is_const(m->batch->n_trips, &n);
    if (m->batch->first)
        return push_block(m, axis, factor, offset, dim);
    struct rule_param *params = new_params(m, 4);
    if (!params || offset < 0 || factor == 0 || (factor < 0 && !fixed))
        return false;
    if (fixed && (__builtin_mul_overflow(factor, n - 1, &last) ||
                  __builtin_add_overflow(last, offset, &last) || last < 0))
        return false;
    params[0] = rule_constant(axis);
    params[1] = rule_constant(offset);
    params[3] = rule_constant(factor);
    if (fixed)
        params[2] = rule_constant(factor > 0 ? last + 1 : last ? last - 1 : INT64_MIN);
    else if (factor != 1 || offset != 0 || !trips_param(m, &params[2]))
        return false;
    /* An index that is out of range must stay an error: the caller checks how long the axis is. */
    if (!fixed || !dim_is_const(dim, &size) || last >= size || offset >= size)
        m->region->in_range = false;
    return push(m, RULE_SLICE, 4, params);
}

static bool push_gather(struct maker *m, uint32_t axis, const struct rule_param *index)
{
    bool batched;
    struct rule_param *params = new_params(m, 2);
    struct ir_value *value = rule_param_value(m->op, index);
    struct ir_value *stacked = value ? batch_get(m->batch, value, &batched) : NULL;
    if (!params || !stacked || ir_op_is(m->op, IR_OP_assign))
        return false; /* rows that are written must be proven to differ */
    if (stacked->type->rank != 1)
        stacked = batch_flat_index(m->batch, m->op, stacked);
    params[0] = rule_constant(axis);
    return operand_param(m, stacked, &params[1]) && push(m, RULE_GATHER, 2, params);
}

/* select(axis, index that differs between iterations) */
static bool batch_select(struct maker *m, const struct rule_step *step,
                         const struct dim *const *dims, int rank)
{
    int64_t factor, offset;
    uint32_t axis = (uint32_t)step->params[0].value;
    if (m->in_front)
        return false;
    m->in_front = true;
    uint32_t n_params = m->region->n_params;
    if (!batch_affine(m->batch, rule_param_dim(m->op, &step->params[1]), &factor, &offset) ||
        !push_affine(m, axis, factor, offset, dims[axis])) {
        m->region->n_params = n_params;
        if (!push_gather(m, axis, &step->params[1]))
            return false;
    }
    return push_to_front(m, axis, rank);
}

/* gather(axis, indices that differ between iterations): theirs is the first of the axes that come. */
static bool batch_gather(struct maker *m, const struct rule_step *step, int rank)
{
    bool batched;
    uint32_t axis = (uint32_t)step->params[0].value;
    struct rule_param *params = new_params(m, 2);
    struct ir_value *stacked =
        batch_get(m->batch, rule_param_value(m->op, &step->params[1]), &batched);
    if (!params || !stacked || m->in_front || ir_op_is(m->op, IR_OP_assign))
        return false; /* rows that are written must be proven to differ */
    m->in_front = true;
    rank += stacked->type->rank - 1;
    params[0] = rule_constant(axis);
    return rank <= TSSA_MAX_RANK && operand_param(m, stacked, &params[1]) &&
           push(m, RULE_GATHER, 2, params) && push_to_front(m, axis, rank);
}

/* Constant axes, one more each. */
static bool shift_axes(struct maker *m, const struct rule_step *step, struct rule_param *params,
                       uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        params[i] = rule_constant(step->params[i].value + m->in_front);
    for (uint32_t i = count; i < step->n_params; i++)
        if (!outer_param(m, &step->params[i], &params[i]))
            return false;
    return push(m, step->kind, step->n_params, params);
}

/* A param for the axis in front, then those of the step. */
static bool prepend(struct maker *m, const struct rule_step *step, struct rule_param *params,
                    struct rule_param first)
{
    params[0] = first;
    for (uint32_t i = 0; i < step->n_params; i++)
        if (!outer_param(m, &step->params[i], &params[i + m->in_front]))
            return false;
    return push(m, step->kind, step->n_params + m->in_front, params);
}

static bool has_rest(const struct rule_step *step)
{
    for (uint32_t i = 0; i < step->n_params; i++)
        if (step->params[i].is_operand || step->params[i].value == -1)
            return true;
    return false;
}

/* New axes come after the one in front. */
static bool shift_expand(struct maker *m, const struct rule_step *step, int rank)
{
    uint32_t added = step->n_params - (uint32_t)rank;
    struct rule_param *params = new_params(m, step->n_params + 1), *axes = new_params(m, added),
                      n = rule_constant(0);
    if (!params || !axes || (m->in_front && !trips_param(m, &n)))
        return false;
    for (uint32_t i = 0; i < added; i++)
        axes[i] = rule_constant(1 + i);
    if (m->in_front && added && !push(m, RULE_UNSQUEEZE, added, axes))
        return false;
    return prepend(m, step, params, n);
}

static bool shift_step(struct maker *m, const struct rule_step *step)
{
    struct rule_param *params = new_params(m, step->n_params + 1), n = rule_constant(0);
    if (!params)
        return false;
    switch (step->kind) {
    case RULE_SELECT:
    case RULE_SLICE:
    case RULE_GATHER:
    case RULE_MASK:
        return shift_axes(m, step, params, 1);
    case RULE_DIAGONAL:
        return shift_axes(m, step, params, 2);
    case RULE_SQUEEZE:
    case RULE_UNSQUEEZE:
        return shift_axes(m, step, params, step->n_params);
    case RULE_PERMUTE:
        params[0] = rule_constant(0);
        for (uint32_t i = 0; i < step->n_params; i++)
            params[i + m->in_front] = rule_constant(step->params[i].value + m->in_front);
        return push(m, step->kind, step->n_params + m->in_front, params);
    case RULE_RESHAPE:
        /* Without elements -1 could be anything. */
        if (m->in_front &&
            (!trips_param(m, &n) || (has_rest(step) && batch_may_be_empty(m->batch))))
            return false;
        return prepend(m, step, params, n);
    case RULE_TILE:
        return prepend(m, step, params, rule_constant(1));
    default:
        return false;
    }
}

static bool needs_counter(const struct maker *m, const struct rule_step *step)
{
    for (uint32_t i = 0; i < step->n_params; i++)
        if (is_batched_param(m, &step->params[i]))
            return true;
    return false;
}

/* A step that differs between iterations, or that needs the shape before it. */
static bool batch_step(struct maker *m, const struct rule_step *step, bool differs,
                       const struct dim *const *dims, int rank)
{
    if (!differs)
        return shift_expand(m, step, rank);
    if (step->kind == RULE_SELECT)
        return batch_select(m, step, dims, rank);
    return step->kind == RULE_GATHER && batch_gather(m, step, rank);
}

static bool make_steps(struct maker *m, const struct rule *rule, const struct ir_type *base)
{
    for (uint32_t i = 0; i < rule->n_steps; i++) {
        const struct rule_step *step = &rule->steps[i];
        const struct rule prefix = {.n_steps = i, .steps = rule->steps};
        const struct dim *dims[TSSA_MAX_RANK];
        int rank;
        bool differs = needs_counter(m, step);
        if (!differs && step->kind != RULE_EXPAND) {
            if (!shift_step(m, step))
                return false;
            continue;
        }
        tssa_status *status =
            rule_prefix_shape((struct ir_op *)m->op, &prefix, base->rank, base->dims, &rank, dims);
        bool known = !status && rank >= 0;
        tssa_status_free(status);
        if (!known || !batch_step(m, step, differs, dims, rank))
            return false;
    }
    return true;
}

struct batch_region *batch_new_region(struct batch *batch)
{
    struct batch_region *region = ARENA_NEW(&batch->graph->arena, struct batch_region);
    if (!region)
        batch_out_of_memory(batch);
    return region;
}

bool batch_region(struct batch *batch, const struct ir_op *op, bool base_batched,
                  const struct ir_type *base, struct batch_region *region)
{
    struct maker *m = ARENA_NEW(&batch->graph->arena, struct maker);
    if (!m)
        return batch_out_of_memory(batch);
    *m = (struct maker){.batch = batch, .op = op, .region = region, .in_front = base_batched};
    region->n_params = 0;
    region->in_range = true;
    if (!make_steps(m, rule_of(op), base) || !m->in_front)
        return false;
    region->rule = rule_create(batch->graph, m->n_steps, m->steps);
    return region->rule != NULL || batch_out_of_memory(batch);
}
