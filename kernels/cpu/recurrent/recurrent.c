/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RNN, GRU and LSTM (ai.onnx 1 to 22): their operands and results. DOUBLE is computed in double,
 * all else in float, states included, and rounded once on output.
 *
 * A run goes through the sequence in chunks of steps. For each chunk the products of the inputs
 * with W are made at once, in parallel over rows; then the sequences of the batch take their steps,
 * in each direction and several at a time, in parallel too. Weights are packed for that: once,
 * where they are constants.
 */
#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "ir/fuse.h"
#include "ir/promotion.h"
#include "kernels/cpu/lib/convert.h"
#include "kernels/cpu/lib/strided.h"
#include "kernels/cpu/recurrent/layer.h"

/* ---- Weights --------------------------------------------------------------------------------- */

static void parts_init(const struct recurrent_cell *cell, int64_t hidden, tssa_dtype dtype,
                       struct recurrent_parts *parts)
{
    const int64_t lanes = (int64_t)(RECURRENT_LANES / tssa_dtype_size(dtype));
    *parts = (struct recurrent_parts){.n = 1, .gates = {cell->gates * hidden, hidden}};
    if (cell->kind == RECURRENT_GRU) {
        parts->n = 2;
        parts->gates[0] = 2 * hidden;
    }
    for (int i = 0; i < parts->n; i++) {
        parts->columns[i] = (parts->gates[i] + lanes - 1) / lanes * lanes;
        parts->from[i] = parts->pitch;
        parts->pitch += parts->columns[i];
    }
}

/* Columns of a panel, `pitch` of them, from rows of the operand's. */
static void pack_panel(tssa_dtype from_dtype, const char *from, tssa_dtype dtype, int64_t columns,
                       int64_t depth, int64_t pitch, char *to)
{
    const size_t size = tssa_dtype_size(dtype), own = tssa_dtype_size(from_dtype);
    if (columns < pitch)
        memset(to, 0, (size_t)(depth * pitch) * size);
    if (from_dtype == dtype) {
        struct strided_box box = {.rank = 0};
        strided_push(&box, depth, pitch, 1);
        strided_push(&box, columns, 1, depth);
        strided_copy(NULL, size, &box, to, from);
        return;
    }
    for (int64_t i = 0; i < columns; i++)
        convert_elements(depth, from_dtype, from + (size_t)(i * depth) * own, 1, dtype,
                         to + (size_t)i * size, pitch, &convert_default);
}

/* [direction][gates][depth] to what struct recurrent_parts says. */
static void pack(const struct tensor *tensor, const struct recurrent_parts *parts, tssa_dtype dtype,
                 char *to)
{
    const int64_t depth = tensor->dims[2];
    const size_t size = tssa_dtype_size(dtype), own = tssa_dtype_size(tensor->dtype);
    const int64_t panel = recurrent_panel() / (int64_t)size;
    const char *from = tensor->data;
    for (int64_t part = 0; part < tensor->dims[0] * parts->n; part++) {
        const int64_t gates = parts->gates[part % parts->n];
        const int64_t columns = parts->columns[part % parts->n];
        for (int64_t at = 0, pitch; at < columns; at += pitch) {
            pitch = columns - at < panel ? columns - at : panel;
            pack_panel(tensor->dtype, from + (size_t)(at * depth) * own, dtype,
                       gates - at < pitch ? gates - at : pitch, depth, pitch, to);
            to += (size_t)(pitch * depth) * size;
        }
        from += (size_t)(gates * depth) * own;
    }
}

/* Elements of what `pack` makes of a tensor; false: too many. */
static bool packed_count(const struct tensor *tensor, const struct recurrent_parts *parts,
                         int64_t *count)
{
    return i64_mul(tensor->dims[0], parts->pitch, count) && i64_mul(*count, tensor->dims[2], count);
}

/* The operand of the op, or of the fuse op around it, if it is a constant; else NULL. */
static const struct tensor *constant_operand(const struct ir_op *op, uint32_t operand)
{
    const struct ir_value *value = ir_operand(op, operand);
    const struct ir_value *outside = value ? ir_fuse_operand(value) : NULL;
    return value ? ir_value_constant(outside ? outside : value) : NULL;
}

