/* SPDX-License-Identifier: Apache-2.0 */
/* What the stand-ins for CUDA's libraries share. All of them are one shared library with several
 * names. */
#ifndef TSSA_TESTS_CUDA_FAKE_H
#define TSSA_TESTS_CUDA_FAKE_H

#include "device/cuda/cuda_api.h"

#define EXPORT __attribute__((visibility("default")))
/* Defines a function of a library, with its prototype. */
#define FAKE(name, ...)                                                                            \
    EXPORT unsigned name(__VA_ARGS__);                                                             \
    unsigned name(__VA_ARGS__)

enum { FAKE_OK = 0, FAKE_INVALID_VALUE = 1 };

#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition))                                                                          \
            return FAKE_INVALID_VALUE;                                                             \
    } while (0)

/* The code that FAKE_CUDA_FAIL has for this function, or FAKE_OK. */
unsigned fake_planned(const char *function);

#define PLANNED()                                                                                  \
    do {                                                                                           \
        unsigned planned_ = fake_planned(__func__);                                                \
        if (planned_ != FAKE_OK)                                                                   \
            return planned_;                                                                       \
    } while (0)

/* Zeroed memory that is held until the process ends. */
void *fake_hold(size_t size);

/* The fake driver's, for the fake libraries on it. */
unsigned cuMemsetD32Async(cuda_address target, unsigned value, size_t count, cuda_stream stream);

#endif
