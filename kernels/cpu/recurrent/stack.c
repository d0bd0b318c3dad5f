/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recurrent layers in a row, as one fuse op (ir/layers.h). A layer takes some steps at a time, and
 * the next layer takes those when they are there:
 *
 *     layer 0:   0  1  2  3
 *     layer 1:      0  1  2  3
 *     layer 2:         0  1  2  3
 *
 * so that each thread computes other layers, as a wavefront, where that takes less time than to
 * share every product of one layer. Else all threads compute one layer after the other, some steps
 * of each. Either way only some steps lie between two layers. The arithmetic is that of a layer by
 * itself, and so are the bits.
 */
#include <sched.h>
#include <stdatomic.h>

#include "ir/layers.h"
#include "kernels/cpu/recurrent/layer.h"

#define NOT_THERE UINT32_MAX
#define RESULTS 3 /* of a layer, at most */

/* A layer's op: what its operands and results are of the fuse op. */
struct member {
    const struct ir_op *op;
    const struct recurrent_state *state;
    uint32_t operands[RECURRENT_OPERANDS], results[RESULTS];
};

struct stack_state {
    uint32_t n;
    struct member members[LAYERS_MOST];
};

/* ---- Preparing ------------------------------------------------------------------------------- */

static uint32_t result_of(const struct ir_op *ret, const struct ir_value *value)
{
    for (uint32_t i = 0; i < ret->n_operands; i++)
        if (ir_operand(ret, i) == value)
            return i;
    return NOT_THERE;
}

static void find_member(const struct ir_op *op, struct member *member)
{
    const struct ir_op *ret = ir_block_return(op->parent);
    member->op = op;
    for (uint32_t i = 0; i < RECURRENT_OPERANDS; i++) {
        const struct ir_value *value = ir_operand(op, i);
        member->operands[i] = value && value->block ? value->index : NOT_THERE;
    }
    for (uint32_t i = 0; i < RESULTS; i++)
        member->results[i] = ir_result_wanted(op, i) ? result_of(ret, ir_result(op, i)) : NOT_THERE;
}

static tssa_status *prepare(const struct ir_op *op, const struct kernel_setup *setup,
                            const void **state)
{
    struct stack_state *own = ARENA_NEW(setup->arena, struct stack_state);
    struct layers found;
    TRY_ALLOC(own);
    if (!layers_find(op, &found))
        return ERROR(TSSA_INTERNAL, "these are no layers");
    *state = own;
    own->n = found.n;
    for (uint32_t i = 0; i < found.n; i++) {
        find_member(found.ops[i], &own->members[i]);
        TRY(recurrent_layer_prepare(found.ops[i], setup, &own->members[i].state));
    }
    return NULL;
}

/* ---- A run ----------------------------------------------------------------------------------- */

/* How far a layer has come, on a line of the cache of its own. */
struct progress {
    _Alignas(64) atomic_int_fast64_t taken, done; /* chunks */
};

/* Chunks between two layers: one is read while the next one is written. */
#define SLOTS 2

/* So often a thread looks for something to do, some 100 us, before another one may have the
 * processor: where others wait for it, it would be gone for milliseconds. */
#define PATIENCE 10000

struct stack {
    uint32_t n;
    struct recurrent_layer layers[LAYERS_MOST];
    struct tensor between[LAYERS_MOST]; /* Y of a layer, but of the last one: some steps of it */
    struct value handed[LAYERS_MOST];   /* the next layer's X: a shape */
    char *slots[LAYERS_MOST][SLOTS];    /* where Y of a chunk lies */
    bool is_wave;
    int64_t chunk, n_chunks;
    const struct team *team; /* that shares the work on a chunk */
    struct progress progress[LAYERS_MOST];
};

/* What a layer's op would be run with. */
struct member_args {
    struct kernel_args args;
    const struct value *inputs[RECURRENT_OPERANDS];
    struct value *outputs[RESULTS];
    struct kernel_place places[RESULTS];
};

