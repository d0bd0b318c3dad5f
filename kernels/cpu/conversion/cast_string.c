/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers as text and back (Cast-25 with STRING). The C library converts exactly; it is told to use
 * the "C" locale for as long as an op runs, in this thread only.
 */
#include "kernels/cpu/conversion/cast_string.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- Locale ---------------------------------------------------------------------------------- */

struct c_locale {
    locale_t own, before;
};

static tssa_status *c_locale_enter(struct c_locale *locale)
{
    locale->own = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (locale->own == (locale_t)0)
        return status_out_of_memory();
    locale->before = uselocale(locale->own);
    return NULL;
}

static void c_locale_leave(struct c_locale *locale)
{
    uselocale(locale->before);
    freelocale(locale->own);
}

/* ---- To text --------------------------------------------------------------------------------- */

#define TEXT_MAX 40

/* Does the text give the same element back? */
static bool same_element(tssa_dtype dtype, const char *text, const void *element)
{
    uint64_t parsed = 0;
    double value = strtod(text, NULL);
    if (dtype == TSSA_FLOAT8E8M0) { /* powers of two, which Cast by default would round up */
        uint8_t code = float_to_e8m0((float)value, true, ROUND_NEAREST);
        return memcmp(&code, element, 1) == 0;
    }
    dtype_store_double(dtype, &parsed, value);
    return memcmp(&parsed, element, dtype_info(dtype)->size) == 0;
}

/*
 * Python's repr: the digits in place where the exponent is -4 to 15, else in scientific notation.
 */
static int format_float(tssa_dtype dtype, const void *element, char *text)
{
    double value = dtype_load_double(dtype, element);
    if (isnan(value))
        return snprintf(text, TEXT_MAX, "nan");
    if (isinf(value))
        return snprintf(text, TEXT_MAX, value < 0 ? "-inf" : "inf");
    char digits[TEXT_MAX];
    int precision = 0;
    do {
        snprintf(digits, sizeof digits, "%.*e", precision, value);
    } while (++precision < 17 && !same_element(dtype, digits, element));
    int exponent = atoi(strchr(digits, 'e') + 1);
    int used = precision - 1; /* digits behind the first one */
    if (exponent < -4 || exponent >= 16)
        return snprintf(text, TEXT_MAX, "%s", digits);
    int decimals = used > exponent ? used - exponent : 1;
    /* The shortest digits may be fewer than the integer part has: the rest is zeros, not the
     * value's own digits, so the text is made from the short decimal. */
    return snprintf(text, TEXT_MAX, "%.*f", decimals, strtod(digits, NULL));
}

static int format_element(tssa_dtype dtype, const void *element, char *text)
{
    switch (dtype_info(dtype)->cls) {
    case DTYPE_CLASS_FLOAT:
        return format_float(dtype, element, text);
    case DTYPE_CLASS_BOOL:
        return snprintf(text, TEXT_MAX, "%s", dtype_load_int64(dtype, element) ? "True" : "False");
    case DTYPE_CLASS_UNSIGNED:
        return snprintf(text, TEXT_MAX, "%" PRIu64, (uint64_t)dtype_load_int64(dtype, element));
    default:
        return snprintf(text, TEXT_MAX, "%" PRId64, dtype_load_int64(dtype, element));
    }
}

static tssa_status *format_all(struct kernel_args *args, const struct tensor *from, tssa_string *to)
{
    size_t count = tensor_count(from), size = dtype_info(from->dtype)->size;
    for (size_t i = 0; i < count; i++) {
        char text[TEXT_MAX];
        int length = format_element(from->dtype, (const char *)from->data + i * size, text);
        char *bytes = arena_copy(args->env->strings, text, (size_t)length);
        TRY_ALLOC(bytes);
        to[i] = (tssa_string){bytes, (size_t)length};
    }
    return NULL;
}

tssa_status *cast_to_strings(struct kernel_args *args, const struct tensor *from, struct tensor *to)
{
    struct c_locale locale;
    TRY(c_locale_enter(&locale));
    tssa_status *status = format_all(args, from, to->data);
    c_locale_leave(&locale);
    return status;
}

/* ---- From text ------------------------------------------------------------------------------- */

/* Longer numbers have digits that no type can tell apart, but they are still numbers. */
#define NUMBER_MAX 1024

/* The text without surrounding blanks, terminated; false when it cannot be a number. */
static bool trim(const tssa_string *string, char *text)
{
    const char *begin = string->data, *end = begin + string->size;
    while (begin < end && isspace((unsigned char)*begin))
        begin++;
    while (begin < end && isspace((unsigned char)end[-1]))
        end--;
    size_t size = (size_t)(end - begin);
    /* strtod reads hexadecimal too, and "nan(...)". */
    if (size == 0 || size >= NUMBER_MAX || memchr(begin, 0, size) || memchr(begin, 'x', size) ||
        memchr(begin, 'X', size) || memchr(begin, '(', size))
        return false;
    memcpy(text, begin, size);
    text[size] = '\0';
    return true;
}

static bool parse_truth(const char *text, int64_t *value)
{
    *value = strcasecmp(text, "true") == 0;
    return *value || strcasecmp(text, "false") == 0;
}

/* An integer of 64 bits, signed or not, is read exactly. */
static bool parse_integer(const char *text, int64_t *value)
{
    char *end;
    errno = 0;
    *value = strtoll(text, &end, 10);
    if (*end == '\0' && errno == 0)
        return true;
    errno = 0;
    *value = (int64_t)strtoull(text, &end, 10);
    return *end == '\0' && errno == 0 && text[0] != '-';
}

static bool parse_element(const tssa_string *string, tssa_dtype dtype, void *element,
                          const struct convert_options *options)
{
    char text[NUMBER_MAX];
    if (string->size == 0 || !trim(string, text))
        return false;
    int64_t integer;
    if (parse_truth(text, &integer) || (!dtype_is_float(dtype) && parse_integer(text, &integer))) {
        convert_elements(1, TSSA_INT64, &integer, 1, dtype, element, 1, options);
        return true;
    }
    char *end;
    double value = strtod(text, &end);
    if (*end != '\0')
        return false;
    if (dtype == TSSA_FLOAT) {
        float nearest = strtof(text, NULL); /* rounds once */
        memcpy(element, &nearest, sizeof nearest);
    } else {
        convert_elements(1, TSSA_DOUBLE, &value, 1, dtype, element, 1, options);
    }
    return true;
}

tssa_status *cast_from_strings(struct kernel_args *args, const struct tensor *from,
                               struct tensor *to, const struct convert_options *options)
{
    (void)args;
    struct c_locale locale;
    TRY(c_locale_enter(&locale));
    tssa_status *status = NULL;
    const tssa_string *strings = from->data;
    size_t count = tensor_count(from), size = dtype_info(to->dtype)->size;
    for (size_t i = 0; i < count && !status; i++)
        if (!parse_element(&strings[i], to->dtype, (char *)to->data + i * size, options))
            status = ERROR(TSSA_RUNTIME, "element %zu, \"%.*s\", is not a number", i,
                           strings[i].size < 60 ? (int)strings[i].size : 60,
                           strings[i].size ? strings[i].data : "");
    c_locale_leave(&locale);
    return status;
}
