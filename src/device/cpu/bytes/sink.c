/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cpu/bytes/sink.h"

#include <string.h>

/* Elements of a row to the next channel, and the place of its first channel. */
static int64_t apart(const struct sink *sink)
{
    return sink->channels_first ? sink->windows : 1;
}

static int64_t place(const struct sink *sink, int64_t channel, int64_t row)
{
    if (!sink->channels_first)
        return row * sink->channels + channel;
    return (row / sink->windows * sink->channels + channel) * sink->windows + row % sink->windows;
}

static void keep(const struct sink *sink, int64_t channel, int columns, int64_t row, int64_t rows,
                 const int32_t *sums)
{
    const int64_t step = apart(sink);
    for (int64_t r = 0; r < rows; r++, sums += TILE_COLUMNS) {
        int32_t *to = (int32_t *)sink->y + place(sink, channel, row + r);
        if (step == 1)
            memcpy(to, sums, (size_t)columns * sizeof *to);
        for (int c = 0; c < columns && step != 1; c++)
            to[c * step] = sums[c];
    }
}

void sink_quantizer(const struct sink *sink, int64_t channel, int columns,
                    struct tile_quantizer *quantizer)
{
    *quantizer = (struct tile_quantizer){.zero = (int32_t)sink->quantizer->zero,
                                         .is_signed = sink->quantizer->dtype == TSSA_INT8};
    memcpy(quantizer->factors, sink->quantizer->factors + channel,
           (size_t)columns * sizeof *quantizer->factors);
}

uint8_t *sink_bytes(const struct sink *sink, int64_t channel, int columns, int64_t row)
{
    const bool lies = sink->quantizer && columns == TILE_COLUMNS && apart(sink) == 1;
    return lies ? (uint8_t *)sink->y + place(sink, channel, row) : NULL;
}

#define SCATTERED 16 /* rows that are quantized at a time */

/* What is no whole panel, or does not lie side by side. */
static void scatter(const struct sink *sink, const struct tile_quantizer *q, int64_t channel,
                    int columns, int64_t row, int64_t rows, const int32_t *sums)
{
    const int64_t step = apart(sink);
    uint8_t bytes[SCATTERED][TILE_COLUMNS];
    for (int64_t r = 0; r < rows; r++) {
        uint8_t *to = (uint8_t *)sink->y + place(sink, channel, row + r),
                *from = bytes[r % SCATTERED];
        if (r % SCATTERED == 0)
            tile_quantize(q, rows - r < SCATTERED ? rows - r : SCATTERED, sums + r * TILE_COLUMNS,
                          bytes[0], TILE_COLUMNS);
        if (step == 1 && columns == TILE_COLUMNS / 2)
            memcpy(to, from, TILE_COLUMNS / 2);
        else
            for (int c = 0; c < columns; c++)
                to[c * step] = from[c];
    }
}

void sink_store(const struct sink *sink, int64_t channel, int columns, int64_t row, int64_t rows,
                const int32_t *sums)
{
    struct tile_quantizer q;
    if (!sink->quantizer) {
        keep(sink, channel, columns, row, rows, sums);
        return;
    }
    sink_quantizer(sink, channel, columns, &q);
    uint8_t *bytes = sink_bytes(sink, channel, columns, row);
    if (bytes)
        tile_quantize(&q, rows, sums, bytes, sink->channels);
    else
        scatter(sink, &q, channel, columns, row, rows, sums);
}
