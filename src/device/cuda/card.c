/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cuda/card.h"

#include <inttypes.h>

#include "device/cuda/conditions.h"
#include "device/cuda/convolution.h"
#include "device/cuda/library.h"

/* What fails before there is a card says that there is none for tssa. */
static tssa_status *no_card(tssa_status *status)
{
    if (!status || tssa_status_code(status) != TSSA_RUNTIME)
        return status;
    tssa_status *made = ERROR(TSSA_UNSUPPORTED, "no CUDA device: %s", tssa_status_message(status));
    tssa_status_free(status);
    return made;
}

static tssa_status *check_driver(struct cuda_card *card)
{
    TRY(CUDA(&card->api, cuDriverGetVersion, &card->driver));
    if (card->driver >= CUDA_OLDEST_DRIVER)
        return NULL;
    return ERROR(TSSA_UNSUPPORTED,
                 "the CUDA driver is too old: it is for CUDA %d.%d, and %d.%d is needed",
                 card->driver / 1000, card->driver % 1000 / 10, CUDA_OLDEST_DRIVER / 1000,
                 CUDA_OLDEST_DRIVER % 1000 / 10);
}

static tssa_status *find_card(struct cuda_card *card, uint32_t number)
{
    int count = 0, major, minor;
    TRY(check_driver(card));
    TRY(CUDA(&card->api, cuInit, 0));
    TRY(CUDA(&card->api, cuDeviceGetCount, &count));
    if (count < 1)
        return ERROR(TSSA_UNSUPPORTED, "no CUDA device: the driver finds none");
    if (number >= (uint32_t)count)
        return ERROR(TSSA_UNSUPPORTED,
                     "there is no cuda:%" PRIu32
                     ": the driver finds %d, of which cuda:%d is the last",
                     number, count, count - 1);
    TRY(CUDA(&card->api, cuDeviceGet, &card->device, (int)number));
    TRY(CUDA(&card->api, cuDeviceGetAttribute, &major, CUDA_ATTRIBUTE_CAPABILITY_MAJOR,
             card->device));
    TRY(CUDA(&card->api, cuDeviceGetAttribute, &minor, CUDA_ATTRIBUTE_CAPABILITY_MINOR,
             card->device));
    card->architecture = 10 * major + minor;
    return NULL;
}

static tssa_status *open_card(struct cuda_card *card, uint32_t number)
{
    TRY(cuda_api_open(&card->api));
    TRY(no_card(find_card(card, number)));
    return CUDA(&card->api, cuDevicePrimaryCtxRetain, &card->context, card->device);
}

tssa_status *cuda_connect(struct device_context *context)
{
    struct cuda_card *card = allocator_calloc(context->allocator, 1, sizeof *card);
    TRY_ALLOC(card);
    tssa_status *status = open_card(card, context->number);
    if (status)
        allocator_free(context->allocator, card);
    else
        context->connected = card;
    return status;
}

void cuda_close(struct device_context *context)
{
    struct cuda_card *card = context->connected;
    if (!card)
        return;
    grids_close(context);
    cuda_library_close(context);
    cuda_convolution_close(context);
    cuda_conditions_close(context);
    tssa_status_free(CUDA(&card->api, cuDevicePrimaryCtxRelease_v2, card->device));
    allocator_free(context->allocator, card);
    context->connected = NULL;
}

tssa_status *cuda_enter(const struct device_context *context, const struct cuda_card **card)
{
    *card = context->connected;
    return CUDA(&(*card)->api, cuCtxSetCurrent, (*card)->context);
}

const struct cuda_card *cuda_enter_anyway(const struct device_context *context)
{
    const struct cuda_card *card;
    tssa_status_free(cuda_enter(context, &card));
    return card;
}
