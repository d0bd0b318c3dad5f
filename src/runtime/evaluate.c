/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/evaluate.h"

#include <string.h>

#include "ir/memory.h"

/* ---- Memory ---------------------------------------------------------------------------------- */

static void *limited_allocate(void *user, size_t size, size_t alignment)
{
    struct evaluator *evaluator = user;
    if (size > evaluator->most) {
        evaluator->refused = true;
        return NULL;
    }
    return evaluator->source->allocate(evaluator->source->user, size, alignment);
}

static void limited_release(void *user, void *memory)
{
    const struct evaluator *evaluator = user;
    evaluator->source->release(evaluator->source->user, memory);
}

void evaluator_init(struct evaluator *evaluator, const tssa_allocator *allocator)
{
    evaluator->source = allocator;
    evaluator->limited = (tssa_allocator){evaluator, limited_allocate, limited_release};
    evaluator->most = EVALUATOR_MAX_BYTES;
    evaluator->refused = false;
    evaluator->spare_of = NULL;
    evaluator->spare = NULL;
    evaluator->spare_bytes = 0;
    pool_init(&evaluator->pool, &evaluator->limited);
    arena_init(&evaluator->scratch, &evaluator->limited);
    device_context_open(&evaluator->device, device_find(NULL), &evaluator->limited, NULL);
}

void evaluator_free(struct evaluator *evaluator)
{
    arena_clear(&evaluator->scratch);
    pool_clear(&evaluator->pool);
    device_context_close(&evaluator->device);
}

/* ---- Results --------------------------------------------------------------------------------- */

static bool copy_strings(struct arena *arena, tssa_string *strings, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        strings[i].data = arena_string(arena, strings[i].data, strings[i].size);
        if (!strings[i].data)
            return false;
    }
    return true;
}

/* The tensor with everything it holds in the arena; NULL when memory runs out. */
static struct tensor *copy_tensor(struct arena *arena, const struct tensor *from)
{
    size_t bytes = tensor_bytes(from);
    struct tensor *tensor = ARENA_NEW(arena, struct tensor);
    void *data = arena_alloc_aligned(arena, bytes ? bytes : 1, TENSOR_ALIGNMENT);
    if (!tensor || !data)
        return NULL;
    if (bytes)
        memcpy(data, from->data, bytes);
    *tensor = *from;
    tensor->data = data;
    tensor->owner = NULL;
    if (from->dtype == TSSA_STRING && !copy_strings(arena, data, tensor_count(from)))
        return NULL;
    return tensor;
}

/* The memory of one of the operands, all of which are Constants of the graph. */
static bool is_shared(const struct ir_op *op, const struct tensor *tensor)
{
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const struct tensor *constant = ir_value_constant(op->operands[i].value);
        if (constant && constant->data == tensor->data &&
            tensor_bytes(constant) == tensor_bytes(tensor))
            return true;
    }
    return false;
}

/* The result with the graph's life: views of constants share their memory. */
static struct tensor *keep_tensor(struct arena *arena, const struct ir_op *op,
                                  const struct kernel_place *place, const struct tensor *from)
{
    if (!(place->data && from->data == place->data) && !is_shared(op, from))
        return copy_tensor(arena, from);
    struct tensor *tensor = arena_copy(arena, from, sizeof *from);
    if (tensor)
        tensor->owner = NULL;
    return tensor;
}

static bool are_tensors(const struct ir_op *op, const struct value *outputs)
{
    for (uint32_t i = 0; i < op->n_results; i++)
        if (op->results[i].wanted && outputs[i].kind != TSSA_KIND_TENSOR)
            return false;
    return true;
}

static tssa_status *keep_results(struct ir_graph *graph, const struct ir_op *op,
                                 const struct kernel_place *places, const struct value *outputs,
                                 struct tensor **results)
{
    if (!are_tensors(op, outputs))
        return NULL;
    for (uint32_t i = 0; i < op->n_results; i++)
        if (op->results[i].wanted) {
            results[i] = keep_tensor(&graph->arena, op, &places[i], &outputs[i].tensor);
            TRY_ALLOC(results[i]);
        }
    return NULL;
}

/* ---- The call -------------------------------------------------------------------------------- */

/* What a kernel is called with; everything in the scratch arena. */
struct call {
    struct value *inputs, *outputs;
    const struct value **input_pointers;
    struct value **output_pointers;
    struct kernel_place *places;
};

/* A large result is computed where it is kept: beside a copy of it, and in the gaps that such leave
 * in the heap, weights would take half as much again. */
#define PLACED ((size_t)1 << 20)

static void *take_spare(struct evaluator *evaluator, const struct ir_graph *graph, size_t bytes)
{
    void *spare = evaluator->spare;
    if (evaluator->spare_of != graph || evaluator->spare_bytes < bytes)
        return NULL;
    evaluator->spare = NULL;
    evaluator->spare_bytes = 0;
    return spare;
}

/* The places that no result lies in: of those the largest is kept. An arena takes nothing back. */
static void keep_spare(struct evaluator *evaluator, const struct ir_graph *graph,
                       const struct ir_op *op, const struct kernel_place *places,
                       struct tensor *const *results)
{
    for (uint32_t i = 0; i < op->n_results; i++) {
        const bool taken = results[i] && results[i]->data == places[i].data;
        const size_t bytes = evaluator->spare_of == graph ? evaluator->spare_bytes : 0;
        if (taken || places[i].size <= bytes)
            continue;
        evaluator->spare_of = graph;
        evaluator->spare = places[i].data;
        evaluator->spare_bytes = places[i].size;
    }
}

