/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cpu/provider.h"

#include <string.h>

#include "base/plugin.h"

const struct cpu_provider *cpu_provider_open(void)
{
    const struct cpu_provider *(*get)(void) = NULL;
    void *symbol = plugin_symbol(CPU_PROVIDER_PLUGIN, CPU_PROVIDER_SYMBOL);
    if (!symbol)
        return NULL;
    memcpy(&get, &symbol, sizeof symbol); /* ISO C has no such cast; POSIX promises it works */
    return get();
}
