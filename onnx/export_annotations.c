/* SPDX-License-Identifier: Apache-2.0 */
/* Quantization annotations, and the constants that only they name. */
#include "onnx/export.h"

static const struct ir_value *value_of(const struct export *export, const char *name)
{
    const void *owner = map_get_str(&export->used_names, name);
    return owner == &export->taken ? NULL : owner;
}

/* Every value that it names is there, or can be made. */
static bool is_whole(const struct export *export, const struct ir_annotation *annotation)
{
    for (size_t i = 0; i < annotation->n_parts; i++)
        if (!value_of(export, annotation->parts[i].name) && !annotation->parts[i].constant)
            return false;
    return true;
}

/* What only the annotation used may be gone from the graph. */
static tssa_status *put_part(struct export *export, const struct ir_annotation_part *part)
{
    if (map_get_str(&export->used_names, part->name))
        return NULL;
    if (!map_put_str(&export->used_names, part->name, &export->taken))
        return status_out_of_memory();
    return export_initializer(export, part->constant, part->name);
}

static void put_annotation(struct export *export, uint32_t field,
                           const struct ir_annotation *annotation)
{
    struct output_mark mark = output_open(&export->out, field);
    output_string(&export->out, 1, annotation->name);
    for (size_t i = 0; i < annotation->n_parts; i++)
        export_metadata(&export->out, 2, annotation->parts[i].key, annotation->parts[i].name);
    output_close(&export->out, mark);
}

tssa_status *export_annotations(struct export *export, uint32_t field, const struct ir_block *block)
{
    const struct ir_graph *graph = export->graph;
    for (size_t i = 0; i < graph->n_annotations; i++) {
        const struct ir_annotation *annotation = &graph->annotations[i];
        const struct ir_value *value = value_of(export, annotation->name);
        if (!value || (value->op ? value->op->parent : value->block) != block ||
            !is_whole(export, annotation))
            continue;
        for (size_t k = 0; k < annotation->n_parts; k++)
            TRY(put_part(export, &annotation->parts[k]));
        put_annotation(export, field, annotation);
    }
    return NULL;
}
