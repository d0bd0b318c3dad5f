/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which results are names of a piece of their operand's memory, where the kernel can have it so
 * (is_piece in device/kernel.h): Slice, Split and Gather then copy nothing. Where the piece begins,
 * the kernel finds when it runs.
 *
 * They are where that costs no memory:
 * - of what is in use for longer anyway, so that nobody waits for the piece;
 * - of what the run does not hold: constants, and what the caller gave;
 * - of all that there is, in one result, or in several that are needed equally long.
 * Else a copy lets the operand go. And only kernels may read a piece: what is returned, carried,
 * put into a sequence or changed in place is memory of its own.
 */
#ifndef TSSA_RUNTIME_PIECES_H
#define TSSA_RUNTIME_PIECES_H

#include "runtime/lifetime.h"

/* Of other steps no result is a piece. */
static inline bool pieces_may_be(const struct step *step)
{
    return step->kernel && step->kernel->is_piece;
}
/* Result k of a step whose operand 0 is in use until step `last`, whatever is made of k. */
bool pieces_lie_in(const struct lifetimes *lifetimes, const struct step *step, uint32_t k,
                   uint32_t last);
/* Result k of a step whose operand 0 is not the run's memory. */
bool pieces_lie_outside(const struct lifetimes *lifetimes, const struct step *step, uint32_t k);

#endif
