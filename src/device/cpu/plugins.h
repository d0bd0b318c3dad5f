/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the plugins tssa-openmp and tssa-onednn export; found by name (base/plugin.h), never linked.
 */
#ifndef TSSA_DEVICE_CPU_PLUGINS_H
#define TSSA_DEVICE_CPU_PLUGINS_H

#include "base/team.h"
#include "device/cpu/provider.h"

#define PLUGIN_EXPORT __attribute__((visibility("default")))

/* tssa-openmp: TEAM_PLUGIN_SYMBOL */
PLUGIN_EXPORT void tssa_plugin_parallel_for(int threads, int64_t count, team_body body,
                                            void *context);
/* tssa-onednn: CPU_PROVIDER_SYMBOL */
PLUGIN_EXPORT const struct cpu_provider *tssa_plugin_provider_12(void);

#endif
