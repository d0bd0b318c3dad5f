/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/analysis/loops.h"

#include "base/vec.h"
#include "ir/cost.h"
#include "ir/infer.h"
#include "ir/rule.h"

bool loop_known_int(const struct ir_value *value, int64_t *number)
{
    return value && value->known && value->known->count == 1 &&
           dim_is_const(value->known->elements[0], number);
}

struct ir_value *loop_unaliased(struct ir_value *value)
{
    while (value && value->op && (value->op->info->flags & IR_ALIAS) && ir_operand(value->op, 0))
        value = ir_operand(value->op, 0);
    return value;
}

static enum loop_truth truth_of(struct ir_value *value)
{
    int64_t number;
    if (!loop_known_int(value, &number) && !loop_known_int(loop_unaliased(value), &number))
        return LOOP_UNKNOWN;
    return number ? LOOP_TRUE : LOOP_FALSE;
}

enum loop_truth loop_enters(const struct loop *loop)
{
    struct ir_value *condition = ir_operand(loop->op, 1);
    return condition ? truth_of(condition) : LOOP_TRUE;
}

enum loop_truth loop_stays(const struct loop *loop)
{
    struct ir_value *next = ir_operand(loop->ret, 0);
    return loop_unaliased(next) == loop->body->params[1] ? LOOP_TRUE : truth_of(next);
}

bool loop_trips(const struct loop *loop, int64_t *trips)
{
    int64_t limit = INT64_MAX;
    enum loop_truth enters = loop_enters(loop), stays = loop_stays(loop);
    struct ir_value *count = ir_operand(loop->op, 0);
    bool known = !count || loop_known_int(count, &limit);
    *trips = 0;
    if (enters == LOOP_FALSE || (known && limit <= 0))
        return true;
    if (enters == LOOP_UNKNOWN || !known)
        return false;
    *trips = stays == LOOP_FALSE ? 1 : limit;
    return stays != LOOP_UNKNOWN || limit == 1;
}

bool loop_makes(const struct loop *loop, const struct ir_value *value)
{
    const struct ir_block *block = value->op ? value->op->parent : value->block;
    while (block && block != loop->body)
        block = block->owner ? block->owner->parent : NULL;
    return block != NULL;
}

uint32_t loop_size(const struct ir_block *block, uint32_t limit)
{
    uint32_t size = 0;
    for (const struct ir_op *op = block->first; op && size < limit; op = op->next) {
        size += ir_op_computes(op);
        for (uint32_t i = 0; i < op->n_blocks; i++)
            size += loop_size(op->blocks[i], limit - size);
    }
    return size;
}

/* Is the dim no less than 0 where a loop that makes so many iterations makes one? */
static bool is_not_negative(struct dim_table *table, const struct dim *dim, const struct dim *trips)
{
    const struct dim *by, *rest;
    int64_t factor, least;
    if (!dim || dim->low >= 0)
        return dim != NULL;
    return trips->kind == DIM_SYMBOL && dim_affine(table, dim, trips, &by, &rest) &&
           dim_is_const(by, &factor) && factor >= 0 &&
           !__builtin_add_overflow(rest->low, factor, &least) && least >= 0;
}

/* The first and the last of the numbers are the least and the largest. */
static bool counts_within(const struct ir_op *loop, const struct dim *number,
                          const struct dim *size)
{
    struct dim_table *table = &loop->parent->graph->dims;
    const struct ir_value *counter = loop->blocks[0]->params[0], *limit = ir_operand(loop, 0);
    const struct dim *by, *first;
    int64_t factor;
    if (!counter->known || !limit || !limit->known || limit->known->count != 1 ||
        !dim_affine(table, number, counter->known->elements[0], &by, &first) ||
        !dim_is_const(by, &factor) || factor == 0)
        return false;
    const struct dim *one = dim_const(table, 1), *trips = limit->known->elements[0];
    const struct dim *last = dim_add(table, first, dim_mul(table, by, dim_sub(table, trips, one)));
    const struct dim *low = factor > 0 ? first : last, *high = factor > 0 ? last : first;
    return is_not_negative(table, low, trips) &&
           is_not_negative(table, dim_sub(table, dim_sub(table, size, one), high), trips);
}

bool loop_counts_within(const struct ir_op *op, const struct dim *number, const struct dim *size)
{
    for (const struct ir_op *loop = op->parent->owner; loop; loop = loop->parent->owner)
        if (ir_op_is(loop, IR_OP_Loop) && counts_within(loop, number, size))
            return true;
    return false;
}

/* More than this is not stacked, where the number of bytes is known. */
#define MAX_STACKED_BYTES (INT64_C(64) << 20)

static bool is_known_size(const struct dim *dim)
{
    if (dim_is_fresh(dim))
        return false;
    for (uint32_t i = 0; i < dim->n_terms; i++)
        if (!is_known_size(dim->terms[i]))
            return false;
    return true;
}

