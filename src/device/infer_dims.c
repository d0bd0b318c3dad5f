/* SPDX-License-Identifier: Apache-2.0 */
#include "device/infer_dims.h"

#include "device/device.h"
#include "ir/clone.h"
#include "ir/fuse.h"
#include "ir/infer.h"

#define MOST_NUMBERS 64 /* of an operand that is read */

/* What is inferred from: what the host has, or also what it would have to wait for. */
struct source {
    const struct kernel_args *args;
    bool reads;
};

/* Where its elements are: the host's, or some integers of the device's that are read into
 * `numbers`. NULL: nobody asks for elements. */
static tssa_status *read_elements(const struct source *source, uint32_t index, int64_t *numbers,
                                  void **elements)
{
    const struct kernel_args *args = source->args;
    const struct tensor *tensor = &args->inputs[index]->tensor;
    struct device_stream *stream = args->env->stream;
    const struct device_place from = {tensor->data, tensor->offset}, to = {numbers, 0};
    *elements = args->on_host[index] ? tensor->data : NULL;
    if (args->on_host[index] || !source->reads || !dtype_is_integer(tensor->dtype) ||
        tensor_count(tensor) > MOST_NUMBERS)
        return NULL;
    *elements = numbers;
    stream->counts.waits++;
    return stream->context->device->copy(stream, DEVICE_COPY_OUT, to, from, tensor_bytes(tensor));
}

/* In a graph of the op alone: what has elements is a constant, all else a parameter of its shape.
 */
static tssa_status *stand_in(struct ir_graph *graph, const struct source *source, uint32_t index,
                             struct ir_value **value)
{
    int64_t numbers[MOST_NUMBERS];
    struct tensor tensor = source->args->inputs[index]->tensor;
    TRY(read_elements(source, index, numbers, &tensor.data));
    if (tensor.data) {
        tensor.offset = 0;
        struct ir_op *constant = ir_constant_create(graph, &tensor);
        TRY_ALLOC(constant);
        ir_op_append(graph->body, constant);
        *value = &constant->results[0];
        return ir_infer_op(constant);
    }
    *value = ir_block_add_param(graph->body);
    TRY_ALLOC(*value);
    (*value)->type = type_tensor_const(&graph->types, tensor.dtype, tensor.rank, tensor.dims);
    TRY_ALLOC((*value)->type);
    return NULL;
}

static tssa_status *infer_copy(const struct source *source, struct ir_cloner *cloner,
                               struct ir_op **copy)
{
    const struct kernel_args *args = source->args;
    struct ir_graph *graph = cloner->graph;
    for (uint32_t i = 0; i < args->n_inputs; i++) {
        struct ir_value *value;
        if (!ir_operand(args->op, i))
            continue;
        TRY(stand_in(graph, source, i, &value));
        if (!ir_cloner_map(cloner, ir_operand(args->op, i), value))
            return status_out_of_memory();
    }
    *copy = ir_clone_op(cloner, args->op);
    TRY_ALLOC(*copy);
    ir_forget_declared(*copy);
    ir_op_append(graph->body, *copy);
    return ir_infer_op_lenient(*copy);
}

static bool unknown(void *context, const struct dim *symbol, int64_t *value)
{
    (void)context;
    (void)symbol;
    (void)value;
    return false;
}

static void read_dims(const struct ir_type *type, int rank, bool *has, int64_t *dims)
{
    for (int i = 0; type->rank == rank && i < rank; i++)
        if (!has[i])
            has[i] = dim_eval(type->dims[i], unknown, NULL, &dims[i]);
}

static tssa_status *infer_from(const struct source *source, uint32_t index, bool *has,
                               int64_t *dims)
{
    const struct kernel_args *args = source->args;
    struct ir_graph *graph = ir_graph_create(args->env->stream->context->allocator);
    struct ir_cloner cloner;
    struct ir_op *copy;
    TRY_ALLOC(graph);
    ir_cloner_init(&cloner, graph);
    tssa_status *status = infer_copy(source, &cloner, &copy);
    if (!status)
        read_dims(copy->results[index].type, args->op->results[index].type->rank, has, dims);
    ir_cloner_free(&cloner);
    ir_graph_free(graph);
    return status;
}

static bool has_all(const struct ir_type *type, const bool *has)
{
    for (int i = 0; i < type->rank; i++)
        if (!has[i])
            return false;
    return true;
}

tssa_status *device_infer_dims(const struct kernel_args *args, uint32_t index, bool *has,
                               int64_t *dims)
{
    struct source source = {args, false};
    for (uint32_t i = 0; i < args->n_inputs; i++)
        if (ir_operand(args->op, i) &&
            (!args->inputs[i] || args->inputs[i]->kind != TSSA_KIND_TENSOR))
            return NULL;
    if (args->op->n_blocks && !ir_fuse_body(args->op))
        return NULL;
    TRY(infer_from(&source, index, has, dims));
    source.reads = !args->env->stream->context->device->computes_nothing;
    return source.reads && !has_all(args->op->results[index].type, has)
               ? infer_from(&source, index, has, dims)
               : NULL;
}
