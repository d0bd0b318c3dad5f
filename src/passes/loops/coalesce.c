/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A loop in a loop that only write one value to elements of a tensor become one loop, over the list
 * of all their iterations:
 *
 *     Loop(n, _, x) { (i, c, t): d = f(i)
 *                                u = Loop(d, _, t) { (k, e, s): w = assign(s, v, i, g(i) + k)
 *                                                               return(e, w) }
 *                                return(c, u) }
 *
 *     D, G = Loop(n, _) { (i, c): return(c, f(i), g(i)) }
 *     I, K = NonZero(Range(0, max(D)) < Unsqueeze(D, 1))
 *     Loop(Size(I), _, x) { (p, c, t): w = assign(t, v, I[p], G[I[p]] + K[p])  return(c, w) }
 *
 * What is left of the outer loop carries no tensor any more, and the new one can be one write
 * (batch_writes). Every loop's counter must name the index of an axis of its own, alone or in a
 * sum: so the table that lists the iterations has no more places than a few times the elements of
 * the tensor, for outer iterations that write at all. Otherwise it could be of any size. Even so
 * the list takes 50 bytes and more for an element, and where that is much more than the tensor
 * (choice.h) the loops stay: the inner one's elements are written at once (batch_writes).
 *
 *   needs   assigns (recover), invariants outside of the loops (hoist), recurrences beside the
 *           inner loop in loops of their own (distribute)
 *   keeps   types
 *   breaks  the tensor is still carried, unchanged (carried_values)
 */
#include "base/vec.h"
#include "ir/clone.h"
#include "ir/infer.h"
#include "ir/rebuild.h"
#include "ir/region.h"
#include "passes/loops/choice.h"
#include "passes/loops/write_nest.h"

/* Two loops that become one. */
struct nest {
    struct pass_context *pass;
    struct loop outer, inner;
    uint32_t carried;
    VEC(struct ir_value *) crossing; /* values of the outer body that the inner loop needs */
    struct ir_cloner cloner;
};

/* ---- Recognition ----------------------------------------------------------------------------- */

/* The step of the assign whose index the loop's counter is a term of; n_steps: there is none. */
static uint32_t axis_of(const struct loop *loop, const struct ir_op *assign)
{
    const struct rule *rule = rule_of(assign);
    struct ir_value *offset;
    uint32_t i = 0;
    for (; i < rule->n_steps; i++) {
        const struct ir_value *value = rule_param_value(assign, &rule->steps[i].params[1]);
        if (value && write_nest_counts(loop, value, &offset))
            break;
    }
    return i;
}

/*
 * The counters of all loops, from this one to the one that holds the assign, name different axes.
 */
static bool names_axes(struct loop loop, uint32_t k, const struct ir_op *assign)
{
    bool taken[TSSA_MAX_RANK] = {false};
    uint32_t n = rule_of(assign)->n_steps;
    for (;; loop = loop_of(write_nest_step(&loop, k)), k = 0) {
        uint32_t axis = axis_of(&loop, assign);
        if (axis == n || taken[axis])
            return false;
        taken[axis] = true;
        if (write_nest_step(&loop, k) == assign)
            return true;
    }
}

static bool is_in_outer(const struct nest *nest, const struct ir_value *value)
{
    return (value->op ? value->op->parent : value->block) == nest->outer.body;
}

/* Lists a value that crosses from the outer body to the inner loop; false: it cannot cross. */
static tssa_status *cross(struct nest *nest, struct ir_value *value, bool *ok)
{
    if (!value || !is_in_outer(nest, value) || value == nest->outer.body->params[0])
        return NULL;
    for (size_t i = 0; i < nest->crossing.count; i++)
        if (nest->crossing.data[i] == value)
            return NULL;
    *ok &= value != nest->outer.body->params[1] && loop_can_stack(&nest->outer, value);
    return vec_push(&nest->crossing, value) ? NULL : status_out_of_memory();
}

