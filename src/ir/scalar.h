/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Element-wise rows as data: what an element of the result is, as a program of scalar operations in
 * postfix order. Each code takes its operands from a stack and leaves one result there; the last
 * one left is the element. All that a code means is in ir/scalar.def.
 *
 *     Relu, MAX(X, K(0)):    X  K(0)  MAX  END
 *
 *     for (const struct scalar_code *code = info->ew->program; code->id != SCALAR_END; code++)
 *         ...
 *
 * Variadic rows are folds: the program computes from X, what the operands before come to, and Y,
 * the next one.
 *
 * Each reader has values of its own, and says what the codes make of them:
 *
 *     dims                 scalar_known.c    one after the other, on a stack
 *     affine elements      element_scalar.c  from the last code back
 *     the sign of zero     zero_sign.c       one after the other; A and folds as well
 *     steps of kernels     gir/scalars.c     one after the other, all of them
 *
 * They share no walk: it is a loop of five lines, and the second one has none. An element is asked
 * for only where it decides (of a selection, the condition and one side): each question costs a
 * share of the reader's budget, and one that fails is what a remark names. What is the same
 * whatever the values are is below: the orders in which comparisons hold, and which numbers are
 * integers.
 */
#ifndef TSSA_IR_SCALAR_H
#define TSSA_IR_SCALAR_H

#include "ir/ir.h"

enum scalar_id {
    SCALAR_END, /* of a program */
#define SCALAR(name, operands, kind, work, meaning) SCALAR_##name,
#include "ir/scalar.def"
#undef SCALAR
    SCALAR_COUNT_OF_IDS
};

enum scalar_kind { SCALAR_KIND_VALUE, SCALAR_KIND_TEST, SCALAR_KIND_TRUTH, SCALAR_KIND_MIXED };

struct scalar_code {
    uint8_t id;    /* scalar_id */
    uint8_t index; /* of P and WHEN: which parameter; of OPT: which operand */
    double number; /* of K */
};

struct scalar_info {
    const char *name;
    uint8_t operands;
    enum scalar_kind kind;
    uint8_t work; /* multiplications that take as long */
};

const struct scalar_info *scalar_info(enum scalar_id id);

/* How two numbers can lie to each other: a set of these, a LESS than b. */
enum { ORDER_LESS = 1, ORDER_EQUAL = 2, ORDER_GREATER = 4, ORDER_ANY = 7 };
/* In which of them the comparison holds; 0: it is none. */
int scalar_orders(enum scalar_id id);
/* Does what holds in the orders `holds` hold of numbers that lie in one of `possible`? 1, 0, or -1
 * when that cannot be told. */
int scalar_holds(int holds, int possible);
/* The integer that a number of a program is; false: it is none, or none that a double tells. */
bool scalar_whole(double number, int64_t *integer);

/* No program needs a larger stack, or is longer. */
#define SCALAR_MAX_STACK 8
#define SCALAR_MAX_CODES 64

/* The parameters of an element-wise op's program, from its attributes. */
tssa_status *scalar_params(const struct ir_op *op, double params[EW_MAX_PARAMS]);
/*
 * Sets what is known of the elements of an element-wise op's result: of INT64, INT32 and BOOL,
 * where the arithmetic leaves the type in no run (ir/wrap.h).
 */
tssa_status *infer_scalar_known(struct ir_op *op);
/*
 * What an INT64 op of one element and of two operands or three computes from these, NULL where one
 * is absent; *out is NULL where it cannot be told. It is told as of an index: what is none that any
 * op would take may wrap around.
 */
tssa_status *scalar_index(const struct ir_op *op, const struct dim *const operands[3],
                          const struct dim **out);
/* Integers of a row with such a parameter are computed in double. */
bool scalar_has_float_params(const struct ew_info *ew);

#endif
