/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TensorSSA conversion, step 1: views become accesses, and writes assigns.
 *
 * A write of s into a view v of t becomes t' = assign(t, s) under the rule that leads from t to v
 * (pass-up, in one op, since rules compose), and update(t', t). Every view u that the write can
 * reach and that may be read afterwards is accessed anew, u' = access(t'), with update(u', u)
 * (pass-down). Here and in the next steps `update(x', x)` says that from here on x means x'.
 *
 *   needs   no updates; graphs without view and write are left alone
 *   keeps   all ops but views and writes; sets of names of one storage that cannot be told apart,
 *           with a remark
 *   breaks  the meaning of values that are written to, until `rename` has run; after remove_update
 *           the graph is to be inferred again: what is known of a value that is written to was not
 *           told
 *
 * docs/tensorssa.md explains it all with an example.
 */
#include "base/map.h"
#include "ir/infer.h"
#include "ir/rebuild.h"
#include "passes/conversion/alias.h"
#include "passes/conversion/version_name.h"

/* An op at `position` reads a view. */
struct read {
    const struct alias_view *view;
    uint32_t position;
    struct read *next; /* later in the program */
};

struct rewriting {
    struct aliases aliases;
    const struct rule *whole;
    /* by value id, of roots: of their views, those found so far, the first in front */
    struct read **reads;
    uint32_t *refreshed;  /* by value id, of views: the position of the write after which it was */
    uint32_t *last_read;  /* by value id, of views: the last read, a loop's being at its end */
    uint32_t *next_write; /* by op id, of writes: the next one to the same tree in the same block */
    uint32_t *number;     /* by op id: which write of its tree it is, from 1 */
    VEC(struct ir_value *) updates; /* pairs of the write at hand: new, old */
};

/* ---- Views ----------------------------------------------------------------------------------- */

/* A view that will be accessed again needs its params as they were: those that are written to are
 * copied. */
static tssa_status *keep_params(struct rewriting *rewriting, struct ir_op *op, bool *copied)
{
    const struct aliases *aliases = &rewriting->aliases;
    if (!alias_is_converted(aliases, &op->results[0]))
        return NULL;
    for (uint32_t i = 1; i < op->n_operands; i++) {
        struct ir_value *param = ir_operand(op, i);
        if (!param || !alias_set(aliases, param)->written)
            continue;
        struct ir_op *copy =
            rule_access_create(aliases->pass->graph, param, rewriting->whole, 0, NULL);
        TRY_ALLOC(copy);
        ir_op_insert_before(copy, op);
        TRY(ir_infer_op_lenient(copy));
        ir_op_set_operand(op, i, &copy->results[0]);
        *copied = true;
    }
    return NULL;
}

static tssa_status *keep_all_params(struct rewriting *rewriting, struct ir_block *block,
                                    bool *copied)
{
    for (struct ir_op *op = block->first; op; op = op->next) {
        /* Copies have no place in the tables: they are passed by, having been put before the op. */
        if (ir_op_is(op, IR_OP_view))
            TRY(keep_params(rewriting, op, copied));
        for (uint32_t i = 0; i < op->n_blocks; i++)
            TRY(keep_all_params(rewriting, op->blocks[i], copied));
    }
    return NULL;
}

static tssa_status *find_names(struct rewriting *rewriting, struct pass_context *pass)
{
    bool copied = false;
    TRY(alias_analyse(&rewriting->aliases, pass));
    TRY(keep_all_params(rewriting, pass->graph->body, &copied));
    if (!copied)
        return NULL;
    alias_free(&rewriting->aliases);
    return alias_analyse(&rewriting->aliases, pass);
}

/* ---- Pass down ------------------------------------------------------------------------------- */

static bool is_read(const struct ir_use *use)
{
    bool target = use == &use->user->operands[0];
    return !(target && ir_op_is(use->user, IR_OP_write)) && !ir_op_is(use->user, IR_OP_update);
}

static uint32_t last_read(const struct aliases *aliases, const struct ir_op *view)
{
    uint32_t last = 0;
    for (const struct ir_use *use = view->results[0].uses; use; use = use->next) {
        uint32_t until = is_read(use) ? alias_until(aliases, view->parent, use->user) : 0;
        last = until > last ? until : last;
    }
    return last;
}

static tssa_status *turn_view(void *context, struct ir_op *op)
{
    struct rewriting *rewriting = context;
    if (!ir_op_is(op, IR_OP_view))
        return NULL;
    rewriting->last_read[op->results[0].id] = last_read(&rewriting->aliases, op);
    const struct alias_value *set = alias_set(&rewriting->aliases, &op->results[0]);
    if (!set->written || set->refusal == ALIAS_FINE)
        op->info = ir_op_info(IR_OP_access);
    return NULL;
}

/* Is the view defined before the write, in its block or in one around it? */
static bool is_visible(const struct aliases *aliases, const struct ir_op *view,
                       const struct ir_op *write)
{
    uint32_t at = aliases->position[write->id];
    return aliases->position[view->id] < at && at <= aliases->end[view->parent->last->id];
}

static tssa_status *note_update(struct rewriting *rewriting, struct ir_value *new_value,
                                struct ir_value *old_value)
{
    bool ok = vec_push(&rewriting->updates, new_value) && vec_push(&rewriting->updates, old_value);
    return ok ? NULL : status_out_of_memory();
}

/* Accesses a view anew after a write, once. */
static tssa_status *refresh(struct rewriting *rewriting, const struct alias_view *view,
                            struct ir_value *base, struct ir_op *write)
{
    struct ir_graph *graph = rewriting->aliases.pass->graph;
    uint32_t *refreshed = &rewriting->refreshed[view->op->results[0].id];
    uint32_t at = rewriting->aliases.position[write->id];
    if (*refreshed == at || !is_visible(&rewriting->aliases, view->op, write))
        return NULL;
    *refreshed = at;
    struct ir_op *op = rule_access_create(graph, base, view->rule, view->n_params, view->params);
    TRY_ALLOC(op);
    ir_op_insert_before(op, write);
    op->results[0].type = view->op->results[0].type; /* of the same shape in every run */
    version_name(graph, &op->results[0], &view->op->results[0], "", rewriting->number[write->id]);
    return note_update(rewriting, &op->results[0], &view->op->results[0]);
}

/*
 * Which views are accessed anew after a write? Where the block writes again, the next write does
 * it, but for what is read in between. After the last one in a block, all are, as in the paper's
 * algorithm, but for views of outer blocks that nobody reads again.
 */
static tssa_status *pass_down(struct rewriting *rewriting, struct ir_value *root,
                              struct ir_value *base, struct ir_op *write)
{
    uint32_t next = rewriting->next_write[write->id];
    uint32_t at = rewriting->aliases.position[write->id];
    const struct read *read = next ? rewriting->reads[root->id] : NULL;
    for (; read && read->position <= next; read = read->next)
        TRY(refresh(rewriting, read->view, base, write));
    const struct alias_view *view = next ? NULL : alias_of(&rewriting->aliases, root)->first;
    for (; view; view = view->next)
        if (view->op->parent == write->parent || rewriting->last_read[view->op->results[0].id] > at)
            TRY(refresh(rewriting, view, base, write));
    return NULL;
}

/* ---- Writes ---------------------------------------------------------------------------------- */

static tssa_status *emit_updates(struct rewriting *rewriting, struct ir_op *before)
{
    for (size_t i = 0; i < rewriting->updates.count; i += 2) {
        struct ir_op *op = update_create(rewriting->aliases.pass->graph, rewriting->updates.data[i],
                                         rewriting->updates.data[i + 1]);
        TRY_ALLOC(op);
        ir_op_insert_before(op, before);
    }
    rewriting->updates.count = 0;
    return NULL;
}

static tssa_status *rewrite_write(struct rewriting *rewriting, struct ir_op *write)
{
    const struct aliases *aliases = &rewriting->aliases;
    struct ir_graph *graph = aliases->pass->graph;
    const struct alias_value *target = alias_of(aliases, ir_operand(write, 0));
    const struct alias_view *view = target->view;
    struct ir_value *root = target->root;
    struct ir_op *op =
        rule_assign_create(graph, root, ir_operand(write, 1), view ? view->rule : rewriting->whole,
                           view ? view->n_params : 0, view ? view->params : NULL);
    TRY_ALLOC(op);
    ir_op_insert_before(op, write);
    op->name = write->name;
    TRY(ir_infer_op_lenient(op));
    version_name(graph, &op->results[0], root, "", rewriting->number[write->id]);
    TRY(note_update(rewriting, &op->results[0], root));
    TRY(pass_down(rewriting, root, &op->results[0], write));
    TRY(emit_updates(rewriting, write));
    ir_op_remove(write);
    return NULL;
}

static tssa_status *note_read(struct rewriting *rewriting, const struct ir_value *value,
                              uint32_t position)
{
    const struct alias_value *of = alias_of(&rewriting->aliases, value);
    if (!of->view)
        return NULL;
    struct read *read = ARENA_NEW(&rewriting->aliases.arena, struct read);
    struct read **first = &rewriting->reads[of->root->id];
    TRY_ALLOC(read);
    *read = (struct read){of->view, position, *first};
    *first = read;
    return NULL;
}

/* From the last op to the first, so that what is read after a write is known when it is reached. */
static tssa_status *rewrite_block(struct rewriting *rewriting, struct ir_block *block)
{
    const struct aliases *aliases = &rewriting->aliases;
    struct ir_op *previous;
    for (struct ir_op *op = block->last; op; op = previous) {
        previous = op->prev;
        for (uint32_t i = op->n_blocks; i-- > 0;)
            TRY(rewrite_block(rewriting, op->blocks[i]));
        bool converted =
            ir_op_is(op, IR_OP_write) && alias_is_converted(aliases, ir_operand(op, 0));
        const struct ir_value *source = ir_operand(op, 1);
        if (converted)
            TRY(rewrite_write(rewriting, op));
        if (converted)
            TRY(note_read(rewriting, source, aliases->position[op->id]));
        for (uint32_t i = 0; i < op->n_operands && !converted; i++)
            if (op->operands[i].value)
                TRY(note_read(rewriting, ir_operand(op, i), aliases->position[op->id]));
    }
    return NULL;
}

/* Numbers the writes of each tree, and finds those that follow each other in one block. */
static tssa_status *order_writes(struct rewriting *rewriting, struct map *latest)
{
    struct aliases *aliases = &rewriting->aliases;
    for (size_t i = 0; i < aliases->writes.count; i++) {
        struct ir_op *write = aliases->writes.data[i];
        struct ir_value *root = alias_of(aliases, ir_operand(write, 0))->root;
        const void *key[2] = {write->parent, root};
        const void **kept = arena_copy(&aliases->arena, key, sizeof key);
        TRY_ALLOC(kept);
        const struct ir_op *before = map_get(latest, kept, sizeof key);
        if (before)
            rewriting->next_write[before->id] = aliases->position[write->id];
        if (!map_put(latest, kept, sizeof key, write))
            return status_out_of_memory();
        rewriting->number[write->id] = ++alias_of(aliases, root)->n_writes;
    }
    return NULL;
}

/* ---- The pass -------------------------------------------------------------------------------- */

static tssa_status *remark(const struct pass_context *pass, const struct ir_value *value,
                           const struct alias_value *set)
{
    static const char *const reasons[] = {
        [ALIAS_PASSED_ON] = "another name is given to it that is not always the same value, while "
                            "it can still be reached under the old one",
        [ALIAS_CONTAINED] = "a sequence or an optional holds it, while it can still be reached "
                            "under its name",
        [ALIAS_REPEATED] = "a view of it is handed on in which an element may be there twice",
        [ALIAS_FOREIGN] = "the write is in a body that cannot hand a new version out",
        [ALIAS_LONG_RULE] = "its views have too many steps or params for one rule"};
    return pass_remark(pass, TSSA_REMARK_MISSED, set->where, "views and writes of \"%s\" stay: %s",
                       value->name ? value->name : "(unnamed)", reasons[set->refusal]);
}

static tssa_status *remark_refused(struct rewriting *rewriting, const struct pass_context *pass)
{
    const struct aliases *aliases = &rewriting->aliases;
    for (size_t i = 0; i < aliases->writes.count; i++) {
        const struct ir_value *value = ir_operand(aliases->writes.data[i], 0);
        struct alias_value *set = alias_set(aliases, value);
        if (set->refusal == ALIAS_FINE || !set->where)
            continue;
        TRY(remark(pass, alias_of(aliases, value)->root, set));
        set->where = NULL; /* once per set */
    }
    return NULL;
}

static tssa_status *rewrite(struct rewriting *rewriting, struct pass_context *pass)
{
    struct aliases *aliases = &rewriting->aliases;
    struct map latest;
    TRY(remark_refused(rewriting, pass));
    rewriting->reads = ARENA_ARRAY(&aliases->arena, struct read *, aliases->n_values);
    rewriting->refreshed = ARENA_ARRAY(&aliases->arena, uint32_t, aliases->n_values);
    rewriting->last_read = ARENA_ARRAY(&aliases->arena, uint32_t, aliases->n_values);
    rewriting->next_write = ARENA_ARRAY(&aliases->arena, uint32_t, aliases->n_ops);
    rewriting->number = ARENA_ARRAY(&aliases->arena, uint32_t, aliases->n_ops);
    TRY_ALLOC(rewriting->reads);
    TRY_ALLOC(rewriting->refreshed);
    TRY_ALLOC(rewriting->last_read);
    TRY_ALLOC(rewriting->next_write);
    TRY_ALLOC(rewriting->number);
    TRY(ir_block_walk(pass->graph->body, turn_view, rewriting));
    map_init(&latest, pass->graph->allocator);
    tssa_status *status = order_writes(rewriting, &latest);
    map_free(&latest);
    return status ? status : rewrite_block(rewriting, pass->graph->body);
}

static tssa_status *run(struct rewriting *rewriting, struct pass_context *pass)
{
    rewriting->whole = rule_create(pass->graph, 0, NULL);
    TRY_ALLOC(rewriting->whole);
    TRY(alias_bind_same(pass->graph->body));
    TRY(find_names(rewriting, pass));
    return rewrite(rewriting, pass);
}

tssa_status *pass_rewrite_mutation(struct pass_context *pass)
{
    struct rewriting rewriting = {.updates = VEC_INIT(pass->graph->allocator)};
    if (!ir_block_is_imperative(pass->graph->body) || ir_block_has(pass->graph->body, IR_OP_update))
        return NULL;
    pass->changed = true;
    tssa_status *status = run(&rewriting, pass);
    vec_free(&rewriting.updates);
    alias_free(&rewriting.aliases);
    return status;
}
