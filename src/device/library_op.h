/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An op of library.def as one call of a library, told from its attributes and the shapes of its
 * operands: for devices whose kernels of such ops are no more than that.
 */
#ifndef TSSA_DEVICE_LIBRARY_OP_H
#define TSSA_DEVICE_LIBRARY_OP_H

#include "device/conv_transpose.h"
#include "device/matmul.h"

enum library_form {
    LIBRARY_NONE,
    LIBRARY_OP_MATMUL,
    LIBRARY_OP_GEMM,
    LIBRARY_OP_CONV,
    LIBRARY_OP_CONV_TRANSPOSE
};

/* The attributes, decoded once. */
struct library_op {
    enum library_form form;
    union {
        struct gemm_transposed gemm;
        struct conv_attrs conv;
        struct conv_transpose_attrs conv_transpose;
    };
};

tssa_status *library_op_decode(const struct ir_op *op, struct library_op *decoded);

/* The value's type as a tensor without elements, where all of its dims are known; false, too, where
 * no tensor can be of it: who multiplies dims of one that exists need not look for overflows. */
bool library_op_dims(const struct ir_value *value, struct tensor *tensor);

/* The problem that every run is, where all dims are known and it is one call; false: it is not. */
bool library_op_known(const struct ir_op *op, struct library_problem *problem);

/* Of a run's operands. *one is false where a call cannot say it: by its form, or its shapes. */
tssa_status *library_op_problem(const struct library_op *op, const struct kernel_args *args,
                                struct library_problem *problem, bool *one);

#endif
