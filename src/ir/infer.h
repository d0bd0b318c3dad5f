/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Type and shape inference. Each row of the op table names a rule of the form
 *
 *     tssa_status *infer_xxx(struct ir_graph *graph, struct ir_op *op)
 *
 * that reads the operands' types and known elements and sets the results' (infer_set). A rule is
 * lenient: what it cannot tell stays unknown (unranked, fresh dims). It returns an error only when
 * no run of the op could succeed, and then one line that names the operand and both shapes or
 * types. Operands may have unknown types, and optional ones may be NULL.
 *
 * TSSA_MALFORMED for a model that cannot run, TSSA_OUT_OF_MEMORY. Changes the
 * graph, so one thread at a time.
 */
#ifndef TSSA_IR_INFER_H
#define TSSA_IR_INFER_H

#include "ir/ir.h"

/* Infers every value of the graph, control flow included, in order. */
tssa_status *ir_infer_graph(struct ir_graph *graph);
/* Where the block may never run (it is not `certain`, or one around it was not), what could not run
 * in it is no error, but stays unknown. */
tssa_status *ir_infer_block(struct ir_block *block, bool certain);
/* One op; its blocks too. Prefixes errors with the op's description. */
tssa_status *ir_infer_op(struct ir_op *op);
/* The same for an op that a pass made: when no run of it could succeed, its results' types stay
 * unknown (it may never be run), and that is no error. */
tssa_status *ir_infer_op_lenient(struct ir_op *op);
/* What is known of the op's operands, as a number: it differs from op->inferred_from where
 * inferring the op again may tell more. */
uint64_t ir_infer_stamp(const struct ir_op *op);

/* Signs that a - b can have, as a set. */
enum { INFER_LESS = 1, INFER_EQUAL = 2, INFER_GREATER = 4, INFER_ANY = 7 };

/* The signs for which a comparison holds; INFER_ANY for what is none. */
unsigned infer_signs(enum ir_op_id id);

/* ---- For rules ------------------------------------------------------------------------------- */

/* Who names a rule declares it: the op table, which ops.c alone reads. */
#define INFER_RULE_DECLARED(name)                                                                  \
    tssa_status *infer_##name(struct ir_graph *graph, struct ir_op *op)
#define INFER_RULE(name)                                                                           \
    INFER_RULE_DECLARED(name);                                                                     \
    INFER_RULE_DECLARED(name)

/* The operand's type, or the unknown type when it is absent. */
const struct ir_type *infer_operand_type(const struct ir_graph *graph, const struct ir_op *op,
                                         uint32_t index);
/* dtype of operand `index`; UNDEFINED when unknown. */
tssa_dtype infer_dtype(const struct ir_op *op, uint32_t index);
/* Rank of a tensor operand; -1 when unknown. */
int infer_rank(const struct ir_op *op, uint32_t index);
/* The same of any value; -1 for NULL too. */
int infer_value_rank(const struct ir_value *value);
/* The d-th dim of an operand of known rank. */
const struct dim *infer_dim(const struct ir_op *op, uint32_t index, int d);
/* Sets a result's type (NULL type: out of memory). Results beyond n_results or unwanted are
 * ignored. */
tssa_status *infer_set(struct ir_op *op, uint32_t index, const struct ir_type *type);
/* Dims may be NULL (out of memory); negative ones are an error. */
tssa_status *infer_set_tensor(struct ir_op *op, uint32_t index, tssa_dtype dtype, int rank,
                              const struct dim *const *dims);
tssa_status *infer_set_unranked(struct ir_op *op, uint32_t index, tssa_dtype dtype);
/* A fresh dim; never NULL unless memory runs out. */
const struct dim *infer_fresh(struct ir_op *op);
/* The same, of which is known that it is at most `bound` (NULL: nothing is). */
const struct dim *infer_fresh_below(struct ir_op *op, const struct dim *bound);
/*
 * Have the parts of a SplitToSequence the axis along which it splits? Without it are rows: where
 * there is no `split`, and where that is the number 1, as PyTorch writes unbind and ONNX Runtime
 * reads it, against the standard's text, which ignores keepdims with any `split`. false in *known:
 * only a run can tell.
 */
bool infer_split_keeps_axis(const struct ir_op *op, bool *known);
/* Normalises a possibly negative axis; false when out of range. */
bool infer_find_axis(int64_t axis, int rank, int *result);
/* The same for rules: an error when out of range. */
tssa_status *infer_axis(const struct ir_op *op, int64_t axis, int rank, int *result);
/* All known elements of an integer operand as constants: false when any is not. At most
 * IR_KNOWN_MAX. */
bool infer_const_ints(const struct ir_op *op, uint32_t index, int64_t *values, size_t *count);
/* The operand's tensor when it is a Constant that nobody writes to, else NULL. */
const struct tensor *infer_const_tensor(const struct ir_op *op, uint32_t index);
/* The known elements of an operand, symbolic or not; NULL when untracked. */
const struct ir_known *infer_known(const struct ir_op *op, uint32_t index);
/* An integer or BOOL as a known element; NULL in *dim for one that no dim holds (UINT64 from 2^63
 * on). */
tssa_status *infer_element(struct ir_graph *graph, tssa_dtype dtype, const void *element,
                           const struct dim **dim);
/* Records a result's elements (copied); elements may be NULL one by one. They are numbers of the
 * result's type: who computes them asks wrap_never. */
tssa_status *infer_set_known(struct ir_op *op, uint32_t index, size_t count,
                             const struct dim *const *elements);
/* The numpy broadcast of two dims; error when both are constants that do not fit. */
tssa_status *infer_broadcast_dim(struct ir_op *op, const struct dim *a, const struct dim *b,
                                 const struct dim **result);
/* The numpy broadcast of operands [first, first + count) (absent ones skipped): sets *rank (-1:
 * unknown) and dims[TSSA_MAX_RANK]. */
tssa_status *infer_broadcast(struct ir_op *op, uint32_t first, uint32_t count, int *rank,
                             const struct dim **dims);

/* How many elements ONNX's Slice takes of an axis; NULL bounds and a step of 0 are not known. NULL:
 * unknown. */
const struct dim *infer_slice_length(struct ir_graph *graph, const struct dim *dim,
                                     const struct dim *start, const struct dim *end, int64_t step);

#endif
