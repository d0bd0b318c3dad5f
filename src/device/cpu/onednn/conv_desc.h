/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions as oneDNN is told of them: the layouts and descriptions of their operands. */
#ifndef TSSA_DEVICE_CPU_ONEDNN_CONV_DESC_H
#define TSSA_DEVICE_CPU_ONEDNN_CONV_DESC_H

#include "device/cpu/onednn/onednn.h"

enum conv_operand { SRC, WEIGHTS, BIAS, DST, OPERANDS };

/* Of images: channels first, in blocks of so many, as oneDNN likes, and channels last. */
enum conv_layout { PLAIN, BLOCKS_16, BLOCKS_8, ANY, LAST, LAYOUTS };

struct conv_layouts {
    enum conv_layout src, dst;
};

/* How many channels lie side by side. */
int64_t conv_block_of(enum conv_layout layout);

/* The axes of an image: one alone is the second of two, of which oneDNN has fast code. */
int conv_spatial_rank(const struct conv_problem *problem);

/* descs: OPERANDS, zeroed; of weights any layout that the primitive likes, or row-major ones.
 * Dropped by the caller, on failure, too. */
bool conv_describe(const struct conv_problem *problem, const dnnl_data_type_t *types,
                   const struct conv_layouts *layouts, bool any_weights, dnnl_memory_desc_t *descs);
void conv_drop_descs(dnnl_memory_desc_t *descs);

/* NULL: oneDNN has none. The caller's. */
dnnl_primitive_desc_t conv_create_desc(const struct onednn_engine *engine,
                                       const struct conv_problem *problem,
                                       dnnl_alg_kind_t algorithm, const dnnl_memory_desc_t *descs,
                                       dnnl_primitive_attr_t attr);

/* The implementation's, oneDNN's own. */
const char *conv_name(dnnl_primitive_desc_t desc);

#endif
