/* SPDX-License-Identifier: Apache-2.0 */
/* What becomes of the sums of a convolution, as oneDNN is told of it. */
#ifndef TSSA_DEVICE_CPU_ONEDNN_CONV_ATTRS_H
#define TSSA_DEVICE_CPU_ONEDNN_CONV_ATTRS_H

#include "device/cpu/onednn/onednn.h"

/* NULL: not made yet; whoever asks for them destroys what was made, on failure too. */
struct onednn_attrs {
    dnnl_primitive_attr_t conv, reorder;
};

/* False: oneDNN cannot be told of all of it, or memory ran out. */
bool onednn_conv_attrs(const struct conv_problem *problem, struct onednn_attrs *attrs);

/* A number of conv_problem.after. */
float onednn_number_of(int64_t bits);
/* Of a primitive that does conv_problem.after, which is something, to elements in place; NULL on
 * failure. The caller's. */
dnnl_primitive_desc_t onednn_after_desc(const struct onednn_engine *engine,
                                        const struct conv_problem *problem, desc_view elements);

/* NULL: sums stay what they are. */
const struct library_quantizer *onednn_quantizer(const struct conv_problem *problem);

#endif
