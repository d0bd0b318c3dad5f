/* SPDX-License-Identifier: Apache-2.0 */
/* The names that a graph or a function's body sees, and those that its values get. */
#include <stdio.h>
#include <string.h>

#include "ir/infer.h"
#include "onnx/import.h"
#include "onnx/made_names.h"

/* Of a name that has to be made unique, no more is kept. */
#define MAX_REPEATED_NAME 200

/* How often a name was asked for. */
struct name_use {
    uint64_t next;
};

tssa_status *scope_init(struct scope *scope, struct import *import, struct scope *parent,
                        struct frame *frame, struct ir_block *block, unsigned depth)
{
    *scope = (struct scope){
        .import = import, .parent = parent, .frame = frame, .block = block, .depth = depth};
    map_init(&scope->values, import->allocator);
    map_init(&scope->hints, import->allocator);
    if (depth > IMPORT_MAX_DEPTH)
        return ERROR(TSSA_LIMIT, "subgraphs and function calls are nested more than %d deep",
                     IMPORT_MAX_DEPTH);
    return NULL;
}

void scope_free(struct scope *scope)
{
    map_free(&scope->values);
    map_free(&scope->hints);
}

struct ir_value *scope_find(const struct scope *scope, const char *name)
{
    for (; scope; scope = scope->parent) {
        struct ir_value *value = map_get_str(&scope->values, name);
        if (value)
            return value;
    }
    return NULL;
}

tssa_status *scope_bind(struct scope *scope, const char *name, struct ir_value *value)
{
    if (map_get_str(&scope->values, name))
        return ERROR(TSSA_MALFORMED, "\"%s\" is defined twice", name);
    if (!map_put_str(&scope->values, name, value))
        return status_out_of_memory();
    return NULL;
}

/* `name`, or "name_1", "name_2", ... when a value of the graph has it already: subgraphs and
 * function bodies may use the same names. */
static tssa_status *unique_name(struct import *import, const char *name, const char **unique)
{
    struct intern_table *strings = &import->graph->strings;
    struct name_use *use = map_get_str(&import->used_names, name);
    *unique = intern_str(strings, name);
    TRY_ALLOC(*unique);
    if (use) {
        int kept = (int)utf8_cut(name, strlen(name), MAX_REPEATED_NAME);
        do {
            char text[MAX_REPEATED_NAME + 32];
            snprintf(text, sizeof text, "%.*s_%llu", kept, name, (unsigned long long)++use->next);
            *unique = intern_str(strings, text);
            TRY_ALLOC(*unique);
        } while (map_get_str(&import->used_names, *unique));
    }
    struct name_use *own = ARENA_NEW(&import->scratch, struct name_use);
    if (!own || !map_put_str(&import->used_names, *unique, own))
        return status_out_of_memory();
    return NULL;
}

/* What value_info says about a name. Hints of ranks above TSSA_MAX_RANK are ignored, not refused:
 * the value itself may never be made. */
static tssa_status *declare(const struct scope *scope, const char *name, struct ir_value *value)
{
    const Onnx__ValueInfoProto *info = map_get_str(&scope->hints, name);
    const struct ir_type *type;
    if (!info || !info->type)
        return NULL;
    tssa_status *status = import_type(scope->import, info->type, &type);
    if (status && tssa_status_code(status) == TSSA_LIMIT) {
        tssa_status_free(status);
        return NULL;
    }
    if (status)
        return status_prefix(status, "type of \"%s\"", name);
    value->declared = type;
    return NULL;
}

tssa_status *scope_define(struct scope *scope, const char *name, struct ir_value *value)
{
    TRY(scope_bind(scope, name, value));
    TRY(declare(scope, name, value));
    if (made_value_name(name) && (scope->block->owner || !value->block))
        return NULL;
    const char *shown = map_get_str(&scope->frame->call_names, name);
    TRY(unique_name(scope->import, shown && !scope->parent ? shown : name, &value->name));
    return scope_note(scope, name, value);
}

tssa_status *scope_note(const struct scope *scope, const char *name, const struct ir_value *value)
{
    const Onnx__ValueInfoProto *info = map_get_str(&scope->hints, name);
    return info && value->name ? notes_of_value(scope->import, info, value) : NULL;
}

tssa_status *scope_collect_hints(struct scope *scope, Onnx__ValueInfoProto *const *infos,
                                 size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (infos[i]->name && !map_put_str(&scope->hints, infos[i]->name, infos[i]))
            return status_out_of_memory();
    return NULL;
}

/* ---- What the scope's block is given --------------------------------------------------------- */

tssa_status *scope_spend(const struct scope *scope, uint64_t amount)
{
    struct import *import = scope->import;
    if (!scope->frame->function)
        return NULL;
    if (amount > import->expansion_left)
        return ERROR(TSSA_LIMIT, "inlining the model's functions takes too many nodes");
    import->expansion_left -= amount;
    return NULL;
}

tssa_status *scope_append(struct scope *scope, struct ir_op *op)
{
    ir_op_append(scope->block, op);
    if (!scope->import->eager)
        return NULL;
    tssa_status *status = ir_infer_op(op);
    if (tssa_status_code(status) == TSSA_OUT_OF_MEMORY)
        return status;
    /* Parameters of subgraphs have declared types only, which may be wrong. What really cannot be
     * is told when the whole graph is inferred. */
    tssa_status_free(status);
    return NULL;
}