static tssa_status *pack_constant(const struct kernel_setup *setup, const struct ir_op *op,
                                  const struct recurrent_cell *cell, uint32_t operand,
                                  struct recurrent_state *state)
{
    const struct tensor *tensor = constant_operand(op, operand);
    if (!tensor || tensor->rank != 3 || !dtype_in(op->info->types, tensor->dtype) ||
        tensor->dims[1] % cell->gates)
        return NULL;
    uint64_t start = clock_monotonic();
    struct recurrent_parts parts;
    int64_t count;
    size_t bytes;
    state->dtype = computed_in(tensor->dtype);
    parts_init(cell, tensor->dims[1] / cell->gates, state->dtype, &parts);
    if (!packed_count(tensor, &parts, &count) ||
        !size_mul((size_t)count, tssa_dtype_size(state->dtype), &bytes))
        return status_out_of_memory();
    void *packed = arena_alloc_aligned(setup->arena, bytes, 64);
    TRY_ALLOC(packed);
    pack(tensor, &parts, state->dtype, packed);
    state->packed[operand - RECURRENT_W] = packed;
    kernel_tally_packed(setup, bytes, start);
    return NULL;
}

/* ---- Steps ----------------------------------------------------------------------------------- */

/* What a near cache holds of weights, and what two threads share in less time than one takes. Each
 * with a direction of its own does without the other, each with some of the sequences reads weights
 * that the other one reads, too, for fewer rows: 4 sequences of 256 units took two threads a
 * quarter longer so. */
#define NEAR_BYTES ((size_t)1 << 20)
#define SHARED_BYTES ((size_t)512 << 10)

bool recurrent_shares_steps(const struct recurrent *r, const struct team *team)
{
    const int64_t threads = team ? team->threads : 1;
    const size_t bytes = (size_t)(r->hidden * r->parts.pitch) * tssa_dtype_size(r->dtype);
    return threads > 1 && bytes > (r->directions < threads ? SHARED_BYTES : NEAR_BYTES);
}

void recurrent_chunk(struct recurrent *r, const struct team *team)
{
    (r->dtype == TSSA_DOUBLE ? recurrent_chunk_f64 : recurrent_chunk_f32)(r, team);
}

static void run_sequence(const struct kernel_args *args, struct recurrent *r)
{
    int64_t chunk = r->chunk;
    for (r->first = 0; r->first < r->steps; r->first += chunk) {
        r->chunk = r->steps - r->first < chunk ? r->steps - r->first : chunk;
        recurrent_chunk(r, args->env->team);
    }
}

/* ---- Operands and results -------------------------------------------------------------------- */

struct operand_shape {
    int rank;
    int64_t dims[3];
};

static tssa_status *check_operand(const struct kernel_args *args, uint32_t index,
                                  const struct tensor *tensor, const struct operand_shape *shape)
{
    bool fits = dtype_in(args->op->info->types, tensor->dtype) && tensor->rank == shape->rank;
    for (int i = 0; fits && i < shape->rank; i++)
        fits = tensor->dims[i] == shape->dims[i];
    if (fits)
        return NULL;
    char text[160];
    tensor_describe(tensor, text, sizeof text);
    if (shape->rank == 2)
        return ERROR(TSSA_RUNTIME,
                     "operand %" PRIu32 " must be of shape [%" PRId64 ", %" PRId64 "], not %s",
                     index, shape->dims[0], shape->dims[1], text);
    return ERROR(TSSA_RUNTIME,
                 "operand %" PRIu32 " must be of shape [%" PRId64 ", %" PRId64 ", %" PRId64
                 "], not %s",
                 index, shape->dims[0], shape->dims[1], shape->dims[2], text);
}

void *carve(struct carver *carver, size_t count)
{
    size_t bytes = 0;
    void *part = carver->memory ? carver->memory + carver->used : NULL;
    carver->fits = carver->fits && size_mul(count, carver->size, &bytes) &&
                   size_add(bytes, 63, &bytes) &&
                   size_add(carver->used, bytes & ~(size_t)63, &carver->used);
    return part;
}

