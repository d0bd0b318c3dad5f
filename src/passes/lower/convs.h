/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions that a session's library computes, as passes see them: Conv and convolve. */
#ifndef TSSA_PASSES_LOWER_CONVS_H
#define TSSA_PASSES_LOWER_CONVS_H

#include "ir/convolve.h"
#include "passes/pass.h"

/* What is known of one; of sizes that only a run tells, a guess. */
struct conv_shape {
    int64_t in_channels, out_channels, groups, kernel; /* the kernel's elements */
    int64_t pixels, in_pixels;                         /* of all images together */
};

/* Is the op a Conv or a convolve of float32 images of two axes, of known weights' shape, that
 * kernels give to a library? */
bool conv_shape_of(const struct ir_op *op, struct conv_shape *shape);

/* In how many elements the value is, where sizes are known, and about how many else. */
int64_t conv_elements(const struct ir_type *type);

/* A tensor of float32 with batch, channels and two more axes. */
bool conv_is_image(const struct ir_value *value);

bool conv_is_depthwise(const struct conv_shape *shape);
/* Is it a matrix product of so many pixels that the library computes it as such, with channels
 * first? */
bool conv_is_product(const struct conv_shape *shape);

/* Has the value one number in every run? */
bool conv_is_one_number(const struct ir_value *value);

/* Do the types say the same shape? */
bool conv_same_dims(const struct ir_type *a, const struct ir_type *b);

/* A new convolve in the place of a Conv or convolve, in no block yet, with its attributes and
 * operands; NULL: memory ran out. */
struct ir_op *conv_create(struct ir_graph *graph, const struct ir_op *from);
bool conv_set_int(struct ir_graph *graph, struct ir_op *op, const char *name, int64_t value);

/* May graphs say convolve here? Opens the library. */
bool conv_is_computed(const struct pass_context *pass);

#endif
