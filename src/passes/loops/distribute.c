/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loop distribution: a Loop whose body does several heavy things becomes several Loops that run one
 * after the other, each with one of them (Allen and Kennedy, 1987):
 *
 *     for t: h = cell(x[t] W + h U)   ->   for t: p[t] = x[t] W    <- no recurrence: one product
 *                                          for t: h = cell(p[t] + h U)
 *
 * What crosses from one to the next is stacked by a scan output and read back at the counter. A
 * product with an invariant matrix that no recurrence holds goes to a Loop without carried values,
 * which `parallelize` makes one large product; recurrences with products of their own (the layers
 * of a recurrent network) each get a Loop, whose weights then stay in the cache.
 *
 * A loop in a loop that does nothing but write one value to elements of a tensor (write_nest.h)
 * goes to a Loop of its own as well, where the two can be made one (coalesce).
 *
 * What is stacked takes memory, and time to be written and read. It is estimated
 * (distribute_cost.h), for small and large sizes where only a run tells them: where stacks of all
 * iterations would be too much, blocks of iterations are split, in a Loop over them (strip_mine.h),
 * and where little is won the loop stays.
 *
 *   needs   a number of iterations that nothing computed in the body can change
 *   keeps   results' bits
 *   breaks  nothing; accesses are made that lower_rules turns into standard operators
 */
#include "passes/loops/distribute.h"

#include "ir/rebuild.h"
#include "passes/loops/distribute_blocks.h"
#include "passes/loops/distribute_cost.h"
#include "passes/loops/write_nest.h"
#include "passes/pass.h"

/* ---- Components ------------------------------------------------------------------------------ */

static bool has_product(const struct ir_op *op)
{
    if (op->info->cls == IR_CLASS_CONTRACTION)
        return true;
    for (uint32_t b = 0; b < op->n_blocks; b++)
        for (const struct ir_op *inner = op->blocks[b]->first; inner; inner = inner->next)
            if (has_product(inner))
                return true;
    return false;
}

/* A product that `parallelize` can make one for all iterations. */
static bool is_product(const struct ir_op *op)
{
    return ir_op_is(op, IR_OP_MatMul) || ir_op_is(op, IR_OP_Gemm);
}

static void classify(struct distribution *d)
{
    const struct recurrences *found = &d->found;
    for (uint32_t c = 0; c < found->n_components; c++)
        d->kind[c] = found->is_recurrent[c] ? RECURRENT : LIGHT;
    for (uint32_t i = 0; i < found->n_ops; i++) {
        uint8_t *kind = &d->kind[found->component[i]];
        if (*kind == LIGHT && is_product(found->ops[i]))
            *kind = PRODUCT;
        else if (*kind == RECURRENT && has_product(found->ops[i]))
            *kind = HEAVY_RECURRENT;
    }
}

/* Is there anything to gain? A loop that only writes, or a heavy recurrence with a product or
 * another heavy recurrence beside it. */
static bool is_worth_it(const struct distribution *d)
{
    uint32_t products = 0, heavy = 0, recurrent = 0;
    for (uint32_t c = 0; c < d->found.n_components; c++) {
        products += d->kind[c] == PRODUCT;
        heavy += d->kind[c] == HEAVY_RECURRENT;
        recurrent += d->kind[c] == RECURRENT;
    }
    return d->writer != RECURRENCE_NONE || heavy > 1 || (products > 0 && heavy + recurrent > 0);
}

/* ---- Stages ---------------------------------------------------------------------------------- */

/* `value` is an operand in component d->component. */
static bool follow(void *context, struct ir_value *value)
{
    struct distribution *d = context;
    uint32_t from = recurrence_of_value(&d->found, value), to = d->component;
    if (from == RECURRENCE_NONE || from == to)
        return true;
    uint32_t stage = d->stage[from];
    bool odd = stage % 2 != 0, heavy = d->after_heavy[from];
    if (d->kind[to] == PRODUCT)
        stage += odd;
    else if (d->kind[to] == HEAVY_RECURRENT && odd)
        stage += heavy ? 2 : 0;
    if (stage > d->stage[to]) {
        d->stage[to] = stage;
        d->after_heavy[to] = false;
    }
    if (stage == d->stage[to] && stage == d->stage[from] && heavy)
        d->after_heavy[to] = true;
    return true;
}

