/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/lower/turned_ops.h"

#include "ir/row.h"
#include "ir/rule.h"
#include "passes/lower/convs.h"
#include "passes/lower/halves.h"
#include "passes/lower/turned.h"

/* An image of so few channels is read as it is. */
#define FEW_CHANNELS 4
/* The library computes groups of these many channels in any layout. */
#define GROUP_CHANNELS 16
/* Axes of an image. */
#define RANK 4

/* Where an axis of an image with channels first is then. */
static int64_t turned_to(int64_t axis)
{
    return turned_axis(RANK, (int)(axis < 0 ? axis + RANK : axis), false);
}

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

/* From an image of float32 to another one, in operand and result 0. */
static bool is_between_images(const struct ir_op *op)
{
    return op->n_results > 0 && op->n_operands > 0 && conv_is_image(ir_operand(op, 0)) &&
           conv_is_image(&op->results[0]);
}

/* ---- Convolutions ---------------------------------------------------------------------------- */

static bool find_conv(const struct ir_op *op, struct conv_shape *shape)
{
    if (!ir_op_is(op, IR_OP_Conv) || !conv_shape_of(op, shape))
        return false;
    return shape->groups == 1 || conv_is_depthwise(shape) ||
           (shape->in_channels / shape->groups % GROUP_CHANNELS == 0 &&
            shape->out_channels / shape->groups % GROUP_CHANNELS == 0);
}

static bool is_conv(const struct ir_op *op)
{
    struct conv_shape shape;
    return find_conv(op, &shape);
}

static bool has_few_channels(const struct ir_value *image)
{
    int64_t channels;
    return dim_is_const(image->type->dims[1], &channels) && channels <= FEW_CHANNELS;
}

bool turned_stays_plain(enum turned_role role, const struct ir_op *op)
{
    return role == TURNED_CONV && ir_attr_int(op, "group", 1) == 1 &&
           has_few_channels(ir_operand(op, 0)) && !turned_from(ir_operand(op, 0));
}

int64_t turned_plain_cost(enum turned_role role, const struct ir_op *op)
{
    struct conv_shape shape;
    if (role != TURNED_CONV || !find_conv(op, &shape) || conv_is_product(&shape))
        return 0;
    return (turned_stays_plain(role, op) ? 0 : conv_elements(ir_operand(op, 0)->type)) +
           conv_elements(op->results[0].type);
}

static tssa_status *make_conv(struct ir_graph *graph, struct ir_op *op, struct ir_op **made)
{
    const bool plain = turned_stays_plain(TURNED_CONV, op);
    *made = conv_create(graph, op);
    if (!*made || (!plain && !conv_set_int(graph, *made, CONVOLVE_X_LAST, 1)) ||
        !conv_set_int(graph, *made, CONVOLVE_Y_LAST, 1))
        return status_out_of_memory();
    return NULL;
}

/* ---- Element by element ---------------------------------------------------------------------- */

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
    return conv_is_image(value) || (half_is(value) && value->type->rank == RANK);
}

/* Of images and numbers. */
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

/* ---- Joined and cut -------------------------------------------------------------------------- */

static bool is_join(const struct ir_op *op)
{
    bool images = ir_op_is(op, IR_OP_Concat) && conv_is_image(&op->results[0]);
    for (uint32_t i = 0; images && i < op->n_operands; i++)
        images = conv_is_image(ir_operand(op, i));
    return images;
}

static tssa_status *make_join(struct ir_graph *graph, struct ir_op *op, struct ir_op **made)
{
    TRY(make_like(graph, op, made));
    return conv_set_int(graph, *made, "axis", turned_to(ir_attr_int(op, "axis", 1)))
               ? NULL
               : status_out_of_memory();
}

static bool is_cut(const struct ir_op *op)
{
    const struct rule *rule = ir_op_is(op, IR_OP_access) ? rule_of(op) : NULL;
    if (!rule || op->opaque || rule->n_steps == 0 || !is_between_images(op))
        return false;
    for (uint32_t i = 0; i < rule->n_steps; i++)
        if (rule->steps[i].kind != RULE_SLICE && rule->steps[i].kind != RULE_SPAN)
            return false;
    return true;
}

int64_t turned_own_cost(enum turned_role role, const struct ir_op *op)
{
    const struct rule *rule = role == TURNED_CUT ? rule_of(op) : NULL;
    bool channels = false;
    for (uint32_t i = 0; rule && i < rule->n_steps; i++)
        channels |= rule->steps[i].params[0].value == 1;
    return channels ? conv_elements(op->results[0].type) : 0;
}

static tssa_status *make_cut(struct ir_graph *graph, struct ir_op *op, struct ir_op **made)
{
    const struct rule *rule = rule_of(op);
    struct rule_step steps[RULE_MAX_STEPS];
    struct rule_param params[RULE_MAX_STEPS][4];
    struct ir_value *operands[RULE_MAX_STEPS * 4];
    for (uint32_t i = 0; i < rule->n_steps; i++) {
        steps[i] = rule->steps[i];
        for (uint32_t k = 0; k < steps[i].n_params; k++)
            params[i][k] = steps[i].params[k];
        params[i][0] = rule_constant(turned_to(params[i][0].value));
        steps[i].params = params[i];
    }
    for (uint32_t i = 1; i < op->n_operands; i++)
        operands[i - 1] = ir_operand(op, i);
    const struct rule *turned = rule_create(graph, rule->n_steps, steps);
    TRY_ALLOC(turned);
    *made = rule_access_create(graph, ir_operand(op, 0), turned, op->n_operands - 1, operands);
    TRY_ALLOC(*made);
    return NULL;
}

