/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/fuse.h"

#include "ir/clone.h"
#include "ir/rule.h"

bool ir_fuse_reads(const struct ir_op *op, uint32_t operand)
{
    return !ir_op_is(op, IR_OP_CastLike) || operand == 0;
}

/* The mask by which alone an access chooses; NULL: it chooses otherwise, too. */
static struct ir_value *mask_of_rule(const struct ir_op *op)
{
    const struct rule *rule = rule_of(op);
    return rule->n_steps == 1 && rule->steps[0].kind == RULE_MASK
               ? rule_param_value(op, &rule->steps[0].params[1])
               : NULL;
}

struct ir_value *ir_fuse_mask(const struct ir_op *op)
{
    if (ir_op_is(op, IR_OP_access))
        return mask_of_rule(op);
    return ir_operand(op, ir_op_is(op, IR_OP_Compress) ? 1 : 0);
}

static bool is_list(const struct ir_value *value)
{
    return value && value->type->kind == TYPE_TENSOR && value->type->rank == 1;
}

/* Along which it keeps, of an op that may; -1: of all elements in order, whatever axes they have.
 */
static int64_t axis_of(const struct ir_op *op)
{
    if (ir_op_is(op, IR_OP_access))
        return rule_of(op)->steps[0].params[0].value;
    if (!ir_op_is(op, IR_OP_Compress) || !ir_attr(op, "axis"))
        return ir_operand(op, 0)->type->rank == 1 ? 0 : -1;
    const int64_t axis = ir_op_axis(op);
    return axis < 0 ? axis + ir_operand(op, 0)->type->rank : axis;
}

bool ir_fuse_keeps_rows(const struct ir_type *type, int64_t axis, const struct ir_value *mask)
{
    if (type->kind != TYPE_TENSOR || axis < 0 || axis >= type->rank ||
        type->dims[axis] != mask->type->dims[0])
        return false;
    for (int i = 0; i < axis; i++)
        if (!dim_is(type->dims[i], 1))
            return false;
    return true;
}

bool ir_fuse_keeps(const struct ir_op *op)
{
    if (op->opaque || (!ir_op_is(op, IR_OP_Compress) && !ir_op_is(op, IR_OP_NonZero) &&
                       !ir_op_is(op, IR_OP_access)))
        return false;
    const struct ir_value *x = ir_operand(op, 0), *mask = ir_fuse_mask(op);
    return x && is_list(mask) && mask->type->dtype == TSSA_BOOL &&
           ir_fuse_keeps_rows(x->type, axis_of(op), mask);
}

int64_t ir_fuse_columns(const struct ir_type *type, int64_t axis)
{
    int64_t n;
    if (type->rank == 1)
        return 1;
    return type->rank == 2 && axis == 0 && dim_is_const(type->dims[1], &n) && n > 1 &&
                   n <= IR_FUSE_COLUMNS
               ? n
               : 0;
}

int64_t ir_fuse_kept_columns(const struct ir_op *op)
{
    return ir_fuse_keeps(op) ? ir_fuse_columns(ir_operand(op, 0)->type, axis_of(op)) : 0;
}

int ir_fuse_kept_axis(const struct ir_op *op)
{
    return (int)axis_of(op);
}

bool ir_fuse_moves(const struct ir_op *op, uint32_t operand)
{
    if (ir_fuse_keeps(op))
        return operand == 0 && !is_list(ir_operand(op, 0));
    return ir_op_is(op, IR_OP_access) || ir_op_is(op, IR_OP_Concat) || ir_op_is(op, IR_OP_Range) ||
           op->info->cls == IR_CLASS_GATHER || (ir_op_is(op, IR_OP_assign) && operand > 0);
}

/* Is operand `operand` of an access the indices of a gather? */
static bool is_index(const struct ir_op *op, uint32_t operand)
{
    const struct rule *rule = rule_of(op);
    for (uint32_t i = 0; i < rule->n_steps; i++)
        if (rule->steps[i].kind == RULE_GATHER &&
            (uint64_t)rule->steps[i].params[1].value + rule_first_operand(op) == operand)
            return true;
    return false;
}

