/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All iterations of a loop body at once: every value that differs between iterations becomes one
 * tensor with an axis in front, as long as there are iterations. The new ops stand before the loop;
 * when an op of the body has no rule, they can be taken back.
 *
 *     struct batch batch;
 *     batch_init(&batch, pass, ..., loop, trips);
 *     batch_share(&batch, param, value);            for parameters that are the same in all
 *                                                   iterations
 *     TRY(batch_body(&batch, &done));               done: all ops that are needed have a batched
 *                                                   form
 *     value = batch_get(&batch, y, &batched);
 *     batch_undo(&batch);                           when it came to nothing
 *
 * Results have the bits of the loop's, but for matrix products and sums of floats, which may be
 * added up in another order.
 */
#ifndef TSSA_PASSES_LOOPS_BATCH_H
#define TSSA_PASSES_LOOPS_BATCH_H

#include "ir/clone.h"
#include "ir/rule.h"
#include "passes/pass.h"

struct batch {
    struct pass_context *pass;
    struct ir_graph *graph;
    struct ir_op *before; /* new ops go before this one: the loop */
    struct ir_op *mark;   /* the op that was before it at first, or NULL */
    struct ir_block *body;
    struct ir_value *trips;    /* i64[], not negative, outside the loop */
    const struct dim *n_trips; /* the same as a dim */
    struct ir_value *first;    /* of a block of the iterations: i64[], where it begins; or NULL */
    const struct dim *n_all;   /* as many iterations as there are in all blocks */
    const struct dim *counter; /* the iteration's number in facts about the body */
    struct ir_value *trips_1d, *range; /* i64[1] and i64[trips], made when they are needed */
    bool may_be_empty;  /* zero iterations cannot be ruled out: ops that could fail are not run */
    bool empty_matters; /* ... and something was refused for that */
    /* What stands for values of the body outside: the same in all iterations, or with the axis. */
    struct ir_cloner *shared, *stacked;
    tssa_status *status;                 /* the first failed allocation */
    uint32_t nested;                     /* ops in blocks of the body that may still be made */
    const struct ir_op *blamed;          /* the op that has no batched form */
    const struct ir_value *blamed_value; /* what decides that, or NULL */
    const char *reason;
};

/* Blocks in blocks are tried again and again: what all loops of a pass may make in them. */
#define BATCH_MAX_NESTED 16384

/* The cloners are the caller's, who may use them for one loop after the other. */
tssa_status *batch_init(struct batch *batch, struct pass_context *pass, struct ir_cloner *shared,
                        struct ir_cloner *stacked, struct ir_op *loop, struct ir_value *trips);
void batch_undo(struct batch *batch);

/* `value` of the body is `outer` in every iteration. */
tssa_status *batch_share(struct batch *batch, struct ir_value *value, struct ir_value *outer);
/* `value` of the body is row i of `stacked` in iteration i. */
tssa_status *batch_stack(struct batch *batch, struct ir_value *value, struct ir_value *stacked);

/* The ops of the body that `value` is made by. What they make is not made again by batch_body. */
tssa_status *batch_slice(struct batch *batch, const struct ir_value *value, bool *done);
/* All ops of the body but those in `skip`. */
tssa_status *batch_body(struct batch *batch, const struct ir_op *const *skip, size_t n_skip,
                        bool *done);
/* What stands for a value: with the axis in front when *batched. NULL: it was not made. */
struct ir_value *batch_get(const struct batch *batch, const struct ir_value *value, bool *batched);
/* The same, with the axis in any case. NULL with batch->status, or without when it cannot be. */
struct ir_value *batch_stacked(struct batch *batch, const struct ir_value *value,
                               const struct ir_op *origin);

/* ---- For control flow ------------------------------------------------------------------------ */

/* All ops that a block in the body needs, made before batch->before; false as for rules. */
bool batch_ops(struct batch *batch, const struct ir_block *block);
/* An If or a Loop with a value that differs between iterations (batch_control.c). */
bool batch_control(struct batch *batch, const struct ir_op *op);
/* Remembers the first op without a form, and why; returns false. */
bool batch_refuse(struct batch *batch, const struct ir_op *op, const char *reason);
/* The same because of one of the op's operands. */
bool batch_refuse_operand(struct batch *batch, const struct ir_op *op, uint32_t index,
                          const char *reason);
/* Zero iterations cannot be ruled out. To be asked where nothing else is in the way: it is
 * remembered. */
static inline bool batch_may_be_empty(struct batch *batch)
{
    batch->empty_matters |= batch->may_be_empty;
    return batch->may_be_empty;
}
/* Infers an op that was put somewhere; false when that fails. */
bool batch_infer(struct batch *batch, struct ir_op *op);