/* ---- Windows --------------------------------------------------------------------------------- */

static bool is_mean(const struct ir_op *op)
{
    return ir_op_is(op, IR_OP_GlobalAveragePool) && conv_is_image(ir_operand(op, 0));
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

/* ReduceMean and the like, of axes that are told and stay. */
static bool is_reduce(const struct ir_op *op)
{
    const struct tensor *axes = ir_value_constant(ir_operand(op, 1));
    return ir_row_folds(op) && !op->opaque && axes && axes->dtype == TSSA_INT64 &&
           axes->rank == 1 && axes->dims[0] > 0 && axes->dims[0] <= RANK &&
           ir_attr_int(op, "keepdims", 1) && is_between_images(op);
}

static tssa_status *make_reduce(struct ir_graph *graph, struct ir_op *op, struct ir_op **made)
{
    const struct tensor *axes = ir_value_constant(ir_operand(op, 1));
    int64_t turned[RANK];
    for (int64_t i = 0; i < axes->dims[0]; i++)
        turned[i] = turned_to(((const int64_t *)axes->data)[i]);
    struct ir_op *constant = ir_constant_ints(graph, 1, (size_t)axes->dims[0], turned);
    TRY(pass_insert(constant, op));
    TRY(make_like(graph, op, made));
    ir_op_set_operand(*made, 1, &constant->results[0]);
    return NULL;
}

/* A maximum without indices, which would be others. */
static bool is_pool(const struct ir_op *op)
{
    return (ir_op_is(op, IR_OP_MaxPool) || ir_op_is(op, IR_OP_AveragePool)) &&
           !ir_result_wanted(op, 1) && is_between_images(op);
}

static tssa_status *make_pool(struct ir_graph *graph, struct ir_op *op, struct ir_op **made)
{
    TRY(make_like(graph, op, made));
    return conv_set_int(graph, *made, IR_CHANNELS_LAST, 1) ? NULL : status_out_of_memory();
}

static bool is_resize(const struct ir_op *op)
{
    return ir_op_is(op, IR_OP_Resize) && is_between_images(op);
}

/* Its operands are of axes that an attribute may name, in any order. */
static tssa_status *make_resize(struct ir_graph *graph, struct ir_op *op, struct ir_op **made)
{
    size_t count;
    const int64_t *given = ir_attr_ints(op, "axes", &count);
    if (!given)
        count = RANK;
    int64_t *axes = ARENA_ARRAY(&graph->arena, int64_t, count);
    const struct ir_attr attr = {.name = intern_str(&graph->strings, "axes"),
                                 .kind = IR_ATTR_INTS,
                                 .count = count,
                                 .ints = axes};
    TRY(make_like(graph, op, made));
    if (!axes || !attr.name)
        return status_out_of_memory();
    for (size_t i = 0; i < count; i++)
        axes[i] = turned_to(given ? given[i] : (int64_t)i);
    (*made)->version = ir_op_bind((*made)->info, IR_NEWEST_OPSET); /* older ones have no axes */
    return ir_op_set_attr(graph, *made, &attr) ? NULL : status_out_of_memory();
}

/* ---- All of them ----------------------------------------------------------------------------- */

static const struct {
    bool (*fits)(const struct ir_op *op);
    tssa_status *(*make)(struct ir_graph *graph, struct ir_op *op, struct ir_op **made);
} roles[TURNED_ROLES] = {
    [TURNED_CONV] = {is_conv, make_conv}, [TURNED_EACH] = {is_each, NULL},
    [TURNED_JOIN] = {is_join, make_join}, [TURNED_CUT] = {is_cut, make_cut},
    [TURNED_MEAN] = {is_mean, make_mean}, [TURNED_REDUCE] = {is_reduce, make_reduce},
    [TURNED_POOL] = {is_pool, make_pool}, [TURNED_RESIZE] = {is_resize, make_resize},
};

enum turned_role turned_role_of(const struct ir_op *op)
{
    for (int role = TURNED_NOT + 1; role < TURNED_ROLES; role++)
        if (roles[role].fits(op))
            return (enum turned_role)role;
    return TURNED_NOT;
}

bool turned_reads_image(enum turned_role role, const struct ir_op *op, uint32_t operand)
{
    const struct ir_value *value = ir_operand(op, operand);
    if (!value || role == TURNED_NOT)
        return false;
    return role == TURNED_EACH || role == TURNED_JOIN ? is_image(value) : operand == 0;
}

tssa_status *turned_make(struct ir_graph *graph, struct ir_op *op, enum turned_role role,
                         struct ir_op **made)
{
    return roles[role].make ? roles[role].make(graph, op, made) : make_like(graph, op, made);
}
