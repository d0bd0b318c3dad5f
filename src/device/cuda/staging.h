/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies between the card and memory of the host that the driver has not locked, by way of memory
 * that it has (pinned), in pieces, so that the host copies one while the card copies others. A
 * stream has that memory from its first such copy on.
 */
#ifndef TSSA_DEVICE_CUDA_STAGING_H
#define TSSA_DEVICE_CUDA_STAGING_H

#include "device/cuda/card.h"

/*
 * Copies of so many bytes and more, where the host has threads to copy with. On an H200 the driver
 * copies what it has not locked at 16.5 GB/s at most, and 8.5 where it is much, which is what one
 * thread copies; what it has locked at 50 to 55. In a slot is one piece.
 */
#define STAGING_LEAST ((size_t)4 << 20)
enum { STAGING_SLOTS = 4, STAGING_SLOT = 1 << 20 };

struct cuda_staging {
    char *memory; /* STAGING_SLOTS slots, each of STAGING_SLOT bytes */
    cuda_event done[STAGING_SLOTS];
    bool busy[STAGING_SLOTS]; /* until `done` has come the card reads, or writes, it */
    uint32_t next;
};

/* Is a copy of so many bytes to go this way? Then the stream has the memory for it. */
bool cuda_stages(struct cuda_queue *queue, size_t size);
/* The bytes have been read when it returns. */
tssa_status *cuda_stage_in(struct cuda_queue *queue, cuda_address to, const char *from,
                           size_t size);
/* The bytes are there when it returns, after all that was asked of the stream. */
tssa_status *cuda_stage_out(struct cuda_queue *queue, char *to, cuda_address from, size_t size);
/* When the stream is done. */
void cuda_staging_free(struct cuda_queue *queue);

#endif
