/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loops whose iterations do not need each other: all iterations are computed at once, by the ops of the
 * body with an axis more (batch.h), and the Loop goes. What a loop carries may be
 *
 *     a tensor       that every iteration writes elsewhere, and reads only where it writes itself: rows
 *                    i, say. After the loop one assign writes what all iterations wrote.
 *     a result       of an operation on integers or truth values whose order does not matter
 *     a sum          of integers, that the iteration uses: of those before it (CumSum)
 *     nothing        scan outputs are what all iterations computed
 *
 * Ifs and Loops in the body may be among its ops (batch_control.c): an If that all iterations decide alike
 * stays, outside; of one that each iteration decides both branches are computed, where they are cheap and
 * cannot fail; a Loop that runs as often in all iterations stays, and takes a step of all of them at once.
 *
 * A Loop that carries nothing is the map that loops are turned into: it needs no op of its own, since it
 * can be run, written as ONNX, and left as it is where an op has no form for all iterations (NonZero).
 *
 *   needs   forward_assigns, the loop's counter as a known element
 *   keeps   results' bits, but that matrix products and sums of floats may be added up in another order;
 *           loops that it does not understand, which a remark explains
 *   breaks  ops of the body that nothing uses were copied as well (dead_code)
 *
 * A trip count below zero is none. An index that is out of range is an error after the rewriting as
 * before, though perhaps of another op; it is none where the loop has elements of no size only.
 */
#include "base/vec.h"
#include "ir/infer.h"
#include "ir/region.h"
#include "passes/batch.h"
#include "passes/loops.h"
#include "passes/regions.h"

/* Assigns to one carried tensor in one iteration. */
#define MAX_ASSIGNS 64

/* Results of at most so many bytes are made where the loop needed one of them at a time. */
#define MAX_BYTES (INT64_C(256) << 20)

enum carried_kind { CARRIED_SAME, CARRIED_TENSOR, CARRIED_REDUCED, CARRIED_SUMMED };

struct carried {
    enum carried_kind kind;
    struct ir_op *assigns[MAX_ASSIGNS]; /* last one first */
    uint32_t n_assigns;
    struct ir_op *combine; /* of CARRIED_REDUCED and CARRIED_SUMMED */
    struct ir_value *term; /* what it adds */
};

struct state {
    struct pass_context *pass;
    struct ir_cloner shared, stacked;
    struct region_space space;
    struct loop loop;
    struct carried *carried;
    uint32_t nested;                   /* ops in blocks that may still be made */
    VEC(const struct ir_op *) skipped; /* ops that are not computed as they stand */
    const struct ir_value *blamed;     /* the carried value that keeps the loop */
    const struct ir_op *at;
    const char *reason;
};

static bool refuse(struct state *s, const struct ir_value *value, const struct ir_op *at,
                   const char *reason)
{
    s->blamed = value;
    s->at = at;
    s->reason = reason;
    return false;
}

static const char *name_of(const struct ir_value *value)
{
    return value && value->name ? value->name : "?";
}

/* ---- What the loop carries ------------------------------------------------------------------------ */

/* The same region, which moves with the counter. */
static bool moves(const struct batch *facts, const struct ir_op *a, const struct ir_op *b)
{
    int64_t factor, offset;
    if (!regions_identical(a, b))
        return false;
    const struct rule *rule = rule_of(a);
    for (uint32_t i = 0; i < rule->n_steps; i++) {
        const struct rule_step *step = &rule->steps[i];
        if (step->kind == RULE_SELECT &&
            batch_affine(facts, rule_param_dim(a, &step->params[1]), &factor, &offset) &&
            factor != 0 && offset >= 0)
            return true; /* batch_region refuses what would become negative */
        if (!rule_step_is_injective(step))
            return false;
    }
    return false;
}

