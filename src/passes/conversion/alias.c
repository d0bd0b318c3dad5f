/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/conversion/alias.h"

#include <string.h>

#include "ir/rebuild.h"

/* Writes that are looked at to find names that are only read. */
#define MAX_LOOKED_AT 1000000

struct alias_value *alias_of(const struct aliases *aliases, const struct ir_value *value)
{
    return &aliases->values[value->id];
}

struct alias_value *alias_set(const struct aliases *aliases, const struct ir_value *value)
{
    struct alias_value *of = alias_of(aliases, alias_of(aliases, value)->root);
    while (alias_of(aliases, of->leader) != of) {
        of->leader = alias_of(aliases, of->leader)->leader;
        of = alias_of(aliases, of->leader);
    }
    return of;
}

struct ir_block *alias_block(const struct ir_value *value)
{
    return value->block ? value->block : value->op->parent;
}

bool alias_is_converted(const struct aliases *aliases, const struct ir_value *value)
{
    const struct alias_value *set = alias_set(aliases, value);
    return set->written && set->refusal == ALIAS_FINE;
}

uint32_t alias_until(const struct aliases *aliases, const struct ir_block *home,
                     const struct ir_op *user)
{
    uint32_t until = aliases->position[user->id];
    for (const struct ir_block *block = user->parent; block != home; block = block->owner->parent)
        if (!ir_block_is_branch(block))
            until = aliases->end[block->owner->id];
    return until;
}

static void refuse(struct aliases *aliases, const struct ir_value *value,
                   enum alias_refusal refusal, struct ir_op *where)
{
    struct alias_value *set = alias_set(aliases, value);
    if (set->refusal == ALIAS_FINE) {
        set->refusal = refusal;
        set->where = where;
    }
}

/* ---- Trees ----------------------------------------------------------------------------------- */

static void plant(struct aliases *aliases, struct ir_value *value)
{
    struct alias_value *of = alias_of(aliases, value);
    of->root = of->leader = of->kin = value;
}

/*
 * The rule of `op` behind that of the view it is taken of: steps one after the other, params too.
 */
static tssa_status *compose(struct aliases *aliases, const struct alias_view *outer,
                            struct alias_view *view)
{
    const struct rule *rule = rule_of(view->op);
    uint32_t n_outer = outer ? outer->rule->n_steps : 0,
             n_outer_params = outer ? outer->n_params : 0;
    uint32_t n_own = view->op->n_operands - 1;
    view->n_params = n_outer_params + n_own;
    struct ir_value **params = ARENA_ARRAY(&aliases->arena, struct ir_value *, view->n_params);
    struct rule_step *steps =
        ARENA_ARRAY(&aliases->arena, struct rule_step, (size_t)n_outer + rule->n_steps);
    TRY_ALLOC(params);
    TRY_ALLOC(steps);
    for (uint32_t i = 0; i < view->n_params; i++)
        params[i] =
            i < n_outer_params ? outer->params[i] : ir_operand(view->op, 1 + i - n_outer_params);
    for (uint32_t i = 0; i < n_outer; i++)
        steps[i] = outer->rule->steps[i];
    for (uint32_t i = 0; i < rule->n_steps; i++) {
        struct rule_step step = rule->steps[i];
        struct rule_param *own = ARENA_ARRAY(&aliases->arena, struct rule_param, step.n_params);
        TRY_ALLOC(own);
        for (uint32_t p = 0; p < step.n_params; p++) {
            own[p] = step.params[p];
            own[p].value += own[p].is_operand ? n_outer_params : 0;
        }
        step.params = own;
        steps[n_outer + i] = step;
    }
    view->params = params;
    view->rule = rule_create(aliases->pass->graph, (size_t)n_outer + rule->n_steps, steps);
    TRY_ALLOC(view->rule);
    return NULL;
}

static tssa_status *graft(struct aliases *aliases, struct ir_op *op)
{
    struct ir_value *base = ir_operand(op, 0);
    const struct alias_value *of_base = alias_of(aliases, base);
    struct alias_value *of = alias_of(aliases, &op->results[0]);
    struct alias_value *root = alias_of(aliases, of_base->root);
    struct alias_view *view = ARENA_NEW(&aliases->arena, struct alias_view);
    TRY_ALLOC(view);
    view->op = op;
    of->root = of->leader = of_base->root;
    of->view = view;
    TRY(compose(aliases, of_base->view, view));
    if (view->rule->n_steps > RULE_MAX_STEPS || view->n_params + 2 >= IR_VARIADIC)
        refuse(aliases, base, ALIAS_LONG_RULE, op);
    *(root->last ? &root->last->next : &root->first) = view;
    root->last = view;
    return NULL;
}

