/* SPDX-License-Identifier: Apache-2.0 */
/* tssa_model_cut_unsupported: the part of a model that tssa can run. */
#include <string.h>

#include "api/handles.h"
#include "base/float_mode.h"
#include "ir/clone.h"
#include "ir/infer.h"
#include "ir/rebuild.h"
#include "ir/verifier.h"
#include "runtime/control.h"

static tssa_status *note_unsupported(void *found, struct ir_op *op)
{
    *(bool *)found |= !op_is_supported(op);
    return NULL;
}

static tssa_status *is_runnable(struct ir_op *op, bool *runnable)
{
    bool found = !op_is_supported(op);
    for (uint32_t i = 0; i < op->n_blocks && !found; i++)
        TRY(ir_block_walk(op->blocks[i], note_unsupported, &found));
    *runnable = !found;
    return NULL;
}

/* ---- Inputs in place of results -------------------------------------------------------------- */

/* What is known of the result, or else the element type of what the op is given. */
static const struct ir_type *input_type(struct ir_graph *graph, const struct ir_op *op,
                                        const struct ir_value *result)
{
    const struct ir_type *type = result->type;
    if ((type->kind == TYPE_UNKNOWN || type->dtype == TSSA_UNDEFINED) && result->declared)
        type = result->declared;
    if (type->kind != TYPE_UNKNOWN && (type->kind != TYPE_TENSOR || type->dtype != TSSA_UNDEFINED))
        return type;
    tssa_dtype dtype = infer_dtype(op, 0);
    return type_unranked(&graph->types, dtype == TSSA_UNDEFINED ? TSSA_FLOAT : dtype);
}

static tssa_status *add_input(struct ir_graph *graph, const struct ir_op *op,
                              struct ir_value *result)
{
    struct ir_value *param = ir_block_add_param(graph->body);
    TRY_ALLOC(param);
    param->type = input_type(graph, op, result);
    TRY_ALLOC(param->type);
    param->name = result->name;
    result->name = NULL;
    ir_value_replace(result, param);
    return NULL;
}

/* ---- Outputs in place of operands ------------------------------------------------------------ */

static tssa_status *add_output(struct ir_graph *graph, struct ir_value *value, const char *of,
                               uint32_t index)
{
    struct ir_op *end = ir_block_return(graph->body);
    uint32_t n = end->n_operands;
    const char **names = ARENA_ARRAY(&graph->arena, const char *, n + 1);
    char *name = arena_printf(&graph->arena, "%s/operand %u", of, (unsigned)index);
    TRY_ALLOC(names);
    TRY_ALLOC(name);
    if (n && graph->output_names)
        memcpy((void *)names, graph->output_names, n * sizeof *names);
    names[n] = name;
    graph->output_names = names;
    graph->output_types = NULL;
    return ir_op_add_operand(end, value) ? NULL : status_out_of_memory();
}

/* ---------------------------------------------------------------------------------------------- */

static tssa_status *cut(struct ir_graph *graph, struct ir_op *op)
{
    const char *of = op->n_results && op->results[0].name ? op->results[0].name : "?";
    /* What an op with blocks is given may have been rewritten, as the op itself. */
    for (uint32_t i = 0; i < op->n_operands && op->n_blocks == 0; i++)
        if (op->operands[i].value)
            TRY(add_output(graph, op->operands[i].value, of, i));
    for (uint32_t i = 0; i < op->n_results; i++)
        if (op->results[i].uses)
            TRY(add_input(graph, op, &op->results[i]));
    ir_release_blocks(op);
    ir_op_remove(op);
    return NULL;
}

/* The defaults have an entry per input. */
static tssa_status *extend_defaults(struct ir_graph *graph, uint32_t before)
{
    uint32_t n = graph->body->n_params;
    if (!graph->input_defaults || n == before)
        return NULL;
    const struct tensor **defaults = ARENA_ARRAY(&graph->arena, const struct tensor *, n);
    TRY_ALLOC(defaults);
    if (before)
        memcpy((void *)defaults, graph->input_defaults, before * sizeof *defaults);
    graph->input_defaults = defaults;
    return NULL;
}

tssa_status *tssa_model_cut_unsupported(tssa_model *model, size_t *count)
{
    FLOAT_MODE_ENTER();
    if (!model || !count)
        return ERROR(TSSA_INVALID_ARGUMENT, "tssa_model_cut_unsupported: an argument is NULL");
    TRY(model_change(model, false));
    struct ir_graph *graph = model->graph;
    uint32_t n_inputs = graph->body->n_params;
    size_t n = 0;
    for (struct ir_op *op = graph->body->first, *next; op; op = next) {
        bool runnable = true;
        next = op->next;
        if (ir_op_computes(op))
            TRY(is_runnable(op, &runnable));
        if (runnable)
            continue;
        TRY(cut(graph, op));
        n++;
    }
    TRY(extend_defaults(graph, n_inputs));
    TRY(ir_infer_graph(graph));
    TRY(ir_verify(graph));
    *count = n;
    return NULL;
}
