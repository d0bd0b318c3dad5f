/* SPDX-License-Identifier: Apache-2.0 */
/* OpenCL C by a compiler that takes no more than OpenCL 1.2 says: clang, where it is installed. */
#ifndef TSSA_TESTS_COMMON_OPENCL_C_H
#define TSSA_TESTS_COMMON_OPENCL_C_H

#include <stdbool.h>

/* The test fails where the compiler refuses a text. False: there is no compiler. */
bool opencl_c_check(const char *text);

#endif
