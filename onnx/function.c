/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of a model: found by domain, name and overload, checked for cycles, inlined where a
 * call is not to stay (ONNX 1.22.0, docs/IR.md, "Functions"). A function of the model goes before
 * an operator of the same name, because its author wrote it for that purpose.
 */
#include <string.h>

#include "onnx/import.h"

/* The checker's limit. */
#define MAX_FUNCTIONS 10000

/* ---- The index ------------------------------------------------------------------------------- */

/* "domain\0name\0overload", appended to `key`. */
static tssa_status *function_key(const char *domain, const char *name, const char *overload,
                                 struct text *key)
{
    domain = import_domain(domain);
    name = name ? name : "";
    overload = overload ? overload : "";
    text_append(key, domain, strlen(domain) + 1);
    text_append(key, name, strlen(name) + 1);
    text_append(key, overload, strlen(overload));
    return key->failed ? status_out_of_memory() : NULL;
}

static tssa_status *find_by_key(const struct import *import, const Onnx__NodeProto *node,
                                struct text *key, struct function **function)
{
    text_clear(key);
    TRY(function_key(node->domain, node->op_type, node->overload, key));
    *function = map_get(&import->functions, key->data, key->size);
    return NULL;
}

tssa_status *function_find(const struct import *import, const Onnx__NodeProto *node,
                           struct function **function)
{
    *function = NULL;
    if (import->functions.live == 0)
        return NULL;
    struct text key;
    text_init(&key, import->allocator);
    tssa_status *status = find_by_key(import, node, &key, function);
    text_free(&key);
    return status;
}

static tssa_status *add_function(struct import *import, uint32_t index, struct text *key)
{
    const Onnx__FunctionProto *proto = import->model->functions[index];
    if (!proto->name || !proto->name[0])
        return ERROR(TSSA_MALFORMED, "a function has no name");
    text_clear(key);
    TRY(function_key(proto->domain, proto->name, proto->overload, key));
    if (map_get(&import->functions, key->data, key->size))
        return ERROR(TSSA_MALFORMED, "function \"%s\" is there twice", proto->name);
    struct function *function = ARENA_NEW(&import->scratch, struct function);
    void *own_key = arena_copy(&import->scratch, key->data, key->size);
    if (!function || !own_key)
        return status_out_of_memory();
    function->proto = proto;
    function->info = &import->graph->functions[index];
    function->info->index = index;
    import->function_list[index] = function;
    tssa_status *status =
        import_opsets(import, proto->opset_import, proto->n_opset_import, &function->opsets);
    if (status)
        return status_prefix(status, "function \"%s\"", proto->name);
    if (!map_put(&import->functions, own_key, key->size, function))
        return status_out_of_memory();
    return NULL;
}

/* ---- Cycles ---------------------------------------------------------------------------------- */

/* Who calls whom: callees of function i are data[first[i]] to data[first[i + 1]]. */
struct calls {
    struct import *import;
    struct text key;
    VEC(uint32_t) callees;
    size_t first[MAX_FUNCTIONS + 1];
    size_t next[MAX_FUNCTIONS];
    uint32_t path[MAX_FUNCTIONS];
    uint8_t state[MAX_FUNCTIONS];
    uint32_t *done; /* callees before callers */
    size_t n_done;
};

enum { NEW, OPEN, DONE };

static tssa_status *collect_calls(struct calls *calls, Onnx__NodeProto *const *nodes, size_t count);

static tssa_status *collect_node_calls(struct calls *calls, const Onnx__NodeProto *node)
{
    struct function *callee;
    TRY(find_by_key(calls->import, node, &calls->key, &callee));
    if (callee && !vec_push(&calls->callees, callee->info->index))
        return status_out_of_memory();
    for (size_t a = 0; a < node->n_attribute; a++) {
        const Onnx__AttributeProto *attribute = node->attribute[a];
        if (attribute->g)
            TRY(collect_calls(calls, attribute->g->node, attribute->g->n_node));
        for (size_t g = 0; g < attribute->n_graphs; g++)
            TRY(collect_calls(calls, attribute->graphs[g]->node, attribute->graphs[g]->n_node));
    }
    return NULL;
}

/* Recursion is as deep as messages may be nested. */
static tssa_status *collect_calls(struct calls *calls, Onnx__NodeProto *const *nodes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        TRY(collect_node_calls(calls, nodes[i]));
    return NULL;
}

