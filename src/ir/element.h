/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Element functions: what an element of an integer tensor is, as an affine expression of where it
 * stands. This is how an index tensor that an exporter built from Range, Expand, Concat, ... is
 * proven to be "column 2 of every row".
 *
 * Expressions are over the coordinates of a space: the positions of a Scatter's updates, say. An
 * element is asked for at a place, which gives every axis of the tensor a coordinate, an expression
 * itself. The question then moves through the op that made the tensor to its operands, and ends at
 * constants, ranges, known elements and scalars that only a run can tell (a loop's counter).
 *
 *     offset + scale * scalar + factor[0] * coordinate 0 + factor[1] * coordinate 1 + ...
 *
 * Nothing here changes the graph. What is proven holds in every run that gets this far.
 */
#ifndef TSSA_IR_ELEMENT_H
#define TSSA_IR_ELEMENT_H

#include "ir/ir.h"

struct element {
    const struct dim *offset;
    struct ir_value *scalar; /* one element, unknown; NULL: none, and scale is 0 */
    int64_t scale;
    /*
     * A tensor of one element that holds offset + scale * scalar, when there is one in the graph.
     */
    struct ir_value *witness;
    const struct dim *factors[TSSA_MAX_RANK]; /* NULL: 0 */
};

struct element_space {
    int rank;
    const struct dim *extents[TSSA_MAX_RANK]; /* coordinate i is in [0, extents[i]) */
    /* Where the question is asked: the loops around it are in an iteration. NULL: nowhere in
     * particular. */
    const struct ir_block *block;
};

/* Why an element is not known: the value of which nothing more could be said. */
struct element_doubt {
    const struct ir_value *value;
};

/* A coordinate of the space, and a number. false: out of memory. */
bool element_coordinate(struct ir_graph *graph, int axis, struct element *element);
bool element_number(struct ir_graph *graph, int64_t number, struct element *element);

/*
 * The element of `value` at the place `at`, one expression per axis. *proven tells whether it is
 * known; if not, `doubt` says why.
 */
tssa_status *element_read(struct ir_graph *graph, const struct element_space *space,
                          struct ir_value *value, const struct element *at, struct element *element,
                          bool *proven, struct element_doubt *doubt);

/*
 * Where the element was before ops moved it: the result of an op of this kind, at `origin_at`.
 * *origin is NULL where it came from something else, or was computed on the way.
 */
tssa_status *element_trace(struct ir_graph *graph, const struct element_space *space,
                           struct ir_value *value, const struct element *at, enum ir_op_id id,
                           struct ir_value **origin, struct element *origin_at);
/* The coordinate that the element is, alone; -1: it is more than that, or none. */
int element_coordinate_of(const struct element *element, const struct element_space *space);

/* true and *value when the element is the same number everywhere. */
bool element_is_number(const struct element *element, int64_t *value);
/* Bounds of the element over the whole space, NULL where none is known. An empty space has any. */
const struct dim *element_least(struct ir_graph *graph, const struct element_space *space,
                                const struct element *element);
const struct dim *element_most(struct ir_graph *graph, const struct element_space *space,
                               const struct element *element);
/* Is 0 <= element < dim everywhere? */
bool element_within(struct ir_graph *graph, const struct element_space *space,
                    const struct element *element, const struct dim *dim);

#endif
