/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RNN, GRU and LSTM (ai.onnx 1 to 22). Everything is computed in double, states included, and rounded
 * once on output.
 *
 * A run goes through the sequence in chunks of steps. For each chunk the products of the inputs with W
 * are made at once, in parallel over rows; then every pair of a direction and a sequence of the batch
 * takes its steps on its own, in parallel too.
 */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/clones.h"
#include "device/kernel.h"
#include "kernels/cpu/lib/convert.h"
#include "kernels/cpu/recurrent/activation.h"

#define MAX_DIRECTIONS 2
#define MAX_FUNCTIONS 3

struct recurrent;
struct lane;

/* What tells the three apart. */
struct cell {
    int64_t gates;
    size_t n_functions;
    const char *functions[MAX_FUNCTIONS];
    bool has_cell_state;
    void (*step)(const struct recurrent *r, const struct lane *lane);
};

struct recurrent_attrs {
    int64_t hidden; /* 0: not given */
    int64_t directions;
    bool reverse; /* of the first direction; the second is always reversed */
    bool batch_first, input_forget, linear_before_reset;
    double clip;
    struct activation activations[MAX_DIRECTIONS * MAX_FUNCTIONS];
};

/* Of one direction's gates, [rows][columns]: float32 as it is, other types widened. */
struct weights {
    const float *narrow; /* or NULL */
    double *wide;
};

struct recurrent {
    const struct cell *cell;
    const struct recurrent_attrs *attrs;
    int64_t steps, batch, input, hidden, directions;
    int64_t width;          /* gates * hidden */
    const int64_t *lengths; /* per sequence */
    double *x, *b, *p;      /* operands; b and p may be NULL */
    struct weights w, recurrence;
    double *h, *c;        /* states: [direction][batch][hidden] */
    double *projected;    /* [chunk][direction][batch][width] */
    double *scratch;      /* [direction][batch][width + hidden] */
    struct tensor *y;     /* may be NULL */
    int64_t chunk, first; /* steps per chunk; the chunk's first step */
};

/* One sequence in one direction at one step. */
struct lane {
    const struct activation *activations;
    const double *projected;          /* W * x, [gates][hidden] */
    const double *wb, *rb, *peephole; /* biases and peepholes may be NULL */
    int64_t direction;
    double *gates; /* scratch [gates][hidden] */
    double *reset; /* scratch [hidden] */
    double *h, *c;
};

/* ---- Arithmetic ----------------------------------------------------------------------------------- */

/* Sixteen running sums, in registers, and added up by halves; their order depends on n only. */
#define LANES 4
typedef double lanes __attribute__((vector_size(LANES * sizeof(double))));
typedef float narrow_lanes __attribute__((vector_size(LANES * sizeof(float))));

#define PRODUCT(vector, sum, at)                                                                   \
    do {                                                                                           \
        vector a_part;                                                                             \
        lanes b_part;                                                                              \
        memcpy(&a_part, a + (at), sizeof a_part);                                                  \
        memcpy(&b_part, b + (at), sizeof b_part);                                                  \
        sum += __builtin_convertvector(a_part, lanes) * b_part;                                    \
    } while (0)
#define DOT(name, T, vector)                                                                       \
    VECTOR_FUNCTION(double, name, (const T *a, const double *b, int64_t n), (a, b, n))             \
    {                                                                                              \
        lanes sum_0 = {0}, sum_1 = {0}, sum_2 = {0}, sum_3 = {0};                                  \
        int64_t i = 0;                                                                             \
        for (; i + 4 * LANES <= n; i += 4 * LANES) {                                               \
            PRODUCT(vector, sum_0, i);                                                             \
            PRODUCT(vector, sum_1, i + LANES);                                                     \
            PRODUCT(vector, sum_2, i + 2 * LANES);                                                 \
            PRODUCT(vector, sum_3, i + 3 * LANES);                                                 \
        }                                                                                          \
        double sums[LANES], rest = 0;                                                              \
        sum_0 = (sum_0 + sum_2) + (sum_1 + sum_3);                                                 \
        memcpy(sums, &sum_0, sizeof sums);                                                         \
        for (; i < n; i++)                                                                         \
            rest += (double)a[i] * b[i];                                                           \
        return rest + ((sums[0] + sums[2]) + (sums[1] + sums[3]));                                 \
    }

DOT(dot_narrow, float, narrow_lanes)
DOT(dot_wide, double, lanes)

