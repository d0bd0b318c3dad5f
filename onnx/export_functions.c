/* SPDX-License-Identifier: Apache-2.0 */
/* Definitions of functions, which go out as they came. */
#include "onnx/export.h"
#include "onnx/schema.h"
#include "onnx/wire.h"

/* Recursion ends: functions do not call themselves. */
void export_need_function(struct export *export, const struct ir_function *function)
{
    if (bitset_has(&export->functions, function->index))
        return;
    bitset_add(&export->functions, function->index);
    for (size_t i = 0; i < function->n_ops; i++)
        if (function->ops[i].callee)
            export_need_function(export, function->ops[i].callee);
}

void export_need_kept_functions(struct export *export)
{
    const struct ir_graph *graph = export->graph;
    for (size_t i = 0; i < graph->n_functions && graph->keeps_functions; i++)
        if (graph->functions[i].can_stay)
            export_need_function(export, &graph->functions[i]);
}

/* ONNX's checker wants every operator of a function to be of the same version as in the model. */
static tssa_status *check_function(const struct ir_function *function, int64_t opset)
{
    for (size_t i = 0; i < function->n_ops; i++) {
        const struct ir_function_op *op = &function->ops[i];
        if (op->callee || op->domain[0])
            continue;
        int theirs = schema_bind(op->name, function->opset), ours = schema_bind(op->name, opset);
        if (theirs != ours)
            return ERROR(
                TSSA_UNSUPPORTED,
                "function \"%s\" stays a function, of opset %lld, and a model of opset %lld "
                "has another %s (unless the function is inlined)",
                function->name, (long long)function->opset, (long long)opset, op->name);
    }
    return NULL;
}

tssa_status *export_check_functions(const struct export *export, int64_t opset)
{
    const struct ir_graph *graph = export->graph;
    for (size_t i = 0; i < graph->n_functions; i++)
        if (bitset_has(&export->functions, i))
            TRY(check_function(&graph->functions[i], opset));
    return NULL;
}

void export_put_functions(struct export *export, uint32_t field)
{
    const struct ir_graph *graph = export->graph;
    for (size_t i = 0; i < graph->n_functions; i++)
        if (bitset_has(&export->functions, i))
            wire_put_bytes(&export->out.bytes, field, graph->functions[i].definition,
                           graph->functions[i].definition_size);
}
