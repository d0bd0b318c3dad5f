/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is read by places that a branch gives is read in the branch, if nobody else wants these:
 *
 *     p = If(c) { i } else { j }, y = x[p]   ->   y = If(c) { x[i] } else { x[j] }
 *
 * What finds places, and all that is read by them, can then be one launch of a device.
 *
 *   needs   types, a table of what kernels take, else nothing is done
 *   keeps   results' bits; no more is computed, and nothing less
 *   breaks  nothing
 */
#include "ir/clone.h"
#include "ir/fuse.h"
#include "ir/infer.h"
#include "ir/rule.h"
#include "passes/pass.h"

/* Is it made before the op, in its block or around it? */
static bool is_before(const struct ir_value *value, const struct ir_op *op)
{
    const struct ir_op *other = op;
    if (!value || !value->op || value->op->parent != op->parent)
        return true;
    while (other && other != value->op)
        other = other->prev;
    return other != NULL;
}

/* By the value, as places alone. */
static bool reads_by(const struct ir_op *op, const struct ir_value *value)
{
    const struct rule *rule = ir_op_is(op, IR_OP_access) ? rule_of(op) : NULL;
    if (op->opaque || ir_operand(op, 0) == value)
        return false;
    return rule ? rule->n_steps == 1 && rule->steps[0].kind == RULE_GATHER
                : ir_op_is(op, IR_OP_Gather);
}

/* What alone uses the result of the If, behind it in its block; NULL: it may not go there. */
static struct ir_op *reader_of(const struct ir_value *places, const struct ir_op *branch)
{
    struct ir_op *reader = places->uses && !places->uses->next ? places->uses->user : NULL;
    if (!reader || reader->parent != branch->parent || !reads_by(reader, places))
        return NULL;
    for (uint32_t i = 0; i < reader->n_operands; i++)
        if (ir_operand(reader, i) != places && !is_before(ir_operand(reader, i), branch))
            return NULL;
    return reader;
}

static tssa_status *read_inside(struct ir_cloner *cloner, const struct ir_op *reader,
                                const struct ir_value *places, struct ir_block *block)
{
    struct ir_op *ret = ir_block_return(block), *copy;
    ir_cloner_reset(cloner);
    if (!ir_cloner_map(cloner, places, ir_operand(ret, places->index)))
        return status_out_of_memory();
    TRY_ALLOC(copy = ir_clone_op(cloner, reader));
    TRY(pass_insert(copy, ret));
    copy->name = reader->name;
    ir_op_set_operand(ret, places->index, &copy->results[0]);
    return NULL;
}

static tssa_status *sink(struct pass_context *pass, struct ir_cloner *cloner, struct ir_op *branch,
                         struct ir_value *places)
{
    struct ir_op *reader = reader_of(places, branch);
    if (!reader)
        return NULL;
    for (uint32_t i = 0; i < branch->n_blocks; i++)
        TRY(read_inside(cloner, reader, places, branch->blocks[i]));
    TRY(pass_remark(pass, TSSA_REMARK_APPLIED, reader,
                    "read in the branches that find the places"));
    struct ir_value *read = &reader->results[0];
    for (uint32_t i = 0; i < reader->n_operands; i++)
        ir_op_set_operand(reader, i, NULL);
    places->name = read->name;
    places->declared = NULL;
    read->name = NULL;
    ir_value_replace(read, places);
    ir_op_remove(reader);
    pass->changed = true;
    return ir_infer_op_lenient(branch);
}

struct sinking {
    struct pass_context *pass;
    struct ir_cloner cloner;
};

static tssa_status *visit(void *context, struct ir_op *op)
{
    struct sinking *sinking = context;
    if (!ir_op_is(op, IR_OP_If) || op->opaque)
        return NULL;
    for (uint32_t i = 0; i < op->n_results; i++)
        TRY(sink(sinking->pass, &sinking->cloner, op, &op->results[i]));
    return NULL;
}

tssa_status *pass_sink_reads(struct pass_context *pass)
{
    struct sinking sinking = {.pass = pass};
    if (!pass->fusion || !(pass->fusion->classes & IR_FUSES_LISTS))
        return NULL;
    ir_cloner_init(&sinking.cloner, pass->graph);
    tssa_status *status = ir_block_walk(pass->graph->body, visit, &sinking);
    ir_cloner_free(&sinking.cloner);
    return status;
}
