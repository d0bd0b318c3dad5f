/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between the files of expand_recurrent: an RNN, GRU or LSTM whose place other ops take.
 *
 * Ops are made by a maker (maker.h), so that nothing needs to be looked at before the end. T, N, I,
 * H, G and D are steps, sequences, elements of inputs and of states, gates, and directions.
 */
#ifndef TSSA_PASSES_LOWER_EXPAND_RECURRENT_H
#define TSSA_PASSES_LOWER_EXPAND_RECURRENT_H

#include "ir/recurrent.h"
#include "passes/maker.h"
#include "passes/pass.h"

struct expansion {
    struct pass_context *pass;
    struct ir_op *op;
    const struct recurrent_cell *cell;
    struct recurrent_attrs attrs;
    int64_t input, hidden, width; /* I, H, G * H */
    tssa_dtype dtype;             /* computed in: double for DOUBLE, else float32 */
    struct pass_maker maker;      /* before the op */
    /* i64[]; the same in every direction */
    struct ir_value *steps, *batch;
    struct ir_value *lengths; /* i64[N, 1]; NULL: all steps of all sequences */
    struct ir_value *sums;    /* [T, N, D * G * H]: products with W, without biases */
};

/*
 * What a direction's steps need. R is one part, but for a GRU that resets states before their
 * product: each of its gates is one, so that a kernel of the gate r has its product alone, and
 * another one all the rest.
 */
struct direction {
    const struct recurrent_function *functions;
    bool reversed;
    struct ir_value *inputs;       /* [T, N, G * H]: with biases, the first step first */
    struct ir_value *recurrent[3]; /* [H, columns of the part] */
    struct ir_value *past_bias;    /* [H], of what a GRU resets; else NULL */
    struct ir_value *peepholes[3]; /* [H] each, of the gates i, o and f; or NULL */
    struct ir_value *h, *c;        /* [N, H]; c is LSTM's */
    struct ir_value *bound;        /* i64[N, 1]: the step that a sequence ends with, or, reversed,
                                    * begins with; NULL: all are taken */
};

/* What comes of it. */
struct last {
    struct ir_value *y; /* [T, N, H], the first step first; NULL: nobody wants it */
    struct ir_value *h, *c;
};

/* ---- expand_operands.c ----------------------------------------------------------------------- */

/* What is made of constants alone is one: so weights are turned once, and not in each run. */
struct ir_value *expand_settle(struct expansion *e, struct ir_value *value);
struct ir_value *expand_access(struct expansion *e, struct pass_maker *m, struct ir_value *x,
                               const struct rule_draft *draft);
/* Of the type that is computed in; in the type of X. NULL is none. */
struct ir_value *expand_cast(struct expansion *e, struct ir_value *x, tssa_dtype to);

/* Sizes, lengths and the product with W, for all directions. */
void expand_operands(struct expansion *e);
void expand_direction(struct expansion *e, int64_t number, struct direction *d);

/* ---- expand_step.c --------------------------------------------------------------------------- */

/* The loop over steps, one for all directions. */
void expand_loop(struct expansion *e, const struct direction *directions, struct last *last);

#endif
