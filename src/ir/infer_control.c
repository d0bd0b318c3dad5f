/* SPDX-License-Identifier: Apache-2.0 */
/* Inference through If, Loop, Scan and SequenceMap: parameters from operands, results from returns. */
#include <string.h>

#include "ir/infer.h"

/* ---- Dims that may not leave their block ---------------------------------------------------------- */

/* Fresh dims are numbered in order of creation, so whatever a block made for itself has an id at or
 * above the first one that was free when its inference began. */
static bool dim_is_local(const struct dim *dim, uint32_t first_local)
{
    if (dim->id < first_local)
        return false;
    if (dim->kind == DIM_SYMBOL)
        return strchr(dim->name, '#') != NULL;
    for (uint32_t i = 0; i < dim->n_terms; i++)
        if (dim_is_local(dim->terms[i], first_local))
            return true;
    return false;
}

/* The type of a value as seen outside the block: local dims become fresh ones. */
static const struct ir_type *type_outside(struct ir_graph *graph, const struct ir_type *type,
                                          uint32_t first_local)
{
    if (type->kind == TYPE_SEQUENCE || type->kind == TYPE_OPTIONAL) {
        const struct ir_type *element = type_outside(graph, type->element, first_local);
        if (!element || element == type->element)
            return element ? type : NULL;
        return type->kind == TYPE_SEQUENCE ? type_sequence(&graph->types, element)
                                           : type_optional(&graph->types, element);
    }
    if (type->kind != TYPE_TENSOR || type->rank <= 0)
        return type;
    const struct dim *dims[TSSA_MAX_RANK];
    for (int i = 0; i < type->rank; i++) {
        dims[i] = dim_is_local(type->dims[i], first_local) ? dim_fresh(&graph->dims, "block")
                                                           : type->dims[i];
        if (!dims[i])
            return NULL;
    }
    return type_tensor(&graph->types, type->dtype, type->rank, dims);
}

/* A sequence's elements may differ in shape: only rank and dtype are kept. */
static const struct ir_type *element_outside(struct ir_graph *graph, const struct ir_type *type)
{
    if (type->kind != TYPE_TENSOR || type->rank <= 0)
        return type;
    const struct dim *dims[TSSA_MAX_RANK];
    for (int i = 0; i < type->rank; i++)
        if (!(dims[i] = dim_fresh(&graph->dims, "element")))
            return NULL;
    return type_tensor(&graph->types, type->dtype, type->rank, dims);
}

static const struct ir_type *return_type(const struct ir_block *block, uint32_t index)
{
    const struct ir_value *value = ir_operand(ir_block_return(block), index);
    return value ? value->type : block->graph->types.unknown;
}

static tssa_status *check_block(const struct ir_op *op, const char *name, uint32_t min_params,
                                uint32_t max_params, struct ir_block **block)
{
    *block = ir_op_block(op, name);
    if (!*block || !ir_block_return(*block))
        return ERROR(TSSA_MALFORMED, "the subgraph \"%s\" is missing", name);
    if ((*block)->n_params < min_params || (*block)->n_params > max_params)
        return ERROR(TSSA_MALFORMED, "the subgraph \"%s\" has %u inputs where %u to %u are needed",
                     name, (unsigned)(*block)->n_params, (unsigned)min_params,
                     (unsigned)max_params);
    return NULL;
}

static tssa_status *check_returns(const struct ir_block *block, const char *name, uint32_t wanted)
{
    uint32_t have = ir_block_return(block)->n_operands;
    if (have != wanted)
        return ERROR(TSSA_MALFORMED, "the subgraph \"%s\" has %u outputs where %u are needed", name,
                     (unsigned)have, (unsigned)wanted);
    return NULL;
}

static tssa_status *set_param(struct ir_value *param, const struct ir_type *type)
{
    TRY_ALLOC(type);
    param->type = type;
    return NULL;
}

/* ---- If ------------------------------------------------------------------------------------------- */

