/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The recurrences of a loop's body: which of its ops depend, over iterations, on one another.
 *
 * The ops of the body and its carried values are the nodes of a graph, an edge leading from what is
 * computed to what needs it, in this iteration or the next. Its strongly connected components, in
 * an order in which definitions come first, are what may be run as loops of their own (Allen and
 * Kennedy, "Automatic Translation of FORTRAN Programs to Vector Form", 1987). A carried value is in
 * one component with all ops that read it and the one that computes it: values of the iteration
 * before are never read from another component.
 */
#ifndef TSSA_PASSES_ANALYSIS_RECURRENCE_H
#define TSSA_PASSES_ANALYSIS_RECURRENCE_H

#include "ir/ir.h"

struct recurrences {
    struct ir_op *loop;
    const struct ir_block *body;
    uint32_t n_ops, n_carried;
    const struct ir_op **ops; /* of the body, but for its return, in order */
    uint32_t *op_index;       /* by op id: its place in `ops` + 1, or 0 */
    uint32_t *component;      /* by place in `ops`, then by carried value */
    uint32_t n_components;
    bool *is_recurrent; /* by component: it holds a carried value */
};

#define RECURRENCE_NONE UINT32_MAX

/* Of a Loop. recurrences_free in every case. Linear in the size of the body. */
tssa_status *recurrences_find(struct ir_op *loop, struct recurrences *recurrences);
void recurrences_free(struct recurrences *recurrences);

/* The component that a value of the body comes from; NONE for the counter, the condition, and
 * values of enclosing blocks. */
uint32_t recurrence_of_value(const struct recurrences *recurrences, const struct ir_value *value);

/* Calls visit for every operand of an op and of the ops in its blocks; false ends the walk. */
bool recurrence_visit_operands(const struct ir_op *op,
                               bool (*visit)(void *context, struct ir_value *value), void *context);

#endif
