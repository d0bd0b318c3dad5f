/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cuda/nvrtc.h"

#include <stdio.h>
#include <string.h>

typedef struct _nvrtcProgram *program;
typedef unsigned result;

#define NVRTC_FUNCTIONS(X)                                                                         \
    X(const char *, nvrtcGetErrorString, (result))                                                 \
    X(result, nvrtcVersion, (int *major, int *minor))                                              \
    X(result, nvrtcCreateProgram,                                                                  \
      (program *, const char *source, const char *name, int, const char *const *,                  \
       const char *const *))                                                                       \
    X(result, nvrtcDestroyProgram, (program *))                                                    \
    X(result, nvrtcCompileProgram, (program, int, const char *const *options))                     \
    X(result, nvrtcGetCUBINSize, (program, size_t *))                                              \
    X(result, nvrtcGetCUBIN, (program, char *))                                                    \
    X(result, nvrtcGetPTXSize, (program, size_t *))                                                \
    X(result, nvrtcGetPTX, (program, char *))                                                      \
    X(result, nvrtcGetProgramLogSize, (program, size_t *))                                         \
    X(result, nvrtcGetProgramLog, (program, char *))

struct nvrtc {
    NVRTC_FUNCTIONS(SHARED_MEMBER)
};

static const struct shared_names names = {
    "NVRTC", {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"}, "libnvrtc-builtins.so.*"};

static tssa_status *status_of(const struct nvrtc *nvrtc, result result, const char *function)
{
    if (result == 0)
        return NULL;
    return ERROR(TSSA_RUNTIME, "%s: %s", function,
                 nvrtc->nvrtcGetErrorString ? nvrtc->nvrtcGetErrorString(result) : "failed");
}

#define NVRTC(nvrtc, function, ...) SHARED_CALL(status_of, nvrtc, function, __VA_ARGS__)

static tssa_status *open_nvrtc(struct nvrtc *nvrtc)
{
    void *library;
    TRY(shared_open(&names, &library));
#define LOAD(result, name, parameters) shared_function(library, #name, &nvrtc->name);
    NVRTC_FUNCTIONS(LOAD)
#undef LOAD
    return NULL;
}

/* What the compiler said; NULL where that cannot be had. */
static char *read_log(const struct nvrtc *nvrtc, const tssa_allocator *allocator, program program)
{
    char *log;
    size_t size = 0;
    if (!nvrtc->nvrtcGetProgramLogSize || !nvrtc->nvrtcGetProgramLog ||
        nvrtc->nvrtcGetProgramLogSize(program, &size) != 0 ||
        !(log = allocator_calloc(allocator, 1, size + 1)))
        return NULL;
    if (nvrtc->nvrtcGetProgramLog(program, log) == 0)
        return log;
    allocator_free(allocator, log);
    return NULL;
}

/* Puts the compiler's first line before the error. */
static tssa_status *explain(const struct nvrtc *nvrtc, const tssa_allocator *allocator,
                            program program, tssa_status *status)
{
    char *log = read_log(nvrtc, allocator, program);
    if (log) {
        log[strcspn(log, "\n")] = '\0';
        status = status_prefix(status, "%s", log);
    }
    allocator_free(allocator, log);
    return status;
}

static tssa_status *take(const struct nvrtc *nvrtc, const tssa_allocator *allocator,
                         program program, image_kind kind, struct image *image)
{
    if (kind == IMAGE_CUBIN)
        TRY(NVRTC(nvrtc, nvrtcGetCUBINSize, program, &image->size));
    else
        TRY(NVRTC(nvrtc, nvrtcGetPTXSize, program, &image->size));
    image->data = allocator_calloc(allocator, 1, image->size + 1);
    TRY_ALLOC(image->data);
    tssa_status *status = kind == IMAGE_CUBIN ? NVRTC(nvrtc, nvrtcGetCUBIN, program, image->data)
                                              : NVRTC(nvrtc, nvrtcGetPTX, program, image->data);
    if (status)
        allocator_free(allocator, image->data);
    return status;
}

static void name_compiler(const struct nvrtc *nvrtc, struct image *image)
{
    void *function;
    memcpy(&function, &nvrtc->nvrtcCompileProgram, sizeof function);
    shared_file(function, image->library, sizeof image->library);
    memset(image->version, 0, sizeof image->version);
    if (nvrtc->nvrtcVersion)
        (void)nvrtc->nvrtcVersion(&image->version[0], &image->version[1]);
}

tssa_status *nvrtc_compile(const tssa_allocator *allocator, const struct nvrtc_source *source,
                           int architecture, image_kind kind, struct image *image)
{
    struct nvrtc nvrtc;
    program program = NULL;
    char target[32];
    snprintf(target, sizeof target, "-arch=%s_%d", kind == IMAGE_CUBIN ? "sm" : "compute",
             architecture);
    const char *options[NVRTC_MAX_OPTIONS + 1] = {target};
    int n = 1;
    for (; n <= NVRTC_MAX_OPTIONS && source->options[n - 1]; n++)
        options[n] = source->options[n - 1];
    TRY(open_nvrtc(&nvrtc));
    TRY(NVRTC(&nvrtc, nvrtcCreateProgram, &program, source->text, source->name, 0, NULL, NULL));
    tssa_status *status = NVRTC(&nvrtc, nvrtcCompileProgram, program, n, options);
    status = status ? explain(&nvrtc, allocator, program, status)
                    : take(&nvrtc, allocator, program, kind, image);
    name_compiler(&nvrtc, image);
    image->log = source->keeps_log && !status ? read_log(&nvrtc, allocator, program) : NULL;
    if (nvrtc.nvrtcDestroyProgram)
        (void)nvrtc.nvrtcDestroyProgram(&program);
    return status;
}
