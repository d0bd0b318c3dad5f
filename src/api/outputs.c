/* SPDX-License-Identifier: Apache-2.0 */
/* tssa_model_keep_outputs: a model with some of its outputs, and what they need. */
#include <string.h>

#include "api/handles.h"
#include "base/float_mode.h"
#include "base/text.h"
#include "ir/clone.h"
#include "ir/rebuild.h"
#include "ir/verifier.h"

#define MAX_LISTED 1000 /* bytes of a message */

static tssa_status *unknown_output(const tssa_model *model, const char *name)
{
    struct text text;
    tssa_status *status = NULL;
    text_init(&text, model->graph->allocator);
    for (size_t i = 0; i < tssa_model_output_count(model) && !status; i++) {
        tssa_value_info info;
        if (text.size > MAX_LISTED) {
            text_puts(&text, ", ...");
            break;
        }
        status = tssa_model_output(model, i, &info);
        if (!status)
            text_printf(&text, "%s\"%s\"", i ? ", " : "", info.name);
    }
    if (!status)
        status = text_string(&text)
                     ? ERROR(TSSA_INVALID_ARGUMENT, "no output is named \"%s\"; the model has %s",
                             name, text_string(&text))
                     : status_out_of_memory();
    text_free(&text);
    return status;
}

/* The number of an output; of several with one name, which ONNX does not have, the first. */
static tssa_status *find_output(const tssa_model *model, const char *name, uint32_t *number)
{
    for (*number = 0; *number < tssa_model_output_count(model); ++*number) {
        tssa_value_info info;
        TRY(tssa_model_output(model, *number, &info));
        if (strcmp(info.name, name) == 0)
            return NULL;
    }
    return unknown_output(model, name);
}

static tssa_status *find_outputs(const tssa_model *model, size_t count, const char *const *names,
                                 uint32_t *numbers)
{
    for (size_t i = 0; i < count; i++) {
        if (!names[i])
            return ERROR(TSSA_INVALID_ARGUMENT, "tssa_model_keep_outputs: name %zu is NULL", i);
        TRY(find_output(model, names[i], &numbers[i]));
        for (size_t k = 0; k < i; k++)
            if (numbers[k] == numbers[i])
                return ERROR(TSSA_INVALID_ARGUMENT, "the output \"%s\" is named twice", names[i]);
    }
    return NULL;
}

/* A list with an entry per output, which may be absent. */
#define PICK(graph, list, type, count, numbers)                                                    \
    do {                                                                                           \
        type *picked_ = ARENA_ARRAY(&(graph)->arena, type, (count));                               \
        TRY_ALLOC(picked_);                                                                        \
        for (uint32_t i_ = 0; (list) && i_ < (count); i_++)                                        \
            picked_[i_] = (list)[(numbers)[i_]];                                                   \
        (list) = (list) ? picked_ : NULL;                                                          \
    } while (0)

static tssa_status *set_outputs(struct ir_graph *graph, uint32_t count, const uint32_t *numbers)
{
    struct ir_op *end = ir_block_return(graph->body);
    struct ir_value **values = ARENA_ARRAY(&graph->arena, struct ir_value *, count);
    TRY_ALLOC(values);
    for (uint32_t i = 0; i < count; i++)
        values[i] = ir_operand(end, numbers[i]);
    PICK(graph, graph->output_names, const char *, count, numbers);
    PICK(graph, graph->output_types, const struct ir_type *, count, numbers);
    PICK(graph, graph->output_notes, const struct ir_notes *, count, numbers);
    return ir_op_set_operands(end, count, values) ? NULL : status_out_of_memory();
}

/* Operators that tssa does not know have no effects either, but for what they compute. Users come
 * behind. */
static void remove_unneeded(struct ir_block *body)
{
    struct ir_op *previous;
    for (struct ir_op *op = ir_block_return(body)->prev; op; op = previous) {
        previous = op->prev;
        if (ir_op_is_used(op))
            continue;
        ir_release_blocks(op);
        ir_op_remove(op);
    }
}

static tssa_status *keep_outputs(struct ir_graph *graph, uint32_t count, const uint32_t *numbers)
{
    TRY(set_outputs(graph, count, numbers));
    if (!ir_block_is_imperative(
            graph->body)) /* what writes is needed, though nobody uses a result */
        remove_unneeded(graph->body);
    return ir_verify(graph);
}

tssa_status *tssa_model_keep_outputs(tssa_model *model, size_t count, const char *const *names)
{
    FLOAT_MODE_ENTER();
    if (!model || !names || count == 0)
        return ERROR(TSSA_INVALID_ARGUMENT, "tssa_model_keep_outputs: no outputs are named");
    TRY(model_change(model, true));
    struct ir_graph *graph = model->graph;
    uint32_t *numbers = ARENA_ARRAY(&graph->arena, uint32_t, count);
    TRY_ALLOC(numbers);
    TRY(find_outputs(model, count, names, numbers));
    TRY(keep_outputs(graph, (uint32_t)count, numbers));
    return model->raised ? keep_outputs(model->raised, (uint32_t)count, numbers) : NULL;
}
