/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TensorSSA conversion, step 2: updates leave the blocks they are in.
 *
 * Where update(x', x) is in a block of a Loop or If and x outside it, the op hands x out as one
 * more result x_out, all its blocks return x, and update(x_out, x) follows the op. A Loop carries x
 * besides: its body begins with update(x_in, x). A view u of x that was accessed anew in the block
 * is not handed out but accessed anew from x_in and x_out. Returns say x; `rename` puts in the
 * version.
 *
 *   needs   rewrite_mutation before it
 *   keeps   everything else
 *   breaks  as rewrite_mutation does
 */
#include "base/map.h"
#include "ir/rebuild.h"
#include "ir/rule.h"
#include "passes/conversion/alias.h"
#include "passes/conversion/version_name.h"
#include "passes/pass.h"

/*
 * A value that an op hands out. Results move when there are more of them, so it is told by number.
 */
struct handed {
    uint32_t result;
    struct ir_value *param; /* of a Loop's body */
};

struct propagation {
    struct ir_graph *graph;
    struct arena arena;
    struct map handed; /* (op, value): struct handed, or for a view that was accessed anew `anew` */
    bool changed;
};

/* A block whose updates are being looked at, and where what they need goes. */
struct place {
    struct ir_block *block;
    struct ir_op *begin; /* before it, in the block; of a Loop's body */
    struct ir_op *after; /* before it, behind the block's op */
};

static const struct handed anew;

static struct ir_block *home_of(const struct ir_value *value)
{
    return value->block ? value->block : value->op->parent;
}

static void *find(const struct propagation *propagation, const struct ir_op *op,
                  const struct ir_value *value)
{
    const void *key[2] = {op, value};
    return map_get(&propagation->handed, key, sizeof key);
}

static tssa_status *note(struct propagation *propagation, const struct ir_op *op,
                         const struct ir_value *value, const struct handed *handed)
{
    const void *key[2] = {op, value};
    const void *kept = arena_copy(&propagation->arena, key, sizeof key);
    void *entry = arena_copy(&propagation->arena, handed, sizeof *handed);
    if (!kept || !entry || !map_put(&propagation->handed, kept, sizeof key, entry))
        return status_out_of_memory();
    return NULL;
}

static void name(const struct propagation *propagation, struct ir_value *to,
                 const struct ir_value *from, const char *what)
{
    for (uint32_t i = 1; i <= 8; i++)
        if (version_name(propagation->graph, to, from, what, i == 1 ? 0 : i))
            return;
}

static tssa_status *update_before(const struct propagation *propagation, struct ir_value *new_value,
                                  struct ir_value *old_value, struct ir_op *before)
{
    struct ir_op *op = update_create(propagation->graph, new_value, old_value);
    TRY_ALLOC(op);
    ir_op_insert_before(op, before);
    return NULL;
}

/* ---- More results ---------------------------------------------------------------------------- */

/* Puts `value` into a list of operands, before number `at`. */
static bool insert_operand(struct propagation *propagation, struct ir_op *op, uint32_t at,
                           struct ir_value *value)
{
    struct ir_value **values =
        ARENA_ARRAY(&propagation->arena, struct ir_value *, (size_t)op->n_operands + 1);
    if (!values)
        return false;
    for (uint32_t i = 0; i <= op->n_operands; i++)
        values[i] = i == at ? value : op->operands[i - (i > at)].value;
    return ir_op_set_operands(op, op->n_operands + 1, values);
}

/* A new result of unknown type, before number `at`. */
static bool insert_result(struct propagation *propagation, struct ir_op *op, uint32_t at)
{
    uint32_t *from = ARENA_ARRAY(&propagation->arena, uint32_t, (size_t)op->n_results + 1);
    if (!from)
        return false;
    for (uint32_t i = 0; i <= op->n_results; i++)
        from[i] = i == at ? IR_FRESH : i - (i > at);
    return ir_op_set_results(op, op->n_results + 1, from);
}

/* The Loop carries `value`, the last of its carried values; scan outputs come behind. */
static tssa_status *carry(struct propagation *propagation, struct ir_op *op, struct ir_value *value,
                          struct handed *handed)
{
    struct ir_block *body = op->blocks[0];
    uint32_t carried = ir_loop_carried(op);
    /* Carried values need both of the optional operands in front, absent or not. */
    while (op->n_operands < 2)
        if (!insert_operand(propagation, op, op->n_operands, NULL))
            return status_out_of_memory();
    handed->result = carried;
    if (!insert_operand(propagation, op, 2 + carried, value) ||
        !insert_operand(propagation, ir_block_return(body), 1 + carried, value) ||
        !insert_result(propagation, op, carried) || !ir_block_add_param(body))
        return status_out_of_memory();
    handed->param = body->params[body->n_params - 1];
    handed->param->type = value->type;
    name(propagation, handed->param, value, "in");
    return NULL;
}

static tssa_status *hand_out(struct propagation *propagation, struct ir_op *op,
                             struct ir_value *value, struct handed *handed)
{
    if (ir_op_is(op, IR_OP_Loop)) {
        TRY(carry(propagation, op, value, handed));
    } else {
        handed->result = op->n_results;
        if (!insert_result(propagation, op, op->n_results) ||
            !ir_op_add_operand(ir_block_return(op->blocks[0]), value) ||
            !ir_op_add_operand(ir_block_return(op->blocks[1]), value))
            return status_out_of_memory();
    }
    /* A version has the type that the value has. */
    op->results[handed->result].type = value->type;
    name(propagation, &op->results[handed->result], value, "out");
    return note(propagation, op, value, handed);
}

/* ---- Updates --------------------------------------------------------------------------------- */

/* When `version` is an access of a version of another value, made in the same block, that value. */
static struct ir_value *base_of(const struct ir_value *version)
{
    if (!version->op || !ir_op_is(version->op, IR_OP_access))
        return NULL;
    for (const struct ir_use *use = ir_operand(version->op, 0)->uses; use; use = use->next)
        if (ir_op_is(use->user, IR_OP_update) && use == &use->user->operands[0] &&
            use->user->parent == version->op->parent)
            return ir_operand(use->user, 1);
    return NULL;
}

/* access(base) as `like` does it, and its update. */
static tssa_status *access_anew(const struct propagation *propagation, struct ir_value *base,
                                const struct ir_op *like, struct ir_value *value, const char *what,
                                struct ir_op *before)
{
    struct ir_value *params[IR_VARIADIC];
    uint32_t n = like->n_operands - 1;
    for (uint32_t i = 0; i < n; i++)
        params[i] = ir_operand(like, 1 + i);
    struct ir_op *op = rule_access_create(propagation->graph, base, rule_of(like), n, params);
    TRY_ALLOC(op);
    ir_op_insert_before(op, before);
    op->results[0].type = value->type; /* of the same shape in every run */
    name(propagation, &op->results[0], value, what);
    return update_before(propagation, &op->results[0], value, before);
}

static tssa_status *propagate_view(struct propagation *propagation, const struct place *place,
                                   const struct ir_op *like, struct ir_value *base,
                                   struct ir_value *value)
{
    struct ir_op *op = place->block->owner;
    const struct handed *handed = find(propagation, op, base);
    TRY(note(propagation, op, value, &anew));
    if (handed->param)
        TRY(access_anew(propagation, handed->param, like, value, "in", place->begin));
    return access_anew(propagation, &op->results[handed->result], like, value, "out", place->after);
}

static tssa_status *propagate(struct propagation *propagation, const struct place *place,
                              const struct ir_op *update)
{
    struct ir_op *op = place->block->owner;
    struct ir_value *version = ir_operand(update, 0), *value = ir_operand(update, 1);
    struct ir_value *base = base_of(version);
    struct handed handed = {0};
    if (home_of(value) == place->block || find(propagation, op, value))
        return NULL;
    propagation->changed = true;
    if (base && find(propagation, op, base))
        return propagate_view(propagation, place, version->op, base, value);
    TRY(hand_out(propagation, op, value, &handed));
    if (handed.param)
        TRY(update_before(propagation, handed.param, value, place->begin));
    return update_before(propagation, &op->results[handed.result], value, place->after);
}

/* Inner blocks first: what they hand out is an update of this block. */
static tssa_status *visit_block(struct propagation *propagation, const struct place *place)
{
    for (struct ir_op *op = place->block->first; op; op = op->next) {
        struct ir_op *after = op->next;
        for (uint32_t i = 0; i < op->n_blocks; i++) {
            struct place inner = {op->blocks[i], op->blocks[i]->first, after};
            TRY(visit_block(propagation, &inner));
        }
        if (ir_op_is(op, IR_OP_update) && alias_hands_out(place->block))
            TRY(propagate(propagation, place, op));
    }
    return NULL;
}

tssa_status *pass_block_propagation(struct pass_context *pass)
{
    struct propagation propagation = {.graph = pass->graph};
    const struct place body = {.block = pass->graph->body};
    if (!pass->graph->has_mutation)
        return NULL;
    arena_init(&propagation.arena, pass->graph->allocator);
    map_init(&propagation.handed, pass->graph->allocator);
    tssa_status *status = visit_block(&propagation, &body);
    map_free(&propagation.handed);
    arena_clear(&propagation.arena);
    pass->changed |= propagation.changed;
    return status;
}
