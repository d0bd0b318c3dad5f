/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What kernels take on this machine (gir/estimate.h). The rates were chosen on one machine. Where
 * kernels are kept on disk, this one is compared with that (probe.h), once: what was measured is
 * kept with them. Elsewhere the rates are those of that machine, and nothing is measured.
 */
#ifndef TSSA_DEVICE_CPU_RATES_H
#define TSSA_DEVICE_CPU_RATES_H

#include "device/device.h"
#include "gir/estimate.h"

/* Any thread. */
void cpu_rates(struct device_context *context, struct gir_rates *rates);

#endif
