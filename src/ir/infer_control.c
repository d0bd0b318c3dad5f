/* SPDX-License-Identifier: Apache-2.0 */
/* Inference through Loop, Scan and SequenceMap: parameters from operands, results from returns. */
#include "ir/infer.h"
#include "ir/infer_block.h"
#include "ir/total.h"

/* ---- Dims that may not leave their block ----------------------------------------------------- */

/* Fresh dims are numbered in order of creation, so whatever a block made for itself has an id at or
 * above the first one that was free when its inference began. */
bool infer_is_local(const struct dim *dim, uint32_t first_local)
{
    if (dim->id < first_local)
        return false;
    if (dim->kind == DIM_SYMBOL)
        return dim_is_fresh(dim);
    for (uint32_t i = 0; i < dim->n_terms; i++)
        if (infer_is_local(dim->terms[i], first_local))
            return true;
    return false;
}

/* A sequence or optional like `type`, of another element (NULL: out of memory). */
static const struct ir_type *with_element(struct ir_graph *graph, const struct ir_type *type,
                                          const struct ir_type *element)
{
    if (!element)
        return NULL;
    return type->kind == TYPE_SEQUENCE ? type_sequence(&graph->types, element)
                                       : type_optional(&graph->types, element);
}

static bool has_element(const struct ir_type *type)
{
    return type->kind == TYPE_SEQUENCE || type->kind == TYPE_OPTIONAL;
}

/* The type of a value as seen outside the block: local dims become fresh ones. */
const struct ir_type *infer_outside(struct ir_graph *graph, const struct ir_type *type,
                                    uint32_t first_local)
{
    if (has_element(type))
        return with_element(graph, type, infer_outside(graph, type->element, first_local));
    if (type->kind != TYPE_TENSOR || type->rank <= 0)
        return type;
    const struct dim *dims[TSSA_MAX_RANK];
    for (int i = 0; i < type->rank; i++) {
        const struct dim *dim = type->dims[i]; /* its bounds hold outside, too */
        dims[i] = infer_is_local(dim, first_local)
                      ? dim_fresh_between(&graph->dims, "block", dim->low, dim->high)
                      : dim;
        if (!dims[i])
            return NULL;
    }
    return type_tensor(&graph->types, type->dtype, type->rank, dims);
}

/* An element of a sequence, which is seen from inside of a loop over the elements or from outside:
 * dims that are no numbers are those of one element, and another one's may differ. */
static const struct ir_type *one_element(struct ir_graph *graph, const struct ir_type *type)
{
    if (type->kind != TYPE_TENSOR || type->rank <= 0)
        return type;
    const struct dim *dims[TSSA_MAX_RANK];
    for (int i = 0; i < type->rank; i++) {
        dims[i] = type->dims[i];
        if (dims[i]->kind != DIM_CONST && !(dims[i] = dim_fresh(&graph->dims, "element")))
            return NULL;
    }
    return type_tensor(&graph->types, type->dtype, type->rank, dims);
}

const struct ir_type *infer_returned(const struct ir_block *block, uint32_t index)
{
    const struct ir_value *value = ir_operand(ir_block_return(block), index);
    return value ? value->type : block->graph->types.unknown;
}

/* The block `name`, which must have as many parameters and results. */
tssa_status *infer_find_block(const struct ir_op *op, const char *name, uint32_t n_params,
                              uint32_t n_results, struct ir_block **block)
{
    *block = ir_op_block(op, name);
    const struct ir_op *ret = *block ? ir_block_return(*block) : NULL;
    if (!ret)
        return ERROR(TSSA_MALFORMED, "the subgraph \"%s\" is missing", name);
    if ((*block)->n_params != n_params)
        return ERROR(TSSA_MALFORMED, "the subgraph \"%s\" has %u inputs where %u are needed", name,
                     (unsigned)(*block)->n_params, (unsigned)n_params);
    if (ret->n_operands != n_results)
        return ERROR(TSSA_MALFORMED, "the subgraph \"%s\" has %u outputs where %u are needed", name,
                     (unsigned)ret->n_operands, (unsigned)n_results);
    return NULL;
}

static tssa_status *set_param(struct ir_value *param, const struct ir_type *type)
{
    TRY_ALLOC(type);
    param->type = type;
    return NULL;
}

/* Is the condition this one in every run? */
bool infer_is_truth(const struct ir_value *condition, bool value)
{
    int64_t element;
    return condition && condition->known && condition->known->count == 1 &&
           dim_is_const(condition->known->elements[0], &element) && (element != 0) == value;
}