bool loop_can_stack(const struct loop *loop, const struct ir_value *value)
{
    const struct ir_type *type = value->type;
    const struct ir_value *trips = ir_operand(loop->op, 0);
    int64_t bytes = 1, dim;
    if (type->kind != TYPE_TENSOR || type->rank < 0 || type->rank >= TSSA_MAX_RANK ||
        type->dtype == TSSA_UNDEFINED)
        return false;
    bool fixed = loop_known_int(trips, &bytes);
    for (int i = 0; i < type->rank; i++) {
        if (!is_known_size(type->dims[i]))
            return false;
        fixed &= dim_is_const(type->dims[i], &dim);
        if (fixed && dim > 0 && __builtin_mul_overflow(bytes, dim, &bytes))
            return false;
    }
    return !fixed || bytes <= MAX_STACKED_BYTES / (int64_t)dtype_info(type->dtype)->size;
}

struct ir_op *loop_make_op(struct ir_op *at, enum ir_op_id id, uint32_t n_operands)
{
    const struct ir_op_info *info = ir_op_info(id);
    struct ir_op *op = ir_op_create(at->parent->graph, info, n_operands, 1);
    if (!op)
        return NULL;
    op->version = ir_op_bind(info, IR_NEWEST_OPSET);
    op->name = at->name;
    ir_op_insert_before(op, at);
    return op;
}

tssa_status *loop_make_binary(struct ir_op *at, enum ir_op_id id, struct ir_value *a,
                              struct ir_value *b, struct ir_value **result)
{
    struct ir_op *op = loop_make_op(at, id, 2);
    TRY_ALLOC(op);
    ir_op_set_operand(op, 0, a);
    ir_op_set_operand(op, 1, b);
    *result = &op->results[0];
    return ir_infer_op_lenient(op);
}

static tssa_status *insert_constant(struct ir_op *at, struct ir_op *op, struct ir_value **result)
{
    TRY_ALLOC(op);
    op->name = at->name;
    ir_op_insert_before(op, at);
    *result = &op->results[0];
    return ir_infer_op_lenient(op);
}

tssa_status *loop_make_int(struct ir_op *at, int rank, int64_t number, struct ir_value **result)
{
    return insert_constant(at, ir_constant_ints(at->parent->graph, rank, 1, &number), result);
}

tssa_status *loop_make_bool(struct ir_op *at, bool truth, struct ir_value **result)
{
    struct ir_graph *graph = at->parent->graph;
    struct tensor *tensor = ARENA_NEW(&graph->arena, struct tensor);
    unsigned char *data = arena_alloc_aligned(&graph->arena, 1, TENSOR_ALIGNMENT);
    TRY_ALLOC(tensor);
    TRY_ALLOC(data);
    *data = truth;
    *tensor = (struct tensor){.dtype = TSSA_BOOL, .data = data};
    return insert_constant(at, ir_constant_create(graph, tensor), result);
}

tssa_status *loop_make_unsqueeze(struct ir_op *at, struct ir_value *value, int64_t axis,
                                 struct ir_value **result)
{
    struct ir_value *axes;
    TRY(loop_make_int(at, 1, axis, &axes));
    return loop_make_binary(at, IR_OP_Unsqueeze, value, axes, result);
}

/* As loop_make_trips has made it before: the larger of something and of what is not negative. */
static bool is_made_trips(const struct ir_value *value)
{
    int64_t least;
    return value->op && ir_op_is(value->op, IR_OP_Max) && value->op->n_operands == 2 &&
           value->type->dtype == TSSA_INT64 && loop_known_int(ir_operand(value->op, 1), &least) &&
           least >= 0;
}

tssa_status *loop_make_trips(const struct loop *loop, struct ir_value **trips)
{
    struct ir_graph *graph = loop->body->graph;
    struct ir_value *value = ir_operand(loop->op, 0), *zero, *axis;
    if (value->type->rank != 0) {
        TRY(loop_make_int(loop->op, 1, 0, &axis));
        TRY(loop_make_binary(loop->op, IR_OP_Squeeze, value, axis, &value));
    }
    const struct dim *number =
        value->known && value->known->count == 1 ? value->known->elements[0] : NULL;
    if ((!number || number->low < 0) && !is_made_trips(value)) {
        TRY(loop_make_int(loop->op, 0, 0, &zero));
        TRY(loop_make_binary(loop->op, IR_OP_Max, value, zero, &value));
    }
    if (!value->known || value->known->count != 1 || !value->known->elements[0]) {
        const struct dim *fresh = dim_fresh(&graph->dims, "trips");
        TRY_ALLOC(fresh);
        TRY(infer_set_known(value->op, value->index, 1, &fresh));
    }
    *trips = value;
    return NULL;
}

