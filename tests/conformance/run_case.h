/* SPDX-License-Identifier: Apache-2.0 */
/* Runs one official case as onnx/backend/test/runner does. */
#ifndef TSSA_CONFORMANCE_RUN_CASE_H
#define TSSA_CONFORMANCE_RUN_CASE_H

#include "base/text.h"
#include "cases.h"

enum outcome { OUTCOME_PASS, OUTCOME_FAIL, OUTCOME_SKIP, OUTCOME_COUNT };

/*
 * The model must pass as it is and optimized; or, where a device is named, by all passes on that.
 * Into `report`: a line that says why it failed or was
 * skipped, then one line per operator of the model, "-Name" when tssa cannot run it and "+Name"
 * when it can.
 */
enum outcome run_case(const struct test_case *test, const char *device, struct text *report);

#endif
