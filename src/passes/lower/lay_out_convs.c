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
 * Concat, GlobalAveragePool, MaxPool), are turned where less is permuted at their ends than would
 * be reordered within them.
 *
 *   needs   constants where they are (fold_constants); only in sessions whose library computes
 *           convolve (pipeline.convolves)
 *   keeps   results but for the last bits: a library sums otherwise, and a mean is over other axes
 *   breaks  permutations that nobody reads are left (dead_code)
 */
#include <inttypes.h>

#include "base/alloc.h"
#include "passes/lower/convs.h"
#include "passes/lower/halves.h"
#include "passes/lower/turned.h"

/* An image of so few channels is read as it is. */
#define FEW_CHANNELS 4
/* The library computes groups of these many channels in any layout. */
#define GROUP_CHANNELS 16

enum role { ROLE_NONE, ROLE_CONV, ROLE_EACH, ROLE_JOIN, ROLE_MEAN, ROLE_MAX };

/* What is known of an op, by its id. */
struct node {
    enum role role;
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

/* ---- What may be turned ---------------------------------------------------------------------- */

static bool is_conv(const struct ir_op *op, struct conv_shape *shape)
{
    if (!ir_op_is(op, IR_OP_Conv) || !conv_shape_of(op, shape))
        return false;
    return shape->groups == 1 || conv_is_depthwise(shape) ||
           (shape->in_channels / shape->groups % GROUP_CHANNELS == 0 &&
            shape->out_channels / shape->groups % GROUP_CHANNELS == 0);
}

static bool is_stretched(const struct ir_type *type, const struct ir_type *to)
{
    for (int i = 0; i < type->rank; i++)
        if (type->dims[i] != to->dims[i] && !dim_is(type->dims[i], 1))
            return false;
    return true;
}

/* Of float32, or of what that is rounded to (widen_convs). */
static bool is_image(const struct ir_value *value)
{
    return conv_is_image(value) || (half_is(value) && value->type->rank == 4);
}

/* Of images and numbers, each element by itself. */
static bool is_each(const struct ir_op *op)
{
    if (half_is_cast(op))
        return is_image(ir_operand(op, 0)) && is_image(&op->results[0]);
    if (!op->info->ew || op->n_results != 1 || !conv_is_image(&op->results[0]))
        return false;
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const struct ir_value *value = ir_operand(op, i);
        if (value && !conv_is_one_number(value) &&
            !(conv_is_image(value) && is_stretched(value->type, op->results[0].type)))
            return false;
    }
    return true;
}

static bool is_join(const struct ir_op *op)
{
    bool images = ir_op_is(op, IR_OP_Concat) && conv_is_image(&op->results[0]);
    for (uint32_t i = 0; images && i < op->n_operands; i++)
        images = conv_is_image(ir_operand(op, i));
    return images;
}

/* Without indices, which would be others. */
static bool is_max(const struct ir_op *op)
{
    return ir_op_is(op, IR_OP_MaxPool) && !ir_result_wanted(op, 1) &&
           conv_is_image(ir_operand(op, 0)) && conv_is_image(&op->results[0]);
}

static enum role role_of(const struct ir_op *op)
{
    struct conv_shape shape;
    if (is_conv(op, &shape))
        return ROLE_CONV;
    if (ir_op_is(op, IR_OP_GlobalAveragePool) && conv_is_image(ir_operand(op, 0)))
        return ROLE_MEAN;
    if (is_max(op))
        return ROLE_MAX;
    return is_each(op) ? ROLE_EACH : is_join(op) ? ROLE_JOIN : ROLE_NONE;
}

/* Does an op of the role read the operand as an image? */
static bool reads_image(enum role role, const struct ir_op *op, uint32_t operand)
{
    const struct ir_value *value = ir_operand(op, operand);
    if (!value || role == ROLE_NONE)
        return false;
    return role == ROLE_CONV ? operand == 0 : is_image(value);
}

static bool has_few_channels(const struct ir_value *image)
{
    int64_t channels;
    return dim_is_const(image->type->dims[1], &channels) && channels <= FEW_CHANNELS;
}

/* An operand that is read with channels first all the same. */
static bool stays_plain(enum role role, const struct ir_op *op)
{
    return role == ROLE_CONV && ir_attr_int(op, "group", 1) == 1 &&
           has_few_channels(ir_operand(op, 0)) && !turned_from(ir_operand(op, 0));
}

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
    return node && node->role != ROLE_NONE && maker->parent == op->parent ? maker : NULL;
}

static tssa_status *find_role(void *context, struct ir_op *op)
{
    struct layout *l = context;
    l->nodes[op->id].role = role_of(op);
    l->nodes[op->id].group = op->id;
    l->any |= l->nodes[op->id].role == ROLE_CONV;
    return NULL;
}

static tssa_status *join_groups(void *context, struct ir_op *op)
{
    struct layout *l = context;
    const enum role role = l->nodes[op->id].role;
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const struct ir_op *maker = reads_image(role, op, i) && !stays_plain(role, op)
                                        ? maker_in(l, op, ir_operand(op, i))
                                        : NULL;
        if (maker)
            l->nodes[group_of(l, maker->id)].group = group_of(l, op->id);
    }
    return NULL;
}

/* ---- Costs ----------------------------------------------------------------------------------- */

