/* SPDX-License-Identifier: Apache-2.0 */
/* The actions of upgrade.def. */
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "onnx/import.h"

struct upgrade {
    const char *op;
    int below;
    tssa_status *(*apply)(struct draft *draft, const struct upgrade *row);
    const char *attr;
    int number;
    const char *text;
};

static struct ir_graph *graph_of(const struct draft *draft)
{
    return draft->scope->import->graph;
}

/* ---- Attributes of a draft ------------------------------------------------------------------- */

static struct ir_attr *find_attr(const struct draft *draft, const char *name)
{
    return node_attrs_find(&draft->scope->import->node_attrs, name);
}

static void drop_attr(const struct draft *draft, const char *name)
{
    node_attrs_drop(&draft->scope->import->node_attrs, name);
}

static int64_t int_attr(const struct draft *draft, const char *name, int64_t fallback)
{
    return node_attrs_int(&draft->scope->import->node_attrs, name, fallback);
}

/* Takes the attribute out of the draft; NULL kind mismatch is an error. */
static tssa_status *take_attr(struct draft *draft, const char *name, enum ir_attr_kind kind,
                              struct ir_attr *taken, bool *found)
{
    const struct ir_attr *attr = find_attr(draft, name);
    *found = attr != NULL;
    if (!attr)
        return NULL;
    if (attr->kind != kind)
        return ERROR(TSSA_MALFORMED, "attribute \"%s\" has the wrong type", name);
    *taken = *attr;
    drop_attr(draft, name);
    return NULL;
}

/* Adds an attribute that the draft does not have. */
static tssa_status *add_attr(struct draft *draft, const char *name, struct ir_attr attr)
{
    attr.name = intern_str(&graph_of(draft)->strings, name);
    if (!attr.name || !vec_push(&draft->scope->import->node_attrs, attr))
        return status_out_of_memory();
    return NULL;
}

static tssa_status *set_string(struct draft *draft, const char *name, const char *text)
{
    struct ir_attr attr = {.kind = IR_ATTR_STRING};
    attr.s.data = intern_str(&graph_of(draft)->strings, text);
    TRY_ALLOC(attr.s.data);
    attr.s.size = strlen(text);
    drop_attr(draft, name);
    return add_attr(draft, name, attr);
}

/* ---- Operands of a draft --------------------------------------------------------------------- */

static struct ir_value *operand(const struct draft *draft, size_t index)
{
    const struct import *import = draft->scope->import;
    return index < import->operands.count ? import->operands.data[index] : NULL;
}

static tssa_status *set_operand(struct draft *draft, size_t index, struct ir_value *value)
{
    struct import *import = draft->scope->import;
    while (import->operands.count <= index)
        if (!vec_push(&import->operands, NULL))
            return status_out_of_memory();
    import->operands.data[index] = value;
    return NULL;
}

static tssa_dtype dtype_of(const struct ir_value *value)
{
    return value && value->type->kind == TYPE_TENSOR ? value->type->dtype : TSSA_UNDEFINED;
}

static tssa_status *append_value(struct draft *draft, struct ir_op *op, struct ir_value **value)
{
    TRY_ALLOC(op);
    TRY(scope_append(draft->scope, op));
    *value = &op->results[0];
    return NULL;
}

/* rank 0 (one value) or 1. */
static tssa_status *make_ints(struct draft *draft, int rank, size_t count, const int64_t *values,
                              struct ir_value **value)
{
    return append_value(draft, ir_constant_ints(graph_of(draft), rank, count, values), value);
}

/* A 1-D (rank 1) or scalar tensor over `data`, which lives as long as the graph. */
static tssa_status *make_tensor(struct draft *draft, tssa_dtype dtype, int rank, size_t count,
                                const void *data, struct tensor **made)
{
    struct tensor *tensor = ARENA_NEW(&graph_of(draft)->arena, struct tensor);
    TRY_ALLOC(tensor);
    tensor->dtype = dtype;
    tensor->rank = rank;
    tensor->dims[0] = rank ? (int64_t)count : 0;
    tensor->data = (void *)data;
    *made = tensor;
    return NULL;
}

