/* SPDX-License-Identifier: Apache-2.0 */
#include "common/shim_cuda.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/no_error.h"
#include "common/shim_device.h"
#include "device/cuda/nvrtc.h"

void expect_no_spills(const char *log)
{
    size_t n = 0;
    for (const char *at = log; (at = strstr(at, " bytes spill stores")); at++, n++)
        if (at[-1] != '0' || at[-2] != ' ')
            fail_msg("%s", log);
    assert_true(n > 0);
}

struct cuda_job {
    pthread_t thread;
    struct nvrtc_source source;
    int architecture;
    struct image image;
    tssa_status *status;
};

static void *compile_as_cuda(void *user)
{
    struct cuda_job *job = user;
    job->status = nvrtc_compile(&allocator_default, &job->source, job->architecture, IMAGE_CUBIN,
                                &job->image);
    return NULL;
}

/* Whether NVRTC is there. */
static bool take_cuda(const struct cuda_job *job)
{
    if (tssa_status_code(job->status) == TSSA_UNSUPPORTED) {
        tssa_status_free(job->status);
        return false;
    }
    no_error(job->status);
    if (job->source.keeps_log)
        expect_no_spills(job->image.log);
    allocator_free(&allocator_default, job->image.data);
    allocator_free(&allocator_default, job->image.log);
    return true;
}

static bool compile_for_all(uint32_t begin, uint32_t end, uint32_t step, bool of_models)
{
    static const int architectures[] = {75, 80, 90, 100};
    struct cuda_job jobs[4];
    bool is_there = true;
    struct text text;
    text_init(&text, &allocator_default);
    shim_print(CLIKE_CUDA, begin, end, step, &text);
    for (int i = 0; i < 4; i++) {
        jobs[i] = (struct cuda_job){.source = {text_string(&text),
                                               "kernels.cu",
                                               {CLIKE_CUDA_OPTIONS, "--ptxas-options=-v"},
                                               of_models},
                                    .architecture = architectures[i]};
        assert_int_equal(pthread_create(&jobs[i].thread, NULL, compile_as_cuda, &jobs[i]), 0);
    }
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_join(jobs[i].thread, NULL), 0);
    for (int i = 0; i < 4; i++)
        is_there &= take_cuda(&jobs[i]);
    text_free(&text);
    return is_there;
}

#define OTHERS 8

void shim_compile_as_cuda(uint32_t n_of_models)
{
#ifdef __SANITIZE_ADDRESS__ /* what NVRTC keeps is not given back */
    skip();
#endif
    const uint32_t rest = shim_count() - n_of_models;
    if (!compile_for_all(0, n_of_models, 1, true) ||
        !compile_for_all(n_of_models, shim_count(), 1 + rest / OTHERS, false)) {
        print_message("nothing is compiled as CUDA C: NVRTC does not open\n");
        skip();
    }
}
