/* SPDX-License-Identifier: Apache-2.0 */
/* tssa_model_functions: what a model's functions are, and what became of them. */
#include <stdlib.h>

#include "api/handles.h"
#include "base/text.h"

static int by_count(const void *a, const void *b)
{
    const struct ir_function_op *x = *(const struct ir_function_op *const *)a;
    const struct ir_function_op *y = *(const struct ir_function_op *const *)b;
    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    return x < y ? -1 : x > y; /* else as in the file */
}

static void print_name(const struct ir_function_op *op, struct text *text)
{
    text_printf(text, "%s%s%s", op->domain, op->domain[0] ? ":" : "", op->name);
}

static tssa_status *print_operators(const tssa_allocator *allocator,
                                    const struct ir_function *function, struct text *text,
                                    size_t *total)
{
    const struct ir_function_op **sorted =
        allocator_calloc(allocator, function->n_ops + 1, sizeof *sorted);
    TRY_ALLOC(sorted);
    for (size_t i = 0; i < function->n_ops; i++) {
        sorted[i] = &function->ops[i];
        *total += sorted[i]->count;
    }
    qsort(sorted, function->n_ops, sizeof *sorted, by_count);
    for (size_t i = 0; i < function->n_ops; i++) {
        text_puts(text, i ? ", " : "");
        print_name(sorted[i], text);
        text_printf(text, " %zu", sorted[i]->count);
    }
    allocator_free(allocator, sorted);
    return NULL;
}

static tssa_status *visit_function(const tssa_allocator *allocator,
                                   const struct ir_function *function,
                                   void (*visit)(void *, const tssa_function_info *), void *user)
{
    const struct ir_function_op *unknown = ir_function_unknown(function);
    struct text operators, name;
    size_t total = 0;
    text_init(&operators, allocator);
    text_init(&name, allocator);
    tssa_status *status = print_operators(allocator, function, &operators, &total);
    if (unknown)
        print_name(unknown, &name);
    const char *listed = text_string(&operators), *named = text_string(&name);
    if (!status && (!listed || !named))
        status = status_out_of_memory();
    const tssa_function_info info = {
        .domain = function->domain,
        .name = function->name,
        .overload = function->overload,
        .op_count = total,
        .operators = listed,
        .calls = function->calls,
        .stays = function->stays,
        .needed = function->needed,
        .unknown = named,
    };
    if (!status)
        visit(user, &info);
    text_free(&operators);
    text_free(&name);
    return status;
}

tssa_status *tssa_model_functions(const tssa_model *model,
                                  void (*visit)(void *, const tssa_function_info *), void *user)
{
    if (!model || !visit)
        return ERROR(TSSA_INVALID_ARGUMENT, "tssa_model_functions: an argument is NULL");
    const struct ir_graph *graph = model->graph;
    for (size_t i = 0; i < graph->n_functions; i++)
        TRY(visit_function(&model->context->allocator, &graph->functions[i], visit, user));
    return NULL;
}
