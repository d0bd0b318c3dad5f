/* SPDX-License-Identifier: Apache-2.0 */
/* An op in the words of an older opset: the actions and meanings of downgrade.def. */
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "onnx/export.h"

/* Nothing is written for older operator sets: below 7, broadcasting was another one. */

struct downgrade {
    const char *op;
    int below;
    tssa_status *(*apply)(struct export_draft *draft, const struct downgrade *row);
    const char *attr;
    int number;
    const char *text;
};

/* ---- Attributes of a draft ------------------------------------------------------------------- */

static void drop_attr(const struct export_draft *draft, const char *name)
{
    node_attrs_drop(&draft->export->node_attrs, name);
}

static int64_t int_attr(const struct export_draft *draft, const char *name, int64_t fallback)
{
    return node_attrs_int(&draft->export->node_attrs, name, fallback);
}

/* `name` is a literal: no names are interned for a graph that is only read. */
static tssa_status *add_attr(const struct export_draft *draft, const char *name,
                             struct ir_attr attr)
{
    attr.name = name;
    drop_attr(draft, name);
    if (!vec_push(&draft->export->node_attrs, attr))
        return status_out_of_memory();
    return NULL;
}

static tssa_status *set_string(const struct export_draft *draft, const char *name,
                               const char *literal)
{
    return add_attr(draft, name,
                    (struct ir_attr){.kind = IR_ATTR_STRING, .s = {literal, strlen(literal)}});
}

/* ---- Operands of a draft --------------------------------------------------------------------- */

/* Absent operands at the end are no operands. */
static void drop_operand(const struct export_draft *draft, int index)
{
    struct export *export = draft->export;
    if ((size_t)index < export->operands.count)
        export->operands.data[index] = NULL;
    while (export->operands.count && !export->operands.data[export->operands.count - 1])
        export->operands.count--;
}

static tssa_status *set_operand(const struct export_draft *draft, size_t index,
                                const struct ir_value *value)
{
    struct export *export = draft->export;
    while (export->operands.count <= index)
        if (!vec_push(&export->operands, NULL))
            return status_out_of_memory();
    export->operands.data[index] = value;
    return NULL;
}

/* The constant that an operand is; an error when it is none. */
static tssa_status *constant_operand(const struct export_draft *draft, int index, const char *attr,
                                     const struct tensor **tensor)
{
    *tensor = ir_value_constant(export_draft_operand(draft, index));
    if (*tensor && (*tensor)->dtype != TSSA_STRING)
        return NULL;
    return ERROR(TSSA_UNSUPPORTED, "%s-%d takes %s as an attribute, and it is not constant",
                 draft->name, draft->version, attr);
}

/* ---- Actions: operands that were attributes -------------------------------------------------- */

static tssa_status *downgrade_ints_attribute(struct export_draft *draft,
                                             const struct downgrade *row)
{
    const struct tensor *tensor;
    if (!export_draft_operand(draft, row->number))
        return NULL;
    TRY(constant_operand(draft, row->number, row->attr, &tensor));
    size_t count = tensor_count(tensor);
    if (count == 0 && !row->text && strcmp(row->op, "Slice") != 0)
        return export_refuse(draft, "cannot be told an empty list of axes or sizes");
    drop_operand(draft, row->number);
    if (count == 0 && row->text)
        return NULL;
    int64_t *ints = ARENA_ARRAY(&draft->export->scratch, int64_t, count);
    TRY_ALLOC(ints);
    for (size_t i = 0; i < count; i++)
        ints[i] = dtype_load_int64(tensor->dtype,
                                   (const char *)tensor->data + i * tssa_dtype_size(tensor->dtype));
    return add_attr(draft, row->attr,
                    (struct ir_attr){.kind = IR_ATTR_INTS, .count = count, .ints = ints});
}

static tssa_status *downgrade_int_attribute(struct export_draft *draft, const struct downgrade *row)
{
    const struct tensor *tensor;
    if (!export_draft_operand(draft, row->number))
        return NULL;
    TRY(constant_operand(draft, row->number, row->attr, &tensor));
    if (tensor_count(tensor) != 1)
        return export_refuse(draft, "takes one number");
    drop_operand(draft, row->number);
    return add_attr(
        draft, row->attr,
        (struct ir_attr){.kind = IR_ATTR_INT, .i = dtype_load_int64(tensor->dtype, tensor->data)});
}

