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
