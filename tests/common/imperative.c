/* SPDX-License-Identifier: Apache-2.0 */
#include "common/imperative.h"

#include <string.h>

#include "common/test_device.h"
#include "kernels/cpu/mutation/rule_region.h"

/*
 * A tensor by the offsets of its elements in row-major order; `data` is shared by all names of it.
 */
struct name {
    tssa_dtype dtype;
    int rank;
    int64_t dims[TSSA_MAX_RANK];
    size_t count;
    char *data; /* NULL: the value was never computed */
    int64_t *offsets;
};

struct interpreter {
    struct arena arena; /* of everything that has the run's life */
    struct pool pool;
    struct name *names; /* by value id */
};

static tssa_status *run_block(struct interpreter *in, const struct ir_block *block);

static struct name *name_of(const struct interpreter *in, const struct ir_value *value)
{
    return &in->names[value->id];
}

/* ---- Contents -------------------------------------------------------------------------------- */

/* A name of storage of its own with these contents. */
static tssa_status *make_fresh(struct interpreter *in, const struct tensor *tensor,
                               struct name *name)
{
    size_t count = tensor_count(tensor), bytes = tensor_bytes(tensor);
    struct name fresh = {.dtype = tensor->dtype, .rank = tensor->rank, .count = count};
    memcpy(fresh.dims, tensor->dims, sizeof fresh.dims);
    fresh.data = arena_alloc(&in->arena, bytes + 1);
    fresh.offsets = ARENA_ARRAY(&in->arena, int64_t, count + 1);
    TRY_ALLOC(fresh.data);
    TRY_ALLOC(fresh.offsets);
    if (bytes)
        memcpy(fresh.data, tensor->data, bytes);
    for (size_t i = 0; i < count; i++)
        fresh.offsets[i] = (int64_t)i;
    *name = fresh;
    return NULL;
}

/* What a name holds now. */
static tssa_status *read_name(struct interpreter *in, const struct name *name,
                              struct tensor *tensor)
{
    size_t width = dtype_info(name->dtype)->size;
    if (!name->data)
        return ERROR(TSSA_INTERNAL, "a value is used that was not computed");
    *tensor = (struct tensor){.dtype = name->dtype, .rank = name->rank};
    memcpy(tensor->dims, name->dims, sizeof tensor->dims);
    char *data = arena_alloc(&in->arena, name->count * width + 1);
    TRY_ALLOC(data);
    for (size_t i = 0; i < name->count; i++)
        memcpy(data + i * width, name->data + (size_t)name->offsets[i] * width, width);
    tensor->data = data;
    return NULL;
}

static tssa_status *read_int(struct interpreter *in, const struct ir_value *value, int64_t *number)
{
    struct tensor tensor;
    TRY(read_name(in, name_of(in, value), &tensor));
    if (tensor_count(&tensor) != 1)
        return ERROR(TSSA_RUNTIME, "one number is needed");
    *number = dtype_load_int64(tensor.dtype, tensor.data);
    return NULL;
}

static tssa_status *set_scalar(struct interpreter *in, const struct ir_value *value,
                               tssa_dtype dtype, int64_t number)
{
    int64_t data = 0;
    dtype_store_int64(dtype, &data, number);
    return make_fresh(in, &(struct tensor){.dtype = dtype, .data = &data}, name_of(in, value));
}

/* ---- Views and writes ------------------------------------------------------------------------ */

static void store_offset(void *context, int64_t n, int64_t offset)
{
    ((int64_t *)context)[n] = offset;
}

/* The names of the region's elements: where they are in the storage of `base`. */
static tssa_status *make_view(struct interpreter *in, const struct rule_region *region,
                              const struct name *base, struct name *name)
{
    struct name view = *base;
    view.rank = region->rank;
    memcpy(view.dims, region->dims, sizeof view.dims);
    view.count = (size_t)rule_region_count(region);
    view.offsets = ARENA_ARRAY(&in->arena, int64_t, view.count + 1);
    TRY_ALLOC(view.offsets);
    rule_region_walk(region, store_offset, view.offsets);
    for (size_t i = 0; i < view.count; i++)
        view.offsets[i] = base->offsets[view.offsets[i]];
    *name = view;
    return NULL;
}

