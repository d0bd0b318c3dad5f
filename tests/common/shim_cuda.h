/* SPDX-License-Identifier: Apache-2.0 */
/* The shim's kernels (common/shim_device.h) as CUDA C. */
#ifndef TSSA_TESTS_COMMON_SHIM_CUDA_H
#define TSSA_TESTS_COMMON_SHIM_CUDA_H

#include <stdint.h>

/*
 * Compiles the first so many, which are models', and some of the others (it takes a while) for four
 * architectures at the same time. The test fails where a model's keeps values in memory for want of
 * registers, and is skipped where NVRTC is not there.
 */
void shim_compile_as_cuda(uint32_t n_of_models);

/* The assembler's log, with --ptxas-options=-v, tells of each kernel how much of it lies in memory
 * for want of registers. */
void expect_no_spills(const char *log);

#endif
