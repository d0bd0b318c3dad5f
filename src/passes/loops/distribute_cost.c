/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/loops/distribute_cost.h"

/* Calls that tell how long a block is and where it begins. */
#define CALLS_OF_BLOCK 16

/* A value that a later loop reads from a stack. */
struct crossing {
    const struct ir_value *value;
    uint32_t from, to; /* the loop that makes it, and one that reads it */
    bool last;         /* no later one does */
};

struct estimate {
    const struct split *split;
    struct choice_given given;
    struct cost_ranges body;
    VEC(struct crossing) crossings;
    bool *recurs; /* by stage: it carries something */
    const struct dim *trips;
};

/* ---- What crosses ---------------------------------------------------------------------------- */

static uint32_t stage_at(const struct split *split, uint32_t node)
{
    return split->stage[split->found->component[node]];
}

/* Is the value needed by the loop of a stage? */
static bool is_read(const struct split *split, const struct ir_value *value, uint32_t stage)
{
    const struct recurrences *found = split->found;
    for (const struct ir_use *use = value->uses; use; use = use->next) {
        const struct ir_op *user = use->user;
        while (user->parent != found->body)
            user = user->parent->owner;
        if (!ir_op_is(user, IR_OP_return) &&
            stage_at(split, found->op_index[user->id] - 1) == stage)
            return true;
    }
    return false;
}

static bool add_crossings(struct estimate *e, const struct ir_value *value, uint32_t from)
{
    size_t before = e->crossings.count;
    for (uint32_t to = from + 1; to < e->split->n_stages; to++) {
        const struct crossing crossing = {value, from, to, false};
        if (is_read(e->split, value, to) && !vec_push(&e->crossings, crossing))
            return false;
    }
    if (e->crossings.count > before)
        e->crossings.data[e->crossings.count - 1].last = true;
    return true;
}

static tssa_status *find_crossings(struct estimate *e)
{
    const struct recurrences *found = e->split->found;
    for (uint32_t i = 0; i < found->n_ops; i++)
        for (uint32_t r = 0; r < found->ops[i]->n_results; r++)
            if (!add_crossings(e, &found->ops[i]->results[r], stage_at(e->split, i)))
                return status_out_of_memory();
    for (uint32_t k = 0; k < found->n_carried; k++)
        e->recurs[stage_at(e->split, found->n_ops + k)] = true;
    return NULL;
}

/* ---- Memory ---------------------------------------------------------------------------------- */

/* The most bytes of an iteration that are stacked while one of the loops runs. */
static double stacked_row(const struct estimate *e, const struct cost_sizes *sizes)
{
    double most = 0;
    for (uint32_t stage = 0; stage < e->split->n_stages; stage++) {
        double bytes = 0;
        for (size_t i = 0; i < e->crossings.count; i++) {
            const struct crossing *c = &e->crossings.data[i];
            if (c->last && c->from <= stage && stage <= c->to)
                bytes += cost_bytes(c->value->type, sizes);
        }
        most = bytes > most ? bytes : most;
    }
    return most;
}

/* ---- Time ------------------------------------------------------------------------------------ */

/* Bytes of matrices that are the same in all iterations. */
static double invariant_bytes(const struct estimate *e, const struct ir_op *op,
                              const struct cost_sizes *sizes)
{
    double bytes = 0;
    if (op->info->cls != IR_CLASS_CONTRACTION)
        return 0;
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const struct ir_value *value = ir_operand(op, i);
        if (value && !loop_makes(e->split->loop, value))
            bytes += cost_bytes(value->type, sizes);
    }
    return bytes;
}

struct stage_work {
    struct cost_work work; /* of one iteration */
    double weights;        /* bytes of its matrices */
    double crossing;       /* bytes that are read from stacks, and written to them */
    double reads;
};