static tssa_status *run_view(struct interpreter *in, const struct ir_op *op)
{
    const struct name *base = name_of(in, ir_operand(op, 0));
    struct tensor params[IR_VARIADIC];
    const struct tensor *pointers[IR_VARIADIC];
    struct rule_region region = {0};
    for (uint32_t i = 1; i < op->n_operands; i++) {
        TRY(read_name(in, name_of(in, ir_operand(op, i)), &params[i - 1]));
        pointers[i - 1] = &params[i - 1];
    }
    tssa_status *status =
        rule_region_resolve(&in->pool, rule_of(op), pointers, base->rank, base->dims, &region);
    if (!status)
        status = make_view(in, &region, base, name_of(in, &op->results[0]));
    rule_region_release(&region);
    return status;
}

/* Row-major position in `source` of element n of `to`, to whose shape it is broadcast. */
static size_t source_of(const struct name *to, const struct tensor *source, size_t n)
{
    size_t at = 0, stride = 1;
    for (int i = to->rank - 1; i >= 0; i--) {
        size_t dim = (size_t)to->dims[i], coordinate = n % dim;
        int axis = i - (to->rank - source->rank);
        n /= dim;
        if (axis < 0)
            continue;
        at += source->dims[axis] == 1 ? 0 : coordinate * stride;
        stride *= (size_t)source->dims[axis];
    }
    return at;
}

static bool fits(const struct name *to, const struct tensor *source)
{
    if (to->dtype != source->dtype || source->rank > to->rank)
        return false;
    for (int i = 0; i < source->rank; i++)
        if (source->dims[i] != 1 && source->dims[i] != to->dims[to->rank - source->rank + i])
            return false;
    return true;
}

/* The source is read as a whole before anything is stored. */
static tssa_status *run_write(struct interpreter *in, const struct ir_op *op)
{
    const struct name *to = name_of(in, ir_operand(op, 0));
    size_t width = dtype_info(to->dtype)->size;
    struct tensor source;
    TRY(read_name(in, name_of(in, ir_operand(op, 1)), &source));
    if (!fits(to, &source))
        return ERROR(TSSA_RUNTIME, "the source does not fit");
    for (size_t n = 0; n < to->count; n++)
        memcpy(to->data + (size_t)to->offsets[n] * width,
               (const char *)source.data + source_of(to, &source, n) * width, width);
    return NULL;
}

/* ---- Ordinary ops ---------------------------------------------------------------------------- */

static tssa_status *take_results(struct interpreter *in, const struct ir_op *op,
                                 const struct value *results)
{
    for (uint32_t i = 0; i < op->n_results; i++) {
        if (!op->results[i].wanted)
            continue;
        if (results[i].kind != TSSA_KIND_TENSOR)
            return ERROR(TSSA_UNSUPPORTED, "a result is no tensor");
        TRY(make_fresh(in, &results[i].tensor, name_of(in, &op->results[i])));
    }
    return NULL;
}

static tssa_status *run_kernel(struct interpreter *in, const struct ir_op *op)
{
    const struct kernel *kernel = test_device()->device->find_kernel(op);
    struct value inputs[16] = {0}, outputs[16] = {0}, *output_pointers[16] = {0};
    const struct value *input_pointers[16] = {0};
    const void *state = NULL;
    if (!kernel || op->n_operands > 16 || op->n_results > 16)
        return ERROR(TSSA_UNSUPPORTED, "%s is not run here", op->info->name);
    for (uint32_t i = 0; i < op->n_operands; i++) {
        if (!ir_operand(op, i))
            continue;
        inputs[i].kind = TSSA_KIND_TENSOR;
        TRY(read_name(in, name_of(in, ir_operand(op, i)), &inputs[i].tensor));
        input_pointers[i] = &inputs[i];
    }
    for (uint32_t i = 0; i < op->n_results; i++)
        output_pointers[i] = op->results[i].wanted ? &outputs[i] : NULL;
    const struct kernel_setup setup = {.arena = &in->arena, .context = test_device()};
    TRY(kernel_prepare(kernel, op, &setup, &state));
    struct kernel_env env = {.pool = &in->pool, .strings = &in->arena};
    struct kernel_args args = {.env = &env,
                               .state = state,
                               .op = op,
                               .n_inputs = op->n_operands,
                               .n_outputs = op->n_results,
                               .inputs = input_pointers,
                               .outputs = output_pointers};
    tssa_status *status = kernel->run(&args);
    kernel_release(kernel, state);
    if (!status)
        status = take_results(in, op, outputs);
    for (uint32_t i = 0; i < op->n_results; i++)
        value_release(&outputs[i]);
    return status;
}

