/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays of elements from one type to another, with Cast's rules. For kernels that compute a type
 * in another one (FLOAT16 in float), and for Cast itself.
 */
#ifndef TSSA_KERNELS_CPU_LIB_CONVERT_H
#define TSSA_KERNELS_CPU_LIB_CONVERT_H

#include "base/dtype.h"

/* What Cast's attributes choose, for the small float types only. */
struct convert_options {
    bool saturate;
    enum round_mode round_mode; /* FLOAT8E8M0 */
};

/* Cast's defaults. */
extern const struct convert_options convert_default;

/*
 * n elements from `from` to `to`, `from_step` and `to_step` elements apart. Both types are numeric
 * or BOOL (convert_supports); the arrays do not overlap.
 *
 *   to floats    rounded once, to nearest even
 *   to integers  floats truncate; out of range, NaN and infinities give what x86-64 gives: the
 *                lowest INT32 or INT64, of which narrower types take the low bits. Integers wrap.
 *   to BOOL      is it not 0? NaN is true
 */
void convert_elements(int64_t n, tssa_dtype from, const void *source, int64_t from_step,
                      tssa_dtype to, void *target, int64_t to_step,
                      const struct convert_options *options);

/* Every type but STRING, the complex ones and UNDEFINED. */
bool convert_supports(tssa_dtype dtype);

#endif
