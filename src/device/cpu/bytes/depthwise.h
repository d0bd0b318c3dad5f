/* SPDX-License-Identifier: Apache-2.0 */
/* Convolutions of bytes of one channel in each group: sums of neighbouring channels, two elements
 * of the window at a time. */
#ifndef TSSA_DEVICE_CPU_BYTES_DEPTHWISE_H
#define TSSA_DEVICE_CPU_BYTES_DEPTHWISE_H

#include "device/cpu/bytes/image.h"
#include "device/cpu/bytes/sink.h"

bool depthwise_takes(const struct conv_problem *problem);

size_t depthwise_packed_bytes(const struct image *image);
/* Of weights [channels][taps], less their zero point. */
void depthwise_pack(const struct image *image, const int8_t *weights, int8_t zero, void *packed);

/* Memory of all threads, which depthwise_open fills in. */
size_t depthwise_scratch_bytes(const struct image *image);

struct depthwise {
    const struct image *image;
    const void *packed;
    struct image_bytes bytes;
    const int32_t *bias; /* NULL: none */
    const struct sink *sink;
    void *scratch;
};

void depthwise_open(const struct depthwise *work);
/* Windows [begin, end) of all images. */
void depthwise_run(const struct depthwise *work, int64_t begin, int64_t end);

#endif