INFER_RULE(if)
{
    struct ir_block *then_block, *else_block;
    TRY(check_block(op, "then_branch", 0, 0, &then_block));
    TRY(check_block(op, "else_branch", 0, 0, &else_block));
    TRY(check_returns(then_block, "then_branch", op->n_results));
    TRY(check_returns(else_block, "else_branch", op->n_results));
    uint32_t first_local = graph->dims.n_dims;
    TRY(ir_infer_block(then_block));
    TRY(ir_infer_block(else_block));
    for (uint32_t i = 0; i < op->n_results; i++) {
        const struct ir_type *type =
            type_join(&graph->types, return_type(then_block, i), return_type(else_block, i));
        TRY_ALLOC(type);
        TRY(infer_set(op, i, type_outside(graph, type, first_local)));
    }
    return NULL;
}

/* ---- Loop-carried values -------------------------------------------------------------------------- */

/*
 * The type of a carried value's parameter, from what it was assumed to be, what enters the loop and what
 * an iteration returns. A dim that changes becomes one fresh symbol and stays that symbol in the
 * following rounds, so that the iteration ends.
 */
static const struct ir_type *generalize(struct ir_graph *graph, const struct ir_type *assumed,
                                        const struct ir_type *initial,
                                        const struct ir_type *returned)
{
    if (assumed == returned)
        return assumed;
    if (assumed->kind != TYPE_TENSOR || returned->kind != TYPE_TENSOR)
        return type_join(&graph->types, assumed, returned);
    tssa_dtype dtype = assumed->dtype == returned->dtype ? assumed->dtype : TSSA_UNDEFINED;
    if (assumed->rank != returned->rank || assumed->rank < 0)
        return type_unranked(&graph->types, dtype);
    const struct dim *dims[TSSA_MAX_RANK];
    for (int i = 0; i < assumed->rank; i++) {
        bool general = initial->kind == TYPE_TENSOR && initial->rank == assumed->rank &&
                       assumed->dims[i] != initial->dims[i];
        bool same = assumed->dims[i] == returned->dims[i];
        dims[i] = same || general ? assumed->dims[i] : dim_fresh(&graph->dims, "carried");
        if (!dims[i])
            return NULL;
    }
    return type_tensor(&graph->types, dtype, assumed->rank, dims);
}

/* Rounds after which a carried type that still changes is given up on. */
#define CARRIED_ROUNDS 3

/* Rounds multiply through nested loops. When a graph has used this much work per op, carried values
 * start out as unknown, which needs one round. */
#define INFER_STEPS_PER_OP 64

/* What is known of a value of which nothing is assumed but its dtype. */
static const struct ir_type *give_up(struct ir_graph *graph, const struct ir_type *type)
{
    return type->kind == TYPE_TENSOR ? type_unranked(&graph->types, type->dtype)
                                     : graph->types.unknown;
}

/* Infers `block` until the types of params[first ...] agree with returns[first_return ...]. */
static tssa_status *infer_carried(struct ir_graph *graph, struct ir_block *block, uint32_t first,
                                  uint32_t count, uint32_t first_return)
{
    const struct ir_type **initial = ARENA_ARRAY(&graph->arena, const struct ir_type *, count);
    TRY_ALLOC(initial);
    bool patient = graph->infer_steps / INFER_STEPS_PER_OP <= graph->n_ops;
    for (uint32_t i = 0; i < count; i++) {
        struct ir_value *param = block->params[first + i];
        if (!patient)
            TRY(set_param(param, give_up(graph, param->type)));
        initial[i] = param->type;
    }
    for (int round = 0;; round++) {
        TRY(ir_infer_block(block));
        bool changed = false;
        for (uint32_t i = 0; i < count; i++) {
            struct ir_value *param = block->params[first + i];
            const struct ir_type *type =
                generalize(graph, param->type, initial[i], return_type(block, first_return + i));
            if (type && type != param->type && (!patient || round + 1 >= CARRIED_ROUNDS))
                type = give_up(graph, type);
            TRY_ALLOC(type);
            changed |= type != param->type;
            param->type = type;
        }
        if (!changed || !patient || round + 1 > CARRIED_ROUNDS)
            return NULL;
    }
}

