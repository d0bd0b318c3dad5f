/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What has room for all that may be kept of a list, for the pass `bound_lists`, which says why.
 *
 * A set is what is kept of elements: of those of a mask, which has all of them; of those of another
 * set, the first ones when they are sorted; of each element of another set, so many. A value whose
 * elements along an axis are those that are kept has a bounded one, which has an element for each
 * that there may be, `bound` of them, in their order, and of those that are not kept anything that
 * is no error.
 */
#ifndef TSSA_PASSES_LOWER_BOUND_LISTS_H
#define TSSA_PASSES_LOWER_BOUND_LISTS_H

#include "base/vec.h"
#include "ir/clone.h"
#include "passes/maker.h"
#include "passes/pass.h"

#define BOUND_ROOTS 64

struct bound_set {
    const struct dim *dim; /* how many are kept */
    int64_t bound;
    struct ir_value *valid; /* bool[bound]: which; NULL: nobody asked yet */
    uint64_t roots;         /* NonZeros that it comes of */
    uint32_t parent;        /* 1 + the set of whose elements each has `factor` here; 0: of none */
    int64_t factor;
    uint32_t n_parts, parts[16]; /* sets that are one behind the other */
    /* Of a NonZero: what it looks at, of one axis or two. */
    struct ir_value *mask;
};

enum bound_kind {
    BOUND_NOTHING, /* it does not depend on what is kept */
    BOUND_SIZE,    /* small integers that tell how many are kept */
    BOUND_NUMBERS, /* what a NonZero finds, a row for each axis; `turned`: a column */
    BOUND_NUMBER,  /* row `row` of that */
    BOUND_FOUND,   /* i64[1, n], of places in a set */
    BOUND_ROWS,    /* of a NonMaxSuppression: the last column is of places in a set */
    BOUND_PLACES,  /* these */
    BOUND_PADDED   /* it has elements for those that are kept */
};

/* What is known of a value. */
struct bound_value {
    enum bound_kind kind;
    uint32_t set;
    bool turned;
    int row;
    int axis;               /* BOUND_PADDED: that has elements of the set */
    struct ir_value *value; /* the same with room for all */
    int64_t below;          /* what its elements are less than, if they are places; 0: unknown */
    uint32_t places;        /* 1 + the set that they are places in; 0: none */
    const struct ir_value *whole; /* what a mask keeps these elements of, in its shape */
};

/* What becomes of an op. */
enum bound_role {
    BOUND_OTHER, /* it knows nothing of bounded values */
    BOUND_MADE,  /* there is a bounded value for its result */
    BOUND_ENDS   /* it may be given bounded operands instead: its result is the same, or places */
};

/* An operand that is to be given. */
struct bound_end {
    struct ir_op *op;
    uint32_t operand;
    struct ir_value *value;
    uint64_t roots;
};

struct bounding {
    struct pass_context *pass;
    struct ir_block *block;
    struct ir_cloner cloner;
    uint32_t n_ops, n_values;   /* that there were */
    struct bound_value *values; /* per value id */
    unsigned char *roles;       /* per op id: enum bound_role */
    uint32_t *seen;             /* per op id: 1 + the last NonZero that it was asked about */
    VEC(struct bound_set) sets;
    VEC(struct bound_end) ends;
    struct ir_op *finders[BOUND_ROOTS];
    uint32_t n_roots;
};

/* Looks at the op, behind all that it needs: makes what there is to make, before it. */
tssa_status *bound_visit(struct bounding *b, struct ir_op *op);

/* ---- Parts of that --------------------------------------------------------------------------- */

bool bound_is_ranked(const struct ir_value *value);
/* The product of dims; -1: they are not known, or too many. */
int64_t bound_count_dims(const struct ir_type *type, int from, int to);
int64_t bound_list_count(const struct ir_value *value);
bool bound_are_constants(const struct rule_step *step);

tssa_status *bound_add_set(struct bounding *b, struct bound_set set, uint32_t *index);
/* Of the parent's elements each has so many in it. */
tssa_status *bound_find_multiple(struct bounding *b, uint32_t parent, int64_t factor,
                                 uint32_t *index);
/* Which of the elements that there is room for are there: bool[bound]. */
struct ir_value *bound_valid(struct bounding *b, struct pass_maker *m, uint32_t index);

void bound_note(struct bounding *b, const struct ir_op *op, uint32_t result,
                struct bound_value value);
/* The result with room for all, if it is as long as the set, along that axis, and not too large. */
void bound_note_padded(struct bounding *b, const struct ir_op *op, struct bound_value value);
tssa_status *bound_note_end(struct bounding *b, struct ir_op *op, uint32_t operand,
                            struct ir_value *value, uint32_t set);
/* A copy of the op, before it, of bounded operands, and of `to` in the place of `from`, if that is
 * not NULL. */
tssa_status *bound_copy(struct bounding *b, struct ir_op *op, const struct ir_value *from,
                        struct ir_value *to, struct ir_value **made);

tssa_status *bound_visit_non_zero(struct bounding *b, struct ir_op *op);
tssa_status *bound_visit_gather_nd(struct bounding *b, struct ir_op *op);
tssa_status *bound_visit_access(struct bounding *b, struct ir_op *op);
tssa_status *bound_visit_topk(struct bounding *b, struct ir_op *op);

static inline struct bound_set *bound_set_at(const struct bounding *b, uint32_t set)
{
    return &b->sets.data[set];
}

static inline const struct bound_value *bound_of(const struct bounding *b,
                                                 const struct ir_value *value)
{
    static const struct bound_value nothing = {0};
    return value && value->id < b->n_values ? &b->values[value->id] : &nothing;
}

#endif