static tssa_status *cross_operands(struct nest *nest, const struct ir_block *block, bool *ok)
{
    for (const struct ir_op *op = block->first; op && *ok; op = op->next) {
        for (uint32_t i = 0; i < op->n_operands; i++)
            TRY(cross(nest, op->operands[i].value, ok));
        for (uint32_t b = 0; b < op->n_blocks; b++)
            TRY(cross_operands(nest, op->blocks[b], ok));
    }
    return NULL;
}

/* The lengths of the inner loops come first, whether they differ or not. */
static tssa_status *list_crossing(struct nest *nest, bool *ok)
{
    struct ir_value *lengths = ir_operand(nest->inner.op, 0);
    *ok = loop_can_stack(&nest->outer, lengths);
    nest->crossing.count = 0;
    if (!vec_push(&nest->crossing, lengths))
        return status_out_of_memory();
    return cross_operands(nest, nest->inner.body, ok);
}

/* ---- What it costs --------------------------------------------------------------------------- */

/* A nest, and the assign in it. */
struct writes {
    const struct pass_context *pass;
    struct loop loop;
    uint32_t k;
    const struct ir_op *assign;
};

/* The elements that are written, at most: the lengths of the axes that counters name. */
static double count_writes(const struct writes *w, const struct cost_sizes *sizes)
{
    const struct ir_type *type = loop_initial(&w->loop, w->k)->type;
    double count = 1;
    struct loop loop = w->loop;
    for (uint32_t k = w->k;; k = 0) {
        count *= cost_dim(type->dims[axis_of(&loop, w->assign)], sizes);
        if (write_nest_step(&loop, k) == w->assign)
            return count;
        loop = loop_of(write_nest_step(&loop, k));
    }
}

/* Of each, two numbers in the list, and all its indices twice, beside the value. */
static bool find_figures(void *context, const struct cost_sizes *sizes, struct choice_figures *f)
{
    const struct writes *w = context;
    const struct choice_rates *rates = choice_rates(w->pass);
    const struct ir_type *type = loop_initial(&w->loop, w->k)->type;
    double count = count_writes(w, sizes), bytes = cost_bytes(type, sizes);
    double each = 16 + 16.0 * type->rank + (double)tssa_dtype_size(type->dtype);
    double copies = pass_is_for_session(w->pass) ? 0 : 2 * bytes; /* of every write, elsewhere */
    f->fixed = 2 * bytes;
    f->all = bytes + each * count;
    f->may = choice_may(w->pass, bytes, bytes, 0);
    f->loop = rates->loop +
              count * (rates->iteration + rates->call + copies * choice_seconds_byte(copies));
    f->batched = rates->loop + 2 * each * count * choice_seconds_byte(f->all);
    f->blocks = f->loop;
    return true;
}

/* Does the list of all iterations take too much? Then a remark says so. */
static tssa_status *check_cost(struct writes *w, bool *ok)
{
    static const char *const ways[] = {
        [CHOICE_LEAVE] =
            "not made one with the loop in it: a list of all their iterations would be too much"};
    struct choice choice = {.figures = find_figures, .context = w};
    choice_try_type(&choice, loop_initial(&w->loop, w->k)->type);
    choice_make(&choice);
    *ok = choice.way == CHOICE_ALL;
    w->loop.op->kept |= !*ok;
    return *ok ? NULL : choice_remark(&choice, w->pass, w->loop.op, ways);
}

/* ---- The list of iterations ------------------------------------------------------------------ */

static tssa_status *emit(struct ir_op *at, enum ir_op_id id, uint32_t n,
                         struct ir_value *const *operands, struct ir_value **result)
{
    struct ir_op *op = loop_make_op(at, id, n);
    TRY_ALLOC(op);
    for (uint32_t i = 0; i < n; i++)
        ir_op_set_operand(op, i, operands[i]);
    *result = &op->results[0];
    return ir_infer_op_lenient(op);
}

static tssa_status *emit_with(struct ir_op *at, enum ir_op_id id, uint32_t n,
                              struct ir_value *const *operands, const char *name, int64_t number,
                              struct ir_value **result)
{
    struct ir_graph *graph = at->parent->graph;
    const struct ir_attr attr = {
        .name = intern_str(&graph->strings, name), .kind = IR_ATTR_INT, .i = number};
    struct ir_op *op = loop_make_op(at, id, n);
    TRY_ALLOC(op);
    for (uint32_t i = 0; i < n; i++)
        ir_op_set_operand(op, i, operands[i]);
    if (!attr.name || !ir_op_set_attr(graph, op, &attr))
        return status_out_of_memory();
    *result = &op->results[0];
    return ir_infer_op_lenient(op);
}

