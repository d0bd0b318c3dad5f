/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The order of nodes. ONNX demands a topological order; files without one exist. Names that a
 * node's subgraphs take from outside count as its inputs (docs/IR.md, "Names Within a Graph").
 */
#include <string.h>

#include "onnx/import.h"

/* Names that subgraphs define: they hide those of the graph being ordered. */
struct locals {
    const struct locals *outer;
    struct map names;
};

/* Of a node in the search; one that another overrides is DONE from the start. */
enum { NEW, OPEN, DONE };

struct order {
    const struct scope *scope; /* its inputs and initializers */
    struct import *import;
    Onnx__NodeProto *const *nodes;
    size_t count;
    struct map producers; /* name -> index of its node + 1, as a pointer */
    VEC(uint32_t) needs;  /* indices of nodes */
    size_t *first;        /* of node i: needs[first[i]] to needs[first[i + 1]] */
    uint8_t *state;       /* of node i */
    bool is_ordered;
};

/* Tells what stands where, as a value of a map. */
static void *tagged(size_t index)
{
    return (void *)(uintptr_t)(index + 1);
}

static tssa_status *put_name(struct map *map, const char *name, size_t index)
{
    if (name && name[0] && !map_put_str(map, name, tagged(index)))
        return status_out_of_memory();
    return NULL;
}

/* ---- What every node needs ------------------------------------------------------------------- */

static tssa_status *need(struct order *order, size_t user, const char *name,
                         const struct locals *locals)
{
    if (!name[0])
        return NULL;
    for (const struct locals *l = locals; l; l = l->outer)
        if (map_get_str(&l->names, name))
            return NULL;
    uintptr_t producer = (uintptr_t)map_get_str(&order->producers, name);
    if (!producer)
        return NULL;
    if (producer - 1 >= user)
        order->is_ordered = false;
    if (!vec_push(&order->needs, (uint32_t)(producer - 1)))
        return status_out_of_memory();
    return NULL;
}

static tssa_status *collect_node(struct order *order, size_t user, const Onnx__NodeProto *node,
                                 const struct locals *locals);

static tssa_status *define_locals(struct locals *locals, const Onnx__GraphProto *graph)
{
    for (size_t i = 0; i < graph->n_input; i++)
        TRY(put_name(&locals->names, graph->input[i]->name, i));
    for (size_t i = 0; i < graph->n_initializer; i++)
        TRY(put_name(&locals->names, graph->initializer[i]->name, i));
    for (size_t i = 0; i < graph->n_sparse_initializer; i++)
        if (graph->sparse_initializer[i]->values)
            TRY(put_name(&locals->names, graph->sparse_initializer[i]->values->name, i));
    for (size_t i = 0; i < graph->n_node; i++)
        for (size_t o = 0; o < graph->node[i]->n_output; o++)
            TRY(put_name(&locals->names, graph->node[i]->output[o], i));
    return NULL;
}

static tssa_status *collect_graph(struct order *order, size_t user, const Onnx__GraphProto *graph,
                                  const struct locals *outer)
{
    struct locals locals = {.outer = outer};
    map_init(&locals.names, order->import->allocator);
    tssa_status *status = define_locals(&locals, graph);
    for (size_t i = 0; i < graph->n_node && !status; i++)
        status = collect_node(order, user, graph->node[i], &locals);
    for (size_t i = 0; i < graph->n_output && !status; i++)
        if (graph->output[i]->name)
            status = need(order, user, graph->output[i]->name, &locals);
    map_free(&locals.names);
    return status;
}

static tssa_status *collect_node(struct order *order, size_t user, const Onnx__NodeProto *node,
                                 const struct locals *locals)
{
    for (size_t i = 0; i < node->n_input; i++)
        TRY(need(order, user, node->input[i], locals));
    for (size_t i = 0; i < node->n_attribute; i++) {
        const Onnx__AttributeProto *attribute = node->attribute[i];
        if (attribute->g)
            TRY(collect_graph(order, user, attribute->g, locals));
        for (size_t g = 0; g < attribute->n_graphs; g++)
            TRY(collect_graph(order, user, attribute->graphs[g], locals));
    }
    return NULL;
}

/* ---- Who defines what ------------------------------------------------------------------------ */

static bool is_constant(const Onnx__NodeProto *node)
{
    return node->op_type && strcmp(node->op_type, "Constant") == 0 && node->n_input == 0 &&
           node->n_output == 1;
}

/*
 * One definition per name, but for Constants: graph surgery leaves models behind in which a
 * Constant was overridden by a later one of its name, and ONNX Runtime, where Constants are
 * initializers, reads them so.
 */
