/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/layers.h"

#include <string.h>

#include "ir/fuse.h"

bool layers_may_have(const struct ir_op *op)
{
    return recurrent_cell_of(op) && !op->opaque;
}

const char *layers_refuses(const struct ir_op *layer)
{
    const struct ir_value *x = ir_operand(layer, RECURRENT_X);
    if (strcmp(ir_attr_str(layer, "direction", "forward"), "forward") != 0)
        return "a layer needs its last steps first";
    if (ir_attr_int(layer, "layout", 0) != 0)
        return "its sequences are one behind the other";
    if (ir_operand(layer, RECURRENT_LENGTHS))
        return "its sequences end at steps of their own";
    if (!x || x->type->kind != TYPE_TENSOR || !dtype_in(T_F32F64, x->type->dtype))
        return "what is computed is rounded between the layers";
    return NULL;
}

/* Of the op that gives the layer its inputs: what makes its operand. */
static const struct ir_op *view_of(const struct ir_op *layer)
{
    const struct ir_value *x = ir_operand(layer, RECURRENT_X);
    const struct ir_op *view = x ? x->op : NULL;
    return view && view->n_operands && !view->opaque && ir_op_keeps_order(view) ? view : NULL;
}

const struct ir_op *layers_before(const struct ir_op *layer)
{
    const struct ir_op *view = view_of(layer);
    const struct ir_value *y = view ? ir_operand(view, 0) : NULL;
    const struct ir_op *before = y ? y->op : NULL;
    return before && y->index == 0 && layers_may_have(before) && before->parent == layer->parent &&
                   view->parent == layer->parent
               ? before
               : NULL;
}

/* Is it [steps, 1, sequences, states] without its second axis? */
static bool drops_directions(const struct ir_type *from, const struct ir_type *to)
{
    return from->kind == TYPE_TENSOR && to->kind == TYPE_TENSOR && from->rank == 4 &&
           to->rank == 3 && dim_is(from->dims[1], 1) && to->dims[0] == from->dims[0] &&
           to->dims[1] == from->dims[2] && to->dims[2] == from->dims[3];
}

static bool is_read_once(const struct ir_value *value)
{
    return value->uses && !value->uses->next;
}

const char *layers_refuses_next(const struct ir_op *before, const struct ir_op *layer)
{
    const struct ir_op *view = view_of(layer);
    const char *why = layers_refuses(before);
    if (!why)
        why = layers_refuses(layer);
    if (why)
        return why;
    if (before->info != layer->info)
        return "they are of two kinds";
    if (!is_read_once(&before->results[0]) || !is_read_once(&view->results[0]))
        return "others read what lies between them";
    return drops_directions(before->results[0].type, view->results[0].type)
               ? NULL
               : "what lies between them takes another shape";
}

/* The layer behind this one, and a view, in the block. */
static const struct ir_op *next_of(const struct ir_op *layer)
{
    const struct ir_op *next = layer->next ? layer->next->next : NULL;
    return next && layers_may_have(next) && layers_before(next) == layer &&
                   view_of(next) == layer->next && !layers_refuses_next(layer, next)
               ? next
               : NULL;
}

bool layers_find(const struct ir_op *op, struct layers *found)
{
    const struct ir_block *body = ir_fuse_body(op);
    const struct ir_op *layer = body && layers_may_have(body->first) ? body->first : NULL;
    const struct ir_op *last = layer;
    for (found->n = 0; layer && found->n < LAYERS_MOST; layer = next_of(layer)) {
        found->ops[found->n++] = layer;
        last = layer;
    }
    return found->n > 1 && last->next && ir_op_is(last->next, IR_OP_return);
}
