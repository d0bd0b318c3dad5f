/* SPDX-License-Identifier: Apache-2.0 */
/* The one meaning of "the same bits" for values: kinds, types and shapes are equal, and so is every
 * byte of the elements; of strings, their text; of a sequence, each element in its place. */
#ifndef TSSA_TESTS_SAME_VALUE_H
#define TSSA_TESTS_SAME_VALUE_H

#include <stdbool.h>

#include "base/value.h"

bool same_value(const struct value *a, const struct value *b);

#endif