/* ---- Loop-carried values --------------------------------------------------------------------- */

/*
 * The type of a carried value's parameter, from what it was assumed to be, what enters the loop and
 * what an iteration returns. A dim that changes becomes one fresh symbol and stays that symbol in
 * the following rounds, so that the iteration ends.
 */
static const struct ir_type *generalize(struct ir_graph *graph, const struct ir_type *assumed,
                                        const struct ir_type *initial,
                                        const struct ir_type *returned)
{
    if (assumed == returned)
        return assumed;
    if (has_element(assumed) && assumed->kind == returned->kind && assumed->kind == initial->kind)
        return with_element(
            graph, assumed,
            generalize(graph, assumed->element, initial->element, returned->element));
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
    if (has_element(type))
        return with_element(graph, type, give_up(graph, type->element));
    return type->kind == TYPE_TENSOR ? type_unranked(&graph->types, type->dtype)
                                     : graph->types.unknown;
}

/* Shapes may change from one iteration to the next, element types may not. */
static tssa_status *check_carried(const struct ir_type *assumed, const struct ir_type *returned,
                                  uint32_t index)
{
    while (has_element(assumed) && assumed->kind == returned->kind) {
        assumed = assumed->element;
        returned = returned->element;
    }
    bool tensors = assumed->kind == TYPE_TENSOR && returned->kind == TYPE_TENSOR;
    if (!tensors || assumed->dtype == returned->dtype || assumed->dtype == TSSA_UNDEFINED ||
        returned->dtype == TSSA_UNDEFINED)
        return NULL;
    return ERROR(TSSA_MALFORMED, "carried value %u is %s and becomes %s", (unsigned)index,
                 dtype_info(assumed->dtype)->ir_name, dtype_info(returned->dtype)->ir_name);
}

/*
 * Infers the loop's body until the types of params[first ...] agree with returns[first_return ...].
 */
