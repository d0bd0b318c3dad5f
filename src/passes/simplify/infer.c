/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Infers again what rewriting has made clearer: ops that have operands of which more is known than
 * when the op was last inferred, and with a Loop, If, Scan or SequenceMap everything in it.
 *
 *   needs   nothing
 *   keeps   ops and values; what was known of a value stays known
 *   breaks  nothing
 *
 * Inference errs where no run of an op could succeed. Such an op may stand in a branch that is
 * never taken, so it keeps the types that it had.
 */
#include "ir/infer.h"
#include "passes/pass.h"

struct facts {
    const struct ir_type *type;
    const struct ir_known *known;
};

struct state {
    struct pass_context *pass;
    struct facts *before; /* by id; of the values of the op that is being inferred */
};

/* ---- Which of two facts says more ------------------------------------------------------------ */

/* An unknown element says nothing, a fresh symbol little, a constant everything. */
static int precision(const struct dim *dim)
{
    return !dim ? 0 : dim_is_fresh(dim) ? 1 : dim->kind == DIM_CONST ? 3 : 2;
}

static bool is_better_dim(const struct dim *old, const struct dim *now)
{
    if (precision(old) != precision(now))
        return precision(now) > precision(old);
    return old && old != now && now->low >= old->low && now->high <= old->high &&
           (now->low > old->low || now->high < old->high);
}

static bool is_better_type(const struct ir_type *old, const struct ir_type *now)
{
    if (old == now || now->kind == TYPE_UNKNOWN)
        return false;
    if (old->kind != now->kind)
        return old->kind == TYPE_UNKNOWN;
    if (old->kind != TYPE_TENSOR)
        return old->element && is_better_type(old->element, now->element);
    if (old->dtype == TSSA_UNDEFINED && now->dtype != TSSA_UNDEFINED)
        return true;
    if (old->rank != now->rank)
        return old->rank < 0;
    for (int i = 0; i < old->rank; i++)
        if (is_better_dim(old->dims[i], now->dims[i]))
            return true;
    return false;
}

static bool is_better_known(const struct ir_known *old, const struct ir_known *now)
{
    if (!old || !now)
        return now != NULL;
    for (size_t i = 0; i < now->count && i < old->count; i++)
        if (is_better_dim(old->elements[i], now->elements[i]))
            return true;
    return false;
}

/* ---- The better of both ---------------------------------------------------------------------- */

/*
 * Where both say as much, the new one stands: the operands' symbols may have become others, and
 * equal sizes should have equal names; and so does a symbol of an operand in the place of an
 * expression of a former one, as min(n, 1000) once it is known that there are no more than 480. But
 * for a symbol that inference has just made up: then the old one stays, so that what depends on it
 * stays as well.
 */
static bool is_renamed(const struct dim *old, const struct dim *now, uint32_t first_new)
{
    return old->kind != DIM_CONST && dim_is_fresh(now) && now->id < first_new &&
           now->low >= old->low && now->high <= old->high;
}

static const struct dim *best_dim(const struct dim *old, const struct dim *now, uint32_t first_new)
{
    if (!old || !now || old == now)
        return old ? old : now;
    if (is_renamed(old, now, first_new))
        return now;
    if (is_better_dim(old, now) || is_better_dim(now, old))
        return is_better_dim(old, now) ? now : old;
    return dim_is_fresh(now) && now->id >= first_new ? old : now;
}

static const struct ir_type *best_tensor(struct ir_graph *graph, const struct ir_type *old,
                                         const struct ir_type *now, uint32_t first_new)
{
    const struct dim *dims[TSSA_MAX_RANK];
    tssa_dtype dtype = old->dtype != TSSA_UNDEFINED ? old->dtype : now->dtype;
    const struct ir_type *ranked = old->rank >= 0 ? old : now;
    if (ranked->rank < 0)
        return type_unranked(&graph->types, dtype);
    for (int i = 0; i < ranked->rank; i++)
        dims[i] = old->rank == now->rank ? best_dim(old->dims[i], now->dims[i], first_new)
                                         : ranked->dims[i];
    return type_tensor(&graph->types, dtype, ranked->rank, dims);
}

static const struct ir_type *best_type(struct ir_graph *graph, const struct ir_type *old,
                                       const struct ir_type *now, uint32_t first_new)
{
    if (old == now || now->kind == TYPE_UNKNOWN)
        return old;
    if (old->kind != now->kind)
        return old->kind == TYPE_UNKNOWN ? now : old;
    if (old->kind == TYPE_TENSOR)
        return best_tensor(graph, old, now, first_new);
    return is_better_type(old, now) ? now : old;
}

