/* SPDX-License-Identifier: Apache-2.0 */
/* The fake NVRTC, which gives back what it is given. */
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/fake.h"

static const char log_text[] = "basic.cu(1): error: made up";

struct program {
    size_t size; /* of the source, with its NUL */
    char source[];
};

EXPORT const char *nvrtcGetErrorString(unsigned result);
const char *nvrtcGetErrorString(unsigned result)
{
    return result ? "NVRTC_ERROR_COMPILATION" : "NVRTC_SUCCESS";
}

FAKE(nvrtcVersion, int *major, int *minor)
{
    PLANNED();
    *major = 13;
    *minor = 0;
    return FAKE_OK;
}

FAKE(nvrtcCreateProgram, struct program **program, const char *source, const char *name, int count,
     const char *const *headers, const char *const *names)
{
    PLANNED();
    EXPECT(name && count == 0 && !headers && !names);
    const size_t size = strlen(source) + 1;
    *program = malloc(sizeof **program + size);
    if (!*program)
        abort();
    (*program)->size = size;
    memcpy((*program)->source, source, size);
    fake_count(1);
    return FAKE_OK;
}

FAKE(nvrtcDestroyProgram, struct program **program)
{
    ENTER();
    free(*program);
    *program = NULL;
    fake_count(-1);
    return planned_;
}

FAKE(nvrtcCompileProgram, struct program *program, int count, const char *const *options)
{
    (void)program;
    PLANNED();
    EXPECT(count >= 1 && strncmp(options[0], "-arch=", 6) == 0);
    return FAKE_OK;
}

static unsigned copy_source(const struct program *program, char *image)
{
    memcpy(image, program->source, program->size);
    return FAKE_OK;
}

FAKE(nvrtcGetCUBINSize, struct program *program, size_t *size)
{
    PLANNED();
    *size = program->size;
    return FAKE_OK;
}

FAKE(nvrtcGetCUBIN, struct program *program, char *image)
{
    PLANNED();
    return copy_source(program, image);
}

FAKE(nvrtcGetPTXSize, struct program *program, size_t *size)
{
    PLANNED();
    *size = program->size;
    return FAKE_OK;
}

FAKE(nvrtcGetPTX, struct program *program, char *image)
{
    PLANNED();
    return copy_source(program, image);
}

FAKE(nvrtcGetProgramLogSize, struct program *program, size_t *size)
{
    (void)program;
    *size = sizeof log_text;
    return FAKE_OK;
}

FAKE(nvrtcGetProgramLog, struct program *program, char *log)
{
    (void)program;
    memcpy(log, log_text, sizeof log_text);
    return FAKE_OK;
}
