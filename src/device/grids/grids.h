/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all devices do alike that launch grids (launcher.h): a fuse op is one launch, and so is a
 * lone op of which a grid can be made; views are names of memory, told by the host's kernels. What
 * is no grid has kernels that are written as text (kernels/grids): products of matrices
 * (product.h), convolutions (conv.h), pooling (pool.h), Resize (resize.h), RoiAlign (roi.h),
 * GridSample (grid_sample.h), what a shape spreads (spread.h), what a mask keeps (keep.h), TopK
 * (topk.h), Unique (unique.h), ScatterND and ScatterElements (scatter.h), NonMaxSuppression
 * (nms.h), ReduceMax and ReduceMin of all elements (extreme.h). All else such a device lacks,
 * unless it says otherwise.
 *
 * Launches are compiled when the first of them runs, all that a context has by then in a few texts,
 * or when a session is made that is to wait for that.
 * Equal launches are compiled once.
 *
 * What a grid finds wrong (an index out of range) it notes in memory of the stream, and who reads a
 * result from the device's memory, or waits for the stream, is told, of the first such op in the
 * plan.
 */
#ifndef TSSA_DEVICE_GRIDS_GRIDS_H
#define TSSA_DEVICE_GRIDS_GRIDS_H

#include "device/device.h"
#include "ir/cost.h"
#include "ir/fuse.h"

/* As struct device has it. */
const struct kernel *grids_find_kernel(const struct ir_op *op);
/* With kernels that are texts, for devices whose launches have memory that a block shares. */
const struct kernel *grids_find_kernel_or_text(const struct ir_op *op);

/* What such a device fuses; `user` is its launcher. */
#define GRIDS_FUSION(its_launcher)                                                                 \
    {                                                                                              \
        .classes = IR_FUSES_GRIDS, .machine = &cost_gpu, .most_operands = 64,                      \
        .moves_inside = true, .row_parts = true, .side_by_side = true, .updates = true,            \
        .expands = true, .refuses = grids_refuses, .refuses_whole = grids_refuses_whole,           \
        .is_free_of = grids_is_free_of, .follows = grids_follows,                                  \
        .takes_alone = grids_takes_alone, .user = (void *)(its_launcher)                           \
    }
const char *grids_refuses(void *user, const struct ir_op *op);
const char *grids_refuses_whole(void *user, const struct ir_op *fuse);
bool grids_is_free_of(void *user, const struct ir_op *fuse, const struct dim *size);
bool grids_follows(void *user, const struct ir_op *conv);
bool grids_takes_alone(void *user, const struct ir_op *op);

/* As struct device has it, in programs.c. */
tssa_status *grids_compile_waiting(struct device_context *context);

/* The same. */
void grids_compiled(struct device_context *context, struct device_compiled *made);

/* Of `close`, before the device's own: gives all programs back. */
void grids_close(struct device_context *context);

/* What streams of such a device begin with. */
struct grids_stream {
    struct device_stream stream;
    /* GRIDS_NOTES bytes of the device's memory: what was found wrong; behind them GRIDS_COUNTS
     * numbers: how many elements were found, for which the host waits. */
    void *notes;
    unsigned char *seen; /* the same, of memory that the host sees as well; NULL: it is read */
    bool launched;       /* a kernel that checks, since notes were read */
};

#define GRIDS_NOTES 1024
#define GRIDS_COUNTS 128
#define GRIDS_STREAM_BYTES (GRIDS_NOTES + GRIDS_COUNTS * sizeof(int64_t))

/* When the device's own is open, unless its notes are the host's, too; and before it is closed. */
tssa_status *grids_stream_open(struct grids_stream *stream);
void grids_stream_close(struct grids_stream *stream);
/* Reads `size` bytes, which are there when it returns. */
typedef tssa_status *(*grids_read_fn)(struct device_stream *stream, struct device_place from,
                                      void *to, size_t size);
/* Where kernels put such numbers, int64, which none reads: it may be the host's memory. */
static inline struct device_place grids_counts(const struct device_stream *stream)
{
    return (struct device_place){((const struct grids_stream *)stream)->notes, GRIDS_NOTES};
}
/* Waits for the first n of them, and tells errors as the next one. */
tssa_status *grids_read_counts(struct device_stream *stream, int64_t *counts, size_t n);
/* Behind what the device reads for others, and in its stream_wait, when all that was asked of the
 * stream is done: whether the kernels have found an error. */
tssa_status *grids_stream_failed(struct grids_stream *stream, grids_read_fn read);

#endif