static struct stage_work work_of(const struct estimate *e, uint32_t stage,
                                 const struct cost_sizes *sizes)
{
    struct stage_work all = {0};
    const struct recurrences *found = e->split->found;
    for (uint32_t i = 0; i < found->n_ops; i++) {
        const struct ir_op *op = found->ops[i];
        if (stage_at(e->split, i) != stage)
            continue;
        const struct cost_work work = cost_work(op, op->next, sizes);
        all.work.calls += work.calls;
        all.work.bytes += work.bytes;
        all.work.operations += work.operations;
        all.weights += invariant_bytes(e, op, sizes);
    }
    for (size_t i = 0; i < e->crossings.count; i++) {
        const struct crossing *c = &e->crossings.data[i];
        double bytes = cost_bytes(c->value->type, sizes);
        if (c->to == stage)
            all.reads++;
        if (c->to == stage || (c->last && c->from == stage))
            all.crossing += 2 * bytes;
    }
    return all;
}

/* In so many blocks, whose stacks take so many bytes. A loop that carries nothing becomes one
 * operation. */
static double seconds_split(const struct estimate *e, double row, double stacks, double count,
                            const struct cost_sizes *sizes)
{
    const struct choice_rates *rates = choice_rates(e->split->pass);
    double trips = cost_dim(e->trips, sizes), seconds = 0;
    for (uint32_t stage = 0; stage < e->split->n_stages; stage++) {
        struct stage_work of = work_of(e, stage, sizes);
        if (e->recurs[stage]) {
            of.work.calls += of.reads;
            seconds +=
                count * rates->loop +
                trips * (rates->iteration + choice_seconds(rates, &of.work, row + of.weights) +
                         of.crossing * choice_seconds_byte(stacks));
        } else {
            of.work.calls *= count;
            of.work.operations *= trips;
            of.work.bytes = (of.work.bytes - of.weights) * trips + of.weights * count;
            seconds += choice_seconds(rates, &of.work, stacks);
        }
    }
    return seconds;
}

static double seconds_loop(const struct estimate *e, double row, const struct cost_sizes *sizes)
{
    const struct choice_rates *rates = choice_rates(e->split->pass);
    double weights = 0;
    const struct cost_work body = cost_work(e->split->loop->body->first, NULL, sizes);
    for (uint32_t i = 0; i < e->split->found->n_ops; i++)
        weights += invariant_bytes(e, e->split->found->ops[i], sizes);
    return rates->loop + cost_dim(e->trips, sizes) *
                             (rates->iteration + choice_seconds(rates, &body, row + weights));
}

/* ---- All figures ----------------------------------------------------------------------------- */

static bool find_figures(void *context, const struct cost_sizes *sizes, struct choice_figures *f)
{
    const struct estimate *e = context;
    const struct loop *loop = e->split->loop;
    const struct choice_rates *rates = choice_rates(e->split->pass);
    double given = choice_given_bytes(&e->given, sizes), left = 0;
    double trips = cost_dim(e->trips, sizes), each = stacked_row(e, sizes);
    for (uint32_t i = 0; i < loop->op->n_results; i++)
        left += cost_bytes(loop->op->results[i].type, sizes);
    f->fixed = given + left;
    f->row = cost_peak(&e->body, sizes);
    f->all = each * trips + left + f->row;
    f->may = choice_may(e->split->pass, given, left, f->row);
    f->loop = seconds_loop(e, f->row, sizes);
    f->batched = seconds_split(e, f->row, f->all, 1, sizes);
    double in_block = each > 0 ? (double)CHOICE_BLOCK_BYTES / each : trips;
    double count = in_block >= trips ? 1 : in_block < 1 ? trips : trips / in_block;
    double stacks = each > (double)CHOICE_BLOCK_BYTES ? each : (double)CHOICE_BLOCK_BYTES;
    f->blocks = rates->loop + count * CALLS_OF_BLOCK * rates->call +
                seconds_split(e, f->row, stacks, count, sizes);
    if (e->split->writes) {
        f->batched = f->loop / 2;
        f->blocks = f->loop;
    }
    return true;
}

