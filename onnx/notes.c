/* SPDX-License-Identifier: Apache-2.0 */
/* Documentation and metadata of parts of a model. */
#include "onnx/import.h"

static tssa_status *copy_pair(struct import *import, const Onnx__StringStringEntryProto *entry,
                              struct ir_string_pair *pair)
{
    struct intern_table *strings = &import->graph->strings;
    pair->key = intern_str(strings, entry->key ? entry->key : "");
    pair->value = intern_str(strings, entry->value ? entry->value : "");
    return pair->key && pair->value ? NULL : status_out_of_memory();
}

tssa_status *import_notes(struct import *import, const char *doc,
                          Onnx__StringStringEntryProto *const *metadata, size_t n_metadata,
                          const struct ir_notes **notes)
{
    struct arena *arena = &import->graph->arena;
    *notes = NULL;
    if ((!doc || !doc[0]) && n_metadata == 0)
        return NULL;
    struct ir_notes *made = ARENA_NEW(arena, struct ir_notes);
    struct ir_string_pair *pairs = ARENA_ARRAY(arena, struct ir_string_pair, n_metadata);
    if (!made || !pairs)
        return status_out_of_memory();
    if (doc && doc[0]) {
        made->doc = intern_str(&import->graph->strings, doc);
        TRY_ALLOC(made->doc);
    }
    for (size_t i = 0; i < n_metadata; i++)
        TRY(copy_pair(import, metadata[i], &pairs[i]));
    made->metadata = pairs;
    made->n_metadata = n_metadata;
    *notes = made;
    return NULL;
}

/* ---- Values ---------------------------------------------------------------------------------- */

tssa_status *notes_of_value(struct import *import, const Onnx__ValueInfoProto *info,
                            const struct ir_value *value)
{
    struct ir_value_notes entry = {.name = value->name};
    TRY(import_notes(import, info->doc_string, info->metadata_props, info->n_metadata_props,
                     &entry.notes));
    if (entry.notes && value->name && !vec_push(&import->value_notes, entry))
        return status_out_of_memory();
    return NULL;
}

/* ---- The graph's ----------------------------------------------------------------------------- */

tssa_status *notes_finish(struct import *import)
{
    struct ir_graph *graph = import->graph;
    graph->n_value_notes = import->value_notes.count;
    graph->n_annotations = import->annotations.count;
    graph->value_notes = arena_copy(&graph->arena, import->value_notes.data,
                                    graph->n_value_notes * sizeof *graph->value_notes);
    graph->annotations = arena_copy(&graph->arena, import->annotations.data,
                                    graph->n_annotations * sizeof *graph->annotations);
    return graph->value_notes && graph->annotations ? NULL : status_out_of_memory();
}
