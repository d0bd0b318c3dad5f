/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device `opencl` where there is one, as PoCL's: all committed models, after all passes, give
 * what the CPU gives, several times over.
 */
/* ctest-timeout: 900 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/committed_models.h"
#include "common/model_on_device.h"
#include "common/no_error.h"

#define RUNS 3

static void one_model(void **state)
{
    struct model_run made = {0};
    tssa_status *status = model_on_device_open(&made, *state, 2, "opencl");
    const bool is_there = tssa_status_code(status) != TSSA_UNSUPPORTED;
    model_run_close(&made);
    if (is_there) {
        no_error(status);
        model_on_device_check(*state, 2, "opencl", RUNS);
        return;
    }
    print_message("%s\n", tssa_status_message(status));
    tssa_status_free(status);
    skip();
}

int main(void)
{
    return committed_models_test(one_model);
}