/* Ops by component: order[first[c]] up to order[first[c + 1]], in the order of the body. */
static void sort_ops(const struct recurrences *found, uint32_t *first, uint32_t *order)
{
    for (uint32_t i = 0; i < found->n_ops; i++)
        first[found->component[i] + 1]++;
    for (uint32_t c = 0; c < found->n_components; c++)
        first[c + 1] += first[c];
    for (uint32_t i = found->n_ops; i-- > 0;)
        order[--first[found->component[i] + 1]] = i;
    /* Every first[c + 1] is now where c begins. */
    for (uint32_t c = 0; c < found->n_components; c++)
        first[c] = first[c + 1];
    first[found->n_components] = found->n_ops;
}

static void assign_stages(struct distribution *d, const uint32_t *first, const uint32_t *order)
{
    const struct recurrences *found = &d->found;
    for (uint32_t c = 0; c < found->n_components; c++) {
        d->component = c;
        for (uint32_t i = first[c]; i < first[c + 1]; i++)
            recurrence_visit_operands(found->ops[order[i]], follow, d);
        if (d->kind[c] >= RECURRENT && d->stage[c] % 2 == 0)
            d->stage[c]++;
        if (d->kind[c] == HEAVY_RECURRENT)
            d->after_heavy[c] = true;
        if (d->stage[c] >= d->n_stages)
            d->n_stages = d->stage[c] + 1;
    }
    if (d->writer != RECURRENCE_NONE) /* nothing needs it: it may come last */
        d->stage[found->component[found->n_ops + d->writer]] = d->n_stages++;
}

static bool count_body_value(void *context, struct ir_value *value)
{
    struct distribution *d = context;
    if (recurrence_of_value(&d->found, value) != RECURRENCE_NONE)
        d->at++;
    return true;
}

/* The first stage that needs a result of the op; NONE where the loop itself returns one. */
static uint32_t first_use(const struct distribution *d, const struct ir_op *op)
{
    uint32_t stage = RECURRENCE_NONE;
    for (uint32_t i = 0; i < op->n_results; i++)
        for (const struct ir_use *use = op->results[i].uses; use; use = use->next) {
            const struct ir_op *user = use->user;
            while (user->parent != d->found.body)
                user = user->parent->owner;
            if (ir_op_is(user, IR_OP_return))
                return RECURRENCE_NONE;
            uint32_t at = d->stage[d->found.component[d->found.op_index[user->id] - 1]];
            if (at < stage)
                stage = at;
        }
    return stage;
}

/*
 * Reads go to where they are needed, when no more has to be stacked for it: they read one value of
 * the body at most. Arithmetic stays: beside a product it is done for all iterations at once.
 */
static void sink_reads(struct distribution *d)
{
    const struct recurrences *found = &d->found;
    for (uint32_t i = found->n_ops; i-- > 0;) {
        uint32_t c = found->component[i];
        if (d->kind[c] != LIGHT || found->ops[i]->info->cls != IR_CLASS_MOVEMENT)
            continue;
        d->at = 0;
        recurrence_visit_operands(found->ops[i], count_body_value, d);
        uint32_t use = first_use(d, found->ops[i]);
        if (d->at <= 1 && use != RECURRENCE_NONE && use > d->stage[c])
            d->stage[c] = use;
    }
}

/* ---- What crosses ---------------------------------------------------------------------------- */

static bool check_crossing(void *context, struct ir_value *value)
{
    const struct distribution *d = context;
    uint32_t stage = distribution_stage_of(d, value);
    return stage == RECURRENCE_NONE || stage == d->at || loop_can_stack(&d->loop, value);
}

/* NULL, or a value that would have to be stacked and cannot be. */
static bool all_can_cross(struct distribution *d)
{
    for (uint32_t i = 0; i < d->found.n_ops; i++) {
        d->at = d->stage[d->found.component[i]];
        if (!recurrence_visit_operands(d->found.ops[i], check_crossing, d))
            return false;
    }
    return true;
}

/* ---- Eligible loops -------------------------------------------------------------------------- */

/* Runs a fixed number of times, and each carried value is computed in the body. */
static bool is_eligible(const struct ir_op *loop)
{
    const struct ir_block *body = ir_op_block(loop, "body");
    const struct ir_op *ret = ir_block_return(body);
    const struct loop parts = loop_of((struct ir_op *)loop);
    const struct ir_use *uses = body->params[1]->uses;
    bool only_returned = !uses || (uses->user == ret && !uses->next);
    if (!ir_operand(loop, 0) || !only_returned || loop_enters(&parts) != LOOP_TRUE ||
        loop_stays(&parts) != LOOP_TRUE || !ir_op_is_pure(loop))
        return false;
    for (uint32_t k = 0; k < ir_loop_carried(loop); k++) {
        const struct ir_value *value = ir_operand(ret, ir_loop_return(loop, k));
        if (!value->op || value->op->parent != body)
            return false;
    }
    return true;
}

