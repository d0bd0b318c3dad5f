/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random fuse ops on the device `cuda`, on a fake driver (tests/cuda), whose threads run shuffled:
 * the interpreter's bits, and an error where it finds one.
 */
/* ctest-labels: random */
/* ctest-timeout: 600 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "common/fake_cuda.h"
#include "common/kernel_check.h"
#include "common/no_error.h"
#include "common/random_programs.h"
#include "common/test_device.h"

#define USUAL_PROGRAMS 20 /* of each kind */

static void test_random_fused(void **state)
{
    struct device_context context;
    uint64_t seed;
    const bool one = programs_seed(&seed);
    const unsigned long n = one ? 1 : programs_count(USUAL_PROGRAMS);
    (void)state;
    fake_cuda_use(true);
    setenv("FAKE_CUDA_ORDER", "2", 1);
    device_context_open(&context, device_find("cuda"), &allocator_default, NULL);
    context.host = test_device();
    no_error(device_context_connect(&context));
    for (int kind = 0; kind < KERNEL_KINDS; kind++)
        for (unsigned long i = 0; i < n; i++)
            kernel_check(kind, one ? seed : i, &context);
    device_context_close(&context);
    assert_int_equal(fake_cuda_alive(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_fused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