/* Two accesses or assigns whose regions have nothing in common in any two different iterations. */
static tssa_status *disjoint_across(struct state *s, const struct batch *facts,
                                    const struct ir_op *a, const struct ir_op *b, bool *disjoint)
{
    struct regions {
        struct region a, b;
        struct ir_value *params_a[IR_VARIADIC], *params_b[IR_VARIADIC];
    } * regions;
    *disjoint = moves(facts, a, b);
    if (*disjoint)
        return NULL;
    const struct dim *counter = region_scalar(&s->space, s->loop.body->params[0]);
    regions = ARENA_NEW(&s->pass->graph->arena, struct regions);
    TRY_ALLOC(counter);
    TRY_ALLOC(regions);
    TRY(region_of(&s->space, a, regions->params_a, &regions->a));
    TRY(region_of(&s->space, b, regions->params_b, &regions->b));
    *disjoint = region_disjoint_across(&s->space, &regions->a, &regions->b, counter, s->loop.body);
    return NULL;
}

/* All reads of the tensor as it was before the iteration are where only this iteration writes. */
static tssa_status *check_reads(struct state *s, const struct batch *facts, struct carried *c,
                                const struct ir_value *param, bool *ok)
{
    const struct ir_op *first = c->assigns[c->n_assigns - 1];
    for (const struct ir_use *u = param->uses; u && *ok; u = u->next) {
        if (u->user == first && u == &first->operands[0])
            continue;
        if (!ir_op_is(u->user, IR_OP_access) || u != &u->user->operands[0])
            *ok = refuse(s, param, u->user, "the whole of it is used in an iteration");
        for (uint32_t i = 0; *ok && i < c->n_assigns; i++) {
            TRY(disjoint_across(s, facts, c->assigns[i], u->user, ok));
            if (!*ok)
                refuse(s, param, u->user, "it may be read where another iteration has written");
        }
    }
    return NULL;
}

/* One more assign: it writes where no other iteration does. */
static tssa_status *check_assign(struct state *s, const struct batch *facts, struct carried *c,
                                 struct ir_op *op, bool *ok)
{
    c->assigns[c->n_assigns++] = op;
    for (uint32_t i = 0; *ok && i < c->n_assigns; i++)
        TRY(disjoint_across(s, facts, c->assigns[i], op, ok));
    return NULL;
}

static tssa_status *check_tensor(struct state *s, const struct batch *facts, uint32_t k, bool *ok)
{
    struct carried *c = &s->carried[k];
    struct ir_value *param = loop_param(&s->loop, k), *version = loop_next(&s->loop, k);
    const struct ir_op *next = s->loop.ret;
    c->kind = CARRIED_TENSOR;
    *ok = true;
    while (version != param) {
        struct ir_op *op = version->op;
        if (!op || !ir_op_is(op, IR_OP_assign) || op->parent != s->loop.body ||
            c->n_assigns == MAX_ASSIGNS)
            *ok = refuse(s, param, op, "each iteration computes it from the one before");
        else if (!version->uses || version->uses->next || version->uses->user != next)
            *ok = refuse(s, param, op, "it is used after it was written in an iteration");
        if (!*ok)
            return NULL;
        TRY(check_assign(s, facts, c, op, ok));
        if (!*ok) {
            refuse(s, param, op, "iterations may write the same elements");
            return NULL;
        }
        next = op;
        version = ir_operand(op, 0);
    }
    return check_reads(s, facts, c, param, ok);
}

/* What makes one value of all: exact whatever the order, and a Reduce operator that does the same. */
struct reduction {
    enum ir_op_id id, reduce;
    bool truth; /* of bools: reduced as i32 */
};

static const struct reduction reductions[] = {
    {IR_OP_Add, IR_OP_ReduceSum, false}, {IR_OP_Mul, IR_OP_ReduceProd, false},
    {IR_OP_Max, IR_OP_ReduceMax, false}, {IR_OP_Min, IR_OP_ReduceMin, false},
    {IR_OP_And, IR_OP_ReduceMin, true},  {IR_OP_Or, IR_OP_ReduceMax, true},
};

static const struct reduction *reduction_of(const struct ir_op *op)
{
    tssa_dtype dtype = op->results[0].type->dtype;
    for (size_t i = 0; i < sizeof reductions / sizeof *reductions; i++)
        if (ir_op_is(op, reductions[i].id) &&
            (reductions[i].truth || dtype == TSSA_INT32 || dtype == TSSA_INT64))
            return &reductions[i];
    return NULL;
}

