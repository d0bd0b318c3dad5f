/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/loops/batch_cost.h"

#include "ir/cost.h"
#include "passes/loops/versions.h"

/* To reduce whole rows, for an element and for one that comes out: in other runtimes, and in
 * sessions. */
#define SECONDS_ROWS_IN 1e-9
#define SECONDS_ROWS_OUT 4e-9
#define SECONDS_SESSION_ROWS 0.3e-9
/* Of a byte that blocks stack: to fill them up, in the cache. Sessions take longer beside what they
 * fuse: measured with the copies behind that. */
#define SECONDS_FILLED 0.08e-9
#define SECONDS_SESSION_STACKED 0.5e-9
/* To tell how long blocks are, and in front of each of them. */
#define CALLS_OF_BLOCKS 24

struct estimate {
    const struct batch *batch;
    const struct loop *loop;
    struct ir_value *const *results;
    struct ir_op *first;           /* of what was made */
    struct cost_ranges made, body; /* of what was made, and of one iteration */
    struct choice_given given;
    struct choice *choice;
};

/* ---- Memory ---------------------------------------------------------------------------------- */

/* Is it another number in every iteration? */
static bool counts(const struct estimate *e, const struct dim *dim)
{
    const struct batch *batch = e->batch;
    const struct dim *by, *at_zero;
    int64_t factor;
    return dim && batch->counter &&
           dim_affine(&batch->graph->dims, dim, batch->counter, &by, &at_zero) &&
           dim_is_const(by, &factor) && factor != 0;
}

/* What one iteration reads or writes of it at a place that moves with the counter. */
static double moving_row(const struct estimate *e, const struct ir_use *use,
                         const struct cost_sizes *sizes)
{
    const struct ir_op *op = use->user;
    if (op->parent != e->loop->body || use != &op->operands[0])
        return 0;
    if (ir_op_is(op, IR_OP_Gather)) {
        const struct ir_known *known = ir_operand(op, 1)->known;
        bool moves = known && known->count == 1 && counts(e, known->elements[0]);
        return moves ? cost_bytes(op->results[0].type, sizes) : 0;
    }
    if (!ir_op_is(op, IR_OP_access) && !ir_op_is(op, IR_OP_assign))
        return 0;
    const struct rule *rule = rule_of(op);
    for (uint32_t i = 0; i < rule->n_steps; i++)
        if (rule->steps[i].kind == RULE_SELECT &&
            counts(e, rule_param_dim(op, &rule->steps[i].params[1])))
            return cost_bytes(
                ir_op_is(op, IR_OP_assign) ? ir_operand(op, 1)->type : op->results[0].type, sizes);
    return 0;
}

/* Sessions write to what a loop carries where it is: an iteration makes no tensor of that size. */
static void forget_updates(const struct batch *batch, struct cost_ranges *body)
{
    size_t count = 0;
    for (size_t i = 0; pass_is_for_session(batch->pass) && i < body->count; i++) {
        const struct ir_op *op = body->ranges[i].value->op;
        if (!op || !(op->info->flags & IR_UPDATE))
            body->ranges[count++] = body->ranges[i];
    }
    if (pass_is_for_session(batch->pass))
        body->count = count;
}

/*
 * Bytes that are there while the loop runs, whatever is done: what it is given, and what it leaves.
 */
static void find_fixed(const struct estimate *e, const struct cost_sizes *sizes, double *given,
                       double *left)
{
    *left = 0;
    *given = choice_given_bytes(&e->given, sizes);
    for (uint32_t i = 0; i < e->loop->op->n_results; i++)
        *left += cost_bytes(e->results[i]->type, sizes);
}

/* Could all iterations be made? Not where they move out of a value. An index may count from either
 * end. */
static bool is_in_range(const struct estimate *e, const struct ir_value *value, double trips,
                        const struct cost_sizes *sizes)
{
    double bytes = 2 * cost_bytes(value->type, sizes);
    for (const struct ir_use *use = value->uses; use; use = use->next)
        if (trips * moving_row(e, use, sizes) > bytes)
            return false;
    return true;
}

