/* SPDX-License-Identifier: Apache-2.0 */
/* The default device, on one thread and the default allocator, for tests below the API. */
#ifndef TSSA_TESTS_TEST_DEVICE_H
#define TSSA_TESTS_TEST_DEVICE_H

#include "device/device.h"

/* Open until the process ends. */
struct device_context *test_device(void);

#endif
