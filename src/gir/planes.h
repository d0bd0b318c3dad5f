/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Planes: operands of kernels of rows whose elements lie in steps, but in another order than they
 * are needed in: what an access permutes, and reshapes after that. An axis of what it comes to may
 * be several axes of the operand, one in the other:
 *
 *     x: f32[486, 20, 20], access x {rule = [permute(1, 2, 0), reshape(2400, 81)]}: f32[2400, 81]
 *     axis 0: 400 elements with step 1, which are there 6 times with step 81 * 400; axis 1: 81 with
 *     step 400
 *
 * The elements of the last axis are far from each other then. Of shapes that are the same in every
 * run.
 */
#ifndef TSSA_GIR_PLANES_H
#define TSSA_GIR_PLANES_H

#include "ir/rule.h"

/* Part of an axis: so many elements, and from one to the next one, in elements of the operand. */
struct gir_subaxis {
    int axis;
    int64_t size, step;
};

/* How the elements of an operand of these dims lie: outermost first; axes of one element have no
 * subaxis. */
struct gir_planes {
    int operand_rank;
    int64_t operand_dims[TSSA_MAX_RANK];
    int rank;
    int64_t dims[TSSA_MAX_RANK];
    int64_t offset; /* of the first one */
    int n_subaxes;
    struct gir_subaxis subaxes[TSSA_MAX_RANK];
};

/* Of a rule of constants, in an operand of these dims, none of which is 0. False: they do not lie
 * in steps. */
bool gir_lay_planes(const struct rule *rule, int rank, const int64_t *dims,
                    struct gir_planes *planes);

/* How many rows lie side by side, if the last axis is a row. */
int64_t gir_rows_of_planes(const struct gir_planes *planes);

/*
 * NULL, or why the op is no access that kernels of rows read in planes: a row, the last axis, has a
 * few elements (GIR_MAX_PLANES), which are apart, and the same element of many rows is side by
 * side.
 */
const char *gir_planes_refuses(const struct ir_op *op, struct gir_planes *planes);

#endif
