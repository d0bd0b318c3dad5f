/* SPDX-License-Identifier: Apache-2.0 */
#include "common/same_value.h"

#include <string.h>

static bool same_strings(const struct tensor *a, const struct tensor *b)
{
    const tssa_string *x = a->data, *y = b->data;
    for (size_t i = 0; i < tensor_count(a); i++)
        if (x[i].size != y[i].size || (x[i].size && memcmp(x[i].data, y[i].data, x[i].size) != 0))
            return false;
    return true;
}

static bool same_tensor(const struct tensor *a, const struct tensor *b)
{
    if (a->dtype != b->dtype || !tensor_same_shape(a, b))
        return false;
    if (a->dtype == TSSA_STRING)
        return same_strings(a, b);
    return tensor_bytes(a) == 0 || memcmp(a->data, b->data, tensor_bytes(a)) == 0;
}

static bool same_sequence(const struct value *a, const struct value *b)
{
    const size_t length = sequence_length(a->sequence);
    if (length != sequence_length(b->sequence))
        return false;
    for (size_t i = 0; i < length; i++)
        if (!same_value(sequence_element(a->sequence, i), sequence_element(b->sequence, i)))
            return false;
    return true;
}

bool same_value(const struct value *a, const struct value *b)
{
    if (a->kind != b->kind)
        return false;
    if (a->kind == TSSA_KIND_TENSOR)
        return same_tensor(&a->tensor, &b->tensor);
    return a->kind != TSSA_KIND_SEQUENCE || same_sequence(a, b);
}
