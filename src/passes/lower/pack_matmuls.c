/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One row times many constant matrices becomes one row times one wide matrix:
 *
 *     MatMul(a[1, K], W[G, K, N])   ->   Reshape(MatMul(a[1, K], W'[K, G*N]), [G, 1, N])
 *
 * Weights that are kept gate by gate cost a call each; a wide matrix costs one, and libraries lay
 * it out in advance. The wide matrix is made here, and takes the place of the other when nothing
 * else reads it.
 *
 *   needs   constants where they are (fold_constants)
 *   keeps   nothing of the last bits: a library may sum a row of a wide matrix in another order
 *   breaks  nothing
 */
#include <string.h>

#include "passes/pass.h"

/* A row, or rows each in a matrix of its own: [1, K] or [..., 1, 1, K]. */
static bool is_row(const struct ir_value *value)
{
    const struct ir_type *type = value->type;
    return type->kind == TYPE_TENSOR && type->rank >= 2 && dim_is(type->dims[type->rank - 2], 1) &&
           (type->rank == 2 || dim_is(type->dims[type->rank - 3], 1));
}

static const struct tensor *stacked_matrices(const struct ir_value *value)
{
    const struct tensor *tensor = value ? ir_value_constant(value) : NULL;
    if (!tensor || tensor->rank != 3 || tensor->dims[0] < 2 || tensor->dtype == TSSA_STRING)
        return NULL;
    return tensor;
}

/* W'[k, g * N + n] = W[g, k, n] */
static struct tensor *make_wide(struct ir_graph *graph, const struct tensor *from)
{
    int64_t matrices = from->dims[0], rows = from->dims[1], columns = from->dims[2];
    size_t line = (size_t)columns * dtype_info(from->dtype)->size;
    struct tensor *wide = ARENA_NEW(&graph->arena, struct tensor);
    char *data = arena_alloc_aligned(&graph->arena, tensor_bytes(from), TENSOR_ALIGNMENT);
    if (!wide || !data)
        return NULL;
    for (int64_t g = 0; g < matrices; g++)
        for (int64_t k = 0; k < rows; k++)
            memcpy(data + (size_t)(k * matrices + g) * line,
                   (const char *)from->data + (size_t)(g * rows + k) * line, line);
    *wide = (struct tensor){
        .dtype = from->dtype, .rank = 2, .dims = {rows, matrices * columns}, .data = data};
    return wide;
}

static struct ir_op *create(struct ir_graph *graph, enum ir_op_id id, struct ir_value *a,
                            struct ir_value *b)
{
    struct ir_op *op = ir_op_create(graph, ir_op_info(id), 2, 1);
    if (!op)
        return NULL;
    op->version = ir_op_bind(op->info, IR_NEWEST_OPSET);
    ir_op_set_operand(op, 0, a);
    ir_op_set_operand(op, 1, b);
    return op;
}

/* [..., 1, 1, K] without the axis of the matrices. */
static tssa_status *drop_axis(struct ir_graph *graph, struct ir_op *matmul, struct ir_value **row)
{
    const int64_t axis = (*row)->type->rank - 3;
    if (axis < 0)
        return NULL;
    struct ir_op *axes = ir_constant_ints(graph, 1, 1, &axis);
    TRY(pass_insert(axes, matmul));
    struct ir_op *squeeze = create(graph, IR_OP_Squeeze, *row, &axes->results[0]);
    TRY(pass_insert(squeeze, matmul));
    *row = &squeeze->results[0];
    return NULL;
}

/* The shape of the result: 0 keeps what is in front. */
static tssa_status *make_shape(struct ir_graph *graph, struct ir_op *matmul, int rank,
                               const struct tensor *weights, struct ir_op **shape)
{
    int64_t dims[TSSA_MAX_RANK] = {0};
    dims[rank - 3] = weights->dims[0];
    dims[rank - 2] = 1;
    dims[rank - 1] = weights->dims[2];
    *shape = ir_constant_ints(graph, 1, (size_t)rank, dims);
    return pass_insert(*shape, matmul);
}

static tssa_status *pack(struct pass_context *pass, struct ir_op *matmul,
                         const struct tensor *weights)
{
    struct ir_graph *graph = pass->graph;
    struct ir_value *row = ir_operand(matmul, 0), *result = &matmul->results[0];
    struct tensor *wide = make_wide(graph, weights);
    int rank = row->type->rank < 3 ? 3 : row->type->rank;
    struct ir_op *shape = NULL;
    TRY_ALLOC(wide);
    struct ir_op *constant = ir_constant_create(graph, wide);
    TRY(pass_insert(constant, matmul));
    TRY(drop_axis(graph, matmul, &row));
    struct ir_op *product = create(graph, IR_OP_MatMul, row, &constant->results[0]);
    TRY(pass_insert(product, matmul));
    TRY(make_shape(graph, matmul, rank, weights, &shape));
    struct ir_op *reshape = create(graph, IR_OP_Reshape, &product->results[0], &shape->results[0]);
    TRY(pass_insert(reshape, matmul));
    TRY(pass_remark(pass, TSSA_REMARK_APPLIED, matmul, "%lld matrices became one",
                    (long long)weights->dims[0]));
    reshape->results[0].name = result->name;
    result->name = NULL;
    ir_value_replace(result, &reshape->results[0]);
    ir_op_remove(matmul);
    pass->changed = true;
    return NULL;
}

static tssa_status *visit(void *context, struct ir_op *op)
{
    if (!ir_op_is(op, IR_OP_MatMul) || !ir_operand(op, 0) || !is_row(ir_operand(op, 0)))
        return NULL;
    const struct tensor *weights = stacked_matrices(ir_operand(op, 1));
    return weights ? pack(context, op, weights) : NULL;
}

tssa_status *pass_pack_matmuls(struct pass_context *pass)
{
    return ir_block_walk(pass->graph->body, visit, pass);
}
