/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A loop whose iterations do not need each other (parallelize.c): what it carries
 * (parallelize_carried.c, parallelize_scattered.c), what it leaves (parallelize_results.c), and the
 * loop over blocks of its iterations that may be made of it (strip_mine.c).
 */
#ifndef TSSA_PASSES_LOOPS_PARALLELIZE_H
#define TSSA_PASSES_LOOPS_PARALLELIZE_H

#include "base/vec.h"
#include "ir/region.h"
#include "passes/analysis/loops.h"
#include "passes/loops/batch.h"
#include "passes/loops/batch_cost.h"

/* Assigns to one carried tensor in one iteration. */
#define MAX_ASSIGNS 64

enum carried_kind {
    CARRIED_SAME,
    CARRIED_TENSOR,
    CARRIED_SCATTERED,
    CARRIED_REDUCED,
    CARRIED_SUMMED
};

struct carried {
    enum carried_kind kind;
    struct ir_op *assigns[MAX_ASSIGNS]; /* last one first */
    uint32_t n_assigns;
    struct ir_op
        *combine; /* of CARRIED_REDUCED and CARRIED_SUMMED; of CARRIED_SCATTERED, or NULL */
    struct ir_value
        *term;          /* what it adds; of CARRIED_SCATTERED what is written, or combined with */
    struct ir_op *read; /* CARRIED_SCATTERED: the access of what that is combined with, or NULL */
    const char *reduction; /* then: as ONNX calls it */
    bool ordered;          /* CARRIED_SUMMED: the order of the terms matters */
    struct ir_value *sums; /* then: before each iteration, and after the last one */
};

struct parallel {
    struct pass_context *pass;
    struct ir_cloner shared, stacked;
    struct region_space space;
    struct loop loop;
    struct carried *carried;
    struct ir_block *block;            /* the body of a loop over blocks of iterations, or NULL */
    uint32_t nested;                   /* ops in blocks that may still be made */
    VEC(const struct ir_op *) skipped; /* ops that are not computed as they stand */
    VEC(const struct ir_op *) around;  /* loops in which one has gone: what it left is not clean */
    const struct ir_value *blamed;     /* the carried value that keeps the loop */
    const struct ir_op *at;
    const char *reason;
    struct ir_op *begun; /* the last op that was made before what the iterations compute, or NULL */
    bool explained;      /* a remark has said why it stays */
    struct ir_value *question; /* where a run chooses between blocks and the loop; else NULL */
    /* where it chooses between all at once and blocks: what those leave; else NULL */
    struct ir_value **blocks;
    const struct ir_op *last; /* of what is all at once there; blocks stand behind it */
    bool guarded; /* it is computed in a branch that asks first whether it makes an iteration */
};

/*
 * What makes one value of all: exact whatever the order, and a Reduce operator that does the same.
 */
struct reduction {
    enum ir_op_id id, reduce;
    bool truth; /* of bools: reduced as i32 */
};

/* NULL: it is none. */
const struct reduction *reduction_of(const struct ir_op *op);

/* Sets carried[k]; *ok is false, with a reason, when iterations depend on each other through it. */
tssa_status *parallel_check_carried(struct parallel *s, const struct batch *facts, uint32_t k,
                                    bool *ok);

/* A constant bound, or one that depends on the number of iterations, as i64[1]. */
struct ir_value *parallel_slice(struct batch *batch, const struct ir_op *origin,
                                struct ir_value *base, int64_t axis, struct ir_value *start,
                                struct ir_value *end);
/*
 * What the iterations are given as carried value k: by the loop, or by the one over blocks of them.
 */
struct ir_value *parallel_given(const struct parallel *s, uint32_t k);
/*
 * Is carried value k written to, or combined with, row by row, at rows that data tells, and used by
 * nothing else? Sets carried[k].
 */
bool parallel_check_scattered(struct parallel *s, uint32_t k);
/* What it is then after all iterations; NULL: it has no form. */
struct ir_value *parallel_scatter(struct parallel *s, struct batch *batch, uint32_t k);

/* All results of the loop; false when one has no form. */
bool parallel_results(struct parallel *s, struct batch *batch, struct ir_value **results);

/* Computes all iterations before batch->before: *done, and what stands for the results of the loop;
 * else something has no form, as the batch tells. */
tssa_status *parallel_compute(struct parallel *s, struct batch *batch, struct ir_value **results,
                              bool *done);

#endif
