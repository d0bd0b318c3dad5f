/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/cuda_probe/card.h"

static tssa_status *open_device(struct card *card)
{
    int major, minor;
    TRY(CARD(card, cuInit, 0));
    TRY(CARD(card, cuDeviceGet, &card->device, 0));
    TRY(card_attribute(card, CUDA_ATTRIBUTE_CAPABILITY_MAJOR, &major));
    TRY(card_attribute(card, CUDA_ATTRIBUTE_CAPABILITY_MINOR, &minor));
    card->architecture = 10 * major + minor;
    return NULL;
}

tssa_status *card_open(struct card *card)
{
    *card = (struct card){0};
    TRY(cuda_api_open(&card->api));
    TRY(status_prefix(open_device(card), "no CUDA device"));
    TRY(CARD(card, cuDevicePrimaryCtxRetain, &card->context, card->device));
    TRY(CARD(card, cuCtxSetCurrent, card->context));
    return CARD(card, cuStreamCreate, &card->stream, CUDA_STREAM_NON_BLOCKING);
}

void card_close(struct card *card)
{
    if (card->context)
        tssa_status_free(CARD(card, cuDevicePrimaryCtxRelease_v2, card->device));
    card->context = NULL;
}

tssa_status *card_attribute(struct card *card, unsigned attribute, int *value)
{
    return CARD(card, cuDeviceGetAttribute, value, attribute, card->device);
}

tssa_status *card_sync(struct card *card)
{
    return CARD(card, cuStreamSynchronize, card->stream);
}

tssa_status *card_zeros(struct card *card, size_t size, cuda_address *memory)
{
    size_t words = (size + 3) / 4;
    TRY(CARD(card, cuMemAlloc_v2, memory, 4 * words));
    TRY(CARD(card, cuMemsetD32Async, *memory, 0, words, card->stream));
    return card_sync(card);
}

tssa_status *card_upload(struct card *card, const void *data, size_t size, cuda_address *memory)
{
    TRY(CARD(card, cuMemAlloc_v2, memory, size));
    TRY(CARD(card, cuMemcpyHtoDAsync_v2, *memory, data, size, card->stream));
    return card_sync(card);
}

tssa_status *card_download(struct card *card, cuda_address memory, size_t size, void *data)
{
    TRY(CARD(card, cuMemcpyDtoHAsync_v2, data, memory, size, card->stream));
    return card_sync(card);
}

tssa_status *card_load(struct card *card, kernels_file file, image_kind kind)
{
    struct image image;
    cuda_module module;
    TRY(kernels_compile(file, card->architecture, kind, &image));
    tssa_status *status = CARD(card, cuModuleLoadData, &module, image.data);
    allocator_free(&allocator_default, image.data);
    if (!status)
        card->modules[file] = module;
    return status;
}

static tssa_status *load(struct card *card, kernels_file file)
{
    tssa_status *status = card_load(card, file, IMAGE_CUBIN);
    if (!status)
        return NULL;
    tssa_status *as_ptx = card_load(card, file, IMAGE_PTX);
    if (as_ptx) {
        tssa_status_free(as_ptx);
        return status;
    }
    tssa_status_free(status);
    return NULL;
}

tssa_status *card_kernel(struct card *card, kernels_file file, const char *name,
                         cuda_function *kernel)
{
    if (!card->modules[file])
        TRY(load(card, file));
    return CARD(card, cuModuleGetFunction, kernel, card->modules[file], name);
}
