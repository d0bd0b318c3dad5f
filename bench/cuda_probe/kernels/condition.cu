/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels that decide conditional nodes. On their own: the function below is the driver's, and whether
 * machine code that calls it loads is one of the questions. */

extern "C" __device__ void cudaGraphSetConditional(unsigned long long handle, unsigned value);

extern "C" __global__ void loop_start(unsigned long long handle, int *left, int count)
{
    *left = count;
    cudaGraphSetConditional(handle, count > 0);
}

extern "C" __global__ void loop_next(unsigned long long handle, int *left)
{
    *left -= 1;
    cudaGraphSetConditional(handle, *left > 0);
}

/* Taken when *left is no multiple of `period`. */
extern "C" __global__ void branch(unsigned long long handle, const int *left, int period)
{
    cudaGraphSetConditional(handle, *left % period != 0);
}