/* ---- Loop ----------------------------------------------------------------------------------------- */

/* The number of iterations where it does not depend on what the body computes, else a fresh dim. */
static const struct dim *trip_count(struct ir_graph *graph, const struct ir_op *op,
                                    const struct ir_block *body)
{
    const struct ir_known *trips = infer_known(op, 0), *entry = infer_known(op, 1);
    const struct ir_value *next = ir_operand(ir_block_return(body), 0);
    int64_t one = 0;
    bool enters = !ir_operand(op, 1) ||
                  (entry && entry->count == 1 && dim_is_const(entry->elements[0], &one) && one);
    while (next && next->op &&
           (next->op->info->flags & IR_ALIAS)) /* Identity, Reshape: the same bool */
        next = ir_operand(next->op, 0);
    bool stays = next == body->params[1] || (next && next->known && next->known->count == 1 &&
                                             dim_is_const(next->known->elements[0], &one) && one);
    int64_t count;
    if (enters && stays && trips && trips->count == 1 && trips->elements[0] &&
        dim_is_const(trips->elements[0], &count))
        return dim_const(&graph->dims, count < 0 ? 0 : count);
    return dim_fresh(&graph->dims, "trips");
}

/* [trips, dims of the body's output]. */
static tssa_status *set_stacked(struct ir_graph *graph, struct ir_op *op, uint32_t index,
                                const struct ir_type *element, const struct dim *trips, int axis,
                                uint32_t first_local)
{
    if (element->kind != TYPE_TENSOR)
        return infer_set(op, index, graph->types.unknown);
    if (element->rank < 0 || element->rank >= TSSA_MAX_RANK)
        return infer_set_unranked(op, index, element->dtype);
    element = type_outside(graph, element, first_local);
    TRY_ALLOC(element);
    const struct dim *dims[TSSA_MAX_RANK];
    for (int i = 0, from = 0; i <= element->rank; i++)
        dims[i] = i == axis ? trips : element->dims[from++];
    return infer_set_tensor(op, index, element->dtype, element->rank + 1, dims);
}

INFER_RULE(loop)
{
    uint32_t carried = op->n_operands > 2 ? op->n_operands - 2 : 0;
    struct ir_block *body;
    TRY(check_block(op, "body", carried + 2, carried + 2, &body));
    if (op->n_results < carried)
        return ERROR(TSSA_MALFORMED, "%u carried values but only %u outputs", (unsigned)carried,
                     (unsigned)op->n_results);
    TRY(check_returns(body, "body", op->n_results + 1));
    uint32_t first_local = graph->dims.n_dims;
    TRY(set_param(body->params[0], type_scalar(&graph->types, TSSA_INT64)));
    TRY(set_param(body->params[1], type_scalar(&graph->types, TSSA_BOOL)));
    for (uint32_t i = 0; i < carried; i++)
        TRY(set_param(body->params[i + 2], infer_operand_type(graph, op, i + 2)));
    TRY(infer_carried(graph, body, 2, carried, 1));
    for (uint32_t i = 0; i < carried; i++)
        TRY(infer_set(op, i, type_outside(graph, body->params[i + 2]->type, first_local)));
    const struct dim *trips = trip_count(graph, op, body);
    TRY_ALLOC(trips);
    for (uint32_t i = carried; i < op->n_results; i++)
        TRY(set_stacked(graph, op, i, return_type(body, i + 1), trips, 0, first_local));
    return NULL;
}

/* ---- Scan ----------------------------------------------------------------------------------------- */

/* An operand's type without some axes; unranked when an axis is out of range. */
static const struct ir_type *drop_axes(struct ir_graph *graph, const struct ir_type *type,
                                       int first, int count)
{
    if (type->kind != TYPE_TENSOR || type->rank < 0)
        return type;
    const struct dim *dims[TSSA_MAX_RANK];
    int rank = 0;
    for (int i = 0; i < type->rank; i++)
        if (i < first || i >= first + count)
            dims[rank++] = type->dims[i];
    return type_tensor(&graph->types, type->dtype, rank, dims);
}

