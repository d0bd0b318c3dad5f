/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fake driver's modules: machine code is the source. Kernels that tssa prints are compiled;
 * those of cuda_probe are known by name.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/fake.h"

struct CUmod_st {
    bool is_printed; /* no: of cuda_probe */
    unsigned n;
    struct CUfunc_st *kernels; /* of the code, in a context */
};

static struct CUmod_st *new_module(const struct fake_code *code)
{
    struct CUmod_st *module = calloc(1, sizeof *module);
    if (!module || !(module->kernels = calloc(code->n + 1, sizeof *module->kernels)))
        abort();
    module->is_printed = true;
    module->n = code->n;
    for (unsigned i = 0; i < code->n; i++) {
        module->kernels[i] = code->kernels[i];
        module->kernels[i].name = module->kernels[i].printed_name;
        module->kernels[i].owner = fake_current();
    }
    return module;
}

/* One for all of the probe's, which ends with its modules loaded. */
static struct CUmod_st of_probe;

FAKE(cuModuleLoadData, cuda_module *module, const void *image)
{
    IN_CONTEXT();
    const struct fake_code *code = fake_is_printed(image) ? fake_compile(image) : NULL;
    if (fake_is_printed(image) && !code)
        return FAKE_INVALID_IMAGE;
    *module = code ? new_module(code) : &of_probe;
    fake_count(1);
    return FAKE_OK;
}

FAKE(cuModuleUnload, cuda_module module)
{
    ENTER();
    if (module != &of_probe) {
        free(module->kernels);
        free(module);
    }
    fake_count(-1);
    return planned_;
}

FAKE(cuModuleGetFunction, cuda_function *function, cuda_module module, const char *name)
{
    IN_CONTEXT();
    *function = module->is_printed ? NULL : fake_find_kernel(name);
    for (unsigned i = 0; i < module->n; i++)
        if (strcmp(module->kernels[i].name, name) == 0)
            *function = &module->kernels[i];
    return *function ? FAKE_OK : FAKE_NOT_FOUND;
}

/* ---- Launches -------------------------------------------------------------------------------- */

static unsigned count_arguments(cuda_function kernel)
{
    unsigned n = kernel->n;
    while (kernel->run && n < FAKE_SIZES && kernel->sizes[n])
        n++;
    return n;
}

FAKE(cuLaunchKernel, cuda_function kernel, unsigned blocks, unsigned y, unsigned z,
     unsigned threads, unsigned ty, unsigned tz, unsigned shared, cuda_stream stream,
     void **parameters, void **extra)
{
    IN_CONTEXT();
    EXPECT(blocks && y && z && threads && ty && tz && threads * ty * tz <= 1024);
    EXPECT(!shared && !extra);
    if (kernel->owner && kernel->owner != fake_current())
        return FAKE_INVALID_HANDLE;
    EXPECT(!kernel->launch || (blocks <= INT32_MAX && y * z * tz == 1 && threads == 32));
    struct fake_work work = {.kind = FAKE_LAUNCH, .kernel = kernel, .blocks = blocks, .height = ty};
    const unsigned n = count_arguments(kernel);
    work.arguments = calloc(n + 1, sizeof *work.arguments);
    if (!work.arguments)
        abort();
    for (unsigned i = 0; i < n; i++)
        memcpy(&work.arguments[i], parameters[i], kernel->run ? kernel->sizes[i] : 8);
    return fake_push(stream, &work);
}

/* One that begins early has a text that waits, which the real compiler's has for this card. Nobody
 * has tried that in the body of a conditional node. */
FAKE(cuLaunchKernelEx, const struct cuda_launch *config, cuda_function kernel, void **parameters,
     void **extra)
{
    const unsigned *blocks = config->blocks, *threads = config->threads;
    EXPECT(config->n_attributes == 1 && config->attributes->id == CUDA_LAUNCH_PROGRAMMATIC &&
           config->attributes->value == 1);
    EXPECT(!fake_is_body(*fake_capturing(config->stream)));
    return cuLaunchKernel(kernel, blocks[0], blocks[1], blocks[2], threads[0], threads[1],
                          threads[2], config->shared, config->stream, parameters, extra);
}

unsigned fake_do_launch(const struct fake_work *work)
{
    const unsigned planned = fake_told("kernel");
    if (planned != FAKE_OK)
        return planned;
    if (work->kernel->run) {
        work->kernel->run(work->arguments);
        return FAKE_OK;
    }
    const int order = (int)fake_number("FAKE_CUDA_ORDER", 0);
    return work->kernel->launch(work->arguments, work->blocks, work->height, order, &fake_meeting)
               ? FAKE_OK
               : FAKE_LAUNCH_FAILED;
}
