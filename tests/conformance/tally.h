/* SPDX-License-Identifier: Apache-2.0 */
/* Totals per operator. A case counts for every operator of its model. */
#ifndef TSSA_CONFORMANCE_TALLY_H
#define TSSA_CONFORMANCE_TALLY_H

#include <stdbool.h>
#include <stddef.h>

#include "run_case.h"

struct tally_row {
    char *name;
    bool supported;
    size_t counts[OUTCOME_COUNT];
};

struct tally {
    struct tally_row *rows;
    size_t count;
};

/* `operators`: lines as run_case reports them. */
void tally_add(struct tally *tally, const char *operators, enum outcome outcome);
/* The missing operators and how many cases wait for each; all operators with `all`. */
void tally_print(const struct tally *tally, bool all);
void tally_free(struct tally *tally);

#endif
