/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which ops of a block become one kernel, for the pass `fuse`.
 *
 * A part is a set of ops over one iteration space, the dims of its results; values of fewer dims,
 * or of dims of size one, are broadcast into it. Ops begin as parts of their own and join, in the
 * order of the block, where
 *
 *   - no path leads out of what would be one part and back: parts, and the ops in none, stay
 *     without cycles;
 *   - the spaces are equal, or one is broadcast into the other and nobody else reads what is
 *     computed there, or is that of the rows which the other one has (ir/row.h): all that needs a
 *     row needs the same one then, or that of columns (ir_column_axis), or of their elements,
 *     unless columns are so long that nobody would walk them again;
 *   - its running sums (ir_scan_axis), if it has any, all go along the same axis in the same
 *     direction, and there are neither rows nor columns, nor assigns or Concats;
 *   - nothing in it reads what is kept by a mask (ir_fuse_keeps), which is of another size, and
 *     where anything is kept there are neither rows nor columns;
 *   - it is not slower by the model of ir/cost.h.
 *
 * What an access, a Concat or a gather reads, rows of which some are kept, what an assign writes
 * into the region, indices, and the numbers in rules come from outside of the part: they are needed
 * at other places than where they are computed. Where kernels compute what is needed where it is
 * needed (ir_fusion.moves_inside), a part takes in another one all the same, if it alone reads what
 * that computes, but for the numbers, and no rows are computed there.
 *
 * Last, where one launch may do what several would (ir_fusion.side_by_side), parts of any spaces
 * join of which neither needs the other; and others than the part may read what it takes in: that
 * is computed for them besides. Where a kernel has all of a row at hand (ir_fusion.row_parts),
 * parts of rows are in the kernel of the rows, be they as long as they like.
 */
#ifndef TSSA_PASSES_LOWER_FUSE_H
#define TSSA_PASSES_LOWER_FUSE_H

#include "base/vec.h"
#include "ir/clone.h"
#include "ir/cost.h"
#include "passes/pass.h"

/* So many parts are open at a time: those before take nothing any more. A limit, so that time is
 * linear. */
#define FUSE_OPEN 512

/* Operands of a kernel, at most, whatever ir_fusion.most_operands is. */
#define FUSE_OPERANDS 64

#define FUSE_NO_PART UINT32_MAX

/* Of open parts, numbered from the oldest one. */
struct fuse_set {
    uint64_t words[FUSE_OPEN / 64];
};

struct fuse_part {
    uint32_t joined;            /* the part that it belongs to now: its own number where to none */
    uint32_t n_ops;             /* but for views */
    bool is_used;               /* something that it computes */
    bool is_alone;              /* it is a kernel, too, if it is one op */
    struct ir_op *first, *last; /* when all are made: its ops, linked by fuse_op.next */
};

/* What is known of a part as long as it is open. */
struct fuse_open {
    const struct ir_op *op;     /* that it was at first */
    const struct ir_type *like; /* whose dims are the iteration space */
    /* so many of its last axes are rows, which are computed as a whole; 0: elements are, one by
     * one */
    int row;
    /* 1 + the axis that is reduced, or walked, where that is not the innermost one; 0: none is */
    int column;
    /* whether what columns come to has an axis of one element in its place */
    enum fuse_keeps { FUSE_ANY, FUSE_DROPS, FUSE_KEEPS } column_keeps;
    /* the same of running sums and products, + 1 if they go from the last one back; 0: there are
     * none */
    int scan;
    bool keeps;  /* some of its results are elements that a mask tells */
    bool pieces; /* it has assigns or Concats, of which elements are made in several ways */
    struct cost_work work, apart; /* in one kernel, and as it is without */
    uint32_t n_operands;
    const struct ir_value *operands[FUSE_OPERANDS]; /* that it needs from outside, by id */
    uint64_t uses;                                  /* of what it computes, by others */
    struct fuse_set direct; /* parts of which it reads results where they are computed */
    /* parts on which it depends through something else, as far as it was known */
    struct fuse_set behind;
    /* parts of which it reads results elsewhere, and could compute them there */
    struct fuse_set moved;
    struct fuse_set before; /* all parts on which it depends */
};

struct fuse_op {
    uint32_t part;   /* FUSE_NO_PART: none takes it */
    uint32_t window; /* in which `past` was told */
    /* of what is in no part: parts on which it depends, as far as it was known */
    struct fuse_set past;
    /* it is in no part, or not in that of `other`; NULL: nothing speaks against it */
    const char *why;
    const struct ir_op *other;
    struct ir_op *next;
    uint32_t captures; /* 1 + the first in plan->captures; 0: none */
    uint8_t order;     /* how far it is put into order */
};

/* An op of the block of which the blocks of another read a result. */
struct fuse_capture {
    struct ir_op *maker;
    uint32_t next;
};

struct fuse_plan {
    struct pass_context *pass;
    const struct ir_fusion *fusion;
    struct cost_sizes sizes;
    uint32_t n_ops;      /* before anything is made */
    struct fuse_op *ops; /* per op id */
    uint32_t *readers;   /* per value id: 1 + the last part that read it from outside */
    uint32_t *uses;      /* per value id: by others than the part that computes it */
    VEC(struct fuse_part) parts;
    VEC(struct fuse_capture) captures;
    uint32_t oldest, window; /* the first part that is open; how often it has moved */
    struct fuse_open open[FUSE_OPEN];
    struct ir_cloner cloner; /* of constants */
};

/* Copies accesses that several ops read, where no kernel has more to do then: before ops are
 * numbered. */