static tssa_status *best_known(struct ir_graph *graph, const struct ir_known *old,
                               const struct ir_known *now, uint32_t first_new,
                               const struct ir_known **best)
{
    *best = old ? old : now;
    if (!old || !now || old->count != now->count)
        return NULL;
    const struct dim *elements[IR_KNOWN_MAX];
    bool same = true;
    for (size_t i = 0; i < old->count; i++) {
        elements[i] = best_dim(old->elements[i], now->elements[i], first_new);
        same &= elements[i] == old->elements[i];
    }
    if (same)
        return NULL;
    struct ir_known *made = ARENA_NEW(&graph->arena, struct ir_known);
    TRY_ALLOC(made);
    made->count = old->count;
    made->elements = arena_copy(&graph->arena, elements, old->count * sizeof *elements);
    TRY_ALLOC(made->elements);
    *best = made;
    return NULL;
}

static tssa_status *keep_best(struct ir_graph *graph, struct ir_value *value,
                              const struct facts *old, uint32_t first_new)
{
    value->type = best_type(graph, old->type, value->type, first_new);
    TRY_ALLOC(value->type);
    return best_known(graph, old->known, value->known, first_new, &value->known);
}

/* ---- The values of an op and of its blocks --------------------------------------------------- */

typedef void (*value_fn)(struct state *state, struct ir_value *value);

static void each_value(struct state *state, struct ir_op *op, value_fn visit)
{
    for (uint32_t i = 0; i < op->n_results; i++)
        visit(state, &op->results[i]);
    for (uint32_t b = 0; b < op->n_blocks; b++) {
        for (uint32_t i = 0; i < op->blocks[b]->n_params; i++)
            visit(state, op->blocks[b]->params[i]);
        for (struct ir_op *inner = op->blocks[b]->first; inner; inner = inner->next)
            each_value(state, inner, visit);
    }
}

static void save(struct state *state, struct ir_value *value)
{
    state->before[value->id] = (struct facts){value->type, value->known};
}

static void restore(struct state *state, struct ir_value *value)
{
    value->type = state->before[value->id].type;
    value->known = state->before[value->id].known;
}

/* What can never run may be inferred to be unknown, where it may not be run. */
static void keep_known(struct state *state, struct ir_value *value)
{
    if (value->type->kind == TYPE_UNKNOWN)
        restore(state, value);
}

static void compare(struct state *state, struct ir_value *value)
{
    const struct facts *old = &state->before[value->id];
    state->pass->changed |=
        is_better_type(old->type, value->type) || is_better_known(old->known, value->known);
}

/* ---- The walk -------------------------------------------------------------------------------- */

static bool is_stale(const struct ir_op *op)
{
    if (op->inferred_from != ir_infer_stamp(op))
        return true;
    for (uint32_t b = 0; b < op->n_blocks; b++)
        for (const struct ir_op *inner = op->blocks[b]->first; inner; inner = inner->next)
            if (is_stale(inner))
                return true;
    return false;
}

static tssa_status *infer_again(struct state *state, struct ir_op *op)
{
    struct ir_graph *graph = state->pass->graph;
    uint32_t first_new = graph->dims.n_dims;
    each_value(state, op, save);
    tssa_status *status = ir_infer_op(op);
    if (status) {
        if (tssa_status_code(status) == TSSA_OUT_OF_MEMORY)
            return status;
        tssa_status_free(status);
        each_value(state, op, restore);
        return NULL;
    }
    each_value(state, op, keep_known);
    for (uint32_t i = 0; i < op->n_results; i++)
        TRY(keep_best(graph, &op->results[i], &state->before[op->results[i].id], first_new));
    each_value(state, op, compare);
    return NULL;
}

static tssa_status *infer_stale(struct state *state)
{
    for (struct ir_op *op = state->pass->graph->body->first; op; op = op->next)
        if (is_stale(op))
            TRY(infer_again(state, op));
    return NULL;
}

tssa_status *pass_infer(struct pass_context *pass)
{
    struct ir_graph *graph = pass->graph;
    struct state state = {.pass = pass};
    state.before =
        allocator_calloc(graph->allocator, (size_t)graph->n_values + 1, sizeof *state.before);
    TRY_ALLOC(state.before);
    graph->infer_steps = 0; /* the budget of loops is per inference of the graph */
    tssa_status *status = infer_stale(&state);
    allocator_free(graph->allocator, state.before);
    return status;
}