/* Row `row` of the weights, of n columns, times x. */
static double dot(const struct weights *weights, int64_t row, int64_t n, const double *x)
{
    return weights->narrow ? dot_narrow(weights->narrow + row * n, x, n)
                           : dot_wide(weights->wide + row * n, x, n);
}

static double clipped(const struct recurrent *r, double x)
{
    double clip = r->attrs->clip;
    return x > clip ? clip : x < -clip ? -clip : x;
}

static double activate(const struct recurrent *r, const struct lane *lane, int which, double x)
{
    const struct activation *f = &lane->activations[which];
    return f->apply(clipped(r, x), f->alpha, f->beta);
}

static double bias(const double *b, int64_t i)
{
    return b ? b[i] : 0;
}

/* R's row i times `state`, with its bias. */
static double recur(const struct recurrent *r, const struct lane *lane, int64_t i,
                    const double *state)
{
    return dot(&r->recurrence, lane->direction * r->width + i, r->hidden, state) +
           bias(lane->rb, i);
}

/* ---- Cells ---------------------------------------------------------------------------------------- */

/* The sum that goes into a gate's activation, for all gates from `first` on. */
static void sum_gates(const struct recurrent *r, const struct lane *lane, int64_t first,
                      int64_t last)
{
    for (int64_t i = first * r->hidden; i < last * r->hidden; i++)
        lane->gates[i] = lane->projected[i] + bias(lane->wb, i) + recur(r, lane, i, lane->h);
}

static void rnn_step(const struct recurrent *r, const struct lane *lane)
{
    sum_gates(r, lane, 0, 1);
    for (int64_t i = 0; i < r->hidden; i++)
        lane->h[i] = activate(r, lane, 0, lane->gates[i]);
}

/* Gates z, r, h. */
static void gru_step(const struct recurrent *r, const struct lane *lane)
{
    int64_t n = r->hidden;
    double *z = lane->gates, *reset = z + n, *candidate = z + 2 * n;
    sum_gates(r, lane, 0, 2);
    for (int64_t i = 0; i < 2 * n; i++)
        z[i] = activate(r, lane, 0, z[i]);
    for (int64_t i = 0; i < n; i++)
        lane->reset[i] = reset[i] * lane->h[i];
    for (int64_t i = 0; i < n; i++) {
        int64_t row = 2 * n + i;
        double past = r->attrs->linear_before_reset ? reset[i] * recur(r, lane, row, lane->h)
                                                    : recur(r, lane, row, lane->reset);
        candidate[i] = activate(r, lane, 1, lane->projected[row] + bias(lane->wb, row) + past);
    }
    for (int64_t i = 0; i < n; i++)
        lane->h[i] = (1 - z[i]) * candidate[i] + z[i] * lane->h[i];
}

/* Gates i, o, f, c; peepholes i, o, f. */
static void lstm_step(const struct recurrent *r, const struct lane *lane)
{
    int64_t n = r->hidden;
    const double *sums = lane->gates, *peephole = lane->peephole;
    sum_gates(r, lane, 0, 4);
    for (int64_t k = 0; k < n; k++) {
        double c = lane->c[k];
        double in = activate(r, lane, 0, sums[k] + (peephole ? peephole[k] * c : 0));
        double forget = 1 - in;
        if (!r->attrs->input_forget)
            forget =
                activate(r, lane, 0, sums[2 * n + k] + (peephole ? peephole[2 * n + k] * c : 0));
        c = forget * c + in * activate(r, lane, 1, sums[3 * n + k]);
        double out = activate(r, lane, 0, sums[n + k] + (peephole ? peephole[n + k] * c : 0));
        lane->c[k] = c;
        /* The spec's h(Ct) is not a gate: it is not clipped. */
        const struct activation *h = &lane->activations[2];
        lane->h[k] = out * h->apply(c, h->alpha, h->beta);
    }
}

static const struct cell rnn_cell = {1, 1, {"Tanh"}, false, rnn_step};
static const struct cell gru_cell = {3, 2, {"Sigmoid", "Tanh"}, false, gru_step};
static const struct cell lstm_cell = {4, 3, {"Sigmoid", "Tanh", "Tanh"}, true, lstm_step};

/* ---- The sequence --------------------------------------------------------------------------------- */

static bool reversed(const struct recurrent *r, int64_t direction)
{
    return direction == 1 || r->attrs->reverse;
}

/* The time of a direction's `step`-th step; steps beyond the length are at their own time. */
static int64_t time_of(const struct recurrent *r, int64_t direction, int64_t n, int64_t step)
{
    int64_t length = r->lengths[n];
    return reversed(r, direction) && step < length ? length - 1 - step : step;
}