static tssa_status *make_float(struct draft *draft, tssa_dtype dtype, double number,
                               struct ir_value **value)
{
    struct tensor *tensor;
    void *data = arena_alloc(&graph_of(draft)->arena, tssa_dtype_size(dtype));
    TRY_ALLOC(data);
    dtype_store_double(dtype, data, number);
    TRY(make_tensor(draft, dtype, 0, 1, data, &tensor));
    return append_value(draft, ir_constant_create(graph_of(draft), tensor), value);
}

/* A node between a draft and one of its operands. */
static tssa_status *make_binary(struct draft *draft, const char *name, struct ir_value *a,
                                struct ir_value *b, struct ir_value **value)
{
    const struct ir_op_info *info = ir_op_lookup("", name);
    if (!info)
        return ERROR(TSSA_UNSUPPORTED, "bringing it to the newest opset takes %s", name);
    struct ir_op *op = ir_op_create(graph_of(draft), info, 2, 1);
    TRY_ALLOC(op);
    op->version = ir_op_bind(info, IR_NEWEST_OPSET);
    ir_op_set_operand(op, 0, a);
    ir_op_set_operand(op, 1, b);
    return append_value(draft, op, value);
}

/*
 * A scalar of the element type that operand 0 has; where that is not known, it is cast at run time.
 */
static tssa_status *make_float_like(struct draft *draft, double number, struct ir_value **value)
{
    tssa_dtype dtype = dtype_of(operand(draft, 0));
    if (dtype != TSSA_UNDEFINED && dtype != TSSA_STRING)
        return make_float(draft, dtype, number, value);
    struct ir_value *plain;
    TRY(make_float(draft, TSSA_FLOAT, number, &plain));
    return make_binary(draft, "CastLike", plain, operand(draft, 0), value);
}

/* ---- Actions: attributes that became operands ------------------------------------------------ */

/* An operand that is there already goes before the attribute. */
static tssa_status *put_operand(struct draft *draft, size_t index, struct ir_value *value)
{
    return operand(draft, index) ? NULL : set_operand(draft, index, value);
}

static tssa_status *upgrade_ints_operand(struct draft *draft, const struct upgrade *row)
{
    struct ir_attr attr;
    struct ir_value *value;
    bool found;
    TRY(take_attr(draft, row->attr, IR_ATTR_INTS, &attr, &found));
    if (!found || (attr.count == 0 && row->text))
        return NULL;
    TRY(make_ints(draft, 1, attr.count, attr.ints, &value));
    return put_operand(draft, (size_t)row->number, value);
}

static tssa_status *int_operand(struct draft *draft, const struct upgrade *row, int rank)
{
    struct ir_attr attr;
    struct ir_value *value;
    bool found;
    TRY(take_attr(draft, row->attr, IR_ATTR_INT, &attr, &found));
    if (!found)
        return NULL;
    TRY(make_ints(draft, rank, 1, &attr.i, &value));
    return put_operand(draft, (size_t)row->number, value);
}

static tssa_status *upgrade_int_operand(struct draft *draft, const struct upgrade *row)
{
    return int_operand(draft, row, 0);
}

static tssa_status *upgrade_int_list_operand(struct draft *draft, const struct upgrade *row)
{
    return int_operand(draft, row, 1);
}

/* Clip-6 has the limits of FLOAT where the attributes are absent. */
static bool default_limit(const struct draft *draft, const struct upgrade *row, float *limit)
{
    if (strcmp(row->op, "Clip") != 0 || draft->version < 6)
        return false;
    *limit = strcmp(row->attr, "min") == 0 ? -0x1.fffffep+127f : 0x1.fffffep+127f;
    return true;
}

static tssa_status *upgrade_float_operand(struct draft *draft, const struct upgrade *row)
{
    struct ir_attr attr = {.f = 0};
    struct ir_value *value;
    bool found;
    TRY(take_attr(draft, row->attr, IR_ATTR_FLOAT, &attr, &found));
    if (!found)
        found = default_limit(draft, row, &attr.f);
    if (!found || (attr.f == 0 && row->text)) /* 0 is the default of an optional operand */
        return NULL;
    TRY(make_float_like(draft, (double)attr.f, &value));
    return put_operand(draft, (size_t)row->number, value);
}

