/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The steps of RNN, GRU and LSTM in one type. A file recurrent_TYPE.c defines
 *
 *     T                   the type
 *     T_BYTES             its size
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
#include "kernels/cpu/lib/each_lane.h"
#include "kernels/cpu/recurrent/recurrent.h"

/* So many rows of inputs, or sequences, are computed together: each weight is read once for all. */
#define ROWS 32

/* ---- Products -------------------------------------------------------------------------------- */

/* Rows whose sums are registers at the same time, and so many terms that their weights stay in the
 * second cache while all rows have them added. */
#define TALL 6
#define TERMS 1024

/* Weights of several rows are asked for so many elements before they are read: of 3 MiB, four rows
 * take three quarters of the time. (Of one row panels abreast are read, which is as good.) */
#define AHEAD (2048 / sizeof(T))

#define INLINE static inline __attribute__((always_inline))
#define SHARE ((int64_t)(256 / sizeof(T))) /* columns that threads do not divide */

/* Rows of sums to which rows of x times packed weights are added. */
struct product {
    int n_rows;
    const T *const *x;
    T *const *sums;
    int64_t depth, columns;
    const T *weights; /* recurrent_parts tells how they lie */
    bool backward;    /* from the last panel to the first */
};

#define NAME(x) x##_of_32
#define REGISTER 32
#define PANEL_BYTES RECURRENT_PANEL_OF_32
#define REGISTERS 2
#define ROW_REGISTERS 2
#define ABREAST 4
#define ABREAST_OF_TWO 2
#include "kernels/cpu/recurrent/recurrent_tile.h"

#define NAME(x) x##_of_64
#define REGISTER 64
#define PANEL_BYTES RECURRENT_PANEL_OF_64
#define REGISTERS 4
#define ROW_REGISTERS 4
#define ABREAST 4
#define ABREAST_OF_TWO 1
#include "kernels/cpu/recurrent/recurrent_tile.h"

VECTOR_BY_WIDTH(multiply, (const struct product *p, int64_t begin, int64_t end), (p, begin, end))

static void multiply_shares(void *context, int64_t begin, int64_t end)
{
    multiply(context, begin, end);
}

/* `team` NULL: by the calling thread. */
static void multiply_all(const struct team *team, struct product product)
{
    team_for(team, (product.columns + SHARE - 1) / SHARE, 1, multiply_shares, &product);
}

/* ---- Activations and cells ------------------------------------------------------------------- */

