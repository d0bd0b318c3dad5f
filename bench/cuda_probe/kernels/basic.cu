/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of the probes, compiled at run time: no headers. */

extern "C" __global__ void empty() {}

/* One iteration of a loop whose condition the host reads: *left is what remains. */
extern "C" __global__ void step(int *left) { *left -= 1; }

#define UNARY(name, call)                                                                          \
    extern "C" __global__ void math_##name(const float *x, float *y, int count)                    \
    {                                                                                              \
        for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) \
            y[i] = call(x[i]);                                                                     \
    }

UNARY(expf, expf)
UNARY(exp_fast, __expf)
UNARY(tanhf, tanhf)
UNARY(erff, erff)
UNARY(logf, logf)
UNARY(rsqrtf, rsqrtf)
UNARY(sinf, sinf)
UNARY(sqrtf, sqrtf)
