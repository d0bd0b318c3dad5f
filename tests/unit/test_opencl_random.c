/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random fuse ops on the device `opencl`, where there is one: the interpreter's bits, and an error
 * where it finds one. The shim runs many more of the same text (test_grid); these are for what is
 * OpenCL's own, its prelude and how it is launched.
 */
/* ctest-labels: random */
/* ctest-timeout: 600 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/kernel_check.h"
#include "common/no_error.h"
#include "common/random_programs.h"
#include "common/test_device.h"

#define USUAL_PROGRAMS 6 /* of each kind */

/* Never closed: the device has threads, and this is the process's end. NULL: there is none. */
static struct device_context *opencl(void)
{
    static struct device_context context;
    device_context_open(&context, device_find("opencl"), &allocator_default, NULL);
    context.host = test_device();
    tssa_status *status = device_context_connect(&context);
    if (tssa_status_code(status) != TSSA_UNSUPPORTED) {
        no_error(status);
        return &context;
    }
    print_message("%s\n", tssa_status_message(status));
    tssa_status_free(status);
    device_context_close(&context);
    return NULL;
}

static void test_random_fused(void **state)
{
    struct device_context *context = opencl();
    uint64_t seed;
    const bool one = programs_seed(&seed);
    const unsigned long n = one ? 1 : programs_count(USUAL_PROGRAMS);
    (void)state;
    if (!context)
        skip();
    for (int kind = 0; kind < KERNEL_KINDS; kind++)
        for (unsigned long i = 0; i < n; i++)
            kernel_check(kind, one ? seed : i, context);
    device_context_close(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_fused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
