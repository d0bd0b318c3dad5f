/* SPDX-License-Identifier: Apache-2.0 */
/* Names of values in the file. All of a model's are different, those of subgraphs too: nothing
 * shadows. */
#include <inttypes.h>
#include <string.h>

#include "onnx/export.h"
#include "onnx/made_names.h"

/* How many names were made from one. */
struct name_count {
    uint64_t made;
};

static tssa_status *count_of(struct export *export, const char *like, struct name_count **count)
{
    *count = map_get_str(&export->name_counts, like);
    if (*count)
        return NULL;
    *count = ARENA_NEW(&export->scratch, struct name_count);
    const char *key = arena_printf(&export->scratch, "%s", like);
    if (!*count || !key || !map_put_str(&export->name_counts, key, *count))
        return status_out_of_memory();
    return NULL;
}

tssa_status *export_fresh_name(struct export *export, const char *like, const char **name)
{
    struct name_count *count;
    TRY(count_of(export, like, &count));
    do {
        *name = arena_printf(&export->scratch, "%s_%" PRIu64, like, ++count->made);
        TRY_ALLOC(*name);
    } while (map_get_str(&export->used_names, *name));
    if (!map_put_str(&export->used_names, *name, &export->taken))
        return status_out_of_memory();
    return NULL;
}

static tssa_status *claim(struct export *export, const struct ir_value *value, const char *name)
{
    export->names[value->id] = name;
    if (!map_put_str(&export->used_names, name, (void *)value))
        return status_out_of_memory();
    return NULL;
}

/* The name the value has, unless something was given it before. */
static tssa_status *keep_name(struct export *export, const struct ir_value *value)
{
    if (export->names[value->id] || !value->name || !value->name[0] ||
        map_get_str(&export->used_names, value->name))
        return NULL;
    return claim(export, value, value->name);
}

/*
 * The graph's inputs have their names from the caller, and so have its outputs. An output whose
 * value has another name gets it, if that is what the block defines and no other output has claimed
 * it.
 */
static tssa_status *name_signature(struct export *export)
{
    const struct ir_graph *graph = export->graph;
    const struct ir_op *results = ir_block_return(graph->body);
    for (uint32_t i = 0; i < graph->body->n_params; i++) {
        const struct ir_value *param = graph->body->params[i];
        if (!param->name || map_get_str(&export->used_names, param->name))
            return ERROR(TSSA_INVALID_ARGUMENT, "input %u of the graph has no name of its own",
                         (unsigned)i);
        TRY(claim(export, param, param->name));
    }
    for (uint32_t i = 0; i < results->n_operands && graph->output_names; i++) {
        const struct ir_value *value = ir_operand(results, i);
        const char *name = graph->output_names[i];
        if (value->name && strcmp(value->name, name) == 0)
            TRY(keep_name(export, value));
    }
    for (uint32_t i = 0; i < results->n_operands && graph->output_names; i++) {
        const struct ir_value *value = ir_operand(results, i);
        const char *name = graph->output_names[i];
        const void *owner = map_get_str(&export->used_names, name);
        if (owner == value)
            continue;
        if (owner)
            return ERROR(TSSA_INVALID_ARGUMENT, "two values have the name of output \"%s\"", name);
        if (!export->names[value->id])
            TRY(claim(export, value, name));
        else if (!map_put_str(&export->used_names, name, &export->taken))
            return status_out_of_memory();
    }
    return NULL;
}

/* First the names that are there, then those that are missing. */
static tssa_status *name_value(struct export *export, const struct ir_value *value, bool fresh)
{
    if (!fresh)
        return keep_name(export, value);
    if (export->names[value->id] || !value->wanted)
        return NULL;
    const char *name;
    TRY(export_fresh_name(export, value->name && value->name[0] ? value->name : MADE_VALUE, &name));
    return claim(export, value, name);
}

static tssa_status *name_results(struct export *export, const struct ir_op *op, bool fresh)
{
    for (uint32_t i = 0; i < op->n_results; i++)
        TRY(name_value(export, &op->results[i], fresh));
    return NULL;
}

/* In the order of the file: a second export counts the same. */
static tssa_status *name_block(struct export *export, const struct ir_block *block, bool fresh)
{
    const struct ir_op *const *ops;
    size_t count;
    TRY(export_order(export, block, &ops, &count));
    for (uint32_t i = 0; i < block->n_params; i++)
        TRY(name_value(export, block->params[i], fresh));
    for (size_t i = 0; i < count; i++)
        if (export_is_initializer(export, ops[i]))
            TRY(name_results(export, ops[i], fresh));
    for (size_t i = 0; i < count; i++) {
        TRY(name_results(export, ops[i], fresh));
        for (uint32_t k = 0; k < ops[i]->n_blocks; k++)
            TRY(name_block(export, ops[i]->blocks[k], fresh));
    }
    return NULL;
}

tssa_status *export_assign_names(struct export *export)
{
    export->names = ARENA_ARRAY(&export->scratch, const char *, export->n_values);
    TRY_ALLOC(export->names);
    TRY(name_signature(export));
    TRY(name_block(export, export->graph->body, false));
    TRY(name_block(export, export->graph->body, true));
    return export->needs_empty ? name_value(export, &export->empty, true) : NULL;
}