static int scan_axis(const struct ir_op *op, const char *attr, uint32_t index, int rank)
{
    size_t count;
    const int64_t *axes = ir_attr_ints(op, attr, &count);
    int64_t axis = axes && index < count ? axes[index] : 0;
    return (int)(axis < 0 ? axis + rank : axis);
}

INFER_RULE(scan)
{
    bool batched = op->version < 9; /* Scan-8: sequence_lens first, batch axis 0, sequence axis 1 */
    uint32_t skip = batched ? 1 : 0, n = op->n_operands - skip;
    int64_t scanned = ir_attr_int(op, "num_scan_inputs", 0);
    if (scanned < 1 || scanned > n)
        return ERROR(TSSA_MALFORMED, "num_scan_inputs is %lld with %u inputs", (long long)scanned,
                     (unsigned)n);
    uint32_t states = n - (uint32_t)scanned;
    struct ir_block *body;
    TRY(check_block(op, "body", n, n, &body));
    if (op->n_results < states)
        return ERROR(TSSA_MALFORMED, "%u states but only %u outputs", (unsigned)states,
                     (unsigned)op->n_results);
    TRY(check_returns(body, "body", op->n_results));
    uint32_t first_local = graph->dims.n_dims;
    const struct dim *steps = NULL;
    for (uint32_t i = 0; i < n; i++) {
        const struct ir_type *type = infer_operand_type(graph, op, i + skip);
        int rank = type->kind == TYPE_TENSOR ? type->rank : -1;
        int axis = batched      ? 1
                   : i < states ? 0
                                : scan_axis(op, "scan_input_axes", i - states, rank);
        if (i >= states && rank >= 0 && (axis < 0 || axis >= rank))
            return ERROR(TSSA_MALFORMED, "scan input %u has rank %d but scan axis %d",
                         (unsigned)(i - states), rank, axis);
        if (i >= states && rank >= 0)
            steps = type->dims[axis];
        if (i >= states)
            type = drop_axes(graph, type, axis, 1);
        TRY_ALLOC(type);
        TRY(set_param(body->params[i], batched ? drop_axes(graph, type, 0, 1) : type));
    }
    TRY(infer_carried(graph, body, 0, states, 0));
    if (!steps)
        steps = dim_fresh(&graph->dims, "steps");
    for (uint32_t i = 0; i < op->n_results; i++) {
        const struct ir_type *type = return_type(body, i);
        if (batched) /* the batch axis in front is known at run time only */
            TRY(infer_set_unranked(op, i,
                                   type->kind == TYPE_TENSOR ? type->dtype : TSSA_UNDEFINED));
        else if (i < states)
            TRY(infer_set(op, i, type_outside(graph, body->params[i]->type, first_local)));
        else
            TRY(set_stacked(graph, op, i, type, steps,
                            scan_axis(op, "scan_output_axes", i - states, type->rank + 1),
                            first_local));
    }
    return NULL;
}

/* ---- SequenceMap ---------------------------------------------------------------------------------- */

INFER_RULE(sequence_map)
{
    struct ir_block *body;
    TRY(check_block(op, "body", op->n_operands, op->n_operands, &body));
    TRY(check_returns(body, "body", op->n_results));
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const struct ir_type *type = infer_operand_type(graph, op, i);
        TRY(set_param(body->params[i], type->kind == TYPE_SEQUENCE ? type->element : type));
    }
    TRY(ir_infer_block(body));
    for (uint32_t i = 0; i < op->n_results; i++) {
        const struct ir_type *element = element_outside(graph, return_type(body, i));
        TRY_ALLOC(element);
        TRY(infer_set(op, i, type_sequence(&graph->types, element)));
    }
    return NULL;
}
