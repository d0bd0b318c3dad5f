/* SPDX-License-Identifier: Apache-2.0 */
/* Strongly connected components of a loop's body. */
#include "passes/analysis/recurrence.h"

#include "base/vec.h"
#include "ir/rebuild.h"

struct edge {
    uint32_t from, to;
};

struct builder {
    struct recurrences *found;
    VEC(struct edge) edges;
    uint32_t user; /* the node whose operands are visited */
};

/* ---- Edges ----------------------------------------------------------------------------------- */

bool recurrence_visit_operands(const struct ir_op *op,
                               bool (*visit)(void *context, struct ir_value *value), void *context)
{
    for (uint32_t i = 0; i < op->n_operands; i++)
        if (op->operands[i].value && !visit(context, op->operands[i].value))
            return false;
    for (uint32_t b = 0; b < op->n_blocks; b++)
        for (const struct ir_op *inner = op->blocks[b]->first; inner; inner = inner->next)
            if (!recurrence_visit_operands(inner, visit, context))
                return false;
    return true;
}

/* The node that stands for a value: an op of the body or a carried value. */
static uint32_t node_of(const struct recurrences *found, const struct ir_value *value)
{
    if (value->block == found->body)
        return value->index >= 2 ? found->n_ops + value->index - 2 : RECURRENCE_NONE;
    if (!value->op || value->op->parent != found->body)
        return RECURRENCE_NONE;
    return found->op_index[value->op->id] - 1;
}

static bool add_edge(struct builder *builder, uint32_t from, uint32_t to)
{
    return vec_push(&builder->edges, ((struct edge){from, to}));
}

static bool add_use(void *context, struct ir_value *value)
{
    struct builder *builder = context;
    uint32_t node = node_of(builder->found, value);
    if (node == RECURRENCE_NONE)
        return true;
    /* Readers of a carried value stay with it. */
    if (node >= builder->found->n_ops && !add_edge(builder, builder->user, node))
        return false;
    return add_edge(builder, node, builder->user);
}

static bool add_edges(struct builder *builder)
{
    struct recurrences *found = builder->found;
    const struct ir_op *ret = ir_block_return(found->body);
    for (uint32_t i = 0; i < found->n_ops; i++) {
        builder->user = i;
        if (!recurrence_visit_operands(found->ops[i], add_use, builder))
            return false;
    }
    for (uint32_t k = 0; k < found->n_carried; k++) {
        uint32_t node = node_of(found, ir_operand(ret, ir_loop_return(found->loop, k)));
        if (node == RECURRENCE_NONE)
            continue;
        if (!add_edge(builder, node, found->n_ops + k) ||
            !add_edge(builder, found->n_ops + k, node))
            return false;
    }
    return true;
}

/* ---- Components (Tarjan, without recursion) -------------------------------------------------- */

struct tarjan {
    const uint32_t *first, *to;   /* successors of n: to[first[n]] up to to[first[n + 1]] */
    uint32_t *order, *low, *next; /* order: 0 where not seen */
    uint32_t *stack, *path;
    bool *on_stack;
    uint32_t n_stack, n_seen;
    uint32_t *component, n_components;
};

static void enter(struct tarjan *t, uint32_t node)
{
    t->order[node] = t->low[node] = ++t->n_seen;
    t->next[node] = t->first[node];
    t->stack[t->n_stack++] = node;
    t->on_stack[node] = true;
}

static void leave(struct tarjan *t, uint32_t node)
{
    uint32_t member;
    if (t->low[node] != t->order[node])
        return;
    do {
        member = t->stack[--t->n_stack];
        t->on_stack[member] = false;
        t->component[member] = t->n_components;
    } while (member != node);
    t->n_components++;
}

static void search(struct tarjan *t, uint32_t root)
{
    uint32_t depth = 0;
    enter(t, root);
    t->path[depth++] = root;
    while (depth > 0) {
        uint32_t node = t->path[depth - 1];
        if (t->next[node] < t->first[node + 1]) {
            uint32_t to = t->to[t->next[node]++];
            if (!t->order[to]) {
                enter(t, to);
                t->path[depth++] = to;
            } else if (t->on_stack[to] && t->order[to] < t->low[node]) {
                t->low[node] = t->order[to];
            }
            continue;
        }
        leave(t, node);
        depth--;
        if (depth > 0 && t->low[node] < t->low[t->path[depth - 1]])
            t->low[t->path[depth - 1]] = t->low[node];
    }
}