/* ---- For rules ------------------------------------------------------------------------------- */

/* A rule makes the batched form of an op with at least one batched operand; false: it has none. */
typedef bool (*batch_rule)(struct batch *batch, const struct ir_op *op);
/* NULL: no rule. Element-wise ops have one too. */
batch_rule batch_find_rule(const struct ir_op *op);

/*
 * Makers put the op before the loop, infer it, and return NULL when that fails or memory runs out.
 */
struct ir_op *batch_make(struct batch *batch, const struct ir_op *origin, enum ir_op_id id,
                         uint32_t n_operands, struct ir_value *const *operands);
/* The same, not put anywhere yet: for ops that get attributes first. */
struct ir_op *batch_new(struct batch *batch, const struct ir_op *origin, enum ir_op_id id,
                        uint32_t n_operands, struct ir_value *const *operands);
/* Remembers that memory ran out; returns false. */
bool batch_out_of_memory(struct batch *batch);
/* A copy of `op` without its operands, not put anywhere yet, and putting it there. */
struct ir_op *batch_copy(struct batch *batch, const struct ir_op *op);
bool batch_put(struct batch *batch, struct ir_op *op);
struct ir_value *batch_ints(struct batch *batch, int rank, size_t count, const int64_t *values);
/* An i64[]; and an op on two values, of which one may be NULL where memory ran out. */
struct ir_value *batch_number(struct batch *batch, int64_t value);
struct ir_value *batch_arithmetic(struct batch *batch, const struct ir_op *origin, enum ir_op_id id,
                                  struct ir_value *a, struct ir_value *b);
/* The same for the sake of no op of the body. */
struct ir_value *batch_binary(struct batch *batch, enum ir_op_id id, struct ir_value *a,
                              struct ir_value *b);
struct ir_value *batch_unsqueeze(struct batch *batch, const struct ir_op *origin,
                                 struct ir_value *value, int first, int count);
struct ir_value *batch_permute(struct batch *batch, const struct ir_op *origin,
                               struct ir_value *value, const int64_t *perm);
/* The axis at `from` becomes the axis at `to`. */
struct ir_value *batch_move_axis(struct batch *batch, const struct ir_op *origin,
                                 struct ir_value *value, int from, int to);
struct ir_value *batch_flat_index(struct batch *batch, const struct ir_op *origin,
                                  struct ir_value *index);
struct ir_value *batch_trips_1d(struct batch *batch);
/* factor * i + offset for the first iteration, as i64[]. */
struct ir_value *batch_start(struct batch *batch, const struct ir_op *origin, int64_t factor,
                             int64_t offset);
/* The numbers of the iterations: 0, 1, ... where they are all. */
struct ir_value *batch_range(struct batch *batch);
struct ir_value *batch_concat(struct batch *batch, const struct ir_op *origin, int64_t axis,
                              uint32_t n, struct ir_value *const *parts);
/* A shape that begins with the number of iterations, as an operand. */
struct ir_value *batch_shape(struct batch *batch, size_t count, const int64_t *dims);
/* Checks at run time that axis 0 is as long as there are iterations. */
struct ir_value *batch_check(struct batch *batch, const struct ir_op *origin,
                             struct ir_value *value);
bool batch_set_int(struct batch *batch, struct ir_op *op, const char *name, int64_t value);
bool batch_set_ints(struct batch *batch, struct ir_op *op, const char *name, size_t count,
                    const int64_t *values);
/* `to` stands for the op's result. */
bool batch_define(struct batch *batch, const struct ir_op *op, uint32_t result, struct ir_value *to,
                  bool batched);

/* value = *factor * iteration + *offset in every run, both constants. */
bool batch_affine(const struct batch *batch, const struct dim *value, int64_t *factor,
                  int64_t *offset);
/* Is a param of op's rule n - 1 - iteration, of n iterations? */
bool batch_is_reversed(const struct batch *batch, const struct ir_op *op,
                       const struct rule_param *index);
/*
 * The rule of `op` (access or assign) over all iterations: its region has the axis in front. Its
 * params are outside the loop. false: it has none.
 */
struct batch_region {
    const struct rule *rule;
    struct ir_value *params[IR_VARIADIC];
    uint32_t n_params;
    /* the run fails where an index is outside the tensor, or none is; else the region is cut there
     */
    bool in_range;
};
struct batch_region *batch_new_region(struct batch *batch);
bool batch_region(struct batch *batch, const struct ir_op *op, bool base_batched,
                  const struct ir_type *base, struct batch_region *region);

#endif
