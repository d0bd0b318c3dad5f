/* SPDX-License-Identifier: Apache-2.0 */
#include "device/count.h"

#include "device/infer_dims.h"
#include "gir/iteration.h"
#include "ir/cost.h"
#include "ir/fuse.h"
#include "ir/rule.h"
#include "ir/update.h"

static uint64_t tensor_bytes_of(const struct value *value)
{
    return value && value->kind == TSSA_KIND_TENSOR ? tensor_bytes(&value->tensor) : 0;
}

/* Of an operand in the device's memory. */
static uint64_t operand_bytes(const struct kernel_args *args, uint32_t index)
{
    return args->on_host[index] ? 0 : tensor_bytes_of(args->inputs[index]);
}

/* Of a type within the op; UINT64_MAX where that is not known. */
static uint64_t bytes_of(const struct kernel_args *args, const struct ir_type *type,
                         count_dim_fn dim)
{
    size_t bytes = tssa_dtype_size(type->dtype);
    for (int i = 0; i < type->rank; i++) {
        int64_t size;
        if (!dim(args, type->dims[i], &size) || size < 0 || !size_mul(bytes, (size_t)size, &bytes))
            return UINT64_MAX;
    }
    return type->rank < 0 ? UINT64_MAX : bytes;
}

uint32_t count_updated(const struct ir_op *fuse, uint32_t result)
{
    uint32_t updated;
    return ir_fuse_begins_as(fuse, result, &updated) ? updated : UINT32_MAX;
}

tssa_status *count_find_updates(const struct ir_op *op, struct arena *arena,
                                const uint32_t **updates)
{
    uint32_t *found;
    *updates = NULL;
    if (!ir_fuse_body(op))
        return NULL;
    found = ARENA_ARRAY(arena, uint32_t, op->n_results);
    TRY_ALLOC(found);
    for (uint32_t i = 0; i < op->n_results; i++)
        found[i] = count_updated(op, i) + 1;
    *updates = found;
    return NULL;
}

static bool is_updated(const struct kernel_args *args, const uint32_t *updates, uint32_t operand)
{
    uint32_t i = 0;
    while (i < args->n_outputs && updates[i] != operand + 1)
        i++;
    return i < args->n_outputs;
}

/* How often an iteration of the op's loop is run; UINT64_MAX where that is not known. */
static uint64_t trips_of(const struct kernel_args *args, count_dim_fn dim)
{
    const struct ir_op *loop = ir_fuse_loop(args->op);
    const struct ir_value *count = loop && ir_op_is(loop, IR_OP_Loop) ? ir_operand(loop, 0) : NULL;
    int64_t trips;
    if (!count)
        return UINT64_MAX;
    const struct tensor *tensor = &args->inputs[count->index]->tensor;
    if (args->on_host[count->index])
        trips = dtype_load_int64(tensor->dtype, tensor->data);
    else if (!count->known || count->known->count != 1 ||
             !dim(args, count->known->elements[0], &trips))
        return UINT64_MAX;
    return trips > 0 ? (uint64_t)trips : 0;
}

struct reading {
    const struct kernel_args *args;
    count_dim_fn dim;
    uint64_t all;   /* of the value */
    uint64_t times; /* that what reads it is run */
};

static uint64_t bytes_read(const struct reading *r, const struct ir_value *value);

/* Of an op whose elements are computed where one other op wants some: as much is read of what it
 * reads. */
static bool is_computed_where_read(const struct ir_op *op)
{
    const bool moves = ir_op_is(op, IR_OP_access) && rule_keeps_order(rule_of(op));
    const struct ir_use *use = op->n_results == 1 ? op->results[0].uses : NULL;
    return (op->info->ew || moves) && use && !use->next &&
           ir_operand(op, 0)->type->dtype == op->results[0].type->dtype;
}

static uint64_t bytes_of_use(const struct reading *r, const struct ir_use *use)
{
    const struct ir_op *user = use->user;
    const size_t index = (size_t)(use - user->operands);
    struct reading inner = *r;
    if (ir_fuse_body(user)) { /* an iteration */
        inner.times = trips_of(r->args, r->dim);
        return bytes_read(&inner, ir_fuse_body(user)->params[index]);
    }
    if (is_computed_where_read(user))
        return bytes_read(r, &user->results[0]);
    if (!ir_op_is(user, IR_OP_access) || index != 0)
        return r->all;
    const uint64_t once = bytes_of(r->args, user->results[0].type, r->dim);
    return once && r->times > r->all / once ? r->all : once * r->times;
}

/* Regions, where that is all that is read of the value. */
static uint64_t bytes_read(const struct reading *r, const struct ir_value *value)
{
    uint64_t bytes = 0;
    for (const struct ir_use *use = value->uses; use && bytes < r->all; use = use->next) {
        const uint64_t more = bytes_of_use(r, use);
        bytes = more < r->all - bytes ? bytes + more : r->all;
    }
    return bytes;
}