/* DFT: the axis was never negative, and another one by default. */
static tssa_status *downgrade_axis_attribute(struct export_draft *draft,
                                             const struct downgrade *row)
{
    if (export_draft_operand(draft, row->number))
        TRY(downgrade_int_attribute(draft, row));
    int64_t axis = int_attr(draft, row->attr, -2);
    int rank = node_operand_rank(export_draft_operand(draft, 0));
    if (axis < 0 && rank < 0)
        return export_refuse(draft, "counts axes from the front, and the rank is unknown");
    return add_attr(draft, row->attr,
                    (struct ir_attr){.kind = IR_ATTR_INT, .i = axis + (axis < 0 ? rank : 0)});
}

/* row->text: what an absent operand stands for, if the attribute's default is another one. */
static tssa_status *downgrade_float_attribute(struct export_draft *draft,
                                              const struct downgrade *row)
{
    const struct tensor *tensor;
    double value;
    if (export_draft_operand(draft, row->number)) {
        TRY(constant_operand(draft, row->number, row->attr, &tensor));
        if (tensor_count(tensor) != 1)
            return export_refuse(draft, "takes one number");
        value = dtype_load_double(tensor->dtype, tensor->data);
    } else if (row->text) {
        value = strtod(row->text, NULL);
    } else {
        return NULL;
    }
    if (value == value && (double)(float)value != value)
        return export_refuse(draft, "takes a number of type FLOAT");
    drop_operand(draft, row->number);
    return add_attr(draft, row->attr, (struct ir_attr){.kind = IR_ATTR_FLOAT, .f = (float)value});
}

static tssa_status *downgrade_drop_steps(struct export_draft *draft, const struct downgrade *row)
{
    const struct tensor *tensor;
    if (!export_draft_operand(draft, row->number))
        return NULL;
    TRY(constant_operand(draft, row->number, "steps", &tensor));
    for (size_t i = 0; i < tensor_count(tensor); i++)
        if (dtype_load_int64(tensor->dtype,
                             (const char *)tensor->data + i * tssa_dtype_size(tensor->dtype)) != 1)
            return export_refuse(draft, "has no steps");
    drop_operand(draft, row->number);
    return NULL;
}

static tssa_status *downgrade_drop_false(struct export_draft *draft, const struct downgrade *row)
{
    const struct tensor *tensor = ir_value_constant(export_draft_operand(draft, row->number));
    if (!export_draft_operand(draft, row->number))
        return NULL;
    if (!tensor || tensor->dtype != TSSA_BOOL || tensor_count(tensor) != 1 ||
        dtype_load_int64(TSSA_BOOL, tensor->data) != 0)
        return export_refuse(draft, "is for inference alone");
    drop_operand(draft, row->number);
    return NULL;
}

/* Without sizes, parts were equal, and there were as many as outputs. */
static tssa_status *downgrade_split_evenly(struct export_draft *draft, const struct downgrade *row)
{
    const struct ir_attr *attr = export_draft_attr(draft, row->attr);
    if (!attr)
        return NULL;
    const struct ir_type *type = draft->op->operands[0].value->type;
    int64_t axis = ir_op_axis(draft->op), size, count = int_attr(draft, row->attr, 0);
    bool even = draft->op->version != 0 && draft->op->version < 18;
    if (!even && type->kind == TYPE_TENSOR && type->rank > 0) {
        axis += axis < 0 ? type->rank : 0;
        even = axis >= 0 && axis < type->rank && dim_is_const(type->dims[axis], &size) &&
               count > 0 && size % count == 0;
    }
    if (!even || count != (int64_t)draft->op->n_results)
        return export_refuse(draft, "makes equal parts, and these may differ");
    drop_attr(draft, row->attr);
    return NULL;
}

/* ---- Actions: attributes --------------------------------------------------------------------- */

static tssa_status *downgrade_drop_int(struct export_draft *draft, const struct downgrade *row)
{
    if (int_attr(draft, row->attr, row->number) != row->number)
        return export_unknown_attr(draft, row->attr);
    drop_attr(draft, row->attr);
    return NULL;
}

static tssa_status *downgrade_drop_ints(struct export_draft *draft, const struct downgrade *row)
{
    const struct ir_attr *attr = export_draft_attr(draft, row->attr);
    for (size_t i = 0; attr && attr->kind == IR_ATTR_INTS && i < attr->count; i++)
        if (attr->ints[i] != row->number)
            return export_unknown_attr(draft, row->attr);
    drop_attr(draft, row->attr);
    return NULL;
}

