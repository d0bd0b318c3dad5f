/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cuda/ranges.h"

#include "device/cuda/card.h"
#include "device/cuda/shared.h"

static const struct shared_names names = {
    "NVTX", {"libnvToolsExt.so.1", "libnvtx3interop.so.1"}, NULL};

bool cuda_ranges_open(struct device_context *context)
{
    struct cuda_card *card = context->connected;
    struct cuda_ranges *ranges = &card->ranges;
    void *library;
    tssa_status *status = shared_open(&names, &library);
    if (status) { /* nobody misses it who has no profiler */
        tssa_status_free(status);
        return false;
    }
    shared_function(library, "nvtxRangePushA", &ranges->nvtxRangePushA);
    shared_function(library, "nvtxRangePop", &ranges->nvtxRangePop);
    return ranges->nvtxRangePushA && ranges->nvtxRangePop;
}

void cuda_range_begin(const struct device_context *context, const char *name)
{
    const struct cuda_card *card = context->connected;
    (void)card->ranges.nvtxRangePushA(name);
}

void cuda_range_end(const struct device_context *context)
{
    const struct cuda_card *card = context->connected;
    (void)card->ranges.nvtxRangePop();
}
