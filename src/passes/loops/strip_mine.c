/* SPDX-License-Identifier: Apache-2.0 */
#include "passes/loops/strip_mine.h"

#include "ir/infer.h"
#include "passes/loops/dim_value.h"

struct blocks {
    const struct strip *s;
    struct batch *batch;     /* before the loop; n_trips: of the whole loop */
    struct ir_value *trips;  /* of the whole loop */
    struct ir_value *size;   /* iterations of a block, i64[] */
    struct ir_value *count;  /* blocks */
    bool even;               /* all blocks are of one size, which is known */
    struct ir_op *op;        /* the new Loop */
    struct ir_block *body;   /* of it */
    struct ir_value *length; /* in its body: iterations of this block, i64[] */
    /* rows of a whole block: i64[size], none beyond the last of this block */
    struct ir_value *places;
};

/* ---- How large blocks are -------------------------------------------------------------------- */

static bool has_rows(const struct blocks *b)
{
    return b->s->loop.n_stacked > 0;
}

/* A whole number of iterations, in blocks of at most `limit`: of one size where that is no less
 * than half. */
static int64_t even_size(int64_t trips, int64_t limit)
{
    int64_t count = (trips + limit - 1) / limit, size = (trips + count - 1) / count;
    for (int64_t even = size; even > limit / 2; even--)
        if (trips % even == 0)
            return even;
    return size;
}

static bool set_known_size(struct blocks *b, int64_t trips, int64_t limit)
{
    int64_t size = even_size(trips, limit < trips ? limit : trips);
    b->even = trips % size == 0;
    b->size = batch_number(b->batch, size);
    b->count = batch_number(b->batch, (trips + size - 1) / size);
    return b->size && b->count;
}

/* As many iterations as have so many bytes: one at least. */
static struct ir_value *limit_of(struct blocks *b, const struct block_size *size)
{
    if (size->iterations > 0)
        return batch_number(b->batch, size->iterations);
    struct batch *batch = b->batch;
    struct ir_value *one = batch_number(batch, 1), *may = batch_number(batch, size->bytes);
    struct ir_value *bytes =
        dim_value_bound(batch, &b->s->loop, size->each ? size->each : size->total);
    if (!size->each)
        may = batch_binary(batch, IR_OP_Mul, batch_binary(batch, IR_OP_Max, b->trips, one), may);
    if (!size->each || size->each->low < 1)
        bytes = batch_binary(batch, IR_OP_Max, bytes, one);
    return batch_binary(batch, IR_OP_Max, batch_binary(batch, IR_OP_Div, may, bytes), one);
}

/* What a block leaves is stacked from one block at least, so that its shape is known. */
static bool set_size(struct blocks *b, const struct block_size *size)
{
    int64_t trips;
    if (dim_is_const(b->batch->n_trips, &trips) && size->iterations > 0 && trips > 0)
        return set_known_size(b, trips, size->iterations);
    struct ir_value *limit = limit_of(b, size), *one = batch_number(b->batch, 1);
    struct ir_value *last = batch_binary(b->batch, IR_OP_Sub, limit, one);
    b->count =
        batch_binary(b->batch, IR_OP_Div, batch_binary(b->batch, IR_OP_Add, b->trips, last), limit);
    b->size = limit;
    if (has_rows(b)) {
        b->count = batch_binary(b->batch, IR_OP_Max, b->count, one);
        b->size = batch_binary(b->batch, IR_OP_Min, limit, b->trips);
    }
    return b->size && b->count;
}

/* ---- The loop over blocks -------------------------------------------------------------------- */

/* The number of a block is a symbol of the body. */
static tssa_status *set_counter(struct ir_graph *graph, struct ir_value *param)
{
    struct ir_known *known = ARENA_NEW(&graph->arena, struct ir_known);
    const struct dim *counter = dim_fresh(&graph->dims, "block");
    TRY_ALLOC(known);
    TRY_ALLOC(counter);
    known->elements = arena_copy(&graph->arena, &counter, sizeof counter);
    TRY_ALLOC(known->elements);
    known->count = 1;
    param->known = known;
    return NULL;
}

