/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of a kernel being made: those of one op or reduction, by its row's scalar programs. */
#ifndef TSSA_GIR_SCALARS_H
#define TSSA_GIR_SCALARS_H

#include "gir/gir.h"
#include "ir/reduction.h"

#define GIR_NONE UINT32_MAX

struct gir_maker {
    struct gir_code *codes;
    uint32_t n, capacity;
    const char *why; /* it cannot be made; sticky */
};

/* The number of a step that is the same as this one, which is made where there is none. */
uint32_t gir_make(struct gir_maker *maker, struct gir_code code);
/* What an op computes of its operands (GIR_NONE: absent), values of their element types; bool as a
 * truth value or as bytes. */
uint32_t gir_make_op(struct gir_maker *maker, const struct ir_op *op, const uint32_t *operands);
/* The same of an op that quantizes elements (ir/quantization.h). */
uint32_t gir_make_quantization(struct gir_maker *maker, const struct ir_op *op,
                               const uint32_t *operands);
/* What elements are reduced to, in reduction_type() of their type, by a row whose S is not given.
 */
uint32_t gir_make_reduction(struct gir_maker *maker, enum reduction_row row, uint32_t value,
                            tssa_dtype *type);
uint32_t gir_make_number(struct gir_maker *maker, tssa_dtype type, double number);
/* The lowest element, -infinity of floats, or the highest. */
uint32_t gir_make_bound(struct gir_maker *maker, tssa_dtype type, bool lowest);
/* An operation of values that have the types which it wants. */
uint32_t gir_make_scalar(struct gir_maker *maker, enum scalar_id id, tssa_dtype type,
                         const uint32_t *operands);
/* A value as one of this type. */
uint32_t gir_make_as(struct gir_maker *maker, uint32_t value, tssa_dtype type);

/* The ids of the values that a block has: so many from the first one on. */
void gir_number_values(const struct ir_block *block, uint32_t *first, uint32_t *n);

/* Drops the steps that no result needs; the rest is numbered anew. Loads stand before stores.
 * `numbers`: room for one per step. */
void gir_drop_dead(struct gir_maker *maker, uint32_t *numbers);

/* Element `at` of a Range, of two steps that are its start and its delta: as the operator computes
 * it. */
uint32_t gir_make_range(struct gir_maker *maker, const struct ir_op *op, uint32_t at,
                        uint32_t start, uint32_t delta);

#endif