/* Row i of the chunk: a step, a direction, a sequence. */
static void project_rows(void *context, int64_t begin, int64_t end)
{
    const struct recurrent *r = context;
    for (int64_t i = begin; i < end; i++) {
        int64_t n = i % r->batch, direction = i / r->batch % r->directions;
        int64_t step = r->first + i / r->batch / r->directions;
        if (step >= r->lengths[n])
            continue;
        int64_t t = time_of(r, direction, n, step);
        int64_t row = r->attrs->batch_first ? n * r->steps + t : t * r->batch + n;
        for (int64_t k = 0; k < r->width; k++)
            r->projected[i * r->width + k] =
                dot(&r->w, direction * r->width + k, r->input, r->x + row * r->input);
    }
}

static void store_step(const struct recurrent *r, int64_t direction, int64_t n, int64_t t,
                       const double *h)
{
    int64_t row = r->attrs->batch_first ? (n * r->steps + t) * r->directions + direction
                                        : (t * r->directions + direction) * r->batch + n;
    size_t size = tssa_dtype_size(r->y->dtype);
    convert_elements(r->hidden, TSSA_DOUBLE, h, 1, r->y->dtype,
                     (char *)r->y->data + (size_t)(row * r->hidden) * size, 1, &convert_default);
}

static void run_lanes(void *context, int64_t begin, int64_t end)
{
    const struct recurrent *r = context;
    int64_t hidden = r->hidden, width = r->width, last = r->first + r->chunk;
    for (int64_t i = begin; i < end; i++) {
        int64_t direction = i / r->batch, n = i % r->batch;
        double *scratch = r->scratch + i * (width + hidden);
        struct lane lane = {
            .activations = r->attrs->activations + (size_t)direction * r->cell->n_functions,
            .direction = direction,
            .wb = r->b ? r->b + direction * 2 * width : NULL,
            .rb = r->b ? r->b + direction * 2 * width + width : NULL,
            .peephole = r->p ? r->p + direction * 3 * hidden : NULL,
            .gates = scratch,
            .reset = scratch + width,
            .h = r->h + i * hidden,
            .c = r->c ? r->c + i * hidden : NULL,
        };
        for (int64_t step = r->first; step < last && step < r->lengths[n]; step++) {
            int64_t row = ((step - r->first) * r->directions + direction) * r->batch + n;
            lane.projected = r->projected + row * width;
            r->cell->step(r, &lane);
            if (r->y)
                store_step(r, direction, n, time_of(r, direction, n, step), lane.h);
        }
    }
}

static void run_sequence(struct kernel_args *args, struct recurrent *r)
{
    int64_t lanes = r->directions * r->batch, per_row = r->width * (r->input + r->hidden) + 1;
    int64_t steps = r->steps, chunk = r->chunk;
    for (r->first = 0; r->first < steps; r->first += chunk) {
        r->chunk = steps - r->first < chunk ? steps - r->first : chunk;
        team_for(args->env->team, r->chunk * lanes, 1 + 32768 / per_row, project_rows, r);
        team_for(args->env->team, lanes, 1 + 32768 / per_row, run_lanes, r);
    }
}

/* ---- Operands and results ------------------------------------------------------------------------- */

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

/* Everything of a run that is doubles lies in one buffer; first measured, then placed. */
struct carver {
    char *memory; /* NULL while measuring */
    size_t used;
};

static bool carve(struct carver *carver, size_t count, double **part)
{
    size_t bytes;
    *part = carver->memory ? (double *)(void *)(carver->memory + carver->used) : NULL;
    return size_mul(count, sizeof **part, &bytes) && size_add(carver->used, bytes, &carver->used);
}

static size_t count_or_0(const struct tensor *tensor)
{
    return tensor ? tensor_count(tensor) : 0;
}

enum { X, W, R, B, LENGTHS, H0, C0, P, OPERANDS };