/* Does the next one come from this one and a term by such an operation? */
static bool read_combine(struct state *s, uint32_t k)
{
    struct carried *c = &s->carried[k];
    const struct ir_value *param = loop_param(&s->loop, k), *next = loop_next(&s->loop, k);
    struct ir_op *op = next->op;
    if (!op || op->parent != s->loop.body || op->n_operands != 2 ||
        op->results[0].type->kind != TYPE_TENSOR || !reduction_of(op) ||
        (ir_operand(op, 0) != param && ir_operand(op, 1) != param))
        return false;
    c->combine = op;
    c->term = ir_operand(op, ir_operand(op, 0) == param ? 1 : 0);
    return c->term != param && c->term->type == param->type && next->type == param->type &&
           param->type->rank >= 0 && loop_initial(&s->loop, k)->type == param->type;
}

/* Nothing else may use a result; sums can be had of the iterations before each one. */
static bool check_reduction(struct state *s, uint32_t k)
{
    struct carried *c = &s->carried[k];
    const struct ir_value *param = loop_param(&s->loop, k), *next = loop_next(&s->loop, k);
    if (!read_combine(s, k))
        return false;
    c->kind = CARRIED_REDUCED;
    if (param->uses && !param->uses->next && !next->uses->next)
        return true;
    c->kind = CARRIED_SUMMED;
    return ir_op_is(c->combine, IR_OP_Add) && param->type->rank < TSSA_MAX_RANK;
}

static tssa_status *check_carried(struct state *s, const struct batch *facts, uint32_t k, bool *ok)
{
    struct ir_value *param = loop_param(&s->loop, k), *next = loop_next(&s->loop, k);
    struct carried *c = &s->carried[k];
    *c = (struct carried){.kind = CARRIED_SAME};
    *ok = true;
    if (!next || !loop_initial(&s->loop, k))
        *ok = refuse(s, param, NULL, "it is absent");
    else if (loop_unaliased(next) == param)
        *ok = true;
    else if (param->type->kind != TYPE_TENSOR || param->type->rank < 0 ||
             param->type != loop_initial(&s->loop, k)->type)
        *ok = refuse(s, param, next->op, "its shape may change");
    else if (!check_reduction(s, k))
        TRY(check_tensor(s, facts, k, ok));
    return NULL;
}

/* ---- Afterwards ----------------------------------------------------------------------------------- */

/* A source that broadcasts needs axes behind the one in front. */
static struct ir_value *stacked_source(struct batch *batch, const struct ir_op *assign)
{
    const struct dim *dims[TSSA_MAX_RANK];
    const struct ir_type *base = ir_operand(assign, 0)->type;
    int rank;
    bool batched;
    tssa_status *status =
        rule_region_shape((struct ir_op *)assign, base->rank, base->dims, &rank, dims);
    bool known = !status && rank >= 0;
    tssa_status_free(status);
    struct ir_value *source = batch_get(batch, ir_operand(assign, 1), &batched);
    if (!known || !source)
        return NULL;
    if (!batched)
        return batch_stacked(batch, ir_operand(assign, 1), assign);
    return batch_unsqueeze(batch, assign, source, 1, rank - ir_operand(assign, 1)->type->rank);
}

/* A constant bound, or one that depends on the number of iterations, as i64[1]. */
static struct ir_value *slice_of(struct batch *batch, const struct ir_op *origin,
                                 struct ir_value *base, int64_t axis, struct ir_value *start,
                                 struct ir_value *end)
{
    struct ir_value *operands[] = {base, start, end, batch_ints(batch, 1, 1, &axis)};
    struct ir_op *op = batch_make(batch, origin, IR_OP_Slice, 4, operands);
    return op ? &op->results[0] : NULL;
}

/* Are `rows` rows of `base` as they are, with nothing to broadcast? */
static bool are_rows_of(const struct ir_value *base, const struct ir_value *rows)
{
    bool same = base->type->rank >= 1 && rows->type->kind == TYPE_TENSOR &&
                rows->type->rank == base->type->rank;
    for (int i = 1; i < base->type->rank && same; i++)
        same = base->type->dims[i] == rows->type->dims[i];
    return same;
}

