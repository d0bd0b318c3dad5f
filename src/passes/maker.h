/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ops that a pass makes one after the other, before another op. What fails is told in the end:
 * until then NULL is made of NULL, and nothing is made once there is a status.
 */
#ifndef TSSA_PASSES_MAKER_H
#define TSSA_PASSES_MAKER_H

#include "ir/ir.h"
#include "ir/rule_draft.h"

struct pass_maker {
    struct ir_op *at; /* what is made is before it, under its node's name */
    struct ir_graph *graph;
    tssa_status *status; /* who makes the maker takes it */
};

/* Puts the op there, and infers it; its first result. */
struct ir_value *pass_put(struct pass_maker *m, struct ir_op *op);
/* An op of one result and of n operands, the first ones of these; it is not put anywhere. */
struct ir_op *pass_new_op(struct pass_maker *m, enum ir_op_id id, uint32_t n, struct ir_value *a,
                          struct ir_value *b, struct ir_value *c);
struct ir_value *pass_make(struct pass_maker *m, enum ir_op_id id, uint32_t n, struct ir_value *a,
                           struct ir_value *b);
/* With an attribute, of two operands. */
struct ir_value *pass_make_with(struct pass_maker *m, enum ir_op_id id, struct ir_value *a,
                                struct ir_value *b, const char *name, int64_t number);
struct ir_value *pass_make_where(struct pass_maker *m, struct ir_value *condition,
                                 struct ir_value *a, struct ir_value *b);
/* Constants of one element, of rank 0 or 1. */
struct ir_value *pass_make_int(struct pass_maker *m, int rank, int64_t number);
struct ir_value *pass_make_float(struct pass_maker *m, float number);
/* Of any type that has numbers. */
struct ir_value *pass_make_number(struct pass_maker *m, tssa_dtype dtype, double number);
struct ir_value *pass_make_cast(struct pass_maker *m, struct ir_value *x, tssa_dtype to);
/* How long an axis of x is, INT64: a constant where that is known. */
struct ir_value *pass_make_size(struct pass_maker *m, struct ir_value *x, int axis);
/* An access of one step of n params; `param`: its second one, if that is no number. */
struct ir_value *pass_make_access(struct pass_maker *m, struct ir_value *x, enum rule_kind kind,
                                  uint32_t n, const int64_t *numbers, struct ir_value *param);
/* An access by the rule; x where it has no steps. */
struct ir_value *pass_make_rule(struct pass_maker *m, struct ir_value *x,
                                const struct rule_draft *draft);

/* Has all that read a result read the value, under the result's name; nothing where it failed. */
void pass_put_result(struct pass_maker *m, struct ir_value *result, struct ir_value *made);

#endif
