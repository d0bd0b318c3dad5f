/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which values of an imperative program share storage: docs/tensorssa.md says what the program
 * means.
 *
 * A tree is a value that has storage of its own (the root: a result of an ordinary op, a parameter,
 * or what control flow hands out) with all views of it, and views of those. When a tree is handed
 * on (a loop carries it, a block returns it, a sequence takes it), its storage gets another root.
 * That is no trouble while nobody looks at the tree afterwards: it has moved. Otherwise both roots
 * are one set, in which two names may or may not mean the same storage, and a write to it cannot be
 * converted. From such a set nothing moves. Nor is it any trouble when nothing is written to the
 * storage, under whatever name, as long as the new name is used: then it means what the old one
 * meant when it got it.
 */
#ifndef TSSA_PASSES_CONVERSION_ALIAS_H
#define TSSA_PASSES_CONVERSION_ALIAS_H

#include "base/vec.h"
#include "ir/rule.h"
#include "passes/pass.h"

/* A view with the rule that leads to it from its tree's root. */
struct alias_view {
    struct ir_op *op;
    const struct rule *rule;
    uint32_t n_params;
    struct ir_value *const *params;
    struct alias_view *next; /* of the same tree, later in the program */
};

enum alias_refusal {
    ALIAS_FINE,
    ALIAS_PASSED_ON, /* two names that may mean one storage */
    ALIAS_CONTAINED, /* the same, through a sequence or an optional */
    ALIAS_REPEATED,  /* a view is handed on in which an element is there twice */
    ALIAS_FOREIGN,   /* a write in the body of an op that cannot hand its values out */
    ALIAS_LONG_RULE  /* a chain of views of more steps than a rule may have */
};

/* What is known of a value; of a root, what is known of its tree, of a set's leader that of its
 * set. */
struct alias_value {
    struct ir_value *root;
    struct alias_view *view;         /* when it is one */
    struct alias_view *first, *last; /* the tree's views */
    uint32_t last_use;               /* position of the last op that uses a value of the tree */
    uint32_t n_passed;               /* how often the op at hand passes the tree on */
    struct ir_value *leader;         /* towards the set's leader */
    struct ir_value *kin;            /* towards that of all trees whose storage may be the same */
    bool is_passed_on;               /* a tree whose storage gets another name */
    uint32_t n_writes;               /* counted by rewrite_mutation */
    bool written;
    bool is_shared; /* a set of several trees */
    enum alias_refusal refusal;
    struct ir_op *where; /* the op that refusal is about */
};

/* An op gives the storage of one value to another. */
struct alias_passing {
    const struct ir_value *from;
    struct ir_value *to;
    struct ir_op *op;
    enum alias_refusal refusal;
    bool has_moved; /* nobody looks at the tree of `from` afterwards */
};

struct aliases {
    struct pass_context *pass;
    struct arena arena;
    uint32_t n_values, n_ops;
    struct alias_value *values; /* by value id */
    uint32_t *position, *end;   /* by op id: in program order, from 1; and of the last op inside */
    VEC(struct ir_op *) writes; /* in program order */
    VEC(struct alias_passing) passings;
    uint32_t n_looked_at; /* writes, for one passing after the other */
};

/* Names that always mean another value become that value: results of an If whose sides return the
 * same, carried values that are never rebound. */
tssa_status *alias_bind_same(struct ir_block *block);
/* Finds trees and sets. alias_free in any case. */
tssa_status *alias_analyse(struct aliases *aliases, struct pass_context *pass);
void alias_free(struct aliases *aliases);

struct alias_value *alias_of(const struct aliases *aliases, const struct ir_value *value);
/* What stands for the whole set of a value: `written` and `refusal` are told here. */
struct alias_value *alias_set(const struct aliases *aliases, const struct ir_value *value);
/*
 * Until where `user` reads a value of the block `home`: a loop reads what it reads until its end.
 */
uint32_t alias_until(const struct aliases *aliases, const struct ir_block *home,
                     const struct ir_op *user);
/* Can the block's op hand values out? The body of another op never updates what is outside. */
static inline bool alias_hands_out(const struct ir_block *block)
{
    return block->owner && (ir_op_is(block->owner, IR_OP_If) || ir_op_is(block->owner, IR_OP_Loop));
}
/* The block that a value is defined in. */
struct ir_block *alias_block(const struct ir_value *value);
/* Will the tree of this value be converted, writes and all? */
bool alias_is_converted(const struct aliases *aliases, const struct ir_value *value);

#endif
