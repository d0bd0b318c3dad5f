/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replaces values whose elements inference knows, all of them constants, by Constant ops: what
 * exported shape arithmetic (Shape, Gather, Concat, ...) comes to when shapes are fixed.
 *
 *   needs   known elements
 *   keeps   types; the ops that computed the values stay, without uses (dead_code removes them)
 *   breaks  nothing
 */
#include "ir/infer.h"
#include "passes/pass.h"

/* A tensor in the graph's arena with the known elements of a value; NULL when memory runs out. */
static struct tensor *make_tensor(struct ir_graph *graph, const struct ir_value *value)
{
    tssa_dtype dtype = value->type->dtype;
    size_t count = value->known->count, width = tssa_dtype_size(dtype);
    struct tensor *tensor = ARENA_NEW(&graph->arena, struct tensor);
    char *data = arena_alloc_aligned(&graph->arena, count ? count * width : 1, TENSOR_ALIGNMENT);
    if (!tensor || !data)
        return NULL;
    for (size_t i = 0; i < count; i++)
        dtype_store_int64(dtype, data + i * width, value->known->elements[i]->value);
    *tensor = (struct tensor){.dtype = dtype, .rank = value->type->rank, .data = data};
    tensor->dims[0] = (int64_t)count;
    return tensor;
}

/* Does the element type hold the number? Arithmetic on dims does not wrap as the run would. */
static bool fits(tssa_dtype dtype, int64_t number)
{
    int64_t stored[2] = {0, 0};
    dtype_store_int64(dtype, stored, number);
    return dtype_load_int64(dtype, stored) == number;
}

static bool is_foldable(const struct ir_value *value)
{
    const struct ir_type *type = value->type;
    const struct ir_known *known = value->known;
    if (!value->uses || !known || type->kind != TYPE_TENSOR ||
        (type->rank != 0 && type->rank != 1) ||
        !(dtype_is_integer(type->dtype) || type->dtype == TSSA_BOOL))
        return false;
    int64_t length = 1, element;
    if (type->rank == 1 && !dim_is_const(type->dims[0], &length))
        return false;
    if ((uint64_t)length != known->count)
        return false;
    for (size_t i = 0; i < known->count; i++)
        if (!dim_is_const(known->elements[i], &element) || !fits(type->dtype, element))
            return false;
    return true;
}

static tssa_status *fold(struct ir_graph *graph, struct ir_op *op, struct ir_value *value)
{
    struct tensor *tensor = make_tensor(graph, value);
    TRY_ALLOC(tensor);
    struct ir_op *constant = ir_constant_create(graph, tensor);
    TRY_ALLOC(constant);
    constant->name = op->name; /* messages and profiles still lead to the model's node */
    ir_op_insert_before(constant, op);
    TRY(ir_infer_op_lenient(constant));
    ir_value_replace(value, &constant->results[0]);
    constant->results[0].name = value->name;
    value->name = NULL;
    return NULL;
}

static tssa_status *visit(void *context, struct ir_op *op)
{
    struct pass_context *pass = context;
    if (ir_op_is(op, IR_OP_Constant) || !(op->info->flags & IR_PURE))
        return NULL;
    for (uint32_t i = 0; i < op->n_results; i++)
        if (is_foldable(&op->results[i])) {
            TRY(fold(pass->graph, op, &op->results[i]));
            pass->changed = true;
        }
    return NULL;
}

tssa_status *pass_fold_shapes(struct pass_context *pass)
{
    return ir_block_walk(pass->graph->body, visit, pass);
}