/* ---- Blocks ---------------------------------------------------------------------------------- */

/* Adds the bytes of a value as a dim; NULL: memory ran out. */
static const struct dim *add_bytes(struct dim_table *table, const struct dim *sum,
                                   const struct ir_type *type)
{
    if (type->kind != TYPE_TENSOR || type->rank < 0)
        return sum;
    const struct dim *bytes = dim_const(table, (int64_t)tssa_dtype_size(type->dtype));
    for (int d = 0; d < type->rank; d++)
        bytes = dim_mul(table, bytes, type->dims[d]);
    return dim_add(table, sum, bytes);
}

/* What is made for all iterations of a block: all of what recurs nowhere, and the stacks. */
static tssa_status *size_blocks(const struct estimate *e, struct block_size *size)
{
    const struct recurrences *found = e->split->found;
    struct dim_table *table = &found->loop->parent->graph->dims;
    const struct dim *each = dim_const(table, 0);
    int64_t bytes;
    for (uint32_t i = 0; i < found->n_ops; i++)
        for (uint32_t r = 0; r < found->ops[i]->n_results; r++)
            if (!e->recurs[stage_at(e->split, i)])
                each = add_bytes(table, each, found->ops[i]->results[r].type);
    for (size_t i = 0; i < e->crossings.count; i++) {
        const struct crossing *c = &e->crossings.data[i];
        if (c->last && e->recurs[c->from])
            each = add_bytes(table, each, c->value->type);
    }
    TRY_ALLOC(each);
    int64_t budget = choice_budget(e->split->pass);
    size->bytes = budget < CHOICE_BLOCK_BYTES ? budget : CHOICE_BLOCK_BYTES;
    size->each = size->total = each;
    if (dim_is_const(each, &bytes))
        size->iterations = bytes * 2 < size->bytes ? size->bytes / (bytes > 0 ? bytes : 1) : 1;
    return NULL;
}

static tssa_status *find(struct estimate *e, struct split_cost *cost)
{
    struct choice *choice = &cost->choice;
    const struct loop *loop = e->split->loop;
    const struct ir_value *trips = ir_operand(loop->op, 0);
    struct dim_table *table = &loop->body->graph->dims;
    TRY(choice_given_find(loop, &e->given));
    TRY(cost_ranges_find(loop->body->first, NULL, &e->body));
    TRY(find_crossings(e));
    e->trips = trips->known && trips->known->count == 1 ? trips->known->elements[0] : NULL;
    if (!e->trips)
        e->trips = dim_fresh(table, "trips");
    TRY_ALLOC(e->trips);
    choice_try_dim(choice, e->trips);
    for (size_t i = 0; i < e->body.count; i++)
        choice_try_type(choice, e->body.ranges[i].value->type);
    choice->figures = find_figures;
    choice->context = e;
    choice->must_win = true;
    choice_make(choice);
    choice->context = NULL;
    const struct pass_batching *batching = &e->split->pass->batching;
    TRY(size_blocks(e, &cost->size));
    if (batching->block > 0 || batching->block_bytes > 0) {
        choice->way = CHOICE_BLOCKS;
        cost->size.iterations = batching->block;
        cost->size.bytes = batching->block_bytes;
    }
    return NULL;
}

tssa_status *split_cost_find(const struct split *split, struct split_cost *cost)
{
    const tssa_allocator *allocator = split->found->loop->parent->graph->allocator;
    struct estimate e = {.split = split, .crossings = VEC_INIT(allocator)};
    *cost = (struct split_cost){0};
    e.recurs = allocator_calloc(allocator, split->n_stages + 1u, sizeof *e.recurs);
    tssa_status *status = e.recurs ? find(&e, cost) : status_out_of_memory();
    allocator_free(allocator, e.recurs);
    vec_free(&e.crossings);
    cost_ranges_free(&e.body);
    choice_given_free(&e.given);
    return status;
}
