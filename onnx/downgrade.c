/* SPDX-License-Identifier: Apache-2.0 */
/* An op in the words of an opset: the actions of downgrade.def, and what its schema says of the outcome. */
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "onnx/export.h"
#include "onnx/schema.h"

/* Nothing is written for older operator sets: below 7, broadcasting was another one. */

struct downgrade {
    const char *op;
    int below;
    tssa_status *(*apply)(struct export_draft *draft, const struct downgrade *row);
    const char *attr;
    int number;
    const char *text;
};

/* ---- Attributes of a draft ------------------------------------------------------------------------ */

static struct ir_attr *find_attr(const struct export_draft *draft, const char *name)
{
    return node_attrs_find(&draft->export->node_attrs, name);
}

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

/* ---- Operands of a draft -------------------------------------------------------------------------- */

static const struct ir_value *operand(const struct export_draft *draft, int index)
{
    const struct export *export = draft->export;
    return (size_t)index < export->operands.count ? export->operands.data[index] : NULL;
}

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

static tssa_status *refuse(const struct export_draft *draft, const char *why)
{
    return ERROR(TSSA_UNSUPPORTED, "%s-%d %s", draft->name, draft->version, why);
}

/* The constant that an operand is; an error when it is none. */
static tssa_status *constant_operand(const struct export_draft *draft, int index, const char *attr,
                                     const struct tensor **tensor)
{
    *tensor = ir_value_constant(operand(draft, index));
    if (*tensor && (*tensor)->dtype != TSSA_STRING)
        return NULL;
    return ERROR(TSSA_UNSUPPORTED, "%s-%d takes %s as an attribute, and it is not constant",
                 draft->name, draft->version, attr);
}

/* ---- Actions: operands that were attributes ------------------------------------------------------- */

static tssa_status *downgrade_ints_attribute(struct export_draft *draft,
                                             const struct downgrade *row)
{
    const struct tensor *tensor;
    if (!operand(draft, row->number))
        return NULL;
    TRY(constant_operand(draft, row->number, row->attr, &tensor));
    size_t count = tensor_count(tensor);
    if (count == 0 && !row->text && strcmp(row->op, "Slice") != 0)
        return refuse(draft, "cannot be told an empty list of axes or sizes");
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
    if (!operand(draft, row->number))
        return NULL;
    TRY(constant_operand(draft, row->number, row->attr, &tensor));
    if (tensor_count(tensor) != 1)
        return refuse(draft, "takes one number");
    drop_operand(draft, row->number);
    return add_attr(
        draft, row->attr,
        (struct ir_attr){.kind = IR_ATTR_INT, .i = dtype_load_int64(tensor->dtype, tensor->data)});
}

/* DFT: the axis was never negative, and another one by default. */
static tssa_status *downgrade_axis_attribute(struct export_draft *draft,
                                             const struct downgrade *row)
{
    if (operand(draft, row->number))
        TRY(downgrade_int_attribute(draft, row));
    int64_t axis = int_attr(draft, row->attr, -2);
    int rank = node_operand_rank(operand(draft, 0));
    if (axis < 0 && rank < 0)
        return refuse(draft, "counts axes from the front, and the rank is unknown");
    return add_attr(draft, row->attr,
                    (struct ir_attr){.kind = IR_ATTR_INT, .i = axis + (axis < 0 ? rank : 0)});
}

/* row->text: what an absent operand stands for, if the attribute's default is another one. */
static tssa_status *downgrade_float_attribute(struct export_draft *draft,
                                              const struct downgrade *row)
{
    const struct tensor *tensor;
    double value;
    if (operand(draft, row->number)) {
        TRY(constant_operand(draft, row->number, row->attr, &tensor));
        if (tensor_count(tensor) != 1)
            return refuse(draft, "takes one number");
        value = dtype_load_double(tensor->dtype, tensor->data);
    } else if (row->text) {
        value = strtod(row->text, NULL);
    } else {
        return NULL;
    }
    if (value == value && (double)(float)value != value)
        return refuse(draft, "takes a number of type FLOAT");
    drop_operand(draft, row->number);
    return add_attr(draft, row->attr, (struct ir_attr){.kind = IR_ATTR_FLOAT, .f = (float)value});
}

