/* SPDX-License-Identifier: Apache-2.0 */
/* Makes iterations of loops that differ in addresses alone; see repeat.h. */
#include "runtime/repeat.h"

#include <string.h>

/* Fewer are not worth four iterations' setting up. */
#define FEWEST 8

/* An integer, as the iteration has it. */
struct cell {
    int64_t element; /* of the type that it has */
    int64_t value, step;
    bool is_read; /* by what is computed, not only when calls are set up */
};

/* A call in iterations of one parity, or in all. */
struct prepared {
    struct kernel_call *call;
    int64_t *moves; /* of its addresses, from one such iteration to the next */
};

/* Where a result lies for which the plan has no place: in the pool. */
struct held {
    bool is_held; /* else it has a place */
    void *data;
    size_t size;
    struct buffer *buffer; /* NULL: it is somebody else's */
};

/* A row that is stacked. */
struct row {
    struct value value;
    int64_t move;
};

struct repetition {
    struct run *run;
    const struct repeat_loop *loop;
    const struct repeat *repeat;
    const struct block_plan *body;
    int64_t first, end;
    char *memory;               /* what is left of the tables */
    struct cell *cells;         /* per number */
    struct prepared *calls;     /* per parity and call */
    struct held *held;          /* per parity and result of calls */
    struct kernel_call *spare;  /* of the last iterations */
    struct row *rows;           /* per parity and stack */
    struct value *after;        /* per parity and carried value: after the iteration */
    const struct value *before; /* of the iteration that is set up, per carried value */
    uint32_t turns;             /* how often places have changed */
};

/* ---- Tables ---------------------------------------------------------------------------------- */

static void *carve(struct repetition *r, size_t count, size_t size)
{
    void *memory = r->memory;
    r->memory += repeat_aligned(count * size);
    return memory;
}

static void make_tables(struct repetition *r)
{
    const struct repeat *repeat = r->repeat;
    r->cells = carve(r, repeat->n_numbers, sizeof *r->cells);
    r->calls = carve(r, (size_t)repeat->period * repeat->n_calls, sizeof *r->calls);
    r->rows = carve(r, (size_t)repeat->period * r->loop->n_stacked, sizeof *r->rows);
    r->after = carve(r, (size_t)repeat->period * r->loop->n_carried, sizeof *r->after);
    r->held = carve(r, (size_t)repeat->period * repeat->n_results, sizeof *r->held);
    memset(r->held, 0, (size_t)repeat->period * repeat->n_results * sizeof *r->held);
    r->spare = carve(r, 1, repeat->most_bytes);
    for (uint32_t i = 0; i < repeat->period * repeat->n_calls; i++)
        r->calls[i].call = carve(r, 1, repeat->calls[i % repeat->n_calls].step->kernel->call_size);
}

/* Bytes of all tables. */
static size_t table_bytes(const struct repeat *repeat, const struct repeat_loop *loop)
{
    const size_t period = repeat->period;
    return repeat_aligned(repeat->n_numbers * sizeof(struct cell)) +
           repeat_aligned(period * repeat->n_calls * sizeof(struct prepared)) +
           repeat_aligned(period * loop->n_stacked * sizeof(struct row)) +
           repeat_aligned(period * loop->n_carried * sizeof(struct value)) +
           repeat_aligned(period * repeat->n_results * sizeof(struct held)) + repeat->most_bytes +
           period * repeat->call_bytes;
}

/* ---- Numbers --------------------------------------------------------------------------------- */

struct iteration {
    const struct repetition *r;
    int64_t number;
};

static bool look_up(void *context, const struct dim *symbol, int64_t *value)
{
    const struct iteration *at = context;
    const struct run *run = at->r->run;
    if (symbol == at->r->repeat->counter) {
        *value = at->number;
        return true;
    }
    const int index = plan_symbol(run->plan, symbol);
    *value = index < 0 ? -1 : run->symbols[index];
    return *value >= 0;
}

static bool bind_numbers(struct repetition *r, int64_t iteration)
{
    struct iteration at = {r, iteration}, next = {r, iteration + 1};
    for (uint32_t i = 0; i < r->repeat->n_numbers; i++) {
        const struct repeat_number *number = &r->repeat->numbers[i];
        struct cell *cell = &r->cells[i];
        int64_t after;
        if (!dim_eval(number->dim, look_up, &at, &cell->value) ||
            !dim_eval(number->dim, look_up, &next, &after))
            return false;
        cell->step = after - cell->value;
        dtype_store_int64(number->dtype, &cell->element, cell->value);
        r->run->slots[number->slot] = (struct value){
            .kind = TSSA_KIND_TENSOR,
            .tensor = {
                .dtype = number->dtype, .rank = number->rank, .dims = {1}, .data = &cell->element}};
    }
    return true;
}