/* ---- The pass -------------------------------------------------------------------------------- */

static uint32_t count_stages(const struct distribution *d)
{
    uint32_t count = 0;
    for (uint32_t stage = 0; stage < d->n_stages; stage++)
        for (uint32_t i = 0; i < d->found.n_ops; i++)
            if (d->stage[d->found.component[i]] == stage) {
                count++;
                break;
            }
    return count;
}

/* Whole loops, loops for blocks of iterations, or the loop as it is: as it costs. */
static tssa_status *decide(struct distribution *d)
{
    static const char *const ways[] = {
        [CHOICE_BLOCKS] =
            "split in blocks of iterations, into a loop for each of its recurrences and "
            "what lies between: stacks of all iterations would be too much",
        [CHOICE_LEAVE] = "not split into a loop for each of its recurrences and what lies between: "
                         "stacks would take more than is won"};
    const struct split split_of = {.pass = d->pass,
                                   .loop = &d->loop,
                                   .found = &d->found,
                                   .stage = d->stage,
                                   .n_stages = d->n_stages,
                                   .writes = d->writer != RECURRENCE_NONE};
    struct split_cost cost;
    if (d->loop.op->fits)
        return distribution_split(d);
    TRY(split_cost_find(&split_of, &cost));
    if (cost.choice.way == CHOICE_ALL)
        return distribution_split(d);
    TRY(choice_remark(&cost.choice, d->pass, d->loop.op, ways));
    return cost.choice.way == CHOICE_BLOCKS
               ? distribute_blocks(d->pass, &d->loop, &cost.size, &d->inner)
               : NULL;
}

static tssa_status *distribute(struct distribution *d, uint32_t *first, uint32_t *order)
{
    classify(d);
    if (!is_worth_it(d))
        return NULL;
    sort_ops(&d->found, first, order);
    assign_stages(d, first, order);
    sink_reads(d);
    if (count_stages(d) < 2)
        return NULL;
    if (!all_can_cross(d))
        return pass_remark(d->pass, TSSA_REMARK_MISSED, d->found.loop,
                           "not split: a value of another size in every iteration would have to be "
                           "stacked");
    return decide(d);
}

static tssa_status *visit_loop(struct pass_context *pass, struct ir_op *loop)
{
    const tssa_allocator *allocator = pass->graph->allocator;
    struct distribution d = {.pass = pass, .loop = loop_of(loop)};
    d.writer = write_nest_writer(&d.loop);
    if (d.writer != RECURRENCE_NONE)
        TRY(write_nest_free(&d.loop, d.writer));
    d.n_values = pass->graph->n_values;
    tssa_status *status = recurrences_find(loop, &d.found);
    size_t n = (size_t)d.found.n_components + 1;
    if (!status) {
        d.kind = allocator_calloc(allocator, n, sizeof *d.kind);
        d.stage = allocator_calloc(allocator, n, sizeof *d.stage);
        d.after_heavy = allocator_calloc(allocator, n, sizeof *d.after_heavy);
        d.stacked = allocator_calloc(allocator, d.n_values, sizeof(struct ir_value *));
        uint32_t *first = allocator_calloc(allocator, n + 1 + d.found.n_ops, sizeof *first);
        bool ready = d.kind && d.stage && d.after_heavy && d.stacked && first;
        status = ready ? distribute(&d, first, first + n + 1) : status_out_of_memory();
        allocator_free(allocator, first);
        allocator_free(allocator, d.kind);
        allocator_free(allocator, d.stage);
        allocator_free(allocator, d.after_heavy);
        allocator_free(allocator, d.stacked);
    }
    recurrences_free(&d.found);
    return !status && d.inner ? visit_loop(pass, d.inner) : status;
}

static tssa_status *visit(void *context, struct ir_op *op)
{
    bool split = ir_op_is(op, IR_OP_Loop) && !op->in_blocks && is_eligible(op);
    return split ? visit_loop(context, op) : NULL;
}

tssa_status *pass_distribute(struct pass_context *pass)
{
    return ir_block_walk(pass->graph->body, visit, pass);
}
