/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long the memory of a value is in use: from the step that computes it to the last step that
 * may read it, under whatever name; to the end of the run where it is a graph output. Names share
 * memory where an op passes it on: views (IR_ALIAS, pieces.h), what a branch returns and the If's
 * result, what a loop is given, carries and returns. Who keeps a handle for a time that the plan
 * does not know (a sequence) lets it escape.
 *
 * What an iteration leaves for the next is still there while that runs, so its memory has two
 * places that take turns, unless nobody reads it any more when the next one is computed. It is in
 * use as long as the loop. What would live through two iterations escapes.
 */
#ifndef TSSA_RUNTIME_LIFETIME_H
#define TSSA_RUNTIME_LIFETIME_H

#include "runtime/plan.h"

struct lifetime {
    uint32_t last;           /* step index */
    const struct step *loop; /* it goes on into the next iteration; NULL: into none */
    uint32_t carried_until;  /* there: the last step that reads it, 0 when none does */
    bool escapes;
    bool leaves;   /* it is that of a graph output ... */
    uint32_t exit; /* ... of this number */
    bool several;  /* and it may be that of others, too */
    bool taken;    /* an op may change it in place under the name that it has now */
    bool passed;   /* a result of control flow may be another name of it */
};

struct lifetimes {
    const struct plan *plan;
    struct lifetime *values;   /* per value id: of steps' results, and of loops' parameters */
    bool *pieces;              /* plan->pieces, being found */
    uint32_t *step_of_op;      /* per op id */
    const struct step **steps; /* per index */
};

/* In the scratch arena; plan->pieces in the plan's. */
tssa_status *lifetimes_find(struct lifetimes *lifetimes, struct plan *plan, struct arena *scratch);
/* The value is another name of operand 0 of its op, of all of it or of a piece. */
bool lifetime_is_view(const struct lifetimes *lifetimes, const struct ir_value *value);
/* Of a piece: it lies somewhere in that. */
bool lifetime_is_piece(const struct lifetimes *lifetimes, const struct ir_value *value);
/* The first step that runs when this one does: one in its blocks, or itself. */
uint32_t lifetime_step_first(const struct step *step);
/* The first step during which the memory may be in use. */
uint32_t lifetime_first(const struct lifetime *lifetime, const struct step *step);
/* It must not lie where the next iteration's lies. */
bool lifetime_takes_turns(const struct lifetime *lifetime, const struct step *step);

#endif
