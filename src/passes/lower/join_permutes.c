/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two permutations with reshapes between them move elements once, or not at all:
 *
 *     x[permute(0, 3, 1, 2)][reshape(N, 9, 91, H, W)][permute(0, 3, 4, 1, 2)]
 *       ->   x[reshape(N, H, W, 9, 91)]
 *
 * Where channels are last (lay_out_convs), this is what is left of a head that puts the scores of
 * each place into a row, of a channel shuffle, and of an image that is made a row of pixels. The
 * axes between the permutations are taken apart, or put together, one from many or many from one:
 * what is reshaped into all of their parts is permuted once, and then reshaped into the result.
 *
 *   needs   accesses with one step each; only in sessions
 *   keeps   results' bits
 *   breaks  accesses that nobody reads are left (dead_code)
 */
#include "base/alloc.h"
#include "ir/rule.h"
#include "passes/pass.h"

/* An axis of x, or a part of one that is taken apart; in the order of the first permutation. */
struct part {
    int axis;   /* of x */
    int target; /* the axis of what the second permutation reads */
    const struct dim *size;
};

struct chain {
    struct ir_value *x;
    const struct rule_step *first, *second;
    const struct ir_type *between, *reshaped; /* what is reshaped, and what becomes of it */
    struct part parts[TSSA_MAX_RANK];
    int n_parts;
};

/* ---- Finding --------------------------------------------------------------------------------- */

static const struct rule_step *permutation_of(const struct ir_op *op)
{
    const struct rule *rule = op && ir_op_is(op, IR_OP_access) ? rule_of(op) : NULL;
    return rule && rule->n_steps == 1 && rule->steps[0].kind == RULE_PERMUTE ? rule->steps : NULL;
}

static bool has_dims(const struct ir_type *type)
{
    return type && type->kind == TYPE_TENSOR && type->rank >= 0;
}

/* The permutation before the op, with what is between them. */
static bool find_chain(const struct ir_op *op, struct chain *chain)
{
    const struct ir_value *read = ir_operand(op, 0), *value = read;
    chain->second = permutation_of(op);
    if (!chain->second)
        return false;
    while (value->op && ir_op_is(value->op, IR_OP_access) && rule_keeps_order(rule_of(value->op)))
        value = ir_operand(value->op, 0);
    chain->first = permutation_of(value->op);
    if (!chain->first || value == read)
        return false;
    chain->x = ir_operand(value->op, 0);
    chain->between = value->type;
    chain->reshaped = read->type;
    return has_dims(chain->x->type) && has_dims(chain->between) && has_dims(chain->reshaped);
}

/* ---- Parts ----------------------------------------------------------------------------------- */

static bool same_size(const struct dim *a, const struct dim *b)
{
    int64_t left, right;
    return a == b || (dim_is_const(a, &left) && dim_is_const(b, &right) && left == right);
}

static bool add_part(struct chain *chain, int from, int target, const struct dim *size)
{
    if (chain->n_parts == TSSA_MAX_RANK)
        return false;
    chain->parts[chain->n_parts++] =
        (struct part){(int)chain->first->params[from].value, target, size};
    return true;
}

/* How many of the dims from `at` on have the product `size`; 0: none have. */
static int count_factors(const struct ir_type *type, int at, int64_t size)
{
    int64_t product = 1, factor;
    for (int i = at; i < type->rank; i++) {
        if (!dim_is_const(type->dims[i], &factor) || factor < 1 ||
            !i64_mul(product, factor, &product) || product > size)
            return 0;
        if (product == size)
            return i - at + 1;
    }
    return 0;
}

/* One axis that is several of the result, or several that are one of it; false: it is neither. */
static bool split_or_merge(struct chain *chain, int *from, int *target)
{
    const struct ir_type *a = chain->between, *b = chain->reshaped;
    int64_t left, right;
    if (!dim_is_const(a->dims[*from], &left) || !dim_is_const(b->dims[*target], &right))
        return false;
    const int split = count_factors(b, *target, left), merged = count_factors(a, *from, right);
    bool added = split > 0 || merged > 0;
    for (int i = 0; added && i < split; i++)
        added = add_part(chain, *from, *target + i, b->dims[*target + i]);
    for (int i = 0; added && !split && i < merged; i++)
        added = add_part(chain, *from + i, *target, a->dims[*from + i]);
    *from += split ? 1 : merged;
    *target += split ? split : 1;
    return added;
}

