/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cpu/provider.h"

#include <string.h>

#include "base/plugin.h"
#include "device/cpu/bytes/bytes.h"
#include "device/device.h"

const struct cpu_provider *cpu_provider_open(void)
{
    const struct cpu_provider *(*get)(void) = NULL;
    void *symbol = plugin_symbol(CPU_PROVIDER_PLUGIN, CPU_PROVIDER_SYMBOL);
    if (!symbol)
        return NULL;
    memcpy(&get, &symbol, sizeof symbol); /* ISO C has no such cast; POSIX promises it works */
    return get();
}

/* In the place of an engine: it was looked for, and there is none. */
static struct cpu_engine no_engine;

static void *open_engine(struct device_context *context)
{
    const struct cpu_provider *provider = cpu_provider_open();
    struct cpu_engine *engine = provider ? provider->open() : NULL;
    (void)context;
    return engine ? engine : &no_engine;
}

struct cpu_engine *cpu_engine(struct device_context *context)
{
    struct cpu_engine *engine = device_context_once(context, &context->library, open_engine);
    return engine == &no_engine ? NULL : engine;
}

void cpu_engine_close(struct device_context *context)
{
    struct cpu_engine *engine = atomic_load_explicit(&context->library, memory_order_acquire);
    if (engine && engine != &no_engine)
        engine->provider->close(engine);
}

/* ---- The library ----------------------------------------------------------------------------- */

/* Fewer multiplications are one thread's: it is done when others have started. Convolutions of 16
 * to 64 channels take as long on two threads as on one where there are 40,000 to 80,000. */
#define SHARED_WORK ((int64_t)1 << 16)

static int useful_threads(const struct team *team, int64_t work)
{
    return team && work > SHARED_WORK ? team->threads : 1;
}

int cpu_library_threads(struct device_context *context, const struct team *team, int64_t work)
{
    const struct cpu_engine *engine = context->device->library ? cpu_engine(context) : NULL;
    return engine ? engine->provider->threads(useful_threads(team, work)) : 0;
}

int cpu_library_byte_threads(struct device_context *context, const struct team *team, int64_t work)
{
    const int found = cpu_library_threads(context, team, work);
    return found || !context->device->library ? found : useful_threads(team, work);
}

void cpu_library_get_ready(struct device_context *context)
{
    struct cpu_engine *engine = context->device->library ? cpu_engine(context) : NULL;
    if (engine)
        engine->provider->get_ready(engine);
}

static bool is_there(enum library_kind kind, char *why, size_t size)
{
    (void)kind;
    if (cpu_provider_open())
        return true;
    plugin_problem(CPU_PROVIDER_PLUGIN, why, size);
    return false;
}

static bool convolves(void)
{
    return cpu_provider_open() != NULL;
}

/* Without the provider? Sums to be quantized that it declines it may take as sums, unless weights
 * have a zero point. */
static bool is_ours(const struct cpu_engine *engine, const struct library_problem *problem)
{
    const bool quantizes =
        problem->kind == LIBRARY_CONV && problem->conv.quantizer && !problem->conv.w_zero;
    return problem->dtype != TSSA_FLOAT && !(quantizes && engine && engine->provider->sums_bytes());
}

static struct library_primitive *make(struct device_context *context,
                                      const struct library_problem *problem)
{
    struct cpu_engine *engine = cpu_engine(context);
    struct library_primitive *made = engine ? engine->provider->make(engine, problem) : NULL;
    return made || !is_ours(engine, problem) ? made : bytes_make(problem);
}

static struct library_primitive *make_packer(struct device_context *context,
                                             const struct library_problem *problem)
{
    struct cpu_engine *engine = cpu_engine(context);
    struct library_primitive *made = engine ? engine->provider->make_packer(engine, problem) : NULL;
    return made || !is_ours(engine, problem) ? made : bytes_make(problem);
}

static const char missed[] =
    "convolutions and matrix products run on built-in kernels, which are several times slower";

const struct device_library cpu_library = {
    .missed = {[LIBRARY_MATMUL] = missed, [LIBRARY_CONV] = missed},
    .is_there = is_there,
    .types = DTYPE_BIT(TSSA_FLOAT),
    .convolves = convolves,
    .make = make,
    .make_packer = make_packer,
};
