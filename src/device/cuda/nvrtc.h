/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA C to machine code at run time. Needs libnvrtc, and neither a driver nor a card. */
#ifndef TSSA_DEVICE_CUDA_NVRTC_H
#define TSSA_DEVICE_CUDA_NVRTC_H

#include <stdbool.h>
#include <stddef.h>

#include "base/alloc.h"
#include "device/cuda/shared.h"

typedef enum { IMAGE_CUBIN, IMAGE_PTX } image_kind;

struct image {
    char *data; /* the allocator's; ends with a NUL that `size` does not count */
    size_t size;
    char library[256]; /* the file of the compiler, "" where it is not known, and its version */
    int version[2];
    char *log; /* what the compiler said, where that is asked for; the allocator's, may be NULL */
};

#define NVRTC_MAX_OPTIONS 8

struct nvrtc_source {
    const char *text, *name;
    const char *options[NVRTC_MAX_OPTIONS]; /* beside the architecture; NULL at the end */
    bool keeps_log;
};

/* `architecture`: 90 for compute capability 9.0. An error of the compiler is its first line. */
tssa_status *nvrtc_compile(const tssa_allocator *allocator, const struct nvrtc_source *source,
                           int architecture, image_kind kind, struct image *image);

#endif
