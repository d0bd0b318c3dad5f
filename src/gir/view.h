/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Views: which elements of a value a kernel needs, and where in its iteration space. A rule
 * (ir/rule.h) says so, whose region is the space; its operands are those of the fuse op, by number.
 * Values of fewer axes than the space has, and axes of one element, are broadcast.
 */
#ifndef TSSA_GIR_VIEW_H
#define TSSA_GIR_VIEW_H

#include "ir/rule.h"

struct gir_view {
    const struct rule
        *rule;     /* NULL: the whole value, the last axis of which is the last one of the space */
    uint32_t ones; /* axes of the space, by bit, along which the value has one element */
    /* the access with a number of its own that only a run tells; NULL: none, or several */
    const struct ir_op *chosen;
    uint32_t n_choices; /* such accesses */
};

/* Why views cannot be made of the rule of an access or an assign; NULL: they can. */
const char *gir_view_refuses(const struct ir_op *op);

/* The rule of an access or assign in a fuse op's block, of the fuse op's operands; NULL in *rule: a
 * number in it is computed in the block. */
tssa_status *gir_view_rule(const struct ir_op *op, const struct rule **rule);

/* A view of what an access computes as one of what it reads. *good is false where there is none. */
tssa_status *gir_view_through(const struct ir_op *access, int rank, struct gir_view *view,
                              bool *good);

/* A view of a value of these dims as one of an operand that is broadcast to them; `rank`: of the
 * space. */
tssa_status *gir_view_of_operand(struct ir_graph *graph, int n_dims, const struct dim *const *dims,
                                 const struct ir_type *operand, int rank, struct gir_view *view,
                                 bool *good);

bool gir_view_equal(const struct gir_view *a, const struct gir_view *b);

/* What a rule looks up. */
struct gir_lookup {
    int64_t axis;            /* of the region; -1: nothing */
    uint32_t indices;        /* the id of the value of the block that has the numbers */
    const struct rule *rest; /* without that: then the axis has all rows */
};

/* *good is false where the rule takes part of the axis. */
tssa_status *gir_view_lookup(struct ir_graph *graph, const struct rule *rule,
                             struct gir_lookup *lookup, bool *good);

/* How the elements of a value lie that a view sees. */
struct gir_layout {
    int rank;
    bool one[TSSA_MAX_RANK]; /* the axis has one element */
    /* an element and the next one along the axis, in elements; 0: not known */
    int64_t apart[TSSA_MAX_RANK];
};
struct gir_layout gir_view_layout(const struct ir_type *type, const struct rule *rule);

#endif
