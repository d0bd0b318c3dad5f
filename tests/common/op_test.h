/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One op in a graph of its own, with constant operands: inferred, run by its CPU kernel, and the results
 * held against the inferred types. For tests of kernels.
 *
 *     struct op_test t;
 *     op_test_begin(&t, IR_OP_Softmax, 13);
 *     op_test_int(&t, "axis", 0);
 *     op_test_in(&t, TSSA_FLOAT, 2, (const int64_t[]){2, 3}, data);
 *     op_test_run(&t, 1);
 *     ... t.out[0].tensor ...
 *     op_test_end(&t);
 */
#ifndef TSSA_TESTS_OP_TEST_H
#define TSSA_TESTS_OP_TEST_H

#include "device/kernel.h"

#define OP_TEST_MAX 16

struct op_test {
    struct ir_graph *graph;
    enum ir_op_id id;
    int version;
    struct pool pool;
    struct arena arena;
    struct team team;
    uint32_t n_attrs, n_in;
    struct ir_attr attrs[OP_TEST_MAX];
    struct value in[OP_TEST_MAX]; /* TSSA_KIND_NONE: absent */
    struct value out[OP_TEST_MAX];
};

/* version 0: the newest. */
void op_test_begin(struct op_test *t, enum ir_op_id id, int version);
void op_test_int(struct op_test *t, const char *name, int64_t value);
void op_test_float(struct op_test *t, const char *name, float value);
void op_test_str(struct op_test *t, const char *name, const char *value);
/* `values` must live until the run. */
void op_test_ints(struct op_test *t, const char *name, size_t count, const int64_t *values);
/* The next operand; `data` must live until the run. */
void op_test_in(struct op_test *t, tssa_dtype dtype, int rank, const int64_t *dims,
                const void *data);
void op_test_absent(struct op_test *t);
/* Fails the test on an error, or when a result is not of the type that inference gave. */
void op_test_run(struct op_test *t, uint32_t n_out);
/* Wants inference or the kernel to refuse. */
void op_test_refused(struct op_test *t, uint32_t n_out);
void op_test_end(struct op_test *t);

/* Pseudo-random floats in [-1, 1), the same for the same seed. */
void op_test_fill(float *values, size_t count, uint32_t seed);
/* |a - b| <= tolerance * (1 + |b|), or the same infinity, or both NaN; else the test fails. */
void op_test_close(double actual, double expected, double tolerance, const char *what,
                   size_t index);

#endif
