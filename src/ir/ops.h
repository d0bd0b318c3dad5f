/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The op table: everything that tssa knows about an operator stands in one row of ops.def. See
 * docs/adding-an-operator.md. The table is constant: any thread may read it. Headers that many
 * include ask functions, and do not include ops.def: else a change of one row would compile
 * everything again.
 */
#ifndef TSSA_IR_OPS_H
#define TSSA_IR_OPS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/dtype.h"
#include "base/status.h"
#include "ir/op_ids.h" /* made by cmake/op_ids.cmake: enum ir_op_id, IR_OP_ and the id of each row */

struct ir_graph;
struct ir_op;

enum ir_op_class {
    IR_CLASS_INTERNAL, /* return, opaque */
    IR_CLASS_ELEMENTWISE,
    IR_CLASS_REDUCTION, /* reductions and scans along an axis */
    /* results are elements of the operands, rearranged: views, concat, pad, ... */
    IR_CLASS_MOVEMENT,
    IR_CLASS_GENERATOR, /* no tensor operand but shapes: Range, EyeLike, Constant, ... */
    IR_CLASS_GATHER,
    IR_CLASS_SCATTER,
    IR_CLASS_MUTATION,    /* views, writes and updates: gone after conversion */
    IR_CLASS_CONTRACTION, /* many flops per byte: MatMul, Conv, ... */
    IR_CLASS_WINDOW,      /* pooling and resampling */
    IR_CLASS_NORMALIZATION,
    IR_CLASS_RECURRENT,
    IR_CLASS_SELECTION, /* data-dependent choice: TopK, NonZero, NMS, Unique */
    IR_CLASS_CONTROL,
    IR_CLASS_SEQUENCE, /* sequences and optionals */
    IR_CLASS_QUANTIZATION,
    IR_CLASS_STRING
};

enum ir_op_flags {
    IR_PURE = 1,      /* same operands, same results; no effects */
    IR_ALIAS = 2,     /* result 0 may share operand 0's storage unchanged (Reshape, Identity) */
    IR_SHAPE = 4,     /* reads its operand's shape only, never its elements */
    IR_UPDATE = 8,    /* result 0 is operand 0 with some elements changed: may be done in place */
    IR_ISOLATED = 16, /* its blocks read nothing but their parameters */
    /* every element of its results is one of operand 0's; the rows of MOVE have it */
    IR_MOVES = 32,
    /* result 0 may lie where operand 0 lay, if its elements are as many and as long */
    IR_OVER = 64,
    IR_RANDOM = 128 /* may be told to give other results each time */
};

/*
 * In the flags of a row: the operator has an attribute "axis", which is this where nobody says what
 * it is, and was another one before some version of it. ir_op_axis (ir/ir.h) asks.
 */
#define IR_AXIS(axis) (((uint32_t)(axis) + IR_AXIS_BIAS) << 8)
#define IR_AXIS_BEFORE(version, axis)                                                              \
    ((uint32_t)(version) << 16 | ((uint32_t)(axis) + IR_AXIS_BIAS) << 12)
#define IR_AXIS_BIAS 4

#define IR_VARIADIC 255

/* What element type an element-wise op's result has, and which its operands must have. */
enum ew_result {
    EW_SAME,  /* all operands of one type, the result too */
    EW_BOOL,  /* all operands of one type, a BOOL result */
    EW_FIRST, /* operands of any legal types, the result has the first one's */
    EW_WHERE  /* a BOOL operand, then operands of one type, which the result has */
};

/* An attribute of an element-wise op, read as a number: P(i) of its expression. */
enum ew_param_kind {
    EW_PARAM_FLOAT,
    EW_PARAM_INT,
    EW_PARAM_CHOICE,  /* a string: 0 for `first`, the default; 1 for `second` */
    EW_PARAM_REQUIRED /* the same without a default */
};

struct ew_param {
    const char *name; /* NULL ends the list */
    enum ew_param_kind kind;
    double fallback;
    const char *first, *second; /* of a choice */
};

#define EW_MAX_PARAMS 4

struct scalar_code;

/* What an EW row has besides the columns of every row. */
struct ew_info {
    enum ew_result result;
    const struct ew_param *params;
    const struct scalar_code *program; /* what an element is; see ir/scalar.h */
};

struct reduction_info;

typedef tssa_status *(*ir_infer_fn)(struct ir_graph *graph, struct ir_op *op);
struct rule_draft;
typedef bool (*ir_rule_fn)(const struct ir_op *op, struct rule_draft *draft);

