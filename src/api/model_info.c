/* SPDX-License-Identifier: Apache-2.0 */
/* What a model says of itself: signature, operator counts, IR text. */
#include <stdlib.h>
#include <string.h>

#include "api/handles.h"
#include "base/float_mode.h"
#include "base/text.h"
#include "ir/printer.h"
#include "runtime/control.h"

/* ---- Signature ------------------------------------------------------------------------------- */

size_t tssa_model_input_count(const tssa_model *model)
{
    return model ? model->graph->body->n_params : 0;
}

size_t tssa_model_output_count(const tssa_model *model)
{
    return model ? ir_block_return(model->graph->body)->n_operands : 0;
}

static tssa_status *describe_dims(struct ir_graph *graph, const struct ir_type *type,
                                  tssa_value_info *info)
{
    for (int i = 0; i < type->rank; i++) {
        if (dim_is_const(type->dims[i], &info->dims[i]))
            continue;
        struct text text;
        text_init(&text, graph->allocator);
        dim_print(type->dims[i], &text);
        const char *printed = text_string(&text);
        info->dims[i] = -1;
        info->symbols[i] = printed ? intern_str(&graph->strings, printed) : NULL;
        text_free(&text);
        TRY_ALLOC(info->symbols[i]);
    }
    return NULL;
}

static tssa_status *describe_value(struct ir_graph *graph, const struct ir_value *value,
                                   const struct ir_type *declared, tssa_value_info *info)
{
    const struct ir_type *type = value->type;
    /* To look at, the model's word is better than none; and a wrong word is its signature all the
     * same. */
    if (declared && (type->kind == TYPE_UNKNOWN || (type->kind == TYPE_TENSOR && type->rank < 0) ||
                     !type_compatible(declared, type)))
        type = declared;
    *info = (tssa_value_info){.name = value->name ? value->name : "", .rank = -1};
    for (; type->kind == TYPE_OPTIONAL; type = type->element)
        info->is_optional = 1;
    if (type->kind == TYPE_SEQUENCE) {
        info->kind = TSSA_KIND_SEQUENCE;
        if (type->element->kind != TYPE_TENSOR)
            return NULL;
        info->dtype = type->element->dtype;
        info->rank = type->element->rank;
        if (info->rank > 0)
            return describe_dims(graph, type->element, info);
    } else if (type->kind == TYPE_MAP) {
        info->kind = TSSA_KIND_MAP;
        info->dtype = type->dtype;
    } else {
        info->kind = TSSA_KIND_TENSOR;
        info->dtype = type->dtype;
        info->rank = type->kind == TYPE_TENSOR ? type->rank : -1;
        if (info->rank > 0)
            return describe_dims(graph, type, info);
    }
    return NULL;
}

tssa_status *tssa_model_input(const tssa_model *model, size_t index, tssa_value_info *info)
{
    if (!model || !info || index >= tssa_model_input_count(model))
        return ERROR(TSSA_INVALID_ARGUMENT, "the model has no input %zu", index);
    struct ir_graph *graph = model->graph;
    const struct ir_value *value = graph->body->params[index];
    TRY(describe_value(graph, value, value->declared, info));
    info->has_default =
        (graph->input_defaults && graph->input_defaults[index]) || info->is_optional;
    return NULL;
}

tssa_status *tssa_model_output(const tssa_model *model, size_t index, tssa_value_info *info)
{
    if (!model || !info || index >= tssa_model_output_count(model))
        return ERROR(TSSA_INVALID_ARGUMENT, "the model has no output %zu", index);
    struct ir_graph *graph = model->graph;
    const struct ir_value *value = ir_operand(ir_block_return(graph->body), (uint32_t)index);
    const struct ir_type *declared = graph->output_types ? graph->output_types[index] : NULL;
    TRY(describe_value(graph, value, declared ? declared : value->declared, info));
    if (graph->output_names && graph->output_names[index])
        info->name = graph->output_names[index];
    return NULL;
}

static const char *or_empty(const char *text)
{
    return text ? text : "";
}

static tssa_status *add_constant(void *context, struct ir_op *op)
{
    tssa_model_info *info = context;
    const struct tensor *tensor = ir_op_is(op, IR_OP_Constant) ? ir_attr_tensor(op, "value") : NULL;
    if (tensor) {
        info->initializer_count++;
        info->initializer_bytes += tensor_bytes(tensor);
    }
    return NULL;
}

