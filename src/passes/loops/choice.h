/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether a loop's iterations are computed together, all at once or in blocks, or one by one, told
 * from what each costs: bytes that live at once, and seconds. Every size that only a run can tell
 * is tried small and large, and what is chosen must hold for all of them: never more than half as
 * much memory again as the loop plus the budget, and never slower. Where short rows would win and
 * long ones lose, a run may choose (CHOICE_BOTH), as where only very many iterations would be too
 * much at once (CHOICE_FEW).
 *
 *     struct choice choice = {.figures = my_figures, .context = &mine};
 *     choice_try_dim(&choice, dim);                 what symbols there are
 *     choice_make(&choice);
 *     switch (choice.way) ...
 *     TRY(choice_remark(&choice, pass, loop, words));
 */
#ifndef TSSA_PASSES_LOOPS_CHOICE_H
#define TSSA_PASSES_LOOPS_CHOICE_H

#include "base/vec.h"
#include "ir/cost.h"
#include "passes/analysis/loops.h"
#include "passes/pass.h"

/* Of temporaries, where the pipeline says nothing else; and of a block, which is to stay in a
 * cache. */
#define CHOICE_BUDGET (INT64_C(32) << 20)
#define CHOICE_BLOCK_BYTES (INT64_C(1) << 20)

/* Seconds that a target takes: to enter a loop, for an iteration, and for a call of a kernel. */
struct choice_rates {
    double loop, iteration, call;
};

enum choice_way {
    CHOICE_ALL,    /* all iterations at once */
    CHOICE_BLOCKS, /* a loop over blocks of iterations */
    CHOICE_LEAVE,  /* nothing is won, or something lost: each iteration does enough as it is */
    CHOICE_BOTH,   /* blocks where rows are short, and the loop as it is where they are long */
    CHOICE_FEW     /* all at once where iterations are few, and blocks where they are many */
};

/* What a loop and its rewritten forms take where symbols are of some sizes. */
struct choice_figures {
    double fixed; /* bytes that are there in any case: what the loop is given, and what it leaves */
    double all, may, row; /* bytes: of all iterations at once, what they may be, of one iteration */
    double loop, batched, blocks; /* seconds: of the loop, at once, in blocks */
};

/* Iterations that are not few: of mere scalars, about as many as fill a block. */
#define CHOICE_MANY (INT64_C(1) << 16)

/* Symbols that are tried one by one; others are as large as the rest. */
#define CHOICE_MAX_SYMBOLS 8

/*
 * What an iteration stacks, and from where on blocks do not pay: rows of so many elements, and
 * fewer iterations. Sizes that only a run can tell are asked for there, in front of two versions of
 * the loop (versions.h).
 */
struct choice_rows {
    const struct dim *elements; /* NULL: nothing may be asked */
    const struct dim *trips;
    int64_t too_long, least_trips; /* set by choice_make for CHOICE_BOTH */
};

struct choice {
    /* false: no run has these sizes */
    bool (*figures)(void *context, const struct cost_sizes *sizes, struct choice_figures *figures);
    void *context;
    bool must_win; /* at once only where some sizes win by it */
    bool may_ask;  /* for the number of iterations: CHOICE_FEW is among the choices */
    /* the loop's: branches around it may exclude sizes. NULL: they do not */
    const struct ir_block *block;
    struct choice_rows rows;
    const struct dim *symbols[CHOICE_MAX_SYMBOLS];
    int n_symbols;
    bool in_branch; /* sizes were excluded */
    enum choice_way way;
    bool known; /* all sizes are; else `told` is of those that speak most against all at once */
    struct choice_figures told;
};

/* What a loop is given: what it captures, and what it begins to carry. */
struct choice_given {
    const struct loop *loop;
    VEC(struct ir_value *) values;
};

/* choice_given_free in every case. */
tssa_status *choice_given_find(const struct loop *loop, struct choice_given *given);
void choice_given_free(struct choice_given *given);
double choice_given_bytes(const struct choice_given *given, const struct cost_sizes *sizes);

/* Bytes of temporaries that a pass may spend. */
int64_t choice_budget(const struct pass_context *pass);
/* What may live at once, but for what the loop is given: all that is made, of `left` bytes that it
 * leaves. */
double choice_may(const struct pass_context *pass, double given, double left, double row);
/* Of what a pass's target runs on. */
const struct choice_rates *choice_rates(const struct pass_context *pass);
/* Of a byte that is read or written, by how many live at once; and of a row of ops. */
double choice_seconds_byte(double live);
double choice_seconds(const struct choice_rates *rates, const struct cost_work *work, double live);

void choice_try_dim(struct choice *choice, const struct dim *dim);
void choice_try_type(struct choice *choice, const struct ir_type *type);
/* Sets what stands behind n_symbols. */
void choice_make(struct choice *choice);
/* What was chosen, in the caller's words, by choice_way, and by which figures. */
tssa_status *choice_remark(const struct choice *choice, const struct pass_context *pass,
                           const struct ir_op *loop, const char *const words[]);

#endif
