/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the first iteration of a Loop out in front of it, or the last one behind it, where that
 * tells something about all the others which is not known otherwise:
 *
 *   - a comparison of the iteration's number that comes out differently in this iteration alone
 *     (i == 0, i > 0, i == n - 1), where an If or a Where asks for it;
 *   - a carried number or flag that is one constant at first and another one ever after;
 *   - a carried tensor that has another size at first (an empty buffer, say);
 *   - where launches are what counts (ir_fusion.side_by_side): a carried tensor that is computed
 * for the loop alone, which each iteration writes into: the first one computes and writes it at
 *     once then.
 *
 *     Loop(n, c, x) { (i, c, v): If(i == 0) { f } else { g(v) } }
 *     f,  Loop(n - 1, c, f) { (i, c, v): g(v) }
 *
 * A loop that may make no iteration goes into a branch that asks first (guard.h).
 *
 * What is known is put in at once; the branches go when it is seen that they never run
 * (known_branches). The iteration is compared no more afterwards, so that no loop is peeled twice
 * for one reason.
 *
 *   needs   known elements; loops whose iterations can be computed at once are gone (parallelize)
 *   keeps   the order of what is computed; loops that may make no iteration and stack rows of a
 *           size that only a run tells, which a remark says, large bodies, and loops that stack
 *           large rows, since all would be copied once more
 *   breaks  types: the iterations may be inferred more precisely (infer)
 */
#include "base/vec.h"
#include "ir/fuse.h"
#include "ir/infer.h"
#include "ir/total.h"
#include "passes/analysis/iteration.h"
#include "passes/loops/guard.h"
#include "passes/pass.h"

#define MAX_BODY_OPS 256
#define MAX_TOTAL_OPS 4096     /* that one run of the pass may make */
#define MAX_ROW_ELEMENTS 65536 /* of a scan output's row */
#define MAX_STEPS 64           /* that are followed from a value to a choice */

enum end { FIRST, LAST };

/*
 * A comparison that is `there` in the iteration that is written out, and `elsewhere` in all others.
 */
struct decision {
    struct ir_value *value;
    bool there, elsewhere;
};

struct peel {
    struct pass_context *pass;
    struct ir_cloner cloner;
    VEC(struct decision) decisions;
    VEC(struct ir_use *) uses; /* of one result, but for those that are made here */
    uint32_t made;
    struct loop loop;
    const struct dim *at[2], *others[2]; /* the iteration's number at an end, and everywhere else */
    const char *told;                    /* of the value for which an iteration is written out */
};

/* ---- What an iteration decides --------------------------------------------------------------- */

static bool is_single(const struct ir_value *value)
{
    return value->type->rank <= 1 && type_has_one_element(value->type);
}

/* Is an If's or Where's condition computed from this value? */
static bool is_asked(const struct ir_value *value, int *steps)
{
    for (const struct ir_use *use = value->uses; use; use = use->next) {
        const struct ir_op *user = use->user;
        bool condition = use == user->operands;
        if (++*steps > MAX_STEPS)
            return false;
        if (condition && (ir_op_is(user, IR_OP_If) || ir_op_is(user, IR_OP_Where)))
            return true;
        bool passes_on =
            user->info->ew || (user->info->flags & IR_ALIAS) || ir_op_is(user, IR_OP_Cast);
        if (passes_on && is_single(&user->results[0]) && is_asked(&user->results[0], steps))
            return true;
    }
    return false;
}

/* The truth of a comparison whose sides differ by this: 1, 0, or -1 where it is not known. */
static int truth_of(unsigned signs, const struct dim *difference)
{
    unsigned possible = INFER_ANY;
    if (difference->low >= 0)
        possible &= ~(unsigned)INFER_LESS;
    if (difference->high <= 0)
        possible &= ~(unsigned)INFER_GREATER;
    if (difference->low > 0 || difference->high < 0)
        possible &= ~(unsigned)INFER_EQUAL;
    return !(possible & ~signs) ? 1 : !(possible & signs) ? 0 : -1;
}

