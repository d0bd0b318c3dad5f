/* SPDX-License-Identifier: Apache-2.0 */
/* Values that control flow reads and makes; see control.h. */
#include <string.h>

#include "runtime/control.h"
#include "runtime/executor.h"

void control_set_result(struct run *run, const struct step *step, uint32_t index,
                        struct value *value)
{
    struct value *slot = run->outputs[step->first_output + index];
    if (slot)
        value_move(slot, value);
    else
        value_release(value);
}

tssa_status *control_scalar(struct run *run, tssa_dtype dtype, int64_t value, struct value *out)
{
    struct buffer *buffer = pool_alloc(&run->pool, sizeof value);
    TRY_ALLOC(buffer);
    dtype_store_int64(dtype, buffer->data, value);
    *out = (struct value){
        .kind = TSSA_KIND_TENSOR,
        .tensor = {.dtype = dtype, .rank = 0, .data = buffer->data, .owner = buffer}};
    return NULL;
}

static tssa_status *read_scalar(const struct value *value, const char *what, int64_t *result)
{
    const struct tensor *tensor = &value->tensor;
    if (value->kind != TSSA_KIND_TENSOR || tensor_count(tensor) != 1 ||
        !(dtype_is_integer(tensor->dtype) || tensor->dtype == TSSA_BOOL))
        return ERROR(TSSA_RUNTIME, "%s must be one integer or bool", what);
    *result = dtype_load_int64(tensor->dtype, tensor->data);
    return NULL;
}

tssa_status *control_read_bool(const struct value *value, const char *what, bool *result)
{
    int64_t integer = 0;
    TRY(read_scalar(value, what, &integer));
    *result = integer != 0;
    return NULL;
}

tssa_status *control_read_int(const struct value *value, const char *what, int64_t *result)
{
    return read_scalar(value, what, result);
}

static const struct ir_type *type_of(const struct ir_value *value)
{
    const struct ir_type *type = value->type;
    bool vague = type->kind == TYPE_UNKNOWN || (type->kind == TYPE_TENSOR && type->rank < 0);
    return vague && value->declared ? value->declared : type;
}

/* What the inputs tell of a dim; -1: nothing. */
static int64_t known_dim(const struct run *run, const struct ir_type *type, int axis)
{
    int64_t dim;
    return plan_dim(run->plan, run->symbols, run->plan->n_input_symbols, type->dims[axis], &dim)
               ? dim
               : -1;
}

/* The value, where the body returns what it captures: that is there, though the body was not run.
 */
static const struct tensor *captured(const struct run *run, const struct ir_value *source,
                                     const struct ir_block *body)
{
    const struct ir_block *block = source->op ? source->op->parent : source->block;
    const struct value *value = &run->slots[plan_value(run->plan, source)->id];
    const bool there = block != body && value->kind == TSSA_KIND_TENSOR;
    return there && value->tensor.rank < TSSA_MAX_RANK ? &value->tensor : NULL;
}

void control_empty_element(const struct run *run, const struct ir_op *returned, uint32_t index,
                           struct tensor *element)
{
    const struct ir_value *source = ir_operand(returned, index);
    const struct ir_type *type = type_of(source), *declared = source->declared;
    const struct tensor *there = captured(run, source, returned->parent);
    if (there) {
        *element = (struct tensor){.dtype = there->dtype, .rank = there->rank};
        memcpy(element->dims, there->dims, (size_t)there->rank * sizeof *there->dims);
        return;
    }
    bool known = type->kind == TYPE_TENSOR && type->rank >= 0 && type->rank < TSSA_MAX_RANK;
    *element = (struct tensor){.dtype = TSSA_FLOAT, .rank = known ? type->rank : 0};
    if (type->kind == TYPE_TENSOR && type->dtype != TSSA_UNDEFINED)
        element->dtype = type->dtype;
    bool says = declared && declared->kind == TYPE_TENSOR && declared->rank == element->rank;
    for (int i = 0; i < element->rank; i++) {
        int64_t *dim = &element->dims[i];
        *dim = known_dim(run, type, i);
        if (*dim < 0 && says)
            *dim = known_dim(run, declared, i);
        if (*dim < 0)
            *dim = 0;
    }
}
