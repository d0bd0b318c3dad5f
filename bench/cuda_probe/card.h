/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first card, ready for work: its primary context (which cuBLASLt and cuDNN use too), one
 * stream, and the kernels.
 *
 * A probe has a process to itself. What it takes from the driver (memory, graphs, streams) is given
 * back when that ends, in whatever state the probe left it; what it takes with malloc it frees.
 */
#ifndef TSSA_CUDA_PROBE_CARD_H
#define TSSA_CUDA_PROBE_CARD_H

#include "bench/cuda_probe/kernels.h"
#include "device/cuda/cuda_api.h"

struct card {
    struct cuda_api api;
    int device, architecture; /* 90: compute capability 9.0 */
    cuda_context context;
    cuda_stream stream;
    cuda_module modules[KERNELS_COUNT]; /* NULL until a kernel is wanted */
};

tssa_status *card_open(struct card *card);
void card_close(struct card *card); /* also after card_open failed */

/* A call of the driver, as a status. */
#define CARD(card, function, ...) CUDA(&(card)->api, function, __VA_ARGS__)

tssa_status *card_attribute(struct card *card, unsigned attribute, int *value);
tssa_status *card_sync(struct card *card);

/* Device memory, filled with zeros or from `data`. */
tssa_status *card_zeros(struct card *card, size_t size, cuda_address *memory);
tssa_status *card_upload(struct card *card, const void *data, size_t size, cuda_address *memory);
tssa_status *card_download(struct card *card, cuda_address memory, size_t size, void *data);

/* Compiles a file of kernels and loads it, in place of what was loaded of it. */
tssa_status *card_load(struct card *card, kernels_file file, image_kind kind);

/* A kernel by name. Its file is compiled and loaded when it is the first: as machine code, or as
 * PTX if the driver does not take that. */
tssa_status *card_kernel(struct card *card, kernels_file file, const char *name,
                         cuda_function *kernel);

/* Launches with `blocks` blocks of `threads`; the arguments are pointers to the parameters. */
#define CARD_LAUNCH(card, stream, kernel, blocks, threads, ...)                                    \
    CARD(card, cuLaunchKernel, kernel, blocks, 1, 1, threads, 1, 1, 0, stream,                     \
         (void *[]){__VA_ARGS__}, NULL)

#endif
