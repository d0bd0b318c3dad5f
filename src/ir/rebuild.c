/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/rebuild.h"

#include <string.h>

static struct ir_graph *graph_of(const struct ir_op *op)
{
    return op->parent->graph;
}

/* ---- Ops and blocks -------------------------------------------------------------------------- */

bool ir_op_set_operands(struct ir_op *op, uint32_t n, struct ir_value *const *values)
{
    struct ir_use *uses = ARENA_ARRAY(&graph_of(op)->arena, struct ir_use, n);
    struct ir_value **kept = ARENA_ARRAY(&graph_of(op)->arena, struct ir_value *, n);
    if (!uses || !kept)
        return false;
    if (n)
        memcpy(kept, values, n * sizeof *kept);
    for (uint32_t i = 0; i < op->n_operands; i++)
        ir_op_set_operand(op, i, NULL);
    op->operands = uses;
    op->n_operands = n;
    for (uint32_t i = 0; i < n; i++) {
        uses[i].user = op;
        ir_op_set_operand(op, i, kept[i]);
    }
    return true;
}

bool ir_op_add_operand(struct ir_op *op, struct ir_value *value)
{
    uint32_t n = op->n_operands;
    struct ir_value **values = ARENA_ARRAY(&graph_of(op)->arena, struct ir_value *, (size_t)n + 1);
    if (!values)
        return false;
    for (uint32_t i = 0; i < n; i++)
        values[i] = op->operands[i].value;
    values[n] = value;
    return ir_op_set_operands(op, n + 1, values);
}

/* `to` becomes what `from` was. */
static void take_over(struct ir_value *to, struct ir_value *from)
{
    to->name = from->name;
    to->type = from->type;
    to->declared = from->declared;
    to->known = from->known;
    to->wanted = from->wanted;
    from->name = NULL;
    ir_value_replace(from, to);
}

bool ir_op_set_results(struct ir_op *op, uint32_t n, const uint32_t *from)
{
    struct ir_graph *graph = graph_of(op);
    struct ir_value *old = op->results;
    struct ir_value *results = ARENA_ARRAY(&graph->arena, struct ir_value, n);
    if (!results)
        return false;
    op->results = results;
    op->n_results = n;
    for (uint32_t i = 0; i < n; i++) {
        results[i] = (struct ir_value){.id = graph->n_values++,
                                       .index = i,
                                       .type = graph->types.unknown,
                                       .op = op,
                                       .wanted = true};
        if (from[i] != IR_FRESH)
            take_over(&results[i], &old[from[i]]);
    }
    return true;
}

bool ir_block_set_params(struct ir_block *block, uint32_t n, const uint32_t *from)
{
    uint32_t capacity = 1, fresh = block->n_params;
    for (uint32_t i = 0; i < n; i++)
        if (from[i] == IR_FRESH && !ir_block_add_param(block))
            return false;
    while (capacity < n) /* ir_block_add_param counts on a power of two */
        capacity *= 2;
    struct ir_value **params = ARENA_ARRAY(&block->graph->arena, struct ir_value *, capacity);
    if (!params)
        return false;
    for (uint32_t i = 0; i < n; i++) {
        params[i] = block->params[from[i] == IR_FRESH ? fresh++ : from[i]];
        params[i]->index = i;
    }
    block->params = params;
    block->n_params = n;
    return true;
}

/* ---- Control flow ---------------------------------------------------------------------------- */

static uint32_t scan_states(const struct ir_op *op)
{
    return op->n_operands - (uint32_t)ir_attr_int(op, "num_scan_inputs", 0) - (op->version == 8);
}

uint32_t ir_loop_carried(const struct ir_op *op)
{
    if (ir_op_is(op, IR_OP_Scan))
        return scan_states(op);
    return ir_op_is(op, IR_OP_Loop) && op->n_operands > 2 ? op->n_operands - 2 : 0;
}

uint32_t ir_loop_operand(const struct ir_op *op, uint32_t carried)
{
    return carried + (ir_op_is(op, IR_OP_Loop) ? 2 : op->version == 8);
}

uint32_t ir_loop_param(const struct ir_op *op, uint32_t carried)
{
    return carried + (ir_op_is(op, IR_OP_Loop) ? 2 : 0);
}

uint32_t ir_loop_return(const struct ir_op *op, uint32_t result)
{
    return result + (ir_op_is(op, IR_OP_Loop) ? 1 : 0);
}

/* The operands of `op` but for those from `first` on that `drop` tells of. */
static bool drop_operands(struct ir_op *op, uint32_t first, uint32_t count, const bool *drop)
{
    uint32_t n = 0;
    struct ir_value **values = ARENA_ARRAY(&graph_of(op)->arena, struct ir_value *, op->n_operands);
    if (!values)
        return false;
    for (uint32_t i = 0; i < op->n_operands; i++)
        if (i < first || i >= first + count || !drop[i - first])
            values[n++] = op->operands[i].value;
    return ir_op_set_operands(op, n, values);
}

static bool drop_params(struct ir_block *block, uint32_t first, uint32_t count, const bool *drop)
{
    uint32_t n = 0;
    uint32_t *from = ARENA_ARRAY(&block->graph->arena, uint32_t, block->n_params);
    if (!from)
        return false;
    for (uint32_t i = 0; i < block->n_params; i++)
        if (i < first || i >= first + count || !drop[i - first])
            from[n++] = i;
    return ir_block_set_params(block, n, from);
}

static bool drop_results(struct ir_op *op, const bool *drop)
{
    uint32_t n = 0;
    uint32_t *from = ARENA_ARRAY(&graph_of(op)->arena, uint32_t, op->n_results);
    if (!from)
        return false;
    for (uint32_t i = 0; i < op->n_results; i++)
        if (!drop[i])
            from[n++] = i;
    return ir_op_set_results(op, n, from);
}

/* One number per scan output. */
static bool drop_numbers(struct ir_op *op, const char *name, uint32_t n_states, const bool *drop)
{
    const struct ir_attr *attr = ir_attr(op, name);
    if (!attr || attr->kind != IR_ATTR_INTS)
        return true;
    struct ir_attr changed = *attr;
    int64_t *numbers = ARENA_ARRAY(&graph_of(op)->arena, int64_t, attr->count);
    if (!numbers)
        return false;
    changed.count = 0;
    for (size_t i = 0; i < attr->count; i++)
        if (n_states + i >= op->n_results || !drop[n_states + i])
            numbers[changed.count++] = attr->ints[i];
    changed.ints = numbers;
    return ir_op_set_attr(graph_of(op), op, &changed);
}

bool ir_control_drop_results(struct ir_op *op, const bool *drop)
{
    uint32_t carried = ir_loop_carried(op);
    for (uint32_t i = 0; i < op->n_blocks; i++)
        if (!drop_operands(ir_block_return(op->blocks[i]), ir_loop_return(op, 0), op->n_results,
                           drop))
            return false;
    if (carried && (!drop_params(op->blocks[0], ir_loop_param(op, 0), carried, drop) ||
                    !drop_operands(op, ir_loop_operand(op, 0), carried, drop)))
        return false;
    if (ir_op_is(op, IR_OP_Scan) && (!drop_numbers(op, "scan_output_axes", carried, drop) ||
                                     !drop_numbers(op, "scan_output_directions", carried, drop)))
        return false;
    return drop_results(op, drop);
}

bool ir_fuse_drop_operands(struct ir_op *op, const bool *drop)
{
    const uint32_t n = op->n_operands;
    return drop_params(op->blocks[0], 0, n, drop) && drop_operands(op, 0, n, drop);
}
