/* SPDX-License-Identifier: Apache-2.0 */
#include "device/grids/grids.h"

#include <string.h>

#include "device/devices.h"
#include "device/grids/conv.h"
#include "device/grids/extreme.h"
#include "device/grids/fused.h"
#include "device/grids/grid_sample.h"
#include "device/grids/keep.h"
#include "device/grids/lists.h"
#include "device/grids/nms.h"
#include "device/grids/pool.h"
#include "device/grids/product.h"
#include "device/grids/programs.h"
#include "device/grids/resize.h"
#include "device/grids/roi.h"
#include "device/grids/scatter.h"
#include "device/grids/spread.h"
#include "device/grids/topk.h"
#include "device/grids/unique.h"
#include "gir/grid.h"
#include "ir/fuse.h"
#include "ir/memory.h"

/* ---- Kernels --------------------------------------------------------------------------------- */

static bool suits(const struct ir_type *type)
{
    return type->kind == TYPE_TENSOR && type->rank >= 0 && type->dtype != TSSA_UNDEFINED &&
           type->dtype != TSSA_STRING;
}

static bool suits_all(const struct ir_op *op)
{
    for (uint32_t i = 0; i < op->n_results; i++)
        if (op->results[i].wanted && !suits(op->results[i].type))
            return false;
    for (uint32_t i = 0; i < op->n_operands; i++)
        if (ir_operand(op, i) && !suits(ir_operand(op, i)->type))
            return false;
    return true;
}

static bool is_grid(const struct ir_op *fuse)
{
    struct gir_grid *grid;
    const char *why;
    tssa_status *status = gir_build_grid(fuse, fuse->parent->graph->allocator, &grid, &why);
    const bool built = !status && grid;
    tssa_status_free(status);
    gir_grid_free(grid);
    return built;
}

const struct kernel *grids_find_kernel(const struct ir_op *op)
{
    if (op->opaque || !suits_all(op))
        return NULL;
    if (ir_fuse_body(op))
        return is_grid(op) ? &grids_fused : NULL;
    if (op->n_blocks || !ir_op_is_name(op))
        return NULL;
    return cpu_device.find_kernel(op); /* it computes nothing but dims */
}

const struct kernel *grids_find_kernel_or_text(const struct ir_op *op)
{
    static const struct kernel *(*const texts[])(const struct ir_op *) = {
        grids_product_find,     grids_spread_find,  grids_lists_find_one, grids_keep_find,
        grids_topk_find,        grids_scatter_find, grids_nms_find,       grids_extreme_find,
        grids_conv_find,        grids_pool_find,    grids_resize_find,    grids_roi_find,
        grids_grid_sample_find, grids_unique_find};
    const struct kernel *kernel = grids_lists_find(op);
    if (!kernel)
        kernel = grids_nms_find_read(op);
    if (!kernel)
        kernel = grids_conv_find_followed(op);
    if (!kernel)
        kernel = grids_find_kernel(op);
    if (op->opaque || op->n_blocks || !suits_all(op))
        return kernel;
    for (size_t i = 0; !kernel && i < sizeof texts / sizeof *texts; i++)
        kernel = texts[i](op);
    return kernel;
}

/* ---- What is fused --------------------------------------------------------------------------- */

const char *grids_refuses(void *user, const struct ir_op *op)
{
    (void)user;
    return gir_grid_refuses(op);
}

const char *grids_refuses_whole(void *user, const struct ir_op *fuse)
{
    return grids_fused_refuses(user, fuse);
}

bool grids_is_free_of(void *user, const struct ir_op *fuse, const struct dim *size)
{
    (void)user;
    return gir_is_free_of(fuse, size);
}

bool grids_follows(void *user, const struct ir_op *conv)
{
    (void)user;
    return suits_all(conv) && grids_conv_find(conv);
}

bool grids_takes_alone(void *user, const struct ir_op *op)
{
    (void)user;
    return !ir_op_is_name(op);
}

/* ---- Streams --------------------------------------------------------------------------------- */

static tssa_status *clear_notes(struct grids_stream *stream)
{
    const struct device_place notes = {stream->notes, 0};
    return stream->stream.context->device->fill(&stream->stream, notes, 0, GRIDS_NOTES);
}

tssa_status *grids_stream_open(struct grids_stream *stream)
{
    stream->launched = false;
    stream->notes = stream->stream.context->device->allocate(&stream->stream, GRIDS_STREAM_BYTES);
    TRY_ALLOC(stream->notes);
    return clear_notes(stream);
}

void grids_stream_close(struct grids_stream *stream)
{
    if (stream->notes)
        stream->stream.context->device->release(&stream->stream, stream->notes, GRIDS_STREAM_BYTES);
}

/* The first of the plan that was noted, GRIDS_NOTES: none. */
static size_t find_note(const unsigned char *notes)
{
    const unsigned char *note = memchr(notes, 1, GRIDS_NOTES);
    return note ? (size_t)(note - notes) : GRIDS_NOTES;
}

/* And forgets them: the next run may be right. */
static tssa_status *take_note(struct grids_stream *stream, grids_read_fn read, size_t *note)
{
    unsigned char notes[GRIDS_NOTES];
    const struct device_place place = {stream->notes, 0};
    if (!stream->seen)
        TRY(read(&stream->stream, place, notes, sizeof notes));
    *note = find_note(stream->seen ? stream->seen : notes);
    if (*note == GRIDS_NOTES)
        return NULL;
    if (!stream->seen)
        return clear_notes(stream);
    memset(stream->seen, 0, GRIDS_NOTES);
    return NULL;
}

static tssa_status *error_of(struct grids_stream *stream, size_t note)
{
    if (note == GRIDS_NOTES)
        return NULL;
    const char *name = grids_note_name(stream->stream.context, (uint32_t)note);
    return ERROR(TSSA_RUNTIME, "node \"%s\", or one fused with it: an index is out of range", name);
}

tssa_status *grids_stream_failed(struct grids_stream *stream, grids_read_fn read)
{
    size_t note;
    if (!stream->launched)
        return NULL;
    stream->launched = false;
    TRY(take_note(stream, read, &note));
    return error_of(stream, note);
}

/* What was noted before them comes along. */
static tssa_status *copy_counts(struct grids_stream *stream, int64_t *counts, size_t size)
{
    struct device_stream *base = &stream->stream;
    const bool launched = stream->launched;
    const size_t from = launched ? 0 : GRIDS_NOTES;
    const struct device_place place = {stream->notes, from};
    unsigned char memory[GRIDS_STREAM_BYTES];
    stream->launched = false; /* the device need not read the notes once more */
    tssa_status *status =
        base->context->device->copy(base, DEVICE_COPY_OUT, (struct device_place){memory, from},
                                    place, GRIDS_NOTES + size - from);
    if (status) {
        stream->launched = launched;
        return status;
    }
    memcpy(counts, memory + GRIDS_NOTES, size);
    const size_t note = launched ? find_note(memory) : GRIDS_NOTES;
    if (note != GRIDS_NOTES)
        TRY(clear_notes(stream));
    return error_of(stream, note);
}

tssa_status *grids_read_counts(struct device_stream *stream, int64_t *counts, size_t n)
{
    struct grids_stream *own = (struct grids_stream *)stream;
    stream->counts.waits++;
    if (!own->seen)
        return copy_counts(own, counts, n * sizeof *counts);
    TRY(stream->context->device->stream_wait(stream));
    memcpy(counts, own->seen + GRIDS_NOTES, n * sizeof *counts);
    return NULL;
}
