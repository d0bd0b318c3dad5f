/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A loop that is split into several: which part of its body goes where (distribute.c), and the
 * loops that are made of it (distribute_loops.c).
 */
#ifndef TSSA_PASSES_LOOPS_DISTRIBUTE_H
#define TSSA_PASSES_LOOPS_DISTRIBUTE_H

#include "ir/clone.h"
#include "passes/analysis/loops.h"
#include "passes/analysis/recurrence.h"
#include "passes/pass.h"

enum component_kind {
    LIGHT,
    PRODUCT,        /* a product that is in no recurrence */
    RECURRENT,      /* a recurrence without products */
    HEAVY_RECURRENT /* a recurrence with products */
};

struct distribution {
    struct pass_context *pass;
    struct loop loop;
    struct recurrences found;
    uint8_t *kind;     /* by component */
    uint32_t *stage;   /* by component: even ones hold products, odd ones recurrences */
    bool *after_heavy; /* by component: a heavy recurrence of its stage comes before it, or is it */
    uint32_t n_stages;
    uint32_t writer;           /* the carried value that a loop in the body only writes to; NONE */
    struct ir_value **stacked; /* by value id: the scan output that holds it */
    uint32_t n_values;
    struct ir_cloner cloner;
    uint32_t component, at; /* of the walk under way */
    struct ir_block *block; /* the body being made */
    struct ir_op *inner; /* of a loop over blocks that was made: what is split in it; else NULL */
};

/* The stage that computes the value; RECURRENCE_NONE: none, it is from outside. */
uint32_t distribution_stage_of(const struct distribution *d, const struct ir_value *value);
/* Replaces the loop by one for each stage. */
tssa_status *distribution_split(struct distribution *d);

#endif
