/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/run/summary.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/dtype.h"

#define FIRST_ELEMENTS 8
#define FIRST_ITEMS 8
#define STRING_BYTES 40

static void print_string(const tssa_string *string)
{
    putchar('"');
    for (size_t i = 0; i < string->size && i < STRING_BYTES; i++) {
        unsigned char c = (unsigned char)string->data[i];
        if (c < 0x20 || c == 0x7f)
            printf("\\x%02x", c);
        else
            putchar(c);
    }
    printf(string->size > STRING_BYTES ? "...\"" : "\"");
}

static void print_element(tssa_dtype dtype, const char *element)
{
    tssa_string string;
    switch (dtype_info(dtype)->cls) {
    case DTYPE_CLASS_STRING:
        memcpy(&string, element, sizeof string);
        print_string(&string);
        break;
    case DTYPE_CLASS_COMPLEX: {
        tssa_dtype part = dtype == TSSA_COMPLEX64 ? TSSA_FLOAT : TSSA_DOUBLE;
        printf("%.6g%+.6gi", dtype_load_double(part, element),
               dtype_load_double(part, element + dtype_info(part)->size));
        break;
    }
    case DTYPE_CLASS_FLOAT:
        printf("%.6g", dtype_load_double(dtype, element));
        break;
    case DTYPE_CLASS_BOOL:
        printf(*element ? "true" : "false");
        break;
    case DTYPE_CLASS_UNSIGNED:
        printf("%" PRIu64, (uint64_t)dtype_load_int64(dtype, element));
        break;
    default:
        printf("%" PRId64, dtype_load_int64(dtype, element));
    }
}

/* Min, max and mean of the finite elements; how many are not. */
static void print_range(const struct tensor *tensor)
{
    size_t size = dtype_info(tensor->dtype)->size, count = tensor_count(tensor), finite = 0,
           nans = 0;
    double low = INFINITY, high = -INFINITY, sum = 0;
    for (size_t i = 0; i < count; i++) {
        double x = dtype_load_double(tensor->dtype, (const char *)tensor->data + i * size);
        nans += isnan(x);
        if (!isfinite(x))
            continue;
        finite++;
        sum += x;
        low = fmin(low, x);
        high = fmax(high, x);
    }
    if (finite)
        printf("  min %.6g  max %.6g  mean %.6g", low, high, sum / (double)finite);
    if (nans)
        printf("  %zu NaN", nans);
    if (count > finite + nans)
        printf("  %zu infinite", count - finite - nans);
}

static void print_tensor(const struct tensor *tensor)
{
    const struct dtype_info *info = dtype_info(tensor->dtype);
    size_t count = tensor_count(tensor);
    if (count > 1 && info->cls != DTYPE_CLASS_STRING && info->cls != DTYPE_CLASS_COMPLEX)
        print_range(tensor);
    printf(count ? "  " : "  empty");
    for (size_t i = 0; i < count && i < FIRST_ELEMENTS; i++) {
        printf(i ? ", " : "");
        print_element(tensor->dtype, (const char *)tensor->data + i * info->size);
    }
    printf(count > FIRST_ELEMENTS ? ", ...\n" : "\n");
}

static void print_value(const struct value *value, int indent)
{
    char what[300];
    value_describe(value, what, sizeof what);
    printf("%s", what);
    switch (value->kind) {
    case TSSA_KIND_NONE:
        printf("\n");
        break;
    case TSSA_KIND_TENSOR:
        print_tensor(&value->tensor);
        break;
    case TSSA_KIND_MAP:
        printf("\n%*skeys    ", indent + 2, "");
        print_value(value_map_keys(value->map), indent + 2);
        printf("%*svalues  ", indent + 2, "");
        print_value(value_map_values(value->map), indent + 2);
        break;
    case TSSA_KIND_SEQUENCE: {
        size_t length = sequence_length(value->sequence);
        printf("\n");
        for (size_t i = 0; i < length && i < FIRST_ITEMS; i++) {
            printf("%*s[%zu]  ", indent + 2, "", i);
            print_value(sequence_element(value->sequence, i), indent + 2);
        }
        if (length > FIRST_ITEMS)
            printf("%*s...\n", indent + 2, "");
        break;
    }
    }
}

void summary_value(const char *name, const struct value *value)
{
    printf("  %-12s ", name);
    print_value(value, 2);
}