/* The same of the first axis: ScatterND fails by itself where there are not enough rows, and copies what
 * stays at most once. */
static struct ir_value *scatter_rows(struct batch *batch, const struct ir_op *assign,
                                     struct ir_value *base, struct ir_value *rows, int64_t offset)
{
    struct ir_value *numbers = batch_range(batch);
    if (offset > 0) {
        struct ir_value *terms[] = {numbers, batch_ints(batch, 0, 1, &offset)};
        struct ir_op *sum = batch_make(batch, assign, IR_OP_Add, 2, terms);
        numbers = sum ? &sum->results[0] : NULL;
    }
    struct ir_value *column = numbers ? batch_unsqueeze(batch, assign, numbers, 1, 1) : NULL;
    struct ir_value *operands[] = {base, column, rows};
    struct ir_op *op = column ? batch_make(batch, assign, IR_OP_ScatterND, 3, operands) : NULL;
    return op ? &op->results[0] : NULL;
}

/* Rows as large as those of the base without `axis`; NULL where a smaller one cannot be widened. */
static struct ir_value *fit_rows(struct batch *batch, const struct ir_op *assign,
                                 const struct ir_value *base, int64_t axis, struct ir_value *rows)
{
    int64_t dims[TSSA_MAX_RANK];
    const struct ir_type *type = base->type;
    bool same = true, known = true;
    if (rows->type->kind != TYPE_TENSOR || rows->type->rank != type->rank)
        return NULL;
    for (int i = 0, k = 0; i < type->rank; i++) {
        if (i == axis)
            continue;
        same &= rows->type->dims[k + 1] == type->dims[i];
        known &= dim_is_const(type->dims[i], &dims[k]) && dims[k] > 0;
        k++;
    }
    if (same || !known)
        return same ? rows : NULL;
    struct ir_value *operands[] = {rows, batch_shape(batch, (size_t)type->rank - 1, dims)};
    struct ir_op *op = batch_make(batch, assign, IR_OP_Expand, 2, operands);
    return op ? &op->results[0] : NULL;
}

/*
 * Rows offset, offset + 1, ... of an axis whose length may not be enough: what is before, the rows, what is
 * after, and a Reshape to the shape that it should have, which fails when it has not.
 */
static struct ir_value *assign_rows(struct batch *batch, const struct ir_op *assign,
                                    struct ir_value *base, struct ir_value *rows)
{
    static const int64_t end = INT64_MAX, zero = 0;
    const struct rule *rule = rule_of(assign);
    const struct dim *index = rule_param_dim(assign, &rule->steps[0].params[1]);
    int64_t factor, offset, axis = rule->steps[0].params[0].value;
    if (rule->n_steps != 1 || rule->steps[0].kind != RULE_SELECT ||
        !batch_affine(batch, index, &factor, &offset) || factor != 1 || offset < 0)
        return NULL;
    rows = fit_rows(batch, assign, base, axis, rows);
    if (!rows)
        return NULL;
    if (axis == 0 && are_rows_of(base, rows))
        return scatter_rows(batch, assign, base, rows, offset);
    struct ir_value *parts[3], *first = batch_ints(batch, 1, 1, &offset);
    struct ir_value *behind = batch_trips_1d(batch);
    uint32_t n = 0;
    if (offset > 0) {
        struct ir_value *terms[] = {behind, first};
        struct ir_op *sum = batch_make(batch, assign, IR_OP_Add, 2, terms);
        behind = sum ? &sum->results[0] : NULL;
        parts[n++] = slice_of(batch, assign, base, axis, batch_ints(batch, 1, 1, &zero), first);
    }
    parts[n++] = batch_move_axis(batch, assign, rows, 0, (int)axis);
    parts[n++] = slice_of(batch, assign, base, axis, behind, batch_ints(batch, 1, 1, &end));
    struct ir_value *all = batch_concat(batch, assign, axis, n, parts);
    struct ir_op *shape = batch_make(batch, assign, IR_OP_Shape, 1, &base);
    struct ir_value *operands[] = {all, shape ? &shape->results[0] : NULL};
    struct ir_op *checked = batch_make(batch, assign, IR_OP_Reshape, 2, operands);
    return checked ? &checked->results[0] : NULL;
}

