/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The steps of RNN, GRU and LSTM in one type. A file recurrent_TYPE.c defines
 *
 *     T                   the type
 *     T_CHUNK             the function to define, recurrent_chunk_f32
 *     T_LOOP              the loop of an activation, loop_f32
 *     MULTIPLY_ADD        a * b + c
 *     T_PROCEDURE         how the hot loops are compiled: as VECTOR_PROCEDURE
 *
 * and includes this file. A sum is made in the order bias, inputs, states, one product after the
 * other: neighbours in memory are different sums, so that vectors change nothing.
 */
#include <string.h>

#include "base/clones.h"
#include "kernels/cpu/lib/convert.h"
#include "kernels/cpu/recurrent/recurrent.h"

/* So many rows of a product are made at once: each weight is read once for all. */
#define ROWS 2
/* So many columns of sums stay in the nearest cache. */
#define COLUMNS 1024

/* ---- Products -------------------------------------------------------------------------------- */

/* Rows of sums to which rows of x times columns of the weights are added. */
struct product {
    int n_rows;
    const T *x[ROWS];
    T *sums[ROWS];
    int64_t depth, columns;
    const T *weights; /* [depth][pitch] */
    int64_t pitch;
};

#define ADD(sum, weight, x) sum = MULTIPLY_ADD(weight, x, sum)

T_PROCEDURE(add_to_one, (const struct product *p, int64_t from, int64_t n), (p, from, n))
{
    const T *x = p->x[0], *w = p->weights + from;
    T *restrict sums = p->sums[0] + from;
    int64_t k = 0, pitch = p->pitch;
    for (; k + 4 <= p->depth; k += 4, w += 4 * pitch) {
        const T *w1 = w + pitch, *w2 = w1 + pitch, *w3 = w2 + pitch;
        T x0 = x[k], x1 = x[k + 1], x2 = x[k + 2], x3 = x[k + 3];
        for (int64_t i = 0; i < n; i++) {
            T sum = sums[i];
            ADD(sum, w[i], x0);
            ADD(sum, w1[i], x1);
            ADD(sum, w2[i], x2);
            ADD(sum, w3[i], x3);
            sums[i] = sum;
        }
    }
    for (; k < p->depth; k++, w += pitch) {
        T x0 = x[k];
        for (int64_t i = 0; i < n; i++)
            ADD(sums[i], w[i], x0);
    }
}

T_PROCEDURE(add_to_two, (const struct product *p, int64_t from, int64_t n), (p, from, n))
{
    const T *x = p->x[0], *y = p->x[1], *w = p->weights + from;
    T *restrict sums = p->sums[0] + from, *restrict others = p->sums[1] + from;
    int64_t k = 0, pitch = p->pitch;
    for (; k + 4 <= p->depth; k += 4, w += 4 * pitch) {
        const T *w1 = w + pitch, *w2 = w1 + pitch, *w3 = w2 + pitch;
        T x0 = x[k], x1 = x[k + 1], x2 = x[k + 2], x3 = x[k + 3];
        T y0 = y[k], y1 = y[k + 1], y2 = y[k + 2], y3 = y[k + 3];
        for (int64_t i = 0; i < n; i++) {
            T sum = sums[i], other = others[i];
            ADD(sum, w[i], x0);
            ADD(other, w[i], y0);
            ADD(sum, w1[i], x1);
            ADD(other, w1[i], y1);
            ADD(sum, w2[i], x2);
            ADD(other, w2[i], y2);
            ADD(sum, w3[i], x3);
            ADD(other, w3[i], y3);
            sums[i] = sum;
            others[i] = other;
        }
    }
    for (; k < p->depth; k++, w += pitch) {
        T x0 = x[k], y0 = y[k];
        for (int64_t i = 0; i < n; i++) {
            ADD(sums[i], w[i], x0);
            ADD(others[i], w[i], y0);
        }
    }
}

