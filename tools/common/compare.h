/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Comparing what a run gave with what was expected.
 *
 * Kinds, element types, shapes, lengths and strings must be the same. Numbers follow
 * numpy.testing.assert_allclose, which the official ONNX tests use: |actual - expected| <= atol + rtol *
 * |expected|, computed in the tensor's own precision (float16 in float16), NaN equal to NaN, infinities
 * equal by sign.
 */
#ifndef TSSA_TOOLS_COMPARE_H
#define TSSA_TOOLS_COMPARE_H

#include "base/value.h"

struct compare_rule {
    double rtol, atol;
    bool exact_integers; /* no tolerance for integers; assert_allclose has one */
};

struct compare_report {
    bool equal;
    size_t compared, differing; /* elements */
    double max_abs, max_rel;    /* over all pairs of finite elements */
    char where[200];            /* index of the element with max_abs; empty when all are the same */
    char why[400];              /* one line; empty when equal */
};

/* Returns report->equal. */
bool compare_values(const struct value *actual, const struct value *expected,
                    const struct compare_rule *rule, struct compare_report *report);

#endif
