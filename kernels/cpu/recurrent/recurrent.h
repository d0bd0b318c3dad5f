/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between the operands of RNN, GRU and LSTM (recurrent.c) and their steps, which are compiled for
 * float and for double (recurrent_steps.h).
 *
 * In arrays, T is the type computed in: double for DOUBLE, else float, states included.
 */
#ifndef TSSA_KERNELS_CPU_RECURRENT_RECURRENT_H
#define TSSA_KERNELS_CPU_RECURRENT_RECURRENT_H

#include "base/isa.h"
#include "kernels/cpu/recurrent/activation.h"

/*
 * Gates that are multiplied together: all, or of GRU the first two, then the last. Each part has
 * columns that fill whole lanes, those behind its own being zeros, and begins at a multiple of them
 * in rows of sums. Of its packed weights, [depth][panel] follows [depth][panel]: the panels are
 * recurrent_panel() bytes of columns, the last one what is left.
 */
#define RECURRENT_PARTS 2
#define RECURRENT_LANES 64
#define RECURRENT_PANEL_OF_32 64 /* with registers of 32 bytes */
#define RECURRENT_PANEL_OF_64 256
/* Panels are as wide as a tile of several rows, whose weights then follow each other in memory: of
 * 4 MiB, four rows take a tenth less time than side by side with what other tiles read. */
static inline int64_t recurrent_panel(void)
{
    return isa_level() == ISA_V4 ? RECURRENT_PANEL_OF_64 : RECURRENT_PANEL_OF_32;
}

struct recurrent_parts {
    int n;
    int64_t gates[RECURRENT_PARTS]; /* columns of its own */
    int64_t from[RECURRENT_PARTS], columns[RECURRENT_PARTS];
    int64_t pitch; /* of all together */
};

struct recurrent {
    const struct recurrent_cell *cell;
    const struct recurrent_attrs *attrs;
    const struct activation *activations; /* attrs->functions */
    tssa_dtype dtype;                     /* T's */
    int64_t steps, batch, input, hidden, directions;
    int64_t width;          /* gates * hidden */
    const int64_t *lengths; /* per sequence */
    const void *x;          /* T, in the order of the operand */
    int64_t x_first;        /* the step that x begins with; 0 where batches are first */
    struct recurrent_parts parts;
    const void *w;           /* T [direction][part][panel][input][column] */
    const void *recurrence;  /* T [direction][part][panel][hidden][column] */
    const void *b;           /* T [direction][2][width] */
    const void *p;           /* T [direction][3][hidden]; NULL: none */
    void *h, *c;             /* states: T [direction][batch][hidden] */
    void *gates;             /* T [direction][step of the chunk][batch][pitch] */
    void *past;              /* scratch: T [direction][batch][columns of the last part] */
    struct tensor *y;        /* may be NULL */
    int64_t y_first;         /* the step that it begins with; 0 where batches are first */
    int64_t chunk, first;    /* steps per chunk; the chunk's first step */
    int64_t at_once;         /* rows of inputs that are multiplied together */
    int64_t together;        /* sequences that take a step together */
    const struct team *team; /* which shares each product; NULL: it shares sequences */
};

/* Computes all steps of the chunk. */
void recurrent_chunk_f32(struct recurrent *r, const struct team *team);
void recurrent_chunk_f64(struct recurrent *r, const struct team *team);

/*
 * Do threads share each step, its product and what is made of that? If a near cache does not
 * hold all weights, but what each thread then has of them, and not each has a direction of its
 * own: but not for so little that it takes them as long to meet.
 */
bool recurrent_shares_steps(const struct recurrent *r, const struct team *team);

/* The time of a direction's `step`-th step; steps beyond the length are at their own time. */
static inline int64_t recurrent_time(const struct recurrent *r, int64_t direction, int64_t n,
                                     int64_t step)
{
    bool reversed = direction == 1 || r->attrs->reverse;
    return reversed && step < r->lengths[n] ? r->lengths[n] - 1 - step : step;
}

#endif
