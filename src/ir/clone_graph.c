/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A whole graph once more: its ops, blocks and values are copied, all that never changes is shared.
 */
#include "ir/clone.h"

/* ---- Facts ----------------------------------------------------------------------------------- */

static void copy_value(struct ir_value *to, const struct ir_value *from)
{
    to->id = from->id;
    to->name = from->name;
    to->type = from->type;
    to->declared = from->declared;
    to->known = from->known;
}

static void copy_block(struct ir_block *to, const struct ir_block *from);

/* What a copy of an op within its graph does not tell: it is another one there. */
static void copy_op(struct ir_op *to, const struct ir_op *from)
{
    to->id = from->id;
    to->origin = from->origin;
    to->in_blocks = from->in_blocks;
    to->kept = from->kept;
    to->fits = from->fits;
    to->inferred_from = from->inferred_from;
    for (uint32_t i = 0; i < from->n_results; i++)
        copy_value(&to->results[i], &from->results[i]);
    for (uint32_t i = 0; i < from->n_blocks; i++)
        copy_block(to->blocks[i], from->blocks[i]);
}

static void copy_block(struct ir_block *to, const struct ir_block *from)
{
    to->name = from->name;
    to->notes = from->notes;
    for (uint32_t i = 0; i < from->n_params; i++)
        copy_value(to->params[i], from->params[i]);
    struct ir_op *copy = to->first;
    for (const struct ir_op *op = from->first; op; op = op->next, copy = copy->next)
        copy_op(copy, op);
}

/* ---- Graphs ---------------------------------------------------------------------------------- */

/* In tables of its own the copy finds what the graph has made, and puts what it makes itself. */
static bool copy_tables(struct ir_graph *copy, const struct ir_graph *graph)
{
    return intern_copy(&copy->strings, &graph->strings, &copy->arena) &&
           dim_table_copy(&copy->dims, &graph->dims, &copy->arena) &&
           type_table_copy(&copy->types, &graph->types, &copy->arena, &copy->dims);
}

static tssa_status *fill(struct ir_graph *copy, const struct ir_graph *graph)
{
    struct ir_cloner cloner;
    if (!copy_tables(copy, graph))
        return status_out_of_memory();
    ir_cloner_init(&cloner, copy);
    copy->body = ir_clone_block(&cloner, graph->body, NULL);
    ir_cloner_free(&cloner);
    TRY_ALLOC(copy->body);
    copy_block(copy->body, graph->body);
    copy->n_ops = graph->n_ops; /* the copies have the numbers of what they are copies of */
    copy->n_values = graph->n_values;
    return NULL;
}

tssa_status *ir_clone_graph(const struct ir_graph *graph, struct ir_graph **out)
{
    struct ir_graph *copy = allocator_calloc(graph->allocator, 1, sizeof *copy);
    TRY_ALLOC(copy);
    *copy = *graph;
    copy->body = NULL;
    copy->resources = NULL; /* which go with the graph that they were attached to */
    copy->copies = NULL;
    copy->source = graph;
    arena_init(&copy->arena, graph->allocator);
    intern_init(&copy->strings, &copy->arena);
    dim_table_init(&copy->dims, &copy->arena);
    map_init(&copy->types.types, graph->allocator);
    tssa_status *status = fill(copy, graph);
    if (status) {
        ir_graph_free(copy);
        return status;
    }
    *out = copy;
    return NULL;
}
