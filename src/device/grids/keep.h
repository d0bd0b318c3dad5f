/* SPDX-License-Identifier: Apache-2.0 */
/* NonZero and Compress: how many elements are kept is counted first, and read back. */
#ifndef TSSA_DEVICE_GRIDS_KEEP_H
#define TSSA_DEVICE_GRIDS_KEEP_H

#include "device/kernel.h"

/* Elements of a thread in a chunk, as kernels/grids has them: EACH of keep.h, EACH_SIFTED of
 * topk.h. */
#define GRIDS_CHUNK_EACH 8

/* NULL: it is no such op, or of elements that texts do not move. */
const struct kernel *grids_keep_find(const struct ir_op *op);

#endif
