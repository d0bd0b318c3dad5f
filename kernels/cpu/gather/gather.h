/* SPDX-License-Identifier: Apache-2.0 */
/* Copying chosen blocks of a tensor: what Gather, GatherND, Compress and Unique come down to. */
#ifndef TSSA_KERNELS_CPU_GATHER_GATHER_H
#define TSSA_KERNELS_CPU_GATHER_GATHER_H

#include "device/kernel.h"

/*
 * `to` gets, for each batch, one block of `from` for each of the `per_batch` offsets of that batch.
 * Offsets and x_batch, the distance of two batches of `from`, are in blocks.
 */
struct gather_job {
    const char *from;
    char *to;
    size_t block; /* bytes, not 0 */
    int64_t per_batch, x_batch;
    const int64_t *offsets;
    int64_t offsets_batch; /* 0: the same offsets in every batch */
};

void gather_blocks(const struct team *team, const struct gather_job *job, int64_t batches);

#endif
