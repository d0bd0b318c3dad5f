/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CPU's library: a provider, which is a plugin, and what it needs of a context, opened when a
 * kernel first has a problem that is worth it. Where it declines, products and convolutions of
 * bytes are computed without it (device/cpu/bytes), and others by the reference kernel
 * (kernels/cpu).
 */
#ifndef TSSA_DEVICE_CPU_PROVIDER_H
#define TSSA_DEVICE_CPU_PROVIDER_H

#include "base/team.h"
#include "device/library.h"

/* What the primitives of a context share. */
struct cpu_engine {
    const struct cpu_provider *provider;
};

struct cpu_provider {
    struct cpu_engine *(*open)(void); /* NULL: out of memory */
    void (*close)(struct cpu_engine *engine);
    /* How many threads compute where so many are allowed: fewer inside of a parallel region. */
    int (*threads)(int threads);
    /* Does now, once for each engine, what the first product of float32 of a process would wait
     * for: oneDNN compiles all of its sgemm then, in 13 to 30 ms. */
    void (*get_ready)(struct cpu_engine *engine);
    /* Does it sum products of bytes, exactly? */
    bool (*sums_bytes)(void);
    /* As in struct device_library. Float32 and bytes, and of products one at a time. */
    struct library_primitive *(*make)(struct cpu_engine *engine,
                                      const struct library_problem *problem);
    struct library_primitive *(*make_packer)(struct cpu_engine *engine,
                                             const struct library_problem *problem);
};

/* The plugin, and its symbol: const struct cpu_provider *(void). Its number is that of the tables
 * above: a plugin that has others is not taken. */
#define CPU_PROVIDER_PLUGIN "tssa-onednn"
#define CPU_PROVIDER_SYMBOL "tssa_plugin_provider_12"

/* NULL when there is no plugin. Opens it. */
const struct cpu_provider *cpu_provider_open(void);

extern const struct device_library cpu_library;

/* `threads` of a problem of so many multiplications, for which the team (NULL: one thread) is
 * allowed; 0: there is no library. */
int cpu_library_threads(struct device_context *context, const struct team *team, int64_t work);
/* The same of problems of bytes, for which there is one without a provider, too. */
int cpu_library_byte_threads(struct device_context *context, const struct team *team, int64_t work);
/* get_ready of the engine, if there is one. */
void cpu_library_get_ready(struct device_context *context);
/*
 * The engine of a context of the CPU, opened when first asked for; NULL when there is no provider.
 */
struct cpu_engine *cpu_engine(struct device_context *context);
void cpu_engine_close(struct device_context *context);

#endif
