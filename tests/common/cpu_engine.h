/* SPDX-License-Identifier: Apache-2.0 */
/* For tests that ask the CPU's library itself: its engine, and memory as kernels hand it over. */
#ifndef TSSA_TESTS_COMMON_CPU_ENGINE_H
#define TSSA_TESTS_COMMON_CPU_ENGINE_H

#include "device/cpu/provider.h"

/* Kernels do without a plugin that does not open, so nothing but this would tell: then the test
 * fails if it was built, and else it is skipped. */
const struct cpu_provider *engine_provider(void);
/* Of it, with its `close` the caller's to call. */
struct cpu_engine *engine_open(void);

/* Memory that is aligned as the library's is; the caller's to free. */
void *engine_room(size_t bytes);
/* The same of floats in [-1, 1), the same for the same seed. */
float *engine_floats(size_t count, uint32_t seed);
/* Memory as a place. */
struct device_place engine_place(const void *memory);

#endif
