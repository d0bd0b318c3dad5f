/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images of float32 with their channels last, from one convolution to the next:
 *
 *     b = Conv(a), c = Add(b, b'), d = Conv(c)
 *       ->   a' = permute(a), b' = convolve(a'), c' = Add(b', ...), d' = convolve(c'),
 *            d = permute(d')
 *
 * With channels first the library reorders what it reads and writes, but for products of many
 * pixels and images of few channels. Groups of ops that hand images on, convolutions and what is
 * carried along with them (element-wise ops, Casts by which images of two-byte floats are rounded,
 * Concat, slices, reductions, pools, Resize; turned_ops.h), are turned where less is permuted at
 * their ends than would be reordered within them.
 *
 *   needs   constants where they are (fold_constants); only in sessions whose library computes
 *           convolve (pipeline.convolves)
 *   keeps   results but for the last bits: a library sums otherwise, and a mean is over other axes
 *   breaks  permutations that nobody reads are left (dead_code)
 */
#include <inttypes.h>

#include "base/alloc.h"
#include "passes/lower/convs.h"
#include "passes/lower/turned.h"
#include "passes/lower/turned_ops.h"

/* What is known of an op, by its id. */
struct node {
    enum turned_role role;
    uint32_t group;        /* the id of another op of its group, or its own */
    int64_t plain, turned; /* of the group: elements that are moved in each layout */
};

struct layout {
    struct pass_context *pass;
    struct node *nodes;
    uint32_t n_nodes;
    uint32_t *counted; /* by value: 1 + the group that was charged for turning it */
    uint32_t n_values;
    bool any;
};

/* ---- Groups ---------------------------------------------------------------------------------- */

static struct node *node_of(const struct layout *l, const struct ir_op *op)
{
    return op && op->id < l->n_nodes ? &l->nodes[op->id] : NULL;
}

static uint32_t group_of(struct layout *l, uint32_t id)
{
    while (l->nodes[id].group != id) {
        l->nodes[id].group = l->nodes[l->nodes[id].group].group;
        id = l->nodes[id].group;
    }
    return id;
}

/* The op whose result it is, if both may be turned together. */
static const struct ir_op *maker_in(const struct layout *l, const struct ir_op *op,
                                    const struct ir_value *value)
{
    const struct ir_op *maker = value->op;
    const struct node *node = node_of(l, maker);
    return node && node->role != TURNED_NOT && maker->parent == op->parent ? maker : NULL;
}

static tssa_status *find_role(void *context, struct ir_op *op)
{
    struct layout *l = context;
    l->nodes[op->id].role = turned_role_of(op);
    l->nodes[op->id].group = op->id;
    l->any |= l->nodes[op->id].role == TURNED_CONV;
    return NULL;
}

static tssa_status *join_groups(void *context, struct ir_op *op)
{
    struct layout *l = context;
    const enum turned_role role = l->nodes[op->id].role;
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const struct ir_op *maker = turned_reads_image(role, op, i) && !turned_stays_plain(role, op)
                                        ? maker_in(l, op, ir_operand(op, i))
                                        : NULL;
        if (maker)
            l->nodes[group_of(l, maker->id)].group = group_of(l, op->id);
    }
    return NULL;
}

/* ---- Costs ----------------------------------------------------------------------------------- */

/* Of an image; one pixel is only given another shape. */
static int64_t permute_cost(const struct ir_value *value)
{
    const struct ir_type *type = value->type;
    return dim_is(type->dims[2], 1) && dim_is(type->dims[3], 1) ? 0 : conv_elements(type);
}

static void count_operand(struct layout *l, const struct ir_op *op, uint32_t operand)
{
    const enum turned_role role = l->nodes[op->id].role;
    const struct ir_value *value = ir_operand(op, operand);
    if (!turned_reads_image(role, op, operand) || turned_stays_plain(role, op) ||
        maker_in(l, op, value) || ir_value_constant(value) || turned_from(value))
        return;
    const uint32_t group = group_of(l, op->id);
    if (l->counted[value->id] == group + 1)
        return;
    l->counted[value->id] = group + 1;
    l->nodes[group].turned += permute_cost(value);
}

/* Is the result read by something that is not turned with it? */
static bool leaves(const struct layout *l, const struct ir_op *op)
{
    for (const struct ir_use *use = op->results[0].uses; use; use = use->next) {
        const struct ir_op *user = use->user;
        const enum turned_role role = l->nodes[user->id].role;
        if (user->parent != op->parent || turned_stays_plain(role, user) ||
            !turned_reads_image(role, user, (uint32_t)(use - user->operands)))
            return true;
    }
    return false;
}

static tssa_status *count_costs(void *context, struct ir_op *op)
{
    struct layout *l = context;
    const enum turned_role role = l->nodes[op->id].role;
    if (role == TURNED_NOT)
        return NULL;
    for (uint32_t i = 0; i < op->n_operands; i++)
        count_operand(l, op, i);
    struct node *group = &l->nodes[group_of(l, op->id)];
    group->plain += turned_plain_cost(role, op);
    group->turned += turned_own_cost(role, op);
    if (leaves(l, op))
        group->turned += permute_cost(&op->results[0]);
    return NULL;
}

/* ---- Turning ----------------------------------------------------------------------------------
 */

static tssa_status *turn(struct pass_context *pass, struct ir_op *op, enum turned_role role)
{
    const bool plain = turned_stays_plain(role, op);
    struct ir_op *made;
    TRY(turned_make(pass->graph, op, role, &made));
    for (uint32_t i = 0; i < op->n_operands && !plain; i++) {
        struct ir_value *value = ir_operand(op, i);
        if (!turned_reads_image(role, op, i))
            continue;
        TRY(turned_value(pass->graph, value, op, &value));
        ir_op_set_operand(made, i, value);
    }
    TRY(pass_insert(made, op));
    return pass_replace(pass, op, turned_access(pass->graph, &made->results[0], false));
}

static tssa_status *remark_plain(struct pass_context *pass, const struct ir_op *op,
                                 const struct node *group)
{
    if (turned_plain_cost(TURNED_CONV, op) == 0)
        return pass_remark(pass, TSSA_REMARK_MISSED, op,
                           "has its channels first: it is computed as it is");
    return pass_remark(pass, TSSA_REMARK_MISSED, op,
                       "has its channels first: to turn what is around it would move %" PRId64
                       " elements, and spare the library %" PRId64,
                       group->turned, group->plain);
}

static tssa_status *visit(void *context, struct ir_op *op)
{
    struct layout *l = context;
    const struct node *node = node_of(l, op);
    if (!node || node->role == TURNED_NOT)
        return NULL;
    const enum turned_role role = node->role;
    const struct node *group = &l->nodes[group_of(l, op->id)];
    if (group->turned >= group->plain)
        return role == TURNED_CONV ? remark_plain(l->pass, op, group) : NULL;
    if (role == TURNED_CONV)
        TRY(pass_remark(l->pass, TSSA_REMARK_APPLIED, op, "has its channels last"));
    return turn(l->pass, op, role);
}

static tssa_status *lay_out(struct layout *l)
{
    struct ir_block *body = l->pass->graph->body;
    TRY(ir_block_walk(body, find_role, l));
    if (!l->any || !conv_is_computed(l->pass))
        return NULL;
    TRY(ir_block_walk(body, join_groups, l));
    TRY(ir_block_walk(body, count_costs, l));
    return ir_block_walk(body, visit, l);
}

tssa_status *pass_lay_out_convs(struct pass_context *pass)
{
    const tssa_allocator *allocator = pass->graph->allocator;
    struct layout l = {.pass = pass};
    if (!pass_is_for_session(pass))
        return NULL;
    l.n_nodes = pass->graph->n_ops;
    l.n_values = pass->graph->n_values;
    l.nodes = allocator_calloc(allocator, l.n_nodes + 1, sizeof *l.nodes);
    l.counted = allocator_calloc(allocator, l.n_values + 1, sizeof *l.counted);
    tssa_status *status = l.nodes && l.counted ? lay_out(&l) : status_out_of_memory();
    allocator_free(allocator, l.nodes);
    allocator_free(allocator, l.counted);
    return status;
}
