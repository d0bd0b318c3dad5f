/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a rule means, symbolically: which elements of the base it holds, and where in the region
 * they are. All reasoning about aliasing, overlap and parallel writes asks here, never an op's
 * name.
 *
 * Of every axis of the base a region knows the coordinates that it touches, as an arithmetic
 * progression of dims (region_axis); where strides describe the region, it knows (shape, strides,
 * offset) as well. An SSA scalar is a dim like any other: the same value is the same symbol, and
 * sums, differences and products of scalars are those of their symbols (region_scalar), so that i +
 * 1 is affine in i.
 *
 * Answers hold in every run in which the ops with these rules run without an error, and are never
 * guesses: what is not proven is REGION_UNKNOWN. Not thread-safe: dims are made.
 */
#ifndef TSSA_IR_REGION_H
#define TSSA_IR_REGION_H

#include "ir/rule.h"

enum region_answer { REGION_UNKNOWN, REGION_NO, REGION_YES };

/* ---- Scalars --------------------------------------------------------------------------------- */

/*
 * Which dim stands for which value of a graph. Values may be added to the graph while it is in use.
 */
struct region_space {
    struct ir_graph *graph;
    const struct dim **scalars; /* by value id; NULL: not asked for yet */
    size_t n_scalars;
    struct map symbols; /* id of a symbol that was made here -> its value */
};

void region_space_init(struct region_space *space, struct ir_graph *graph);
void region_space_free(struct region_space *space);
/*
 * The only element of a value: its known element, a polynomial of other values' elements, or a
 * symbol of its own. The counter of a Loop is not negative. NULL only when memory runs out.
 */
const struct dim *region_scalar(struct region_space *space, const struct ir_value *value);

/*
 * dim = *factor * symbol + *rest, where `rest` does not hold the symbol; false when it is not so.
 */
bool region_affine(struct region_space *space, const struct dim *dim, const struct dim *symbol,
                   int64_t *factor, const struct dim **rest);
/* Is the dim proven to be the same number in every iteration of the op whose block this is? */
bool region_invariant(const struct region_space *space, const struct dim *dim,
                      const struct ir_block *block);

/* ---- Regions --------------------------------------------------------------------------------- */

/* The coordinates of a base axis that are touched: some of start, start + step, ... (count of
 * them). */
struct region_axis {
    bool exact; /* all of the coordinates, not only some */
    const struct dim *start, *count;
    int64_t step; /* not 0 */
    /* the region's axis that walks along it; -1: none does, or it is not a plain walk */
    int result;
};

struct region {
    const struct rule *rule;
    struct ir_value *const *params; /* of the rule, $0 first */
    int base_rank;                  /* -1: nothing is known of the region */
    const struct dim *base[TSSA_MAX_RANK];
    struct region_axis axes[TSSA_MAX_RANK]; /* one per axis of the base */
    int rank;
    const struct dim *dims[TSSA_MAX_RANK]; /* the region's shape */
    bool exact;   /* every combination of the axes' coordinates is touched: it is a box */
    bool mapped;  /* element (r0, r1, ...) is at start + step * r[result] of every axis */
    bool strided; /* it is at offset + the sum of strides[i] * r[i] of the row-major base */
    const struct dim *strides[TSSA_MAX_RANK], *offset;
    enum region_answer single; /* does it hold each element of the base once at most? */
};

/* The region of a rule in a base of this type. `rule` and `params` must outlive the region. */
tssa_status *region_make(struct region_space *space, const struct ir_type *base,
                         const struct rule *rule, struct ir_value *const *params,
                         struct region *region);
/* That of a view, access or assign; its params are put into `params`, which has room for
 * IR_VARIADIC. */
tssa_status *region_of(struct region_space *space, const struct ir_op *op, struct ir_value **params,
                       struct region *region);

/* The same elements of equal bases, in the same order and shape? */
enum region_answer region_equal(struct region_space *space, const struct region *a,
                                const struct region *b);
/* Is every element of b one of a? */
enum region_answer region_covers(struct region_space *space, const struct region *a,
                                 const struct region *b);
/* Has no element of a a place in b? */
enum region_answer region_disjoint(struct region_space *space, const struct region *a,
                                   const struct region *b);
/* How many steps both rules begin with whose params are the same in every run. */
uint32_t region_common_steps(struct region_space *space, const struct rule *a,
                             struct ir_value *const *params_a, const struct rule *b,
                             struct ir_value *const *params_b);
/* All elements of the base? */
enum region_answer region_is_whole(struct region_space *space, const struct region *region);
/* Proven to hold nothing. */
bool region_is_empty(const struct region *region);

/*
 * Region a of one iteration and b of another one of a loop with this counter and body, whichever
 * two: have they no element in common? With a == b: do iterations write different elements? The
 * base must be the same value, or of the same shape, in all iterations.
 */
bool region_disjoint_across(struct region_space *space, const struct region *a,
                            const struct region *b, const struct dim *counter,
                            const struct ir_block *body);

/* ---- Rules of rules -------------------------------------------------------------------------- */

/*
 * The rule that applies `first`, then `second`, simplified for a base of this type (NULL: unknown).
 * The operands of `second` are counted after the n_first operands of `first`; some may not be used
 * any more. NULL in *out: too many steps.
 */
tssa_status *rule_compose(struct ir_graph *graph, const struct ir_type *base,
                          const struct rule *first, const struct rule *second, uint32_t n_first,
                          const struct rule **out);
/* The same rule with fewer steps, if there is one. */
tssa_status *rule_simplify(struct ir_graph *graph, const struct ir_type *base,
                           const struct rule *rule, const struct rule **out);
/* access(access(x, ...), ...) as one access of x, in no block yet; NULL in *out as with
 * rule_compose. `first` and `second` are accesses (or views). */
tssa_status *rule_access_chain(struct ir_graph *graph, const struct ir_op *first,
                               const struct ir_op *second, struct ir_op **out);
/*
 * The rule that puts the region's elements back: access(access(x, rule), inverse) is x. *out is
 * NULL when the rule does not hold every element once, or it cannot be told. Takes no operands.
 */
tssa_status *rule_invert(struct ir_graph *graph, const struct ir_type *base,
                         const struct rule *rule, const struct rule **out);

#endif