static tssa_status *upgrade_plain_float_operand(struct draft *draft, const struct upgrade *row)
{
    struct ir_attr attr;
    struct ir_value *value;
    bool found;
    TRY(take_attr(draft, row->attr, IR_ATTR_FLOAT, &attr, &found));
    if (!found)
        return NULL;
    TRY(make_float(draft, TSSA_FLOAT, (double)attr.f, &value));
    return put_operand(draft, (size_t)row->number, value);
}

static tssa_status *upgrade_floats_operand(struct draft *draft, const struct upgrade *row)
{
    struct ir_attr attr;
    struct ir_value *value;
    struct tensor *tensor;
    bool found;
    TRY(take_attr(draft, row->attr, IR_ATTR_FLOATS, &attr, &found));
    if (!found)
        return NULL;
    TRY(make_tensor(draft, TSSA_FLOAT, 1, attr.count, attr.floats, &tensor));
    TRY(append_value(draft, ir_constant_create(graph_of(draft), tensor), &value));
    return put_operand(draft, (size_t)row->number, value);
}

/* Before 18, a Split without sizes made as many equal parts as it has outputs. */
static tssa_status *upgrade_split_evenly(struct draft *draft, const struct upgrade *row)
{
    if (operand(draft, 1) || find_attr(draft, row->attr))
        return NULL;
    return add_attr(draft, row->attr,
                    (struct ir_attr){.kind = IR_ATTR_INT, .i = (int64_t)draft->n_results});
}

/* Tile-1: input, tiles, axis, each of the latter one number. */
static tssa_status *upgrade_tile_repeats(struct draft *draft, const struct upgrade *row)
{
    (void)row;
    const struct tensor *tiles = ir_value_constant(operand(draft, 1));
    const struct tensor *axis = ir_value_constant(operand(draft, 2));
    int rank = node_operand_rank(operand(draft, 0));
    if (!tiles || !axis || rank < 0 || tensor_count(tiles) != 1 || tensor_count(axis) != 1 ||
        tiles->dtype == TSSA_STRING || axis->dtype == TSSA_STRING)
        return ERROR(TSSA_UNSUPPORTED, "Tile of opset 1 needs a known rank and constant numbers");
    int64_t at = dtype_load_int64(axis->dtype, axis->data), repeats[TSSA_MAX_RANK];
    if (at < 0 || at >= rank)
        return ERROR(TSSA_MALFORMED, "axis %lld is out of range for rank %d", (long long)at, rank);
    for (int i = 0; i < rank; i++)
        repeats[i] = i == at ? dtype_load_int64(tiles->dtype, tiles->data) : 1;
    struct ir_value *value;
    TRY(make_ints(draft, 1, (size_t)rank, repeats, &value));
    draft->scope->import->operands.count = 1;
    return set_operand(draft, 1, value);
}

/* ---- Actions: attributes --------------------------------------------------------------------- */

static tssa_status *upgrade_drop(struct draft *draft, const struct upgrade *row)
{
    drop_attr(draft, row->attr);
    return NULL;
}

static tssa_status *upgrade_rename(struct draft *draft, const struct upgrade *row)
{
    struct ir_attr *attr = find_attr(draft, row->attr);
    if (!attr || find_attr(draft, row->text))
        return NULL;
    attr->name = intern_str(&graph_of(draft)->strings, row->text);
    TRY_ALLOC(attr->name);
    return NULL;
}

static tssa_status *upgrade_default_int(struct draft *draft, const struct upgrade *row)
{
    if (find_attr(draft, row->attr))
        return NULL;
    return add_attr(draft, row->attr, (struct ir_attr){.kind = IR_ATTR_INT, .i = row->number});
}