/* Elements that the library reorders of a convolution with channels first. */
static int64_t plain_cost(const struct ir_op *op)
{
    struct conv_shape shape;
    if (!is_conv(op, &shape) || conv_is_product(&shape))
        return 0;
    return (stays_plain(ROLE_CONV, op) ? 0 : conv_elements(ir_operand(op, 0)->type)) +
           conv_elements(op->results[0].type);
}

/* Of an image; one pixel is only given another shape. */
static int64_t permute_cost(const struct ir_value *value)
{
    const struct ir_type *type = value->type;
    return dim_is(type->dims[2], 1) && dim_is(type->dims[3], 1) ? 0 : conv_elements(type);
}

static void count_operand(struct layout *l, const struct ir_op *op, uint32_t operand)
{
    const enum role role = l->nodes[op->id].role;
    const struct ir_value *value = ir_operand(op, operand);
    if (!reads_image(role, op, operand) || stays_plain(role, op) || maker_in(l, op, value) ||
        ir_value_constant(value) || turned_from(value))
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
        const enum role role = l->nodes[user->id].role;
        if (user->parent != op->parent || stays_plain(role, user) ||
            !reads_image(role, user, (uint32_t)(use - user->operands)))
            return true;
    }
    return false;
}

static tssa_status *count_costs(void *context, struct ir_op *op)
{
    struct layout *l = context;
    if (l->nodes[op->id].role == ROLE_NONE)
        return NULL;
    for (uint32_t i = 0; i < op->n_operands; i++)
        count_operand(l, op, i);
    struct node *group = &l->nodes[group_of(l, op->id)];
    if (l->nodes[op->id].role == ROLE_CONV)
        group->plain += plain_cost(op);
    if (leaves(l, op))
        group->turned += permute_cost(&op->results[0]);
    return NULL;
}

/* ---- Turning --------------------------------------------------------------------------------- */

static tssa_status *make_like(struct ir_graph *graph, const struct ir_op *op, struct ir_op **made)
{
    *made = ir_op_create(graph, op->info, op->n_operands, 1);
    TRY_ALLOC(*made);
    (*made)->version = op->version;
    if (!ir_op_copy_attrs(graph, *made, op))
        return status_out_of_memory();
    for (uint32_t i = 0; i < op->n_operands; i++)
        ir_op_set_operand(*made, i, ir_operand(op, i));
    return NULL;
}

static tssa_status *make_join(struct ir_graph *graph, const struct ir_op *op, struct ir_op **made)
{
    const int axis = (int)ir_attr_int(op, "axis", 1);
    TRY(make_like(graph, op, made));
    return conv_set_int(graph, *made, "axis", turned_axis(4, axis < 0 ? axis + 4 : axis, false))
               ? NULL
               : status_out_of_memory();
}

/* A mean of the axes behind the first, which stay. */
static tssa_status *make_mean(struct ir_graph *graph, struct ir_op *op, struct ir_op **made)
{
    static const int64_t axes[] = {1, 2};
    struct ir_op *constant = ir_constant_ints(graph, 1, 2, axes);
    TRY(pass_insert(constant, op));
    *made = ir_op_create(graph, ir_op_info(IR_OP_ReduceMean), 2, 1);
    TRY_ALLOC(*made);
    (*made)->version = ir_op_bind((*made)->info, IR_NEWEST_OPSET);
    ir_op_set_operand(*made, 0, ir_operand(op, 0));
    ir_op_set_operand(*made, 1, &constant->results[0]);
    return NULL;
}

static tssa_status *make_conv(struct ir_graph *graph, struct ir_op *op, bool plain,
                              struct ir_op **made)
{
    *made = conv_create(graph, op);
    if (!*made || (!plain && !conv_set_int(graph, *made, CONVOLVE_X_LAST, 1)) ||
        !conv_set_int(graph, *made, CONVOLVE_Y_LAST, 1))
        return status_out_of_memory();
    return NULL;
}

static tssa_status *make_max(struct ir_graph *graph, struct ir_op *op, struct ir_op **made)
{
    TRY(make_like(graph, op, made));
    return conv_set_int(graph, *made, IR_CHANNELS_LAST, 1) ? NULL : status_out_of_memory();
}

static tssa_status *make(struct ir_graph *graph, struct ir_op *op, enum role role, bool plain,
                         struct ir_op **made)
{
    switch (role) {
    case ROLE_CONV:
        return make_conv(graph, op, plain, made);
    case ROLE_JOIN:
        return make_join(graph, op, made);
    case ROLE_MEAN:
        return make_mean(graph, op, made);
    case ROLE_MAX:
        return make_max(graph, op, made);
    default:
        return make_like(graph, op, made);
    }
}

static tssa_status *turn(struct pass_context *pass, struct ir_op *op, enum role role)
{
    const bool plain = stays_plain(role, op);
    struct ir_op *made;
    TRY(make(pass->graph, op, role, plain, &made));
    for (uint32_t i = 0; i < op->n_operands && !plain; i++) {
        struct ir_value *value = ir_operand(op, i);
        if (!reads_image(role, op, i))
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
    if (plain_cost(op) == 0)
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
    if (!node || node->role == ROLE_NONE)
        return NULL;
    const enum role role = node->role;
    const struct node *group = &l->nodes[group_of(l, op->id)];
    if (group->turned >= group->plain)
        return role == ROLE_CONV ? remark_plain(l->pass, op, group) : NULL;
    if (role == ROLE_CONV)
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