static tssa_status *downgrade_drop_steps(struct export_draft *draft, const struct downgrade *row)
{
    const struct tensor *tensor;
    if (!operand(draft, row->number))
        return NULL;
    TRY(constant_operand(draft, row->number, "steps", &tensor));
    for (size_t i = 0; i < tensor_count(tensor); i++)
        if (dtype_load_int64(tensor->dtype,
                             (const char *)tensor->data + i * tssa_dtype_size(tensor->dtype)) != 1)
            return refuse(draft, "has no steps");
    drop_operand(draft, row->number);
    return NULL;
}

static tssa_status *downgrade_drop_false(struct export_draft *draft, const struct downgrade *row)
{
    const struct tensor *tensor = ir_value_constant(operand(draft, row->number));
    if (!operand(draft, row->number))
        return NULL;
    if (!tensor || tensor->dtype != TSSA_BOOL || tensor_count(tensor) != 1 ||
        dtype_load_int64(TSSA_BOOL, tensor->data) != 0)
        return refuse(draft, "is for inference alone");
    drop_operand(draft, row->number);
    return NULL;
}

/* Without sizes, parts were equal, and there were as many as outputs. */
static tssa_status *downgrade_split_evenly(struct export_draft *draft, const struct downgrade *row)
{
    const struct ir_attr *attr = find_attr(draft, row->attr);
    if (!attr)
        return NULL;
    const struct ir_type *type = draft->op->operands[0].value->type;
    int64_t axis = int_attr(draft, "axis", 0), size, count = int_attr(draft, row->attr, 0);
    bool even = draft->op->version != 0 && draft->op->version < 18;
    if (!even && type->kind == TYPE_TENSOR && type->rank > 0) {
        axis += axis < 0 ? type->rank : 0;
        even = axis >= 0 && axis < type->rank && dim_is_const(type->dims[axis], &size) &&
               count > 0 && size % count == 0;
    }
    if (!even || count != (int64_t)draft->op->n_results)
        return refuse(draft, "makes equal parts, and these may differ");
    drop_attr(draft, row->attr);
    return NULL;
}

/* ---- Actions: attributes -------------------------------------------------------------------------- */

static tssa_status *unknown_attr(const struct export_draft *draft, const char *attr)
{
    return ERROR(TSSA_UNSUPPORTED, "%s-%d has no \"%s\"", draft->name, draft->version, attr);
}

static tssa_status *downgrade_drop_int(struct export_draft *draft, const struct downgrade *row)
{
    if (int_attr(draft, row->attr, row->number) != row->number)
        return unknown_attr(draft, row->attr);
    drop_attr(draft, row->attr);
    return NULL;
}

static tssa_status *downgrade_drop_ints(struct export_draft *draft, const struct downgrade *row)
{
    const struct ir_attr *attr = find_attr(draft, row->attr);
    for (size_t i = 0; attr && attr->kind == IR_ATTR_INTS && i < attr->count; i++)
        if (attr->ints[i] != row->number)
            return unknown_attr(draft, row->attr);
    drop_attr(draft, row->attr);
    return NULL;
}

static tssa_status *downgrade_drop_string(struct export_draft *draft, const struct downgrade *row)
{
    const struct ir_attr *attr = find_attr(draft, row->attr);
    if (attr && !attr_is_string(attr, row->text))
        return unknown_attr(draft, row->attr);
    drop_attr(draft, row->attr);
    return NULL;
}

static tssa_status *downgrade_refuse_string(struct export_draft *draft, const struct downgrade *row)
{
    if (!attr_is_string(find_attr(draft, row->attr), row->text))
        return NULL;
    return ERROR(TSSA_UNSUPPORTED, "%s-%d has no %s \"%s\"", draft->name, draft->version, row->attr,
                 row->text);
}

/* row->text is "new=old". */
static tssa_status *downgrade_respell(struct export_draft *draft, const struct downgrade *row)
{
    const char *then = attr_respelled(find_attr(draft, row->attr), row->text);
    return then ? set_string(draft, row->attr, then) : NULL;
}