tssa_status *tssa_model_get_info(const tssa_model *model, tssa_model_info *info)
{
    if (!model || !info)
        return ERROR(TSSA_INVALID_ARGUMENT, "tssa_model_get_info: an argument is NULL");
    const struct ir_graph *graph = model->graph;
    *info = (tssa_model_info){.graph_name = or_empty(graph->name),
                              .producer = or_empty(graph->producer_name),
                              .ir_version = graph->ir_version,
                              .function_count = graph->n_functions,
                              .dropped = or_empty(graph->dropped)};
    for (size_t i = 0; i < graph->n_functions; i++)
        info->kept_function_count += graph->functions[i].stays;
    for (size_t i = 0; i < graph->n_opsets; i++)
        if (graph->opsets[i].domain[0] == '\0')
            info->opset = graph->opsets[i].version;
    return ir_block_walk(graph->body, add_constant, info);
}

/* ---- Operator counts ------------------------------------------------------------------------- */

struct op_counter {
    tssa_op_count *rows;
    size_t capacity, count;
    struct map seen; /* "domain:name" in the order of first appearance -> tally */
    struct arena arena;
};

struct tally {
    tssa_op_count row;
};

bool op_is_supported(const struct ir_op *op)
{
    return !ir_op_computes(op) ||
           (!op->opaque && (control_find(op) || device_find(NULL)->find_kernel(op)));
}

static tssa_status *count_op(void *context, struct ir_op *op)
{
    struct op_counter *counter = context;
    if (!ir_op_computes(op))
        return NULL;
    const char *domain = op->opaque ? op->opaque->domain : op->info->domain;
    const char *name = op->opaque ? op->opaque->name : op->info->name;
    char *key = arena_printf(&counter->arena, "%s:%s", domain, name);
    TRY_ALLOC(key);
    struct tally *tally = map_get_str(&counter->seen, key);
    if (!tally) {
        tally = ARENA_NEW(&counter->arena, struct tally);
        if (!tally || !map_put_str(&counter->seen, key, tally))
            return status_out_of_memory();
        tally->row = (tssa_op_count){.domain = domain,
                                     .name = name,
                                     .supported = 1,
                                     .function = op->opaque && op->opaque->function};
    }
    tally->row.count++;
    tally->row.nested += op->parent->owner != NULL;
    tally->row.supported &= op_is_supported(op);
    return NULL;
}

static int by_count(const void *a, const void *b)
{
    const struct tally *x = *(struct tally *const *)a, *y = *(struct tally *const *)b;
    if (x->row.count != y->row.count)
        return x->row.count > y->row.count ? -1 : 1;
    return strcmp(x->row.name, y->row.name);
}

static tssa_status *write_counts(struct op_counter *counter)
{
    size_t n = 0;
    struct tally **sorted = ARENA_ARRAY(&counter->arena, struct tally *, counter->seen.live);
    TRY_ALLOC(sorted);
    for (const struct map_entry *e = map_next(&counter->seen, NULL); e;
         e = map_next(&counter->seen, e))
        sorted[n++] = e->value;
    if (n)
        qsort(sorted, n, sizeof *sorted, by_count);
    for (size_t i = 0; i < n && i < counter->capacity; i++)
        counter->rows[i] = sorted[i]->row;
    counter->count = n;
    return NULL;
}

tssa_status *tssa_model_op_counts(const tssa_model *model, tssa_op_count *rows, size_t capacity,
                                  size_t *count)
{
    if (!model || !count || (capacity && !rows))
        return ERROR(TSSA_INVALID_ARGUMENT, "tssa_model_op_counts: an argument is NULL");
    struct op_counter counter = {.rows = rows, .capacity = capacity};
    map_init(&counter.seen, &model->context->allocator);
    arena_init(&counter.arena, &model->context->allocator);
    tssa_status *status = ir_block_walk(model->graph->body, count_op, &counter);
    if (!status)
        status = write_counts(&counter);
    map_free(&counter.seen);
    arena_clear(&counter.arena);
    if (!status)
        *count = counter.count;
    return status;
}

tssa_status *tssa_model_print(const tssa_model *model, void (*write)(void *, const char *, size_t),
                              void *user)
{
    FLOAT_MODE_ENTER();
    if (!model || !write)
        return ERROR(TSSA_INVALID_ARGUMENT, "tssa_model_print: an argument is NULL");
    struct text text;
    text_init(&text, &model->context->allocator);
    ir_print_graph(model->graph, false, &text);
    const char *printed = text_string(&text);
    if (printed)
        write(user, printed, text.size);
    text_free(&text);
    return printed ? NULL : status_out_of_memory();
}