/* The Loop, whose body returns nothing yet, before the old one. */
static tssa_status *make_frame(struct blocks *b)
{
    const struct loop *loop = &b->s->loop;
    struct ir_graph *graph = b->batch->graph;
    uint32_t n = 2 + loop->n_carried;
    struct ir_op *op = ir_op_create(graph, loop->op->info, n, loop->op->n_results);
    TRY_ALLOC(op);
    op->version = loop->op->version;
    op->name = loop->op->name;
    op->in_blocks = true;
    if (!ir_op_set_blocks(graph, op, 1))
        return status_out_of_memory();
    struct ir_block *body = ir_block_create(graph, op, n);
    struct ir_op *ret = ir_op_create(graph, ir_op_info(IR_OP_return), loop->op->n_results + 1, 0);
    TRY_ALLOC(body);
    TRY_ALLOC(ret);
    ir_op_append(body, ret);
    op->blocks[0] = body;
    op->block_names[0] = loop->op->block_names[0];
    ir_op_insert_before(op, loop->op);
    ir_op_set_operand(op, 0, b->count);
    for (uint32_t p = 0; p < n; p++)
        body->params[p]->type = loop->body->params[p]->type;
    for (uint32_t k = 0; k < loop->n_carried; k++) {
        ir_op_set_operand(op, k + 2, loop_initial(loop, k));
        body->params[k + 2]->type = loop_initial(loop, k)->type;
    }
    b->op = op;
    b->body = body;
    return set_counter(graph, body->params[0]);
}

/* The iterations of a block, as a batch in the Loop's body. */
static tssa_status *begin_block(struct blocks *b, struct batch *batch)
{
    const struct strip *s = b->s;
    struct ir_graph *graph = b->batch->graph;
    struct ir_block *body = b->body;
    struct batch numbers = *b->batch; /* only to make some */
    numbers.before = ir_block_return(body);
    struct ir_value *first = batch_binary(&numbers, IR_OP_Mul, body->params[0], b->size);
    b->length = b->size;
    if (!b->even)
        b->length = batch_binary(&numbers, IR_OP_Min, b->size,
                                 batch_binary(&numbers, IR_OP_Sub, b->trips, first));
    TRY(numbers.status);
    TRY_ALLOC(first);
    TRY_ALLOC(b->length);
    if (!b->length->known) {
        const struct dim *fresh = dim_fresh(&graph->dims, "n");
        TRY_ALLOC(fresh);
        TRY(infer_set_known(b->length->op, b->length->index, 1, &fresh));
    }
    TRY(batch_init(batch, s->pass, s->shared, s->stacked, s->loop.op, b->length));
    batch->before = ir_block_return(body);
    batch->mark = NULL;
    batch->first = first;
    batch->n_all = b->batch->n_all;
    batch->may_be_empty = has_rows(b) && b->batch->may_be_empty;
    return NULL;
}

/* ---- What it leaves -------------------------------------------------------------------------- */

/* As many rows as in any other block. */
static struct ir_value *whole_block(struct blocks *b, struct batch *batch, struct ir_value *rows)
{
    if (b->even)
        return rows;
    if (!b->places) {
        struct ir_value *bounds[] = {batch_number(batch, 0), b->size, batch_number(batch, 1)};
        struct ir_op *range = batch_make(batch, NULL, IR_OP_Range, 3, bounds);
        struct ir_value *last = batch_binary(batch, IR_OP_Sub, b->length, batch_number(batch, 1));
        b->places = range ? batch_binary(batch, IR_OP_Min, &range->results[0], last) : NULL;
    }
    return batch_binary(batch, IR_OP_Gather, rows, b->places);
}

/* What the body returns; false when something has no form. */
static bool set_returns(struct blocks *b, struct batch *batch, struct ir_value **results)
{
    const struct loop *loop = &b->s->loop;
    struct ir_op *ret = ir_block_return(b->body);
    struct ir_value *truth = NULL;
    tssa_status *status = loop_make_bool(ret, true, &truth);
    if (status) {
        tssa_status_free(status);
        return batch_out_of_memory(batch);
    }
    ir_op_set_operand(ret, 0, truth);
    for (uint32_t i = 0; i < loop->op->n_results; i++) {
        struct ir_value *value = results[i];
        if (i < loop->n_carried && value->type != b->body->params[i + 2]->type)
            return batch_refuse(batch, loop->op, "what it carries is of another type in blocks");
        if (i >= loop->n_carried && (value->type->kind != TYPE_TENSOR || value->type->rank < 1 ||
                                     value->type->rank >= TSSA_MAX_RANK))
            return batch_refuse(batch, loop->op, "what it stacks has too many axes");
        if (i >= loop->n_carried)
            value = whole_block(b, batch, value);
        if (!value)
            return batch_refuse(batch, loop->op, "what it leaves has no form for blocks");
        ir_op_set_operand(ret, i + 1, value);
    }
    return true;
}

