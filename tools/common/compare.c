/* SPDX-License-Identifier: Apache-2.0 */
/* The comparison rule, one function per precision. */
#include "tools/common/compare.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/dtype.h"

/* One pair of elements. */
struct verdict {
    bool close;
    double error, tolerance; /* in double, for the report */
};

typedef struct verdict (*judge)(const struct compare_rule *rule, tssa_dtype dtype,
                                const char *actual, const char *expected);

static struct verdict judge_float(const struct compare_rule *rule, tssa_dtype dtype,
                                  const char *actual, const char *expected)
{
    float a = (float)dtype_load_double(dtype, actual),
          e = (float)dtype_load_double(dtype, expected);
    float error = fabsf(a - e), tolerance = (float)rule->atol + (float)rule->rtol * fabsf(e);
    bool close = (error <= tolerance && isfinite(e)) || a == e || (isnan(a) && isnan(e));
    return (struct verdict){close, error, tolerance};
}

/* Every operation rounds to the narrow type, as numpy's and ml_dtypes' do. */
static struct verdict judge_narrow(const struct compare_rule *rule, tssa_dtype dtype,
                                   const char *actual, const char *expected)
{
    bool half = dtype == TSSA_FLOAT16;
#define ROUNDED(x)                                                                                 \
    (half ? half_to_float(float_to_half(x)) : bfloat16_to_float(float_to_bfloat16(x)))
    float a = (float)dtype_load_double(dtype, actual),
          e = (float)dtype_load_double(dtype, expected);
    float rtol = half ? half_to_float(double_to_half(rule->rtol))
                      : bfloat16_to_float(double_to_bfloat16(rule->rtol));
    float atol = half ? half_to_float(double_to_half(rule->atol))
                      : bfloat16_to_float(double_to_bfloat16(rule->atol));
    float error = fabsf(ROUNDED(a - e)), scaled = ROUNDED(rtol * fabsf(e));
    float tolerance = ROUNDED(atol + scaled);
#undef ROUNDED
    bool close = (error <= tolerance && isfinite(e)) || a == e || (isnan(a) && isnan(e));
    return (struct verdict){close, error, tolerance};
}

static struct verdict judge_double(const struct compare_rule *rule, tssa_dtype dtype,
                                   const char *actual, const char *expected)
{
    double a = dtype_load_double(dtype, actual), e = dtype_load_double(dtype, expected);
    double error = fabs(a - e), tolerance = rule->atol + rule->rtol * fabs(e);
    bool close = (error <= tolerance && isfinite(e)) || a == e || (isnan(a) && isnan(e));
    return (struct verdict){close, error, tolerance};
}

static struct verdict judge_exact(const struct compare_rule *rule, tssa_dtype dtype,
                                  const char *actual, const char *expected)
{
    (void)rule;
    bool close = memcmp(actual, expected, dtype_info(dtype)->size) == 0;
    double a = dtype_load_double(dtype, actual), e = dtype_load_double(dtype, expected);
    return (struct verdict){close, fabs(a - e), 0};
}

static struct verdict judge_complex(const struct compare_rule *rule, tssa_dtype dtype,
                                    const char *actual, const char *expected)
{
    tssa_dtype part = dtype == TSSA_COMPLEX64 ? TSSA_FLOAT : TSSA_DOUBLE;
    size_t size = dtype_info(part)->size;
    double ar = dtype_load_double(part, actual), ai = dtype_load_double(part, actual + size);
    double er = dtype_load_double(part, expected), ei = dtype_load_double(part, expected + size);
    double error = hypot(ar - er, ai - ei), tolerance = rule->atol + rule->rtol * hypot(er, ei);
    bool nan_a = isnan(ar) || isnan(ai), nan_e = isnan(er) || isnan(ei);
    bool close = (error <= tolerance && isfinite(er) && isfinite(ei)) || (ar == er && ai == ei) ||
                 (nan_a && nan_e);
    return (struct verdict){close, error, tolerance};
}

