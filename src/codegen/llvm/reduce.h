/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pass that reduces, in the order of ir/reduction.def: for each step of that order its vectors,
 * whose lanes are neighbours of a row (long_rows.c) or columns (columns.c). 64 steps are combined
 * one after the other; what they come to is combined in memory by 64, 64 times 64, ...
 */
#ifndef TSSA_CODEGEN_LLVM_REDUCE_H
#define TSSA_CODEGEN_LLVM_REDUCE_H

#include "codegen/llvm/rows.h"

/* What goes round in the loops of a pass: the lanes of its reductions, and where they were NaN. */
struct slot {
    LLVMValue *value, identity;
    LLVMType type;
};

struct pass {
    struct rows *r;
    unsigned step_bits; /* 2^step_bits elements are a step */
    unsigned stride;    /* elements that are emitted at once: a step, or a piece of one */
    LLVMValue whole;    /* so many elements are whole steps, or pieces */
    LLVMValue length;   /* of all elements */
    /* Emits a whole step, which begins at an element, and combines it: reduce_combine. */
    void (*emit_step)(struct rows *r, LLVMValue index);
    /* The same of what is left behind the whole ones; NULL: nothing ever is. */
    void (*emit_tail)(struct pass *pass);
    uint32_t n;
    struct slot slots[2 * GIR_MAX_REDUCTIONS];
};

/* a, then b. */
LLVMValue reduce_two(const struct rows *r, const struct reduction *one, LLVMValue a, LLVMValue b);
/* Lanes that are computed piece by piece, to memory and from it. */
void reduce_put_pieces(const struct rows *r);
void reduce_get_pieces(struct rows *r);
/*
 * Combines what the steps have computed with what there is; of lanes that are not there, nothing.
 */
void reduce_combine(struct rows *r);
/* The whole pass: then reductions[].value and .nans are those of the lanes. */
void reduce_all(struct pass *pass);

void pass_get_slots(const struct pass *pass, LLVMValue *values);
/* From here on they come from block `from`, as they are by now or as at first. */
void pass_begin_slots(const struct pass *pass, LLVMBlock from, bool at_first);
/* The values too, where control comes from the block; NULL: as at first. */
void pass_come_from(const struct pass *pass, LLVMBlock from, const LLVMValue *values);

#endif
