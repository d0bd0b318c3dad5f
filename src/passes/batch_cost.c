/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/batch_cost.h"

#include "base/vec.h"
#include "passes/recurrence.h"

/* Symbols that are tried one by one; others are as large as the rest. */
#define MAX_SYMBOLS 8

/*
 * Seconds, of one thread of an interpreter: to enter a loop, an iteration, a call of a kernel, an operation on
 * an element, and a byte that is read or written, by what lives at once. Measured in ONNX Runtime 1.31 and tssa, which differ by less
 * than a factor of two.
 */
#define SECONDS_LOOP 10e-6
#define SECONDS_ITERATION 0.4e-6
#define SECONDS_CALL 0.4e-6
#define SECONDS_OPERATION 0.05e-9
#define SECONDS_BYTE_CACHE 0.04e-9
#define SECONDS_BYTE_SHARED 0.1e-9
#define SECONDS_BYTE_MEMORY 0.25e-9
#define CACHE_BYTES ((double)BATCH_BLOCK_BYTES)
#define SHARED_BYTES ((double)(16 << 20))

/* Sizes are not tried where the loop is given and leaves more bytes, or takes more seconds. */
#define LARGEST ((double)(1 << 30))
#define LONGEST 60

/* To reduce whole rows, for an element and for one that comes out: in other runtimes, and in sessions. */
#define SECONDS_ROWS_IN 1e-9
#define SECONDS_ROWS_OUT 4e-9
#define SECONDS_SESSION_ROWS 0.3e-9

/* What blocks must win. */
#define LEAST_GAIN 1.25
/* What may be lost: a share, and seconds that no size changes. */
#define MOST_LOSS 1.1
#define SECONDS_ONCE 50e-6

struct estimate {
    const struct batch *batch;
    const struct loop *loop;
    struct ir_value *const *results;
    struct ir_op *first;           /* of what was made */
    struct cost_ranges made, body; /* of what was made, and of one iteration */
    VEC(struct ir_value *) outer;  /* what the body uses of the blocks around it */
    const struct dim *symbols[MAX_SYMBOLS];
    int n_symbols;
    int64_t budget;
};

/* ---- Sizes that are tried ------------------------------------------------------------------------- */

static void find_symbols(struct estimate *e, const struct dim *dim)
{
    if (dim->kind == DIM_SYMBOL && dim->low != dim->high && e->n_symbols < MAX_SYMBOLS) {
        for (int i = 0; i < e->n_symbols; i++)
            if (e->symbols[i] == dim)
                return;
        e->symbols[e->n_symbols++] = dim;
    }
    for (uint32_t i = 0; i < dim->n_terms; i++)
        find_symbols(e, dim->terms[i]);
}

static void find_all_symbols(struct estimate *e)
{
    find_symbols(e, e->batch->n_trips);
    for (size_t i = 0; i < e->made.count; i++) {
        const struct ir_type *type = e->made.ranges[i].value->type;
        for (int d = 0; type->kind == TYPE_TENSOR && d < type->rank; d++)
            find_symbols(e, type->dims[d]);
    }
}

/* ---- Memory --------------------------------------------------------------------------------------- */

static bool add_outer(void *context, struct ir_value *value)
{
    struct estimate *e = context;
    if (loop_makes(e->loop, value))
        return true;
    for (size_t i = 0; i < e->outer.count; i++)
        if (e->outer.data[i] == value)
            return true;
    return vec_push(&e->outer, value);
}

/* What the body captures, and what the loop is given to carry. */
static tssa_status *find_outer(struct estimate *e)
{
    for (uint32_t k = 0; k < e->loop->n_carried; k++)
        if (!add_outer(e, loop_initial(e->loop, k)))
            return status_out_of_memory();
    for (const struct ir_op *op = e->loop->body->first; op; op = op->next)
        if (!recurrence_visit_operands(op, add_outer, e))
            return status_out_of_memory();
    return NULL;
}

/* What one iteration reads or writes of it at a place that moves with the counter. */
static double moving_row(const struct estimate *e, const struct ir_use *use,
                         const struct cost_sizes *sizes)
{
    const struct ir_op *op = use->user;
    int64_t factor, offset;
    if (op->parent != e->loop->body || use != &op->operands[0])
        return 0;
    if (ir_op_is(op, IR_OP_Gather)) {
        const struct ir_known *known = ir_operand(op, 1)->known;
        bool moves = known && known->count == 1 &&
                     batch_affine(e->batch, known->elements[0], &factor, &offset) && factor != 0;
        return moves ? cost_bytes(op->results[0].type, sizes) : 0;
    }
    if (!ir_op_is(op, IR_OP_access) && !ir_op_is(op, IR_OP_assign))
        return 0;
    const struct rule *rule = rule_of(op);
    for (uint32_t i = 0; i < rule->n_steps; i++)
        if (rule->steps[i].kind == RULE_SELECT &&
            batch_affine(e->batch, rule_param_dim(op, &rule->steps[i].params[1]), &factor,
                         &offset) &&
            factor != 0)
            return cost_bytes(
                ir_op_is(op, IR_OP_assign) ? ir_operand(op, 1)->type : op->results[0].type, sizes);
    return 0;
}

