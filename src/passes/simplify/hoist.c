/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Moves ops to where they are computed less often:
 *
 *   - out of a loop's body, with nested loops and branches, when nothing that they read is defined
 *     there;
 *   - out of an If, when both branches compute the same;
 *   - constants out of everything.
 *
 * An op that may fail stays in a loop that may not run at all (total.h), until that is asked first
 * (guard_loops). What a reader of the file fuses with its neighbours stays with them (pinned.c),
 * and so does what is in a kernel of all of a loop's iterations (ir_fuse_loop).
 *
 *   needs   types, known elements
 *   keeps   types, known elements
 *   breaks  nothing
 *
 * Blocks are visited from the inside out, so what leaves an inner block may leave the outer one as
 * well.
 */
#include "base/hash.h"
#include "base/map.h"
#include "ir/equal.h"
#include "ir/fuse.h"
#include "ir/rebuild.h"
#include "ir/total.h"
#include "passes/pass.h"

struct hoist {
    struct pass_context *pass;
    struct ir_cloner map;
};

/* ---- Loops ----------------------------------------------------------------------------------- */

static bool is_defined_in(const struct ir_value *value, const struct ir_block *block)
{
    return value && (value->op ? value->op->parent == block : value->block == block);
}

/* Something that the op reads, in its blocks too, is defined in `block`. */
static bool reads_from(const struct ir_op *op, const struct ir_block *block)
{
    for (uint32_t i = 0; i < op->n_operands; i++)
        if (is_defined_in(op->operands[i].value, block))
            return true;
    for (uint32_t i = 0; i < op->n_blocks; i++)
        for (const struct ir_op *inner = op->blocks[i]->first; inner; inner = inner->next)
            if (reads_from(inner, block))
                return true;
    return false;
}

static void hoist_from_loop(struct hoist *hoist, struct ir_op *loop)
{
    struct ir_block *body = loop->blocks[0];
    struct ir_op *next;
    bool runs = ir_loop_runs(loop);
    for (struct ir_op *op = body->first; op->next; op = next) {
        next = op->next;
        if (reads_from(op, body) || !ir_op_is_pure(op) || pass_is_pinned(hoist->pass, op))
            continue;
        if (!runs && !ir_op_is_total(op))
            continue;
        ir_op_move_before(op, loop);
        hoist->pass->changed = true;
    }
}

/* ---- Branches -------------------------------------------------------------------------------- */

/* Ops of the else branch, by what they compute; the keys are in the arena. */
struct others {
    struct map map;
    struct arena keys;
};

static uint64_t hash_op(const struct ir_op *op)
{
    uint64_t hash = ir_op_hash(op);
    for (uint32_t i = 0; i < op->n_operands; i++) {
        uint32_t id = op->operands[i].value ? op->operands[i].value->id : UINT32_MAX;
        hash = hash_bytes(&id, sizeof id, hash);
    }
    return hash;
}

static bool is_shareable(const struct ir_op *op)
{
    return !ir_op_is(op, IR_OP_return) && op->n_blocks == 0 &&
           (op->info->flags & (IR_PURE | IR_RANDOM)) == IR_PURE;
}

static bool others_add(struct others *others, struct ir_op *op)
{
    if (!is_shareable(op))
        return true;
    uint64_t hash = hash_op(op);
    const uint64_t *key = arena_copy(&others->keys, &hash, sizeof hash);
    return key && map_put(&others->map, key, sizeof *key, op);
}

/* An op whose operands were exchanged may be equal to another one now. */
static bool readd_users(struct others *others, const struct ir_op *op, const struct ir_block *block)
{
    for (uint32_t i = 0; i < op->n_results; i++)
        for (const struct ir_use *use = op->results[i].uses; use; use = use->next)
            if (use->user->parent == block && !others_add(others, use->user))
                return false;
    return true;
}

static tssa_status *share(struct hoist *hoist, struct others *others, struct ir_op *branch,
                          struct ir_op *op, const struct ir_block *else_block)
{
    bool equal;
    uint64_t hash = hash_op(op);
    struct ir_op *other = map_get(&others->map, &hash, sizeof hash);
    if (!other || other->parent != else_block)
        return NULL;
    ir_cloner_reset(&hoist->map);
    TRY(ir_ops_equal(&hoist->map, op, other, &equal));
    if (!equal)
        return NULL;
    ir_op_move_before(op, branch);
    for (uint32_t i = 0; i < op->n_results; i++)
        ir_value_replace(&other->results[i], &op->results[i]);
    ir_op_remove(other);
    hoist->pass->changed = true;
    return readd_users(others, op, else_block) ? NULL : status_out_of_memory();
}

static tssa_status *share_all(struct hoist *hoist, struct others *others, struct ir_op *branch)
{
    struct ir_block *then_block = ir_op_block(branch, "then_branch");
    struct ir_block *else_block = ir_op_block(branch, "else_branch");
    struct ir_op *next;
    for (struct ir_op *op = else_block->first; op; op = op->next)
        if (!others_add(others, op))
            return status_out_of_memory();
    for (struct ir_op *op = then_block->first; op; op = next) {
        next = op->next;
        if (is_shareable(op) && !reads_from(op, then_block) && !pass_is_pinned(hoist->pass, op))
            TRY(share(hoist, others, branch, op, else_block));
    }
    return NULL;
}

static tssa_status *hoist_common(struct hoist *hoist, struct ir_op *branch)
{
    struct others others;
    map_init(&others.map, hoist->pass->graph->allocator);
    arena_init(&others.keys, hoist->pass->graph->allocator);
    tssa_status *status = share_all(hoist, &others, branch);
    arena_clear(&others.keys);
    map_free(&others.map);
    return status;
}

static void hoist_constants(struct hoist *hoist, struct ir_op *branch)
{
    struct ir_op *next;
    for (uint32_t i = 0; i < branch->n_blocks; i++)
        for (struct ir_op *op = branch->blocks[i]->first; op; op = next) {
            next = op->next;
            if (!ir_op_is(op, IR_OP_Constant))
                continue;
            ir_op_move_before(op, branch);
            hoist->pass->changed = true;
        }
}

static tssa_status *visit(void *context, struct ir_op *op)
{
    struct hoist *hoist = context;
    if (ir_op_is(op, IR_OP_If)) {
        hoist_constants(hoist, op);
        return hoist_common(hoist, op);
    }
    if ((ir_op_is_loop(op) && !ir_fuse_is_inside(op)) || ir_op_is(op, IR_OP_SequenceMap))
        hoist_from_loop(hoist, op);
    return NULL;
}

tssa_status *pass_hoist(struct pass_context *pass)
{
    struct hoist hoist = {.pass = pass};
    ir_cloner_init(&hoist.map, pass->graph);
    tssa_status *status = ir_block_walk(pass->graph->body, visit, &hoist);
    ir_cloner_free(&hoist.map);
    return status;
}