bool loop_has_empty(const struct ir_type *row)
{
    int64_t size;
    if (row->kind != TYPE_TENSOR || row->dtype == TSSA_UNDEFINED || row->rank < 0 ||
        row->rank >= TSSA_MAX_RANK)
        return false;
    for (int i = 0; i < row->rank; i++)
        if (!dim_is_const(row->dims[i], &size))
            return false;
    return true;
}

tssa_status *loop_make_empty(struct ir_op *at, const struct ir_type *row, struct ir_value **result)
{
    struct ir_graph *graph = at->parent->graph;
    struct tensor *tensor = ARENA_NEW(&graph->arena, struct tensor);
    TRY_ALLOC(tensor);
    tensor->dtype = row->dtype;
    tensor->rank = row->rank + 1;
    for (int i = 0; i < row->rank; i++)
        (void)dim_is_const(row->dims[i], &tensor->dims[i + 1]);
    tensor->data = arena_alloc_aligned(&graph->arena, 1, TENSOR_ALIGNMENT);
    TRY_ALLOC(tensor->data);
    return insert_constant(at, ir_constant_create(graph, tensor), result);
}

void loop_replace(struct ir_value *old, struct ir_value *by)
{
    ir_value_replace(old, by);
    if (!by->name && old->name) {
        by->name = old->name;
        old->name = NULL;
    }
}

/* ---- What an iteration needs of the one before ----------------------------------------------- */

struct search {
    VEC(struct ir_value *) queue;
    bool *seen; /* by id */
};

static bool push(struct search *search, struct ir_value *value)
{
    if (search->seen[value->id])
        return true;
    search->seen[value->id] = true;
    return vec_push(&search->queue, value);
}

/* The values that an op makes, and, of an op that ends a block, those of the block's owner. */
static bool push_results(struct search *search, const struct loop *loop, struct ir_op *op)
{
    struct ir_op *owner = op;
    if (ir_op_is(op, IR_OP_return) && op != loop->ret)
        owner = op->parent->owner;
    for (uint32_t i = 0; i < owner->n_results; i++)
        if (!push(search, &owner->results[i]))
            return false;
    for (uint32_t b = 0; b < op->n_blocks; b++)
        for (uint32_t i = 0; i < op->blocks[b]->n_params; i++)
            if (!push(search, op->blocks[b]->params[i]))
                return false;
    return true;
}

/* Does the op take a region out of the used value, or write one into it? */
static bool is_region(const struct ir_use *use)
{
    return use == use->user->operands && cost_moves_region(use->user);
}

/* Marks everything that depends on a value. */
static tssa_status *reach(struct search *search, const struct loop *loop, bool whole,
                          struct ir_value *from)
{
    bool memory = push(search, from);
    for (size_t i = 0; memory && i < search->queue.count; i++)
        for (struct ir_use *use = search->queue.data[i]->uses; memory && use; use = use->next)
            if (use->user != loop->ret && !(whole && use->value == from && is_region(use)))
                memory = push_results(search, loop, use->user);
    return memory ? NULL : status_out_of_memory();
}

tssa_status *loop_find_recurrence(const struct loop *loop, bool whole,
                                  const struct ir_value **found)
{
    const struct ir_graph *graph = loop->body->graph;
    struct search search = {.queue = VEC_INIT(graph->allocator)};
    tssa_status *status = NULL;
    *found = NULL;
    search.seen = allocator_calloc(graph->allocator, graph->n_values + 1u, sizeof *search.seen);
    TRY_ALLOC(search.seen);
    for (uint32_t k = 0; k < loop->n_carried && !status && !*found; k++) {
        struct ir_value *next = loop_next(loop, k);
        for (size_t i = 0; i < search.queue.count; i++)
            search.seen[search.queue.data[i]->id] = false;
        search.queue.count = 0;
        status =
            next == loop_param(loop, k) ? NULL : reach(&search, loop, whole, loop_param(loop, k));
        if (next && search.seen[next->id])
            *found = loop_param(loop, k);
    }
    vec_free(&search.queue);
    allocator_free(graph->allocator, search.seen);
    return status;
}

/* ---- Rows ------------------------------------------------------------------------------------ */

const struct dim *loop_row_of(const struct ir_op *op)
{
    const struct rule *rule = rule_of(op);
    if (!rule || rule->n_steps != 1 || rule->steps[0].kind != RULE_SELECT ||
        rule->steps[0].params[0].is_operand || rule->steps[0].params[0].value != 0)
        return NULL;
    return rule_param_dim(op, &rule->steps[0].params[1]);
}

bool loop_is_row(const struct ir_type *of, const struct ir_type *row)
{
    if (of->kind != TYPE_TENSOR || row->kind != TYPE_TENSOR || of->rank < 1 ||
        row->rank != of->rank - 1 || of->dtype != row->dtype || row->dtype == TSSA_UNDEFINED)
        return false;
    for (int i = 0; i < row->rank; i++)
        if (row->dims[i] != of->dims[i + 1])
            return false;
    return true;
}
