/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What passes ask about a Loop. Operands: trip count, condition, carried values; body: (iteration,
 * condition, carried...) -> (condition, carried..., scan outputs...). Trip count and condition may
 * be absent.
 */
#ifndef TSSA_PASSES_ANALYSIS_LOOPS_H
#define TSSA_PASSES_ANALYSIS_LOOPS_H

#include "ir/ir.h"

struct loop {
    struct ir_op *op;
    struct ir_block *body;
    struct ir_op *ret;
    uint32_t n_carried, n_stacked;
};

enum loop_truth { LOOP_UNKNOWN, LOOP_TRUE, LOOP_FALSE };

static inline struct loop loop_of(struct ir_op *op)
{
    struct loop loop = {.op = op, .body = op->blocks[0], .ret = ir_block_return(op->blocks[0])};
    loop.n_carried = op->n_operands > 2 ? op->n_operands - 2 : 0;
    loop.n_stacked = op->n_results - loop.n_carried;
    return loop;
}

/*
 * The carried value k: before the first iteration, in an iteration, after it, after the last one.
 */
static inline struct ir_value *loop_initial(const struct loop *loop, uint32_t k)
{
    return ir_operand(loop->op, k + 2);
}
static inline struct ir_value *loop_param(const struct loop *loop, uint32_t k)
{
    return loop->body->params[k + 2];
}
static inline struct ir_value *loop_next(const struct loop *loop, uint32_t k)
{
    return ir_operand(loop->ret, k + 1);
}
static inline struct ir_value *loop_final(const struct loop *loop, uint32_t k)
{
    return &loop->op->results[k];
}

/* The only use of the value is this operand of this op. */
static inline bool loop_is_only_use(const struct ir_value *value, const struct ir_op *user,
                                    uint32_t operand)
{
    return value->uses == &user->operands[operand] && !value->uses->next;
}

/* A number that is known of a scalar or a tensor of one element. */
bool loop_known_int(const struct ir_value *value, int64_t *number);
/* Behind Identity and the like. */
struct ir_value *loop_unaliased(struct ir_value *value);
/* The condition before the first iteration (true when absent), and the one that iterations return:
 * true when that is the one they were given. */
enum loop_truth loop_enters(const struct loop *loop);
enum loop_truth loop_stays(const struct loop *loop);
/*
 * How many iterations every run makes, when that is known: INT64_MAX stands for a loop without end.
 */
bool loop_trips(const struct loop *loop, int64_t *trips);
/* Is the number, which a loop around the op counts so that no two iterations have the same one,
 * within 0 ... size - 1 in all of its iterations? */
bool loop_counts_within(const struct ir_op *op, const struct dim *number, const struct dim *size);
/* Is the value made in the loop's body, at any depth, or a parameter there? */
bool loop_makes(const struct loop *loop, const struct ir_value *value);
/* Ops in the block and the blocks in it, but for constants and returns; no more than `limit` are
 * counted. */
uint32_t loop_size(const struct ir_block *block, uint32_t limit);

/*
 * Is the value of the body of the same size in every iteration, and a stack of them not too large?
 */
bool loop_can_stack(const struct loop *loop, const struct ir_value *value);

/* The first carried value that an iteration computes from its value before; NULL: there is none.
 * `whole`: counts only what is computed from a whole carried value, not from regions of it. */
tssa_status *loop_find_recurrence(const struct loop *loop, bool whole,
                                  const struct ir_value **found);

/* Which row of axis 0 an access or assign is of, by a rule of one choice; NULL: it is of no single
 * one, or nobody knows of which. */
const struct dim *loop_row_of(const struct ir_op *op);
/* Is it the type of exactly one row of a tensor of type `of`? */
bool loop_is_row(const struct ir_type *of, const struct ir_type *row);

/* An op of the newest version before `at`, under its node's name; NULL when memory runs out. */
struct ir_op *loop_make_op(struct ir_op *at, enum ir_op_id id, uint32_t n_operands);
/* One of two operands, with its type. */
tssa_status *loop_make_binary(struct ir_op *at, enum ir_op_id id, struct ir_value *a,
                              struct ir_value *b, struct ir_value **result);
/* A Constant of int64 or bool before `at`, with its type. */
tssa_status *loop_make_int(struct ir_op *at, int rank, int64_t number, struct ir_value **result);
tssa_status *loop_make_bool(struct ir_op *at, bool truth, struct ir_value **result);
/* The value with one more axis, before `at`. */
tssa_status *loop_make_unsqueeze(struct ir_op *at, struct ir_value *value, int64_t axis,
                                 struct ir_value **result);
/* Before the loop: its trip count as an i64[] that is not negative and whose number is known as a
 * dim. */
tssa_status *loop_make_trips(const struct loop *loop, struct ir_value **trips);
/* A scan output without rows, as a Constant before `at`. Only of rows whose size is known it can be
 * told. */
bool loop_has_empty(const struct ir_type *row);
tssa_status *loop_make_empty(struct ir_op *at, const struct ir_type *row, struct ir_value **result);
/* All uses of `old` become uses of `by`, which takes the name over when it has none. */
void loop_replace(struct ir_value *old, struct ir_value *by);

#endif
