/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ops that compute what an op before them has computed go: same operator, attributes and operands,
 * in the same block or in one around it. Constants are equal by element type, shape and bytes, and
 * ops with blocks by what is in them. A block that reads its parameters alone (IR_ISOLATED) sees
 * nothing of what is around it.
 *
 *   needs   nothing
 *   keeps   types, known elements, order; ops that are not pure
 *   breaks  nothing
 *
 * One walk with a table of the ops that are visible: what a block added is taken out at its end.
 */
#include "base/hash.h"
#include "ir/equal.h"
#include "passes/pass.h"

/* Ops of one hash that are compared: more of them are not equal, but made to look so. */
#define MAX_COMPARED 8

#define NONE UINT32_MAX

struct visible {
    struct ir_op *op;
    uint64_t hash;
    uint32_t next; /* of the same slot, added before; NONE */
};

struct table {
    struct pass_context *pass;
    struct ir_cloner map;
    struct visible *visible;   /* a stack */
    uint32_t n_visible, first; /* of them, the first that can be seen from here */
    uint32_t *slots;
    uint32_t n_slots;  /* a power of two */
    uint64_t *inside;  /* by op id: a hash of what is in an op's blocks */
    bool *has_effects; /* by op id */
};

static bool is_pure(const struct table *table, const struct ir_op *op)
{
    return (op->info->flags & IR_PURE) && !table->has_effects[op->id];
}

/* An op that may go: `return` ends a block, and runtimes want a DequantizeLinear for each op that
 * it is fused with. */
static bool is_candidate(const struct table *table, const struct ir_op *op)
{
    return is_pure(table, op) && op->n_results && !ir_op_is(op, IR_OP_return) &&
           !(op->info->flags & IR_RANDOM) && !pass_is_pinned(table->pass, op);
}

/* ---- The table ------------------------------------------------------------------------------- */

static uint64_t hash_op(const struct table *table, const struct ir_op *op)
{
    uint64_t hash = ir_op_hash(op) ^ table->inside[op->id];
    for (uint32_t i = 0; i < op->n_operands; i++) {
        uint32_t id = op->operands[i].value ? op->operands[i].value->id : NONE;
        hash = hash_bytes(&id, sizeof id, hash);
    }
    return hash;
}

static uint32_t *slot_of(const struct table *table, uint64_t hash)
{
    return &table->slots[hash & (table->n_slots - 1)];
}

static void add(struct table *table, struct ir_op *op, uint64_t hash)
{
    uint32_t *slot = slot_of(table, hash);
    table->visible[table->n_visible] = (struct visible){.op = op, .hash = hash, .next = *slot};
    *slot = table->n_visible++;
}

static void leave_scope(struct table *table, uint32_t n_visible)
{
    while (table->n_visible > n_visible) {
        const struct visible *last = &table->visible[--table->n_visible];
        *slot_of(table, last->hash) = last->next;
    }
}

static tssa_status *find(struct table *table, const struct ir_op *op, uint64_t hash,
                         struct ir_op **found)
{
    int compared = 0;
    *found = NULL;
    for (uint32_t i = *slot_of(table, hash);
         i != NONE && i >= table->first && compared < MAX_COMPARED; i = table->visible[i].next) {
        bool equal;
        if (table->visible[i].hash != hash)
            continue;
        compared++;
        ir_cloner_reset(&table->map);
        TRY(ir_ops_equal(&table->map, op, table->visible[i].op, &equal));
        if (equal) {
            *found = table->visible[i].op;
            return NULL;
        }
    }
    return NULL;
}

/* ---- The walk -------------------------------------------------------------------------------- */

static void merge(struct table *table, struct ir_op *op, struct ir_op *into)
{
    into->exact |= op->exact;
    for (uint32_t i = 0; i < op->n_results; i++) {
        struct ir_value *from = &op->results[i], *to = &into->results[i];
        ir_value_replace(from, to);
        if (!to->name) {
            to->name = from->name;
            from->name = NULL;
        }
    }
    ir_release_blocks(op);
    ir_op_remove(op);
    table->pass->changed = true;
}

static tssa_status *visit_block(struct table *table, struct ir_block *block);

/* What is inside, for the op's hash and purity. */
static tssa_status *visit_blocks(struct table *table, struct ir_op *op)
{
    uint64_t hash = 0;
    const uint32_t first = table->first;
    if (op->info->flags & IR_ISOLATED)
        table->first = table->n_visible;
    for (uint32_t i = 0; i < op->n_blocks; i++) {
        TRY(visit_block(table, op->blocks[i]));
        for (const struct ir_op *inner = op->blocks[i]->first; inner; inner = inner->next) {
            uint64_t both[] = {hash, ir_op_hash(inner), table->inside[inner->id]};
            hash = hash_bytes(both, sizeof both, 0);
            table->has_effects[op->id] |= !is_pure(table, inner);
        }
    }
    table->inside[op->id] = hash;
    table->first = first;
    return NULL;
}

static tssa_status *visit_block(struct table *table, struct ir_block *block)
{
    uint32_t n_visible = table->n_visible;
    struct ir_op *next, *found;
    for (struct ir_op *op = block->first; op; op = next) {
        next = op->next;
        TRY(visit_blocks(table, op));
        if (!is_candidate(table, op))
            continue;
        uint64_t hash = hash_op(table, op);
        TRY(find(table, op, hash, &found));
        if (found)
            merge(table, op, found);
        else
            add(table, op, hash);
    }
    leave_scope(table, n_visible);
    return NULL;
}

static tssa_status *run(struct table *table)
{
    TRY_ALLOC(table->visible);
    TRY_ALLOC(table->slots);
    TRY_ALLOC(table->inside);
    TRY_ALLOC(table->has_effects);
    for (uint32_t i = 0; i < table->n_slots; i++)
        table->slots[i] = NONE;
    return visit_block(table, table->pass->graph->body);
}

tssa_status *pass_common_subexpressions(struct pass_context *pass)
{
    struct ir_graph *graph = pass->graph;
    const tssa_allocator *allocator = graph->allocator;
    struct table table = {.pass = pass, .n_slots = 64};
    while (table.n_slots < graph->n_ops && table.n_slots < UINT32_MAX / 2)
        table.n_slots *= 2;
    ir_cloner_init(&table.map, graph);
    table.visible = allocator_calloc(allocator, graph->n_ops, sizeof *table.visible);
    table.slots = allocator_calloc(allocator, table.n_slots, sizeof *table.slots);
    table.inside = allocator_calloc(allocator, graph->n_ops, sizeof *table.inside);
    table.has_effects = allocator_calloc(allocator, graph->n_ops, sizeof *table.has_effects);
    tssa_status *status = run(&table);
    allocator_free(allocator, table.has_effects);
    allocator_free(allocator, table.inside);
    allocator_free(allocator, table.slots);
    allocator_free(allocator, table.visible);
    ir_cloner_free(&table.map);
    return status;
}
