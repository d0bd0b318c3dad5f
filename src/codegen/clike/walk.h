/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the forms of kernels have in common (print.c, rows_of_blocks.c): steps of a pass, the walk
 * of a thread along a row or down a column, and what is combined there, in the order of
 * ir/reduction.def.
 */
#ifndef TSSA_CODEGEN_CLIKE_WALK_H
#define TSSA_CODEGEN_CLIKE_WALK_H

#include "codegen/clike/printer.h"

/* Steps that are once for the row, or the column, and wait for what is before the pass. */
void clike_print_once(const struct printer *p);
/* Finds those of each element, in p->needed; whether there are any. */
bool clike_find_steps(struct printer *p);
void clike_print_steps(const struct printer *p);
/* What is stored once, behind all passes; whether anything is. */
void clike_print_stores(const struct printer *p);
bool clike_stores_once(const struct printer *p);

/* The first reduction of the pass from step i on; the number of steps where there is none. */
uint32_t clike_next_reduction(const struct printer *p, uint32_t i);
bool clike_reduces(const struct printer *p);
#define EACH_REDUCTION(p, i)                                                                       \
    for (uint32_t i = clike_next_reduction(p, 0); i < (p)->kernel->n_codes;                        \
         i = clike_next_reduction(p, i + 1))
/* The function that combines, "f32_ADD". */
void clike_print_combine(const struct printer *p, const struct gir_code *code);

/* Sums of the pass are s0, s1, ..., in levels where the order has those; what an element is goes
 * into them; so many more have; the levels are joined; and what each sum has come to, by a format
 * of its number, twice. */
void clike_begin_levels(const struct printer *p);
void clike_combine_steps(struct printer *p);
void clike_carry_levels(struct printer *p, unsigned steps);
void clike_join_levels(const struct printer *p);
void clike_come_to(const struct printer *p, const char *format);

/* How many elements a thread has under way: it reads all of them before it needs the first, and so
 * waits for memory once. A power of two, which divides RADIX. */
unsigned clike_several(const struct printer *p);

/* What a thread goes over. */
struct clike_walk {
    const char *number, *from, *step, *end;
};
/* Steps of the pass, combined, for each; some at a time, and the rest. */
void clike_print_walk(struct printer *p, const struct clike_walk *walk);

#endif