static void multiply(const struct product *p)
{
    for (int64_t from = 0; from < p->columns; from += COLUMNS) {
        int64_t n = p->columns - from < COLUMNS ? p->columns - from : COLUMNS;
        if (p->n_rows == 1)
            add_to_one(p, from, n);
        else
            add_to_two(p, from, n);
    }
}

/* ---- Activations and cells ------------------------------------------------------------------- */

/* Sequences of one direction that take a step together. */
struct group {
    const struct recurrent *r;
    const struct activation *activations;
    const T *recurrence; /* [hidden][width] */
    const T *peephole;   /* NULL: none */
    const T *past_bias;  /* of GRU's last gate, where it is reset with the product; or NULL */
    int n_rows;
    T *gates[ROWS], *h[ROWS], *c[ROWS], *past[ROWS];
};

static void activate(const struct group *g, int which, int64_t n, T *x)
{
    const struct activation *f = &g->activations[which];
    const void *in = x;
    const int64_t step = 1;
    f->T_LOOP(&f->uniform, n, x, 1, &in, &step);
}

T_PROCEDURE(clip, (T * x, int64_t n, T bound), (x, n, bound))
{
    for (int64_t i = 0; i < n; i++)
        x[i] = x[i] > bound ? bound : x[i] < -bound ? -bound : x[i];
}

/* What goes into a gate is clipped; the spec's h(Ct) is none. */
static void activate_gate(const struct group *g, int which, int64_t n, T *x)
{
    T bound = (T)g->r->attrs->clip;
    if (bound <= T_HIGHEST)
        clip(x, n, bound);
    activate(g, which, n, x);
}

/* Adds R's columns [from, from + columns) times the rows of x to rows of sums. */
static void recur(const struct group *g, T *const *x, int64_t from, int64_t columns, T *const *sums)
{
    struct product p = {.n_rows = g->n_rows,
                        .depth = g->r->hidden,
                        .columns = columns,
                        .weights = g->recurrence + from,
                        .pitch = g->r->width};
    for (int i = 0; i < g->n_rows; i++) {
        p.x[i] = x[i];
        p.sums[i] = sums[i];
    }
    multiply(&p);
}

static void rnn_step(const struct group *g)
{
    int64_t n = g->r->hidden;
    recur(g, g->h, 0, n, g->gates);
    for (int i = 0; i < g->n_rows; i++) {
        activate_gate(g, 0, n, g->gates[i]);
        memcpy(g->h[i], g->gates[i], (size_t)n * sizeof(T));
    }
}

T_PROCEDURE(scale, (T *restrict to, const T *restrict by, const T *restrict from, int64_t n),
            (to, by, from, n))
{
    for (int64_t i = 0; i < n; i++)
        to[i] = by[i] * from[i];
}

T_PROCEDURE(add_scaled, (T *restrict to, const T *restrict by, const T *restrict from, int64_t n),
            (to, by, from, n))
{
    for (int64_t i = 0; i < n; i++)
        to[i] += by[i] * from[i];
}

T_PROCEDURE(gru_states,
            (T *restrict h, const T *restrict z, const T *restrict candidate, int64_t n),
            (h, z, candidate, n))
{
    for (int64_t i = 0; i < n; i++)
        h[i] = (1 - z[i]) * candidate[i] + z[i] * h[i];
}

/* What R makes of the past goes into the candidates: before or after it is reset. */
static void gru_candidates(const struct group *g, T *const *candidates)
{
    int64_t n = g->r->hidden;
    for (int i = 0; i < g->n_rows; i++)
        if (g->past_bias)
            memcpy(g->past[i], g->past_bias, (size_t)n * sizeof(T));
        else
            scale(g->past[i], g->gates[i] + n, g->h[i], n);
    if (!g->past_bias) {
        recur(g, g->past, 2 * n, n, candidates);
        return;
    }
    recur(g, g->h, 2 * n, n, g->past);
    for (int i = 0; i < g->n_rows; i++)
        add_scaled(candidates[i], g->gates[i] + n, g->past[i], n);
}