static tssa_status *upgrade_default_float(struct draft *draft, const struct upgrade *row)
{
    if (find_attr(draft, row->attr))
        return NULL;
    return add_attr(draft, row->attr,
                    (struct ir_attr){.kind = IR_ATTR_FLOAT, .f = strtof(row->text, NULL)});
}

static tssa_status *upgrade_default_string(struct draft *draft, const struct upgrade *row)
{
    return find_attr(draft, row->attr) ? NULL : set_string(draft, row->attr, row->text);
}

/* "FLOAT" -> 1. */
static tssa_status *upgrade_dtype_number(struct draft *draft, const struct upgrade *row)
{
    struct ir_attr *attr = find_attr(draft, row->attr);
    if (!attr || attr->kind != IR_ATTR_STRING)
        return NULL;
    tssa_dtype dtype = dtype_from_name(attr->s.data);
    if (dtype == TSSA_UNDEFINED)
        return ERROR(TSSA_MALFORMED, "\"%s\" is no element type", attr->s.data);
    attr->kind = IR_ATTR_INT;
    attr->i = dtype;
    return NULL;
}

static tssa_status *upgrade_float_to_int(struct draft *draft, const struct upgrade *row)
{
    struct ir_attr *attr = find_attr(draft, row->attr);
    if (!attr || attr->kind != IR_ATTR_FLOAT)
        return NULL;
    if (!(attr->f >= 0 && attr->f <= 1e6f))
        return ERROR(TSSA_MALFORMED, "attribute \"%s\" is out of range", row->attr);
    attr->kind = IR_ATTR_INT;
    attr->i = (int64_t)attr->f;
    return NULL;
}

/* row->text is "old=new". */
static tssa_status *upgrade_respell(struct draft *draft, const struct upgrade *row)
{
    const char *now = attr_respelled(find_attr(draft, row->attr), row->text);
    return now ? set_string(draft, row->attr, now) : NULL;
}

/* Before 14, statistics of the batch were meant where outputs beyond the first were asked for. Of
 * the five outputs there were, the last two are gone. */
static tssa_status *upgrade_batch_training(struct draft *draft, const struct upgrade *row)
{
    const Onnx__NodeProto *node = draft->node;
    size_t wanted = 0;
    for (size_t i = 0; i < node->n_output; i++)
        if (node->output[i][0])
            wanted = i + 1;
    if (wanted > 3)
        return ERROR(TSSA_UNSUPPORTED, "outputs saved_mean and saved_var are for training");
    draft->n_results = node->n_output > 3 ? 3 : node->n_output;
    if (int_attr(draft, "spatial", 1) == 1)
        drop_attr(draft, "spatial");
    if (find_attr(draft, row->attr) || wanted < 2)
        return NULL;
    return add_attr(draft, row->attr, (struct ir_attr){.kind = IR_ATTR_INT, .i = 1});
}

/* ---- Actions: broadcasting before opset 7 ---------------------------------------------------- */

/* operand(index), of rank `from`, with `count` axes of size 1 at its end. */
static tssa_status *append_axes(struct draft *draft, size_t index, int from, int count)
{
    int64_t axes[TSSA_MAX_RANK];
    struct ir_value *list, *value;
    for (int i = 0; i < count; i++)
        axes[i] = from + i;
    TRY(make_ints(draft, 1, (size_t)count, axes, &list));
    TRY(make_binary(draft, "Unsqueeze", operand(draft, index), list, &value));
    return set_operand(draft, index, value);
}

/* With broadcast=1, B's dims stand below those of A from `axis` on; without axis, below the last
 * ones, as in numpy. */
static tssa_status *upgrade_align_operand(struct draft *draft, const struct upgrade *row)
{
    bool aligned = int_attr(draft, "broadcast", 0) && find_attr(draft, row->attr);
    int64_t axis = int_attr(draft, row->attr, 0);
    drop_attr(draft, "broadcast");
    drop_attr(draft, row->attr);
    if (!aligned)
        return NULL;
    int a = node_operand_rank(operand(draft, 0)), b = node_operand_rank(operand(draft, 1));
    if (a < 0 || b < 0)
        return ERROR(TSSA_UNSUPPORTED,
                     "broadcasting along an axis needs inputs of known rank (opset below 7)");
    axis += axis < 0 ? a : 0;
    if (axis < 0 || axis > a || b > a - axis)
        return ERROR(TSSA_MALFORMED,
                     "a tensor of rank %d cannot be broadcast at axis %lld of rank %d", b,
                     (long long)axis, a);
    int missing = a - (int)axis - b;
    return missing ? append_axes(draft, 1, b, missing) : NULL;
}