static bool is_possible(const struct estimate *e, const struct cost_sizes *sizes)
{
    double trips = cost_dim(e->batch->n_trips, sizes);
    for (size_t i = 0; i < e->given.values.count; i++)
        if (!is_in_range(e, e->given.values.data[i], trips, sizes))
            return false;
    for (uint32_t k = 0; k < e->loop->n_carried; k++)
        if (!is_in_range(e, loop_param(e->loop, k), trips, sizes))
            return false;
    return true;
}

/* ---- Time ------------------------------------------------------------------------------------ */

/* Carried tensors that an iteration writes to are copied by other runtimes, and by sessions are
 * not. */
static double seconds_copies(const struct estimate *e, const struct cost_sizes *sizes)
{
    double bytes = 0;
    if (pass_is_for_session(e->batch->pass))
        return 0;
    for (const struct ir_op *op = e->loop->body->first; op; op = op->next)
        if (op->info->flags & IR_UPDATE)
            bytes += 2 * cost_bytes(op->results[0].type, sizes);
    return bytes * choice_seconds_byte(bytes);
}

/* A largest or a sum of rows that is carried becomes a reduction along the first axis, in each
 * block. */
static double seconds_rows(const struct estimate *e, double blocks, const struct cost_sizes *sizes)
{
    double trips = cost_dim(e->batch->n_trips, sizes), outputs = 0;
    for (uint32_t k = 0; k < e->loop->n_carried; k++) {
        const struct ir_op *op = e->results[k]->op;
        if (op && ir_op_is(op, IR_OP_Cast))
            op = ir_operand(op, 0)->op;
        if (op && op->info->cls == IR_CLASS_REDUCTION && op->results[0].type->rank > 0)
            outputs += cost_elements(op->results[0].type, sizes);
    }
    return pass_is_for_session(e->batch->pass)
               ? SECONDS_SESSION_ROWS * outputs * (trips + blocks)
               : outputs * (SECONDS_ROWS_IN * trips + SECONDS_ROWS_OUT * blocks);
}

/* ---- All figures ----------------------------------------------------------------------------- */

#define CACHE_BYTES ((double)CHOICE_BLOCK_BYTES)

/* The sizes of an iteration are known where only the number of iterations is not. */
static bool is_row_known(const struct estimate *e)
{
    const struct choice *choice = e->choice;
    return choice->n_symbols == 0 ||
           (choice->n_symbols == 1 && choice->symbols[0] == e->batch->n_trips);
}

/*
 * What blocks stack is filled up to whole blocks, and cut off at the end: each copies all of it.
 * That is half the time of an iteration that does little with a long row, and nothing beside the
 * calls of one with a short row.
 */
static double seconds_stacks(const struct estimate *e, const struct cost_sizes *sizes)
{
    double bytes = 0;
    for (uint32_t i = e->loop->n_carried; i < e->loop->op->n_results; i++)
        bytes += cost_bytes(e->results[i]->type, sizes);
    return bytes * (pass_is_for_session(e->batch->pass)
                        ? SECONDS_SESSION_STACKED
                        : SECONDS_FILLED + 2 * choice_seconds_byte(bytes));
}

