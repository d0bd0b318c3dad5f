/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/symbols.h"

tssa_status *symbols_init(struct symbol_scope *scope, struct plan *plan, struct arena *scratch)
{
    const uint32_t n_dims = plan->graph->dims.n_dims;
    *scope = (struct symbol_scope){.plan = plan};
    vec_init(&scope->symbols, plan->arena.allocator);
    vec_init(&scope->order, plan->arena.allocator);
    vec_init(&scope->made, plan->arena.allocator);
    scope->numbers = ARENA_ARRAY(&plan->arena, uint32_t, n_dims);
    scope->bound = ARENA_ARRAY(scratch, bool, n_dims);
    TRY_ALLOC(scope->numbers);
    TRY_ALLOC(scope->bound);
    plan->symbol_numbers = scope->numbers;
    plan->n_symbol_numbers = n_dims;
    return NULL;
}

void symbols_free(struct symbol_scope *scope)
{
    vec_free(&scope->symbols);
    vec_free(&scope->order);
    vec_free(&scope->made);
}

static tssa_status *bind(struct symbol_scope *scope, const struct dim *dim, struct plan_binding at)
{
    if (!dim || dim->kind != DIM_SYMBOL || scope->bound[dim->id])
        return NULL;
    if (!scope->numbers[dim->id]) { /* else it was bound in a block that has ended */
        if (!vec_push(&scope->symbols, dim))
            return status_out_of_memory();
        scope->numbers[dim->id] = (uint32_t)scope->symbols.count;
    }
    at.symbol = scope->numbers[dim->id] - 1;
    if (!vec_push(&scope->made, at) || !vec_push(&scope->order, dim->id))
        return status_out_of_memory();
    scope->bound[dim->id] = true;
    return NULL;
}

tssa_status *symbols_bind_shape(struct symbol_scope *scope, const struct ir_value *value,
                                uint32_t slot)
{
    const struct ir_type *type = value->type;
    for (int i = 0; type->kind == TYPE_TENSOR && i < type->rank; i++)
        TRY(bind(scope, type->dims[i], (struct plan_binding){.slot = slot, .index = (uint32_t)i}));
    return NULL;
}

tssa_status *symbols_bind_elements(struct symbol_scope *scope, const struct ir_value *value,
                                   uint32_t slot)
{
    if (plan_space(scope->plan, value) != SPACE_HOST)
        slot += scope->plan->n_values;
    for (size_t i = 0; i < value->known->count; i++)
        TRY(bind(scope, value->known->elements[i],
                 (struct plan_binding){.slot = slot, .index = (uint32_t)i, .is_element = true}));
    return NULL;
}

tssa_status *symbols_take(struct symbol_scope *scope, const struct plan_bindings **bindings)
{
    const size_t count = scope->made.count;
    *bindings = NULL;
    if (!count)
        return NULL;
    struct plan_bindings *taken = ARENA_NEW(&scope->plan->arena, struct plan_bindings);
    TRY_ALLOC(taken);
    taken->count = (uint32_t)count;
    taken->items = arena_copy(&scope->plan->arena, scope->made.data, count * sizeof *taken->items);
    TRY_ALLOC(taken->items);
    scope->made.count = 0;
    *bindings = taken;
    return NULL;
}

size_t symbols_enter(const struct symbol_scope *scope)
{
    return scope->order.count;
}

void symbols_leave(struct symbol_scope *scope, size_t mark)
{
    while (scope->order.count > mark)
        scope->bound[scope->order.data[--scope->order.count]] = false;
}

static bool is_known(const struct symbol_scope *scope, const struct dim *dim)
{
    if (dim->kind == DIM_SYMBOL)
        return scope->bound[dim->id];
    for (uint32_t i = 0; i < dim->n_terms; i++)
        if (!is_known(scope, dim->terms[i]))
            return false;
    return true;
}

bool symbols_size(const struct symbol_scope *scope, const struct ir_value *value)
{
    const struct ir_type *type = value->type;
    if (type->kind != TYPE_TENSOR || type->rank < 0 || type->dtype == TSSA_UNDEFINED ||
        type->dtype == TSSA_STRING)
        return false;
    for (int i = 0; i < type->rank; i++)
        if (!is_known(scope, type->dims[i]))
            return false;
    return true;
}

tssa_status *symbols_finish(struct symbol_scope *scope)
{
    struct plan *plan = scope->plan;
    plan->n_symbols = (uint32_t)scope->symbols.count;
    if (!plan->n_symbols)
        return NULL;
    plan->symbols = arena_copy(&plan->arena, scope->symbols.data,
                               plan->n_symbols * sizeof *scope->symbols.data);
    TRY_ALLOC(plan->symbols);
    return NULL;
}

/* ---- While a plan is run, or laid out -------------------------------------------------------- */

int plan_symbol(const struct plan *plan, const struct dim *symbol)
{
    return symbol->id < plan->n_symbol_numbers ? (int)plan->symbol_numbers[symbol->id] - 1 : -1;
}

struct binding {
    const struct plan *plan;
    const int64_t *values;
    uint32_t count;
};

static bool lookup(void *context, const struct dim *symbol, int64_t *value)
{
    const struct binding *binding = context;
    int index = plan_symbol(binding->plan, symbol);
    if (index < 0 || (uint32_t)index >= binding->count || binding->values[index] < 0)
        return false;
    *value = binding->values[index];
    return true;
}

bool plan_dim(const struct plan *plan, const int64_t *symbols, uint32_t count,
              const struct dim *dim, int64_t *value)
{
    struct binding binding = {plan, symbols, count};
    return dim_eval(dim, lookup, &binding, value);
}

size_t plan_type_size(const struct plan *plan, const int64_t *symbols, uint32_t count,
                      const struct ir_type *type)
{
    size_t bytes = tssa_dtype_size(type->dtype);
    for (int i = 0; i < type->rank; i++) {
        int64_t value;
        if (!plan_dim(plan, symbols, count, type->dims[i], &value) || value < 0 ||
            !size_mul(bytes, (size_t)value, &bytes))
            return SIZE_MAX;
    }
    return bytes;
}
