/* SPDX-License-Identifier: Apache-2.0 */
/* The shim's kernels (common/shim_device.h) as CUDA C. */
#ifndef TSSA_TESTS_COMMON_SHIM_CUDA_H
#define TSSA_TESTS_COMMON_SHIM_CUDA_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Compiles every `step`th of some for four architectures at the same time; `of_models`: the test
 * fails where one of them keeps values in memory for want of registers. False: NVRTC is not there.
 */
bool shim_compile_as_cuda(uint32_t begin, uint32_t end, uint32_t step, bool of_models);

#endif
