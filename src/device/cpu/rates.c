/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cpu/rates.h"

#include <string.h>

#include "base/isa.h"
#include "codegen/cache.h"
#include "device/cpu/compile.h"
#include "device/cpu/probe.h"

/* On the EPYC (Zen 4) on which gir_rates_v3 and gir_rates_v4 were chosen, with AVX2 and with
 * AVX-512. */
static const struct cpu_probe there_v3 = {.bytes = {32768, 1048576},
                                          .pace = 1.083,
                                          .operation = 0.1948,
                                          .division = 0.8146,
                                          .read = {0.009, 0.0086, 0.0102, 0.065},
                                          .written = {0.0107, 0.012, 0.0128, 0.07}},
                              there_v4 = {.bytes = {32768, 1048576},
                                          .pace = 1.083,
                                          .operation = 0.2245,
                                          .division = 1.628,
                                          .read = {0.0072, 0.0092, 0.0107, 0.065},
                                          .written = {0.0107, 0.0117, 0.0127, 0.07}};

#define SUBJECT "probe 1" /* the number of what is measured, and how */

static bool read_probe(const struct cache *cache, const tssa_allocator *allocator,
                       struct cache_subject subject, struct cpu_probe *probe)
{
    size_t size;
    void *kept = cache_read(cache, allocator, subject, &size);
    const bool good = kept && size == sizeof *probe;
    if (good)
        memcpy(probe, kept, sizeof *probe);
    allocator_free(allocator, kept);
    return good;
}

/* False: it is not kept, and cannot be. */
static bool find_probe(struct device_context *context, struct cpu_probe *probe)
{
    static const struct cache_subject subject = {SUBJECT, sizeof SUBJECT};
    const tssa_allocator *allocator = context->allocator;
    struct cache cache;
    char problem[160];
    if (!context->cache)
        return false;
    bool good = cache_open(&cache, context->cache, cpu_codegen_level(), problem, sizeof problem) &&
                cache.folder >= 0;
    if (good && !read_probe(&cache, allocator, subject, probe))
        good = cpu_probe(allocator, probe) && cache_write(&cache, allocator, subject, NULL, probe,
                                                          sizeof *probe, problem, sizeof problem);
    cache_close(&cache);
    return good;
}

void cpu_rates(struct device_context *context, struct gir_rates *rates)
{
    const bool wide = isa_level() == ISA_V4;
    struct cpu_probe here;
    *rates = wide ? gir_rates_v4 : gir_rates_v3;
    if (find_probe(context, &here))
        cpu_probe_scale(wide ? &there_v4 : &there_v3, &here, rates);
}
