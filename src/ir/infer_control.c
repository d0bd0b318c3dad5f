/* SPDX-License-Identifier: Apache-2.0 */
/* Inference through If, Loop, Scan and SequenceMap: parameters from operands, results from returns. */
#include "ir/infer.h"
#include "ir/total.h"

/* ---- Dims that may not leave their block ---------------------------------------------------------- */

/* Fresh dims are numbered in order of creation, so whatever a block made for itself has an id at or
 * above the first one that was free when its inference began. */
static bool dim_is_local(const struct dim *dim, uint32_t first_local)
{
    if (dim->id < first_local)
        return false;
    if (dim->kind == DIM_SYMBOL)
        return dim_is_fresh(dim);
    for (uint32_t i = 0; i < dim->n_terms; i++)
        if (dim_is_local(dim->terms[i], first_local))
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
static const struct ir_type *type_outside(struct ir_graph *graph, const struct ir_type *type,
                                          uint32_t first_local)
{
    if (has_element(type))
        return with_element(graph, type, type_outside(graph, type->element, first_local));
    if (type->kind != TYPE_TENSOR || type->rank <= 0)
        return type;
    const struct dim *dims[TSSA_MAX_RANK];
    for (int i = 0; i < type->rank; i++) {
        const struct dim *dim = type->dims[i]; /* its bounds hold outside, too */
        dims[i] = dim_is_local(dim, first_local)
                      ? dim_fresh_between(&graph->dims, "block", dim->low, dim->high)
                      : dim;
        if (!dims[i])
            return NULL;
    }
    return type_tensor(&graph->types, type->dtype, type->rank, dims);
}

/* An element of a sequence, which is seen from inside of a loop over the elements or from outside: dims
 * that are no numbers are those of one element, and another one's may differ. */
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

static const struct ir_type *return_type(const struct ir_block *block, uint32_t index)
{
    const struct ir_value *value = ir_operand(ir_block_return(block), index);
    return value ? value->type : block->graph->types.unknown;
}

/* The block `name`, which must have as many parameters and results. */
static tssa_status *find_block(const struct ir_op *op, const char *name, uint32_t n_params,
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

/* ---- If ------------------------------------------------------------------------------------------- */

/* What the condition of an If says about a dim in one of its branches: the symbol is the value there. */
struct pin {
    const struct dim *symbol, *value; /* NULL: nothing */
};

unsigned infer_signs(enum ir_op_id id)
{
    switch (id) {
    case IR_OP_Equal:
        return INFER_EQUAL;
    case IR_OP_Less:
        return INFER_LESS;
    case IR_OP_LessOrEqual:
        return INFER_LESS | INFER_EQUAL;
    case IR_OP_Greater:
        return INFER_GREATER;
    case IR_OP_GreaterOrEqual:
        return INFER_GREATER | INFER_EQUAL;
    default:
        return INFER_ANY;
    }
}

/* c*symbol + k == 0 says what the symbol is; *pin stays empty for anything else. */
static tssa_status *pin_zero(struct dim_table *dims, const struct dim *zero, struct pin *pin)
{
    int64_t value = 0;
    const struct dim *symbol = zero;
    if (zero->kind == DIM_SUM && zero->n_terms == 1) {
        int64_t c = zero->coefficients[0];
        if (c == 0 || c == -1 ? zero->value == INT64_MIN : zero->value % c != 0)
            return NULL;
        value = c == -1 ? zero->value : -(zero->value / c);
        symbol = zero->terms[0];
    }
    if (symbol->kind != DIM_SYMBOL)
        return NULL;
    pin->value = dim_const(dims, value);
    TRY_ALLOC(pin->value);
    pin->symbol = symbol;
    return NULL;
}

/* "n > 0 is false" means n == 0 for a size. */
static tssa_status *pin_of(struct ir_graph *graph, const struct ir_value *condition, bool holds,
                           struct pin *pin)
{
    const struct ir_op *op = condition ? condition->op : NULL;
    while (op && (ir_op_is(op, IR_OP_Not) || (op->info->flags & IR_ALIAS))) {
        holds = ir_op_is(op, IR_OP_Not) ? !holds : holds;
        condition = ir_operand(op, 0);
        op = condition ? condition->op : NULL;
    }
    unsigned signs = op ? infer_signs(op->info->id) : INFER_ANY;
    const struct ir_known *a = op ? infer_known(op, 0) : NULL, *b = op ? infer_known(op, 1) : NULL;
    if (signs == INFER_ANY || !a || !b || a->count != 1 || b->count != 1 || !a->elements[0] ||
        !b->elements[0])
        return NULL;
    const struct dim *difference = dim_sub(&graph->dims, a->elements[0], b->elements[0]);
    TRY_ALLOC(difference);
    signs = holds ? signs : INFER_ANY & ~signs;
    if (difference->low >= 0)
        signs &= ~(unsigned)INFER_LESS;
    if (difference->high <= 0)
        signs &= ~(unsigned)INFER_GREATER;
    return signs == INFER_EQUAL ? pin_zero(&graph->dims, difference, pin) : NULL;
}

/* A dim in a branch, with what the condition says there. */
static const struct dim *pinned(struct ir_graph *graph, const struct dim *dim,
                                const struct pin *pin)
{
    return pin->symbol ? dim_substitute(&graph->dims, dim, pin->symbol, pin->value) : dim;
}

/* Two dims that were joined before, in this If. */
struct joined {
    const struct dim *a, *b, *dim;
};

struct join {
    uint32_t first_local; /* dims from here on may not leave the branches */
    struct pin then_pin, else_pin;
    struct joined *pairs; /* room for all that can be needed */
    size_t count;
};

/* The dim that both are, as far as their branches know; NULL: there is none that may leave them.
 * min(n, 10) and 0 are min(n, 10), when n is 0 in the other branch. */
static const struct dim *common_dim(struct ir_graph *graph, const struct join *join,
                                    const struct dim *a, const struct dim *b)
{
    bool a_leaves = !dim_is_local(a, join->first_local);
    bool b_leaves = !dim_is_local(b, join->first_local);
    if (a == b)
        return a_leaves ? a : NULL;
    if (a_leaves && join->else_pin.symbol &&
        pinned(graph, a, &join->else_pin) == pinned(graph, b, &join->else_pin))
        return a;
    if (b_leaves && join->then_pin.symbol &&
        pinned(graph, a, &join->then_pin) == pinned(graph, b, &join->then_pin))
        return b;
    return NULL;
}

/* A dim that is `a` in one branch and `b` in the other; pairs that occur again get the same symbol again. */
static const struct dim *join_dim(struct ir_graph *graph, struct join *join, const struct dim *a,
                                  const struct dim *b)
{
    const struct dim *dim = common_dim(graph, join, a, b);
    if (dim)
        return dim;
    for (size_t i = 0; i < join->count; i++)
        if (join->pairs[i].a == a && join->pairs[i].b == b)
            return join->pairs[i].dim;
    const struct dim *x = pinned(graph, a, &join->then_pin), *y = pinned(graph, b, &join->else_pin);
    if (!x || !y)
        return NULL;
    dim = dim_fresh_between(&graph->dims, "d", x->low < y->low ? x->low : y->low,
                            x->high > y->high ? x->high : y->high);
    join->pairs[join->count++] = (struct joined){a, b, dim};
    return dim;
}

static const struct ir_type *join_branches(struct ir_graph *graph, struct join *join,
                                           const struct ir_type *a, const struct ir_type *b)
{
    if (a->kind != TYPE_TENSOR || b->kind != TYPE_TENSOR || a->rank != b->rank || a->rank <= 0) {
        a = type_join(&graph->types, a, b);
        return a ? type_outside(graph, a, join->first_local) : NULL;
    }
    const struct dim *dims[TSSA_MAX_RANK];
    for (int i = 0; i < a->rank; i++)
        if (!(dims[i] = join_dim(graph, join, a->dims[i], b->dims[i])))
            return NULL;
    tssa_dtype dtype = a->dtype == b->dtype ? a->dtype : TSSA_UNDEFINED;
    return type_tensor(&graph->types, dtype, a->rank, dims);
}

/* Is the condition this one in every run? */
static bool is_known_to_be(const struct ir_value *condition, bool value)
{
    int64_t element;
    return condition && condition->known && condition->known->count == 1 &&
           dim_is_const(condition->known->elements[0], &element) && (element != 0) == value;
}

INFER_RULE(if)
{
    struct ir_block *then_block, *else_block;
    struct join join = {.first_local = graph->dims.n_dims};
    TRY(find_block(op, "then_branch", 0, op->n_results, &then_block));
    TRY(find_block(op, "else_branch", 0, op->n_results, &else_block));
    TRY(ir_infer_block(then_block, is_known_to_be(ir_operand(op, 0), true)));
    TRY(ir_infer_block(else_block, is_known_to_be(ir_operand(op, 0), false)));
    TRY(pin_of(graph, ir_operand(op, 0), true, &join.then_pin));
    TRY(pin_of(graph, ir_operand(op, 0), false, &join.else_pin));
    join.pairs = ARENA_ARRAY(&graph->arena, struct joined, (size_t)op->n_results * TSSA_MAX_RANK);
    TRY_ALLOC(join.pairs);
    for (uint32_t i = 0; i < op->n_results; i++) {
        const struct ir_type *type =
            join_branches(graph, &join, return_type(then_block, i), return_type(else_block, i));
        TRY(infer_set(op, i, type));
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

/* Infers the loop's body until the types of params[first ...] agree with returns[first_return ...]. */
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
            const struct ir_type *returned = return_type(block, first_return + i);
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

/* ---- Loop ----------------------------------------------------------------------------------------- */

/* The number of iterations where it does not depend on what the body computes, else a fresh dim. */
static const struct dim *trip_count(struct ir_graph *graph, const struct ir_op *op,
                                    const struct ir_block *body)
{
    const struct ir_known *trips = infer_known(op, 0);
    const struct ir_value *entry = ir_operand(op, 1);
    const struct ir_value *next = ir_operand(ir_block_return(body), 0);
    while (next && next->op && (next->op->info->flags & IR_ALIAS))
        next = ir_operand(next->op, 0); /* Identity, Reshape: the same bool */
    bool enters = !entry || is_known_to_be(entry, true);
    bool stays = next == body->params[1] || is_known_to_be(next, true);
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
    element = type_outside(graph, element, first_local);
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

/* The iteration's number: a symbol of the body, below the trip count. And the condition, which holds. */
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
    TRY(find_block(op, "body", carried + 2, op->n_results + 1, &body));
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
        TRY(infer_set(op, i, type_outside(graph, body->params[i + 2]->type, first_local)));
    const struct dim *trips = trip_count(graph, op, body);
    TRY_ALLOC(trips);
    for (uint32_t i = carried; i < op->n_results; i++)
        TRY(set_stacked(graph, op, i, return_type(body, i + 1), trips, 0, first_local));
    return NULL;
}

/* ---- Scan ----------------------------------------------------------------------------------------- */

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
    return find_block(op, "body", n, op->n_results, &scan->body);
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

/* The parameter's type from that of its operand; *steps where the operand tells how many there are. */
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
    const struct ir_type *type = return_type(scan->body, index);
    if (scan->batched) /* the batch axis in front is known at run time only */
        return infer_set_unranked(op, index,
                                  type->kind == TYPE_TENSOR ? type->dtype : TSSA_UNDEFINED);
    if (index < scan->states)
        return infer_set(op, index,
                         type_outside(graph, scan->body->params[index]->type, first_local));
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

/* ---- SequenceMap ---------------------------------------------------------------------------------- */

INFER_RULE(sequence_map)
{
    struct ir_block *body;
    TRY(find_block(op, "body", op->n_operands, op->n_results, &body));
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const struct ir_type *type = infer_operand_type(graph, op, i);
        if (type->kind == TYPE_SEQUENCE)
            type = one_element(graph, type->element);
        TRY(set_param(body->params[i], type));
    }
    TRY(ir_infer_block(body, false));
    for (uint32_t i = 0; i < op->n_results; i++) {
        const struct ir_type *element = one_element(graph, return_type(body, i));
        TRY_ALLOC(element);
        TRY(infer_set(op, i, type_sequence(&graph->types, element)));
    }
    return NULL;
}