static tssa_status *note_comparison(struct peel *peel, enum end end, struct ir_op *op)
{
    struct dim_table *dims = &peel->pass->graph->dims;
    const struct dim *counter = peel->loop.body->params[0]->known->elements[0];
    unsigned signs = infer_signs(op->info->id);
    const struct ir_known *a = infer_known(op, 0), *b = infer_known(op, 1);
    int steps = 0;
    if (!a || !b || a->count != 1 || b->count != 1 || !a->elements[0] || !b->elements[0] ||
        !is_single(&op->results[0]))
        return NULL;
    const struct dim *difference = dim_sub(dims, a->elements[0], b->elements[0]);
    const struct dim *at = dim_substitute(dims, difference, counter, peel->at[end]);
    const struct dim *others = dim_substitute(dims, difference, counter, peel->others[end]);
    TRY_ALLOC(at);
    TRY_ALLOC(others);
    int there = truth_of(signs, at), elsewhere = truth_of(signs, others);
    if (there < 0 || elsewhere < 0 || there == elsewhere || !is_asked(&op->results[0], &steps))
        return NULL;
    const struct decision decision = {&op->results[0], there, elsewhere};
    return vec_push(&peel->decisions, decision) ? NULL : status_out_of_memory();
}

static tssa_status *note_comparisons(struct peel *peel, enum end end, struct ir_block *block)
{
    for (struct ir_op *op = block->first; op; op = op->next) {
        for (uint32_t b = 0; b < op->n_blocks; b++)
            TRY(note_comparisons(peel, end, op->blocks[b]));
        if (infer_signs(op->info->id) != INFER_ANY)
            TRY(note_comparison(peel, end, op));
    }
    return NULL;
}

/* ---- Carried values -------------------------------------------------------------------------- */

/* One constant at first, another one ever after, and somebody asks. */
static bool is_flag(const struct loop *loop, uint32_t k)
{
    int64_t before, after;
    int steps = 0;
    struct ir_value *param = loop_param(loop, k), *next = loop_next(loop, k);
    return loop_known_int(loop_initial(loop, k), &before) && loop_known_int(next, &after) &&
           before != after && ir_value_constant(loop_unaliased(next)) &&
           loop_unaliased(next)->type == param->type && is_asked(param, &steps);
}

static bool is_of_known_size(const struct ir_type *type, int64_t *elements)
{
    int64_t size;
    *elements = 1;
    if (type->kind != TYPE_TENSOR || type->rank < 0 || type->dtype == TSSA_UNDEFINED)
        return false;
    for (int i = 0; i < type->rank; i++)
        if (!dim_is_const(type->dims[i], &size) ||
            __builtin_mul_overflow(*elements, size, elements))
            return false;
    return true;
}

/* Only the first iteration is given another size. (What is another carried value may take as many
 * iterations as there are carried values.) */
static bool settles(const struct loop *loop, uint32_t k)
{
    int64_t elements;
    const struct ir_value *next = loop_unaliased(loop_next(loop, k));
    const struct ir_type *type = loop_next(loop, k)->type;
    return next->block != loop->body && loop_param(loop, k)->uses &&
           loop_initial(loop, k)->type != type && loop_param(loop, k)->type != type &&
           is_of_known_size(type, &elements);
}

/* The carried value that is better known after the first iteration; NULL: there is none. */
static const struct ir_value *find_carried(const struct loop *loop)
{
    for (uint32_t k = 0; k < loop->n_carried; k++)
        if (is_flag(loop, k) || settles(loop, k))
            return loop_param(loop, k);
    return NULL;
}

/* Is it computed element by element for the loop alone, and an iteration only writes into it? */
static bool is_written(const struct loop *loop, uint32_t k)
{
    const struct ir_value *initial = loop_initial(loop, k), *param = loop_param(loop, k);
    const struct ir_use *use = param->uses;
    return initial->op && initial->op->info->ew && initial->op->parent == loop->op->parent &&
           loop_is_only_use(initial, loop->op, k + 2) && use && !use->next &&
           ir_op_is(use->user, IR_OP_assign) && use == use->user->operands &&
           use->user->parent == loop->body;
}

/* The carried value that the first iteration would compute where it writes into it; NULL: there is
 * none, or nobody counts launches. */
static const struct ir_value *find_written(const struct peel *peel)
{
    const struct ir_fusion *fusion = peel->pass->fusion;
    for (uint32_t k = 0; k < peel->loop.n_carried && fusion && fusion->side_by_side; k++)
        if (is_written(&peel->loop, k))
            return loop_param(&peel->loop, k);
    return NULL;
}

/* ---- Is it legal, and worth it? -------------------------------------------------------------- */

/* Rows that are stacked are copied once more; a stack of none has a size that runtimes disagree
 * about. */
