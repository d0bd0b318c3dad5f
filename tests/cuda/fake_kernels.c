/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernels of cuda_probe do, each at once for all of its threads. */
#include <math.h>
#include <string.h>

#include "tests/cuda/fake.h"

/* Parameters of 8 bytes, or of 4, which are the low ones. */
static int number(const int64_t *arguments, unsigned i)
{
    return (int)arguments[i];
}

static void *memory(const int64_t *arguments, unsigned i)
{
    return fake_bytes((cuda_address)arguments[i], 4);
}

static void run_empty(const int64_t *arguments)
{
    (void)arguments;
}

static void run_step(const int64_t *arguments)
{
    *(int *)memory(arguments, 0) -= 1;
}

static void run_loop_start(const int64_t *arguments)
{
    const int count = number(arguments, 2);
    *(int *)memory(arguments, 1) = count;
    fake_set_condition((cuda_condition)arguments[0], count > 0);
}

static void run_loop_next(const int64_t *arguments)
{
    int *left = memory(arguments, 1);
    *left -= 1;
    fake_set_condition((cuda_condition)arguments[0], *left > 0);
}

static void run_branch(const int64_t *arguments)
{
    const int *value = memory(arguments, 1);
    fake_set_condition((cuda_condition)arguments[0], *value % number(arguments, 2) != 0);
}

static float inverse_root(float x)
{
    return 1.0f / sqrtf(x);
}

/* One ulp off, so that the comparison has something to find. */
static float exp_off(float x)
{
    return nextafterf(expf(x), INFINITY);
}

#define UNARY(name, call)                                                                          \
    static void run_math_##name(const int64_t *arguments)                                          \
    {                                                                                              \
        const float *from = memory(arguments, 0);                                                  \
        float *to = memory(arguments, 1);                                                          \
        for (int i = 0; i < number(arguments, 2); i++)                                             \
            to[i] = call(from[i]);                                                                 \
    }
UNARY(expf, expf)
UNARY(exp_fast, exp_off)
UNARY(tanhf, tanhf)
UNARY(erff, erff)
UNARY(logf, logf)
UNARY(rsqrtf, inverse_root)
UNARY(sinf, sinf)
UNARY(sqrtf, sqrtf)

static struct CUfunc_st kernels[] = {
    {.name = "empty", .run = run_empty},
    {.name = "step", .sizes = {8}, .run = run_step},
    {.name = "loop_start", .sizes = {8, 8, 4}, .run = run_loop_start},
    {.name = "loop_next", .sizes = {8, 8}, .run = run_loop_next},
    {.name = "branch", .sizes = {8, 8, 4}, .run = run_branch},
    {.name = "math_expf", .sizes = {8, 8, 4}, .run = run_math_expf},
    {.name = "math_exp_fast", .sizes = {8, 8, 4}, .run = run_math_exp_fast},
    {.name = "math_tanhf", .sizes = {8, 8, 4}, .run = run_math_tanhf},
    {.name = "math_erff", .sizes = {8, 8, 4}, .run = run_math_erff},
    {.name = "math_logf", .sizes = {8, 8, 4}, .run = run_math_logf},
    {.name = "math_rsqrtf", .sizes = {8, 8, 4}, .run = run_math_rsqrtf},
    {.name = "math_sinf", .sizes = {8, 8, 4}, .run = run_math_sinf},
    {.name = "math_sqrtf", .sizes = {8, 8, 4}, .run = run_math_sqrtf},
};

cuda_function fake_find_kernel(const char *name)
{
    for (size_t i = 0; i < sizeof kernels / sizeof *kernels; i++) {
        if (strcmp(kernels[i].name, name) == 0)
            return &kernels[i];
    }
    return NULL;
}