static tssa_status *define_output(struct order *order, size_t index, const char *name)
{
    uintptr_t other = (uintptr_t)map_get_str(&order->producers, name);
    if (map_get_str(&order->scope->values, name))
        return ERROR(TSSA_MALFORMED, "\"%s\" is defined twice", name);
    if (other) {
        if (!is_constant(order->nodes[other - 1]) || !is_constant(order->nodes[index]))
            return ERROR(TSSA_MALFORMED, "two outputs of nodes are named \"%s\"", name);
        order->state[other - 1] = DONE;
    }
    return put_name(&order->producers, name, index);
}

static tssa_status *find_producers(struct order *order)
{
    for (size_t i = 0; i < order->count; i++)
        for (size_t o = 0; o < order->nodes[i]->n_output; o++)
            TRY(define_output(order, i, order->nodes[i]->output[o]));
    return NULL;
}

static tssa_status *find_needs(struct order *order)
{
    for (size_t i = 0; i < order->count; i++) {
        order->first[i] = order->needs.count;
        TRY(collect_node(order, i, order->nodes[i], NULL));
    }
    order->first[order->count] = order->needs.count;
    return NULL;
}

/* ---- Sorting --------------------------------------------------------------------------------- */

/*
 * A depth-first search without recursion: `path` are the open nodes, next[i] is how far node i is.
 */
struct search {
    size_t *next;
    uint32_t *path;
    size_t depth;
    uint32_t *sorted;
    size_t n_sorted;
};

static tssa_status *cycle_error(const struct order *order, uint32_t node)
{
    const Onnx__NodeProto *proto = order->nodes[node];
    return ERROR(TSSA_MALFORMED, "node \"%s\" (%s) needs its own output: the graph has a cycle",
                 proto->name ? proto->name : "", proto->op_type ? proto->op_type : "");
}

static tssa_status *visit(const struct order *order, struct search *search, uint32_t root)
{
    search->depth = 0;
    search->path[search->depth++] = root;
    order->state[root] = OPEN;
    while (search->depth) {
        uint32_t node = search->path[search->depth - 1];
        if (search->next[node] == order->first[node + 1]) {
            order->state[node] = DONE;
            search->sorted[search->n_sorted++] = node;
            search->depth--;
            continue;
        }
        uint32_t needed = order->needs.data[search->next[node]++];
        if (order->state[needed] == OPEN)
            return cycle_error(order, needed);
        if (order->state[needed] == NEW) {
            order->state[needed] = OPEN;
            search->path[search->depth++] = needed;
        }
    }
    return NULL;
}

static tssa_status *sort(const struct order *order, uint32_t *sorted, size_t *n_sorted)
{
    struct arena scratch;
    arena_init(&scratch, order->import->allocator);
    struct search search = {
        .next = ARENA_ARRAY(&scratch, size_t, order->count),
        .path = ARENA_ARRAY(&scratch, uint32_t, order->count),
        .sorted = sorted,
    };
    tssa_status *status = search.next && search.path ? NULL : status_out_of_memory();
    for (size_t i = 0; i < order->count && !status; i++)
        search.next[i] = order->first[i];
    for (size_t i = 0; i < order->count && !status; i++)
        if (order->state[i] == NEW)
            status = visit(order, &search, (uint32_t)i);
    *n_sorted = search.n_sorted;
    arena_clear(&scratch);
    return status;
}

static tssa_status *find_order(struct order *order, uint32_t *sorted, size_t *n_sorted)
{
    TRY(find_producers(order));
    TRY(find_needs(order));
    if (!order->is_ordered)
        return sort(order, sorted, n_sorted);
    for (size_t i = 0; i < order->count; i++)
        if (order->state[i] == NEW)
            sorted[(*n_sorted)++] = (uint32_t)i;
    return NULL;
}

tssa_status *import_order(const struct scope *scope, Onnx__NodeProto *const *nodes, size_t count,
                          const uint32_t **sorted, size_t *n_sorted)
{
    *n_sorted = 0;
    struct import *import = scope->import;
    uint32_t *result = ARENA_ARRAY(&import->scratch, uint32_t, count);
    TRY_ALLOC(result);
    struct order order = {
        .scope = scope, .import = import, .nodes = nodes, .count = count, .is_ordered = true};
    map_init(&order.producers, import->allocator);
    vec_init(&order.needs, import->allocator);
    order.first = allocator_calloc(import->allocator, count + 1, sizeof *order.first);
    order.state = allocator_calloc(import->allocator, count, sizeof *order.state);
    tssa_status *status =
        order.first && order.state ? find_order(&order, result, n_sorted) : status_out_of_memory();
    allocator_free(import->allocator, order.state);
    allocator_free(import->allocator, order.first);
    vec_free(&order.needs);
    map_free(&order.producers);
    *sorted = result;
    return status;
}