static struct ir_value *final_tensor(struct state *s, struct batch *batch, uint32_t k)
{
    struct carried *c = &s->carried[k];
    struct ir_value *value = loop_initial(&s->loop, k);
    struct batch_region *region = batch_new_region(batch);
    for (uint32_t i = c->n_assigns; region && value && i-- > 0;) {
        struct ir_op *assign = c->assigns[i];
        struct ir_value *source = stacked_source(batch, assign);
        if (!source || !batch_region(batch, assign, false, ir_operand(assign, 0)->type, region))
            return NULL;
        if (!region->in_range) {
            value = assign_rows(batch, assign, value, source);
            continue;
        }
        struct ir_op *made = rule_assign_create(s->pass->graph, value, source, region->rule,
                                                region->n_params, region->params);
        if (!batch_put(batch, made))
            return NULL;
        made->name = assign->name;
        value = &made->results[0];
    }
    return region ? value : NULL;
}

static struct ir_value *cast_to(struct batch *batch, const struct ir_op *origin,
                                struct ir_value *value, tssa_dtype dtype)
{
    struct ir_op *op = batch_new(batch, origin, IR_OP_Cast, 1, &value);
    if (!op)
        return NULL;
    return batch_set_int(batch, op, "to", dtype) && batch_put(batch, op) ? &op->results[0] : NULL;
}

/* What was there before is one more of what is reduced: so there is always one. */
static struct ir_value *final_reduction(struct state *s, struct batch *batch, uint32_t k)
{
    static const int64_t zero = 0;
    const struct carried *c = &s->carried[k];
    const struct reduction *how = reduction_of(c->combine);
    struct ir_value *parts[] = {batch_unsqueeze(batch, c->combine, loop_initial(&s->loop, k), 0, 1),
                                batch_stacked(batch, c->term, c->combine)};
    struct ir_value *all = batch_concat(batch, c->combine, 0, 2, parts);
    if (how->truth)
        all = cast_to(batch, c->combine, all, TSSA_INT32);
    struct ir_value *operands[] = {all, batch_ints(batch, 1, 1, &zero)};
    struct ir_op *op = batch_new(batch, c->combine, how->reduce, 2, operands);
    if (!op)
        return NULL;
    op->exact = true;
    if (!batch_set_int(batch, op, "keepdims", 0) || !batch_put(batch, op))
        return NULL;
    return how->truth ? cast_to(batch, c->combine, &op->results[0], TSSA_BOOL) : &op->results[0];
}

static struct ir_value *final_carried(struct state *s, struct batch *batch, uint32_t k)
{
    switch (s->carried[k].kind) {
    case CARRIED_TENSOR:
        return final_tensor(s, batch, k);
    case CARRIED_REDUCED:
    case CARRIED_SUMMED:
        return final_reduction(s, batch, k);
    default:
        return loop_initial(&s->loop, k);
    }
}

/* All results of the loop; false when one has no form. */
static bool make_results(struct state *s, struct batch *batch, struct ir_value **results)
{
    for (uint32_t i = 0; i < s->loop.op->n_results; i++) {
        if (i < s->loop.n_carried)
            results[i] = final_carried(s, batch, i);
        else
            results[i] = batch_stacked(batch, ir_operand(s->loop.ret, i + 1), s->loop.ret);
        if (!results[i]) {
            if (!batch->reason)
                batch->reason = "what it leaves has no form for all iterations at once";
            if (!batch->blamed)
                batch->blamed = s->loop.op;
            return false;
        }
    }
    return true;
}

static bool is_large(const struct ir_type *type)
{
    int64_t bytes = 1, dim;
    bool known = type->kind == TYPE_TENSOR && type->rank > 0;
    for (int d = 0; known && d < type->rank; d++)
        known = dim_is_const(type->dims[d], &dim) && !__builtin_mul_overflow(bytes, dim, &bytes);
    return known && bytes > MAX_BYTES / 8 &&
           bytes * (int64_t)tssa_dtype_size(type->dtype) > MAX_BYTES;
}