static tssa_status *visit_function(struct calls *calls, uint32_t root)
{
    size_t depth = 0;
    calls->path[depth++] = root;
    calls->state[root] = OPEN;
    while (depth) {
        uint32_t at = calls->path[depth - 1];
        if (calls->next[at] == calls->first[at + 1]) {
            calls->state[at] = DONE;
            calls->done[calls->n_done++] = at;
            depth--;
            continue;
        }
        uint32_t callee = calls->callees.data[calls->next[at]++];
        if (calls->state[callee] == OPEN)
            return ERROR(TSSA_MALFORMED, "function \"%s\" calls itself%s",
                         calls->import->model->functions[callee]->name,
                         callee == at ? "" : " through others");
        if (calls->state[callee] == NEW) {
            calls->state[callee] = OPEN;
            calls->path[depth++] = callee;
        }
    }
    return NULL;
}

static tssa_status *check_cycles(struct calls *calls)
{
    const Onnx__ModelProto *model = calls->import->model;
    uint32_t count = (uint32_t)model->n_functions;
    for (uint32_t i = 0; i < count; i++) {
        const Onnx__FunctionProto *proto = model->functions[i];
        calls->first[i] = calls->next[i] = calls->callees.count;
        TRY(collect_calls(calls, proto->node, proto->n_node));
        for (size_t a = 0; a < proto->n_attribute_proto; a++) {
            const Onnx__GraphProto *graph = proto->attribute_proto[a]->g;
            if (graph)
                TRY(collect_calls(calls, graph->node, graph->n_node));
        }
    }
    calls->first[count] = calls->callees.count;
    for (uint32_t i = 0; i < count; i++)
        if (calls->state[i] == NEW)
            TRY(visit_function(calls, i));
    return NULL;
}

/* *order is in the scratch arena. */
static tssa_status *order_functions(struct import *import, const uint32_t **order)
{
    struct calls *calls = allocator_calloc(import->allocator, 1, sizeof *calls);
    TRY_ALLOC(calls);
    calls->import = import;
    calls->done = ARENA_ARRAY(&import->scratch, uint32_t, import->model->n_functions);
    *order = calls->done;
    text_init(&calls->key, import->allocator);
    vec_init(&calls->callees, import->allocator);
    tssa_status *status = calls->done ? check_cycles(calls) : status_out_of_memory();
    vec_free(&calls->callees);
    text_free(&calls->key);
    allocator_free(import->allocator, calls);
    return status;
}

tssa_status *functions_init(struct import *import)
{
    const Onnx__ModelProto *model = import->model;
    if (model->n_functions == 0)
        return NULL;
    if (model->n_functions > MAX_FUNCTIONS)
        return ERROR(TSSA_LIMIT, "the model has more than %d functions", MAX_FUNCTIONS);
    struct ir_graph *graph = import->graph;
    const uint32_t *order;
    graph->functions = ARENA_ARRAY(&graph->arena, struct ir_function, model->n_functions);
    import->function_list = ARENA_ARRAY(&import->scratch, struct function *, model->n_functions);
    if (!graph->functions || !import->function_list)
        return status_out_of_memory();
    graph->n_functions = model->n_functions;
    struct text key;
    text_init(&key, import->allocator);
    tssa_status *status = NULL;
    for (uint32_t i = 0; i < model->n_functions && !status; i++)
        status = add_function(import, i, &key);
    text_free(&key);
    TRY(status);
    TRY(order_functions(import, &order));
    return functions_describe(import, order);
}

/* ---- Calls ----------------------------------------------------------------------------------- */

static tssa_status *bind_attr(struct frame *frame, struct import *import, const char *name,
                              struct bound_attr bound)
{
    struct bound_attr *own = ARENA_NEW(&import->scratch, struct bound_attr);
    TRY_ALLOC(own);
    *own = bound;
    if (!map_put_str(&frame->attrs, name, own))
        return status_out_of_memory();
    return NULL;
}