/* 0, 1, ... below the largest of the lengths, which may all be negative or none. */
static tssa_status *longest_range(struct ir_op *at, struct ir_value *lengths,
                                  struct ir_value **range)
{
    struct ir_value *parts[] = {lengths, NULL}, *bounds[3], *all;
    TRY(loop_make_int(at, 1, 0, &parts[1]));
    TRY(emit_with(at, IR_OP_Concat, 2, parts, "axis", 0, &all));
    TRY(loop_make_int(at, 0, 0, &bounds[0]));
    TRY(emit_with(at, IR_OP_ReduceMax, 1, &all, "keepdims", 0, &bounds[1]));
    TRY(loop_make_int(at, 0, 1, &bounds[2]));
    return emit(at, IR_OP_Range, 3, bounds, range);
}

/* For every iteration of the inner loops, in order, its number and that of the outer loop. */
static tssa_status *list_iterations(struct ir_op *at, struct ir_value *lengths,
                                    struct ir_value **outer, struct ir_value **inner)
{
    struct ir_value *compared[2], *mask, *places, *row[2];
    TRY(longest_range(at, lengths, &compared[0]));
    TRY(loop_make_unsqueeze(at, compared[0], 0, &compared[0]));
    TRY(loop_make_unsqueeze(at, lengths, 1, &compared[1]));
    TRY(emit(at, IR_OP_Less, 2, compared, &mask));
    TRY(emit(at, IR_OP_NonZero, 1, &mask, &places));
    row[0] = places;
    TRY(loop_make_int(at, 0, 0, &row[1]));
    TRY(emit_with(at, IR_OP_Gather, 2, row, "axis", 0, outer));
    TRY(loop_make_int(at, 0, 1, &row[1]));
    return emit_with(at, IR_OP_Gather, 2, row, "axis", 0, inner);
}

/* ---- The new loop ---------------------------------------------------------------------------- */

/* base[index], at the end of the block. */
static struct ir_value *add_row(struct ir_block *block, struct ir_value *base,
                                struct ir_value *index)
{
    const struct rule_param params[2] = {rule_constant(0), rule_operand(0)};
    const struct rule_step step = {RULE_SELECT, 2, params};
    const struct rule *rule = rule_create(block->graph, 1, &step);
    struct ir_op *op = rule ? rule_access_create(block->graph, base, rule, 1, &index) : NULL;
    if (!op)
        return NULL;
    ir_op_append(block, op);
    return &op->results[0];
}

/* The inner body for iteration p of all: what it used of the outer one is row I[p]. */
static bool fill_body(struct nest *nest, struct ir_block *block, struct ir_value *outer,
                      struct ir_value *inner, const struct ir_value *stacks)
{
    struct ir_cloner *cloner = &nest->cloner;
    ir_cloner_reset(cloner);
    struct ir_value *i = add_row(block, outer, block->params[0]);
    struct ir_value *k = i ? add_row(block, inner, block->params[0]) : NULL;
    if (!k || !ir_cloner_map(cloner, nest->outer.body->params[0], i) ||
        !ir_cloner_map(cloner, nest->inner.body->params[0], k) ||
        !ir_cloner_map(cloner, nest->inner.body->params[1], block->params[1]) ||
        !ir_cloner_map(cloner, nest->inner.body->params[2], block->params[2]))
        return false;
    for (size_t c = 0; c < nest->crossing.count; c++) {
        struct ir_value *value = nest->crossing.data[c];
        struct ir_value *row =
            is_in_outer(nest, value) ? add_row(block, (struct ir_value *)&stacks[c], i) : value;
        if (!row || !ir_cloner_map(cloner, value, row))
            return false;
    }
    for (const struct ir_op *op = nest->inner.body->first; op != nest->inner.ret; op = op->next) {
        struct ir_op *copy = ir_clone_op(cloner, op);
        if (!copy)
            return false;
        ir_op_append(block, copy);
    }
    struct ir_op *ret = ir_op_create(block->graph, ir_op_info(IR_OP_return), 2, 0);
    if (!ret)
        return false;
    ir_op_set_operand(ret, 0, block->params[1]);
    ir_op_set_operand(ret, 1, ir_cloner_get(cloner, loop_next(&nest->inner, 0)));
    ir_op_append(block, ret);
    return true;
}