static bool find_parts(struct chain *chain)
{
    const struct ir_type *a = chain->between, *b = chain->reshaped;
    int from = 0, target = 0;
    chain->n_parts = 0;
    while (from < a->rank && target < b->rank) {
        if (!same_size(a->dims[from], b->dims[target])) {
            if (!split_or_merge(chain, &from, &target))
                return false;
        } else if (!add_part(chain, from, target, a->dims[from])) {
            return false;
        } else {
            from++;
            target++;
        }
    }
    return from == a->rank && target == b->rank;
}

/* ---- Making ---------------------------------------------------------------------------------- */

/* A reshape says all dims but one, which may be another one in each run. */
static bool may_say(int rank, const struct dim *const *dims)
{
    int64_t size;
    int unknown = 0;
    for (int i = 0; i < rank; i++)
        unknown += !dim_is_const(dims[i], &size);
    return unknown < 2;
}

/* The access is before `op` then, and *value what it makes. */
static tssa_status *add_access(struct ir_graph *graph, enum rule_kind kind, int n,
                               const struct rule_param *params, struct ir_op *op,
                               struct ir_value **value)
{
    const struct rule_step step = {kind, (uint32_t)n, params};
    const struct rule *rule = rule_create(graph, 1, &step);
    TRY_ALLOC(rule);
    struct ir_op *access = rule_access_create(graph, *value, rule, 0, NULL);
    TRY(pass_insert(access, op));
    *value = &access->results[0];
    return NULL;
}

static tssa_status *add_reshape(struct ir_graph *graph, int rank, const struct dim *const *dims,
                                struct ir_op *op, struct ir_value **value)
{
    struct rule_param sizes[TSSA_MAX_RANK];
    for (int i = 0; i < rank; i++) {
        int64_t size = -1;
        sizes[i] = rule_constant(dim_is_const(dims[i], &size) ? size : -1);
    }
    return add_access(graph, RULE_RESHAPE, rank, sizes, op, value);
}

/* The parts in the order in which x has them: where each of them is, and how large. */
static void order_parts(const struct chain *chain, int *places, const struct dim **sizes)
{
    int n = 0;
    for (int axis = 0; axis < chain->x->type->rank; axis++)
        for (int i = 0; i < chain->n_parts; i++)
            if (chain->parts[i].axis == axis) {
                sizes[n] = chain->parts[i].size;
                places[i] = n++;
            }
}

/* The parts in the result's order; false: in their own. */
static bool permute_parts(const struct chain *chain, const int *places, struct rule_param *axes)
{
    bool moves = false;
    int n = 0;
    for (uint32_t k = 0; k < chain->second->n_params; k++)
        for (int i = 0; i < chain->n_parts; i++)
            if (chain->parts[i].target == chain->second->params[k].value) {
                moves |= places[i] != n;
                axes[n++] = rule_constant(places[i]);
            }
    return moves;
}

static tssa_status *join(struct pass_context *pass, struct ir_op *op, const struct chain *chain)
{
    const struct ir_type *type = op->results[0].type;
    const bool splits = chain->n_parts != chain->x->type->rank,
               merges = chain->n_parts != type->rank;
    const struct dim *sizes[TSSA_MAX_RANK];
    struct rule_param axes[TSSA_MAX_RANK];
    int places[TSSA_MAX_RANK];
    struct ir_value *value = chain->x;
    order_parts(chain, places, sizes);
    const bool moves = permute_parts(chain, places, axes);
    if ((splits && !may_say(chain->n_parts, sizes)) || (merges && !may_say(type->rank, type->dims)))
        return NULL;
    if (splits)
        TRY(add_reshape(pass->graph, chain->n_parts, sizes, op, &value));
    if (moves)
        TRY(add_access(pass->graph, RULE_PERMUTE, chain->n_parts, axes, op, &value));
    if (merges)
        TRY(add_reshape(pass->graph, type->rank, type->dims, op, &value));
    TRY(pass_remark(pass, TSSA_REMARK_APPLIED, op, "moves what another permutation has moved, %s",
                    moves ? "with it" : "back"));
    ir_value_replace(&op->results[0], value);
    ir_op_remove(op);
    pass->changed = true;
    return NULL;
}

static tssa_status *visit(void *context, struct ir_op *op)
{
    struct chain chain;
    return find_chain(op, &chain) && find_parts(&chain) ? join(context, op, &chain) : NULL;
}

tssa_status *pass_join_permutes(struct pass_context *pass)
{
    return pass_is_for_session(pass) ? ir_block_walk(pass->graph->body, visit, pass) : NULL;
}
