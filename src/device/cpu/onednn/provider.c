/* SPDX-License-Identifier: Apache-2.0 */
/* The provider of device/cpu/provider.h on oneDNN. */
#include "device/cpu/onednn/onednn.h"
#include "device/cpu/onednn/pointwise.h"

#include <omp.h>
#include <stdlib.h>

/*
 * oneDNN divides its work among as many threads as OpenMP promises, and leaves parts of the result
 * out when a parallel region gets fewer. So no more are asked for than there will be: one inside of
 * another region, no more than OMP_THREAD_LIMIT, and OpenMP may not choose for itself.
 */
static int onednn_threads(int threads)
{
    int limit = omp_in_parallel() ? 1 : omp_get_thread_limit();
    return threads < limit ? threads : limit;
}

/* Settings of the calling thread alone. */
struct onednn_setting onednn_enter(int threads)
{
    struct onednn_setting before = {omp_get_max_threads(), omp_get_dynamic()};
    omp_set_dynamic(0);
    omp_set_num_threads(threads);
    return before;
}

void onednn_leave(struct onednn_setting before)
{
    omp_set_num_threads(before.threads);
    omp_set_dynamic(before.dynamic);
}

int onednn_packing_threads(size_t bytes, int threads)
{
    return bytes <= LIBRARY_PACKED_ALONE ? 1 : threads;
}

bool onednn_has_isa(unsigned isa)
{
    return ((unsigned)dnnl_get_effective_cpu_isa() & isa) == isa;
}

bool onednn_sums_bytes(void)
{
    return onednn_has_isa(dnnl_cpu_isa_avx512_core_vnni) || onednn_has_isa(dnnl_cpu_isa_avx2_vnni);
}

static void onednn_close(struct cpu_engine *base)
{
    struct onednn_engine *engine = (struct onednn_engine *)base;
    dnnl_stream_destroy(engine->stream);
    dnnl_engine_destroy(engine->engine);
    free(engine);
}

static struct cpu_engine *onednn_open(void)
{
    struct onednn_engine *engine = calloc(1, sizeof *engine);
    if (!engine)
        return NULL;
    engine->base.provider = tssa_plugin_provider_12();
    if (dnnl_engine_create(&engine->engine, dnnl_cpu, 0) == dnnl_success &&
        dnnl_stream_create(&engine->stream, engine->engine, dnnl_stream_default_flags) ==
            dnnl_success)
        return &engine->base;
    onednn_close(&engine->base);
    return NULL;
}

/* Smaller matrices are multiplied by plain loops. */
#define READY_SIZE 64

void onednn_get_ready(struct cpu_engine *base)
{
    struct onednn_engine *engine = (struct onednn_engine *)base;
    if (atomic_exchange_explicit(&engine->is_ready, true, memory_order_relaxed))
        return;
    float *matrices = calloc(3 * READY_SIZE * READY_SIZE, sizeof *matrices);
    if (!matrices)
        return;
    float *b = matrices + READY_SIZE * READY_SIZE, *c = b + READY_SIZE * READY_SIZE;
    struct onednn_setting before = onednn_enter(1);
    dnnl_sgemm('N', 'N', READY_SIZE, READY_SIZE, READY_SIZE, 1, matrices, READY_SIZE, b, READY_SIZE,
               0, c, READY_SIZE);
    onednn_leave(before);
    free(matrices);
}

static struct library_primitive *onednn_make(struct cpu_engine *engine,
                                             const struct library_problem *problem)
{
    if (problem->dtype != TSSA_FLOAT && problem->dtype != TSSA_UINT8 && problem->dtype != TSSA_INT8)
        return NULL;
    if (problem->kind == LIBRARY_CONV)
        return onednn_make_conv(engine, problem);
    struct library_primitive *made = pointwise_make_matmul(engine, problem);
    return made ? made : onednn_make_matmul(problem);
}

static struct library_primitive *onednn_make_packer(struct cpu_engine *engine,
                                                    const struct library_problem *problem)
{
    return problem->kind == LIBRARY_CONV ? onednn_make_conv_packer(engine, problem) : NULL;
}

const struct cpu_provider *tssa_plugin_provider_12(void)
{
    static const struct cpu_provider provider = {
        .open = onednn_open,
        .close = onednn_close,
        .threads = onednn_threads,
        .get_ready = onednn_get_ready,
        .sums_bytes = onednn_sums_bytes,
        .make = onednn_make,
        .make_packer = onednn_make_packer,
    };
    return &provider;
}
