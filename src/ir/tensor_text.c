/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/tensor_text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/dtype.h"
#include "base/hash.h"
#include "ir/quote.h"

/* ---- Numbers --------------------------------------------------------------------------------- */

/* The locale's decimal point, whatever its bytes, becomes a dot. */
static void print_number(struct text *text, const char *number, bool point)
{
    bool whole = true, foreign = false;
    for (const char *p = number; *p; p++) {
        bool plain = (*p >= '0' && *p <= '9') || *p == '-' || *p == '+' || *p == 'e';
        if (plain)
            text_putc(text, *p);
        else if (!foreign)
            text_putc(text, '.');
        foreign = !plain;
        whole = whole && plain && *p != 'e';
    }
    if (whole && point)
        text_puts(text, ".0");
}

static bool print_special(struct text *text, double value)
{
    if (isnan(value))
        text_puts(text, "nan");
    else if (isinf(value))
        text_puts(text, value < 0 ? "-inf" : "inf");
    else
        return false;
    return true;
}

void ir_print_float(struct text *text, float value, bool point)
{
    char number[64];
    if (print_special(text, (double)value))
        return;
    for (int digits = 6; digits <= 9; digits++) {
        snprintf(number, sizeof number, "%.*g", digits, (double)value);
        if (strtof(number, NULL) == value)
            break;
    }
    print_number(text, number, point);
}

void ir_print_double(struct text *text, double value)
{
    char number[64];
    if (print_special(text, value))
        return;
    for (int digits = 15; digits <= 17; digits++) {
        snprintf(number, sizeof number, "%.*g", digits, value);
        if (strtod(number, NULL) == value)
            break;
    }
    print_number(text, number, false);
}

/* ---- Elements -------------------------------------------------------------------------------- */

static void print_complex(struct text *text, tssa_dtype dtype, const char *element)
{
    float single[2];
    double parts[2];
    text_putc(text, '(');
    if (dtype == TSSA_COMPLEX64) {
        memcpy(single, element, sizeof single);
        ir_print_float(text, single[0], false);
        text_puts(text, ", ");
        ir_print_float(text, single[1], false);
    } else {
        memcpy(parts, element, sizeof parts);
        ir_print_double(text, parts[0]);
        text_puts(text, ", ");
        ir_print_double(text, parts[1]);
    }
    text_putc(text, ')');
}

static void print_element(struct text *text, const struct tensor *tensor, size_t i)
{
    const struct dtype_info *info = dtype_info(tensor->dtype);
    const char *element = (const char *)tensor->data + i * info->size;
    const tssa_string *string;
    switch (info->cls) {
    case DTYPE_CLASS_FLOAT:
        if (tensor->dtype == TSSA_DOUBLE)
            ir_print_double(text, dtype_load_double(tensor->dtype, element));
        else
            ir_print_float(text, (float)dtype_load_double(tensor->dtype, element), false);
        break;
    case DTYPE_CLASS_SIGNED:
        text_printf(text, "%" PRId64, dtype_load_int64(tensor->dtype, element));
        break;
    case DTYPE_CLASS_UNSIGNED:
        text_printf(text, "%" PRIu64, (uint64_t)dtype_load_int64(tensor->dtype, element));
        break;
    case DTYPE_CLASS_BOOL:
        text_puts(text, dtype_load_int64(tensor->dtype, element) ? "true" : "false");
        break;
    case DTYPE_CLASS_COMPLEX:
        print_complex(text, tensor->dtype, element);
        break;
    case DTYPE_CLASS_STRING:
        string = (const tssa_string *)tensor->data + i;
        ir_print_quoted(text, string->data, string->size);
        break;
    case DTYPE_CLASS_NONE:
        break;
    }
}

/* Of the bytes in memory; of strings, a chain over their bytes. */
static uint64_t hash_elements(const struct tensor *tensor)
{
    if (tensor->dtype != TSSA_STRING)
        return hash_bytes(tensor->data, tensor_bytes(tensor), 0);
    const tssa_string *strings = tensor->data;
    uint64_t hash = 0;
    for (size_t i = 0, n = tensor_count(tensor); i < n; i++)
        hash = hash_bytes(strings[i].data, strings[i].size, hash);
    return hash;
}

void ir_print_tensor(struct text *text, const struct tensor *tensor, bool full)
{
    size_t count = tensor_count(tensor);
    text_printf(text, "%s[", dtype_info(tensor->dtype)->ir_name);
    for (int i = 0; i < tensor->rank; i++)
        text_printf(text, "%s%" PRId64, i ? ", " : "", tensor->dims[i]);
    text_puts(text, "] ");
    if (count > IR_PRINT_MAX && !full) {
        text_printf(text, "<%016" PRIx64 ">", hash_elements(tensor));
        return;
    }
    if (tensor->rank > 0)
        text_putc(text, '[');
    for (size_t i = 0; i < count && !text->failed; i++) {
        text_puts(text, i ? ", " : "");
        print_element(text, tensor, i);
    }
    if (tensor->rank > 0)
        text_putc(text, ']');
}
