/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The operations of ir/scalar.def as macros that spell an expression of a table's row as a program:
 * the operands' codes, then the operation's. For the source files that make such tables; they read
 * no other meaning of these names.
 */
#ifndef TSSA_IR_SCALAR_POSTFIX_H
#define TSSA_IR_SCALAR_POSTFIX_H

#include "ir/scalar.h"

enum { INDEX_Y = 1, INDEX_Z = 2 };

/* clang-format off */
#define X {.id = SCALAR_X},
#define Y {.id = SCALAR_Y},
#define Z {.id = SCALAR_Z},
#define A {.id = SCALAR_A},
#define S {.id = SCALAR_S},
#define P(i) {.id = SCALAR_P, .index = (i)},
#define K(constant) {.id = SCALAR_K, .number = (constant)},
#define LOWEST {.id = SCALAR_LOWEST},
#define HIGHEST {.id = SCALAR_HIGHEST},
#define COUNT {.id = SCALAR_COUNT},
#define WHEN(i, a, b) a b {.id = SCALAR_WHEN, .index = (i)},
#define OPT(operand, a) operand a {.id = SCALAR_OPT, .index = INDEX_##operand},
#define LAST(a, b) a b {.id = SCALAR_LAST},
#define SEL(a, b, c) a b c {.id = SCALAR_SEL},
#define ADD(a, b) a b {.id = SCALAR_ADD},
#define SUB(a, b) a b {.id = SCALAR_SUB},
#define MUL(a, b) a b {.id = SCALAR_MUL},
#define DIV(a, b) a b {.id = SCALAR_DIV},
#define MOD(a, b) a b {.id = SCALAR_MOD},
#define FMOD(a, b) a b {.id = SCALAR_FMOD},
#define POW(a, b) a b {.id = SCALAR_POW},
#define MIN(a, b) a b {.id = SCALAR_MIN},
#define MAX(a, b) a b {.id = SCALAR_MAX},
#define NEG(a) a {.id = SCALAR_NEG},
#define ABS(a) a {.id = SCALAR_ABS},
#define SIGN(a) a {.id = SCALAR_SIGN},
#define FLOOR(a) a {.id = SCALAR_FLOOR},
#define CEIL(a) a {.id = SCALAR_CEIL},
#define ROUND(a) a {.id = SCALAR_ROUND},
#define SQRT(a) a {.id = SCALAR_SQRT},
#define EXP(a) a {.id = SCALAR_EXP},
#define EXPM1(a) a {.id = SCALAR_EXPM1},
#define LOG(a) a {.id = SCALAR_LOG},
#define LOG1P(a) a {.id = SCALAR_LOG1P},
#define ERF(a) a {.id = SCALAR_ERF},
#define SIN(a) a {.id = SCALAR_SIN},
#define COS(a) a {.id = SCALAR_COS},
#define TAN(a) a {.id = SCALAR_TAN},
#define ASIN(a) a {.id = SCALAR_ASIN},
#define ACOS(a) a {.id = SCALAR_ACOS},
#define ATAN(a) a {.id = SCALAR_ATAN},
#define SINH(a) a {.id = SCALAR_SINH},
#define COSH(a) a {.id = SCALAR_COSH},
#define TANH(a) a {.id = SCALAR_TANH},
#define ASINH(a) a {.id = SCALAR_ASINH},
#define ACOSH(a) a {.id = SCALAR_ACOSH},
#define ATANH(a) a {.id = SCALAR_ATANH},
#define SIGMOID(a) a {.id = SCALAR_SIGMOID},
#define LT(a, b) a b {.id = SCALAR_LT},
#define LE(a, b) a b {.id = SCALAR_LE},
#define GT(a, b) a b {.id = SCALAR_GT},
#define GE(a, b) a b {.id = SCALAR_GE},
#define EQ(a, b) a b {.id = SCALAR_EQ},
#define ISNAN(a) a {.id = SCALAR_ISNAN},
#define AND(a, b) a b {.id = SCALAR_AND},
#define OR(a, b) a b {.id = SCALAR_OR},
#define XOR(a, b) a b {.id = SCALAR_XOR},
#define NOT(a) a {.id = SCALAR_NOT},
#define BAND(a, b) a b {.id = SCALAR_BAND},
#define BOR(a, b) a b {.id = SCALAR_BOR},
#define BXOR(a, b) a b {.id = SCALAR_BXOR},
#define BNOT(a) a {.id = SCALAR_BNOT},
#define SHL(a, b) a b {.id = SCALAR_SHL},
#define SHR(a, b) a b {.id = SCALAR_SHR},
/* clang-format on */

#endif
