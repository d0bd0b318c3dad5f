/* SPDX-License-Identifier: Apache-2.0 */
#include "common/test_device.h"

static struct device_context context;

static void open_context(void)
{
    device_context_open(&context, device_find(NULL), &allocator_default, NULL);
}

struct device_context *test_device(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_context);
    return &context;
}