/* ---- Control flow: names are handed on, contents are not copied ------------------------------ */

static tssa_status *run_if(struct interpreter *in, const struct ir_op *op)
{
    int64_t condition = 0;
    TRY(read_int(in, ir_operand(op, 0), &condition));
    const struct ir_block *block = ir_op_block(op, condition ? "then_branch" : "else_branch");
    TRY(run_block(in, block));
    for (uint32_t i = 0; i < op->n_results; i++)
        *name_of(in, &op->results[i]) = *name_of(in, ir_operand(ir_block_return(block), i));
    return NULL;
}

/* Scan output number `index`: what it was in each iteration, one behind the other. */
static tssa_status *stack(struct interpreter *in, const struct ir_op *op, uint32_t index,
                          const struct tensor *rows, size_t n_rows)
{
    const struct ir_value *element = ir_operand(ir_block_return(op->blocks[0]), index + 1);
    struct tensor out = {.dtype = element->type->dtype, .rank = element->type->rank + 1};
    for (int i = 1; n_rows == 0 && i < out.rank; i++)
        if (!dim_is_const(element->type->dims[i - 1], &out.dims[i]))
            return ERROR(TSSA_RUNTIME, "rows of an unknown shape");
    for (int i = 1; n_rows > 0 && i < out.rank; i++)
        out.dims[i] = rows[0].dims[i - 1];
    out.dims[0] = (int64_t)n_rows;
    size_t bytes = n_rows ? tensor_bytes(&rows[0]) : 0;
    char *data = arena_alloc(&in->arena, n_rows * bytes + 1);
    TRY_ALLOC(data);
    for (size_t i = 0; i < n_rows; i++) {
        if (!tensor_same_shape(&rows[i], &rows[0]))
            return ERROR(TSSA_RUNTIME, "rows of different shapes");
        if (bytes)
            memcpy(data + i * bytes, rows[i].data, bytes);
    }
    out.data = data;
    return make_fresh(in, &out, name_of(in, &op->results[index]));
}

#define MAX_TRIPS 64
#define MAX_RESULTS 16

struct loop {
    uint32_t carried;
    int64_t trips, condition;
    struct name state[MAX_RESULTS];
    struct tensor rows[MAX_RESULTS][MAX_TRIPS];
};

static tssa_status *run_iteration(struct interpreter *in, const struct ir_op *op, struct loop *loop,
                                  int64_t i)
{
    const struct ir_block *body = op->blocks[0];
    const struct ir_op *ret = ir_block_return(body);
    TRY(set_scalar(in, body->params[0], TSSA_INT64, i));
    TRY(set_scalar(in, body->params[1], TSSA_BOOL, loop->condition));
    for (uint32_t k = 0; k < loop->carried; k++)
        *name_of(in, body->params[2 + k]) = loop->state[k];
    TRY(run_block(in, body));
    TRY(read_int(in, ir_operand(ret, 0), &loop->condition));
    for (uint32_t k = 0; k < op->n_results; k++) {
        const struct name *name = name_of(in, ir_operand(ret, 1 + k));
        if (k < loop->carried)
            loop->state[k] = *name;
        else
            TRY(read_name(in, name, &loop->rows[k][i]));
    }
    return NULL;
}

