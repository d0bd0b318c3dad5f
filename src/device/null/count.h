/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a device would do, by number: what `null` counts of sizes, and `emulated` of what it has
 * computed.
 *
 * Of a step, a view is nothing. What asks a library (device/library.def) is a call of it, all else
 * a launch, what is fused one for all of it. Bytes are those of operands in the device's memory,
 * read, and of results, written; of what reads or changes a region, those of the region; a result
 * that cannot be changed in place costs a launch more, which copies it.
 */
#ifndef TSSA_DEVICE_NULL_COUNT_H
#define TSSA_DEVICE_NULL_COUNT_H

#include "device/device.h"

/* Of a dim in the op; false: it is not known. */
typedef bool (*count_dim_fn)(const struct kernel_args *args, const struct dim *dim, int64_t *value);

/* What is read and written; the outputs are made. */
void count_bytes(const struct kernel_args *args, count_dim_fn dim);
/* A launch that changes operand 0, whose memory it has taken or has not; the output is made. */
void count_update(const struct kernel_args *args, bool taken);

/* Copies between host and device are counted by themselves; one within the device is a launch, and
 * so is what fills memory. */
void count_copy(struct device_stream *stream, enum device_copy kind, size_t size);
void count_fill(struct device_stream *stream, size_t size);

#endif