bool ir_fuse_moves_elements(const struct ir_op *op, uint32_t operand)
{
    if (ir_fuse_keeps(op))
        return operand == 0 && ir_fuse_kept_columns(op) > 1;
    if (ir_op_is(op, IR_OP_access))
        return operand == 0 || is_index(op, operand);
    return ir_op_is(op, IR_OP_Concat) || op->info->cls == IR_CLASS_GATHER ||
           (ir_op_is(op, IR_OP_assign) && operand == 1);
}

enum { LISTS_FOUND = 256, LISTS_SORTED = 512 };

uint32_t ir_fuse_lists(const struct ir_op *op)
{
    const struct ir_value *x = op->n_operands && !op->opaque ? ir_operand(op, 0) : NULL;
    if (!x || x->type->kind != TYPE_TENSOR)
        return 0;
    const tssa_dtype dtype = x->type->dtype;
    const int rank = x->type->rank;
    if (ir_op_is(op, IR_OP_NonZero))
        return dtype == TSSA_BOOL && (rank == 1 || rank == 2) ? LISTS_FOUND : 0;
    return ir_op_is(op, IR_OP_TopK) && rank == 1 && ir_operand(op, 1) &&
                   dtype_in(T_F32F64 | T_INT, dtype)
               ? LISTS_SORTED | (uint32_t)dtype
               : 0;
}

struct ir_block *ir_fuse_body(const struct ir_op *op)
{
    return ir_op_is(op, IR_OP_fuse) ? ir_op_block(op, IR_FUSE_BODY) : NULL;
}

const struct ir_op *ir_fuse_boxes(const struct ir_op *op)
{
    const struct ir_block *body = ir_fuse_body(op);
    return body && ir_op_is(body->first, IR_OP_NonMaxSuppression) ? body->first : NULL;
}

/* Does it add a parameter of the block to the value? */
static bool adds_param(const struct ir_op *op, const struct ir_value *value, uint32_t *param)
{
    const bool first = op->n_operands == 2 && ir_operand(op, 0) == value;
    const struct ir_value *other = op->n_operands == 2 ? ir_operand(op, first) : NULL;
    if (!ir_op_is(op, IR_OP_Add) || !other || ir_operand(op, !first) != value ||
        other->block != op->parent)
        return false;
    *param = other->index;
    return true;
}

bool ir_fuse_convolves(const struct ir_op *op, struct ir_fuse_convolution *found)
{
    const struct ir_block *body = ir_fuse_body(op);
    if (!body || !ir_op_is(body->first, IR_OP_Conv) || op->n_results != 1)
        return false;
    *found = (struct ir_fuse_convolution){.conv = body->first};
    const struct ir_value *value = &body->first->results[0];
    const struct ir_op *next = body->first->next;
    for (uint32_t i = 0; i < found->conv->n_operands; i++)
        if (ir_operand(found->conv, i) != body->params[i])
            return false;
    if (adds_param(next, value, &found->added)) {
        found->adds = true;
        value = &next->results[0];
        next = next->next;
    }
    if (ir_op_is(next, IR_OP_Relu) && ir_operand(next, 0) == value) {
        found->clips = true;
        value = &next->results[0];
        next = next->next;
    }
    return ir_op_is(next, IR_OP_return) && ir_operand(next, 0) == value;
}

struct ir_value *ir_fuse_operand(const struct ir_value *value)
{
    const struct ir_op *op = value->block ? value->block->owner : NULL;
    return op && ir_op_is(op, IR_OP_fuse) ? ir_operand(op, value->index) : NULL;
}