static bool find_figures(void *context, const struct cost_sizes *sizes, struct choice_figures *f)
{
    const struct estimate *e = context;
    const struct choice_rates *rates = choice_rates(e->batch->pass);
    double given, left, trips = cost_dim(e->batch->n_trips, sizes);
    find_fixed(e, sizes, &given, &left);
    f->fixed = given + left;
    f->row = cost_peak(&e->body, sizes);
    f->all = cost_peak(&e->made, sizes);
    f->may = choice_may(e->batch->pass, given, left, f->row);
    const struct cost_work body = cost_work(e->loop->body->first, NULL, sizes),
                           made = cost_work(e->first, e->batch->before, sizes);
    /* What comes from there in any case. */
    double fixed = choice_seconds_byte(given + left) * (given + left);
    f->loop = fixed + rates->loop +
              trips * (rates->iteration + choice_seconds(rates, &body, f->row) +
                       seconds_copies(e, sizes));
    f->batched = fixed + choice_seconds(rates, &made, f->all) + seconds_rows(e, 1, sizes);
    /* As many calls for a block, each of whose temporaries stay in the cache where a row does. */
    double in_block = f->row > 0 ? CACHE_BYTES / f->row : trips;
    double count = in_block >= trips ? 1 : in_block < 1 ? trips : trips / in_block;
    struct cost_work blocks = made;
    blocks.calls = blocks.calls * count + CALLS_OF_BLOCKS;
    f->blocks = fixed + rates->loop + seconds_rows(e, count, sizes) + seconds_stacks(e, sizes) +
                choice_seconds(rates, &blocks, f->row < CACHE_BYTES ? CACHE_BYTES : f->row);
    return is_possible(e, sizes);
}

/* How many elements an iteration stacks; NULL where it stacks nothing, or only a run can tell of
 * what rank. */
static const struct dim *row_elements(const struct estimate *e)
{
    struct dim_table *table = &e->batch->graph->dims;
    const struct dim *all = NULL;
    for (uint32_t i = e->loop->n_carried; i < e->loop->op->n_results; i++) {
        const struct ir_type *type = e->results[i]->type;
        const struct dim *row = dim_const(table, 1);
        if (type->kind != TYPE_TENSOR || type->rank < 1)
            return NULL;
        for (int d = 1; d < type->rank; d++)
            row = dim_mul(table, row, type->dims[d]);
        all = all ? dim_add(table, all, row) : row;
    }
    return all;
}

/* Only a loop that is come to once may ask: in another one, every iteration of that would pay for
 * it. */
static bool is_in_loop(const struct ir_block *block)
{
    while (ir_block_is_branch(block))
        block = block->owner->parent;
    return block->owner != NULL;
}

static void choose(struct estimate *e)
{
    e->choice->figures = find_figures;
    e->choice->context = e;
    e->choice->block = e->loop->op->parent;
    e->choice->rows.trips = e->batch->n_trips;
    const struct dim *elements = row_elements(e);
    if (elements && elements->kind != DIM_CONST && versions_fit(e->batch->pass, e->loop))
        e->choice->rows.elements = elements;
    /* What a loop stacks takes as much itself: in ONNX Runtime half a KiB for a number. */
    e->choice->may_ask = e->loop->n_stacked == 0 && !is_in_loop(e->choice->block);
    choice_try_dim(e->choice, e->batch->n_trips);
    for (size_t i = 0; i < e->made.count; i++)
        choice_try_type(e->choice, e->made.ranges[i].value->type);
    choice_make(e->choice);
    if (e->choice->way == CHOICE_FEW && !versions_fit(e->batch->pass, e->loop))
        e->choice->way = CHOICE_BLOCKS;
}

/* ---- Blocks ---------------------------------------------------------------------------------- */

static double sum_bytes(const struct cost_ranges *made, const struct cost_sizes *sizes)
{
    double bytes = 0;
    for (size_t i = 0; i < made->count; i++)
        bytes += cost_bytes(made->ranges[i].value->type, sizes);
    return bytes;
}

/* Where a tensor is read from row 0 to row n, there are n at most: as many as iterations. */
static const struct dim *in_iterations(const struct estimate *e, const struct dim *dim)
{
    for (uint32_t i = 0; dim->kind == DIM_MIN && i < dim->n_terms; i++)
        if (dim->terms[i] == e->batch->n_trips)
            return dim->terms[i];
    return dim;
}

