/* SPDX-License-Identifier: Apache-2.0 */
/* Symbols, as the values of a run tell them. */
#include "runtime/executor.h"

/* What the value tells, if it has such an axis or element; else nothing is known. */
static int64_t told(const struct value *value, const struct plan_binding *binding)
{
    const struct tensor *tensor = &value->tensor;
    const uint32_t i = binding->index;
    if (value->kind != TSSA_KIND_TENSOR)
        return -1;
    if (!binding->is_element)
        return i < (uint32_t)tensor->rank ? tensor->dims[i] : -1;
    if (i >= tensor_count(tensor) ||
        !(dtype_is_integer(tensor->dtype) || tensor->dtype == TSSA_BOOL))
        return -1;
    const size_t size = dtype_info(tensor->dtype)->size;
    return dtype_load_int64(tensor->dtype, (const char *)tensor->data + i * size);
}

void bindings_read(struct run *run, const struct plan_bindings *bindings)
{
    for (uint32_t i = 0; i < bindings->count; i++) {
        const struct plan_binding *binding = &bindings->items[i];
        const int64_t symbol = told(&run->slots[binding->slot], binding);
        int64_t *most = &run->slab.most[binding->symbol];
        run->symbols[binding->symbol] = symbol;
        if (symbol > *most)
            *most = symbol;
    }
}
