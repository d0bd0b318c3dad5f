/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TensorSSA conversion, step 3: after update(x', x), in its block and in those inside, x' is used
 * in the place of x. An update says then which version came before: update(x'', x').
 *
 *   needs   block_propagation before it
 *   keeps   everything else
 *   breaks  as rewrite_mutation does; with it done, the graph means what the imperative program
 *           meant
 *
 * One walk in program order, with the version that each value has there.
 */
#include "base/vec.h"
#include "passes/pass.h"

struct old {
    uint32_t id;
    struct ir_value *version;
};

struct renaming {
    struct pass_context *pass;
    struct ir_value **versions; /* by value id; NULL: the value itself */
    VEC(struct old) undo;       /* what versions were before, newest last */
};

static void use_versions(struct renaming *renaming, struct ir_op *op, uint32_t first)
{
    for (uint32_t i = first; i < op->n_operands; i++) {
        const struct ir_value *value = ir_operand(op, i);
        struct ir_value *version = value ? renaming->versions[value->id] : NULL;
        if (!version || version == value)
            continue;
        ir_op_set_operand(op, i, version);
        renaming->pass->changed = true;
    }
}

static tssa_status *take_update(struct renaming *renaming, struct ir_op *op)
{
    uint32_t id = ir_operand(op, 1)->id;
    struct ir_value *version = ir_operand(op, 0);
    struct old old = {id, renaming->versions[id]};
    if (!vec_push(&renaming->undo, old))
        return status_out_of_memory();
    use_versions(renaming, op, 1);
    renaming->versions[id] = version;
    return NULL;
}

static tssa_status *rename_block(struct renaming *renaming, struct ir_block *block)
{
    size_t before = renaming->undo.count;
    for (struct ir_op *op = block->first; op; op = op->next) {
        if (ir_op_is(op, IR_OP_update))
            TRY(take_update(renaming, op));
        else
            use_versions(renaming, op, 0);
        for (uint32_t i = 0; i < op->n_blocks; i++)
            TRY(rename_block(renaming, op->blocks[i]));
    }
    while (renaming->undo.count > before) {
        const struct old *old = &renaming->undo.data[--renaming->undo.count];
        renaming->versions[old->id] = old->version;
    }
    return NULL;
}

static tssa_status *run(struct renaming *renaming)
{
    TRY_ALLOC(renaming->versions);
    return rename_block(renaming, renaming->pass->graph->body);
}

tssa_status *pass_rename(struct pass_context *pass)
{
    const struct ir_graph *graph = pass->graph;
    struct renaming renaming = {.pass = pass, .undo = VEC_INIT(graph->allocator)};
    if (!graph->has_mutation)
        return NULL;
    renaming.versions =
        allocator_calloc(graph->allocator, graph->n_values, sizeof *renaming.versions);
    tssa_status *status = run(&renaming);
    allocator_free(graph->allocator, renaming.versions);
    vec_free(&renaming.undo);
    return status;
}
