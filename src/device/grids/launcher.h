/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a device has that launches grids (gir/grid.h): a compiler of the text that
 * codegen/clike/clike.h makes of them, and launches. All else that such devices need for fuse ops
 * is the same for all of them, and is in this folder.
 */
#ifndef TSSA_DEVICE_GRIDS_LAUNCHER_H
#define TSSA_DEVICE_GRIDS_LAUNCHER_H

#include "codegen/clike/clike.h"
#include "codegen/protocol.h"
#include "device/device.h"

/* A parameter of a launch; see clike_params. */
struct launch_param {
    bool is_memory;
    struct device_place place; /* of the device's memory; where it is none, the number is given */
    int64_t number;
};

struct launch {
    void *function;
    /* Of 32 threads in x by so many in y; blocks are in x. */
    uint32_t blocks, height;
    uint32_t n_params;
    const struct launch_param *params;
};

/* A program as the device loads it, to be kept for later processes. */
struct launcher_image {
    void *data; /* the allocator's of the context; NULL: there is none to be had */
    size_t size;
    struct codegen_maker maker; /* zeros: `describe` says by what it was made */
};

struct launcher {
    enum clike_dialect dialect;
    /* What `launch.height` is: of launches with parts that have rows, and of all others. */
    uint32_t row_height, height;
    size_t most_bytes; /* of parameters: 8 for a number, and for memory what its dialect has */
    /*
     * Compiles a text, the prelude included, with functions k0, k1, ..., which live as long as the
     * program, a handle. Called by one thread at a time. TSSA_UNSUPPORTED: there is no compiler.
     * `image`: what to keep; NULL: nothing.
     */
    tssa_status *(*build)(struct device_context *context, const char *text, uint32_t n,
                          void **functions, void **program, struct launcher_image *image);
    /* The same of what was kept, which may be anything that begins with a program. */
    tssa_status *(*load)(struct device_context *context, const void *image, size_t size, uint32_t n,
                         void **functions, void **program);
    /* What an image is for, and was made with, besides its text and its maker: the kind of card,
     * the driver where it compiles, options. */
    void (*describe)(struct device_context *context, struct text *text);
    /* When nothing runs any more. */
    void (*release)(struct device_context *context, void *program, uint32_t n, void **functions);
    /* After what was asked of the stream; what it writes is there when that is waited for. */
    tssa_status *(*launch)(struct device_stream *stream, const struct launch *launch);
};

#endif
