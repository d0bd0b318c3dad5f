/* SPDX-License-Identifier: Apache-2.0 */
/* The provider of device/cpu/provider.h on oneDNN. */
#include "device/cpu/onednn/onednn.h"

#include <omp.h>

/* oneDNN takes as many threads as OpenMP would; a setting of the calling thread alone. */
int onednn_enter(int threads)
{
    int before = omp_get_max_threads();
    omp_set_num_threads(threads);
    return before;
}

void onednn_leave(int before)
{
    omp_set_num_threads(before);
}

const struct cpu_provider *tssa_plugin_provider(void)
{
    static const struct cpu_provider provider = {onednn_gemm_f32, onednn_conv_f32};
    return &provider;
}