/* The operand in T: as it is, where it is. */
static const void *carve_operand(struct carver *carver, const struct recurrent *r,
                                 const struct tensor *tensor)
{
    if (!tensor || tensor->dtype == r->dtype)
        return tensor ? tensor->data : NULL;
    void *part = carve(carver, tensor_count(tensor));
    if (part)
        convert_elements((int64_t)tensor_count(tensor), tensor->dtype, tensor->data, 1, r->dtype,
                         part, 1, &convert_default);
    return part;
}

static const void *carve_weights(struct carver *carver, const struct recurrent *r,
                                 const struct tensor *tensor, const void *packed)
{
    if (packed)
        return packed;
    int64_t count = 0;
    carver->fits = carver->fits && packed_count(tensor, &r->parts, &count);
    void *part = carve(carver, (size_t)count);
    if (part)
        pack(tensor, &r->parts, r->dtype, part);
    return part;
}

static void *carve_zeros(struct carver *carver, int64_t count)
{
    void *part = carve(carver, (size_t)count);
    if (part)
        memset(part, 0, (size_t)count * carver->size);
    return part;
}

bool recurrent_layer_carve(struct recurrent_layer *layer, struct carver *carver)
{
    struct recurrent *r = &layer->r;
    const struct tensor *const *operands = layer->operands;
    const struct recurrent_state *state = layer->state;
    const bool packs = state->dtype == r->dtype;
    int64_t lanes, states, past;
    if (!i64_mul(r->directions, r->batch, &lanes) || !i64_mul(lanes, r->hidden, &states) ||
        !i64_mul(lanes, r->parts.columns[r->parts.n - 1], &past))
        return false;
    r->x = carve_operand(carver, r, operands[RECURRENT_X]);
    r->p = carve_operand(carver, r, operands[RECURRENT_P]);
    r->b = operands[RECURRENT_B] ? carve_operand(carver, r, operands[RECURRENT_B])
                                 : carve_zeros(carver, r->directions * 2 * r->width);
    r->w = carve_weights(carver, r, operands[RECURRENT_W], packs ? state->packed[0] : NULL);
    r->recurrence =
        carve_weights(carver, r, operands[RECURRENT_R], packs ? state->packed[1] : NULL);
    r->h = carve_zeros(carver, states);
    r->c = carve_zeros(carver, states);
    r->past = carve(carver, (size_t)past);
    return carver->fits;
}

int64_t recurrent_step_gates(const struct recurrent *r)
{
    int64_t gates;
    return i64_mul(r->directions, r->batch, &gates) && i64_mul(gates, r->parts.pitch, &gates)
               ? gates
               : INT64_MAX;
}

bool recurrent_carve_gates(struct recurrent *r, struct carver *carver)
{
    int64_t gates;
    if (!i64_mul(recurrent_step_gates(r), r->chunk, &gates))
        return false;
    r->gates = carve(carver, (size_t)gates);
    return carver->fits;
}

/* Between [direction][batch][hidden] of T and a tensor that may be batch first. */
static void move_state(const struct recurrent *r, const struct tensor *tensor, void *state,
                       bool store)
{
    size_t size = tssa_dtype_size(tensor->dtype), own_size = tssa_dtype_size(r->dtype);
    for (int64_t d = 0; d < r->directions; d++)
        for (int64_t n = 0; n < r->batch; n++) {
            int64_t row = r->attrs->batch_first ? n * r->directions + d : d * r->batch + n;
            char *element = (char *)tensor->data + (size_t)(row * r->hidden) * size;
            char *own = (char *)state + (size_t)((d * r->batch + n) * r->hidden) * own_size;
            if (store)
                convert_elements(r->hidden, r->dtype, own, 1, tensor->dtype, element, 1,
                                 &convert_default);
            else
                convert_elements(r->hidden, tensor->dtype, element, 1, r->dtype, own, 1,
                                 &convert_default);
        }
}

