/* SPDX-License-Identifier: Apache-2.0 */
/* Inference of the rows of attention.def. */
#include "ir/infer.h"

/* The d-th dim of an operand, or a fresh one where its rank is not `rank`. */
static const struct dim *dim_of(struct ir_op *op, uint32_t operand, int rank, int d)
{
    return infer_rank(op, operand) == rank ? infer_dim(op, operand, d) : infer_fresh(op);
}

/* Heads and their size of a query, key or value: [batch, heads, length, size], or packed
 * [batch, length, heads * size] with the number of heads in an attribute. */
struct heads {
    const struct dim *count, *length, *size;
};

static struct heads heads_of(struct ir_graph *graph, struct ir_op *op, uint32_t operand,
                             const char *attribute)
{
    int64_t count = ir_attr_int(op, attribute, 0);
    int rank = infer_rank(op, operand);
    if (rank == 4)
        return (struct heads){infer_dim(op, operand, 1), infer_dim(op, operand, 2),
                              infer_dim(op, operand, 3)};
    if (rank == 3 && count > 0) {
        const struct dim *heads = dim_const(&graph->dims, count);
        return (struct heads){heads, infer_dim(op, operand, 1),
                              dim_floordiv(&graph->dims, infer_dim(op, operand, 2), heads)};
    }
    return (struct heads){infer_fresh(op), infer_fresh(op), infer_fresh(op)};
}

INFER_RULE(attention)
{
    struct dim_table *table = &graph->dims;
    struct heads q = heads_of(graph, op, 0, "q_num_heads");
    struct heads k = heads_of(graph, op, 1, "kv_num_heads");
    struct heads v = heads_of(graph, op, 2, "kv_num_heads");
    int rank = infer_rank(op, 0);
    tssa_dtype dtype = infer_dtype(op, 0), v_dtype = infer_dtype(op, 2);
    const struct dim *total = k.length;
    if (rank >= 0 && rank != 3 && rank != 4)
        return ERROR(TSSA_MALFORMED, "operand 0 must be of rank 3 or 4, not %d", rank);
    if (ir_operand(op, 4))
        total = infer_rank(op, 4) == 4 ? dim_add(table, k.length, infer_dim(op, 4, 2))
                                       : infer_fresh(op);
    const struct dim *batch = rank >= 0 ? infer_dim(op, 0, 0) : infer_fresh(op);
    const struct dim *four[] = {batch, q.count, q.length, v.size};
    const struct dim *three[] = {batch, q.length, dim_mul(table, q.count, v.size)};
    const struct dim *keys[] = {batch, k.count, total, k.size};
    const struct dim *values[] = {batch, k.count, total, v.size};
    const struct dim *scores[] = {batch, q.count, q.length, total};
    if (rank < 0)
        TRY(infer_set_unranked(op, 0, dtype));
    else
        TRY(infer_set_tensor(op, 0, dtype, rank, rank == 3 ? three : four));
    TRY(infer_set_tensor(op, 1, dtype, 4, keys));
    TRY(infer_set_tensor(op, 2, v_dtype, 4, values));
    return infer_set_tensor(op, 3, dtype, 4, scores);
}

INFER_RULE(rotary_embedding)
{
    return infer_set(op, 0, infer_operand_type(graph, op, 0));
}

INFER_RULE(causal_conv)
{
    const struct dim *dims[3] = {dim_of(op, 0, 3, 0), dim_of(op, 0, 3, 1), dim_of(op, 0, 3, 2)};
    const struct dim *one = dim_const(&graph->dims, 1);
    TRY(infer_set_tensor(op, 0, infer_dtype(op, 0), 3, dims));
    dims[2] = dim_sub(&graph->dims, dim_of(op, 1, 3, 2), one);
    return infer_set_tensor(op, 1, infer_dtype(op, 0), 3, dims);
}

INFER_RULE(linear_attention)
{
    struct dim_table *table = &graph->dims;
    const struct dim *q = dim_const(table, ir_attr_int(op, "q_num_heads", 1));
    const struct dim *kv = dim_const(table, ir_attr_int(op, "kv_num_heads", 1));
    const struct dim *key = dim_of(op, 0, 3, 2), *value = dim_of(op, 2, 3, 2);
    const struct dim *batch = dim_of(op, 0, 3, 0);
    int64_t q_count = 0, kv_count = 0;
    if (!dim_is_const(q, &q_count) || !dim_is_const(kv, &kv_count) || q_count < 1 || kv_count < 1)
        return ERROR(TSSA_MALFORMED, "%lld and %lld heads", (long long)q_count,
                     (long long)kv_count);
    key = dim_floordiv(table, key, q);
    value = dim_floordiv(table, value, kv);
    const struct dim *out[] = {batch, dim_of(op, 0, 3, 1), dim_mul(table, q, value)};
    const struct dim *state[] = {batch, kv, key, value};
    TRY(infer_set_tensor(op, 0, infer_dtype(op, 0), 3, out));
    tssa_dtype state_type = ir_operand(op, 3) ? infer_dtype(op, 3) : infer_dtype(op, 0);
    return infer_set_tensor(op, 1, state_type, 4, state);
}