/* The default was this one, and is another one now. */
static tssa_status *downgrade_roi_coordinates(struct export_draft *draft,
                                              const struct downgrade *row)
{
    if (!attr_is_string(find_attr(draft, row->attr), row->text))
        return refuse(draft, "places samples differently");
    drop_attr(draft, row->attr);
    return NULL;
}

/* One scale for all: the axis says nothing. */
static tssa_status *downgrade_scalar_axis(struct export_draft *draft, const struct downgrade *row)
{
    if (node_operand_rank(operand(draft, 1)) != 0)
        return refuse(draft, "has one scale for all elements");
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
        return refuse(draft, "trains in another way");
    drop_attr(draft, row->attr);
    return NULL;
}

static bool is_empty_floats(const struct ir_op *op)
{
    const struct tensor *tensor = op->n_results ? ir_value_constant(&op->results[0]) : NULL;
    return tensor && tensor->dtype == TSSA_FLOAT && tensor->rank == 1 && tensor->dims[0] == 0;
}

/* A FLOAT tensor without elements: one that is defined before the op, or one that the exporter adds. */
static const struct ir_value *empty_floats(const struct export_draft *draft)
{
    for (const struct ir_op *inside = draft->op; inside; inside = inside->parent->owner)
        for (const struct ir_op *op = inside->prev; op; op = op->prev)
            if (is_empty_floats(op))
                return &op->results[0];
    draft->export->needs_empty = true;
    return &draft->export->empty;
}

/* ---- Actions: Resize ------------------------------------------------------------------------------ */

/* To Resize-10 (X, scales), or Upsample before; see upgrade_resize_operands. */
static tssa_status *downgrade_resize_factors(struct export_draft *draft,
                                             const struct downgrade *row)
{
    (void)row;
    const struct ir_value *scales = operand(draft, 2);
    const struct tensor *factors = ir_value_constant(scales);
    const struct ir_attr *mode = find_attr(draft, "mode");
    bool linear = attr_is_string(mode, "linear");
    if (!scales || operand(draft, 1) || operand(draft, 3) ||
        (mode && !linear && !attr_is_string(mode, "nearest")))
        return refuse(draft, "takes factors, to nearest or linear");
    if (!attr_is_string(find_attr(draft, "coordinate_transformation_mode"), "asymmetric") ||
        (!linear && !attr_is_string(find_attr(draft, "nearest_mode"),
                                    scales_shrink(factors) ? "ceil" : "floor")))
        return refuse(draft, "places samples differently");
    bool grows = factors ? !scales_shrink(factors) : export_model_opset(draft->export->graph) < 10;
    if (draft->version < 10 && !grows)
        return refuse(draft, "takes factors of 1 and more");
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
        return refuse(draft, "takes numbers of type FLOAT");
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
        if (!operand(draft, (int)i))
            TRY(set_operand(draft, i, empty_floats(draft)));
    return NULL;
}

/* ---- Meanings ------------------------------------------------------------------------------------- */

