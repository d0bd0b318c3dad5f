/* SPDX-License-Identifier: Apache-2.0 */
/* The ops that stand before a loop in the place of its iterations: made, put there and inferred
 * (batch.h). */
#include <string.h>

#include "ir/infer.h"
#include "passes/analysis/loops.h"
#include "passes/loops/batch.h"

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
    if (ir_op_copy_attrs(batch->graph, copy, op))
        return copy;
    batch_out_of_memory(batch);
    return NULL;
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

struct ir_value *batch_arithmetic(struct batch *batch, const struct ir_op *origin, enum ir_op_id id,
                                  struct ir_value *a, struct ir_value *b)
{
    struct ir_value *operands[] = {a, b};
    return result_of(batch_make(batch, origin, id, 2, operands));
}

struct ir_value *batch_binary(struct batch *batch, enum ir_op_id id, struct ir_value *a,
                              struct ir_value *b)
{
    return batch_arithmetic(batch, NULL, id, a, b);
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

struct ir_value *batch_start(struct batch *batch, const struct ir_op *origin, int64_t factor,
                             int64_t offset)
{
    struct ir_value *start = batch->first;
    if (!start)
        return batch_ints(batch, 0, 1, &offset);
    if (factor != 1)
        start = batch_arithmetic(batch, origin, IR_OP_Mul, start, batch_ints(batch, 0, 1, &factor));
    if (offset != 0)
        start = batch_arithmetic(batch, origin, IR_OP_Add, start, batch_ints(batch, 0, 1, &offset));
    return start;
}

/*
 * In a session, where a loop in a loop is a few calls whose number counts: what the iterations were
 * counted by before that was raised to 0, which for a Range is the same. NULL: it was not.
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
            end = batch_arithmetic(batch, NULL, IR_OP_Add, batch->first, end);
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

/* i64[n, 1] as i64[n]. */
struct ir_value *batch_flat_index(struct batch *batch, const struct ir_op *origin,
                                  struct ir_value *index)
{
    int64_t axes[TSSA_MAX_RANK];
    int rank = index->type->rank;
    for (int i = 1; i < rank; i++) {
        if (!dim_is(index->type->dims[i], 1))
            return NULL;
        axes[i - 1] = i;
    }
    if (rank < 2)
        return index;
    struct ir_value *operands[] = {index, batch_ints(batch, 1, (size_t)rank - 1, axes)};
    return result_of(batch_make(batch, origin, IR_OP_Squeeze, 2, operands));
}
