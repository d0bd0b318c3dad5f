/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the graph tells of the model's functions, and whose calls stay calls. A call hides its body
 * from every pass, so by default the only ones that stay are those of functions with an operator
 * that tssa does not know: there is least to gain, and compilers and execution providers find such
 * functions by name.
 */
#include <string.h>

#include "onnx/import.h"

/* What is being looked through: a function's body, or the model's graph (function NULL). */
struct body {
    struct import *import;
    const struct function *function;
    const struct opset_list *opsets;
    struct map ops; /* key -> struct ir_function_op */
    struct text key;
    bool has_files; /* a tensor lies in a file beside the model */
};

/* ---- Operators ------------------------------------------------------------------------------- */

static tssa_status *intern_into(struct import *import, const char *text, const char **interned)
{
    *interned = intern_str(&import->graph->strings, text ? text : "");
    TRY_ALLOC(*interned);
    return NULL;
}

static tssa_status *look_up(const struct body *body, struct ir_function_op *op)
{
    const struct ir_op_info *info;
    int version;
    int64_t opset = import_opset(body->import, body->opsets, op->domain);
    if (!opset) /* is refused when the body is read */
        return NULL;
    TRY(import_bind(body->import, op->domain, op->name, opset, &info, &version));
    op->is_known = info->id != IR_OP_opaque;
    op->is_pure = (info->flags & (IR_PURE | IR_RANDOM)) == IR_PURE;
    return NULL;
}

static tssa_status *add_operator(struct body *body, const Onnx__NodeProto *node,
                                 const struct function *callee)
{
    struct import *import = body->import;
    struct ir_function_op *op = ARENA_NEW(&import->scratch, struct ir_function_op);
    const char *key = arena_copy(&import->scratch, body->key.data, body->key.size);
    if (!op || !key || !map_put(&body->ops, key, body->key.size, op))
        return status_out_of_memory();
    TRY(intern_into(import, import_domain(node->domain), &op->domain));
    TRY(intern_into(import, node->op_type, &op->name));
    TRY(intern_into(import, node->overload, &op->overload));
    op->count = 1;
    op->callee = callee ? callee->info : NULL;
    return callee ? NULL : look_up(body, op);
}

static tssa_status *count_operator(struct body *body, const Onnx__NodeProto *node)
{
    struct function *callee;
    TRY(function_find(body->import, node, &callee));
    if (callee)
        callee->info->calls++;
    if (!body->function)
        return NULL;
    text_clear(&body->key);
    text_printf(&body->key, "%s\n%s\n%s", import_domain(node->domain),
                node->op_type ? node->op_type : "", node->overload ? node->overload : "");
    if (body->key.failed)
        return status_out_of_memory();
    struct ir_function_op *op = map_get(&body->ops, body->key.data, body->key.size);
    if (!op)
        return add_operator(body, node, callee);
    op->count++;
    return NULL;
}

/* ---- The walk -------------------------------------------------------------------------------- */

static void look_at_tensor(struct body *body, const Onnx__TensorProto *tensor)
{
    body->has_files |=
        tensor && tensor->data_location == ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
}

static tssa_status *look_at_nodes(struct body *body, Onnx__NodeProto *const *nodes, size_t count);

static tssa_status *look_at_graph(struct body *body, const Onnx__GraphProto *graph)
{
    if (!graph)
        return NULL;
    for (size_t i = 0; i < graph->n_initializer; i++)
        look_at_tensor(body, graph->initializer[i]);
    return look_at_nodes(body, graph->node, graph->n_node);
}

static tssa_status *look_at_attributes(struct body *body, Onnx__AttributeProto *const *attributes,
                                       size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const Onnx__AttributeProto *attribute = attributes[i];
        look_at_tensor(body, attribute->t);
        for (size_t t = 0; t < attribute->n_tensors; t++)
            look_at_tensor(body, attribute->tensors[t]);
        TRY(look_at_graph(body, attribute->g));
        for (size_t g = 0; g < attribute->n_graphs; g++)
            TRY(look_at_graph(body, attribute->graphs[g]));
    }
    return NULL;
}

