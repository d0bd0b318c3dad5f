/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the oneDNN provider share. oneDNN 2.x and 3.x. */
#ifndef TSSA_DEVICE_CPU_ONEDNN_ONEDNN_H
#define TSSA_DEVICE_CPU_ONEDNN_ONEDNN_H

#include <dnnl.h>

#include "device/cpu/plugins.h"
#include "device/cpu/provider.h"

/* OpenMP's settings for the calling thread, as they were. */
struct onednn_setting {
    int threads, dynamic;
};

/* Bracket every call that computes: sets the number of threads, and the old settings again. */
struct onednn_setting onednn_enter(int threads);
void onednn_leave(struct onednn_setting before);

bool onednn_gemm_f32(const struct gemm *gemm, int threads);
bool onednn_conv_f32(const struct conv *conv, int threads);

#endif