/* All bytes that are made, as a dim; NULL: memory ran out. */
static const struct dim *total_bytes(const struct estimate *e)
{
    struct dim_table *table = &e->batch->graph->dims;
    const struct dim *total = dim_const(table, 0);
    for (size_t i = 0; i < e->made.count; i++) {
        const struct ir_type *type = e->made.ranges[i].value->type;
        if (type->kind != TYPE_TENSOR || type->rank < 0)
            continue;
        const struct dim *bytes = dim_const(table, (int64_t)tssa_dtype_size(type->dtype));
        for (int d = 0; d < type->rank; d++)
            bytes = dim_mul(table, bytes, in_iterations(e, type->dims[d]));
        total = dim_add(table, total, bytes);
    }
    return total;
}

/* Of a sum that grows by as much with every iteration, how much that is; else NULL. */
static const struct dim *bytes_each(const struct estimate *e, const struct dim *total)
{
    struct dim_table *table = &e->batch->graph->dims;
    const struct dim *n = e->batch->n_trips;
    if (n->kind != DIM_SYMBOL)
        return NULL;
    const struct dim *at_0 = dim_substitute(table, total, n, dim_const(table, 0));
    const struct dim *each =
        dim_sub(table, dim_substitute(table, total, n, dim_const(table, 1)), at_0);
    return dim_add(table, dim_mul(table, each, n), at_0) == total ? each : NULL;
}

static tssa_status *size_blocks(const struct estimate *e, struct batch_cost *cost)
{
    int64_t trips, bytes = choice_budget(e->batch->pass);
    bytes = bytes < CHOICE_BLOCK_BYTES ? bytes : CHOICE_BLOCK_BYTES;
    struct cost_sizes sizes = {.size = 1024};
    double made = sum_bytes(&e->made, &sizes), peak = cost_peak(&e->made, &sizes);
    double share = peak > 0 ? made / peak : 1; /* of what is made, not all lives at once */
    cost->size.bytes = (int64_t)((double)bytes * share) + 1;
    cost->size.total = total_bytes(e);
    TRY_ALLOC(cost->size.total);
    cost->size.each = bytes_each(e, cost->size.total);
    if (!is_row_known(e))
        return NULL;
    if (!dim_is_const(e->batch->n_trips, &trips))
        trips = sizes.size;
    double row = peak / (double)(trips > 0 ? trips : 1);
    cost->size.iterations =
        row * 2 < (double)bytes ? (int64_t)((double)bytes / (row > 1 ? row : 1)) : 1;
    return NULL;
}

static tssa_status *find(struct estimate *e, struct batch_cost *cost)
{
    TRY(cost_ranges_find(e->first, e->batch->before, &e->made));
    TRY(cost_ranges_find(e->loop->body->first, NULL, &e->body));
    forget_updates(e->batch, &e->body);
    TRY(choice_given_find(e->loop, &e->given));
    choose(e);
    if (e->loop->op->fits)
        cost->choice.way = CHOICE_ALL;
    TRY(size_blocks(e, cost));
    const struct pass_batching *batching = &e->batch->pass->batching;
    if (batching->block > 0 || batching->block_bytes > 0) {
        cost->choice.way = CHOICE_BLOCKS;
        cost->size.iterations = batching->block;
        cost->size.bytes = batching->block_bytes;
    }
    if (batching->rows > 0 && row_elements(e)) {
        cost->choice.way = CHOICE_BOTH;
        cost->choice.rows =
            (struct choice_rows){row_elements(e), e->batch->n_trips, batching->rows, 2};
    }
    return NULL;
}

tssa_status *batch_cost_find(const struct batch *batch, const struct loop *loop,
                             struct ir_value *const *results, struct batch_cost *cost)
{
    struct estimate e = {.batch = batch,
                         .loop = loop,
                         .results = results,
                         .first = batch->mark ? batch->mark->next : batch->before->parent->first,
                         .choice = &cost->choice};
    *cost = (struct batch_cost){0};
    tssa_status *status = find(&e, cost);
    cost_ranges_free(&e.made);
    cost_ranges_free(&e.body);
    cost->choice.context = NULL;
    choice_given_free(&e.given);
    return status;
}
