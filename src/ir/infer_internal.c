/* SPDX-License-Identifier: Apache-2.0 */
/* Inference of the rows of internal.def. */
#include "ir/infer.h"

/* No results, or results whose types nobody can tell. */
INFER_RULE(none)
{
    (void)graph;
    (void)op;
    return NULL;
}

/*
 * Opaque ops: what the model declares, and their blocks with what is declared there. Nowhere else
 * is a declaration believed: exporters leave stale value_info behind, and passes build on types.
 */
INFER_RULE(declared)
{
    for (uint32_t i = 0; i < op->n_results; i++) {
        struct ir_value *value = &op->results[i];
        value->type = value->declared ? value->declared : graph->types.unknown;
    }
    for (uint32_t i = 0; i < op->n_blocks; i++) {
        struct ir_block *block = op->blocks[i];
        for (uint32_t p = 0; p < block->n_params; p++)
            if (block->params[p]->declared)
                block->params[p]->type = block->params[p]->declared;
        TRY(ir_infer_block(block, false));
    }
    return NULL;
}

static tssa_status *constant_known(struct ir_graph *graph, struct ir_op *op,
                                   const struct tensor *tensor)
{
    size_t count = tensor_count(tensor);
    bool integral = dtype_is_integer(tensor->dtype) || tensor->dtype == TSSA_BOOL;
    if (!integral || tensor->rank > 1 || count > IR_KNOWN_MAX)
        return NULL;
    const struct dim *elements[IR_KNOWN_MAX];
    size_t width = tssa_dtype_size(tensor->dtype);
    for (size_t i = 0; i < count; i++)
        TRY(infer_element(graph, tensor->dtype, (const char *)tensor->data + i * width,
                          &elements[i]));
    return infer_set_known(op, 0, count, elements);
}

INFER_RULE(constant)
{
    const struct tensor *tensor = ir_attr_tensor(op, "value");
    if (!tensor)
        return ERROR(TSSA_MALFORMED, "no value");
    TRY(infer_set(op, 0,
                  type_tensor_const(&graph->types, tensor->dtype, tensor->rank, tensor->dims)));
    return constant_known(graph, op, tensor);
}
