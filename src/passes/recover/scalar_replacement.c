/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A tensor that a Loop carries and that is only read and written at a few constant regions (a row
 * per layer of an LSTM, say) becomes one carried value per region: nothing is copied in the loop
 * any more, and what the loop computes for one region no longer waits for the others.
 *
 *     Loop(x) { v: w = assign(v, f(access(v, [R])), [R])  return(w) }
 *     Loop(access(x, [R])) { r: s = f(r)  return(s) },  then assign(x, s, [R])
 *
 *   needs   forward_assigns: the assigns of an iteration form one chain, accesses are of the
 *           parameter
 *   keeps   types; a carried value with a use of any other kind, which a remark names
 *   breaks  nothing
 */
#include "ir/rebuild.h"
#include "passes/analysis/regions.h"
#include "passes/pass.h"

#define MAX_REGIONS 64

/* One region of the buffer, and what stands for it. */
struct piece {
    struct ir_op *example;   /* an access or assign with its rule */
    struct ir_value *source; /* what the iteration leaves there; NULL: what was there */
    struct ir_value *value;  /* in the body; the value before the loop when it is never written */
};

struct buffer_use {
    struct pass_context *pass;
    struct region_space *space;
    struct ir_op *loop;
    uint32_t carried;
    struct ir_value *param;
    const struct ir_op *blamed; /* the op that is no access or assign of a region */
    const char *reason;
    struct piece pieces[MAX_REGIONS];
    uint32_t n_pieces;
};

static struct ir_block *body_of(const struct buffer_use *use)
{
    return use->loop->blocks[0];
}

static bool refuse(struct buffer_use *use, const struct ir_op *op, const char *reason)
{
    use->blamed = op;
    use->reason = reason;
    return false;
}

/* ---- What is done with the buffer ------------------------------------------------------------ */

/*
 * The piece of this op's region, a new one when it is disjoint from all others; NULL: it overlaps.
 */
static tssa_status *find_piece(struct buffer_use *use, struct ir_op *op, struct piece **piece)
{
    enum region_relation relation;
    *piece = NULL;
    if (!rule_is_constant(rule_of(op)) || !region_never_fails(op)) {
        refuse(use, op, "its region is no constant that lies in the tensor in every run");
        return NULL;
    }
    for (uint32_t i = 0; i < use->n_pieces; i++) {
        TRY(regions_relate(use->space, use->pieces[i].example, op, &relation));
        if (relation == RELATION_EQUAL)
            *piece = &use->pieces[i];
        else if (relation != RELATION_DISJOINT)
            refuse(use, op, "its region may overlap another one");
        if (relation != RELATION_DISJOINT)
            return NULL;
    }
    if (use->n_pieces == MAX_REGIONS) {
        refuse(use, op, "there are too many regions");
        return NULL;
    }
    use->pieces[use->n_pieces] = (struct piece){.example = op};
    *piece = &use->pieces[use->n_pieces++];
    return NULL;
}

/* All uses of one version of the buffer: accesses, and `next`, the assign that makes the next
 * version. */
static tssa_status *check_uses(struct buffer_use *use, const struct ir_value *version,
                               const struct ir_op *next, bool *ok)
{
    const struct ir_op *ret = ir_block_return(body_of(use));
    struct piece *piece;
    *ok = true;
    for (const struct ir_use *u = version->uses; u && *ok; u = u->next) {
        bool is_base = u == &u->user->operands[0];
        if (u->user == next && is_base)
            continue;
        if (u->user == ret && !next && u == &ret->operands[use->carried + 1])
            continue;
        if (version != use->param || !is_base || !ir_op_is(u->user, IR_OP_access)) {
            *ok = refuse(use, u->user, "it uses the whole tensor");
            return NULL;
        }
        TRY(find_piece(use, u->user, &piece));
        *ok = piece != NULL;
    }
    return NULL;
}

/* Walks the chain of assigns from what the body returns to the parameter. */
static tssa_status *check_chain(struct buffer_use *use, bool *ok)
{
    struct ir_op *next = NULL;
    struct ir_value *version = ir_operand(ir_block_return(body_of(use)), use->carried + 1);
    struct piece *piece;
    for (*ok = version != NULL; *ok; version = ir_operand(next, 0)) {
        TRY(check_uses(use, version, next, ok));
        if (!*ok || version == use->param)
            return NULL;
        next = version->op;
        if (!next || !ir_op_is(next, IR_OP_assign) || next->parent != body_of(use)) {
            *ok = refuse(use, next ? next : use->loop, "it makes a new tensor in every iteration");
            return NULL;
        }
        TRY(find_piece(use, next, &piece));
        *ok = piece != NULL;
        if (piece && !piece->source) /* the last one wins */
            piece->source = ir_operand(next, 1);
    }
    return NULL;
}

