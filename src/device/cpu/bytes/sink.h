/* SPDX-License-Identifier: Apache-2.0 */
/* Where sums of bytes go: as they are, or quantized. */
#ifndef TSSA_DEVICE_CPU_BYTES_SINK_H
#define TSSA_DEVICE_CPU_BYTES_SINK_H

#include "device/cpu/bytes/tiles.h"
#include "device/library.h"

struct sink {
    const struct library_quantizer *quantizer; /* NULL: sums are kept */
    void *y;
    int64_t channels, windows; /* of all groups; of one image */
    bool channels_first;
};

void sink_quantizer(const struct sink *sink, int64_t channel, int columns,
                    struct tile_quantizer *quantizer);

/* Where the bytes of a whole panel's rows go, sink->channels apart, if they lie side by side; else
 * NULL. */
uint8_t *sink_bytes(const struct sink *sink, int64_t channel, int columns, int64_t row);

/* Sums [rows][TILE_COLUMNS], aligned, of which `columns` are channels from `channel` on. */
void sink_store(const struct sink *sink, int64_t channel, int columns, int64_t row, int64_t rows,
                const int32_t *sums);

#endif
