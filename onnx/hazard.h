/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hazards: what is legal ONNX, and yet goes wrong in a runtime that people use (hazards.def). The
 * exporter asks here what it writes otherwise; the graph that it writes is only read, so what an op
 * is written as are ops of the exporter's own, in its scratch memory, that are in no block.
 *
 * A hazard is a row and a function in hazards/NAME.c. For nodes that are the model's own nothing is
 * done that changes what they compute in any runtime, or how fast: they are in the model as it was,
 * too.
 */
#ifndef TSSA_ONNX_HAZARD_H
#define TSSA_ONNX_HAZARD_H

#include "onnx/export.h"

enum hazard_id {
#define HAZARD(kind, name, pattern, seen, around, model) HAZARD_##name,
#include "onnx/hazards.def"
#undef HAZARD
    HAZARD_COUNT
};

struct hazard_rewrite;

struct hazard {
    const char *name, *kind, *pattern, *seen, *around, *model;
    /* One of these; `results` is the return of a block. */
    bool (*copy)(const struct ir_op *results, uint32_t index);  /* result `index` must be a copy */
    bool (*shape)(const struct ir_op *results, uint32_t index); /* its shape must be written */
    /* Makes what the op is written as, or nothing. */
    void (*ops)(struct hazard_rewrite *rewrite, const struct ir_op *op);
    void (*folded)(struct hazard_rewrite *rewrite, const struct ir_op *op);
    void (*slow)(struct hazard_rewrite *rewrite, const struct ir_op *op);
};

#define HAZARD(kind, name, ...) HAZARD_FUNCTION_##kind(hazard_##name)
#define HAZARD_FUNCTION_copy(function) bool function(const struct ir_op *results, uint32_t index);
#define HAZARD_FUNCTION_shape(function) bool function(const struct ir_op *results, uint32_t index);
#define HAZARD_FUNCTION_ops(function)                                                              \
    void function(struct hazard_rewrite *rewrite, const struct ir_op *op);
#define HAZARD_FUNCTION_folded(function) HAZARD_FUNCTION_ops(function)
#define HAZARD_FUNCTION_slow(function) HAZARD_FUNCTION_ops(function)
#include "onnx/hazards.def"
#undef HAZARD
#undef HAZARD_FUNCTION_slow
#undef HAZARD_FUNCTION_folded
#undef HAZARD_FUNCTION_ops
#undef HAZARD_FUNCTION_shape
#undef HAZARD_FUNCTION_copy

/* ---- What an op is written as (hazards/emit.c) ----------------------------------------------- */

/* Makers give NULL when memory runs out, and when an operand is such a NULL. */
struct hazard_rewrite {
    struct export *export;
    const struct ir_op *op;
    VEC(const struct ir_op *) made; /* in order; the last one's result is the op's */
    bool failed;                    /* memory ran out */
};

/* The only result, of element type `dtype`, of one more op. */
const struct ir_value *hazard_emit(struct hazard_rewrite *rewrite, enum ir_op_id id,
                                   tssa_dtype dtype, uint32_t n,
                                   const struct ir_value *const *operands);
/* Attributes of the op that was made last; `name` and `text` must live as long as the export. */
void hazard_set_int(struct hazard_rewrite *rewrite, const char *name, int64_t number);
void hazard_set_string(struct hazard_rewrite *rewrite, const char *name, const char *text);
/* Of rank 0. */
const struct ir_value *hazard_bool(struct hazard_rewrite *rewrite, bool truth);
/* INT64 numbers: count is 1 when rank is 0. */
const struct ir_value *hazard_ints(struct hazard_rewrite *rewrite, int rank, size_t count,
                                   const int64_t *numbers);
const struct ir_value *hazard_int(struct hazard_rewrite *rewrite, int rank, int64_t number);

#endif
