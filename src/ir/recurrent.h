/* SPDX-License-Identifier: Apache-2.0 */
/* RNN, GRU and LSTM (ai.onnx 1 to 22): what tells them apart, and what their attributes say. */
#ifndef TSSA_IR_RECURRENT_H
#define TSSA_IR_RECURRENT_H

#include "ir/ir.h"

#define RECURRENT_MAX_DIRECTIONS 2
#define RECURRENT_MAX_FUNCTIONS 3

enum recurrent_kind { RECURRENT_RNN, RECURRENT_GRU, RECURRENT_LSTM };

/* Operands; P is LSTM's alone, as C0 is. */
enum recurrent_operand {
    RECURRENT_X,
    RECURRENT_W,
    RECURRENT_R,
    RECURRENT_B,
    RECURRENT_LENGTHS,
    RECURRENT_H0,
    RECURRENT_C0,
    RECURRENT_P,
    RECURRENT_OPERANDS
};

/* What tells the three apart. */
struct recurrent_cell {
    enum recurrent_kind kind;
    int64_t gates;
    size_t n_functions; /* of each direction */
};

enum recurrent_function_id {
#define SAME(name, ...) RECURRENT_##name,
#define DIFFERENT SAME
#include "ir/recurrent.def"
#undef SAME
#undef DIFFERENT
};

struct recurrent_function_info {
    const char *name;
    enum ir_op_id op; /* the element-wise operator that it is; IR_OP_COUNT: none */
    bool has_alpha, has_beta;
    double alpha, beta; /* where they are not given */
};

/* An activation. */
struct recurrent_function {
    enum recurrent_function_id id;
    double alpha, beta; /* where it has them */
};

struct recurrent_attrs {
    int64_t hidden; /* 0: not given */
    int64_t directions;
    bool reverse; /* of the first direction; the second is always reversed */
    bool batch_first, input_forget, linear_before_reset;
    double clip; /* infinite: none */
    /* cell.n_functions of each direction, one direction after the other */
    struct recurrent_function functions[RECURRENT_MAX_DIRECTIONS * RECURRENT_MAX_FUNCTIONS];
};

/* NULL: it is another op. */
const struct recurrent_cell *recurrent_cell_of(const struct ir_op *op);

/*
 * The lists of alphas and betas are read in order, by those functions only that have such a
 * parameter. TSSA_MALFORMED, TSSA_UNSUPPORTED (an activation that is none).
 */
tssa_status *recurrent_decode(const struct ir_op *op, const struct recurrent_cell *cell,
                              struct recurrent_attrs *attrs);

const struct recurrent_function_info *recurrent_function_info(enum recurrent_function_id id);

#endif