static bool is_written(const struct buffer_use *use)
{
    for (uint32_t i = 0; i < use->n_pieces; i++)
        if (use->pieces[i].source)
            return true;
    return false;
}

/* ---- Rewriting ------------------------------------------------------------------------------- */

/* The region of the piece in another version of the buffer. */
static tssa_status *make_access(const struct buffer_use *use, const struct piece *piece,
                                struct ir_value *base, struct ir_op *before,
                                struct ir_value **result)
{
    struct ir_op *op = rule_access_create(use->pass->graph, base, rule_of(piece->example), 0, NULL);
    TRY(pass_insert(op, before));
    op->name = piece->example->name;
    *result = &op->results[0];
    return NULL;
}

/* What is assigned, as large as the region. */
static tssa_status *fit_source(const struct buffer_use *use, struct piece *piece,
                               const struct ir_type *type)
{
    struct ir_graph *graph = use->pass->graph;
    struct rule_param params[TSSA_MAX_RANK];
    if (piece->source->type == type)
        return NULL;
    for (int i = 0; i < type->rank; i++)
        params[i] = rule_constant(type->dims[i]->value);
    const struct rule *rule =
        rule_create(graph, 1, &(struct rule_step){RULE_EXPAND, (uint32_t)type->rank, params});
    TRY_ALLOC(rule);
    struct ir_op *op = rule_access_create(graph, piece->source, rule, 0, NULL);
    TRY(pass_insert(op, ir_block_return(body_of(use))));
    piece->source = &op->results[0];
    return NULL;
}

/* Sources that broadcast need a region of a constant shape. */
static bool check_shapes(struct buffer_use *use)
{
    for (uint32_t i = 0; i < use->n_pieces; i++) {
        const struct piece *piece = &use->pieces[i];
        const struct dim *dims[TSSA_MAX_RANK];
        const struct ir_type *base = use->param->type;
        int rank;
        tssa_status *status =
            rule_region_shape(piece->example, base->rank, base->dims, &rank, dims);
        bool known = !status && rank >= 0;
        tssa_status_free(status);
        if (!known)
            return refuse(use, piece->example, "its region has no known shape");
        const struct ir_type *type = type_tensor(&use->pass->graph->types, base->dtype, rank, dims);
        if (!piece->source || piece->source->type == type)
            continue;
        for (int d = 0; d < rank; d++)
            if (dims[d]->kind != DIM_CONST)
                return refuse(use, piece->example, "what is written is broadcast");
    }
    return true;
}

/* Makes the pieces carried values after the ones that are there; results of the loop are fetched
 * anew. */
static tssa_status *carry_pieces(struct buffer_use *use, uint32_t *first_new)
{
    struct ir_op *loop = use->loop, *ret = ir_block_return(body_of(use));
    struct arena *arena = &use->pass->graph->arena;
    uint32_t carried = ir_loop_carried(loop), added = 0, n = 0;
    for (uint32_t i = 0; i < use->n_pieces; i++)
        added += use->pieces[i].source != NULL;
    uint32_t total = loop->n_results + added;
    struct ir_value **operands = ARENA_ARRAY(arena, struct ir_value *, carried + 2 + added);
    struct ir_value **returns = ARENA_ARRAY(arena, struct ir_value *, total + 1);
    uint32_t *params = ARENA_ARRAY(arena, uint32_t, carried + 2 + added);
    uint32_t *results = ARENA_ARRAY(arena, uint32_t, total);
    if (!operands || !returns || !params || !results)
        return status_out_of_memory();
    for (uint32_t i = 0; i < carried + 2; i++) {
        operands[i] = loop->operands[i].value;
        params[i] = i;
    }
    for (uint32_t i = 0; i < total; i++)
        results[i] = i < carried ? i : i < carried + added ? IR_FRESH : i - added;
    returns[0] = ret->operands[0].value;
    for (uint32_t i = 0; i < total; i++)
        returns[i + 1] = results[i] == IR_FRESH ? NULL : ret->operands[results[i] + 1].value;
    for (uint32_t i = 0; i < use->n_pieces; i++) {
        if (!use->pieces[i].source)
            continue;
        operands[carried + 2 + n] = use->pieces[i].value;
        params[carried + 2 + n] = IR_FRESH;
        returns[carried + 1 + n++] = use->pieces[i].source;
    }
    *first_new = carried;
    if (!ir_op_set_operands(loop, carried + 2 + added, operands) ||
        !ir_block_set_params(body_of(use), carried + 2 + added, params) ||
        !ir_op_set_operands(ret, total + 1, returns) || !ir_op_set_results(loop, total, results))
        return status_out_of_memory();
    return NULL;
}

