/* SPDX-License-Identifier: Apache-2.0 */
#include "common/no_error.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

void no_error(tssa_status *status)
{
    if (!status)
        return;
    print_message("%s\n", tssa_status_message(status));
    tssa_status_free(status);
    fail();
}