struct ir_value *ir_fuse_returned(const struct ir_op *op, uint32_t result)
{
    const struct ir_block *body = ir_fuse_body(op);
    const struct ir_op *ret = body ? ir_block_return(body) : NULL;
    struct ir_value *value = ret ? ir_operand(ret, result) : NULL;
    if (!value || !ir_result_wanted(op, result) || !value->op ||
        ir_op_is(value->op, IR_OP_Constant))
        return NULL;
    for (uint32_t i = 0; i < result; i++)
        if (ir_operand(ret, i) == value && ir_result_wanted(op, i))
            return NULL;
    return value;
}

struct ir_op *ir_fuse_loop(const struct ir_op *op)
{
    const struct ir_block *body = ir_fuse_body(op);
    struct ir_op *first = body ? body->first : NULL;
    const bool loops = first && (ir_op_is(first, IR_OP_Loop) || ir_op_is(first, IR_OP_Scan));
    return loops && first->next && ir_op_is(first->next, IR_OP_return) && ir_fuse_iteration(first)
               ? first
               : NULL;
}

/* Does it compute a number, as of a place? */
static bool is_number(const struct ir_op *op)
{
    const struct ir_type *type = op->n_results == 1 ? op->results[0].type : NULL;
    return type && op->info->ew && !op->opaque && (op->info->flags & IR_PURE) &&
           type->kind == TYPE_TENSOR && type->rank == 0 && dtype_is_integer(type->dtype);
}

struct ir_op *ir_fuse_iteration(const struct ir_op *loop)
{
    struct ir_op *found = NULL;
    if (loop->n_blocks != 1)
        return NULL;
    for (struct ir_op *op = loop->blocks[0]->first; op; op = op->next) {
        if (ir_op_is(op, IR_OP_Constant) || ir_op_is(op, IR_OP_return) || is_number(op))
            continue;
        if (found || !ir_fuse_body(op) || ir_fuse_loop(op))
            return NULL;
        found = op;
    }
    return found;
}

bool ir_fuse_is_inside(const struct ir_op *op)
{
    const struct ir_op *owner = op->parent->owner;
    for (; owner; owner = owner->parent->owner)
        if (ir_op_is(owner, IR_OP_fuse))
            return true;
    return false;
}

/* ---- Inlining -------------------------------------------------------------------------------- */

void ir_fuse_inline(struct ir_op *op)
{
    struct ir_block *body = ir_fuse_body(op);
    struct ir_op *ret = ir_block_return(body);
    for (uint32_t i = 0; i < body->n_params; i++)
        ir_value_replace(body->params[i], ir_operand(op, i));
    ir_move_ops(body, op);
    for (uint32_t i = 0; i < op->n_results; i++) {
        struct ir_value *result = &op->results[i], *value = ir_operand(ret, i);
        ir_value_replace(result, value);
        if (!value->name && result->wanted) {
            value->name = result->name;
            result->name = NULL;
        }
    }
    ir_release_blocks(op);
    ir_op_remove(op);
}

static bool inline_block(struct ir_block *block)
{
    bool changed = false;
    struct ir_op *next;
    for (struct ir_op *op = block->first; op; op = next) {
        next = op->next;
        for (uint32_t i = 0; i < op->n_blocks; i++)
            changed |= inline_block(op->blocks[i]);
        if (!ir_fuse_body(op))
            continue;
        ir_fuse_inline(op);
        changed = true;
    }
    return changed;
}

void ir_fuse_inline_all(struct ir_graph *graph, bool *changed)
{
    *changed |= inline_block(graph->body);
}

/* ---- Copies without -------------------------------------------------------------------------- */

tssa_status *ir_fuse_unfused(const struct ir_graph *graph, struct ir_graph **copy,
                             const struct ir_graph **unfused)
{
    *copy = NULL;
    *unfused = graph;
    if (!ir_block_has(graph->body, IR_OP_fuse))
        return NULL;
    TRY(ir_clone_graph(graph, copy));
    inline_block((*copy)->body);
    *unfused = *copy;
    return NULL;
}
