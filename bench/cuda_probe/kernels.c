/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/cuda_probe/kernels.h"

static const struct {
    const char *name, *source;
} files[KERNELS_COUNT] = {
    [KERNELS_BASIC] = {"basic.cu", kernel_source_basic},
    [KERNELS_CONDITION] = {"condition.cu", kernel_source_condition},
};

const char *kernels_name(kernels_file file)
{
    return files[file].name;
}

tssa_status *kernels_compile(kernels_file file, int architecture, image_kind kind,
                             struct image *image)
{
    const struct nvrtc_source source = {.text = files[file].source, .name = files[file].name};
    return nvrtc_compile(&allocator_default, &source, architecture, kind, image);
}
