/* SPDX-License-Identifier: Apache-2.0 */
/* Holds what the device declares of OpenCL's interface against its headers. Compiled, that is all.
 */
#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <assert.h>

#include "device/opencl/opencl_api.h"

#define SAME_VALUE(ours, theirs) static_assert((ours) == (theirs), #theirs)
SAME_VALUE(OPENCL_READ_WRITE, CL_MEM_READ_WRITE);
SAME_VALUE(OPENCL_TYPE_GPU, CL_DEVICE_TYPE_GPU);
SAME_VALUE(OPENCL_TYPE_OTHERS, CL_DEVICE_TYPE_CPU | CL_DEVICE_TYPE_ACCELERATOR);
SAME_VALUE(OPENCL_BUILD_LOG, CL_PROGRAM_BUILD_LOG);
SAME_VALUE(OPENCL_BINARY_SIZES, CL_PROGRAM_BINARY_SIZES);
SAME_VALUE(OPENCL_BINARIES, CL_PROGRAM_BINARIES);
SAME_VALUE(OPENCL_NAME, CL_DEVICE_NAME);
SAME_VALUE(OPENCL_VENDOR, CL_DEVICE_VENDOR);
SAME_VALUE(OPENCL_DRIVER_VERSION, CL_DRIVER_VERSION);
SAME_VALUE(OPENCL_VERSION, CL_DEVICE_VERSION);
SAME_VALUE(OPENCL_PLATFORM, CL_DEVICE_PLATFORM);
SAME_VALUE(OPENCL_PLATFORM_VERSION, CL_PLATFORM_VERSION);
SAME_VALUE(OPENCL_PLATFORM_NAME, CL_PLATFORM_NAME);
SAME_VALUE(OPENCL_FLOAT_CONFIG, CL_DEVICE_SINGLE_FP_CONFIG);
SAME_VALUE(OPENCL_DOUBLE_CONFIG, CL_DEVICE_DOUBLE_FP_CONFIG);
SAME_VALUE(OPENCL_DENORMALS, CL_FP_DENORM);
SAME_VALUE(OPENCL_ROUNDS_DIVISION, CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT);

/* Handles have the same struct behind them there; properties are intptr_t of some width there. */
#define SAME_FUNCTION(name)                                                                        \
    static_assert(__builtin_types_compatible_p(__typeof__(((struct opencl_api *)0)->name),         \
                                               __typeof__(&(name))),                               \
                  #name);
#define CHECK(result, name, parameters) SAME_FUNCTION(name)
OPENCL_FUNCTIONS(CHECK)