static struct verdict judge_string(const struct compare_rule *rule, tssa_dtype dtype,
                                   const char *actual, const char *expected)
{
    (void)rule;
    (void)dtype;
    tssa_string a, e;
    memcpy(&a, actual, sizeof a);
    memcpy(&e, expected, sizeof e);
    bool close = a.size == e.size && (a.size == 0 || memcmp(a.data, e.data, a.size) == 0);
    return (struct verdict){close, close ? 0 : INFINITY, 0};
}

static judge judge_for(tssa_dtype dtype, const struct compare_rule *rule)
{
    switch (dtype_info(dtype)->cls) {
    case DTYPE_CLASS_STRING:
        return judge_string;
    case DTYPE_CLASS_COMPLEX:
        return judge_complex;
    case DTYPE_CLASS_FLOAT:
        if (dtype == TSSA_FLOAT16 || dtype == TSSA_BFLOAT16)
            return judge_narrow;
        return dtype == TSSA_DOUBLE ? judge_double : judge_float;
    default:
        return rule->exact_integers ? judge_exact : judge_double;
    }
}

/* Zeros of unlike sign; in one of its parts for a complex number. */
static bool zero_sign_differs(tssa_dtype dtype, const char *actual, const char *expected)
{
    enum dtype_class cls = dtype_info(dtype)->cls;
    bool complex = cls == DTYPE_CLASS_COMPLEX;
    if (!complex && cls != DTYPE_CLASS_FLOAT)
        return false;
    if (complex)
        dtype = dtype == TSSA_COMPLEX64 ? TSSA_FLOAT : TSSA_DOUBLE;
    for (size_t part = 0; part < (complex ? 2 : 1); part++) {
        size_t at = part * dtype_info(dtype)->size;
        double a = dtype_load_double(dtype, actual + at),
               e = dtype_load_double(dtype, expected + at);
        if (a == 0 && e == 0 && signbit(a) != signbit(e))
            return true;
    }
    return false;
}

/* ---- The report ------------------------------------------------------------------------------ */

__attribute__((format(printf, 2, 3))) static bool differ(struct compare_report *report,
                                                         const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(report->why, sizeof report->why, format, arguments);
    va_end(arguments);
    report->equal = false;
    return false;
}

static void print_element(tssa_dtype dtype, const char *element, char *text, size_t size)
{
    tssa_string s;
    switch (dtype_info(dtype)->cls) {
    case DTYPE_CLASS_STRING:
        memcpy(&s, element, sizeof s);
        snprintf(text, size, "\"%.*s\"", (int)(s.size < 32 ? s.size : 32), s.size ? s.data : "");
        break;
    case DTYPE_CLASS_COMPLEX: {
        tssa_dtype part = dtype == TSSA_COMPLEX64 ? TSSA_FLOAT : TSSA_DOUBLE;
        snprintf(text, size, "%.9g%+.9gi", dtype_load_double(part, element),
                 dtype_load_double(part, element + dtype_info(part)->size));
        break;
    }
    case DTYPE_CLASS_FLOAT:
        snprintf(text, size, "%.9g", dtype_load_double(dtype, element));
        break;
    case DTYPE_CLASS_UNSIGNED:
        snprintf(text, size, "%" PRIu64, (uint64_t)dtype_load_int64(dtype, element));
        break;
    default:
        snprintf(text, size, "%" PRId64, dtype_load_int64(dtype, element));
    }
}

/* "[1, 0, 7]" for a flat index. */
static void print_index(const struct tensor *tensor, size_t flat, char *text, size_t size)
{
    int64_t strides[TSSA_MAX_RANK];
    size_t used = 0;
    tensor_strides(tensor->rank, tensor->dims, strides);
    used += (size_t)snprintf(text, size, "[");
    for (int i = 0; i < tensor->rank && used < size; i++) {
        used += (size_t)snprintf(text + used, size - used, "%s%" PRId64, i ? ", " : "",
                                 (int64_t)flat / strides[i]);
        flat = (size_t)((int64_t)flat % strides[i]);
    }
    if (used < size)
        snprintf(text + used, size - used, "]");
}