/* Components of `n` nodes, numbered so that an edge never leads to a smaller number. */
static bool find_components(struct builder *builder, uint32_t n, uint32_t *component,
                            uint32_t *n_components)
{
    const tssa_allocator *allocator = builder->found->body->graph->allocator;
    size_t n_edges = builder->edges.count;
    uint32_t *memory = allocator_calloc(allocator, 6 * ((size_t)n + 1) + n_edges, sizeof *memory);
    bool *on_stack = allocator_calloc(allocator, (size_t)n + 1, sizeof *on_stack);
    if (memory && on_stack) {
        uint32_t *first = memory, *to = memory + 6 * ((size_t)n + 1);
        struct tarjan t = {.first = first, .to = to, .on_stack = on_stack, .component = component};
        t.order = first + n + 1;
        t.low = t.order + n + 1;
        t.next = t.low + n + 1;
        t.stack = t.next + n + 1;
        t.path = t.stack + n + 1;
        /* Counting sort of the edges by where they come from. */
        for (size_t i = 0; i < n_edges; i++)
            first[builder->edges.data[i].from + 1]++;
        for (uint32_t i = 0; i < n; i++)
            first[i + 1] += first[i];
        for (size_t i = n_edges; i-- > 0;) {
            uint32_t from = builder->edges.data[i].from;
            to[first[from] + t.next[from]++] = builder->edges.data[i].to;
        }
        for (uint32_t i = 0; i < n; i++)
            if (!t.order[i])
                search(&t, i);
        for (uint32_t i = 0; i < n; i++)
            component[i] = t.n_components - 1 - component[i];
        *n_components = t.n_components;
    }
    bool done = memory && on_stack;
    allocator_free(allocator, memory);
    allocator_free(allocator, on_stack);
    return done;
}

/* ---- The whole ------------------------------------------------------------------------------- */

static tssa_status *list_ops(struct recurrences *found)
{
    const struct ir_graph *graph = found->body->graph;
    for (const struct ir_op *op = found->body->first; op && op != found->body->last; op = op->next)
        found->n_ops++;
    size_t n = (size_t)found->n_ops + found->n_carried + 1;
    found->ops = allocator_calloc(graph->allocator, n, sizeof *found->ops);
    found->op_index = allocator_calloc(graph->allocator, graph->n_ops, sizeof *found->op_index);
    found->component = allocator_calloc(graph->allocator, n, sizeof *found->component);
    found->is_recurrent = allocator_calloc(graph->allocator, n, sizeof *found->is_recurrent);
    TRY_ALLOC(found->ops);
    TRY_ALLOC(found->op_index);
    TRY_ALLOC(found->component);
    TRY_ALLOC(found->is_recurrent);
    uint32_t i = 0;
    for (const struct ir_op *op = found->body->first; op && op != found->body->last;
         op = op->next) {
        found->ops[i++] = op;
        found->op_index[op->id] = i;
    }
    return NULL;
}

tssa_status *recurrences_find(struct ir_op *loop, struct recurrences *found)
{
    *found = (struct recurrences){
        .loop = loop, .body = ir_op_block(loop, "body"), .n_carried = ir_loop_carried(loop)};
    TRY(list_ops(found));
    struct builder builder = {.found = found, .edges = VEC_INIT(found->body->graph->allocator)};
    uint32_t n = found->n_ops + found->n_carried;
    bool done =
        add_edges(&builder) && find_components(&builder, n, found->component, &found->n_components);
    vec_free(&builder.edges);
    if (!done)
        return status_out_of_memory();
    for (uint32_t k = 0; k < found->n_carried; k++)
        found->is_recurrent[found->component[found->n_ops + k]] = true;
    return NULL;
}

void recurrences_free(struct recurrences *found)
{
    const tssa_allocator *allocator = found->body->graph->allocator;
    allocator_free(allocator, found->ops);
    allocator_free(allocator, found->op_index);
    allocator_free(allocator, found->component);
    allocator_free(allocator, found->is_recurrent);
}

uint32_t recurrence_of_value(const struct recurrences *found, const struct ir_value *value)
{
    uint32_t node = node_of(found, value);
    return node == RECURRENCE_NONE ? RECURRENCE_NONE : found->component[node];
}