/* Gates z, r, h. */
static void gru_step(const struct group *g)
{
    int64_t n = g->r->hidden;
    T *candidates[ROWS] = {NULL};
    recur(g, g->h, 0, 2 * n, g->gates);
    for (int i = 0; i < g->n_rows; i++) {
        activate_gate(g, 0, 2 * n, g->gates[i]);
        candidates[i] = g->gates[i] + 2 * n;
    }
    gru_candidates(g, candidates);
    for (int i = 0; i < g->n_rows; i++) {
        activate_gate(g, 1, n, candidates[i]);
        gru_states(g->h[i], g->gates[i], candidates[i], n);
    }
}

T_PROCEDURE(lstm_states,
            (T *restrict c, const T *restrict in, const T *restrict forget,
             const T *restrict candidate, int64_t n),
            (c, in, forget, candidate, n))
{
    for (int64_t i = 0; i < n; i++)
        c[i] = forget[i] * c[i] + in[i] * candidate[i];
}

T_PROCEDURE(lstm_forget, (T *restrict forget, const T *restrict in, int64_t n), (forget, in, n))
{
    for (int64_t i = 0; i < n; i++)
        forget[i] = 1 - in[i];
}

/* Gates i, o, f, c; peepholes i, o, f, of which o sees the new state. */
static void lstm_row(const struct group *g, T *in, T *h, T *c)
{
    int64_t n = g->r->hidden;
    T *out = in + n, *forget = out + n, *candidate = forget + n;
    const T *peephole = g->peephole;
    bool couples = g->r->attrs->input_forget;
    if (!peephole && !couples) {
        activate_gate(g, 0, 3 * n, in);
    } else {
        if (peephole)
            add_scaled(in, peephole, c, n);
        if (peephole && !couples)
            add_scaled(forget, peephole + 2 * n, c, n);
        activate_gate(g, 0, n, in);
        if (couples)
            lstm_forget(forget, in, n);
        else
            activate_gate(g, 0, n, forget);
    }
    activate_gate(g, 1, n, candidate);
    lstm_states(c, in, forget, candidate, n);
    if (peephole)
        add_scaled(out, peephole + n, c, n);
    if (peephole || couples)
        activate_gate(g, 0, n, out);
    memcpy(candidate, c, (size_t)n * sizeof(T));
    activate(g, 2, n, candidate);
    scale(h, out, candidate, n);
}

static void lstm_step(const struct group *g)
{
    recur(g, g->h, 0, g->r->width, g->gates);
    for (int i = 0; i < g->n_rows; i++)
        lstm_row(g, g->gates[i], g->h[i], g->c[i]);
}

static void (*const steps[])(const struct group *g) = {
    [CELL_RNN] = rnn_step, [CELL_GRU] = gru_step, [CELL_LSTM] = lstm_step};

/* ---- The sequence ---------------------------------------------------------------------------- */

static T *gates_of(const struct recurrent *r, int64_t direction, int64_t row)
{
    return (T *)r->gates + (direction * r->chunk * r->batch + row) * r->width;
}

static bool resets_product(const struct recurrent *r)
{
    return r->cell->kind == CELL_GRU && r->attrs->linear_before_reset;
}

/* Both biases; of a gate that is reset with its product, the first alone. */
static void begin_sums(const struct recurrent *r, int64_t direction, T *sums)
{
    const T *b = (const T *)r->b + direction * 2 * r->width;
    int64_t both = resets_product(r) ? 2 * r->hidden : r->width;
    for (int64_t i = 0; i < r->width; i++)
        sums[i] = i < both ? b[i] + b[r->width + i] : b[i];
}