static void find_args(const struct kernel_args *args, const struct member *member,
                      const struct value *x, struct member_args *own)
{
    *own = (struct member_args){.args = *args};
    for (uint32_t i = 0; i < RECURRENT_OPERANDS; i++)
        own->inputs[i] =
            member->operands[i] == NOT_THERE ? NULL : args->inputs[member->operands[i]];
    for (uint32_t i = 0; i < RESULTS; i++) {
        const uint32_t result = member->results[i];
        own->outputs[i] = result == NOT_THERE ? NULL : args->outputs[result];
        if (own->outputs[i] && args->places)
            own->places[i] = args->places[result];
    }
    if (x)
        own->inputs[RECURRENT_X] = x;
    own->args.op = member->op;
    own->args.inputs = own->inputs;
    own->args.outputs = own->outputs;
    own->args.n_inputs = RECURRENT_OPERANDS;
    own->args.n_outputs = RESULTS;
    own->args.places = args->places ? own->places : NULL;
}

static tssa_status *open_layer(struct kernel_args *args, struct stack *s, uint32_t i)
{
    const struct stack_state *state = args->state;
    struct recurrent_layer *layer = &s->layers[i];
    struct recurrent *r = &layer->r;
    struct member_args own;
    find_args(args, &state->members[i], i ? &s->handed[i - 1] : NULL, &own);
    TRY(recurrent_layer_open(&own.args, state->members[i].state, layer));
    if (layer->operands[RECURRENT_X]->dtype != r->dtype)
        return ERROR(TSSA_RUNTIME, "X is neither FLOAT nor DOUBLE");
    TRY(recurrent_layer_results(&own.args, layer));
    if (i + 1 == s->n)
        return NULL;
    s->between[i] = (struct tensor){.dtype = r->dtype};
    r->y = &s->between[i];
    s->handed[i].kind = TSSA_KIND_TENSOR;
    s->handed[i].tensor =
        (struct tensor){.dtype = r->dtype, .rank = 3, .dims = {r->steps, r->batch, r->hidden}};
    return NULL;
}

/* ---- How it is run --------------------------------------------------------------------------- */

/* Fewer products of a layer, in all, take no longer than the threads need to meet: of 48 states and
 * ten steps, say. */
#define LEAST_PRODUCTS 262144.0
#define TILE_ROWS 6 /* recurrent_steps.h */
#define MOST_CHUNKS 16

/* Steps of a chunk of a wavefront: few, so that threads do not wait long for the first ones, and
 * for the last; but whole tiles of rows are multiplied. */
static int64_t wave_chunk(const struct recurrent *r)
{
    const int64_t tile = r->batch > 0 ? 1 + (TILE_ROWS - 1) / r->batch : 1;
    const int64_t chunk = r->steps / MOST_CHUNKS / tile * tile;
    const int64_t most = chunk > tile ? chunk : tile;
    return most < r->steps ? most : r->steps;
}

/* Of as many steps each as there may be, and all of about as many. */
static void choose_chunks(struct stack *s)
{
    const struct recurrent *r = &s->layers[0].r;
    int64_t chunk = s->is_wave ? wave_chunk(r) : r->steps;
    for (uint32_t i = 0; i < s->n; i++) {
        const int64_t most =
            recurrent_choose_chunk(&s->layers[i].r, RECURRENT_CHUNK / (s->is_wave ? s->n : 1));
        chunk = most < chunk ? most : chunk;
    }
    s->n_chunks = r->batch > 0 && r->steps > 0 ? 1 + (r->steps - 1) / chunk : 0;
    s->chunk = s->n_chunks ? 1 + (r->steps - 1) / s->n_chunks : 0;
    for (uint32_t i = 0; i < s->n; i++)
        s->layers[i].r.chunk = s->chunk;
}

/* Has each thread enough to do, of layers whose products threads do not share anyway? */
static bool suits_threads(const struct stack *s, const struct team *team)
{
    double products = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        const struct recurrent *r = &s->layers[i].r;
        if (recurrent_shares_steps(r, team))
            return false;
        products +=
            (double)r->width * (double)(r->input + r->hidden) * (double)r->steps * (double)r->batch;
    }
    return products >= LEAST_PRODUCTS * s->n;
}

/* What a step of so many sequences takes one thread, by a step of one: measured for 48 to 128
 * states (bench/results/2026-11-28-recurrent-stacks.md). */