/* Before `at`: one loop of all iterations. `stacks`: of what crosses. */
static tssa_status *make_loop(struct nest *nest, struct ir_op *at, const struct ir_value *stacks,
                              struct ir_op **made)
{
    struct ir_graph *graph = nest->pass->graph;
    struct ir_value *outer, *inner, *size, *zero, *trips;
    const struct ir_op *old = nest->inner.op;
    TRY(list_iterations(at, (struct ir_value *)&stacks[0], &outer, &inner));
    TRY(emit(at, IR_OP_Shape, 1, &outer, &size));
    TRY(loop_make_int(at, 0, 0, &zero));
    TRY(emit_with(at, IR_OP_Gather, 2, (struct ir_value *const[]){size, zero}, "axis", 0, &trips));
    struct ir_op *loop = ir_op_create(graph, old->info, 3, 1);
    TRY_ALLOC(loop);
    if (!ir_op_set_blocks(graph, loop, 1))
        return status_out_of_memory();
    loop->version = old->version;
    loop->name = old->name;
    ir_op_set_operand(loop, 0, trips);
    ir_op_set_operand(loop, 2, loop_initial(&nest->outer, nest->carried));
    struct ir_block *body = ir_block_create(graph, loop, 3);
    TRY_ALLOC(body);
    loop->blocks[0] = body;
    loop->block_names[0] = old->block_names[0];
    if (!fill_body(nest, body, outer, inner, stacks))
        return status_out_of_memory();
    ir_op_insert_before(loop, at);
    loop->fits = true;
    *made = loop;
    return ir_infer_op_lenient(loop);
}

/* ---- Reads of rows --------------------------------------------------------------------------- */

/* A Gather of one element along axis 0, as an access. NULL and no error: it is none. */
static tssa_status *as_access(struct ir_op *op, struct ir_op **access)
{
    const struct rule_param params[2] = {rule_constant(0), rule_operand(0)};
    const struct rule_step step = {RULE_SELECT, 2, params};
    struct ir_value *index = ir_operand(op, 1);
    *access = NULL;
    if (!ir_op_is(op, IR_OP_Gather) || ir_op_axis(op) != 0 || index->type->kind != TYPE_TENSOR ||
        index->type->rank != 0)
        return NULL;
    const struct rule *rule = rule_create(op->parent->graph, 1, &step);
    TRY_ALLOC(rule);
    *access = rule_access_create(op->parent->graph, ir_operand(op, 0), rule, 1, &index);
    TRY_ALLOC(*access);
    return pass_insert(*access, op);
}

/* One element of a row is an element of the stack: no row is read for it. */
static tssa_status *join_reads(void *context, struct ir_op *op)
{
    const struct ir_op *row =
        op->n_operands && op->operands[0].value ? op->operands[0].value->op : NULL;
    struct ir_op *access = op, *joined;
    (void)context;
    if (!row || !ir_op_is(row, IR_OP_access))
        return NULL;
    if (!ir_op_is(op, IR_OP_access))
        TRY(as_access(op, &access));
    if (!access)
        return NULL;
    TRY(rule_access_chain(op->parent->graph, row, access, &joined));
    if (joined) {
        TRY(pass_insert(joined, access));
        loop_replace(&access->results[0], &joined->results[0]);
    } else {
        joined = access;
    }
    if (access != op) {
        loop_replace(&op->results[0], &joined->results[0]);
        ir_op_remove(op);
    }
    if (joined != access)
        ir_op_remove(access);
    return NULL;
}

/* ---- The pass -------------------------------------------------------------------------------- */

/* The outer loop stacks what crosses, and leaves the tensor alone. `stacks`: the first of the
 * outputs. */