static tssa_status *downgrade_drop_string(struct export_draft *draft, const struct downgrade *row)
{
    const struct ir_attr *attr = export_draft_attr(draft, row->attr);
    if (attr && !attr_is_string(attr, row->text))
        return export_unknown_attr(draft, row->attr);
    drop_attr(draft, row->attr);
    return NULL;
}

static tssa_status *downgrade_refuse_string(struct export_draft *draft, const struct downgrade *row)
{
    if (!attr_is_string(export_draft_attr(draft, row->attr), row->text))
        return NULL;
    return ERROR(TSSA_UNSUPPORTED, "%s-%d has no %s \"%s\"", draft->name, draft->version, row->attr,
                 row->text);
}

/* row->text is "new=old". */
static tssa_status *downgrade_respell(struct export_draft *draft, const struct downgrade *row)
{
    const char *then = attr_respelled(export_draft_attr(draft, row->attr), row->text);
    return then ? set_string(draft, row->attr, then) : NULL;
}

/* The default was this one, and is another one now. */
static tssa_status *downgrade_roi_coordinates(struct export_draft *draft,
                                              const struct downgrade *row)
{
    if (!attr_is_string(export_draft_attr(draft, row->attr), row->text))
        return export_refuse(draft, "places samples differently");
    drop_attr(draft, row->attr);
    return NULL;
}

/* One scale for all: the axis says nothing. */
static tssa_status *downgrade_scalar_axis(struct export_draft *draft, const struct downgrade *row)
{
    if (node_operand_rank(export_draft_operand(draft, 1)) != 0)
        return export_refuse(draft, "has one scale for all elements");
    drop_attr(draft, row->attr);
    return NULL;
}

/* Where outputs beyond the first were asked for, training was meant; see upgrade.c. */
static tssa_status *downgrade_batch_training(struct export_draft *draft,
                                             const struct downgrade *row)
{
    bool more = ir_result_wanted(draft->op, 1) || ir_result_wanted(draft->op, 2);
    bool training = int_attr(draft, row->attr, 0) != 0;
    bool written_so = draft->op->version != 0 && draft->op->version < 14;
    if (more != training || (training && !written_so))
        return export_refuse(draft, "trains in another way");
    drop_attr(draft, row->attr);
    return NULL;
}

static bool is_empty_floats(const struct ir_op *op)
{
    const struct tensor *tensor = op->n_results ? ir_value_constant(&op->results[0]) : NULL;
    return tensor && tensor->dtype == TSSA_FLOAT && tensor->rank == 1 && tensor->dims[0] == 0;
}

/* A FLOAT tensor without elements: one that is defined before the op, or one that the exporter
 * adds. */
static const struct ir_value *empty_floats(const struct export_draft *draft)
{
    for (const struct ir_op *inside = draft->op; inside; inside = inside->parent->owner)
        for (const struct ir_op *op = inside->prev; op; op = op->prev)
            if (is_empty_floats(op))
                return &op->results[0];
    draft->export->needs_empty = true;
    return &draft->export->empty;
}

/* ---- Actions: Resize ------------------------------------------------------------------------- */

/* To Resize-10 (X, scales), or Upsample before; see upgrade_resize_operands. */
static tssa_status *downgrade_resize_factors(struct export_draft *draft,
                                             const struct downgrade *row)
{
    (void)row;
    const struct ir_value *scales = export_draft_operand(draft, 2);
    const struct tensor *factors = ir_value_constant(scales);
    const struct ir_attr *mode = export_draft_attr(draft, "mode");
    bool linear = attr_is_string(mode, "linear");
    if (!scales || export_draft_operand(draft, 1) || export_draft_operand(draft, 3) ||
        (mode && !linear && !attr_is_string(mode, "nearest")))
        return export_refuse(draft, "takes factors, to nearest or linear");
    if (!attr_is_string(export_draft_attr(draft, "coordinate_transformation_mode"), "asymmetric") ||
        (!linear && !attr_is_string(export_draft_attr(draft, "nearest_mode"),
                                    scales_shrink(factors) ? "ceil" : "floor")))
        return export_refuse(draft, "places samples differently");
    bool grows = factors ? !scales_shrink(factors) : export_model_opset(draft->export->graph) < 10;
    if (draft->version < 10 && !grows)
        return export_refuse(draft, "takes factors of 1 and more");
    drop_attr(draft, "coordinate_transformation_mode");
    drop_attr(draft, "nearest_mode");
    drop_operand(draft, 2);
    TRY(set_operand(draft, 1, scales));
    return NULL;
}