static tssa_status *number_block(struct aliases *aliases, struct ir_block *block,
                                 uint32_t *position);

static tssa_status *number_op(struct aliases *aliases, struct ir_op *op, uint32_t *position)
{
    aliases->position[op->id] = ++*position;
    for (uint32_t i = 0; i < op->n_operands; i++)
        if (op->operands[i].value) {
            struct ir_value *root = alias_of(aliases, op->operands[i].value)->root;
            alias_of(aliases, root)->last_use = *position;
        }
    if (ir_op_is(op, IR_OP_view))
        return graft(aliases, op);
    if (ir_op_is(op, IR_OP_write) && !vec_push(&aliases->writes, op))
        return status_out_of_memory();
    for (uint32_t i = 0; i < op->n_results; i++)
        plant(aliases, &op->results[i]);
    for (uint32_t i = 0; i < op->n_blocks; i++)
        TRY(number_block(aliases, op->blocks[i], position));
    return NULL;
}

/* Positions in program order, and the trees. */
static tssa_status *number_block(struct aliases *aliases, struct ir_block *block,
                                 uint32_t *position)
{
    for (uint32_t i = 0; i < block->n_params; i++)
        plant(aliases, block->params[i]);
    for (struct ir_op *op = block->first; op; op = op->next) {
        TRY(number_op(aliases, op, position));
        aliases->end[op->id] = *position;
    }
    return NULL;
}

/* ---- Passing on ------------------------------------------------------------------------------ */

static struct alias_value *tree_of(const struct aliases *aliases, const struct ir_value *value)
{
    return alias_of(aliases, alias_of(aliases, value)->root);
}

/*
 * Is the tree of `value` not looked at after `op`, in no run? Uses up to `last` are not after it. A
 * loop between the root and the op comes back to it.
 */
static bool is_over(const struct aliases *aliases, const struct ir_value *value,
                    const struct ir_op *op, uint32_t last)
{
    const struct ir_value *root = alias_of(aliases, value)->root;
    const struct ir_block *home = alias_block(root);
    for (const struct ir_block *block = op->parent; block != home; block = block->owner->parent)
        if (!ir_block_is_branch(block))
            return false;
    return alias_of(aliases, root)->last_use <= last;
}

/* Has the tree of a value moved away when `op` has passed it on? A block's return does so at its
 * end. */
static bool has_moved(const struct aliases *aliases, const struct ir_value *value,
                      const struct ir_op *op)
{
    const struct ir_op *owner = op->parent->owner;
    if (tree_of(aliases, value)->n_passed > 1)
        return false;
    if (!ir_op_is(op, IR_OP_return))
        return is_over(aliases, value, op, aliases->position[op->id]);
    if (alias_block(alias_of(aliases, value)->root) == op->parent)
        return true;
    /* The other branch does not run after this one. */
    return ir_op_is(owner, IR_OP_If) && is_over(aliases, value, owner, aliases->end[owner->id]);
}

/* From `op` on `to` may mean the storage of `from`: both are one set. */
static void join(struct aliases *aliases, const struct alias_passing *passing)
{
    struct ir_op *op = passing->op;
    refuse(aliases, passing->from, passing->refusal,
           ir_op_is(op, IR_OP_return) ? op->parent->owner : op);
    struct alias_value *a = alias_set(aliases, passing->from);
    struct alias_value *b = alias_set(aliases, passing->to);
    if (a == b)
        return;
    a->is_shared = true;
    b->leader = a->leader;
}

/*
 * May the value name an element of its storage more than once? What is handed on does so no longer.
 */
static bool repeats(const struct aliases *aliases, const struct ir_value *value)
{
    const struct alias_view *view = alias_of(aliases, value)->view;
    for (uint32_t i = 0; view && i < view->rule->n_steps; i++) {
        enum rule_kind kind = view->rule->steps[i].kind;
        if (kind == RULE_EXPAND || kind == RULE_TILE || kind == RULE_GATHER)
            return true;
    }
    return false;
}

/* ---- Names that are only looked at ----------------------------------------------------------- */

