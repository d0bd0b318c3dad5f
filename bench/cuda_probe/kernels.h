/* SPDX-License-Identifier: Apache-2.0 */
/* The probes' kernels: kernels/NAME.cu, whose text is part of the program. */
#ifndef TSSA_CUDA_PROBE_KERNELS_H
#define TSSA_CUDA_PROBE_KERNELS_H

#include "device/cuda/nvrtc.h"

typedef enum { KERNELS_BASIC, KERNELS_CONDITION, KERNELS_COUNT } kernels_file;

/* Written by the build, in the order of their names. */
extern const char kernel_source_basic[], kernel_source_condition[];

const char *kernels_name(kernels_file file); /* "basic.cu" */
/* The image is that of allocator_default. */
tssa_status *kernels_compile(kernels_file file, int architecture, image_kind kind,
                             struct image *image);

#endif