static void next_numbers(struct repetition *r)
{
    for (uint32_t i = 0; i < r->repeat->n_numbers; i++) {
        struct cell *cell = &r->cells[i];
        cell->value += cell->step;
        if (cell->is_read)
            dtype_store_int64(r->repeat->numbers[i].dtype, &cell->element, cell->value);
    }
}

/* ---- Setting up ------------------------------------------------------------------------------ */

/* The carried value that the result is in the next iteration, in memory that is nobody else's;
 * NULL: there is none. */
static const struct tensor *replaced(const struct repetition *r, const struct value *result)
{
    for (uint32_t k = 0; k < r->loop->n_carried; k++) {
        const struct value *carried = &r->loop->carried[k];
        if (result == &r->run->slots[r->body->returns[k + 1].slot] &&
            carried->kind == TSSA_KIND_TENSOR && carried->tensor.owner &&
            atomic_load_explicit(&carried->tensor.owner->references, memory_order_acquire) == 1)
            return &carried->tensor;
    }
    return NULL;
}

/* What the first iteration has in the pool, the second one has there as well: what is carried where
 * the value lay before both, all else in the same place. */
static void share_held(struct repetition *r, const struct kernel_args *args, struct held *held)
{
    for (uint32_t i = 0; i < args->n_outputs; i++) {
        const struct held *first = &held[i] - r->repeat->n_results;
        if (!first->buffer)
            continue;
        const struct tensor *before = replaced(r, args->outputs[i]);
        held[i] = (struct held){true, before ? before->data : first->data,
                                before ? tensor_bytes(before) : first->size, NULL};
    }
}

static void swap_places(struct run *run, const struct step *step, struct held *held)
{
    for (uint32_t i = 0; i < step->n_outputs; i++) {
        struct kernel_place *place = &run->places[step->first_output + i];
        if (!held[i].is_held)
            continue;
        const struct kernel_place old = *place;
        place->data = held[i].data;
        place->size = held[i].size;
        held[i].data = old.data;
        held[i].size = old.size;
    }
}

/* False: what had to lie where it lay before does not. */
static bool hold_pooled(struct kernel_args *args, struct held *held)
{
    bool good = true;
    for (uint32_t i = 0; i < args->n_outputs; i++) {
        struct value *out = args->outputs[i];
        if (out->kind != TSSA_KIND_TENSOR || !out->tensor.owner)
            continue;
        good &= !held[i].is_held;
        if (held[i].is_held) {
            value_release(out);
            continue;
        }
        held[i] =
            (struct held){true, out->tensor.data, tensor_bytes(&out->tensor), out->tensor.owner};
        out->tensor.owner = NULL;
    }
    return good;
}

static bool set_up(struct repetition *r, uint32_t index, uint32_t parity, bool first,
                   struct kernel_call *call)
{
    const struct repeat_call *c = &r->repeat->calls[index];
    struct kernel_args args = executor_args(r->run, &r->run->env, c->step);
    struct held *held = r->held + parity * r->repeat->n_results + c->first_result;
    if (!c->makes)
        return c->step->kernel->set_up(&args, c->known, call);
    if (first && parity)
        share_held(r, &args, held);
    swap_places(r->run, c->step, held);
    const bool good = c->step->kernel->set_up(&args, c->known, call);
    swap_places(r->run, c->step, held);
    return hold_pooled(&args, held) && good;
}

/* How far the addresses of one iteration are from those of another one, for each of the iterations
 * between them. False: something else differs. */
static bool find_moves(const struct kernel_call *from, const struct kernel_call *to, int64_t count,
                       int64_t *moves)
{
    if (from->n_data != to->n_data || from->make != to->make ||
        (from->is_same && !from->is_same(from, to)))
        return false;
    for (uint32_t k = 0; k < from->n_data; k++) {
        const int64_t way = (int64_t)((uintptr_t)to->data[k] - (uintptr_t)from->data[k]);
        if (way % count)
            return false;
        moves[k] = way / count;
    }
    return true;
}

/* Moves of all the calls' addresses, which are known by number once they are set up. */
static bool make_moves(struct repetition *r, struct buffer **buffer)
{
    const uint32_t n = r->repeat->period * r->repeat->n_calls;
    size_t count = 0;
    for (uint32_t i = 0; i < n; i++)
        count += r->calls[i].call->n_data;
    struct run *run = r->run;
    *buffer = scratch_take(run->scratch + r->loop->step->index, r->loop->scratch, &run->pool,
                           (count + 1) * sizeof(int64_t));
    if (!*buffer)
        return false;
    int64_t *moves = (*buffer)->data;
    for (uint32_t i = 0; i < n; i++) {
        r->calls[i].moves = moves;
        moves += r->calls[i].call->n_data;
    }
    return true;
}

