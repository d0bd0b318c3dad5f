/* SPDX-License-Identifier: Apache-2.0 */
/* Models whose results on a device are those of the CPU. */
#ifndef TSSA_TESTS_COMMON_MODEL_ON_DEVICE_H
#define TSSA_TESTS_COMMON_MODEL_ON_DEVICE_H

#include "common/model_run.h"

/* Opens the model, after the passes of a level, on a device. TSSA_UNSUPPORTED: it is not there. */
tssa_status *model_on_device_open(struct model_run *run, const char *path, int level,
                                  const char *device);
/* Without the outputs of the run before. */
tssa_status *model_on_device_run(struct model_run *run);
/* The test fails where an output has other bits; or is not close, of a model with products of
 * matrices, which libraries sum in an order of their own. */
void model_on_device_compare(const struct model_run *made, const struct model_run *wanted,
                             const char *path);
/* All of it: the model runs once on the CPU, and so many times there. */
void model_on_device_check(const char *path, int level, const char *device, int runs);

#endif