static bool report_worst(const struct tensor *actual, const struct tensor *expected, size_t worst,
                         size_t differing, struct compare_report *report)
{
    char index[200], a[64], e[64];
    size_t size = dtype_info(actual->dtype)->size;
    print_index(actual, worst, index, sizeof index);
    print_element(actual->dtype, (const char *)actual->data + worst * size, a, sizeof a);
    print_element(actual->dtype, (const char *)expected->data + worst * size, e, sizeof e);
    return differ(report, "%zu of %zu elements differ, the most at %s: %s instead of %s", differing,
                  tensor_count(actual), index, a, e);
}

static bool compare_tensors(const struct tensor *actual, const struct tensor *expected,
                            const struct compare_rule *rule, struct compare_report *report)
{
    judge judge_pair = judge_for(expected->dtype, rule);
    size_t size = dtype_info(expected->dtype)->size, count = tensor_count(expected);
    size_t worst = 0, differing = 0;
    double worst_ratio = -1;
    for (size_t i = 0; i < count; i++) {
        const char *a = (const char *)actual->data + i * size,
                   *e = (const char *)expected->data + i * size;
        struct verdict verdict = judge_pair(rule, expected->dtype, a, e);
        if (isfinite(verdict.error)) {
            double magnitude = fabs(dtype_load_double(expected->dtype, e));
            if (verdict.error > report->max_abs) {
                report->max_abs = verdict.error;
                print_index(expected, i, report->where, sizeof report->where);
            }
            if (magnitude > 0)
                report->max_rel = fmax(report->max_rel, verdict.error / magnitude);
        }
        if (verdict.close) {
            if (zero_sign_differs(expected->dtype, a, e) && report->zero_signs++ == 0)
                print_index(expected, i, report->zero_where, sizeof report->zero_where);
            continue;
        }
        differing++;
        double ratio =
            verdict.error / verdict.tolerance; /* NaN when a NaN or an infinity is missed */
        if (isnan(ratio))
            ratio = INFINITY;
        if (ratio > worst_ratio) {
            worst_ratio = ratio;
            worst = i;
        }
    }
    report->compared += count;
    report->differing += differing;
    return differing == 0 || report_worst(actual, expected, worst, differing, report);
}

static bool compare(const struct value *actual, const struct value *expected,
                    const struct compare_rule *rule, struct compare_report *report)
{
    char a[200], e[200];
    bool same = actual->kind == expected->kind;
    if (same && expected->kind == TSSA_KIND_TENSOR)
        same = actual->tensor.dtype == expected->tensor.dtype &&
               tensor_same_shape(&actual->tensor, &expected->tensor);
    if (same && expected->kind == TSSA_KIND_SEQUENCE)
        same = sequence_length(actual->sequence) == sequence_length(expected->sequence);
    if (!same) {
        value_describe(actual, a, sizeof a);
        value_describe(expected, e, sizeof e);
        return differ(report, "%s instead of %s", a, e);
    }
    switch (expected->kind) {
    case TSSA_KIND_NONE:
        return true;
    case TSSA_KIND_TENSOR:
        return compare_tensors(&actual->tensor, &expected->tensor, rule, report);
    case TSSA_KIND_MAP:
        return compare(value_map_keys(actual->map), value_map_keys(expected->map), rule, report) &&
               compare(value_map_values(actual->map), value_map_values(expected->map), rule,
                       report);
    case TSSA_KIND_SEQUENCE:
        break;
    }
    for (size_t i = 0; i < sequence_length(expected->sequence); i++) {
        if (compare(sequence_element(actual->sequence, i), sequence_element(expected->sequence, i),
                    rule, report))
            continue;
        char why[sizeof report->why];
        memcpy(why, report->why, sizeof why);
        return differ(report, "element %zu: %.*s", i, (int)sizeof why - 40, why);
    }
    return true;
}

bool compare_values(const struct value *actual, const struct value *expected,
                    const struct compare_rule *rule, struct compare_report *report)
{
    *report = (struct compare_report){.equal = true};
    if (!compare(actual, expected, rule, report))
        return false;
    if (rule->zero_signs && report->zero_signs && report->max_abs == 0)
        return differ(report,
                      "%zu of %zu elements differ in the sign of zero alone, the first at %s",
                      report->zero_signs, report->compared, report->zero_where);
    return true;
}