/* Bytes that are there while the loop runs, whatever is done: what it is given, and what it leaves. */
static void find_fixed(const struct estimate *e, const struct cost_sizes *sizes, double *given,
                       double *left)
{
    *given = *left = 0;
    for (size_t i = 0; i < e->outer.count; i++)
        *given += cost_bytes(e->outer.data[i]->type, sizes);
    for (uint32_t i = 0; i < e->loop->op->n_results; i++)
        *left += cost_bytes(e->results[i]->type, sizes);
}

/* Could all iterations be made? Not where they move out of a value. An index may count from either end. */
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
    double trips = cost_dim(e->batch->n_trips, sizes), given, left;
    find_fixed(e, sizes, &given, &left);
    if (given + left > LARGEST)
        return false;
    for (size_t i = 0; i < e->outer.count; i++)
        if (!is_in_range(e, e->outer.data[i], trips, sizes))
            return false;
    for (uint32_t k = 0; k < e->loop->n_carried; k++)
        if (!is_in_range(e, loop_param(e->loop, k), trips, sizes))
            return false;
    return true;
}

/* ---- Time ----------------------------------------------------------------------------------------- */

static double seconds_byte(double live)
{
    return live <= CACHE_BYTES    ? SECONDS_BYTE_CACHE
           : live <= SHARED_BYTES ? SECONDS_BYTE_SHARED
                                  : SECONDS_BYTE_MEMORY;
}

double batch_cost_seconds(const struct cost_work *work, double live)
{
    return work->calls * SECONDS_CALL + work->bytes * seconds_byte(live) +
           work->operations * SECONDS_OPERATION;
}

static bool is_for_session(const struct estimate *e)
{
    const tssa_optimize_options *options = e->batch->pass->options;
    return options && options->target == TSSA_TARGET_SESSION;
}

/* Carried tensors that an iteration writes to are copied by other runtimes, and by sessions are not. */
static double seconds_copies(const struct estimate *e, const struct cost_sizes *sizes)
{
    double bytes = 0;
    if (is_for_session(e))
        return 0;
    for (const struct ir_op *op = e->loop->body->first; op; op = op->next)
        if (op->info->flags & IR_UPDATE)
            bytes += 2 * cost_bytes(op->results[0].type, sizes);
    return bytes * seconds_byte(bytes);
}

/* A largest or a sum of rows that is carried becomes a reduction along the first axis, in each block. */
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
    return is_for_session(e) ? SECONDS_SESSION_ROWS * outputs * (trips + blocks)
                             : outputs * (SECONDS_ROWS_IN * trips + SECONDS_ROWS_OUT * blocks);
}

/* ---- The choice ----------------------------------------------------------------------------------- */

struct figures {
    double all, may, row; /* bytes: of all iterations at once, what they may be, of one iteration */
    double loop, batched, blocks; /* seconds */
};

static struct figures at(const struct estimate *e, const struct cost_sizes *sizes)
{
    double given, left, trips = cost_dim(e->batch->n_trips, sizes);
    struct figures f = {.row = cost_peak(&e->body, sizes), .all = cost_peak(&e->made, sizes)};
    find_fixed(e, sizes, &given, &left);
    f.may = 1.5 * (given + left + f.row) + (double)e->budget - given;
    const struct cost_work body = cost_work(e->loop->body->first, NULL, sizes),
                           made = cost_work(e->first, e->batch->before, sizes);
    double fixed = seconds_byte(given + left) * (given + left); /* comes from there in any case */
    f.loop =
        fixed + SECONDS_LOOP +
        trips * (SECONDS_ITERATION + batch_cost_seconds(&body, f.row) + seconds_copies(e, sizes));
    f.batched = fixed + batch_cost_seconds(&made, f.all) + seconds_rows(e, 1, sizes);
    /* As many calls for a block, each of whose temporaries stay in the cache where a row does. */
    double in_block = f.row > 0 ? CACHE_BYTES / f.row : trips;
    double count = in_block >= trips ? 1 : in_block < 1 ? trips : trips / in_block;
    struct cost_work blocks = made;
    blocks.calls *= count;
    f.blocks = fixed + SECONDS_LOOP + seconds_rows(e, count, sizes) +
               batch_cost_seconds(&blocks, f.row < CACHE_BYTES ? CACHE_BYTES : f.row);
    return f;
}

/* The figures that a remark tells: those of the sizes that speak most against all at once. */
static void note(struct batch_cost *cost, const struct figures *f, bool fits)
{
    bool first = cost->may == 0, worse = f->all / f->may > cost->all / cost->may;
    if (!first && (fits ? cost->all > cost->may || f->batched <= MOST_LOSS * f->loop : !worse))
        return;
    cost->all = f->all;
    cost->may = f->may;
    cost->row = f->row;
    cost->seconds_loop = f->loop;
    cost->seconds_all = f->batched;
}