tssa_status *fuse_copy_reads(struct fuse_plan *plan);
/* Makes neighbouring axes that are reduced one: before that. */
tssa_status *fuse_merge_axes(struct fuse_plan *plan);
/* Keeps by masks what is read by the numbers that NonZero finds of them: before that. */
tssa_status *fuse_keep_numbers(struct fuse_plan *plan);
/* Computes before a mask what is computed of what it keeps, where that is as cheap: before that. */
tssa_status *fuse_keep_later(struct fuse_plan *plan);
/* The plan is all zeros. */
tssa_status *fuse_plan_init(struct fuse_plan *plan, struct pass_context *pass);
void fuse_plan_free(struct fuse_plan *plan);
/* Makes accesses one that kernels read as planes: before that. */
tssa_status *fuse_join_planes(struct fuse_plan *plan);
/* Finds the parts of a block, from parts->count on; what is in its ops' blocks is not looked at. */
tssa_status *fuse_plan_block(struct fuse_plan *plan, const struct ir_block *block);
/* The part that the op is in; FUSE_NO_PART: none, or it is alone there and no kernel. */
uint32_t fuse_part_of(struct fuse_plan *plan, const struct ir_op *op);
/* Makes fuse ops of the block's parts, and puts the others around them. */
tssa_status *fuse_make(struct fuse_plan *plan, struct ir_block *block);

/* Makes fuse ops of loops of which an iteration is one, where there is a kernel of that; in the
 * blocks of the block's ops, too. */
tssa_status *fuse_loops(struct pass_context *pass, struct ir_block *block);
/* Takes products into the fuse ops that alone read them, where there is a kernel of that; in the
 * blocks of the block's ops, too. */
tssa_status *fuse_products(const struct fuse_plan *plan, struct ir_block *block);
/* May fuse_products take the op in? Then it says why it does not, too. */
bool fuse_takes_product(const struct fuse_plan *plan, const struct ir_op *op);
/* Takes what is computed before a loop for one fuse op of its iterations into that, where there is
 * a kernel of it; in the blocks of the block's ops, too. */
tssa_status *fuse_invariants(struct pass_context *pass, struct ir_block *block);
/* Makes fuse ops that read each other's results one, where there is a kernel of both, in stages; in
 * the blocks of the block's ops, too. */
tssa_status *fuse_stages(struct pass_context *pass, struct ir_block *block);
/* Takes what is computed behind a loop of what the last iteration leaves into the fuse op that
 * computes that, where there is a kernel of it. */
tssa_status *fuse_behind(struct pass_context *pass, struct ir_block *block);
/* Whoever uses the value outside of its block uses the result of the op around it. */
void fuse_hand_out(struct ir_value *inner, struct ir_value *result);

/* Is the op of a class that kernels are made of? */
bool fuse_is_candidate(const struct fuse_plan *plan, const struct ir_op *op);
/* Why the op, a candidate, is in no part; NULL: it may be in one. */
const char *fuse_refusal(const struct fuse_plan *plan, const struct ir_op *op);

/* Do all ops that read the value read it where they compute their own elements, or rows? */
bool fuse_is_read_in_place(const struct ir_value *value);

/* The same of an op that is no candidate. */
const char *fuse_outside(const struct ir_op *op);
/* Is nothing moved for it where it is by itself? */
bool fuse_is_view(const struct fuse_plan *plan, const struct ir_op *op);
/* Is it a write into what a loop carries on, which kernels do where they compute what is written,
 * and to what others write nothing? */
bool fuse_updates(const struct fuse_plan *plan, const struct ir_op *op);
/* Whose dims a part of the op, a candidate, has. */
const struct ir_type *fuse_space(const struct fuse_plan *plan, const struct ir_op *op);
/*
 * Is the operand a constant that stands for itself in a block: a number, the axes of a reduction?
 */
bool fuse_is_inner(const struct ir_op *op, uint32_t operand);

/* How the space of part `b` lies in that of `a`, where there is an op in `a` that reads what `b`
 * computes. */
enum fuse_fit {
    FUSE_APART, /* they are not one kernel */
    FUSE_SAME,  /* one space, or the same rows, of other lengths, or columns and their elements */
    FUSE_INTO,  /* `b` is broadcast: what it computes is computed again for each element */
    FUSE_ROWS,  /* what `b` computes is computed once for each row of `a` */
    /* what `a` computes is computed once for each row of `b`, of what rows have come to */
    FUSE_OVER
};
enum fuse_fit fuse_fit(const struct ir_fusion *fusion, const struct fuse_open *a,
                       const struct fuse_open *b);
/* fuse_open.column and .column_keeps of the op. */
void fuse_find_column(const struct ir_op *op, struct fuse_open *part);
/* The same of both parts, which have columns; false: one of their results has the axis, one has
 * not. */
bool fuse_join_keeps(const struct fuse_open *a, const struct fuse_open *b, enum fuse_keeps *keeps);
/* fuse_open.scan of the op. */
int fuse_scan(const struct ir_op *op);
/* An access that only changes how many axes of one element there are in a value that has one for
 * each row of the part: it is computed where the row is. */
bool fuse_is_row_view(const struct ir_op *op, const struct fuse_open *part);

/* An access that takes the same part out of each row of the part's values. */
bool fuse_is_row_part(const struct ir_op *op, const struct fuse_open *part);

/* An access that only repeats an element along a last axis of a few, which a kernel computes
 * together. */
bool fuse_repeats_in_row(const struct ir_op *op);

/* What the blocks of the op capture of its own block, one after the other; NULL behind the last.
 * *at is 0 at first. */
struct ir_op *fuse_captured(const struct fuse_plan *plan, const struct ir_op *op, uint32_t *at);

/* The op of `block` that makes the value, or NULL. */
static inline struct ir_op *fuse_maker(const struct ir_value *value, const struct ir_block *block)
{
    return value && value->op && value->op->parent == block ? value->op : NULL;
}

#endif