/* A slope of one dim belonged to the channels, axis 1. */
static tssa_status *upgrade_channel_slope(struct draft *draft, const struct upgrade *row)
{
    (void)row;
    struct ir_value *slope = operand(draft, 1);
    if (node_operand_rank(slope) != 1 || dim_is(slope->type->dims[0], 1))
        return NULL;
    int rank = node_operand_rank(operand(draft, 0));
    if (rank < 0)
        return ERROR(TSSA_UNSUPPORTED,
                     "a slope per channel needs an input of known rank (opset below 7)");
    return rank > 2 ? append_axes(draft, 1, 1, rank - 2) : NULL;
}

/* ---- Actions: Resize ------------------------------------------------------------------------- */

/* Upsample-1 had the factors of the last two of four dims. */
static tssa_status *upgrade_upsample_scales(struct draft *draft, const struct upgrade *row)
{
    (void)row;
    struct ir_attr height = {.f = 0}, width = {.f = 0};
    bool has_height, has_width;
    TRY(take_attr(draft, "height_scale", IR_ATTR_FLOAT, &height, &has_height));
    TRY(take_attr(draft, "width_scale", IR_ATTR_FLOAT, &width, &has_width));
    if (!has_height || !has_width)
        return ERROR(TSSA_MALFORMED, "it needs height_scale and width_scale");
    float *scales = ARENA_ARRAY(&graph_of(draft)->arena, float, 4);
    TRY_ALLOC(scales);
    scales[0] = scales[1] = 1;
    scales[2] = height.f;
    scales[3] = width.f;
    return add_attr(draft, "scales",
                    (struct ir_attr){.kind = IR_ATTR_FLOATS, .count = 4, .floats = scales});
}

/* Resize-10 and Upsample: X, scales. Their rounding was not specified; this is ONNX Runtime's. */
static tssa_status *upgrade_resize_operands(struct draft *draft, const struct upgrade *row)
{
    (void)row;
    struct ir_value *scales = operand(draft, 1);
    TRY(set_operand(draft, 2, scales));
    TRY(set_operand(draft, 1, NULL));
    TRY(set_string(draft, "coordinate_transformation_mode", "asymmetric"));
    TRY(set_string(draft, "nearest_mode",
                   scales_shrink(ir_value_constant(scales)) ? "ceil" : "floor"));
    if (attr_is_string(find_attr(draft, "mode"), "bilinear"))
        TRY(set_string(draft, "mode", "linear"));
    draft->version = ir_op_bind(draft->info, IR_NEWEST_OPSET);
    return NULL;
}

/* Exporters write "absent" as an empty tensor, which Resize-11 asked for. */
static tssa_status *upgrade_drop_empty_operand(struct draft *draft, const struct upgrade *row)
{
    const struct tensor *tensor = ir_value_constant(operand(draft, (size_t)row->number));
    return tensor && tensor_count(tensor) == 0 ? set_operand(draft, (size_t)row->number, NULL)
                                               : NULL;
}

/* ---- Actions: Constant ----------------------------------------------------------------------- */