static bool rows_are_small(const struct loop *loop)
{
    int64_t elements;
    const struct ir_known *trips = infer_known(loop->op, 0);
    bool some_left =
        trips && trips->count == 1 && trips->elements[0] && trips->elements[0]->low > 1;
    for (uint32_t k = 0; k < loop->n_stacked; k++)
        if (loop->op->results[loop->n_carried + k].uses &&
            (!some_left ||
             !is_of_known_size(ir_operand(loop->ret, loop->n_carried + 1 + k)->type, &elements) ||
             elements > MAX_ROW_ELEMENTS))
            return false;
    return true;
}

static bool is_candidate(struct peel *peel)
{
    int64_t trips;
    const struct loop *loop = &peel->loop;
    const struct ir_known *counter = loop->body->params[0]->known;
    if (loop->op->n_operands < 2 || iteration_has_absent(loop) ||
        (loop_trips(loop, &trips) && trips <= 1))
        return false;
    return counter && counter->count == 1 && counter->elements[0]->kind == DIM_SYMBOL &&
           loop_size(loop->body, MAX_BODY_OPS + 1) <= MAX_BODY_OPS && rows_are_small(loop);
}

/* The numbers of the iterations: 0 and those after it, n - 1 and those before it. */
static tssa_status *set_numbers(struct peel *peel)
{
    struct dim_table *dims = &peel->pass->graph->dims;
    const struct dim *counter = peel->loop.body->params[0]->known->elements[0];
    const struct ir_known *trips = infer_known(peel->loop.op, 0);
    peel->at[FIRST] = dim_const(dims, 0);
    peel->others[FIRST] = dim_fresh_between(dims, "i", 1, counter->high < 1 ? 1 : counter->high);
    TRY_ALLOC(peel->at[FIRST]);
    TRY_ALLOC(peel->others[FIRST]);
    peel->at[LAST] = peel->others[LAST] = NULL;
    if (!trips || trips->count != 1 || !trips->elements[0] ||
        loop_stays(&peel->loop) != LOOP_TRUE || ir_operand(peel->loop.op, 0)->type->rank != 0)
        return NULL;
    peel->at[LAST] = dim_sub(dims, trips->elements[0], dim_const(dims, 1));
    peel->others[LAST] = dim_sub(dims, peel->at[LAST], dim_fresh_between(dims, "i", 1, INT64_MAX));
    TRY_ALLOC(peel->at[LAST]);
    TRY_ALLOC(peel->others[LAST]);
    return NULL;
}

/* Which end to write out, and for which value; *why is NULL where neither tells anything. */
static tssa_status *find_reason(struct peel *peel, enum end *end, const struct ir_value **why)
{
    TRY(set_numbers(peel));
    *why = find_carried(&peel->loop);
    peel->told = "is known in all others";
    if (!*why && ir_loop_runs(peel->loop.op) && (*why = find_written(peel)))
        peel->told = "is computed where it is written into";
    *end = FIRST;
    peel->decisions.count = 0;
    TRY(note_comparisons(peel, FIRST, peel->loop.body));
    if (!*why && !peel->decisions.count && peel->at[LAST]) {
        *end = LAST;
        TRY(note_comparisons(peel, LAST, peel->loop.body));
    }
    if (!*why && peel->decisions.count)
        *why = peel->decisions.data[0].value;
    return NULL;
}

/* ---- Facts ----------------------------------------------------------------------------------- */

/* A truth in the place of a value of one element. */
static tssa_status *replace_by_truth(struct ir_op *at, struct ir_value *value, bool truth)
{
    struct ir_value *constant;
    TRY(loop_make_bool(at, truth, &constant));
    if (value->type->rank == 1)
        TRY(loop_make_unsqueeze(at, constant, 0, &constant));
    ir_value_replace(value, constant);
    return NULL;
}

static tssa_status *decide_copies(struct peel *peel)
{
    for (size_t i = 0; i < peel->decisions.count; i++) {
        const struct decision *decision = &peel->decisions.data[i];
        struct ir_value *copy = ir_cloner_get(&peel->cloner, decision->value);
        TRY(replace_by_truth(copy->op, copy, decision->there));
    }
    return NULL;
}

static tssa_status *decide_others(struct peel *peel)
{
    for (size_t i = 0; i < peel->decisions.count; i++) {
        const struct decision *decision = &peel->decisions.data[i];
        TRY(replace_by_truth(decision->value->op, decision->value, decision->elsewhere));
    }
    return NULL;
}