/* What a fused kernel reads of an operand. */
static uint64_t fused_bytes(const struct kernel_args *args, const uint32_t *updates, uint32_t index,
                            count_dim_fn dim)
{
    const uint64_t all = is_updated(args, updates, index) ? 0 : operand_bytes(args, index);
    const struct reading reading = {args, dim, all, 1};
    return bytes_read(&reading, ir_fuse_body(args->op)->params[index]);
}

/* Of what the iterations of a loop leave in the same memory: as much as they store of it, or all.
 */
static uint64_t bytes_left(const struct kernel_args *args, const struct ir_value *last,
                           uint64_t all, count_dim_fn dim)
{
    const struct ir_value *next = gir_loop_next(last->op, last->index);
    const uint64_t trips = trips_of(args, dim);
    uint32_t operand;
    if (!ir_fuse_updates(next->op, next->index, &operand))
        return all;
    const struct ir_op *assign = ir_fuse_returned(next->op, next->index)->op;
    const uint64_t once = bytes_of(args, ir_operand(assign, 1)->type, dim);
    return once && trips > all / once ? all : once * trips;
}

/* What a fused kernel writes of a result that it updates. */
static uint64_t updated_bytes(const struct kernel_args *args, uint32_t index, count_dim_fn dim)
{
    const struct ir_value *made = ir_fuse_returned(args->op, index);
    if (made->op == ir_fuse_loop(args->op))
        return bytes_left(args, made, tensor_bytes_of(args->outputs[index]), dim);
    return bytes_of(args, ir_operand(made->op, 1)->type, dim);
}

void count_bytes(const struct kernel_args *args, const uint32_t *updates, count_dim_fn dim)
{
    const bool region = cost_moves_region(args->op);
    uint64_t bytes = 0;
    for (uint32_t i = region ? 1 : 0; i < args->n_inputs; i++)
        if (!(args->op->info->flags & IR_SHAPE))
            bytes += updates ? fused_bytes(args, updates, i, dim) : operand_bytes(args, i);
    for (uint32_t i = 0; i < args->n_outputs; i++)
        bytes += updates && updates[i] && args->outputs[i]
                     ? updated_bytes(args, i, dim)
                     : tensor_bytes_of(args->outputs[i]) * (region ? 2 : 1);
    args->env->stream->counts.bytes += bytes;
}

static bool told_by_plan(void *context, const struct dim *symbol, int64_t *value)
{
    const struct kernel_sizes *sizes = context;
    return sizes->dim(sizes, symbol, value);
}

static tssa_status *tells(const struct kernel_args *args, uint32_t index, bool *told)
{
    const struct ir_type *type = args->op->results[index].type;
    int64_t dims[TSSA_MAX_RANK];
    bool has[TSSA_MAX_RANK], all = true;
    for (int i = 0; i < type->rank; i++)
        all &= has[i] = dim_eval(type->dims[i], told_by_plan, (void *)args->env->sizes, &dims[i]);
    if (!all)
        TRY(device_infer_dims(args, index, has, dims));
    *told = true;
    for (int i = 0; i < type->rank; i++)
        *told &= has[i];
    return NULL;
}

tssa_status *count_wait(const struct kernel_args *args)
{
    struct device_counts *counts = &args->env->stream->counts;
    const struct device_counts before = *counts;
    bool told = true;
    for (uint32_t i = 0; i < args->n_outputs && told; i++)
        if (args->outputs[i])
            TRY(tells(args, i, &told));
    *counts = before; /* what was read to tell is not what a device would read */
    counts->waits += !told;
    return NULL;
}

void count_copy_first(const struct kernel_args *args, uint32_t output)
{
    struct device_counts *counts = &args->env->stream->counts;
    counts->launches++;
    counts->bytes += 2 * tensor_bytes_of(args->outputs[output]);
}

/* What is written is read from an operand of the same type. */
void count_update(const struct kernel_args *args, bool taken)
{
    struct device_counts *counts = &args->env->stream->counts;
    const tssa_dtype dtype = args->op->results[0].type->dtype;
    for (uint32_t i = 1; i < args->n_inputs; i++) {
        const struct value *value = args->inputs[i];
        counts->bytes += operand_bytes(args, i);
        if (value && value->kind == TSSA_KIND_TENSOR && value->tensor.dtype == dtype)
            counts->bytes += tensor_bytes(&value->tensor);
    }
    counts->launches += taken ? 1 : 2;
    counts->bytes += taken ? 0 : 2 * tensor_bytes_of(args->outputs[0]);
}

void count_copy(struct device_stream *stream, enum device_copy kind, size_t size)
{
    struct device_counts *counts = &stream->counts;
    const bool within = kind == DEVICE_COPY_WITHIN;
    counts->launches += within;
    counts->bytes += within ? 2 * size : 0;
    counts->copies += !within;
    counts->copied_bytes += within ? 0 : size;
}

void count_fill(struct device_stream *stream, size_t size)
{
    stream->counts.launches++;
    stream->counts.bytes += size;
}