static bool carve_all(struct recurrent *r, const struct tensor *const *operands,
                      struct carver *carver)
{
    int64_t lanes, states, scratch, projected;
    if (!i64_mul(r->directions, r->batch, &lanes) || !i64_mul(lanes, r->hidden, &states) ||
        !i64_mul(lanes, r->width + r->hidden, &scratch) || !i64_mul(lanes, r->width, &projected) ||
        !i64_mul(projected, r->chunk, &projected))
        return false;
    carver->used = 0;
    return carve(carver, count_or_0(operands[X]), &r->x) &&
           carve(carver, r->w.narrow ? 0 : count_or_0(operands[W]), &r->w.wide) &&
           carve(carver, r->recurrence.narrow ? 0 : count_or_0(operands[R]), &r->recurrence.wide) &&
           carve(carver, count_or_0(operands[B]), &r->b) &&
           carve(carver, count_or_0(operands[P]), &r->p) && carve(carver, (size_t)states, &r->h) &&
           carve(carver, (size_t)states, &r->c) &&
           carve(carver, (size_t)projected, &r->projected) &&
           carve(carver, (size_t)scratch, &r->scratch);
}

static void load(const struct tensor *tensor, double *to)
{
    convert_elements((int64_t)tensor_count(tensor), tensor->dtype, tensor->data, 1, TSSA_DOUBLE, to,
                     1, &convert_default);
}

/* Between [direction][batch][hidden] of doubles and a tensor that may be batch first. */
static void move_state(const struct recurrent *r, const struct tensor *tensor, double *state,
                       bool store)
{
    size_t size = tssa_dtype_size(tensor->dtype);
    for (int64_t d = 0; d < r->directions; d++)
        for (int64_t n = 0; n < r->batch; n++) {
            int64_t row = r->attrs->batch_first ? n * r->directions + d : d * r->batch + n;
            char *element = (char *)tensor->data + (size_t)(row * r->hidden) * size;
            double *own = state + (d * r->batch + n) * r->hidden;
            if (store)
                convert_elements(r->hidden, TSSA_DOUBLE, own, 1, tensor->dtype, element, 1,
                                 &convert_default);
            else
                convert_elements(r->hidden, tensor->dtype, element, 1, TSSA_DOUBLE, own, 1,
                                 &convert_default);
        }
}

static void load_all(struct recurrent *r, const struct tensor *const *operands)
{
    size_t states = (size_t)(r->directions * r->batch * r->hidden);
    load(operands[X], r->x);
    if (!r->w.narrow)
        load(operands[W], r->w.wide);
    if (!r->recurrence.narrow)
        load(operands[R], r->recurrence.wide);
    if (operands[B])
        load(operands[B], r->b);
    else
        r->b = NULL;
    if (operands[P])
        load(operands[P], r->p);
    else
        r->p = NULL;
    memset(r->h, 0, states * sizeof *r->h);
    memset(r->c, 0, states * sizeof *r->c);
    if (operands[H0])
        move_state(r, operands[H0], r->h, false);
    if (operands[C0])
        move_state(r, operands[C0], r->c, false);
}

