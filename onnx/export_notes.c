/* SPDX-License-Identifier: Apache-2.0 */
/* Documentation and metadata. */
#include "onnx/export.h"

void export_metadata(struct output *out, uint32_t field, const char *key, const char *value)
{
    struct output_mark entry = output_open(out, field);
    output_string(out, 1, key);
    output_string(out, 2, value);
    output_close(out, entry);
}

void export_notes(struct output *out, const struct ir_notes *notes, uint32_t doc_field,
                  uint32_t metadata_field)
{
    if (!notes)
        return;
    output_string(out, doc_field, notes->doc);
    for (size_t i = 0; i < notes->n_metadata; i++)
        export_metadata(out, metadata_field, notes->metadata[i].key, notes->metadata[i].value);
}

tssa_status *export_collect_notes(struct export *export)
{
    const struct ir_graph *graph = export->graph;
    for (size_t i = 0; i < graph->n_value_notes; i++)
        if (!map_put_str(&export->value_notes, graph->value_notes[i].name,
                         (void *)graph->value_notes[i].notes))
            return status_out_of_memory();
    return NULL;
}