/* Sizes from X, W and R. */
static tssa_status *read_sizes(const struct tensor *const *operands, struct recurrent *r)
{
    const struct tensor *x = operands[RECURRENT_X], *w = operands[RECURRENT_W],
                        *recurrence = operands[RECURRENT_R];
    if (x->rank != 3 || w->rank != 3 || recurrence->rank != 3)
        return ERROR(TSSA_RUNTIME, "X, W and R must have rank 3, not %d, %d and %d", x->rank,
                     w->rank, recurrence->rank);
    bool batch_first = r->attrs->batch_first;
    r->steps = x->dims[batch_first ? 1 : 0];
    r->batch = x->dims[batch_first ? 0 : 1];
    r->input = x->dims[2];
    r->hidden = r->attrs->hidden ? r->attrs->hidden : recurrence->dims[2];
    r->directions = r->attrs->directions;
    if (r->hidden > INT32_MAX || r->input > INT32_MAX)
        return ERROR(TSSA_RUNTIME, "the cell is too large");
    r->width = r->cell->gates * r->hidden;
    r->dtype = computed_in(x->dtype);
    parts_init(r->cell, r->hidden, r->dtype, &r->parts);
    return NULL;
}

/* The shapes of the operands follow from these. */
tssa_status *recurrent_layer_open(const struct kernel_args *args,
                                  const struct recurrent_state *state,
                                  struct recurrent_layer *layer)
{
    struct recurrent *r = &layer->r;
    const struct tensor **operands = layer->operands;
    *layer = (struct recurrent_layer){.r = {.cell = recurrent_cell_of(args->op),
                                            .attrs = &state->attrs,
                                            .activations = state->activations},
                                      .state = state};
    for (uint32_t i = 0; i < RECURRENT_OPERANDS; i++)
        TRY(kernel_optional_tensor(args, i, &operands[i]));
    for (uint32_t i = RECURRENT_X; i <= RECURRENT_R; i++)
        TRY(kernel_tensor(args, i, &operands[i]));
    TRY(read_sizes(operands, r));

    const struct tensor *x = operands[RECURRENT_X];
    const bool batch_first = r->attrs->batch_first;
    int64_t d = r->directions, h = r->hidden, n = r->batch;
    struct operand_shape states = {3, {batch_first ? n : d, batch_first ? d : n, h}};
    const struct operand_shape shapes[RECURRENT_OPERANDS] = {
        [RECURRENT_X] = {3, {x->dims[0], x->dims[1], x->dims[2]}},
        [RECURRENT_W] = {3, {d, r->width, r->input}},
        [RECURRENT_R] = {3, {d, r->width, h}},
        [RECURRENT_B] = {2, {d, 2 * r->width, 0}},
        [RECURRENT_H0] = states,
        [RECURRENT_C0] = states,
        [RECURRENT_P] = {2, {d, 3 * h, 0}},
    };
    for (uint32_t i = 0; i < RECURRENT_OPERANDS; i++)
        if (operands[i] && i != RECURRENT_LENGTHS)
            TRY(check_operand(args, i, operands[i], &shapes[i]));
    return NULL;
}

static tssa_status *read_lengths(const struct recurrent *r, const struct tensor *given,
                                 int64_t *lengths)
{
    if (given &&
        (!dtype_is_integer(given->dtype) || given->rank != 1 || given->dims[0] != r->batch))
        return ERROR(TSSA_RUNTIME, "sequence_lens must be %" PRId64 " integers", r->batch);
    for (int64_t n = 0; n < r->batch; n++) {
        lengths[n] = r->steps;
        if (!given)
            continue;
        size_t size = tssa_dtype_size(given->dtype);
        lengths[n] = dtype_load_int64(given->dtype, (char *)given->data + (size_t)n * size);
        if (lengths[n] < 0 || lengths[n] > r->steps)
            return ERROR(TSSA_RUNTIME,
                         "sequence_lens holds %" PRId64 ", but there are %" PRId64 " steps",
                         lengths[n], r->steps);
    }
    return NULL;
}

tssa_status *recurrent_layer_results(struct kernel_args *args, struct recurrent_layer *layer)
{
    struct recurrent *r = &layer->r;
    int64_t d = r->directions, n = r->batch;
    bool batch_first = r->attrs->batch_first;
    const tssa_dtype dtype = layer->operands[RECURRENT_X]->dtype;
    int64_t all[] = {r->steps, d, n, r->hidden}, all_batch_first[] = {n, r->steps, d, r->hidden};
    int64_t last[] = {batch_first ? n : d, batch_first ? d : n, r->hidden};
    TRY(kernel_output(args, 0, dtype, 4, batch_first ? all_batch_first : all, &r->y));
    /* Steps beyond a sequence's length are 0. */
    if (r->y && layer->operands[RECURRENT_LENGTHS] && tensor_bytes(r->y) > 0)
        memset(r->y->data, 0, tensor_bytes(r->y));
    TRY(kernel_output(args, 1, dtype, 3, last, &layer->last_h));
    return kernel_output(args, 2, dtype, 3, last, &layer->last_c);
}

