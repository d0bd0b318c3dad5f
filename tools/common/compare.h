/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Comparing what a run gave with what was expected.
 *
 * Kinds, element types, shapes, lengths and strings must be the same. Numbers follow
 * numpy.testing.assert_allclose, which the official ONNX tests use: |actual - expected| <= atol +
 * rtol * |expected|, computed in the tensor's own precision (float16 in float16), NaN equal to NaN,
 * infinities equal by sign.
 *
 * Two zeros of unlike sign are within any tolerance. With `zero_signs` they differ all the same,
 * where every other element of the value is what was expected to the last bit: then nothing was
 * rounded in another way, which is what could turn a zero's sign for a good reason. A zero beside a
 * number that is not zero, however small, is the tolerance's to judge. In any case they are
 * counted.
 */
#ifndef TSSA_TOOLS_COMPARE_H
#define TSSA_TOOLS_COMPARE_H

#include "base/value.h"

struct compare_rule {
    double rtol, atol;
    bool exact_integers; /* no tolerance for integers; assert_allclose has one */
    bool zero_signs;     /* 0.0 and -0.0 differ, see above */
};

struct compare_report {
    bool equal;
    size_t compared, differing; /* elements */
    size_t zero_signs;          /* elements that are zeros of unlike sign */
    double max_abs, max_rel;    /* over all pairs of finite elements */
    char where[200];            /* index of the element with max_abs; empty when all are the same */
    char zero_where[200];       /* index of the first of zero_signs */
    char why[400];              /* one line; empty when equal */
};

/* Returns report->equal. */
bool compare_values(const struct value *actual, const struct value *expected,
                    const struct compare_rule *rule, struct compare_report *report);

#endif