/* Below 13, all axes from this one on were one axis: the same only if nothing but ones follow. */
static bool same_last_axis(struct export_draft *draft)
{
    const struct ir_type *type = draft->op->operands[0].value->type;
    struct ir_attr *attr = find_attr(draft, "axis");
    bool newer = draft->op->version == 0 || draft->op->version >= 13;
    int64_t axis = attr && attr->kind == IR_ATTR_INT ? attr->i : newer ? -1 : 1, size;
    if (type->kind != TYPE_TENSOR || type->rank < 1)
        return axis == -1 && draft->version >= 11;
    axis += axis < 0 ? type->rank : 0;
    for (int64_t i = axis + 1; i < type->rank; i++)
        if (i < 1 || !dim_is_const(type->dims[i], &size) || size != 1)
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
    return !attr_is_string(find_attr(draft, "coordinate_transformation_mode"),
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

/* Operators that had another name: the inverse of upgrade_replaced. NULL: not at this opset. */
static const char *replaced_name(const struct ir_op_info *info, int64_t opset, int *version)
{
    if (info->id == IR_OP_Resize && opset < 10) {
        *version = opset >= 9 ? 9 : 7;
        return "Upsample";
    }
    if (info->id == IR_OP_ScatterElements && opset >= 9 && opset < 11) {
        *version = 9;
        return "Scatter";
    }
    return NULL;
}

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

/* ---- Against the schema --------------------------------------------------------------------------- */

/* 0: unknown. */
static uint32_t type_bits(const struct ir_type *type)
{
    switch (type->kind) {
    case TYPE_TENSOR:
        return type->dtype == TSSA_UNDEFINED ? 0 : DTYPE_BIT(type->dtype);
    case TYPE_SEQUENCE:
        return SCHEMA_SEQUENCE;
    case TYPE_OPTIONAL:
        return SCHEMA_OPTIONAL;
    default:
        return 0;
    }
}

tssa_status *export_check_type(const struct export_draft *draft, const char *what, size_t index,
                               const struct ir_value *value, uint32_t legal)
{
    uint32_t bits = type_bits(value->type);
    if (!bits || !legal || (bits & legal))
        return NULL;
    return ERROR(TSSA_UNSUPPORTED, "%s-%d has no %s %zu of type %s", draft->name, draft->version,
                 what, index,
                 value->type->kind == TYPE_TENSOR ? tssa_dtype_name(value->type->dtype)
                                                  : "sequence or optional");
}

static tssa_status *check_operands(const struct export_draft *draft, const struct schema *schema)
{
    size_t count = draft->export->operands.count;
    if (schema->max_inputs != SCHEMA_VARIADIC && count > schema->max_inputs)
        return ERROR(TSSA_UNSUPPORTED, "%s-%d has %d inputs at most", draft->name, draft->version,
                     schema->max_inputs);
    /* Loop's trip count and condition may be absent, though values must follow. */
    for (size_t i = 0; i < count || i < schema->min_inputs; i++) {
        size_t row = i < schema->n_input_types ? i : schema->n_input_types - 1u;
        uint32_t types = schema->input_types[row];
        const struct ir_value *value = operand(draft, (int)i);
        if (!value && i < schema->min_inputs && (i >= count || !(types & SCHEMA_ABSENT)))
            return ERROR(TSSA_UNSUPPORTED, "%s-%d has no optional input %zu", draft->name,
                         draft->version, i);
        if (value)
            TRY(export_check_type(draft, "input", i, value, types & ~SCHEMA_ABSENT));
    }
    return NULL;
}

static tssa_status *check_results(const struct export_draft *draft, const struct schema *schema)
{
    const struct ir_op *op = draft->op;
    for (uint32_t i = 0; i < op->n_results; i++) {
        uint32_t row = i < schema->n_output_types ? i : schema->n_output_types - 1u;
        if (!op->results[i].wanted)
            continue;
        if (schema->max_outputs != SCHEMA_VARIADIC && i >= schema->max_outputs)
            return ERROR(TSSA_UNSUPPORTED, "%s-%d has %d outputs at most", draft->name,
                         draft->version, schema->max_outputs);
        TRY(export_check_type(draft, "output", i, &op->results[i], schema->output_types[row]));
    }
    return NULL;
}

/* A node that is written in the version that it was read in is not judged. */
static bool is_unchanged(const struct export_draft *draft)
{
    return draft->op->origin == IR_ORIGIN_NODE && draft->op->version == draft->version;
}

static tssa_status *check_schema(struct export_draft *draft)
{
    const struct export *export = draft->export;
    const struct schema *schema = schema_find(draft->name, draft->version);
    draft->min_outputs = schema ? schema->min_outputs : 0;
    if (!schema || is_unchanged(draft))
        return NULL;
    for (size_t i = 0; i < export->node_attrs.count; i++)
        if (!schema_has_attribute(schema, export->node_attrs.data[i].name))
            return unknown_attr(draft, export->node_attrs.data[i].name);
    TRY(check_operands(draft, schema));
    return check_results(draft, schema);
}

/* ---- Axes ----------------------------------------------------------------------------------------- */

/* The rank that an op's axes are counted in; -1: unknown. */
static int axes_rank(const struct export_draft *draft, size_t n_axes)
{
    int rank = node_operand_rank(operand(draft, 0));
    if (rank >= 0 && draft->op->info->id == IR_OP_Unsqueeze)
        rank += (int)n_axes;
    if (rank >= 0 && draft->op->info->id == IR_OP_OneHot)
        rank++;
    return rank;
}

static tssa_status *count_from_front(const struct export_draft *draft, int64_t *axes, size_t count)
{
    int rank = axes_rank(draft, count);
    for (size_t i = 0; i < count; i++) {
        if (axes[i] < 0 && rank < 0)
            return refuse(draft, "counts axes from the front, and the rank is unknown");
        axes[i] += axes[i] < 0 ? rank : 0;
    }
    return NULL;
}

/* Before opset 11 axes were not negative. */
static tssa_status *positive_axes(const struct export_draft *draft)
{
    struct ir_attr *axis = find_attr(draft, "axis"), *axes = find_attr(draft, "axes");
    if (is_unchanged(draft))
        return NULL;
    if (axis && axis->kind == IR_ATTR_INT)
        TRY(count_from_front(draft, &axis->i, 1));
    if (!axes || axes->kind != IR_ATTR_INTS)
        return NULL;
    int64_t *copy =
        arena_copy(&draft->export->scratch, axes->ints, axes->count * sizeof *axes->ints);
    TRY_ALLOC(copy);
    axes->ints = copy;
    return count_from_front(draft, copy, axes->count);
}

/* ---- Drafts --------------------------------------------------------------------------------------- */

static tssa_status *fill_draft(struct export_draft *draft)
{
    struct export *export = draft->export;
    const struct ir_op *op = draft->op;
    export->operands.count = export->node_attrs.count = 0;
    if (!vec_reserve(&export->operands, op->n_operands) ||
        !vec_reserve(&export->node_attrs, op->n_attrs))
        return status_out_of_memory();
    for (uint32_t i = 0; i < op->n_operands; i++)
        export->operands.data[export->operands.count++] = op->operands[i].value;
    for (uint32_t i = 0; i < op->n_attrs; i++)
        export->node_attrs.data[export->node_attrs.count++] = op->attrs[i];
    return NULL;
}

static tssa_status *draft_opaque(struct export_draft *draft, int64_t opset)
{
    const struct ir_opaque *opaque = draft->op->opaque;
    draft->domain = opaque->domain;
    draft->name = opaque->name;
    draft->overload = opaque->overload;
    int version = schema_bind(opaque->name, opset);
    bool same =
        opaque->opset == opset || (version && version == schema_bind(opaque->name, opaque->opset) &&
                                   opaque->opset <= IR_NEWEST_OPSET);
    if (!opaque->domain[0] && !same && !opaque->function)
        return ERROR(TSSA_UNSUPPORTED, "what %s means is known at opset %lld alone", opaque->name,
                     (long long)opaque->opset);
    return NULL;
}

tssa_status *export_draft(struct export *export, const struct ir_op *op, int64_t opset,
                          struct export_draft *draft)
{
    const struct ir_op_info *info = op->info;
    *draft = (struct export_draft){
        .export = export, .op = op, .domain = info->domain, .name = info->name};
    TRY(fill_draft(draft));
    if (op->opaque)
        return draft_opaque(draft, opset);
    if (strcmp(info->domain, "tssa") == 0)
        return ERROR(TSSA_UNSUPPORTED, "%s is tssa's own and has no form in ONNX", info->name);
    if (info->domain[0]) {
        draft->version = op->version;
        return NULL;
    }
    const char *replaced = replaced_name(info, opset, &draft->version);
    if (replaced)
        draft->name = replaced;
    else
        draft->version = ir_op_bind(info, opset);
    if (draft->version == 0)
        return ERROR(TSSA_UNSUPPORTED, "%s came with opset %d", info->name, info->versions[0]);
    for (size_t i = 0; i < sizeof downgrades / sizeof *downgrades; i++)
        if (draft->version < downgrades[i].below && strcmp(downgrades[i].op, info->name) == 0)
            TRY(downgrades[i].apply(draft, &downgrades[i]));
    TRY(check_meaning(draft));
    if (opset < 11)
        TRY(positive_axes(draft));
    return check_schema(draft);
}
