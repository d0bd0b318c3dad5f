/* SPDX-License-Identifier: Apache-2.0 */
/* For what must not fail: the test does, with the status's message, when it is not NULL. */
#ifndef TSSA_TESTS_NO_ERROR_H
#define TSSA_TESTS_NO_ERROR_H

#include "base/status.h"

void no_error(tssa_status *status);

#endif