/* The shape [blocks * iterations, ...] of rows that are stacked in blocks. */
static struct ir_value *flat_shape(struct blocks *b, struct ir_value *stack, bool *zeros)
{
    int64_t dims[TSSA_MAX_RANK] = {-1};
    const struct ir_type *type = stack->type;
    bool known = true;
    for (int i = 2; i < type->rank; i++)
        known = known && dim_is_const(type->dims[i], &dims[i - 1]) && dims[i - 1] > 0;
    *zeros = !known;
    if (known)
        return batch_ints(b->batch, 1, (size_t)type->rank - 1, dims);
    struct ir_value *rows = batch_binary(b->batch, IR_OP_Mul, b->count, b->size);
    struct ir_op *shape = batch_new(b->batch, NULL, IR_OP_Shape, 1, &stack);
    if (!shape || !batch_set_int(b->batch, shape, "start", 2) || !batch_put(b->batch, shape))
        return NULL;
    struct ir_value *parts[] = {batch_unsqueeze(b->batch, NULL, rows, 0, 1), &shape->results[0]};
    return batch_concat(b->batch, NULL, 0, 2, parts);
}

/* Behind the Loop: rows in blocks as rows, as many as there are iterations. */
static struct ir_value *flatten(struct blocks *b, struct ir_value *stack)
{
    bool zeros;
    struct batch *batch = b->batch;
    struct ir_value *operands[] = {stack, flat_shape(b, stack, &zeros)};
    struct ir_op *flat = batch_new(batch, NULL, IR_OP_Reshape, 2, operands);
    if (!flat || (zeros && !batch_set_int(batch, flat, "allowzero", 1)) || !batch_put(batch, flat))
        return NULL;
    static const int64_t zero = 0;
    struct ir_value *from = batch_ints(batch, 1, 1, &zero);
    struct ir_value *slice[] = {&flat->results[0], from,
                                batch_unsqueeze(batch, NULL, b->trips, 0, 1), from};
    if (b->even)
        return &flat->results[0];
    struct ir_op *cut = batch_make(batch, NULL, IR_OP_Slice, 4, slice);
    return cut ? &cut->results[0] : NULL;
}

static bool make_results(struct blocks *b, struct ir_value **results)
{
    if (!batch_infer(b->batch, b->op))
        return false;
    for (uint32_t i = 0; i < b->op->n_results; i++) {
        struct ir_value *value = &b->op->results[i];
        if (i < b->s->loop.n_carried && value->type != b->s->loop.op->results[i].type)
            return batch_refuse(b->batch, b->op, "what it carries is of another type in blocks");
        results[i] = i < b->s->loop.n_carried ? value : flatten(b, value);
        if (!results[i])
            return batch_refuse(b->batch, b->s->loop.op, "what it leaves has no form for blocks");
    }
    return true;
}

/* ---- All ------------------------------------------------------------------------------------- */

static tssa_status *compute_block(struct blocks *b, struct ir_value **results, bool *done)
{
    struct batch batch;
    TRY(make_frame(b));
    TRY(begin_block(b, &batch));
    TRY(b->s->compute(b->s->user, b->body, &batch, results, done));
    *done = *done && set_returns(b, &batch, results);
    b->batch->blamed = batch.blamed;
    b->batch->blamed_value = batch.blamed_value;
    b->batch->reason = batch.reason;
    return batch.status;
}

tssa_status *strip_mine(const struct strip *strip, struct batch *batch,
                        const struct block_size *size, struct ir_value **results, bool *done)
{
    struct blocks b = {.s = strip, .batch = batch, .trips = batch->trips};
    *done = set_size(&b, size) ||
            batch_refuse(batch, strip->loop.op, "only a run tells how much an iteration takes");
    if (*done)
        TRY(compute_block(&b, results, done));
    *done = *done && make_results(&b, results);
    return batch->status;
}
