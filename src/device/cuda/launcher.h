/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TSSA_DEVICE_CUDA_LAUNCHER_H
#define TSSA_DEVICE_CUDA_LAUNCHER_H

#include "device/grids/launcher.h"

extern const struct launcher cuda_launcher;

#endif