/* Sizes from X, W and R; the shapes of the other operands follow. */
static tssa_status *open_operands(const struct kernel_args *args, struct recurrent *r,
                                  const struct tensor **operands)
{
    for (uint32_t i = 0; i < OPERANDS; i++)
        TRY(kernel_optional_tensor(args, i, &operands[i]));
    for (uint32_t i = X; i <= R; i++)
        TRY(kernel_tensor(args, i, &operands[i]));
    const struct tensor *x = operands[X], *w = operands[W], *recurrence = operands[R];
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
    r->w.narrow = w->dtype == TSSA_FLOAT ? w->data : NULL;
    r->recurrence.narrow = recurrence->dtype == TSSA_FLOAT ? recurrence->data : NULL;

    int64_t d = r->directions, h = r->hidden, n = r->batch;
    struct operand_shape state = {3, {batch_first ? n : d, batch_first ? d : n, h}};
    const struct operand_shape shapes[OPERANDS] = {
        [X] = {3, {x->dims[0], x->dims[1], x->dims[2]}},
        [W] = {3, {d, r->width, r->input}},
        [R] = {3, {d, r->width, h}},
        [B] = {2, {d, 2 * r->width, 0}},
        [H0] = state,
        [C0] = state,
        [P] = {2, {d, 3 * h, 0}},
    };
    for (uint32_t i = 0; i < OPERANDS; i++)
        if (operands[i] && i != LENGTHS)
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

static tssa_status *open_results(struct kernel_args *args, struct recurrent *r, tssa_dtype dtype,
                                 struct tensor **last_h, struct tensor **last_c)
{
    int64_t d = r->directions, n = r->batch;
    bool batch_first = r->attrs->batch_first;
    int64_t all[] = {r->steps, d, n, r->hidden}, all_batch_first[] = {n, r->steps, d, r->hidden};
    int64_t last[] = {batch_first ? n : d, batch_first ? d : n, r->hidden};
    TRY(kernel_output(args, 0, dtype, 4, batch_first ? all_batch_first : all, &r->y));
    /* Steps beyond a sequence's length are 0. */
    if (r->y && tensor_bytes(r->y) > 0)
        memset(r->y->data, 0, tensor_bytes(r->y));
    TRY(kernel_output(args, 1, dtype, 3, last, last_h));
    return kernel_output(args, 2, dtype, 3, last, last_c);
}

/* As many steps as give about this many doubles of projections. */
#define CHUNK_DOUBLES (1 << 19)

static tssa_status *recurrent_run(struct kernel_args *args, const struct cell *cell)
{
    struct recurrent r = {.cell = cell, .attrs = args->state};
    const struct tensor *operands[OPERANDS];
    struct tensor *last_h, *last_c;
    struct buffer *lengths = NULL, *doubles = NULL;
    struct carver carver = {NULL, 0};
    TRY(open_operands(args, &r, operands));
    TRY(open_results(args, &r, operands[X]->dtype, &last_h, &last_c));
    int64_t per_step = 1;
    if (!i64_mul(r.directions * r.batch, r.width, &per_step) || per_step < 1)
        per_step = 1;
    r.chunk = 1 + CHUNK_DOUBLES / per_step;
    r.chunk = r.chunk < r.steps ? r.chunk : r.steps;
    if (!carve_all(&r, operands, &carver))
        return ERROR(TSSA_RUNTIME, "the states are larger than memory can be");

    tssa_status *status;
    TRY_GOTO(status, kernel_scratch(args, carver.used, &doubles), done);
    TRY_GOTO(status, kernel_scratch(args, (size_t)r.batch * sizeof(int64_t), &lengths), done);
    TRY_GOTO(status, read_lengths(&r, operands[LENGTHS], lengths->data), done);
    r.lengths = lengths->data;
    carver.memory = doubles->data;
    carve_all(&r, operands, &carver);
    load_all(&r, operands);
    run_sequence(args, &r);
    if (last_h)
        move_state(&r, last_h, r.h, true);
    if (last_c)
        move_state(&r, last_c, r.c, true);
done:
    buffer_release(doubles);
    buffer_release(lengths);
    return status;
}

/* ---- The kernels ---------------------------------------------------------------------------------- */

static tssa_status *recurrent_prepare(const struct ir_op *op, const struct kernel_setup *setup,
                                      const struct cell *cell, const void **state)
{
    struct recurrent_attrs *attrs = ARENA_NEW(setup->arena, struct recurrent_attrs);
    TRY_ALLOC(attrs);
    const char *direction = ir_attr_str(op, "direction", "forward");
    bool both = strcmp(direction, "bidirectional") == 0;
    attrs->reverse = strcmp(direction, "reverse") == 0;
    if (!both && !attrs->reverse && strcmp(direction, "forward") != 0)
        return ERROR(TSSA_MALFORMED, "the direction is \"%s\"", direction);
    attrs->directions = both ? 2 : 1;
    attrs->hidden = ir_attr_int(op, "hidden_size", 0);
    if (attrs->hidden < 0)
        return ERROR(TSSA_MALFORMED, "hidden_size is %" PRId64, attrs->hidden);
    attrs->batch_first = ir_attr_int(op, "layout", 0) != 0;
    attrs->input_forget = ir_attr_int(op, "input_forget", 0) != 0;
    attrs->linear_before_reset = ir_attr_int(op, "linear_before_reset", 0) != 0;
    attrs->clip = (double)ir_attr_float(op, "clip", INFINITY);
    *state = attrs;
    return activations_decode(op, cell->functions, cell->n_functions, (size_t)attrs->directions,
                              attrs->activations);
}

#define RECURRENT(name, cell)                                                                      \
    static tssa_status *prepare_##name(const struct ir_op *op, const struct kernel_setup *setup,   \
                                       const void **state)                                         \
    {                                                                                              \
        return recurrent_prepare(op, setup, &(cell), state);                                       \
    }                                                                                              \
    static tssa_status *run_##name(struct kernel_args *args)                                       \
    {                                                                                              \
        return recurrent_run(args, &(cell));                                                       \
    }                                                                                              \
    const struct kernel cpu_kernel_##name = {.prepare = prepare_##name, .run = run_##name};

RECURRENT(RNN, rnn_cell)
RECURRENT(GRU, gru_cell)
RECURRENT(LSTM, lstm_cell)
