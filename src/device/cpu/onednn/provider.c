/* SPDX-License-Identifier: Apache-2.0 */
/* The provider of device/cpu/provider.h on oneDNN. */
#include "device/cpu/onednn/onednn.h"

#include <omp.h>

/*
 * oneDNN divides its work among as many threads as OpenMP promises, and leaves parts of the result out
 * when a parallel region gets fewer. So no more are asked for than there will be: one inside of another
 * region, no more than OMP_THREAD_LIMIT, and OpenMP may not choose for itself. These are settings of the
 * calling thread alone.
 */
struct onednn_setting onednn_enter(int threads)
{
    struct onednn_setting before = {omp_get_max_threads(), omp_get_dynamic()};
    int limit = omp_in_parallel() ? 1 : omp_get_thread_limit();
    omp_set_dynamic(0);
    omp_set_num_threads(threads < limit ? threads : limit);
    return before;
}

void onednn_leave(struct onednn_setting before)
{
    omp_set_num_threads(before.threads);
    omp_set_dynamic(before.dynamic);
}

const struct cpu_provider *tssa_plugin_provider(void)
{
    static const struct cpu_provider provider = {onednn_gemm_f32, onednn_conv_f32};
    return &provider;
}
