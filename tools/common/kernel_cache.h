/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TSSA_TOOLS_KERNEL_CACHE_H
#define TSSA_TOOLS_KERNEL_CACHE_H

#include <stddef.h>

/*
 * Where a tool keeps compiled kernels, for tssa_context_options.kernel_cache: what --kernel-cache
 * says, NULL where that is "off"; without it ("given" NULL) $XDG_CACHE_HOME/tssa, or ~/.cache/tssa,
 * or NULL where neither has a name.
 */
const char *kernel_cache_folder(const char *given, char *room, size_t size);

#endif
