/* SPDX-License-Identifier: Apache-2.0 */
/* NonZero and Compress, and the numbers of what is kept for others: how many elements that are is
 * counted first, and read back. */
#ifndef TSSA_DEVICE_GRIDS_KEEP_H
#define TSSA_DEVICE_GRIDS_KEEP_H

#include "device/kernel.h"
#include "device/place.h"

/* Elements of a thread in a chunk, as kernels/grids has them: EACH of keep.h, EACH_SIFTED of
 * topk.h. */
#define GRIDS_CHUNK_EACH 8

/* Where elements are that are kept, and how many. */
struct grids_kept {
    tssa_dtype word;
    int64_t bits, count; /* elements, which are zero where these bits are */
    struct device_place from;
    int64_t chunks, found;
    bool adds_up; /* there are so many chunks that the device does, before the host is told */
    struct buffer *counts; /* per chunk: how many it has, or, added up, how many are before it */
};

/* The numbers of those of the first four members, INT64, which are to be released, and how many
 * they are, for which it waits; there is at least one element. *numbers may stay NULL where none is
 * kept. Whether it fails or not, `kept` is to be closed. */
tssa_status *grids_keep_numbers(struct kernel_args *args, struct grids_kept *kept,
                                struct buffer **numbers);
void grids_kept_close(struct grids_kept *kept);

/* NULL: it is no such op, or of elements that texts do not move. */
const struct kernel *grids_keep_find(const struct ir_op *op);

#endif
