/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of functions, in the place of which bodies go (ONNX 1.22.0, docs/IR.md, "Functions"). */
#include <string.h>

#include "onnx/import.h"

static tssa_status *bind_attr(struct frame *frame, struct import *import, const char *name,
                              struct bound_attr bound)
{
    struct bound_attr *own = ARENA_NEW(&import->scratch, struct bound_attr);
    TRY_ALLOC(own);
    *own = bound;
    if (!map_put_str(&frame->attrs, name, own))
        return status_out_of_memory();
    return NULL;
}

/* The attributes of the call, then the defaults of those it leaves out. */
static tssa_status *bind_attrs(struct scope *caller, const Onnx__NodeProto *node,
                               struct scope *body)
{
    const Onnx__FunctionProto *proto = body->frame->function->proto;
    for (size_t i = 0; i < node->n_attribute; i++) {
        struct bound_attr bound = attribute_resolve(caller, node->attribute[i]);
        if (bound.proto && node->attribute[i]->name)
            TRY(bind_attr(body->frame, body->import, node->attribute[i]->name, bound));
    }
    for (size_t i = 0; i < proto->n_attribute_proto; i++) {
        const Onnx__AttributeProto *attribute = proto->attribute_proto[i];
        if (attribute->name && !map_get_str(&body->frame->attrs, attribute->name))
            TRY(bind_attr(body->frame, body->import, attribute->name,
                          (struct bound_attr){attribute, body}));
    }
    return NULL;
}

static tssa_status *bind_inputs(const struct scope *caller, const Onnx__NodeProto *node,
                                struct scope *body)
{
    const Onnx__FunctionProto *proto = body->frame->function->proto;
    if (node->n_input > proto->n_input)
        return ERROR(TSSA_MALFORMED, "it has %zu inputs and the function takes %zu", node->n_input,
                     proto->n_input);
    for (size_t i = 0; i < proto->n_input; i++) {
        const char *name = i < node->n_input ? node->input[i] : "";
        struct ir_value *value = name[0] ? scope_find(caller, name) : &body->import->absent;
        if (!value)
            return ERROR(TSSA_MALFORMED, "input \"%s\" is defined nowhere", name);
        if (proto->input[i][0])
            TRY(scope_bind(body, proto->input[i], value));
    }
    return NULL;
}

/* The caller's names for the outputs, which their values shall have. */
static tssa_status *name_call_outputs(const struct scope *caller, const Onnx__NodeProto *node,
                                      struct scope *body)
{
    const Onnx__FunctionProto *proto = body->frame->function->proto;
    if (node->n_output > proto->n_output)
        return ERROR(TSSA_MALFORMED, "it has %zu outputs and the function gives %zu",
                     node->n_output, proto->n_output);
    for (size_t i = 0; i < node->n_output; i++) {
        const char *shown =
            caller->parent ? NULL : map_get_str(&caller->frame->call_names, node->output[i]);
        if (!shown)
            shown = node->output[i];
        if (shown[0] && !map_put_str(&body->frame->call_names, proto->output[i], (void *)shown))
            return status_out_of_memory();
    }
    return NULL;
}

static tssa_status *bind_outputs(struct scope *caller, const Onnx__NodeProto *node,
                                 const struct scope *body)
{
    const Onnx__FunctionProto *proto = body->frame->function->proto;
    for (size_t i = 0; i < node->n_output; i++) {
        if (!node->output[i][0])
            continue;
        struct ir_value *value = scope_find(body, proto->output[i]);
        if (!value)
            return ERROR(TSSA_MALFORMED, "the function does not define its output \"%s\"",
                         proto->output[i]);
        TRY(scope_bind(caller, node->output[i], value));
        if (value->name && strcmp(value->name, node->output[i]) == 0)
            TRY(scope_note(caller, node->output[i], value));
    }
    return NULL;
}

static tssa_status *inline_body(struct scope *caller, const Onnx__NodeProto *node,
                                struct scope *body)
{
    const Onnx__FunctionProto *proto = body->frame->function->proto;
    TRY(scope_spend(body, 1 + (uint64_t)proto->n_input + proto->n_output + proto->n_value_info +
                              proto->n_attribute_proto));
    TRY(bind_attrs(caller, node, body));
    TRY(bind_inputs(caller, node, body));
    TRY(name_call_outputs(caller, node, body));
    TRY(scope_collect_hints(body, proto->value_info, proto->n_value_info));
    TRY(import_nodes(body, proto->node, proto->n_node));
    return bind_outputs(caller, node, body);
}

tssa_status *function_inline(struct scope *caller, const Onnx__NodeProto *node,
                             const struct function *function)
{
    struct import *import = caller->import;
    struct frame frame = {.function = function, .opsets = function->opsets};
    map_init(&frame.attrs, import->allocator);
    map_init(&frame.call_names, import->allocator);
    struct scope body;
    tssa_status *status = scope_init(&body, import, NULL, &frame, caller->block, caller->depth + 1);
    import->inlining++;
    if (!status)
        status = inline_body(caller, node, &body);
    import->inlining--;
    scope_free(&body);
    map_free(&frame.call_names);
    map_free(&frame.attrs);
    return status;
}