/* What stands for all trees that may have the value's storage, moved or not. */
static struct ir_value *kin_of(const struct aliases *aliases, const struct ir_value *value)
{
    struct alias_value *of = tree_of(aliases, value);
    while (alias_of(aliases, of->kin) != of) {
        of->kin = alias_of(aliases, of->kin)->kin;
        of = alias_of(aliases, of->kin);
    }
    return of->root;
}

static uint32_t used_until(const struct aliases *aliases, const struct ir_block *home,
                           const struct ir_value *value)
{
    uint32_t last = 0;
    for (const struct ir_use *use = value->uses; use; use = use->next) {
        uint32_t until = alias_until(aliases, home, use->user);
        last = until > last ? until : last;
    }
    return last;
}

/* From where to where in the program a name is used that storage gets. */
static void life_of(const struct aliases *aliases, const struct alias_passing *passing,
                    uint32_t *begin, uint32_t *end)
{
    const struct ir_op *op = passing->op;
    const struct ir_value *to = passing->to;
    op = ir_op_is(op, IR_OP_return) ? op->parent->owner : op;
    *begin = aliases->position[op->id];
    *end = aliases->end[op->id];
    if (to->block) /* a parameter: all of the loop, which comes back to its beginning */
        return;
    *begin = *end;
    *end = used_until(aliases, alias_block(to), to);
    for (const struct alias_view *view = alias_of(aliases, to)->first; view; view = view->next) {
        uint32_t until = used_until(aliases, alias_block(to), &view->op->results[0]);
        *end = until > *end ? until : *end;
    }
}