static tssa_status *run_loop(struct interpreter *in, const struct ir_op *op)
{
    struct loop *loop = ARENA_NEW(&in->arena, struct loop);
    int64_t i = 0;
    TRY_ALLOC(loop);
    loop->carried = op->n_operands > 2 ? op->n_operands - 2 : 0;
    loop->trips = INT64_MAX;
    loop->condition = 1;
    if (op->n_results > MAX_RESULTS)
        return ERROR(TSSA_UNSUPPORTED, "too many results");
    if (ir_operand(op, 0))
        TRY(read_int(in, ir_operand(op, 0), &loop->trips));
    if (ir_operand(op, 1))
        TRY(read_int(in, ir_operand(op, 1), &loop->condition));
    for (uint32_t k = 0; k < loop->carried; k++)
        loop->state[k] = *name_of(in, ir_operand(op, 2 + k));
    for (; i < loop->trips && loop->condition; i++) {
        if (i == MAX_TRIPS)
            return ERROR(TSSA_UNSUPPORTED, "too many iterations");
        TRY(run_iteration(in, op, loop, i));
    }
    for (uint32_t k = 0; k < loop->carried; k++)
        *name_of(in, &op->results[k]) = loop->state[k];
    for (uint32_t k = loop->carried; k < op->n_results; k++)
        TRY(stack(in, op, k, loop->rows[k], (size_t)i));
    return NULL;
}

/* ---- Programs -------------------------------------------------------------------------------- */

static tssa_status *run_op(struct interpreter *in, const struct ir_op *op)
{
    if (ir_op_is(op, IR_OP_view))
        return run_view(in, op);
    if (ir_op_is(op, IR_OP_write))
        return run_write(in, op);
    if (ir_op_is(op, IR_OP_If))
        return run_if(in, op);
    if (ir_op_is(op, IR_OP_Loop))
        return run_loop(in, op);
    if (ir_op_is(op, IR_OP_Constant) && ir_value_constant(&op->results[0]))
        return make_fresh(in, ir_value_constant(&op->results[0]), name_of(in, &op->results[0]));
    return run_kernel(in, op);
}

static tssa_status *run_block(struct interpreter *in, const struct ir_block *block)
{
    for (const struct ir_op *op = block->first; op && op != block->last; op = op->next)
        TRY(run_op(in, op));
    return NULL;
}

static tssa_status *copy_out(struct interpreter *in, const struct ir_op *ret, struct value *outputs)
{
    for (uint32_t i = 0; i < ret->n_operands; i++) {
        struct value value = {.kind = TSSA_KIND_TENSOR};
        TRY(read_name(in, name_of(in, ir_operand(ret, i)), &value.tensor));
        size_t bytes = tensor_bytes(&value.tensor);
        struct buffer *buffer = buffer_create(&allocator_default, bytes + 1);
        TRY_ALLOC(buffer);
        if (bytes)
            memcpy(buffer->data, value.tensor.data, bytes);
        value.tensor.data = buffer->data;
        value.tensor.owner = buffer;
        value_move(&outputs[i], &value);
    }
    return NULL;
}

static tssa_status *run_graph(struct interpreter *in, const struct ir_graph *graph,
                              const struct value *const *inputs, struct value *outputs)
{
    in->names = ARENA_ARRAY(&in->arena, struct name, graph->n_values);
    TRY_ALLOC(in->names);
    for (uint32_t i = 0; i < graph->body->n_params; i++)
        TRY(make_fresh(in, &inputs[i]->tensor, name_of(in, graph->body->params[i])));
    TRY(run_block(in, graph->body));
    return copy_out(in, ir_block_return(graph->body), outputs);
}

tssa_status *imperative_run(const struct ir_graph *graph, const struct value *const *inputs,
                            struct value *outputs)
{
    struct interpreter in;
    uint32_t n_outputs = ir_block_return(graph->body)->n_operands;
    arena_init(&in.arena, &allocator_default);
    pool_init(&in.pool, &allocator_default);
    tssa_status *status = run_graph(&in, graph, inputs, outputs);
    for (uint32_t i = 0; status && i < n_outputs; i++)
        value_release(&outputs[i]);
    arena_clear(&in.arena);
    pool_clear(&in.pool);
    return status;
}