/* Recursion is as deep as messages may be nested. */
static tssa_status *look_at_nodes(struct body *body, Onnx__NodeProto *const *nodes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        TRY(count_operator(body, nodes[i]));
        TRY(look_at_attributes(body, nodes[i]->attribute, nodes[i]->n_attribute));
    }
    return NULL;
}

/* ---- What is told ---------------------------------------------------------------------------- */

static tssa_status *keep_operators(const struct body *body, struct ir_function *info)
{
    struct ir_function_op *ops =
        ARENA_ARRAY(&body->import->graph->arena, struct ir_function_op, body->ops.live);
    TRY_ALLOC(ops);
    for (const struct map_entry *e = map_next(&body->ops, NULL); e; e = map_next(&body->ops, e))
        ops[info->n_ops++] = *(const struct ir_function_op *)e->value;
    info->ops = ops;
    info->is_pure = true;
    for (size_t i = 0; i < info->n_ops; i++)
        info->is_pure &= ops[i].callee ? ops[i].callee->is_pure : ops[i].is_pure;
    return NULL;
}

/*
 * A definition is written as it was, and so are those of the functions that it calls. That cannot
 * be where they point to files, which the new model would look for beside itself. And a function in
 * the place of an operator of ai.onnx would take the nodes that passes make, too.
 */
static bool can_stay(const struct body *body, const struct ir_function *info)
{
    bool replaces = !info->domain[0] && ir_op_lookup("", info->name);
    for (size_t i = 0; i < info->n_ops; i++)
        if (info->ops[i].callee && !info->ops[i].callee->can_stay)
            return false;
    return !body->has_files && !replaces;
}

static bool should_stay(const struct import *import, const struct ir_function *info)
{
    return import->options.functions == TSSA_FUNCTIONS_KEEP ||
           (import->options.functions == TSSA_FUNCTIONS_KNOWN && ir_function_unknown(info));
}

static tssa_status *describe(struct body *body)
{
    struct import *import = body->import;
    const Onnx__FunctionProto *proto = body->function->proto;
    struct ir_function *info = body->function->info;
    const struct wire_span *span = &import->file.functions.data[info->index];
    TRY(intern_into(import, import_domain(proto->domain), &info->domain));
    TRY(intern_into(import, proto->name, &info->name));
    TRY(intern_into(import, proto->overload, &info->overload));
    info->opset = import_opset(import, body->opsets, "");
    info->definition = span->data;
    info->definition_size = span->size;
    TRY(look_at_attributes(body, proto->attribute_proto, proto->n_attribute_proto));
    TRY(look_at_nodes(body, proto->node, proto->n_node));
    TRY(keep_operators(body, info));
    info->can_stay = can_stay(body, info);
    info->stays = info->can_stay && should_stay(import, info);
    return NULL;
}

static tssa_status *describe_function(struct import *import, const struct function *function)
{
    struct body body = {.import = import, .function = function, .opsets = &function->opsets};
    map_init(&body.ops, import->allocator);
    text_init(&body.key, import->allocator);
    tssa_status *status = describe(&body);
    text_free(&body.key);
    map_free(&body.ops);
    return status_prefix(status, "function \"%s\"", function->proto->name);
}

/* Callers go before callees. */
static void need_callees(const struct ir_function *info)
{
    for (size_t i = 0; i < info->n_ops; i++)
        if (info->ops[i].callee && (info->stays || info->needed))
            info->ops[i].callee->needed = true;
}

tssa_status *functions_describe(struct import *import, const uint32_t *order)
{
    struct body main = {.import = import};
    if (import->model->n_functions == 0)
        return NULL;
    for (size_t i = 0; i < import->model->n_functions; i++)
        TRY(describe_function(import, import->function_list[order[i]]));
    for (size_t i = import->model->n_functions; i-- > 0;)
        need_callees(import->function_list[order[i]]->info);
    import->graph->keeps_functions = import->options.functions == TSSA_FUNCTIONS_KEEP;
    return look_at_graph(&main, import->model->graph);
}