/* Flags are what they are ever after. */
static tssa_status *set_flags(const struct loop *loop)
{
    for (uint32_t k = 0; k < loop->n_carried; k++) {
        struct ir_value *param = loop_param(loop, k);
        if (!is_flag(loop, k))
            continue;
        struct ir_op *copy = ir_constant_create(
            loop->body->graph, ir_value_constant(loop_unaliased(loop_next(loop, k))));
        TRY(pass_insert(copy, loop->body->first));
        ir_value_replace(param, &copy->results[0]);
    }
    return NULL;
}

/* ---- The rewriting --------------------------------------------------------------------------- */

static tssa_status *combine(struct ir_op *at, enum ir_op_id id, struct ir_value *a, int64_t b,
                            struct ir_value **result)
{
    struct ir_value *number;
    TRY(loop_make_int(at, 0, b, &number));
    return loop_make_binary(at, id, a, number, result);
}

/* One iteration less; NULL for a loop without a limit. */
static tssa_status *count_others(const struct loop *loop, struct ir_value **count)
{
    int64_t trips;
    *count = ir_operand(loop->op, 0);
    if (!*count || (loop_known_int(*count, &trips) && trips == INT64_MAX))
        return NULL;
    if (loop_known_int(*count, &trips))
        return loop_make_int(loop->op, 0, trips - 1, count);
    return combine(loop->op, IR_OP_Sub, *count, 1, count);
}

static bool remember_uses(struct peel *peel, const struct ir_value *value)
{
    for (struct ir_use *use = value->uses; use; use = use->next)
        if (!vec_push(&peel->uses, use))
            return false;
    return true;
}

/* `by` for all uses that are remembered of a value, under its name. */
static void replace_remembered(struct peel *peel, struct ir_value *old, struct ir_value *by)
{
    for (size_t i = 0; i < peel->uses.count; i++) {
        struct ir_use *use = peel->uses.data[i];
        if (use->value == old)
            ir_op_set_operand(use->user, (uint32_t)(use - use->user->operands), by);
    }
    if (!by->name) {
        by->name = old->name;
        old->name = NULL;
    }
}

/* Scan outputs get the row in front or behind. */
static tssa_status *add_rows(struct peel *peel, enum end end, struct ir_op *behind,
                             struct ir_value *const *elements)
{
    const struct loop *loop = &peel->loop;
    for (uint32_t k = 0; k < loop->n_stacked; k++) {
        struct ir_value *rows = &loop->op->results[loop->n_carried + k], *all;
        if (!rows->uses)
            continue;
        peel->uses.count = 0;
        if (!remember_uses(peel, rows))
            return status_out_of_memory();
        struct ir_value *const parts[] = {end == FIRST ? elements[k] : rows,
                                          end == FIRST ? rows : elements[k]};
        TRY(iteration_stack(behind, parts, 1, 2, &all));
        all->op->name = loop->op->name;
        replace_remembered(peel, rows, all);
    }
    return NULL;
}

/* The loop goes on from what the first iteration returned, and counts from 1. */
static tssa_status *follow_first(struct peel *peel, struct ir_value *const *carried)
{
    const struct loop *loop = &peel->loop;
    struct ir_value *counter = loop->body->params[0], *number;
    for (uint32_t k = 0; k < loop->n_carried; k++)
        ir_op_set_operand(loop->op, k + 2, carried[k]);
    peel->uses.count = 0;
    if (!remember_uses(peel, counter))
        return status_out_of_memory();
    if (!counter->uses)
        return NULL;
    TRY(combine(loop->body->first, IR_OP_Add, counter, 1, &number));
    replace_remembered(peel, counter, number);
    return NULL;
}

/*
 * The loop goes before the last iteration, which was made in front of it from what the loop leaves.
 */
static void precede_last(const struct loop *loop, struct ir_op *mark)
{
    struct ir_op *first = mark ? mark->next : loop->op->parent->first;
    if (first != loop->op)
        ir_op_move_before(loop->op, first);
}