static tssa_status *constant_tensor(struct draft *draft, const struct ir_attr *attr,
                                    struct tensor **tensor)
{
    struct arena *arena = &graph_of(draft)->arena;
    const void *data;
    switch (attr->kind) {
    case IR_ATTR_FLOAT:
        data = arena_copy(arena, &attr->f, sizeof attr->f);
        TRY_ALLOC(data);
        return make_tensor(draft, TSSA_FLOAT, 0, 1, data, tensor);
    case IR_ATTR_INT:
        data = arena_copy(arena, &attr->i, sizeof attr->i);
        TRY_ALLOC(data);
        return make_tensor(draft, TSSA_INT64, 0, 1, data, tensor);
    case IR_ATTR_STRING:
        data = arena_copy(arena, &attr->s, sizeof attr->s);
        TRY_ALLOC(data);
        return make_tensor(draft, TSSA_STRING, 0, 1, data, tensor);
    case IR_ATTR_FLOATS:
        return make_tensor(draft, TSSA_FLOAT, 1, attr->count, attr->floats, tensor);
    case IR_ATTR_INTS:
        return make_tensor(draft, TSSA_INT64, 1, attr->count, attr->ints, tensor);
    case IR_ATTR_STRINGS:
        return make_tensor(draft, TSSA_STRING, 1, attr->count, attr->strings, tensor);
    default:
        return ERROR(TSSA_MALFORMED, "attribute \"%s\" has the wrong type", attr->name);
    }
}

/* The kinds that the forms of a Constant have. */
static const struct constant_form {
    const char *name;
    enum ir_attr_kind kind;
} constant_forms[] = {
    {"value", IR_ATTR_TENSOR},        {"sparse_value", IR_ATTR_TENSOR},
    {"value_float", IR_ATTR_FLOAT},   {"value_floats", IR_ATTR_FLOATS},
    {"value_int", IR_ATTR_INT},       {"value_ints", IR_ATTR_INTS},
    {"value_string", IR_ATTR_STRING}, {"value_strings", IR_ATTR_STRINGS},
};

static tssa_status *upgrade_constant_value(struct draft *draft, const struct upgrade *row)
{
    (void)row;
    struct import *import = draft->scope->import;
    struct ir_attr *attr = import->node_attrs.data;
    if (import->node_attrs.count != 1)
        return ERROR(TSSA_MALFORMED, "it has %zu attributes and needs one value",
                     import->node_attrs.count);
    const struct constant_form *form = NULL;
    for (size_t i = 0; i < sizeof constant_forms / sizeof *constant_forms; i++)
        if (strcmp(attr->name, constant_forms[i].name) == 0)
            form = &constant_forms[i];
    if (!form || form->kind != attr->kind)
        return ERROR(TSSA_MALFORMED, "attribute \"%s\" is no value", attr->name);
    if (attr->kind != IR_ATTR_TENSOR) {
        struct tensor *tensor;
        TRY(constant_tensor(draft, attr, &tensor));
        attr->kind = IR_ATTR_TENSOR;
        attr->count = 0;
        attr->tensor = tensor;
    }
    attr->name = intern_str(&import->graph->strings, "value");
    TRY_ALLOC(attr->name);
    return NULL;
}

/* ---- The table ------------------------------------------------------------------------------- */

static const struct upgrade upgrades[] = {
#define UPGRADE(op_, below_, action_, attr_, number_, text_)                                       \
    {#op_, below_, upgrade_##action_, attr_, number_, text_},
#include "onnx/upgrade.def"
#undef UPGRADE
};

const char *upgrade_replaced(const char *name, int64_t opset, int *version)
{
    if (strcmp(name, "Upsample") == 0 && opset < 10) {
        *version = opset >= 9 ? 9 : opset >= 7 ? 7 : 1;
        return "Resize";
    }
    /* Deprecated in 11, and the same as ScatterElements-11; files of later opsets have it too. */
    if (strcmp(name, "Scatter") == 0 && opset >= 9) {
        *version = 11;
        return "ScatterElements";
    }
    return NULL;
}

tssa_status *upgrade_draft(struct draft *draft)
{
    if (draft->version < 6)
        drop_attr(draft, "consumed_inputs");
    if (draft->info->domain[0])
        return NULL;
    for (size_t i = 0; i < sizeof upgrades / sizeof *upgrades; i++)
        if (draft->version < upgrades[i].below && strcmp(upgrades[i].op, draft->info->name) == 0)
            TRY(upgrades[i].apply(draft, &upgrades[i]));
    return NULL;
}
