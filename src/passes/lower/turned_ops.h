/* SPDX-License-Identifier: Apache-2.0 */
/* What of a graph can be computed on images with their channels last (lay_out_convs). */
#ifndef TSSA_PASSES_LOWER_TURNED_OPS_H
#define TSSA_PASSES_LOWER_TURNED_OPS_H

#include "passes/pass.h"

enum turned_role {
    TURNED_NOT,
    TURNED_CONV,
    TURNED_EACH, /* element by element */
    TURNED_JOIN,
    TURNED_CUT,
    TURNED_MEAN,   /* of all pixels */
    TURNED_REDUCE, /* to an image */
    TURNED_POOL,
    TURNED_RESIZE,
    TURNED_ROLES
};

enum turned_role turned_role_of(const struct ir_op *op);
/* Does an op of the role read the operand as an image? */
bool turned_reads_image(enum turned_role role, const struct ir_op *op, uint32_t operand);
/* A convolution that reads its image with channels first all the same: one of few channels. */
bool turned_stays_plain(enum turned_role role, const struct ir_op *op);

/* Elements that the library reorders of a convolution with channels first; 0 of other ops. */
int64_t turned_plain_cost(enum turned_role role, const struct ir_op *op);
/* Elements that are moved with channels last alone: of some channels, which are a piece of memory
 * else. */
int64_t turned_own_cost(enum turned_role role, const struct ir_op *op);

/* The same on turned images, in no block yet; its operands are those of `op` still. */
tssa_status *turned_make(struct ir_graph *graph, struct ir_op *op, enum turned_role role,
                         struct ir_op **made);

#endif
