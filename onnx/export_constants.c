/* SPDX-License-Identifier: Apache-2.0 */
/* Constants: which are initializers of their graph, which are nodes, and which are gone. */
#include "base/dtype.h"
#include "onnx/export.h"
#include "onnx/schema.h"

/* Constants that passes made are initializers from this size on, and nodes below. */
#define INITIALIZER_MIN 1024

/* Since this version initializers need not be inputs, which those of a subgraph cannot be. */
#define FREE_INITIALIZERS 4

/* Whether the operator Constant can hold the type. */
static bool schema_makes(int64_t opset, tssa_dtype dtype)
{
    const struct schema *schema = schema_find("Constant", schema_bind("Constant", opset));
    return !schema || dtype_in(schema->output_types[0], dtype);
}

bool export_is_initializer(const struct export *export, const struct ir_op *op)
{
    const struct tensor *tensor = ir_op_is(op, IR_OP_Constant) ? ir_attr_tensor(op, "value") : NULL;
    if (!tensor)
        return false;
    if (op->origin == IR_ORIGIN_INITIALIZER)
        return export->ir_version >= FREE_INITIALIZERS || !op->parent->owner;
    if (export->ir_version < FREE_INITIALIZERS)
        return false;
    size_t size = tensor->dtype == TSSA_STRING ? 0 : tensor_bytes(tensor);
    if (export->external.location && size >= export->external.threshold)
        return true; /* external data is for initializers alone */
    return op->origin == IR_ORIGIN_MADE &&
           (size >= INITIALIZER_MIN || !schema_makes(export->opset, tensor->dtype));
}

bool export_is_dropped(const struct export *export, const struct ir_op *op)
{
    return ir_op_is(op, IR_OP_Constant) && op->results[0].uses &&
           !bitset_has(&export->needed, op->results[0].id);
}

tssa_status *export_constant(struct export *export, const struct ir_op *op)
{
    const struct ir_value *value = &op->results[0];
    if (export->ir_version < FREE_INITIALIZERS)
        TRY(export_value_info(export, GRAPH_INPUT, export->names[value->id], value->type));
    return export_tensor(export, GRAPH_INITIALIZER, ir_attr_tensor(op, "value"),
                         export->names[value->id], op->notes, true);
}

tssa_status *export_initializer(struct export *export, const struct tensor *tensor,
                                const char *name)
{
    const struct ir_type type = {.kind = TYPE_TENSOR, .dtype = tensor->dtype, .rank = -1};
    if (export->ir_version < FREE_INITIALIZERS)
        TRY(export_value_info(export, GRAPH_INPUT, name, &type));
    return export_tensor(export, GRAPH_INITIALIZER, tensor, name, NULL, true);
}

tssa_status *export_other_initializers(struct export *export)
{
    const struct ir_graph *graph = export->graph;
    for (uint32_t i = 0; i < graph->body->n_params && graph->input_defaults; i++)
        if (graph->input_defaults[i])
            TRY(export_tensor(export, GRAPH_INITIALIZER, graph->input_defaults[i],
                              export->names[graph->body->params[i]->id],
                              graph->default_notes ? graph->default_notes[i] : NULL, true));
    if (!export->needs_empty)
        return NULL;
    const struct tensor empty = {.dtype = TSSA_FLOAT, .rank = 1};
    const char *name = export->names[export->empty.id];
    if (export->ir_version < FREE_INITIALIZERS)
        TRY(export_value_info(export, GRAPH_INPUT, name, export->empty.type));
    return export_tensor(export, GRAPH_INITIALIZER, &empty, name, NULL, false);
}