/* Sequences of one direction that take a step together. */
struct group {
    const struct recurrent *r;
    const struct activation *activations;
    const T *recurrence; /* as r's, of the direction */
    const T *peephole;   /* NULL: none */
    const T *past_bias;  /* of GRU's last gate, where it is reset with the product; or NULL */
    bool backward; /* every second step: a cache that is just too small has the last weights */
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

/* Adds R's columns of a part times the rows of x to rows of sums. */
static void recur(const struct group *g, T *const *x, int part, T *const *sums)
{
    const struct recurrent *r = g->r;
    multiply_all(r->team,
                 (struct product){.n_rows = g->n_rows,
                                  .x = (const T *const *)x,
                                  .sums = sums,
                                  .depth = r->hidden,
                                  .columns = r->parts.columns[part],
                                  .weights = g->recurrence + r->parts.from[part] * r->hidden,
                                  .backward = g->backward});
}

/* What is done to each sequence's sums, which threads share, too, if there is more of it than it
 * takes them to meet. */
#define MEETING 2048 /* elements of gates */
static void for_rows(const struct group *g, team_body body)
{
    team_for(g->r->team, g->n_rows, 1 + MEETING / (g->r->width + 1), body, (void *)g);
}

static void rnn_rows(void *context, int64_t begin, int64_t end)
{
    const struct group *g = context;
    const int64_t n = g->r->hidden;
    for (int64_t i = begin; i < end; i++) {
        activate_gate(g, 0, n, g->gates[i]);
        memcpy(g->h[i], g->gates[i], (size_t)n * sizeof(T));
    }
}

static void rnn_step(const struct group *g)
{
    recur(g, g->h, 0, g->gates);
    for_rows(g, rnn_rows);
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

/* Gates z, r, h: the first two, and what R's last columns are multiplied by. */
static void gru_gate_rows(void *context, int64_t begin, int64_t end)
{
    const struct group *g = context;
    const int64_t n = g->r->hidden;
    for (int64_t i = begin; i < end; i++) {
        activate_gate(g, 0, 2 * n, g->gates[i]);
        if (g->past_bias)
            memcpy(g->past[i], g->past_bias, (size_t)n * sizeof(T));
        else
            scale(g->past[i], g->gates[i] + n, g->h[i], n);
    }
}

static void gru_state_rows(void *context, int64_t begin, int64_t end)
{
    const struct group *g = context;
    const int64_t n = g->r->hidden;
    for (int64_t i = begin; i < end; i++) {
        T *candidates = g->gates[i] + g->r->parts.from[1];
        if (g->past_bias)
            add_scaled(candidates, g->gates[i] + n, g->past[i], n);
        activate_gate(g, 1, n, candidates);
        gru_states(g->h[i], g->gates[i], candidates, n);
    }
}

/* What R makes of the past goes into the candidates: before or after it is reset. */
static void gru_step(const struct group *g)
{
    T *candidates[ROWS];
    for (int i = 0; i < g->n_rows; i++)
        candidates[i] = g->gates[i] + g->r->parts.from[1];
    recur(g, g->h, 0, g->gates);
    for_rows(g, gru_gate_rows);
    if (g->past_bias)
        recur(g, g->h, 1, g->past);
    else
        recur(g, g->past, 1, candidates);
    for_rows(g, gru_state_rows);
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

static void lstm_rows(void *context, int64_t begin, int64_t end)
{
    const struct group *g = context;
    for (int64_t i = begin; i < end; i++)
        lstm_row(g, g->gates[i], g->h[i], g->c[i]);
}

static void lstm_step(const struct group *g)
{
    recur(g, g->h, 0, g->gates);
    for_rows(g, lstm_rows);
}

static void (*const steps[])(const struct group *g) = {
    [RECURRENT_RNN] = rnn_step, [RECURRENT_GRU] = gru_step, [RECURRENT_LSTM] = lstm_step};

/* ---- The sequence ---------------------------------------------------------------------------- */

static T *gates_of(const struct recurrent *r, int64_t direction, int64_t row)
{
    return (T *)r->gates + (direction * r->chunk * r->batch + row) * r->parts.pitch;
}

static bool resets_product(const struct recurrent *r)
{
    return r->cell->kind == RECURRENT_GRU && r->attrs->linear_before_reset;
}

/* Both biases; of a gate that is reset with its product, the first alone. */
static void begin_sums(const struct recurrent *r, int64_t direction, T *sums)
{
    const T *b = (const T *)r->b + direction * 2 * r->width, *other = b + r->width;
    const int64_t first = r->parts.n > 1 ? 2 * r->hidden : r->width;
    T *candidates = sums + r->parts.from[1];
    memset(sums, 0, (size_t)r->parts.pitch * sizeof(T));
    for (int64_t i = 0; i < first; i++)
        sums[i] = b[i] + other[i];
    for (int64_t i = first; i < r->width; i++)
        candidates[i - first] = resets_product(r) ? b[i] : b[i] + other[i];
}

/* All inputs of some rows times W. */
static void project(const struct recurrent *r, int64_t direction, int n, const T *const *x,
                    T *const *sums)
{
    const T *weights = (const T *)r->w + direction * r->input * r->parts.pitch;
    if (n > 0)
        begin_sums(r, direction, sums[0]);
    for (int i = 1; i < n; i++)
        memcpy(sums[i], sums[0], (size_t)r->parts.pitch * sizeof(T));
    for (int part = 0; part < r->parts.n; part++) {
        T *to[ROWS];
        for (int i = 0; i < n; i++)
            to[i] = sums[i] + r->parts.from[part];
        multiply_all(NULL, (struct product){.n_rows = n,
                                            .x = x,
                                            .sums = to,
                                            .depth = r->input,
                                            .columns = r->parts.columns[part],
                                            .weights = weights + r->parts.from[part] * r->input});
    }
}

/* Rows of the chunk, some at a time: index i is a direction and so many steps of sequences. */
static void project_rows(void *context, int64_t begin, int64_t end)
{
    const struct recurrent *r = context;
    int64_t rows = r->chunk * r->batch, groups = (rows + r->at_once - 1) / r->at_once;
    for (int64_t i = begin; i < end; i++) {
        int64_t direction = i / groups, row = i % groups * r->at_once;
        const T *x[ROWS];
        T *sums[ROWS];
        int count = 0;
        for (int64_t last = row + r->at_once; row < last && row < rows; row++) {
            int64_t n = row % r->batch, step = r->first + row / r->batch;
            if (step >= r->lengths[n])
                continue;
            int64_t t = recurrent_time(r, direction, n, step);
            int64_t at = r->attrs->batch_first ? n * r->steps + t : (t - r->x_first) * r->batch + n;
            x[count] = (const T *)r->x + at * r->input;
            sums[count++] = gates_of(r, direction, row);
        }
        project(r, direction, count, x, sums);
    }
}

/* Rounds what a sequence's step leaves in its state, and stores it in the result. */
static void store(const struct recurrent *r, int64_t direction, int64_t n, int64_t time, const T *h)
{
    int64_t row = r->attrs->batch_first
                      ? (n * r->steps + time) * r->directions + direction
                      : ((time - r->y_first) * r->directions + direction) * r->batch + n;
    size_t size = tssa_dtype_size(r->y->dtype);
    convert_elements(r->hidden, r->dtype, h, 1, r->y->dtype,
                     (char *)r->y->data + (size_t)(row * r->hidden) * size, 1, &convert_default);
}

/* A step of sequences [first, end). */
static void take_step(struct group *g, int64_t direction, int64_t first, int64_t end, int64_t step)
{
    const struct recurrent *r = g->r;
    int64_t of[ROWS];
    g->backward = step % 2 == 1;
    g->n_rows = 0;
    for (int64_t n = first; n < end; n++) {
        if (step >= r->lengths[n])
            continue;
        int64_t state = direction * r->batch + n;
        g->gates[g->n_rows] = gates_of(r, direction, (step - r->first) * r->batch + n);
        g->h[g->n_rows] = (T *)r->h + state * r->hidden;
        g->c[g->n_rows] = (T *)r->c + state * r->hidden;
        g->past[g->n_rows] = (T *)r->past + state * r->parts.columns[r->parts.n - 1];
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
    int64_t groups = (r->batch + r->together - 1) / r->together;
    for (int64_t i = begin; i < end; i++) {
        int64_t direction = i / groups, first = i % groups * r->together;
        int64_t last = first + r->together < r->batch ? first + r->together : r->batch;
        struct group g = {
            .r = r,
            .activations = r->activations + (size_t)direction * r->cell->n_functions,
            .recurrence = (const T *)r->recurrence + direction * r->hidden * r->parts.pitch,
            .peephole = r->p ? (const T *)r->p + direction * 3 * r->hidden : NULL,
        };
        if (resets_product(r))
            g.past_bias = (const T *)r->b + (direction * 2 + 1) * r->width + 2 * r->hidden;
        for (int64_t step = r->first; step < r->first + r->chunk; step++)
            take_step(&g, direction, first, last, step);
    }
}

/* As many sequences take a step together as leave each thread some: they read R once. */
static int64_t choose_together(const struct recurrent *r, const struct team *team)
{
    const int64_t threads = team && !r->team ? team->threads : 1;
    const int64_t parts = (threads + r->directions - 1) / r->directions;
    const int64_t rows = (r->batch + parts - 1) / parts;
    return rows < 1 ? 1 : rows < ROWS ? rows : ROWS;
}

/* Up to ROWS, and as many as leave the threads the same number of parts. */
static int64_t choose_at_once(const struct recurrent *r, const struct team *team)
{
    const int64_t threads = team ? team->threads : 1, rows = r->chunk * r->batch;
    if (rows == 0)
        return 1;
    const int64_t least = r->directions * ((rows + ROWS - 1) / ROWS);
    const int64_t parts = least < threads ? least : (least + threads - 1) / threads * threads;
    const int64_t of_one = (parts + r->directions - 1) / r->directions;
    return (rows + of_one - 1) / of_one;
}

/* So many parts of so many rows by all threads: each part by all, or each thread some. */
static void for_parts(const struct recurrent *r, const struct team *team, int64_t parts,
                      int64_t rows, team_body body)
{
    const int64_t per_row = r->width * (r->input + r->hidden) + 1;
    team_for(r->team ? NULL : team, parts, 1 + 32768 / (rows * per_row), body, (void *)r);
}

void T_CHUNK(struct recurrent *r, const struct team *team)
{
    const bool shares = recurrent_shares_steps(r, team);
    r->at_once = choose_at_once(r, team);
    const int64_t rows = r->directions * ((r->chunk * r->batch + r->at_once - 1) / r->at_once);
    r->team = shares && rows < team->threads ? team : NULL;
    for_parts(r, team, rows, r->at_once, project_rows);
    r->team = shares ? team : NULL;
    r->together = choose_together(r, team);
    const int64_t groups = (r->batch + r->together - 1) / r->together;
    for_parts(r, team, r->directions * groups, r->together, run_groups);
}
