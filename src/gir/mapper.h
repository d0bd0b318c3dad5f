/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of a kernel being made of a fuse op's values, where views see them; see maps.h. */
#ifndef TSSA_GIR_MAPPER_H
#define TSSA_GIR_MAPPER_H

#include "base/vec.h"
#include "gir/maps.h"
#include "gir/scalars.h"

/* A value that was evaluated. */
struct mapper_seen {
    uint32_t next; /* 1 + the next one of the value; 0: none */
    uint32_t step;
    struct gir_view view;
};

struct mapper {
    const struct ir_op *fuse;
    const struct ir_block *body;
    const struct tssa_allocator *allocator;
    const struct ir_type *like; /* of results */
    struct gir_parts *parts;
    struct gir_maker maker;
    tssa_status *status; /* memory ran out; then maker.why as well */

    /* Of the part that is being made. */
    struct gir_part *part;
    struct gir_arg args[GIR_MAX_ARGS];
    uint32_t side_by_side[GIR_MAX_ARGS]; /* axes, by bit, along which elements or records are */
    uint32_t n_args;
    bool unrolls;               /* the last axis of results */
    struct gir_view root;       /* of results, where nothing is unrolled */
    const struct ir_op *active; /* the assign whose region it is; NULL: of none */

    uint32_t first_value, n_values; /* ids of the values of the block */
    uint32_t *heads;                /* per value: 1 + the first in `seen`; 0: none */
    VEC(struct mapper_seen) seen;
    uint32_t *order;   /* per value: the number of its op in the block */
    bool *marked;      /* per value: mark_dependents */
    uint32_t *numbers; /* room for a number per step */
};

/* It is no kernel: the first reason stays. */
uint32_t mapper_refuse(struct mapper *m, const char *why);

/* The step that is the value's elements where the view sees them; maker.why: there is none. */
uint32_t mapper_evaluate(struct mapper *m, const struct ir_value *value, struct gir_view view);

/* Stores a step as a field of those of a result, or of the part of it that the rule leaves. */
void mapper_store(struct mapper *m, uint32_t index, const struct rule *rule, uint32_t field,
                  uint32_t fields, uint32_t step);

#endif