static double time_of_rows(int64_t rows)
{
    return rows < 3 ? (double)rows : 0.8 * (double)rows;
}

/* Smaller products with inputs, and what threads wait for each other. */
#define WAVE_TAKES_MORE 1.08

/* Does a wavefront of these chunks take less time than sequences that the threads have of each
 * layer? */
static bool is_faster(const struct stack *s, const struct team *team)
{
    const int64_t batch = s->layers[0].r.batch;
    const double chunks = (double)s->n_chunks, threads = team->threads;
    const double busy = s->n * chunks / threads, longest = chunks + s->n - 1;
    const double wave = (busy > longest ? busy : longest) / chunks * time_of_rows(batch);
    return wave * WAVE_TAKES_MORE < s->n * time_of_rows(1 + (batch - 1) / team->threads);
}

static void choose_way(struct stack *s, const struct team *team)
{
    s->is_wave = team && team->parallel_for && team->threads > 1 && suits_threads(s, team);
    choose_chunks(s);
    if (s->is_wave && !is_faster(s, team)) {
        s->is_wave = false;
        choose_chunks(s);
    }
    s->team = s->is_wave ? NULL : team;
}

/* Elements of the states of a chunk, of any layer. */
static bool slot_count(const struct stack *s, int64_t *count)
{
    int64_t hidden = 0;
    for (uint32_t i = 0; i < s->n; i++)
        hidden = s->layers[i].r.hidden > hidden ? s->layers[i].r.hidden : hidden;
    return i64_mul(s->layers[0].r.batch, hidden, count) && i64_mul(*count, s->chunk, count);
}

/* Of a wavefront each layer has some, in turn; else only one is read and one written at a time. */
static bool carve_slots(struct stack *s, struct carver *carver)
{
    int64_t count;
    if (!slot_count(s, &count))
        return false;
    for (uint32_t i = 0; i + 1 < s->n; i++)
        for (uint32_t k = 0; k < SLOTS; k++)
            s->slots[i][k] =
                s->is_wave || (i < 2 && k == 0) ? carve(carver, (size_t)count) : s->slots[i % 2][0];
    return carver->fits;
}

/* The same of gates. */
static bool carve_gates(struct stack *s, struct carver *carver)
{
    struct recurrent *largest = &s->layers[0].r;
    for (uint32_t i = 0; i < s->n; i++) {
        struct recurrent *r = &s->layers[i].r;
        largest = r->parts.pitch > largest->parts.pitch ? r : largest;
        if (s->is_wave && !recurrent_carve_gates(r, carver))
            return false;
    }
    if (!s->is_wave && !recurrent_carve_gates(largest, carver))
        return false;
    for (uint32_t i = 0; i < s->n && !s->is_wave; i++)
        s->layers[i].r.gates = largest->gates;
    return true;
}

static bool carve_all(struct stack *s, struct carver *carver)
{
    carver->used = 0;
    for (uint32_t i = 0; i < s->n; i++)
        if (!recurrent_layer_carve(&s->layers[i], carver))
            return false;
    return carve_gates(s, carver) && carve_slots(s, carver);
}

/* ---- Chunks ---------------------------------------------------------------------------------- */

static void run_chunk(struct stack *s, uint32_t i, int64_t chunk)
{
    struct recurrent *r = &s->layers[i].r;
    r->first = chunk * s->chunk;
    r->chunk = r->steps - r->first < s->chunk ? r->steps - r->first : s->chunk;
    if (i) {
        r->x = s->slots[i - 1][chunk % SLOTS];
        r->x_first = r->first;
    }
    if (i + 1 < s->n) {
        s->between[i].data = s->slots[i][chunk % SLOTS];
        r->y_first = r->first;
    }
    recurrent_chunk(r, s->team);
}

static int64_t chunks_of(const atomic_int_fast64_t *count)
{
    return atomic_load_explicit(count, memory_order_acquire);
}

/* Is there what the layer's chunk needs, and room for what it gives the next layer? */
static bool is_ready(const struct stack *s, uint32_t i, int64_t chunk)
{
    return chunks_of(&s->progress[i].done) == chunk &&
           (i == 0 || chunks_of(&s->progress[i - 1].done) > chunk) &&
           (i + 1 == s->n || chunks_of(&s->progress[i + 1].done) + SLOTS > chunk);
}

