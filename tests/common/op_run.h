/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the CPU kernel of one op on values of a test's making.
 *
 *     struct op_run run;
 *     op_begin(&run, IR_OP_Softmax, 13);
 *     op_int(&run, "axis", 0);
 *     op_add(&run, TSSA_FLOAT, 2, (const int64_t[]){2, 3}, data);
 *     op_go(&run);
 *     ... run.outputs[0].tensor ...
 *     op_close(&run);
 */
#ifndef TSSA_TESTS_COMMON_OP_RUN_H
#define TSSA_TESTS_COMMON_OP_RUN_H

#include "device/kernel.h"

#define OP_RUN_MAX 20 /* inputs or outputs */

struct op_run {
    struct ir_graph *graph;
    struct ir_op *op;
    struct arena arena; /* of inputs, states and strings */
    struct pool pool;
    struct kernel_env env;
    uint32_t n_inputs, n_outputs;
    struct value inputs[OP_RUN_MAX]; /* kind NONE: absent, unless present[i] */
    bool present[OP_RUN_MAX];
    struct value outputs[OP_RUN_MAX];
};

/* Numbers that are the same in every run of the tests. */
struct random {
    uint64_t state;
};
uint64_t random_bits(struct random *random);
/* In [low, high]. */
int64_t random_int(struct random *random, int64_t low, int64_t high);
bool random_chance(struct random *random, int percent);

/* Floats in [-1, 1), the same for the same seed. */
void random_floats(float *values, size_t count, uint32_t seed);
/* |actual - expected| <= tolerance * (1 + |expected|), or the same infinity, or both NaN; else the
 * test fails. */
void expect_close(double actual, double expected, double tolerance, const char *what, size_t index);

/* Version 0: the newest. One output and no inputs yet: see op_add, op_absent, op_outputs. */
void op_begin(struct op_run *run, enum ir_op_id id, int version);
void op_outputs(struct op_run *run, uint32_t n_outputs);
/* The newest version, with inputs that are absent unless they are set by number. */
void op_open(struct op_run *run, enum ir_op_id id, uint32_t n_inputs, uint32_t n_outputs);
/* Releases everything; fails the test when a buffer is still in use. */
void op_close(struct op_run *run);
/* Any attribute; what it points to must live until the last run, but for that of op_ints. */
void op_attr(struct op_run *run, struct ir_attr attr);
void op_int(struct op_run *run, const char *name, int64_t value);
void op_float(struct op_run *run, const char *name, float value);
void op_ints(struct op_run *run, const char *name, size_t count, const int64_t *values);
void op_string(struct op_run *run, const char *name, const char *value);
void op_tensor(struct op_run *run, const char *name, const struct tensor *value);

/* The next input; `data` must live until the last run. */
void op_add(struct op_run *run, tssa_dtype dtype, int rank, const int64_t *dims, const void *data);
/* The next input is absent. */
void op_absent(struct op_run *run);
/* An input by number, with room for its elements, not set. */
struct tensor *op_input(struct op_run *run, uint32_t index, tssa_dtype dtype, int rank,
                        const int64_t *dims);
/* With random elements of any bit pattern; strings are taken from a small set. */
struct tensor *op_random(struct op_run *run, uint32_t index, struct random *random,
                         tssa_dtype dtype, int rank, const int64_t *dims);
/* A list, or with rank 0 a scalar, of integers. */
struct tensor *op_input_ints(struct op_run *run, uint32_t index, tssa_dtype dtype, int rank,
                             int64_t count, const int64_t *values);

/* Runs the kernel on operands of which nothing is known; outputs of an earlier run are released. */
tssa_status *op_try(struct op_run *run);
/* Fails the test when there is no error, or one that does not contain `text`. */
void op_fails(struct op_run *run, const char *text);
/* Infers the op's types from the inputs, then runs the kernel. Fails the test on an error, and when
 * an output is not of the type inferred. */
void op_go(struct op_run *run);

/* The same with a kernel that is prepared for operands which are all constants. */
void op_go_known(struct op_run *run);

/* Fails the test unless output `index` is a tensor of this shape. */
const struct tensor *op_output(struct op_run *run, uint32_t index, tssa_dtype dtype, int rank,
                               const int64_t *dims);
void op_expect_ints(struct op_run *run, uint32_t index, int rank, const int64_t *dims,
                    const int64_t *values);

/*
 * Fails the test unless output `index` has this shape and each element is the one of x that
 * `source` tells, by its row-major number; -1: the bytes at `fill`.
 */
typedef int64_t (*op_source)(const void *context, const int64_t *coordinates);
void op_expect_moved(struct op_run *run, uint32_t index, const struct tensor *x, int rank,
                     const int64_t *dims, op_source source, const void *context, const void *fill);

/* Row-major number of coordinates, and back. */
int64_t flat_index(int rank, const int64_t *dims, const int64_t *coordinates);
void unflatten(int rank, const int64_t *dims, int64_t number, int64_t *coordinates);

#endif
