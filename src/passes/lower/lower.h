/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the pass `lower_rules` share: ONNX operators put in front of an access or
 * assign. The makers are for every pass that builds much (then `space` is NULL, which only regions
 * need).
 */
#ifndef TSSA_PASSES_LOWER_LOWER_H
#define TSSA_PASSES_LOWER_LOWER_H

#include "ir/region.h"
#include "passes/pass.h"

/*
 * One access or assign that is being lowered. Makers give NULL after a failure, take such NULLs,
 * and keep the first failure in `status`, so that a caller checks once, at its end.
 */
struct lowering {
    struct pass_context *pass;
    struct ir_graph *graph;
    struct region_space *space;
    struct ir_op *op; /* new ops stand before it, and have its name */
    tssa_status *status;
};

/* ---- Operators ------------------------------------------------------------------------------- */

struct ir_value *lower_emit(struct lowering *l, enum ir_op_id id, uint32_t n,
                            struct ir_value *const *operands);
struct ir_value *lower_binary(struct lowering *l, enum ir_op_id id, struct ir_value *a,
                              struct ir_value *b);
/* mask ? a : b. Where is not made for BOOL in every runtime: logic says the same. */
struct ir_value *lower_choose(struct lowering *l, struct ir_value *mask, struct ir_value *a,
                              struct ir_value *b);
/* With the attribute `axis`. */
struct ir_value *lower_emit_axis(struct lowering *l, enum ir_op_id id, uint32_t n,
                                 struct ir_value *const *operands, int64_t axis);
struct ir_value *lower_transpose(struct lowering *l, struct ir_value *x, int rank,
                                 const int64_t *perm);
/* A Constant; rank 0 or 1. */
struct ir_value *lower_ints(struct lowering *l, int rank, size_t count, const int64_t *values);
struct ir_value *lower_int(struct lowering *l, int64_t value);  /* rank 0 */
struct ir_value *lower_list(struct lowering *l, int64_t value); /* rank 1, one element */
struct ir_value *lower_unsqueeze(struct lowering *l, struct ir_value *x, int n,
                                 const int64_t *axes);
struct ir_value *lower_squeeze(struct lowering *l, struct ir_value *x, int n, const int64_t *axes);
/* x[start:end] of one axis; INT64_MAX: to the end. */
struct ir_value *lower_cut(struct lowering *l, struct ir_value *x, int64_t axis, int64_t start,
                           int64_t end);
/* The same of lists of one element. */
struct ir_value *lower_slice(struct lowering *l, struct ir_value *x, int axis,
                             struct ir_value *start, struct ir_value *end);
struct ir_value *lower_concat(struct lowering *l, uint32_t n, struct ir_value *const *parts,
                              int64_t axis);

/* ---- Numbers and shapes ---------------------------------------------------------------------- */

/* A number that is a constant, or an i64 tensor of rank 1 with one element. */
struct lower_number {
    struct ir_value *value; /* NULL: the constant */
    int64_t number;
};

struct lower_shape {
    int rank;
    struct lower_number dims[TSSA_MAX_RANK];
};

/* The value itself when it is of this type. */
struct ir_value *lower_cast(struct lowering *l, struct ir_value *value, tssa_dtype to);
/* An integer tensor of one element as i64 with this rank (0 or 1). */
struct ir_value *lower_scalar(struct lowering *l, struct ir_value *value, int rank);
/* A param of a rule; `params` are its operands. */
struct lower_number lower_param(struct lowering *l, const struct rule_param *param,
                                struct ir_value *const *params);
struct ir_value *lower_number_list(struct lowering *l, const struct lower_number *number);
/* Dim i of x, a constant where the type has one. */
struct lower_number lower_dim(struct lowering *l, struct ir_value *x, int i);
/* A list of numbers: a Constant, or a Concat. */
struct ir_value *lower_numbers(struct lowering *l, int n, const struct lower_number *numbers);
/* Reshape to dims that are literal: 0 is 0, and there is no -1 beside dims that may be 0. */
struct ir_value *lower_reshape(struct lowering *l, struct ir_value *x,
                               const struct lower_shape *shape);
/* The same to a shape that is known to fit: one dim that only the run knows is said as -1. */
struct ir_value *lower_rearrange(struct lowering *l, struct ir_value *x,
                                 const struct lower_shape *shape);
struct ir_value *lower_flatten(struct lowering *l, struct ir_value *x); /* to rank 1 */

/* ---- Parts ----------------------------------------------------------------------------------- */

/* What a rule reads of x. NULL without a failure: it cannot be said in ONNX. */
struct ir_value *lower_access(struct lowering *l, struct ir_value *x, const struct rule *rule,
                              struct ir_value *const *params);
/* x with s in the region. NULL as above. */
struct ir_value *lower_assign(struct lowering *l, struct ir_value *x, struct ir_value *s,
                              const struct rule *rule, struct ir_value *const *params);

/* The same of a span along this axis (lower_span.c); has the rule any? */
struct ir_value *lower_read_span(struct lowering *l, struct ir_value *x, int axis,
                                 const struct rule_step *step, struct ir_value *const *params);
bool lower_has_spans(const struct rule *rule);

/* Makes Splits of Slices that cut an axis into parts (lower_split.c), in all blocks. */
tssa_status *lower_splits(struct pass_context *pass);

/*
 * Does a session write it without copying what stays, or in one copy? Then it need not be lowered.
 */
tssa_status *lower_is_cheap_write(struct lowering *l, const struct ir_op *op, bool *cheap);

/* Is an assign written together with the next one, which alone uses its result? Both write constant
 * parts of the same axis. */
tssa_status *lower_is_chained(struct lowering *l, const struct ir_op *op, bool *chained);
/* The result of the last of assigns of which each but the last is chained, each writing to the one
 * before. */
tssa_status *lower_chain(struct lowering *l, struct ir_op *const *ops, uint32_t n,
                         struct ir_value **y);

static inline int lower_rank(const struct ir_value *value)
{
    return value && value->type->kind == TYPE_TENSOR ? value->type->rank : -1;
}

#endif