static tssa_status *downgrade_floats_attribute(struct export_draft *draft,
                                               const struct downgrade *row)
{
    const struct tensor *tensor;
    TRY(constant_operand(draft, row->number, row->attr, &tensor));
    if (tensor->dtype != TSSA_FLOAT)
        return export_refuse(draft, "takes numbers of type FLOAT");
    drop_operand(draft, row->number);
    return add_attr(draft, row->attr,
                    (struct ir_attr){.kind = IR_ATTR_FLOATS,
                                     .count = tensor_count(tensor),
                                     .floats = tensor->data});
}

/* Resize-11 has no absent operands but sizes. */
static tssa_status *downgrade_resize_empty(struct export_draft *draft, const struct downgrade *row)
{
    (void)row;
    if (draft->version < 11)
        return NULL;
    for (size_t i = 1; i < 3; i++)
        if (!export_draft_operand(draft, (int)i))
            TRY(set_operand(draft, i, empty_floats(draft)));
    return NULL;
}

/* ---- Meanings -------------------------------------------------------------------------------- */

/* Below 13, all axes from this one on were one axis: the same only if nothing but ones follow. */
static bool same_last_axis(struct export_draft *draft)
{
    const struct ir_type *type = draft->op->operands[0].value->type;
    struct ir_attr *attr = export_draft_attr(draft, "axis");
    int64_t axis;
    int fallback;
    ir_op_default_axis(draft->op->info, draft->op->version, &fallback);
    axis = attr && attr->kind == IR_ATTR_INT ? attr->i : fallback;
    if (type->kind != TYPE_TENSOR || type->rank < 1)
        return axis == -1 && draft->version >= 11;
    axis += axis < 0 ? type->rank : 0;
    for (int64_t i = axis + 1; i < type->rank; i++)
        if (i < 1 || !dim_is(type->dims[i], 1))
            return false;
    tssa_status *status = add_attr(draft, "axis", (struct ir_attr){.kind = IR_ATTR_INT, .i = axis});
    tssa_status_free(status);
    return !status;
}

static bool same_no_mask(struct export_draft *draft)
{
    return !ir_result_wanted(draft->op, 1);
}

static bool same_never(struct export_draft *draft)
{
    (void)draft;
    return false;
}

/* One mode was there in 11 alone. */
static bool same_known_coordinates(struct export_draft *draft)
{
    return !attr_is_string(export_draft_attr(draft, "coordinate_transformation_mode"),
                           "tf_half_pixel_for_nn");
}

/* Since 22, no window starts in the padding at the end, as ceil_mode could have it before. */
static bool same_rounded_down(struct export_draft *draft)
{
    return int_attr(draft, "ceil_mode", 0) == 0;
}

/* Before 8 nothing was broadcast. */
static bool same_equal_shapes(struct export_draft *draft)
{
    const struct ir_op *op = draft->op;
    for (uint32_t i = 1; i < op->n_operands && draft->version < 8; i++)
        if (op->operands[i].value->type != op->operands[0].value->type ||
            node_operand_rank(op->operands[i].value) < 0)
            return false;
    return true;
}

static const struct meaning {
    const char *op;
    int since;
    bool (*same)(struct export_draft *draft);
} meanings[] = {
#define DOWNGRADE(...)
#define MEANING(op_, since_, condition_) {#op_, since_, same_##condition_},
#include "onnx/downgrade.def"
#undef MEANING
#undef DOWNGRADE
};

static const struct downgrade downgrades[] = {
#define DOWNGRADE(op_, below_, action_, attr_, number_, text_)                                     \
    {#op_, below_, downgrade_##action_, attr_, number_, text_},
#include "onnx/downgrade.def"
#undef DOWNGRADE
};

static tssa_status *check_meaning(struct export_draft *draft)
{
    const struct ir_op *op = draft->op;
    for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++) {
        const struct meaning *row = &meanings[i];
        bool was = op->version == 0 || op->version >= row->since;
        if (strcmp(row->op, op->info->name) == 0 && was != (draft->version >= row->since) &&
            !row->same(draft))
            return ERROR(TSSA_UNSUPPORTED, "%s-%d means something else", draft->name,
                         draft->version);
    }
    return NULL;
}

tssa_status *export_downgrade(struct export_draft *draft)
{
    for (size_t i = 0; i < sizeof downgrades / sizeof *downgrades; i++)
        if (draft->version < downgrades[i].below &&
            strcmp(downgrades[i].op, draft->op->info->name) == 0)
            TRY(downgrades[i].apply(draft, &downgrades[i]));
    return check_meaning(draft);
}
