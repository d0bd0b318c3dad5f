/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/cuda_probe/probe.h"

static const struct {
    const char *name, *unit;
    unsigned attribute;
} figures[] = {
    {"multiprocessors", "", CUDA_ATTRIBUTE_MULTIPROCESSORS},
    {"clock", "kHz", CUDA_ATTRIBUTE_CLOCK_KHZ},
    {"memory clock", "kHz", CUDA_ATTRIBUTE_MEMORY_CLOCK_KHZ},
    {"memory bus", "bits", CUDA_ATTRIBUTE_MEMORY_BUS_BITS},
    {"L2 cache", "bytes", CUDA_ATTRIBUTE_L2_BYTES},
    {"copy engines", "", CUDA_ATTRIBUTE_ASYNC_ENGINES},
    {"shared memory per block", "bytes", CUDA_ATTRIBUTE_SHARED_BYTES_OPTIN},
};

tssa_status *probe_device(struct card *card, FILE *out)
{
    char name[256];
    int driver;
    size_t memory;
    TRY(CARD(card, cuDeviceGetName, name, sizeof name, card->device));
    TRY(CARD(card, cuDriverGetVersion, &driver));
    TRY(CARD(card, cuDeviceTotalMem_v2, &memory, card->device));
    record_fact(out, "card", "%s", name);
    record_fact(out, "driver", "CUDA %d.%d", driver / 1000, driver % 1000 / 10);
    record_fact(out, "compute capability", "%d.%d", card->architecture / 10,
                card->architecture % 10);
    record_figure(out, (double)memory, "bytes", "memory");
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) {
        int value;
        TRY(card_attribute(card, figures[i].attribute, &value));
        record_figure(out, value, figures[i].unit, "%s", figures[i].name);
    }
    return NULL;
}
