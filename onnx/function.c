/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Functions of a model: found by domain, name and overload, and checked for cycles (ONNX 1.22.0,
 * docs/IR.md, "Functions"). A function of the model goes before an operator of the same name,
 * because its author wrote it for that purpose.
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

tssa_status *functions_init(struct import *import, const uint32_t **order)
{
    const Onnx__ModelProto *model = import->model;
    *order = NULL;
    if (model->n_functions == 0)
        return NULL;
    if (model->n_functions > MAX_FUNCTIONS)
        return ERROR(TSSA_LIMIT, "the model has more than %d functions", MAX_FUNCTIONS);
    struct ir_graph *graph = import->graph;
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
    return order_functions(import, order);
}