static void bind_carried(struct repetition *r)
{
    for (uint32_t k = 0; k < r->loop->n_carried; k++)
        if (r->body->params[k + 2] != SLOT_NONE)
            r->run->slots[r->body->params[k + 2]] = r->before[k];
}

/* What an iteration of this parity leaves. Nothing is counted: who owns memory stays its owner. */
static void take_carried(struct repetition *r, uint32_t parity)
{
    struct value *after = r->after + (size_t)parity * r->loop->n_carried;
    for (uint32_t k = 0; k < r->loop->n_carried; k++)
        after[k] = r->run->slots[r->body->returns[k + 1].slot];
    r->before = after;
}

static const struct value *row_of(const struct repetition *r, uint32_t i)
{
    return &r->run->slots[r->body->returns[r->loop->n_carried + 1 + i].slot];
}

/* Sets up an iteration: as the first one of its parity, or, `count` such iterations later, as the
 * last one. */
static bool set_up_iteration(struct repetition *r, int64_t iteration, uint32_t parity,
                             int64_t count)
{
    struct prepared *calls = r->calls + (size_t)parity * r->repeat->n_calls;
    struct row *rows = r->rows + (size_t)parity * r->loop->n_stacked;
    if (!bind_numbers(r, iteration))
        return false;
    bind_carried(r);
    for (uint32_t i = 0; i < r->repeat->n_calls; i++) {
        struct kernel_call *call = count ? r->spare : calls[i].call;
        if (!set_up(r, i, parity, !count, call) ||
            (count && !find_moves(calls[i].call, call, count, calls[i].moves)))
            return false;
    }
    for (uint32_t i = 0; i < r->loop->n_stacked; i++) {
        const struct value *row = row_of(r, i);
        if (row->kind != TSSA_KIND_TENSOR)
            return false;
        if (!count)
            rows[i].value = *row;
        else
            rows[i].move =
                (int64_t)((uintptr_t)row->tensor.data - (uintptr_t)rows[i].value.tensor.data) /
                count;
    }
    take_carried(r, parity);
    slab_take_turns(r->run, r->loop->step);
    r->turns++;
    return true;
}

static bool same_memory(const struct value *a, const struct value *b)
{
    return a->kind == TSSA_KIND_TENSOR && b->kind == TSSA_KIND_TENSOR &&
           a->tensor.data == b->tensor.data;
}

/* After as many iterations as take turns, does everything lie where it lay before them? */
static bool comes_round(const struct repetition *r)
{
    for (uint32_t k = 0; k < r->loop->n_carried; k++)
        if (!same_memory(&r->before[k], &r->loop->carried[k]))
            return false;
    return true;
}

static void find_read_numbers(struct repetition *r, const char *address)
{
    for (uint32_t i = 0; i < r->repeat->n_numbers; i++)
        r->cells[i].is_read |= address == (const char *)&r->cells[i].element;
}

static void find_read(struct repetition *r)
{
    for (uint32_t i = 0; i < r->repeat->n_numbers; i++)
        r->cells[i].is_read = false;
    for (uint32_t i = 0; i < r->repeat->n_calls; i++)
        for (uint32_t k = 0; k < r->calls[i].call->n_data; k++)
            find_read_numbers(r, r->calls[i].call->data[k]);
    for (uint32_t i = 0; i < r->loop->n_stacked; i++)
        find_read_numbers(r, r->rows[i].value.tensor.data);
}

/* The first iterations and the last ones. */
static bool rehearse(struct repetition *r, struct buffer **moves)
{
    const int64_t period = r->repeat->period;
    bool good = true;
    r->before = r->loop->carried;
    for (uint32_t parity = 0; good && parity < period; parity++)
        good = set_up_iteration(r, r->first + parity, parity, 0);
    good = good && comes_round(r) && make_moves(r, moves);
    for (uint32_t parity = 0; good && parity < period; parity++) {
        const int64_t count = (r->end - 1 - r->first - parity) / period;
        good = set_up_iteration(r, r->first + parity + count * period, parity, count);
    }
    good = good && comes_round(r) && bind_numbers(r, r->first);
    if (good)
        find_read(r);
    else if (r->turns % 2)
        slab_take_turns(r->run, r->loop->step);
    return good;
}

/* ---- Making ---------------------------------------------------------------------------------- */

