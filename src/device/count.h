/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What devices do, by number: what `null` counts of sizes, and others of what they compute.
 *
 * Of a step, a view is nothing. What asks a library (device/library.def) is a call of it, all else
 * a launch, what is fused one for all of it. Bytes are those of operands in the device's memory,
 * read, and of results, written; of what reads or changes a region, those of the region; a result
 * that cannot be changed in place costs a launch more, which copies it; so it is of what a fused
 * kernel updates (ir/update.h).
 */
#ifndef TSSA_DEVICE_COUNT_H
#define TSSA_DEVICE_COUNT_H

#include "device/device.h"

/* Of a dim in the op; false: it is not known. */
typedef bool (*count_dim_fn)(const struct kernel_args *args, const struct dim *dim, int64_t *value);

/* The operand that the result of a fuse op updates; UINT32_MAX: none. */
uint32_t count_updated(const struct ir_op *fuse, uint32_t result);
/* Per result 1 + that operand, or 0; NULL where the op is no fuse op. */
tssa_status *count_find_updates(const struct ir_op *op, struct arena *arena,
                                const uint32_t **updates);

/* What is read and written; the outputs are made. `updates` as above. */
void count_bytes(const struct kernel_args *args, const uint32_t *updates, count_dim_fn dim);
/* A wait, where neither the plan nor the operands that the host has tell a size of a result. */
tssa_status *count_wait(const struct kernel_args *args);
/* A launch that copies what could not be taken into the output, which is made. */
void count_copy_first(const struct kernel_args *args, uint32_t output);
/* A launch that changes operand 0, whose memory it has taken or has not; the output is made. */
void count_update(const struct kernel_args *args, bool taken);

/* Copies between host and device are counted by themselves; one within the device is a launch, and
 * so is what fills memory. */
void count_copy(struct device_stream *stream, enum device_copy kind, size_t size);
void count_fill(struct device_stream *stream, size_t size);

#endif
