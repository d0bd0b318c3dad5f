/* SPDX-License-Identifier: Apache-2.0 */
#include "common/cpu_engine.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "common/op_run.h"

const struct cpu_provider *engine_provider(void)
{
    const struct cpu_provider *found = cpu_provider_open();
    if (!found && TSSA_HAVE_ONEDNN)
        fail_msg("the plugin tssa-onednn was built but does not open");
    if (!found)
        skip();
    return found;
}

struct cpu_engine *engine_open(void)
{
    struct cpu_engine *engine = engine_provider()->open();
    assert_non_null(engine);
    return engine;
}

void *engine_room(size_t bytes)
{
    void *memory =
        aligned_alloc(LIBRARY_ALIGNMENT, (bytes / LIBRARY_ALIGNMENT + 1) * LIBRARY_ALIGNMENT);
    assert_non_null(memory);
    return memory;
}

float *engine_floats(size_t count, uint32_t seed)
{
    float *data = engine_room(count * sizeof *data);
    random_floats(data, count, seed);
    return data;
}

struct device_place engine_place(const void *memory)
{
    return (struct device_place){(void *)(uintptr_t)memory, 0};
}
