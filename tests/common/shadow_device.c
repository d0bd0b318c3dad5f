/* SPDX-License-Identifier: Apache-2.0 */
#include "common/shadow_device.h"

static struct device lacking;

static const struct device *emulated(void)
{
    return device_find("emulated");
}

static const struct kernel *find_some_kernels(const struct ir_op *op)
{
    return op->id % 3 == 1 ? NULL : emulated()->find_kernel(op);
}

static void make_device(void)
{
    lacking = *emulated();
    lacking.find_kernel = find_some_kernels;
}

const struct device *shadow_device(bool lacks)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_device);
    return lacks ? &lacking : emulated();
}