int64_t recurrent_choose_chunk(const struct recurrent *r, int64_t elements)
{
    const int64_t per_step = recurrent_step_gates(r);
    const int64_t chunk = 1 + elements / (per_step < 1 ? 1 : per_step);
    return chunk < r->steps ? chunk : r->steps;
}

void recurrent_layer_begin(struct recurrent_layer *layer)
{
    if (layer->operands[RECURRENT_H0])
        move_state(&layer->r, layer->operands[RECURRENT_H0], layer->r.h, false);
    if (layer->operands[RECURRENT_C0])
        move_state(&layer->r, layer->operands[RECURRENT_C0], layer->r.c, false);
}

void recurrent_layer_end(struct recurrent_layer *layer)
{
    if (layer->last_h)
        move_state(&layer->r, layer->last_h, layer->r.h, true);
    if (layer->last_c)
        move_state(&layer->r, layer->last_c, layer->r.c, true);
}

static bool carve_all(struct recurrent_layer *layer, struct carver *carver)
{
    carver->used = 0;
    return recurrent_layer_carve(layer, carver) && recurrent_carve_gates(&layer->r, carver);
}

static tssa_status *recurrent_run(struct kernel_args *args)
{
    struct recurrent_layer layer;
    struct recurrent *r = &layer.r;
    struct buffer *lengths = NULL, *buffer = NULL;
    TRY(recurrent_layer_open(args, args->state, &layer));
    TRY(recurrent_layer_results(args, &layer));
    r->chunk = recurrent_choose_chunk(r, RECURRENT_CHUNK);
    struct carver carver = {.size = tssa_dtype_size(r->dtype), .fits = true};
    if (!carve_all(&layer, &carver))
        return ERROR(TSSA_RUNTIME, "the states are larger than memory can be");

    tssa_status *status;
    TRY_GOTO(status, kernel_scratch(args, carver.used, &buffer), done);
    TRY_GOTO(status, kernel_scratch(args, (size_t)r->batch * sizeof(int64_t), &lengths), done);
    TRY_GOTO(status, read_lengths(r, layer.operands[RECURRENT_LENGTHS], lengths->data), done);
    r->lengths = lengths->data;
    carver.memory = buffer->data;
    carve_all(&layer, &carver);
    recurrent_layer_begin(&layer);
    run_sequence(args, r);
    recurrent_layer_end(&layer);
done:
    buffer_release(buffer);
    buffer_release(lengths);
    return status;
}

/* ---- The kernels ----------------------------------------------------------------------------- */

tssa_status *recurrent_layer_prepare(const struct ir_op *op, const struct kernel_setup *setup,
                                     const struct recurrent_state **state)
{
    const struct recurrent_cell *cell = recurrent_cell_of(op);
    struct recurrent_state *own = ARENA_NEW(setup->arena, struct recurrent_state);
    TRY_ALLOC(own);
    *state = own;
    TRY(recurrent_decode(op, cell, &own->attrs));
    for (size_t i = 0; i < cell->n_functions * (size_t)own->attrs.directions; i++)
        own->activations[i] = activation_of(&own->attrs.functions[i]);
    TRY(pack_constant(setup, op, cell, RECURRENT_W, own));
    return pack_constant(setup, op, cell, RECURRENT_R, own);
}

static tssa_status *recurrent_prepare(const struct ir_op *op, const struct kernel_setup *setup,
                                      const void **state)
{
    const struct recurrent_state *own = NULL;
    tssa_status *status = recurrent_layer_prepare(op, setup, &own);
    *state = own;
    return status;
}

const struct kernel cpu_kernel_RNN = {.prepare = recurrent_prepare, .run = recurrent_run};
const struct kernel cpu_kernel_GRU = {.prepare = recurrent_prepare, .run = recurrent_run};
const struct kernel cpu_kernel_LSTM = {.prepare = recurrent_prepare, .run = recurrent_run};