/* Is a result of one of these ops, or of those in them, too large to have all of at once? */
static bool are_too_large(const struct ir_op *first, const struct ir_op *end)
{
    for (const struct ir_op *op = first; op != end; op = op->next) {
        for (uint32_t i = 0; i < op->n_results; i++)
            if (is_large(op->results[i].type))
                return true;
        for (uint32_t b = 0; b < op->n_blocks; b++)
            if (are_too_large(op->blocks[b]->first, NULL))
                return true;
    }
    return false;
}

static bool is_too_large(const struct batch *batch)
{
    return are_too_large(batch->mark ? batch->mark->next : batch->before->parent->first,
                         batch->before);
}

/* ---- One loop ------------------------------------------------------------------------------------- */

/* Parameters of the body that are known before the ops are. */
static tssa_status *set_params(struct state *s, struct batch *batch)
{
    struct ir_value *truth, *range = batch_range(batch);
    TRY(batch->status);
    TRY_ALLOC(range);
    TRY(loop_make_bool(batch->before, true, &truth));
    TRY(batch_stack(batch, s->loop.body->params[0], range));
    TRY(batch_share(batch, s->loop.body->params[1], truth));
    for (uint32_t k = 0; k < s->loop.n_carried; k++) {
        const struct carried *c = &s->carried[k];
        if (c->kind == CARRIED_REDUCED && !vec_push(&s->skipped, c->combine))
            return status_out_of_memory();
        for (uint32_t i = 0; i < c->n_assigns; i++)
            if (!vec_push(&s->skipped, c->assigns[i]))
                return status_out_of_memory();
        if (c->kind == CARRIED_SAME || c->kind == CARRIED_TENSOR)
            TRY(batch_share(batch, loop_param(&s->loop, k), loop_initial(&s->loop, k)));
    }
    return NULL;
}

/* Of a sum, what the iterations find there: the initial value and the terms before each. */
static tssa_status *set_sum(struct state *s, struct batch *batch, uint32_t k, bool *done)
{
    static const int64_t zero = 0;
    const struct carried *c = &s->carried[k];
    struct ir_value *initial = loop_initial(&s->loop, k);
    TRY(batch_slice(batch, c->term, done));
    if (!*done)
        return NULL;
    struct ir_value *operands[] = {batch_stacked(batch, c->term, c->combine),
                                   batch_ints(batch, 0, 1, &zero)};
    struct ir_op *sums = batch_new(batch, c->combine, IR_OP_CumSum, 2, operands);
    *done = sums && batch_set_int(batch, sums, "exclusive", 1) && batch_put(batch, sums);
    if (!*done)
        return batch->status;
    struct ir_value *terms[] = {&sums->results[0], initial};
    struct ir_op *all = batch_make(batch, c->combine, IR_OP_Add, 2, terms);
    *done = all != NULL;
    return all ? batch_stack(batch, loop_param(&s->loop, k), &all->results[0]) : batch->status;
}

static tssa_status *set_sums(struct state *s, struct batch *batch, bool *done)
{
    *done = true;
    for (uint32_t k = 0; *done && k < s->loop.n_carried; k++)
        if (s->carried[k].kind == CARRIED_SUMMED)
            TRY(set_sum(s, batch, k, done));
    return NULL;
}

static tssa_status *replace_loop(struct state *s, struct ir_value **results)
{
    struct ir_op *op = s->loop.op;
    TRY(pass_remark(s->pass, TSSA_REMARK_APPLIED, op,
                    "all iterations are computed at once: none needs what another one computes"));
    for (uint32_t i = 0; i < op->n_results; i++)
        loop_replace(&op->results[i], results[i]);
    ir_release_blocks(op);
    ir_op_remove(op);
    s->pass->changed = true;
    return NULL;
}