/* One point: may it be all at once, and would blocks win, or lose? */
static void weigh(const struct estimate *e, const struct cost_sizes *sizes, struct batch_cost *cost,
                  bool *all, bool *blocks, bool *loses)
{
    if (e->n_symbols && !is_possible(e, sizes))
        return;
    const struct figures f = at(e, sizes);
    if (e->n_symbols && f.loop > LONGEST)
        return;
    bool fits = f.all <= f.may;
    note(cost, &f, fits);
    *all &= fits && f.batched <= MOST_LOSS * f.loop;
    *blocks |= f.loop >= LEAST_GAIN * f.blocks;
    *loses |= f.blocks > MOST_LOSS * f.loop + SECONDS_ONCE;
}

static void choose(const struct estimate *e, struct batch_cost *cost)
{
    static const int64_t sizes[] = {1, 32, 1024, 32768, 1 << 20};
    size_t n = e->n_symbols ? sizeof sizes / sizeof *sizes : 1;
    bool all = true, blocks = false, loses = false;
    for (int s = 0; s < (e->n_symbols ? e->n_symbols : 1); s++)
        for (size_t i = 0; i < n; i++)
            for (size_t k = 0; k < (e->n_symbols > 1 ? n : 1); k++) {
                const struct cost_sizes point = {e->symbols[s], sizes[i], sizes[k]};
                weigh(e, &point, cost, &all, &blocks, &loses);
            }
    cost->known = e->n_symbols == 0;
    cost->way = all ? BATCH_ALL : blocks && !loses ? BATCH_BLOCKS : BATCH_LEAVE;
}

/* ---- Blocks --------------------------------------------------------------------------------------- */

static double sum_bytes(const struct cost_ranges *made, const struct cost_sizes *sizes)
{
    double bytes = 0;
    for (size_t i = 0; i < made->count; i++)
        bytes += cost_bytes(made->ranges[i].value->type, sizes);
    return bytes;
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
            bytes = dim_mul(table, bytes, type->dims[d]);
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

/* The sizes of an iteration are known where only the number of iterations is not. */
static bool is_row_known(const struct estimate *e)
{
    return e->n_symbols == 0 || (e->n_symbols == 1 && e->symbols[0] == e->batch->n_trips);
}

static tssa_status *size_blocks(const struct estimate *e, struct batch_cost *cost)
{
    int64_t trips, bytes = e->budget < BATCH_BLOCK_BYTES ? e->budget : BATCH_BLOCK_BYTES;
    struct cost_sizes sizes = {.size = 1024};
    double made = sum_bytes(&e->made, &sizes), peak = cost_peak(&e->made, &sizes);
    double share = peak > 0 ? made / peak : 1; /* of what is made, not all lives at once */
    cost->block_bytes = (int64_t)((double)bytes * share) + 1;
    cost->total = total_bytes(e);
    TRY_ALLOC(cost->total);
    cost->each = bytes_each(e, cost->total);
    if (!is_row_known(e))
        return NULL;
    if (!dim_is_const(e->batch->n_trips, &trips))
        trips = sizes.size;
    double row = peak / (double)(trips > 0 ? trips : 1);
    cost->block = row * 2 < (double)bytes ? (int64_t)((double)bytes / (row > 1 ? row : 1)) : 1;
    return NULL;
}

static tssa_status *find(struct estimate *e, struct batch_cost *cost)
{
    TRY(cost_ranges_find(e->first, e->batch->before, &e->made));
    TRY(cost_ranges_find(e->loop->body->first, NULL, &e->body));
    TRY(find_outer(e));
    find_all_symbols(e);
    choose(e, cost);
    TRY(size_blocks(e, cost));
    const struct pass_batching *batching = &e->batch->pass->batching;
    if (batching->block > 0 || batching->block_bytes > 0) {
        cost->way = BATCH_BLOCKS;
        cost->block = batching->block;
        cost->block_bytes = batching->block_bytes;
    }
    return NULL;
}

tssa_status *batch_cost_find(const struct batch *batch, const struct loop *loop,
                             struct ir_value *const *results, struct batch_cost *cost)
{
    const struct pass_batching *batching = &batch->pass->batching;
    struct estimate e = {.batch = batch,
                         .loop = loop,
                         .results = results,
                         .outer = VEC_INIT(batch->graph->allocator),
                         .first = batch->mark ? batch->mark->next : batch->before->parent->first,
                         .budget = batching->budget ? batching->budget : BATCH_BUDGET};
    *cost = (struct batch_cost){0};
    tssa_status *status = find(&e, cost);
    cost_ranges_free(&e.made);
    cost_ranges_free(&e.body);
    vec_free(&e.outer);
    return status;
}