static void place(struct evaluator *evaluator, struct ir_graph *graph,
                  const struct ir_value *result, struct kernel_place *place)
{
    const struct ir_type *type = result->type;
    int64_t dims[TSSA_MAX_RANK];
    size_t count, bytes;
    if (!result->wanted || type->kind != TYPE_TENSOR || type->rank < 0 || ir_is_view(result) ||
        dtype_info(type->dtype)->size == 0 || type->dtype == TSSA_STRING)
        return;
    for (int i = 0; i < type->rank; i++)
        if (!dim_is_const(type->dims[i], &dims[i]))
            return;
    tssa_status *status = tensor_layout(type->dtype, type->rank, dims, &count, &bytes);
    if (!status && bytes >= PLACED && bytes <= evaluator->most) {
        place->data = take_spare(evaluator, graph, bytes);
        if (!place->data)
            place->data = arena_alloc_aligned(&graph->arena, bytes, TENSOR_ALIGNMENT);
        place->size = place->data ? bytes : 0;
    }
    tssa_status_free(status);
}

static size_t most_of(const struct ir_op *op)
{
    size_t read = 0, most;
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const struct tensor *tensor = ir_value_constant(op->operands[i].value);
        if (tensor && !size_add(read, tensor_bytes(tensor), &read))
            return EVALUATOR_MAX_BYTES;
    }
    return size_mul(read, EVALUATOR_MAX_GROWTH, &most) && most > EVALUATOR_MAX_BYTES
               ? most
               : EVALUATOR_MAX_BYTES;
}

static bool bind(struct arena *arena, const struct ir_op *op, struct call *call)
{
    call->inputs = ARENA_ARRAY(arena, struct value, op->n_operands);
    call->outputs = ARENA_ARRAY(arena, struct value, op->n_results);
    call->input_pointers = ARENA_ARRAY(arena, const struct value *, op->n_operands);
    call->output_pointers = ARENA_ARRAY(arena, struct value *, op->n_results);
    call->places = ARENA_ARRAY(arena, struct kernel_place, op->n_results);
    if (!call->inputs || !call->outputs || !call->input_pointers || !call->output_pointers ||
        !call->places)
        return false;
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const struct tensor *tensor = ir_value_constant(op->operands[i].value);
        if (!tensor)
            continue;
        call->inputs[i] = (struct value){.kind = TSSA_KIND_TENSOR, .tensor = *tensor};
        call->inputs[i].tensor.owner = NULL;
        call->input_pointers[i] = &call->inputs[i];
    }
    for (uint32_t i = 0; i < op->n_results; i++)
        call->output_pointers[i] = op->results[i].wanted ? &call->outputs[i] : NULL;
    return true;
}

static tssa_status *run_kernel(struct evaluator *evaluator, const struct ir_op *op,
                               const struct kernel *kernel, const struct call *call)
{
    const void *state = NULL;
    struct kernel_env env = {.pool = &evaluator->pool, .strings = &evaluator->scratch};
    const struct kernel_setup setup = {.arena = &evaluator->scratch, .context = &evaluator->device};
    TRY(kernel_prepare(kernel, op, &setup, &state));
    struct kernel_args args = {.env = &env,
                               .state = state,
                               .op = op,
                               .n_inputs = op->n_operands,
                               .n_outputs = op->n_results,
                               .inputs = call->input_pointers,
                               .outputs = call->output_pointers,
                               .places = call->places};
    tssa_status *status = kernel->run(&args);
    kernel_release(kernel, state);
    return status;
}

/* An op that fails here may never run in the model, so its error is nobody's concern; but when
 * memory really ran out, that is told. */
static tssa_status *forgive(const struct evaluator *evaluator, tssa_status *status)
{
    if (tssa_status_code(status) == TSSA_OUT_OF_MEMORY && !evaluator->refused)
        return status;
    tssa_status_free(status);
    return NULL;
}

tssa_status *evaluator_run(void *user, struct ir_graph *graph, const struct ir_op *op,
                           struct tensor **results)
{
    struct evaluator *evaluator = user;
    const struct kernel *kernel = evaluator->device.device->find_kernel(op);
    struct call call;
    for (uint32_t i = 0; i < op->n_results; i++)
        results[i] = NULL;
    if (!kernel)
        return NULL;
    arena_clear(&evaluator->scratch);
    evaluator->refused = false;
    evaluator->most = most_of(op);
    if (!bind(&evaluator->scratch, op, &call))
        return status_out_of_memory();
    for (uint32_t i = 0; i < op->n_results; i++)
        place(evaluator, graph, &op->results[i], &call.places[i]);
    tssa_status *status = run_kernel(evaluator, op, kernel, &call);
    if (status)
        status = forgive(evaluator, status);
    else
        status = keep_results(graph, op, call.places, call.outputs, results);
    keep_spare(evaluator, graph, op, call.places, results);
    for (uint32_t i = 0; i < op->n_results; i++)
        value_release(&call.outputs[i]);
    pool_trim(&evaluator->pool);
    return status;
}
