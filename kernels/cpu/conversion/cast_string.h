/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as text and back, for Cast. */
#ifndef TSSA_KERNELS_CPU_CONVERSION_CAST_STRING_H
#define TSSA_KERNELS_CPU_CONVERSION_CAST_STRING_H

#include "device/kernel.h"
#include "kernels/cpu/lib/convert.h"

/*
 * Numbers as numpy writes them: the fewest digits that give the same element back, "0.1", "1e-07",
 * "1.0", "nan", "-inf"; integers in decimal; "True" and "False".
 */
tssa_status *cast_to_strings(struct kernel_args *args, const struct tensor *from,
                             struct tensor *to);

/*
 * Text as Python's float() and int() read it: decimal or scientific, "inf", "nan", any case,
 * surrounding blanks. Integers are exact; a fraction is dropped. "true" and "false" are numbers
 * too. An error names the first element that is no number.
 */
tssa_status *cast_from_strings(struct kernel_args *args, const struct tensor *from,
                               struct tensor *to, const struct convert_options *options);

#endif
