/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loops and branches in recordings (device/device.h) are conditional nodes of the driver's graphs.
 * A node's body is captured by a stream of its own, which takes the place of the recorded one until
 * the body ends. What a loop carries is moved, and the node decided, by one small kernel
 * (kernels/cuda), which alone of all is linked with the driver.
 */
#ifndef TSSA_DEVICE_CUDA_CONDITIONS_H
#define TSSA_DEVICE_CUDA_CONDITIONS_H

#include "device/cuda/card.h"

bool cuda_records_while(const struct device_context *context);
bool cuda_records_if(const struct device_context *context);
tssa_status *cuda_record_while_begin(struct device_stream *stream, const struct device_while *loop,
                                     const struct device_move *moves, uint32_t n_moves);
tssa_status *cuda_record_while_end(struct device_stream *stream, const struct device_while *loop,
                                   struct device_place go, const struct device_move *moves,
                                   uint32_t n_moves);
tssa_status *cuda_record_if_begin(struct device_stream *stream, struct device_place condition);
tssa_status *cuda_record_if_else(struct device_stream *stream, const struct device_move *moves,
                                 uint32_t n_moves);
tssa_status *cuda_record_if_end(struct device_stream *stream, const struct device_move *moves,
                                uint32_t n_moves);

/* Ends the bodies that are being captured, of a recording that failed. */
void cuda_conditions_unwind(struct cuda_queue *queue);
/* The kernel's text; false: memory ran out. */
bool cuda_conditions_print(struct text *text);
/* Before the card is closed. */
void cuda_conditions_close(struct device_context *context);

#endif