struct ir_op_info {
    enum ir_op_id id;
    const char *domain; /* "" is ai.onnx; "tssa" for our own */
    const char *name;
    const uint8_t *versions;            /* since-versions, ascending, 0-terminated */
    uint8_t min_operands, max_operands; /* IR_VARIADIC: no limit */
    uint8_t min_results, max_results;
    enum ir_op_class cls;
    uint32_t flags;   /* and axes: IR_AXIS */
    dtype_mask types; /* legal element types of operand 0 (of operand 1 for EW_WHERE) */
    ir_infer_fn infer;
    const struct ew_info *ew; /* NULL for ops that are not element-wise rows */
    const struct reduction_info
        *reduction;  /* what Reduce* make of a set: ir/reduction.h; or NULL */
    ir_rule_fn rule; /* the access that the op is of operand 0: rule_draft.h; NULL for other ops */
};

const struct ir_op_info *ir_op_info(enum ir_op_id id);
/* NULL when tssa has no row for it. */
const struct ir_op_info *ir_op_lookup(const char *domain, const char *name);
/* What the attribute "axis" is where nobody says, in a version of the operator; 0 is the newest.
 * False, and 0: there is no such attribute, or its absence means something else. */
bool ir_op_default_axis(const struct ir_op_info *info, int version, int *axis);
/* The since-version that an import of `opset` binds to; 0 when the operator did not exist yet. */
int ir_op_bind(const struct ir_op_info *info, int64_t opset);

/* The newest opset of ai.onnx and IR version that tssa knows (ONNX 1.22.0). */
#define IR_NEWEST_OPSET 27
#define IR_NEWEST_ML_OPSET 5
#define IR_NEWEST_IR_VERSION 13

/* Sets of element types used by rows. */
#define T_F32F64 (DTYPE_BIT(TSSA_FLOAT) | DTYPE_BIT(TSSA_DOUBLE))
#define T_FLOAT (T_F32F64 | DTYPE_BIT(TSSA_FLOAT16) | DTYPE_BIT(TSSA_BFLOAT16))
#define T_FLOAT8                                                                                   \
    (DTYPE_BIT(TSSA_FLOAT8E4M3FN) | DTYPE_BIT(TSSA_FLOAT8E4M3FNUZ) | DTYPE_BIT(TSSA_FLOAT8E5M2) |  \
     DTYPE_BIT(TSSA_FLOAT8E5M2FNUZ))
#define T_SINT                                                                                     \
    (DTYPE_BIT(TSSA_INT8) | DTYPE_BIT(TSSA_INT16) | DTYPE_BIT(TSSA_INT32) | DTYPE_BIT(TSSA_INT64))
#define T_UINT                                                                                     \
    (DTYPE_BIT(TSSA_UINT8) | DTYPE_BIT(TSSA_UINT16) | DTYPE_BIT(TSSA_UINT32) |                     \
     DTYPE_BIT(TSSA_UINT64))
#define T_INT (T_SINT | T_UINT)
#define T_BOOL DTYPE_BIT(TSSA_BOOL)
#define T_STRING DTYPE_BIT(TSSA_STRING)
#define T_NUMERIC (T_FLOAT | T_INT)
#define T_I64 DTYPE_BIT(TSSA_INT64)
#define T_I32I64 (DTYPE_BIT(TSSA_INT32) | T_I64)
#define T_I8U8 (DTYPE_BIT(TSSA_INT8) | DTYPE_BIT(TSSA_UINT8))
#define T_NARROW                                                                                   \
    (DTYPE_BIT(TSSA_INT4) | DTYPE_BIT(TSSA_UINT4) | DTYPE_BIT(TSSA_INT2) | DTYPE_BIT(TSSA_UINT2))
/* An attribute that sessions give ops of images, where their kernels know it: 1: channels are the
 * last axis of operand 0 and of the result, not the second. */
#define IR_CHANNELS_LAST "channels_last"

/* What QuantizeLinear makes. */
#define T_QUANTIZED                                                                                \
    (DTYPE_BIT(TSSA_INT8) | DTYPE_BIT(TSSA_UINT8) | DTYPE_BIT(TSSA_INT16) |                        \
     DTYPE_BIT(TSSA_UINT16) | T_NARROW | T_FLOAT8 | DTYPE_BIT(TSSA_FLOAT4E2M1))
/* Every real number, however few bits it has, and BOOL. */
#define T_REAL                                                                                     \
    (T_NUMERIC | T_BOOL | T_NARROW | T_FLOAT8 | DTYPE_BIT(TSSA_FLOAT4E2M1) |                       \
     DTYPE_BIT(TSSA_FLOAT8E8M0))
#define T_ANY (((dtype_mask)1 << TSSA_DTYPE_COUNT) - 2)

#endif
