/* SPDX-License-Identifier: Apache-2.0 */
/* Parts while they are made: what fuse_plan.c, which joins them in the order of the block, and
 * fuse_later.c share; how two are joined is in fuse_join.c. */
#ifndef TSSA_PASSES_LOWER_FUSE_PARTS_H
#define TSSA_PASSES_LOWER_FUSE_PARTS_H

#include "passes/lower/fuse.h"

/* ---- Sets of parts --------------------------------------------------------------------------- */

static inline uint32_t fuse_root(struct fuse_plan *plan, uint32_t part)
{
    struct fuse_part *parts = plan->parts.data;
    while (parts[part].joined != part) {
        parts[part].joined = parts[parts[part].joined].joined;
        part = parts[part].joined;
    }
    return part;
}

static inline bool fuse_is_open(const struct fuse_plan *plan, uint32_t part)
{
    return part != FUSE_NO_PART && part >= plan->oldest;
}

static inline struct fuse_open *fuse_open_part(struct fuse_plan *plan, uint32_t part)
{
    return &plan->open[part - plan->oldest];
}

/* The op that the part was at first. */
static inline const struct ir_op *fuse_open_op(const struct fuse_plan *plan, uint32_t part)
{
    return plan->open[part - plan->oldest].op;
}

static inline void fuse_add(const struct fuse_plan *plan, struct fuse_set *set, uint32_t part)
{
    const uint32_t bit = part - plan->oldest;
    set->words[bit / 64] |= UINT64_C(1) << (bit % 64);
}

static inline bool fuse_has(const struct fuse_plan *plan, const struct fuse_set *set, uint32_t part)
{
    const uint32_t bit = part - plan->oldest;
    return set->words[bit / 64] >> (bit % 64) & 1;
}

static inline void fuse_add_all(struct fuse_set *set, const struct fuse_set *more)
{
    for (size_t i = 0; i < sizeof set->words / sizeof *set->words; i++)
        set->words[i] |= more->words[i];
}

/* What the parts belong to, but for parts `one` and `two`, and what that depends on, as it is known
 * by now. */
static inline struct fuse_set fuse_reached(struct fuse_plan *plan, const struct fuse_set *from,
                                           uint32_t one, uint32_t two)
{
    struct fuse_set all = {{0}};
    for (uint32_t w = 0; w < FUSE_OPEN / 64; w++)
        for (uint64_t left = from->words[w]; left; left &= left - 1) {
            const uint32_t bit = w * 64 + (uint32_t)__builtin_ctzll(left);
            const uint32_t root = fuse_root(plan, plan->oldest + bit);
            if (root == one || root == two)
                continue;
            fuse_add(plan, &all, root);
            fuse_add_all(&all, &fuse_open_part(plan, root)->before);
        }
    return all;
}

/* ---- fuse_join.c ----------------------------------------------------------------------------- */

/* Adds the value to the part's operands, which have room for it, if it is none yet. */
void fuse_add_operand(struct fuse_open *part, const struct ir_value *value);
/* joined->operands: what parts `own` and `other` need, but for what one of them computes; false:
 * that is more than a kernel takes. */
bool fuse_join_operands(struct fuse_plan *plan, uint32_t own, uint32_t other,
                        struct fuse_open *joined);
/* Is the operand one that the op has before, too? */
bool fuse_is_repeated(const struct ir_op *op, uint32_t operand);
/* The part that makes the operand. */
uint32_t fuse_maker_part(struct fuse_plan *plan, const struct ir_op *op, uint32_t operand);
/* Is the operand needed at other places than where the part that makes it computes it? */
bool fuse_moves(struct fuse_plan *plan, const struct ir_op *op, uint32_t operand);
/* Could the part that makes the operand, which it moves, compute it where it is needed? */
bool fuse_moves_inside(struct fuse_plan *plan, const struct ir_op *op, uint32_t operand);
/* Is there a way from `from` to `to` that leads through something else? What is moved is something
 * else, unless it is to be moved `inside`. */
bool fuse_leads_around(struct fuse_plan *plan, uint32_t from, uint32_t to, bool inside);
/* Does it take longer than the two it is made of? */
bool fuse_is_slower(const struct fuse_plan *plan, const struct fuse_open *a,
                    const struct fuse_open *b, const struct fuse_open *joined);
/* What part `b` depends on, `joined` does. */
void fuse_add_sets(struct fuse_open *joined, const struct fuse_open *b);
/* Part `own` takes in `other`, and who depends on one of them depends on both. */
void fuse_join(struct fuse_plan *plan, uint32_t own, uint32_t other,
               const struct fuse_open *joined);
/* The part of the op takes in `other`; why it does not, or NULL. */
const char *fuse_join_part(struct fuse_plan *plan, const struct ir_op *op, uint32_t other);

/* ---- fuse_later.c ---------------------------------------------------------------------------- */

/* Of all open parts: who computes inside what it needs elsewhere, and which stand side by side. */
void fuse_move_all_inside(struct fuse_plan *plan);
void fuse_join_beside(struct fuse_plan *plan);

#endif
