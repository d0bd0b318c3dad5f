/* SPDX-License-Identifier: Apache-2.0 */
/* Runs one model on one data set. */
#ifndef TSSA_REAL_RUN_REAL_H
#define TSSA_REAL_RUN_REAL_H

#include "base/text.h"
#include "catalog.h"

enum outcome { OUTCOME_PASS, OUTCOME_FAIL, OUTCOME_SKIP, OUTCOME_COUNT };

/* What run_real reports, as bytes. */
struct real_report {
    double max_abs, max_rel;
    double milliseconds; /* the fastest of a few runs */
    char text[600];      /* why it failed or was skipped, or how it matched */
};

/* Runs the model as it is and optimized. Skipped: the session was refused because of an operator
 * that tssa does not have. */
enum outcome run_real(const struct real_case *test, struct text *report);

#endif