static tssa_status *remark_missed(struct state *s, const struct batch *batch)
{
    char description[128] = "";
    if (s->reason) {
        if (s->at)
            ir_op_describe(s->at, description, sizeof description);
        return pass_remark(s->pass, TSSA_REMARK_MISSED, s->loop.op,
                           "iterations depend on each other through %%%s: %s%s%s",
                           name_of(s->blamed), s->reason, s->at ? ", in " : "", description);
    }
    if (batch->blamed)
        ir_op_describe(batch->blamed, description, sizeof description);
    return pass_remark(s->pass, TSSA_REMARK_MISSED, s->loop.op,
                       "iterations are independent but stay a loop because of %s%s%s: %s",
                       description, batch->blamed_value ? ", %" : "",
                       batch->blamed_value ? name_of(batch->blamed_value) : "",
                       batch->reason ? batch->reason : "it has no form for all iterations");
}

/* Everything that is made stands before the loop and goes again when it comes to nothing. */
static tssa_status *attempt(struct state *s, struct batch *batch, struct ir_op *mark,
                            struct ir_value **results, bool *done)
{
    struct ir_value *trips;
    TRY(loop_make_trips(&s->loop, &trips));
    TRY(batch_init(batch, s->pass, &s->shared, &s->stacked, s->loop.op, trips));
    batch->mark = mark;
    batch->nested = s->nested;
    for (uint32_t k = 0; k < s->loop.n_carried; k++) {
        bool ok;
        TRY(check_carried(s, batch, k, &ok));
        if (!ok)
            return NULL;
    }
    TRY(set_params(s, batch));
    TRY(set_sums(s, batch, done));
    if (*done)
        TRY(batch_body(batch, s->skipped.data, s->skipped.count, done));
    *done = *done && make_results(s, batch, results);
    if (*done && is_too_large(batch)) {
        *done = false;
        batch->blamed = s->loop.op;
        batch->reason = "a value of all iterations would be too large";
    }
    return batch->status;
}

static bool is_counted(const struct loop *loop)
{
    const struct ir_value *trips = ir_operand(loop->op, 0);
    return trips && trips->type->kind == TYPE_TENSOR &&
           (trips->type->rank == 0 || trips->type->rank == 1) && loop_enters(loop) == LOOP_TRUE &&
           loop_stays(loop) == LOOP_TRUE;
}

static tssa_status *visit_loop(struct state *s, struct ir_op *op)
{
    struct batch batch = {0};
    bool done = false;
    struct ir_op *mark = op->prev;
    s->loop = loop_of(op);
    s->reason = NULL;
    s->at = NULL;
    s->skipped.count = 0;
    if (!s->loop.ret || op->n_results < s->loop.n_carried)
        return NULL;
    if (!is_counted(&s->loop))
        return pass_remark(s->pass, TSSA_REMARK_MISSED, op,
                           "how many iterations there are depends on what they compute");
    struct arena *arena = &s->pass->graph->arena;
    struct ir_value **results = ARENA_ARRAY(arena, struct ir_value *, op->n_results);
    s->carried = ARENA_ARRAY(arena, struct carried, s->loop.n_carried);
    if (!results || !s->carried)
        return status_out_of_memory();
    TRY(attempt(s, &batch, mark, results, &done));
    s->nested = batch.nested;
    if (done)
        return replace_loop(s, results);
    batch.before = op;
    batch.mark = mark;
    batch_undo(&batch);
    return remark_missed(s, &batch);
}

static tssa_status *visit(void *context, struct ir_op *op)
{
    return ir_op_is(op, IR_OP_Loop) && op->n_blocks == 1 ? visit_loop(context, op) : NULL;
}

tssa_status *pass_parallelize(struct pass_context *pass)
{
    struct state state = {.pass = pass, .nested = BATCH_MAX_NESTED};
    vec_init(&state.skipped, pass->graph->allocator);
    ir_cloner_init(&state.shared, pass->graph);
    ir_cloner_init(&state.stacked, pass->graph);
    region_space_init(&state.space, pass->graph);
    tssa_status *status = ir_block_walk(pass->graph->body, visit, &state);
    region_space_free(&state.space);
    ir_cloner_free(&state.stacked);
    ir_cloner_free(&state.shared);
    vec_free(&state.skipped);
    return status;
}