static tssa_status *split_outer(struct nest *nest, const struct ir_value **stacks)
{
    struct ir_op *op = nest->outer.op;
    uint32_t n = op->n_results, added = (uint32_t)nest->crossing.count;
    uint32_t *from = ARENA_ARRAY(&nest->pass->graph->arena, uint32_t, (size_t)n + added);
    TRY_ALLOC(from);
    for (uint32_t i = 0; i < n + added; i++)
        from[i] = i < n ? i : IR_FRESH;
    for (uint32_t i = 0; i < added; i++)
        if (!ir_op_add_operand(nest->outer.ret, nest->crossing.data[i]))
            return status_out_of_memory();
    ir_op_set_operand(nest->outer.ret, nest->carried + 1, loop_param(&nest->outer, nest->carried));
    if (!ir_op_set_results(op, n + added, from))
        return status_out_of_memory();
    *stacks = &op->results[n];
    return NULL;
}

/* `*made`: the one loop, after the outer one. */
static tssa_status *coalesce(struct nest *nest, struct ir_op **made)
{
    struct ir_op *op = nest->outer.op, *inner = nest->inner.op;
    const struct ir_value *stacks;
    TRY(split_outer(nest, &stacks));
    /* The inner loop is still there to be copied, but nothing uses it. */
    struct ir_op *at = op->next;
    ir_cloner_reset(&nest->cloner);
    struct ir_value *final = loop_final(&nest->outer, nest->carried);
    const struct ir_type *type = final->type;
    TRY(ir_infer_op_lenient(op));
    TRY(make_loop(nest, at, stacks, made));
    TRY(ir_block_walk((*made)->blocks[0], join_reads, NULL));
    (*made)->results[0].type = type;
    loop_replace(final, &(*made)->results[0]);
    ir_release_blocks(inner);
    ir_op_remove(inner);
    nest->pass->changed = true;
    return pass_remark(
        nest->pass, TSSA_REMARK_APPLIED, op,
        "what it writes is written by one loop over the iterations of the loops in it");
}

/* Makes one loop of this and the one in it, and so on, until there is one. */
static tssa_status *visit_carried(struct nest *nest, struct ir_op *op, uint32_t k)
{
    struct loop loop = loop_of(op);
    struct writes writes = {nest->pass, loop, k, write_nest_find(&loop, k)};
    bool ok = false;
    if (writes.assign && !op->kept && write_nest_step(&loop, k) != writes.assign &&
        names_axes(loop, k, writes.assign))
        TRY(check_cost(&writes, &ok));
    if (!ok)
        return NULL;
    for (struct ir_op *step; (step = write_nest_step(&loop, k)) && ir_op_is(step, IR_OP_Loop);
         k = 0) {
        nest->outer = loop;
        nest->inner = loop_of(step);
        nest->carried = k;
        TRY(list_crossing(nest, &ok));
        if (!ok)
            return pass_remark(nest->pass, TSSA_REMARK_MISSED, op,
                               "not made one with the loop in it: a value of another size in every "
                               "iteration would have to be stacked");
        TRY(coalesce(nest, &op));
        loop = loop_of(op);
    }
    return NULL;
}

static tssa_status *visit_block(struct nest *nest, struct ir_block *block)
{
    for (struct ir_op *op = block->first; op; op = op->next) {
        if (ir_op_is(op, IR_OP_Loop) && op->n_blocks == 1)
            for (uint32_t k = 0; k < ir_loop_carried(op); k++)
                TRY(visit_carried(nest, op, k));
        for (uint32_t i = 0; i < op->n_blocks; i++)
            TRY(visit_block(nest, op->blocks[i]));
    }
    return NULL;
}

tssa_status *pass_coalesce(struct pass_context *pass)
{
    struct nest nest = {.pass = pass};
    vec_init(&nest.crossing, pass->graph->allocator);
    ir_cloner_init(&nest.cloner, pass->graph);
    tssa_status *status = visit_block(&nest, pass->graph->body);
    ir_cloner_free(&nest.cloner);
    vec_free(&nest.crossing);
    return status;
}