/* After the loop: the buffer as it would have been. */
static tssa_status *rebuild_after(const struct buffer_use *use, uint32_t first_new)
{
    struct ir_op *loop = use->loop, *after = loop->next;
    struct ir_value *buffer = ir_operand(loop, use->carried + 2), *old;
    for (uint32_t i = 0, n = 0; i < use->n_pieces; i++) {
        if (!use->pieces[i].source)
            continue;
        struct ir_op *op =
            rule_assign_create(use->pass->graph, buffer, &loop->results[first_new + n++],
                               rule_of(use->pieces[i].example), 0, NULL);
        TRY(pass_insert(op, after));
        op->name = loop->name;
        buffer = &op->results[0];
    }
    old = &loop->results[use->carried];
    buffer->name = old->name;
    old->name = NULL;
    ir_value_replace(old, buffer);
    return NULL;
}

static tssa_status *rewrite(struct buffer_use *use)
{
    uint32_t first_new = 0, n = 0;
    struct ir_op *loop = use->loop;
    struct piece *found;
    struct ir_value *initial = ir_operand(loop, use->carried + 2);
    for (uint32_t i = 0; i < use->n_pieces; i++) {
        struct piece *piece = &use->pieces[i];
        TRY(make_access(use, piece, initial, loop, &piece->value));
        if (piece->source)
            TRY(fit_source(use, piece, piece->value->type));
    }
    TRY(carry_pieces(use, &first_new));
    struct ir_block *body = body_of(use);
    for (uint32_t i = 0; i < use->n_pieces; i++) {
        struct piece *piece = &use->pieces[i];
        if (!piece->source)
            continue;
        const struct ir_type *type = piece->value->type;
        piece->value = body->params[first_new + 2 + n++];
        piece->value->type = type;
        loop->results[first_new + n - 1].type = type;
    }
    for (struct ir_use *u = use->param->uses, *next; u; u = next) {
        struct ir_op *user = u->user;
        next = u->next;
        if (!ir_op_is(user, IR_OP_access))
            continue;
        TRY(find_piece(use, user, &found));
        ir_value_replace(&user->results[0], found->value);
    }
    TRY(rebuild_after(use, first_new));
    /* The parameter goes round unchanged; what wrote it has no uses left. */
    ir_op_set_operand(ir_block_return(body), use->carried + 1, use->param);
    use->pass->changed = true;
    return NULL;
}

struct replacement {
    struct pass_context *pass;
    struct region_space space;
};

static tssa_status *visit_carried(struct replacement *r, struct ir_op *loop, uint32_t carried)
{
    struct pass_context *pass = r->pass;
    bool ok;
    struct buffer_use *use = ARENA_NEW(&pass->graph->arena, struct buffer_use);
    TRY_ALLOC(use);
    use->pass = pass;
    use->space = &r->space;
    use->loop = loop;
    use->carried = carried;
    use->param = loop->blocks[0]->params[carried + 2];
    const struct ir_type *type = use->param->type;
    const struct ir_value *initial = ir_operand(loop, carried + 2);
    if (!initial || type != initial->type || type->kind != TYPE_TENSOR || type->rank < 0)
        return NULL;
    const struct ir_value *returned = ir_operand(ir_block_return(loop->blocks[0]), carried + 1);
    if (!returned || !returned->op || !ir_op_is(returned->op, IR_OP_assign))
        return NULL; /* no buffer */
    TRY(check_chain(use, &ok));
    if (!ok || !check_shapes(use) || !is_written(use))
        return NULL;
    TRY(pass_remark(pass, TSSA_REMARK_APPLIED, loop,
                    "%%%s is carried as %u values, one for each region that is used",
                    use->param->name ? use->param->name : "?", (unsigned)use->n_pieces));
    return rewrite(use);
}

static tssa_status *visit(void *context, struct ir_op *op)
{
    if (!ir_op_is(op, IR_OP_Loop) || op->n_blocks != 1 || op->n_operands <= 2)
        return NULL;
    uint32_t carried = ir_loop_carried(op);
    for (uint32_t i = 0; i < carried; i++)
        TRY(visit_carried(context, op, i));
    return NULL;
}

tssa_status *pass_scalar_replacement(struct pass_context *pass)
{
    struct replacement r = {.pass = pass};
    region_space_init(&r.space, pass->graph);
    tssa_status *status = ir_block_walk(pass->graph->body, visit, &r);
    region_space_free(&r.space);
    return status;
}