static void make_profiled(struct run *run, const struct step *step, struct kernel_call *call)
{
    struct step_profile *profile = &run->profile[step->index];
    const uint64_t start = executor_now();
    if (call->make)
        call->make(call);
    profile->started = start;
    profile->nanoseconds += executor_now() - start;
    profile->count++;
}

static inline void move(const struct prepared *p)
{
    for (uint32_t k = 0; k < p->call->n_data; k++)
        p->call->data[k] += p->moves[k];
}

static tssa_status *push_rows(struct repetition *r, uint32_t parity)
{
    struct row *row = r->rows + (size_t)parity * r->loop->n_stacked;
    for (uint32_t i = 0; i < r->loop->n_stacked; i++, row++) {
        TRY(stack_push(&r->loop->stacks[i], &row->value, r->end));
        row->value.tensor.data = (char *)row->value.tensor.data + row->move;
    }
    return NULL;
}

static tssa_status *make_iteration(struct repetition *r, uint32_t parity)
{
    const struct prepared *calls = r->calls + (size_t)parity * r->repeat->n_calls;
    TRY(executor_check_stop(r->run));
    for (uint32_t i = 0; i < r->repeat->n_calls; i++) {
        if (r->run->profile)
            make_profiled(r->run, r->repeat->calls[i].step, calls[i].call);
        else if (calls[i].call->make)
            calls[i].call->make(calls[i].call);
        move(&calls[i]);
    }
    TRY(push_rows(r, parity));
    next_numbers(r);
    return NULL;
}

/* What lies in the pool counts its owners again. */
static void own_held(const struct repetition *r, struct tensor *tensor)
{
    for (uint32_t i = 0; i < r->repeat->period * r->repeat->n_results; i++)
        if (r->held[i].buffer && r->held[i].data == tensor->data) {
            tensor->owner = r->held[i].buffer;
            buffer_retain(tensor->owner);
            return;
        }
}

/* What is carried lies where the last iteration has left it. */
static void leave_carried(struct repetition *r, uint32_t parity)
{
    const struct value *after = r->after + (size_t)parity * r->loop->n_carried;
    for (uint32_t k = 0; k < r->loop->n_carried; k++) {
        struct value *carried = &r->loop->carried[k];
        if (same_memory(carried, &after[k]))
            continue;
        value_release(carried);
        *carried = after[k];
        own_held(r, &carried->tensor);
    }
}

static tssa_status *make_all(struct repetition *r)
{
    const uint32_t period = r->repeat->period;
    uint32_t parity = 0, last = 0;
    for (int64_t i = r->first; i < r->end; i++) {
        TRY(make_iteration(r, parity));
        last = parity;
        parity = parity + 1 == period ? 0 : parity + 1;
    }
    leave_carried(r, last);
    if (parity)
        slab_take_turns(r->run, r->loop->step);
    r->run->repeated += (uint64_t)(r->end - r->first);
    return NULL;
}

/* What slots of the body hold owns nothing. */
static void clean_up(struct repetition *r)
{
    struct run *run = r->run;
    for (uint32_t i = 0; i < r->repeat->period * r->repeat->n_results; i++)
        buffer_release(r->held[i].buffer);
    for (uint32_t i = 0; i < r->repeat->n_numbers; i++)
        run->slots[r->repeat->numbers[i].slot].kind = TSSA_KIND_NONE;
    for (uint32_t k = 0; k < r->loop->n_carried; k++)
        if (r->body->params[k + 2] != SLOT_NONE)
            run->slots[r->body->params[k + 2]].kind = TSSA_KIND_NONE;
    for (uint32_t i = 0; i < r->repeat->n_calls; i++) {
        const struct step *step = r->repeat->calls[i].step;
        for (uint32_t k = 0; k < step->n_outputs; k++)
            run->outputs[step->first_output + k]->kind = TSSA_KIND_NONE;
    }
}

tssa_status *repeat_run(struct run *run, const struct repeat_loop *loop, int64_t first, int64_t end,
                        bool *made)
{
    struct repetition r = {.run = run,
                           .loop = loop,
                           .repeat = loop->step->repeat,
                           .body = loop->step->blocks[0],
                           .first = first,
                           .end = end};
    *made = false;
    if (end - first < FEWEST || end > INT32_MAX || run->plan->poisoned)
        return NULL;
    struct buffer *moves = NULL;
    struct buffer *tables = scratch_take(run->scratch + loop->step->index, loop->scratch,
                                         &run->pool, table_bytes(r.repeat, loop));
    TRY_ALLOC(tables);
    r.memory = tables->data;
    make_tables(&r);
    *made = rehearse(&r, &moves);
    tssa_status *status = *made ? make_all(&r) : NULL;
    clean_up(&r);
    buffer_release(moves);
    buffer_release(tables);
    return status;
}