/* The attributes of the call, then the defaults of those it leaves out. */
static tssa_status *bind_attrs(struct scope *caller, const Onnx__NodeProto *node,
                               struct scope *body)
{
    const Onnx__FunctionProto *proto = body->frame->function->proto;
    for (size_t i = 0; i < node->n_attribute; i++) {
        struct bound_attr bound = attribute_resolve(caller, node->attribute[i]);
        if (bound.proto && node->attribute[i]->name)
            TRY(bind_attr(body->frame, body->import, node->attribute[i]->name, bound));
    }
    for (size_t i = 0; i < proto->n_attribute_proto; i++) {
        const Onnx__AttributeProto *attribute = proto->attribute_proto[i];
        if (attribute->name && !map_get_str(&body->frame->attrs, attribute->name))
            TRY(bind_attr(body->frame, body->import, attribute->name,
                          (struct bound_attr){attribute, body}));
    }
    return NULL;
}

static tssa_status *bind_inputs(const struct scope *caller, const Onnx__NodeProto *node,
                                struct scope *body)
{
    const Onnx__FunctionProto *proto = body->frame->function->proto;
    if (node->n_input > proto->n_input)
        return ERROR(TSSA_MALFORMED, "it has %zu inputs and the function takes %zu", node->n_input,
                     proto->n_input);
    for (size_t i = 0; i < proto->n_input; i++) {
        const char *name = i < node->n_input ? node->input[i] : "";
        struct ir_value *value = name[0] ? scope_find(caller, name) : &body->import->absent;
        if (!value)
            return ERROR(TSSA_MALFORMED, "input \"%s\" is defined nowhere", name);
        if (proto->input[i][0])
            TRY(scope_bind(body, proto->input[i], value));
    }
    return NULL;
}

/* The caller's names for the outputs, which their values shall have. */
static tssa_status *name_call_outputs(const struct scope *caller, const Onnx__NodeProto *node,
                                      struct scope *body)
{
    const Onnx__FunctionProto *proto = body->frame->function->proto;
    if (node->n_output > proto->n_output)
        return ERROR(TSSA_MALFORMED, "it has %zu outputs and the function gives %zu",
                     node->n_output, proto->n_output);
    for (size_t i = 0; i < node->n_output; i++) {
        const char *shown =
            caller->parent ? NULL : map_get_str(&caller->frame->call_names, node->output[i]);
        if (!shown)
            shown = node->output[i];
        if (shown[0] && !map_put_str(&body->frame->call_names, proto->output[i], (void *)shown))
            return status_out_of_memory();
    }
    return NULL;
}

static tssa_status *bind_outputs(struct scope *caller, const Onnx__NodeProto *node,
                                 const struct scope *body)
{
    const Onnx__FunctionProto *proto = body->frame->function->proto;
    for (size_t i = 0; i < node->n_output; i++) {
        if (!node->output[i][0])
            continue;
        struct ir_value *value = scope_find(body, proto->output[i]);
        if (!value)
            return ERROR(TSSA_MALFORMED, "the function does not define its output \"%s\"",
                         proto->output[i]);
        TRY(scope_bind(caller, node->output[i], value));
        if (value->name && strcmp(value->name, node->output[i]) == 0)
            TRY(scope_note(caller, node->output[i], value));
    }
    return NULL;
}

static tssa_status *inline_body(struct scope *caller, const Onnx__NodeProto *node,
                                struct scope *body)
{
    const Onnx__FunctionProto *proto = body->frame->function->proto;
    TRY(import_spend(body, 1 + (uint64_t)proto->n_input + proto->n_output + proto->n_value_info +
                               proto->n_attribute_proto));
    TRY(bind_attrs(caller, node, body));
    TRY(bind_inputs(caller, node, body));
    TRY(name_call_outputs(caller, node, body));
    TRY(scope_collect_hints(body, proto->value_info, proto->n_value_info));
    TRY(import_nodes(body, proto->node, proto->n_node));
    return bind_outputs(caller, node, body);
}

tssa_status *function_inline(struct scope *caller, const Onnx__NodeProto *node,
                             const struct function *function)
{
    struct import *import = caller->import;
    struct frame frame = {.function = function, .opsets = function->opsets};
    map_init(&frame.attrs, import->allocator);
    map_init(&frame.call_names, import->allocator);
    struct scope body;
    tssa_status *status = scope_init(&body, import, NULL, &frame, caller->block, caller->depth + 1);
    import->inlining++;
    if (!status)
        status = inline_body(caller, node, &body);
    import->inlining--;
    scope_free(&body);
    map_free(&frame.call_names);
    map_free(&frame.attrs);
    return status;
}
