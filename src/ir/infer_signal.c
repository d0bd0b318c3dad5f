/* SPDX-License-Identifier: Apache-2.0 */
/* Inference of the rows of signal.def. */
#include "ir/infer.h"

/* The one element of an integer operand as a dim; NULL where nothing is known of it. */
static const struct dim *known_scalar(const struct ir_op *op, uint32_t operand)
{
    const struct ir_known *known = ir_operand(op, operand) ? infer_known(op, operand) : NULL;
    return known && known->count == 1 ? known->elements[0] : NULL;
}

/* n / 2 + 1: what a real signal's transform has of its own. */
static const struct dim *half_of(struct ir_graph *graph, const struct dim *n)
{
    struct dim_table *table = &graph->dims;
    return dim_add(table, dim_floordiv(table, n, dim_const(table, 2)), dim_const(table, 1));
}

/* The length of what comes out along the transformed axis, which had `n` elements. */
static const struct dim *dft_length(struct ir_graph *graph, struct ir_op *op, const struct dim *n)
{
    struct dim_table *table = &graph->dims;
    bool one_sided = ir_attr_int(op, "onesided", 0) != 0;
    bool inverse = ir_attr_int(op, "inverse", 0) != 0;
    const struct dim *length = n;
    if (ir_operand(op, 1))
        length = known_scalar(op, 1);
    else if (one_sided && inverse)
        length = dim_mul(table, dim_const(table, 2), dim_sub(table, n, dim_const(table, 1)));
    if (!length)
        return infer_fresh(op);
    return one_sided && !inverse ? half_of(graph, length) : length;
}

INFER_RULE(dft)
{
    const struct dim *dims[TSSA_MAX_RANK];
    int rank = infer_rank(op, 0), axis = -1;
    int64_t given = -2;
    size_t count = 1;
    if (rank < 0)
        return infer_set_unranked(op, 0, infer_dtype(op, 0));
    if (rank < 2)
        return ERROR(TSSA_MALFORMED, "operand 0 must be of rank 2 or more, not %d", rank);
    bool known = !ir_operand(op, 2) || (infer_const_ints(op, 2, &given, &count) && count == 1);
    if (known)
        TRY(infer_axis(op, given, rank, &axis));
    for (int i = 0; i < rank - 1; i++)
        dims[i] = !known      ? infer_fresh(op)
                  : i == axis ? dft_length(graph, op, infer_dim(op, 0, i))
                              : infer_dim(op, 0, i);
    bool real = ir_attr_int(op, "onesided", 0) && ir_attr_int(op, "inverse", 0);
    dims[rank - 1] = dim_const(&graph->dims, real ? 1 : 2);
    return infer_set_tensor(op, 0, infer_dtype(op, 0), rank, dims);
}

/* A signal without an axis of parts is real, as runtimes take it. */
INFER_RULE(stft)
{
    int rank = infer_rank(op, 0);
    struct dim_table *table = &graph->dims;
    const struct dim *dims[4], *step = known_scalar(op, 1), *length = known_scalar(op, 3);
    bool known = rank == 2 || rank == 3;
    if (rank >= 0 && !known)
        return ERROR(TSSA_MALFORMED, "operand 0 must be of rank 3 or 2, not %d", rank);
    if (!ir_operand(op, 3) && infer_rank(op, 2) == 1)
        length = infer_dim(op, 2, 0);
    dims[0] = known ? infer_dim(op, 0, 0) : infer_fresh(op);
    dims[1] = infer_fresh(op);
    if (known && step && length && step->low > 0)
        dims[1] =
            dim_add(table, dim_floordiv(table, dim_sub(table, infer_dim(op, 0, 1), length), step),
                    dim_const(table, 1));
    dims[2] =
        length ? ir_attr_int(op, "onesided", 1) ? half_of(graph, length) : length : infer_fresh(op);
    dims[3] = dim_const(table, 2);
    return infer_set_tensor(op, 0, infer_dtype(op, 0), 4, dims);
}

/* output_datatype, FLOAT where it is not given. */
static tssa_status *output_type(const struct ir_op *op, tssa_dtype *dtype)
{
    int64_t given = ir_attr_int(op, "output_datatype", TSSA_FLOAT);
    if (given < 0 || given >= TSSA_DTYPE_COUNT || !dtype_in(T_NUMERIC, (tssa_dtype)given))
        return ERROR(TSSA_MALFORMED, "output_datatype is %lld", (long long)given);
    *dtype = (tssa_dtype)given;
    return NULL;
}

INFER_RULE(window_function)
{
    const struct dim *size = known_scalar(op, 0);
    tssa_dtype dtype;
    (void)graph;
    TRY(output_type(op, &dtype));
    if (!size)
        size = infer_fresh(op);
    return infer_set_tensor(op, 0, dtype, 1, &size);
}

INFER_RULE(mel_weight_matrix)
{
    const struct dim *bins = known_scalar(op, 0), *length = known_scalar(op, 1);
    tssa_dtype dtype;
    TRY(output_type(op, &dtype));
    const struct dim *dims[2] = {length ? half_of(graph, length) : infer_fresh(op),
                                 bins ? bins : infer_fresh(op)};
    return infer_set_tensor(op, 0, dtype, 2, dims);
}