static tssa_status *infer_carried(struct ir_graph *graph, const struct ir_op *op,
                                  struct ir_block *block, uint32_t first, uint32_t count,
                                  uint32_t first_return)
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
        TRY(ir_infer_block(block, ir_loop_runs(op)));
        bool changed = false;
        for (uint32_t i = 0; i < count; i++) {
            struct ir_value *param = block->params[first + i];
            const struct ir_type *returned = infer_returned(block, first_return + i);
            TRY(check_carried(param->type, returned, i));
            const struct ir_type *type = generalize(graph, param->type, initial[i], returned);
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

/* ---- Loop ------------------------------------------------------------------------------------ */

/* The number of iterations where it does not depend on what the body computes, else a fresh dim. */
static const struct dim *trip_count(struct ir_graph *graph, const struct ir_op *op,
                                    const struct ir_block *body)
{
    const struct ir_known *trips = infer_known(op, 0);
    const struct ir_value *entry = ir_operand(op, 1);
    const struct ir_value *next = ir_operand(ir_block_return(body), 0);
    while (next && next->op && (next->op->info->flags & IR_ALIAS))
        next = ir_operand(next->op, 0); /* Identity, Reshape: the same bool */
    bool enters = !entry || infer_is_truth(entry, true);
    bool stays = next == body->params[1] || infer_is_truth(next, true);
    const struct dim *limit = trips && trips->count == 1 ? trips->elements[0] : NULL;
    if (!limit)
        return dim_fresh(&graph->dims, "trips");
    if (!enters || !stays)
        return dim_fresh_between(&graph->dims, "trips", 0, limit->high > 0 ? limit->high : 0);
    return dim_max(&graph->dims, limit, dim_const(&graph->dims, 0));
}

/* A scan output: the body's output with an axis more, as long as there are iterations. */
static tssa_status *set_stacked(struct ir_graph *graph, struct ir_op *op, uint32_t index,
                                const struct ir_type *element, const struct dim *trips,
                                int64_t axis, uint32_t first_local)
{
    if (element->kind != TYPE_TENSOR)
        return infer_set(op, index, graph->types.unknown);
    if (element->rank < 0 || element->rank >= TSSA_MAX_RANK)
        return infer_set_unranked(op, index, element->dtype);
    element = infer_outside(graph, element, first_local);
    TRY_ALLOC(element);
    int rank = element->rank + 1, stacked;
    TRY(infer_axis(op, axis, rank, &stacked));
    const struct dim *dims[TSSA_MAX_RANK];
    for (int i = 0, from = 0; i < rank; i++)
        dims[i] = i == stacked ? trips : element->dims[from++];
    return infer_set_tensor(op, index, element->dtype, rank, dims);
}

static tssa_status *set_param_known(struct ir_graph *graph, struct ir_value *param,
                                    const struct dim *element)
{
    if (ir_value_is_mutable(graph, param))
        return NULL;
    struct ir_known *known = ARENA_NEW(&graph->arena, struct ir_known);
    TRY_ALLOC(element);
    TRY_ALLOC(known);
    known->count = 1;
    known->elements = arena_copy(&graph->arena, &element, sizeof element);
    TRY_ALLOC(known->elements);
    param->known = known;
    return NULL;
}

/* The iteration's number: a symbol of the body, below the trip count. And the condition, which
 * holds. */
static tssa_status *set_counter(struct ir_graph *graph, const struct ir_op *op,
                                const struct ir_block *body)
{
    const struct ir_known *trips = infer_known(op, 0);
    const struct dim *limit = trips && trips->count == 1 ? trips->elements[0] : NULL;
    int64_t high = limit ? limit->high : INT64_MAX;
    const struct dim *counter =
        dim_fresh_between(&graph->dims, "i", 0, high < 1 ? 0 : high - (high != INT64_MAX));
    TRY(set_param_known(graph, body->params[0], counter));
    return set_param_known(graph, body->params[1], dim_const(&graph->dims, 1));
}

/* One element of this type, where it is known? */
static tssa_status *check_single(const struct ir_op *op, uint32_t index, tssa_dtype dtype,
                                 const char *what)
{
    const struct ir_value *value = ir_operand(op, index);
    int64_t count = 1, dim;
    if (!value || value->type->kind == TYPE_UNKNOWN)
        return NULL;
    const struct ir_type *type = value->type;
    for (int i = 0; type->kind == TYPE_TENSOR && i < type->rank; i++)
        count = dim_is_const(type->dims[i], &dim) && dim != 1 ? 0 : count;
    if (type->kind != TYPE_TENSOR || count != 1 ||
        (type->dtype != dtype && type->dtype != TSSA_UNDEFINED))
        return ERROR(TSSA_MALFORMED, "the %s is not one %s", what, dtype_info(dtype)->ir_name);
    return NULL;
}

INFER_RULE(loop)
{
    uint32_t carried = op->n_operands > 2 ? op->n_operands - 2 : 0;
    struct ir_block *body;
    if (op->n_results < carried)
        return ERROR(TSSA_MALFORMED, "%u carried values but only %u outputs", (unsigned)carried,
                     (unsigned)op->n_results);
    TRY(infer_find_block(op, "body", carried + 2, op->n_results + 1, &body));
    TRY(check_single(op, 0, TSSA_INT64, "trip count"));
    TRY(check_single(op, 1, TSSA_BOOL, "condition"));
    uint32_t first_local = graph->dims.n_dims;
    TRY(set_param(body->params[0], type_scalar(&graph->types, TSSA_INT64)));
    TRY(set_param(body->params[1], type_scalar(&graph->types, TSSA_BOOL)));
    TRY(set_counter(graph, op, body));
    for (uint32_t i = 0; i < carried; i++)
        TRY(set_param(body->params[i + 2], infer_operand_type(graph, op, i + 2)));
    TRY(infer_carried(graph, op, body, 2, carried, 1));
    for (uint32_t i = 0; i < carried; i++)
        TRY(infer_set(op, i, infer_outside(graph, body->params[i + 2]->type, first_local)));
    const struct dim *trips = trip_count(graph, op, body);
    TRY_ALLOC(trips);
    for (uint32_t i = carried; i < op->n_results; i++)
        TRY(set_stacked(graph, op, i, infer_returned(body, i + 1), trips, 0, first_local));
    return NULL;
}

/* ---- Scan ------------------------------------------------------------------------------------ */

/* Scan as its versions agree on it. */
struct scan {
    bool batched;    /* Scan-8: operand 0 is sequence_lens, axis 0 the batch, axis 1 the sequence */
    uint32_t skip;   /* operands before the states */
    uint32_t states; /* the first parameters and results; the others are scanned */
    struct ir_block *body;
};

static tssa_status *read_scan(const struct ir_op *op, struct scan *scan)
{
    scan->batched = op->version < 9;
    scan->skip = scan->batched ? 1 : 0;
    uint32_t n = op->n_operands - scan->skip;
    int64_t scanned = ir_attr_int(op, "num_scan_inputs", 0);
    if (scanned < 1 || scanned > n)
        return ERROR(TSSA_MALFORMED, "num_scan_inputs is %lld with %u inputs", (long long)scanned,
                     (unsigned)n);
    scan->states = n - (uint32_t)scanned;
    if (op->n_results < scan->states)
        return ERROR(TSSA_MALFORMED, "%u states but only %u outputs", (unsigned)scan->states,
                     (unsigned)op->n_results);
    return infer_find_block(op, "body", n, op->n_results, &scan->body);
}

static int64_t scan_axis(const struct ir_op *op, const char *attr, uint32_t index)
{
    size_t count;
    const int64_t *axes = ir_attr_ints(op, attr, &count);
    return axes && index < count ? axes[index] : 0;
}

/* A type without an axis that it has, if it has any. */
static const struct ir_type *drop_axis(struct ir_graph *graph, const struct ir_type *type, int axis)
{
    if (type->kind != TYPE_TENSOR || type->rank <= 0)
        return type;
    const struct dim *dims[TSSA_MAX_RANK];
    int rank = 0;
    for (int i = 0; i < type->rank; i++)
        if (i != axis)
            dims[rank++] = type->dims[i];
    return type_tensor(&graph->types, type->dtype, rank, dims);
}

/*
 * The parameter's type from that of its operand; *steps where the operand tells how many there are.
 */
static tssa_status *set_scan_param(struct ir_graph *graph, const struct ir_op *op,
                                   const struct scan *scan, uint32_t index,
                                   const struct dim **steps)
{
    const struct ir_type *type = infer_operand_type(graph, op, index + scan->skip);
    if (index >= scan->states && type->kind == TYPE_TENSOR && type->rank >= 0) {
        uint32_t input = index - scan->states;
        int axis;
        tssa_status *status = infer_axis(
            op, scan->batched ? 1 : scan_axis(op, "scan_input_axes", input), type->rank, &axis);
        if (status)
            return status_prefix(status, "scan input %u", (unsigned)input);
        *steps = type->dims[axis];
        type = drop_axis(graph, type, axis);
        TRY_ALLOC(type);
    }
    return set_param(scan->body->params[index], scan->batched ? drop_axis(graph, type, 0) : type);
}

static tssa_status *set_scan_result(struct ir_graph *graph, struct ir_op *op,
                                    const struct scan *scan, uint32_t index,
                                    const struct dim *steps, uint32_t first_local)
{
    const struct ir_type *type = infer_returned(scan->body, index);
    if (scan->batched) /* the batch axis in front is known at run time only */
        return infer_set_unranked(op, index,
                                  type->kind == TYPE_TENSOR ? type->dtype : TSSA_UNDEFINED);
    if (index < scan->states)
        return infer_set(op, index,
                         infer_outside(graph, scan->body->params[index]->type, first_local));
    uint32_t output = index - scan->states;
    return status_prefix(set_stacked(graph, op, index, type, steps,
                                     scan_axis(op, "scan_output_axes", output), first_local),
                         "scan output %u", (unsigned)output);
}

INFER_RULE(scan)
{
    struct scan scan;
    TRY(read_scan(op, &scan));
    uint32_t first_local = graph->dims.n_dims;
    const struct dim *steps = NULL;
    for (uint32_t i = 0; i < scan.body->n_params; i++)
        TRY(set_scan_param(graph, op, &scan, i, &steps));
    TRY(infer_carried(graph, op, scan.body, 0, scan.states, 0));
    if (!steps)
        steps = dim_fresh(&graph->dims, "steps");
    TRY_ALLOC(steps);
    for (uint32_t i = 0; i < op->n_results; i++)
        TRY(set_scan_result(graph, op, &scan, i, steps, first_local));
    return NULL;
}

/* ---- SequenceMap ----------------------------------------------------------------------------- */

INFER_RULE(sequence_map)
{
    struct ir_block *body;
    TRY(infer_find_block(op, "body", op->n_operands, op->n_results, &body));
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const struct ir_type *type = infer_operand_type(graph, op, i);
        if (type->kind == TYPE_SEQUENCE)
            type = one_element(graph, type->element);
        TRY(set_param(body->params[i], type));
    }
    TRY(ir_infer_block(body, false));
    for (uint32_t i = 0; i < op->n_results; i++) {
        const struct ir_type *element = one_element(graph, infer_returned(body, i));
        TRY_ALLOC(element);
        TRY(infer_set(op, i, type_sequence(&graph->types, element)));
    }
    return NULL;
}