/* Rows of the chunk, ROWS at a time: index i is a direction and so many steps of sequences. */
static void project_rows(void *context, int64_t begin, int64_t end)
{
    const struct recurrent *r = context;
    int64_t rows = r->chunk * r->batch, groups = (rows + ROWS - 1) / ROWS;
    for (int64_t i = begin; i < end; i++) {
        int64_t direction = i / groups, row = i % groups * ROWS;
        struct product p = {.depth = r->input,
                            .columns = r->width,
                            .weights = (const T *)r->w + direction * r->input * r->width,
                            .pitch = r->width};
        for (int64_t last = row + ROWS; row < last && row < rows; row++) {
            int64_t n = row % r->batch, step = r->first + row / r->batch;
            if (step >= r->lengths[n])
                continue;
            int64_t t = recurrent_time(r, direction, n, step);
            int64_t at = r->attrs->batch_first ? n * r->steps + t : t * r->batch + n;
            p.x[p.n_rows] = (const T *)r->x + at * r->input;
            p.sums[p.n_rows] = gates_of(r, direction, row);
            begin_sums(r, direction, p.sums[p.n_rows++]);
        }
        if (p.n_rows)
            multiply(&p);
    }
}

/* Rounds what a sequence's step leaves in its state, and stores it in the result. */
static void store(const struct recurrent *r, int64_t direction, int64_t n, int64_t time, const T *h)
{
    int64_t row = r->attrs->batch_first ? (n * r->steps + time) * r->directions + direction
                                        : (time * r->directions + direction) * r->batch + n;
    size_t size = tssa_dtype_size(r->y->dtype);
    convert_elements(r->hidden, r->dtype, h, 1, r->y->dtype,
                     (char *)r->y->data + (size_t)(row * r->hidden) * size, 1, &convert_default);
}

static void take_step(struct group *g, int64_t direction, int64_t first, int64_t step)
{
    const struct recurrent *r = g->r;
    int64_t of[ROWS];
    g->n_rows = 0;
    for (int64_t n = first; n < first + ROWS && n < r->batch; n++) {
        if (step >= r->lengths[n])
            continue;
        int64_t state = (direction * r->batch + n) * r->hidden;
        g->gates[g->n_rows] = gates_of(r, direction, (step - r->first) * r->batch + n);
        g->h[g->n_rows] = (T *)r->h + state;
        g->c[g->n_rows] = (T *)r->c + state;
        g->past[g->n_rows] = (T *)r->past + state;
        of[g->n_rows++] = n;
    }
    if (g->n_rows)
        steps[r->cell->kind](g);
    for (int i = 0; r->y && i < g->n_rows; i++)
        store(r, direction, of[i], recurrent_time(r, direction, of[i], step), g->h[i]);
}

static void run_groups(void *context, int64_t begin, int64_t end)
{
    const struct recurrent *r = context;
    int64_t groups = (r->batch + ROWS - 1) / ROWS;
    for (int64_t i = begin; i < end; i++) {
        int64_t direction = i / groups;
        struct group g = {
            .r = r,
            .activations = r->attrs->activations + (size_t)direction * r->cell->n_functions,
            .recurrence = (const T *)r->recurrence + direction * r->hidden * r->width,
            .peephole = r->p ? (const T *)r->p + direction * 3 * r->hidden : NULL,
        };
        if (resets_product(r))
            g.past_bias = (const T *)r->b + (direction * 2 + 1) * r->width + 2 * r->hidden;
        for (int64_t step = r->first; step < r->first + r->chunk; step++)
            take_step(&g, direction, i % groups * ROWS, step);
    }
}

void T_CHUNK(struct recurrent *r, const struct team *team)
{
    int64_t rows = (r->chunk * r->batch + ROWS - 1) / ROWS, groups = (r->batch + ROWS - 1) / ROWS;
    int64_t per_row = r->width * (r->input + r->hidden) + 1;
    team_for(team, r->directions * rows, 1 + 32768 / per_row, project_rows, r);
    team_for(team, r->directions * groups, 1 + 32768 / per_row, run_groups, r);
}