/* A chunk that may be computed: of several, that on the first diagonal. */
struct ready {
    uint32_t layer; /* s->n: there is none now, */
    int64_t chunk;
    bool any_left; /* but there will be */
};

static struct ready find_ready(const struct stack *s)
{
    struct ready found = {.layer = s->n};
    for (uint32_t i = 0; i < s->n; i++) {
        const int64_t chunk = chunks_of(&s->progress[i].taken);
        if (chunk == s->n_chunks)
            continue;
        found.any_left = true;
        if (is_ready(s, i, chunk) &&
            (found.layer == s->n || chunk + i < found.chunk + found.layer)) {
            found.layer = i;
            found.chunk = chunk;
        }
    }
    return found;
}

/* Others may take it first. */
static bool take(struct stack *s, struct ready ready)
{
    int_fast64_t chunk = ready.chunk;
    return atomic_compare_exchange_strong_explicit(&s->progress[ready.layer].taken, &chunk,
                                                   chunk + 1, memory_order_acq_rel,
                                                   memory_order_relaxed);
}

/* Computes what is ready, until all is taken. It waits only while another thread is at work, to
 * which it leaves its processor in the end: one thread alone gets through. */
static void run_ready(struct stack *s)
{
    int turns = 0;
    for (struct ready ready = find_ready(s); ready.any_left; ready = find_ready(s)) {
        if (ready.layer == s->n) {
            if (++turns % PATIENCE == 0)
                sched_yield();
        } else if (take(s, ready)) {
            run_chunk(s, ready.layer, ready.chunk);
            atomic_store_explicit(&s->progress[ready.layer].done, ready.chunk + 1,
                                  memory_order_release);
        }
    }
}

static void run_wave(void *context, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++)
        run_ready(context);
}

static void run_all(struct stack *s, const struct team *team)
{
    const int64_t threads = team ? team->threads : 1;
    if (s->is_wave) {
        team_for(team, s->n < threads ? s->n : threads, 1, run_wave, s);
        return;
    }
    for (int64_t chunk = 0; chunk < s->n_chunks; chunk++)
        for (uint32_t i = 0; i < s->n; i++)
            run_chunk(s, i, chunk);
}

static void begin(struct stack *s, int64_t *lengths)
{
    for (int64_t i = 0; i < s->layers[0].r.batch; i++)
        lengths[i] = s->layers[0].r.steps;
    for (uint32_t i = 0; i < s->n; i++) {
        s->layers[i].r.lengths = lengths;
        recurrent_layer_begin(&s->layers[i]);
        atomic_init(&s->progress[i].taken, 0);
        atomic_init(&s->progress[i].done, 0);
    }
}

static tssa_status *open_all(struct kernel_args *args, struct stack *s)
{
    const struct stack_state *state = args->state;
    s->n = state->n;
    for (uint32_t i = 0; i < s->n; i++)
        TRY(ir_op_blame(open_layer(args, s, i), state->members[i].op));
    choose_way(s, args->env->team);
    return NULL;
}

static tssa_status *run(struct kernel_args *args)
{
    struct buffer *lengths = NULL, *buffer = NULL;
    struct stack s;
    tssa_status *status;
    TRY(open_all(args, &s));
    const struct recurrent *r = &s.layers[0].r;
    struct carver carver = {.size = tssa_dtype_size(r->dtype), .fits = true};
    if (!carve_all(&s, &carver))
        return ERROR(TSSA_RUNTIME, "the states are larger than memory can be");
    TRY_GOTO(status, kernel_scratch(args, carver.used, &buffer), done);
    TRY_GOTO(status, kernel_scratch(args, (size_t)r->batch * sizeof(int64_t), &lengths), done);
    carver.memory = buffer->data;
    carve_all(&s, &carver);
    begin(&s, lengths->data);
    run_all(&s, args->env->team);
    for (uint32_t i = 0; i < s.n; i++)
        recurrent_layer_end(&s.layers[i]);
done:
    buffer_release(buffer);
    buffer_release(lengths);
    return status;
}

const struct kernel cpu_kernel_layers = {.prepare = prepare, .run = run};