/* The first write from a position on. */
static size_t find_write(const struct aliases *aliases, uint32_t position)
{
    size_t low = 0, high = aliases->writes.count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (aliases->position[aliases->writes.data[middle]->id] < position)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Is nothing written to the storage while the new name is used, which it passes to no other? */
static bool is_only_read(struct aliases *aliases, const struct alias_passing *passing)
{
    uint32_t begin, end;
    if (passing->refusal == ALIAS_CONTAINED || tree_of(aliases, passing->to)->is_passed_on)
        return false;
    const struct ir_value *kin = kin_of(aliases, passing->to);
    life_of(aliases, passing, &begin, &end);
    for (size_t i = find_write(aliases, begin); i < aliases->writes.count; i++) {
        const struct ir_op *write = aliases->writes.data[i];
        if (aliases->position[write->id] > end)
            return true;
        if (aliases->n_looked_at++ > MAX_LOOKED_AT || kin_of(aliases, ir_operand(write, 0)) == kin)
            return false;
    }
    return true;
}

/* After all have been noted. */
static void note_kin(struct aliases *aliases)
{
    for (size_t i = 0; i < aliases->passings.count; i++) {
        const struct alias_passing *passing = &aliases->passings.data[i];
        struct ir_value *a = kin_of(aliases, passing->from), *b = kin_of(aliases, passing->to);
        tree_of(aliases, passing->from)->is_passed_on = true;
        alias_of(aliases, b)->kin = a;
    }
}

/* `op` gives the storage of `from` to `to`: in join_sets it is seen whether they are one set. */
static bool pass_on(struct aliases *aliases, const struct ir_value *from, struct ir_value *to,
                    struct ir_op *op, enum alias_refusal refusal)
{
    if (!from || !to->uses)
        return true;
    struct alias_passing passing = {from, to, op, refusal, has_moved(aliases, from, op)};
    const struct ir_op *owner = ir_op_is(op, IR_OP_return) ? op->parent->owner : op;
    passing.has_moved &= !ir_op_is(owner, IR_OP_SequenceMap);
    if (passing.has_moved && repeats(aliases, from)) {
        passing.has_moved = false;
        passing.refusal = ALIAS_REPEATED;
    }
    return vec_push(&aliases->passings, passing);
}

/* What has moved is out of reach under its own name, but not when that name may be another's
 * storage. */
static void join_sets(struct aliases *aliases)
{
    size_t left = 0;
    note_kin(aliases);
    for (size_t i = 0; i < aliases->passings.count; i++) {
        struct alias_passing passing = aliases->passings.data[i];
        if (!is_only_read(aliases, &passing))
            aliases->passings.data[left++] = passing;
    }
    for (bool changed = true; changed;) {
        size_t kept = 0;
        changed = false;
        for (size_t i = 0; i < left; i++) {
            struct alias_passing passing = aliases->passings.data[i];
            if (passing.has_moved && !alias_set(aliases, passing.from)->is_shared) {
                aliases->passings.data[kept++] = passing;
                continue;
            }
            join(aliases, &passing);
            changed = true;
        }
        left = kept;
    }
}

/* Counts the operands from `first` on as passed on, or (-1) forgets it again. */
static void count(const struct aliases *aliases, const struct ir_op *op, uint32_t first, uint32_t n,
                  int by)
{
    for (uint32_t i = first; i < first + n && i < op->n_operands; i++)
        if (op->operands[i].value)
            tree_of(aliases, op->operands[i].value)->n_passed += (uint32_t)by;
}

/* What a block returns from `first` on, n values, are results of its op. */
static bool pass_returns(struct aliases *aliases, struct ir_block *block, uint32_t first,
                         uint32_t n)
{
    struct ir_op *ret = ir_block_return(block), *op = block->owner;
    bool carries = ir_loop_carried(op) > 0, ok = true;
    count(aliases, ret, first, n, 1);
    for (uint32_t i = 0; i < n && ok; i++) {
        const struct ir_value *value = ir_operand(ret, first + i);
        ok = pass_on(aliases, value, &op->results[i], ret, ALIAS_PASSED_ON);
        if (carries)
            ok &=
                pass_on(aliases, value, block->params[ir_loop_param(op, i)], ret, ALIAS_PASSED_ON);
    }
    count(aliases, ret, first, n, -1);
    return ok;
}

static bool pass_if(struct aliases *aliases, struct ir_op *op)
{
    return pass_returns(aliases, op->blocks[0], 0, op->n_results) &&
           pass_returns(aliases, op->blocks[1], 0, op->n_results);
}

/* Loops and scans. Scan outputs are copied when an iteration ends. */
static bool pass_loop(struct aliases *aliases, struct ir_op *op)
{
    uint32_t n = ir_loop_carried(op), first = ir_loop_operand(op, 0);
    bool ok = true;
    count(aliases, op, first, n, 1);
    for (uint32_t i = 0; i < n && ok; i++) {
        const struct ir_value *value = ir_operand(op, first + i);
        struct ir_value *param = op->blocks[0]->params[ir_loop_param(op, i)];
        ok = pass_on(aliases, value, param, op, ALIAS_PASSED_ON) &&
             pass_on(aliases, value, &op->results[i], op, ALIAS_PASSED_ON);
    }
    count(aliases, op, first, n, -1);
    return ok && pass_returns(aliases, op->blocks[0], ir_loop_return(op, 0), n);
}

/* Elements go in, are handed to the body, and what it returns is put together: all one set. Nothing
 * moves: a tensor is handed to the body many times. */
static bool pass_sequence_map(struct aliases *aliases, struct ir_op *op)
{
    struct ir_block *body = op->blocks[0];
    struct ir_op *ret = ir_block_return(body);
    bool ok = true;
    for (uint32_t i = 0; i < op->n_operands && i < body->n_params && ok; i++)
        ok = pass_on(aliases, ir_operand(op, i), body->params[i], op, ALIAS_CONTAINED);
    for (uint32_t i = 0; i < op->n_results && ok; i++)
        ok = pass_on(aliases, ir_operand(ret, i), &op->results[i], ret, ALIAS_CONTAINED);
    return ok;
}

/* Any operand may be in any result, or the other way round. */
static bool pass_container(struct aliases *aliases, struct ir_op *op)
{
    bool ok = true;
    count(aliases, op, 0, op->n_operands, 1);
    for (uint32_t i = 0; i < op->n_operands; i++)
        for (uint32_t r = 0; r < op->n_results && ok; r++)
            ok = pass_on(aliases, ir_operand(op, i), &op->results[r], op, ALIAS_CONTAINED);
    count(aliases, op, 0, op->n_operands, -1);
    return ok;
}

static bool is_container(const struct ir_value *value)
{
    return value && (value->type->kind == TYPE_SEQUENCE || value->type->kind == TYPE_OPTIONAL ||
                     value->type->kind == TYPE_MAP);
}

/* Does the op keep tensors in sequences or optionals, or take them out? */
static bool handles_containers(const struct ir_op *op)
{
    static const enum ir_op_id copies[] = {IR_OP_ConcatFromSequence, IR_OP_SequenceLength,
                                           IR_OP_SplitToSequence, IR_OP_OptionalHasElement};
    bool any = false;
    for (size_t i = 0; i < sizeof copies / sizeof *copies; i++)
        if (ir_op_is(op, copies[i]))
            return false;
    for (uint32_t i = 0; i < op->n_operands; i++)
        any |= is_container(ir_operand(op, i));
    for (uint32_t i = 0; i < op->n_results; i++)
        any |= is_container(&op->results[i]);
    return any;
}

static tssa_status *pass_op(void *context, struct ir_op *op)
{
    struct aliases *aliases = context;
    bool ok = true;
    if (ir_op_is(op, IR_OP_return))
        return NULL;
    if (ir_op_is(op, IR_OP_If))
        ok = pass_if(aliases, op);
    else if (ir_op_is_loop(op))
        ok = pass_loop(aliases, op);
    else if (ir_op_is(op, IR_OP_SequenceMap))
        ok = pass_sequence_map(aliases, op);
    else if (handles_containers(op))
        ok = pass_container(aliases, op);
    return ok ? NULL : status_out_of_memory();
}

/* Every block between a write and the storage must be able to hand the new version out. */
static void check_write(struct aliases *aliases, const struct ir_op *write)
{
    const struct ir_value *value = ir_operand(write, 0);
    const struct ir_block *home = alias_block(alias_of(aliases, value)->root);
    alias_set(aliases, value)->written = true;
    for (const struct ir_block *block = write->parent; block != home; block = block->owner->parent)
        if (!alias_hands_out(block))
            refuse(aliases, value, ALIAS_FOREIGN, block->owner);
}

/* ---- Values that are another value ----------------------------------------------------------- */

/* What both branches return is that value, and a carried value that is never rebound, or to what it
 * was in the beginning, is that: not another name, of which one could not tell what it means. */
static tssa_status *bind_same(void *context, struct ir_op *op)
{
    (void)context;
    if (ir_op_is(op, IR_OP_If)) {
        const struct ir_op *a = ir_block_return(op->blocks[0]), *b = ir_block_return(op->blocks[1]);
        for (uint32_t i = 0; i < op->n_results; i++)
            if (ir_operand(a, i) && ir_operand(a, i) == ir_operand(b, i))
                ir_value_replace(&op->results[i], ir_operand(a, i));
    }
    for (uint32_t i = 0; ir_op_is(op, IR_OP_Loop) && i < ir_loop_carried(op); i++) {
        struct ir_value *param = op->blocks[0]->params[ir_loop_param(op, i)];
        struct ir_value *first = ir_operand(op, ir_loop_operand(op, i));
        const struct ir_value *next =
            ir_operand(ir_block_return(op->blocks[0]), ir_loop_return(op, i));
        if (first && (next == param || next == first)) {
            ir_value_replace(param, first);
            ir_value_replace(&op->results[i], first);
        }
    }
    return NULL;
}

tssa_status *alias_bind_same(struct ir_block *block)
{
    return ir_block_walk(block, bind_same, NULL);
}

/* ---- Analysis -------------------------------------------------------------------------------- */

void alias_free(struct aliases *aliases)
{
    vec_free(&aliases->writes);
    vec_free(&aliases->passings);
    arena_clear(&aliases->arena);
}

tssa_status *alias_analyse(struct aliases *aliases, struct pass_context *pass)
{
    struct ir_graph *graph = pass->graph;
    uint32_t position = 0;
    memset(aliases, 0, sizeof *aliases);
    aliases->pass = pass;
    arena_init(&aliases->arena, graph->allocator);
    vec_init(&aliases->writes, graph->allocator);
    vec_init(&aliases->passings, graph->allocator);
    aliases->n_values = graph->n_values;
    aliases->n_ops = graph->n_ops;
    aliases->values = ARENA_ARRAY(&aliases->arena, struct alias_value, graph->n_values);
    aliases->position = ARENA_ARRAY(&aliases->arena, uint32_t, graph->n_ops);
    aliases->end = ARENA_ARRAY(&aliases->arena, uint32_t, graph->n_ops);
    TRY_ALLOC(aliases->values);
    TRY_ALLOC(aliases->position);
    TRY_ALLOC(aliases->end);
    TRY(number_block(aliases, graph->body, &position));
    TRY(ir_block_walk(graph->body, pass_op, aliases));
    join_sets(aliases);
    for (size_t i = 0; i < aliases->writes.count; i++)
        check_write(aliases, aliases->writes.data[i]);
    return NULL;
}