static tssa_status *write_first(struct peel *peel, struct ir_value **carried,
                                struct ir_value **elements)
{
    const struct loop *loop = &peel->loop;
    struct ir_op *behind = loop->op->next;
    struct ir_value *count, *zero;
    TRY(count_others(loop, &count));
    TRY(loop_make_int(loop->op, 0, 0, &zero));
    for (uint32_t k = 0; k < loop->n_carried; k++)
        carried[k] = loop_initial(loop, k);
    TRY(iteration_copy(&peel->cloner, loop, zero, carried, elements));
    if (loop_stays(loop) != LOOP_TRUE)
        ir_op_set_operand(loop->op, 1, ir_cloner_get(&peel->cloner, ir_operand(loop->ret, 0)));
    TRY(decide_copies(peel));
    TRY(decide_others(peel));
    TRY(set_flags(loop));
    TRY(follow_first(peel, carried));
    ir_op_set_operand(loop->op, 0, count);
    TRY(ir_infer_op_lenient(loop->op));
    return add_rows(peel, FIRST, behind, elements);
}

/* Behind the loop, what it carried is what the last iteration returned: another result, perhaps. */
static void replace_finals(struct peel *peel, struct ir_value *const *carried)
{
    for (size_t i = 0; i < peel->uses.count; i++) {
        struct ir_use *use = peel->uses.data[i];
        struct ir_value *old = use->value, *by = carried[old->index];
        ir_op_set_operand(use->user, (uint32_t)(use - use->user->operands), by);
        if (!by->name) {
            by->name = old->name;
            old->name = NULL;
        }
    }
}

static tssa_status *write_last(struct peel *peel, struct ir_value **carried,
                               struct ir_value **elements)
{
    const struct loop *loop = &peel->loop;
    struct ir_op *behind = loop->op->next;
    struct ir_value *count;
    TRY(count_others(loop, &count));
    struct ir_op *mark = loop->op->prev;
    peel->uses.count = 0;
    for (uint32_t k = 0; k < loop->n_carried; k++) {
        carried[k] = loop_final(loop, k);
        if (!remember_uses(peel, carried[k]))
            return status_out_of_memory();
    }
    TRY(iteration_copy(&peel->cloner, loop, count, carried, elements));
    TRY(decide_copies(peel));
    TRY(decide_others(peel));
    ir_op_set_operand(loop->op, 0, count);
    TRY(ir_infer_op_lenient(loop->op));
    precede_last(loop, mark);
    replace_finals(peel, carried);
    return add_rows(peel, LAST, behind, elements);
}

static tssa_status *visit_loop(struct peel *peel, struct ir_op *op)
{
    enum end end;
    const struct ir_value *why;
    struct arena *arena = &peel->pass->graph->arena;
    peel->loop = loop_of(op);
    if (!is_candidate(peel))
        return NULL;
    TRY(find_reason(peel, &end, &why));
    if (!why)
        return NULL;
    const char *which = end == FIRST ? "first" : "last", *name = why->name ? why->name : "?";
    bool runs = ir_loop_runs(op);
    if (!runs && !guard_has_form(&peel->loop))
        return pass_remark(peel->pass, TSSA_REMARK_MISSED, op,
                           "%%%s is known but in the %s iteration, which is not written out: it is "
                           "not certain that there is one",
                           name, which);
    uint32_t size = loop_size(peel->loop.body, MAX_BODY_OPS);
    struct ir_value **carried = ARENA_ARRAY(arena, struct ir_value *, peel->loop.n_carried);
    struct ir_value **elements = ARENA_ARRAY(arena, struct ir_value *, peel->loop.n_stacked);
    TRY_ALLOC(carried);
    TRY_ALLOC(elements);
    if (peel->made + size > MAX_TOTAL_OPS)
        return NULL;
    peel->made += size;
    TRY(pass_remark(peel->pass, TSSA_REMARK_APPLIED, op,
                    "its %s iteration is written out%s: %%%s %s", which,
                    runs ? "" : ", where there is one", name, peel->told));
    peel->pass->changed = true;
    if (!runs)
        TRY(guard_loop(&peel->loop));
    return (end == FIRST ? write_first : write_last)(peel, carried, elements);
}

static tssa_status *visit(void *context, struct ir_op *op)
{
    return ir_op_is(op, IR_OP_Loop) ? visit_loop(context, op) : NULL;
}

tssa_status *pass_peel(struct pass_context *pass)
{
    struct peel peel = {.pass = pass};
    vec_init(&peel.decisions, pass->graph->allocator);
    vec_init(&peel.uses, pass->graph->allocator);
    ir_cloner_init(&peel.cloner, pass->graph);
    tssa_status *status = ir_block_walk(pass->graph->body, visit, &peel);
    ir_cloner_free(&peel.cloner);
    vec_free(&peel.uses);
    vec_free(&peel.decisions);
    return status;
}
