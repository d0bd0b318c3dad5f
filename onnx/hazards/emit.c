/* SPDX-License-Identifier: Apache-2.0 */
/* Ops that are written in the place of one. */
#include <string.h>

#include "base/dtype.h"
#include "onnx/hazard.h"

static void *failed(struct hazard_rewrite *rewrite)
{
    rewrite->failed = true;
    return NULL;
}

static const struct ir_type *tensor_type(struct arena *arena, tssa_dtype dtype)
{
    struct ir_type *type = ARENA_NEW(arena, struct ir_type);
    if (type)
        *type = (struct ir_type){.kind = TYPE_TENSOR, .dtype = dtype, .rank = -1};
    return type;
}

/* An op in no block, with room for two attributes. */
static struct ir_op *new_op(struct hazard_rewrite *rewrite, enum ir_op_id id, tssa_dtype dtype,
                            uint32_t n)
{
    struct arena *arena = &rewrite->export->scratch;
    struct ir_op *op = ARENA_NEW(arena, struct ir_op);
    if (!op)
        return failed(rewrite);
    *op = (struct ir_op){.info = ir_op_info(id),
                         .origin = IR_ORIGIN_MADE,
                         .name = rewrite->op->name,
                         .n_operands = n,
                         .n_results = 1,
                         .operands = ARENA_ARRAY(arena, struct ir_use, n),
                         .results = ARENA_NEW(arena, struct ir_value),
                         .attrs = ARENA_ARRAY(arena, struct ir_attr, 2),
                         .parent = rewrite->op->parent};
    const struct ir_type *type = tensor_type(arena, dtype);
    if ((n && !op->operands) || !op->results || !op->attrs || !type)
        return failed(rewrite);
    op->version = ir_op_bind(op->info, IR_NEWEST_OPSET);
    op->results[0] = (struct ir_value){
        .id = (uint32_t)(rewrite->export->n_values++), .type = type, .op = op, .wanted = true};
    if (!vec_push(&rewrite->made, op))
        return failed(rewrite);
    return op;
}

static struct ir_op *last_op(const struct hazard_rewrite *rewrite)
{
    return (struct ir_op *)rewrite->made.data[rewrite->made.count - 1];
}

static void set_attr(struct hazard_rewrite *rewrite, struct ir_attr attr)
{
    if (rewrite->failed)
        return;
    struct ir_op *op = last_op(rewrite);
    op->attrs[op->n_attrs++] = attr;
}

void hazard_set_int(struct hazard_rewrite *rewrite, const char *name, int64_t number)
{
    set_attr(rewrite, (struct ir_attr){.name = name, .kind = IR_ATTR_INT, .i = number});
}

void hazard_set_string(struct hazard_rewrite *rewrite, const char *name, const char *text)
{
    set_attr(rewrite,
             (struct ir_attr){.name = name, .kind = IR_ATTR_STRING, .s = {text, strlen(text)}});
}

const struct ir_value *hazard_emit(struct hazard_rewrite *rewrite, enum ir_op_id id,
                                   tssa_dtype dtype, uint32_t n,
                                   const struct ir_value *const *operands)
{
    if (rewrite->failed)
        return NULL;
    struct ir_op *op = new_op(rewrite, id, dtype, n);
    for (uint32_t i = 0; op && i < n; i++)
        op->operands[i] = (struct ir_use){.user = op, .value = (struct ir_value *)operands[i]};
    return op ? &op->results[0] : NULL;
}

static const struct ir_value *constant(struct hazard_rewrite *rewrite, tssa_dtype dtype, int rank,
                                       size_t count, const void *elements)
{
    if (rewrite->failed)
        return NULL;
    struct arena *arena = &rewrite->export->scratch;
    struct tensor *tensor = ARENA_NEW(arena, struct tensor);
    void *data = arena_copy(arena, elements, count * dtype_info(dtype)->size);
    struct ir_op *op = new_op(rewrite, IR_OP_Constant, dtype, 0);
    if (!tensor || !data || !op)
        return failed(rewrite);
    *tensor = (struct tensor){.dtype = dtype, .rank = rank, .dims = {(int64_t)count}, .data = data};
    set_attr(rewrite, (struct ir_attr){.name = "value", .kind = IR_ATTR_TENSOR, .tensor = tensor});
    return &op->results[0];
}

const struct ir_value *hazard_bool(struct hazard_rewrite *rewrite, bool truth)
{
    const uint8_t element = truth;
    return constant(rewrite, TSSA_BOOL, 0, 1, &element);
}

const struct ir_value *hazard_ints(struct hazard_rewrite *rewrite, int rank, size_t count,
                                   const int64_t *numbers)
{
    return constant(rewrite, TSSA_INT64, rank, count, numbers);
}

const struct ir_value *hazard_int(struct hazard_rewrite *rewrite, int rank, int64_t number)
{
    return hazard_ints(rewrite, rank, 1, &number);
}
