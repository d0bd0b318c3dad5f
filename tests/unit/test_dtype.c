/* SPDX-License-Identifier: Apache-2.0 */
/* Element types: the table, every code of every small format, loads, stores and packing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "base/dtype.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* ---- The table ------------------------------------------------------------------------------- */

static void table_is_complete(void **state)
{
    (void)state;
    for (int d = 0; d < TSSA_DTYPE_COUNT; d++) {
        const struct dtype_info *info = dtype_info((tssa_dtype)d);
        assert_int_equal(dtype_from_name(info->name), d);
        assert_int_equal(dtype_from_name(info->ir_name), d);
        assert_string_equal(tssa_dtype_name((tssa_dtype)d), info->name);
        assert_int_equal(tssa_dtype_size((tssa_dtype)d), info->size);
        if (info->file_bits >= 8)
            assert_int_equal(info->file_bits, 8 * info->size);
        assert_int_equal(info->size == 0, d == TSSA_UNDEFINED);
        for (int other = 0; other < d; other++) {
            assert_string_not_equal(info->name, dtype_info((tssa_dtype)other)->name);
            assert_string_not_equal(info->ir_name, dtype_info((tssa_dtype)other)->ir_name);
        }
        if (info->numpy)
            assert_int_equal(info->numpy[1] == '1' && info->numpy[2] == '6' ? 16
                                                                            : info->numpy[1] - '0',
                             info->size);
    }
    assert_int_equal(tssa_dtype_size(TSSA_STRING), sizeof(tssa_string));
}

static void numbers_outside_the_enum(void **state)
{
    (void)state;
    assert_string_equal(tssa_dtype_name((tssa_dtype)27), "UNDEFINED");
    assert_string_equal(tssa_dtype_name((tssa_dtype)-1), "UNDEFINED");
    assert_int_equal(tssa_dtype_size((tssa_dtype)1000), 0);
    assert_int_equal(dtype_from_name("FLOAT33"), TSSA_UNDEFINED);
    assert_int_equal(dtype_from_name(""), TSSA_UNDEFINED);
    assert_true(dtype_in(DTYPE_BIT(TSSA_INT2) | DTYPE_BIT(TSSA_FLOAT), TSSA_INT2));
    assert_false(dtype_in(DTYPE_BIT(TSSA_INT2), TSSA_FLOAT));
    assert_false(dtype_in(~(dtype_mask)0, (tssa_dtype)40));
    assert_true(dtype_is_float(TSSA_FLOAT8E8M0) && !dtype_is_float(TSSA_INT8));
    assert_true(dtype_is_integer(TSSA_UINT2) && !dtype_is_integer(TSSA_BOOL));
}

/* ---- The float formats, from their definition ------------------------------------------------ */

/* A format as the papers define it: sign, exponent, mantissa, and what is special. */
struct definition {
    tssa_dtype dtype;
    int bits, mantissa_bits, bias;
    double largest;
    bool has_infinity;
    unsigned nan_first, nan_last; /* magnitudes that are NaN; first > last: none but `only_nan` */
    bool only_nan;                /* the sign bit alone is the one NaN */
};

static const struct definition definitions[] = {
    {TSSA_FLOAT16, 16, 10, 15, 65504, true, 0x7c01, 0x7fff, false},
    {TSSA_BFLOAT16, 16, 7, 127, 0x1.fep127, true, 0x7f81, 0x7fff, false},
    {TSSA_FLOAT8E4M3FN, 8, 3, 7, 448, false, 0x7f, 0x7f, false},
    {TSSA_FLOAT8E4M3FNUZ, 8, 3, 8, 240, false, 1, 0, true},
    {TSSA_FLOAT8E5M2, 8, 2, 15, 57344, true, 0x7d, 0x7f, false},
    {TSSA_FLOAT8E5M2FNUZ, 8, 2, 16, 57344, false, 1, 0, true},
    {TSSA_FLOAT4E2M1, 4, 1, 1, 6, false, 1, 0, false},
};

static double value_of(const struct definition *d, unsigned code)
{
    unsigned sign = 1u << (d->bits - 1), magnitude = code & (sign - 1);
    if ((d->only_nan && code == sign) || (magnitude >= d->nan_first && magnitude <= d->nan_last))
        return NAN;
    int exponent = (int)(magnitude >> d->mantissa_bits);
    int mantissa = (int)(magnitude & ((1u << d->mantissa_bits) - 1));
    double value;
    if (d->has_infinity && magnitude == d->nan_first - 1)
        value = INFINITY;
    else if (exponent == 0)
        value = ldexp(mantissa, 1 - d->bias - d->mantissa_bits);
    else
        value = ldexp(mantissa + (1 << d->mantissa_bits), exponent - d->bias - d->mantissa_bits);
    return code & sign ? -value : value;
}

static double decode(const struct definition *d, unsigned code)
{
    if (d->dtype == TSSA_FLOAT16)
        return half_to_float((uint16_t)code);
    if (d->dtype == TSSA_BFLOAT16)
        return bfloat16_to_float((uint16_t)code);
    return small_float_to_float(d->dtype, (uint8_t)code);
}

static unsigned encode(const struct definition *d, double value, bool saturate)
{
    if (d->dtype == TSSA_FLOAT16)
        return double_to_half(value);
    if (d->dtype == TSSA_BFLOAT16)
        return double_to_bfloat16(value);
    return double_to_small_float(d->dtype, value, saturate);
}

static bool same(double a, double b)
{
    return a != a ? b != b : a == b && signbit(a) == signbit(b);
}

static void every_code_decodes(void **state)
{
    (void)state;
    for (size_t f = 0; f < COUNT(definitions); f++) {
        const struct definition *d = &definitions[f];
        double largest = 0;
        for (unsigned code = 0; code < 1u << d->bits; code++) {
            double value = decode(d, code);
            assert_true(same(value, value_of(d, code)));
            if (isfinite(value) && value > largest)
                largest = value;
            uint8_t element[2] = {(uint8_t)code, (uint8_t)(code >> 8)};
            assert_true(same(dtype_load_double(d->dtype, element), value));
        }
        assert_true(largest == d->largest);
    }
}

static void every_code_survives_a_round_trip(void **state)
{
    (void)state;
    for (size_t f = 0; f < COUNT(definitions); f++) {
        const struct definition *d = &definitions[f];
        for (unsigned code = 0; code < 1u << d->bits; code++) {
            double value = value_of(d, code);
            unsigned back = encode(d, value, false);
            if (value != value)
                assert_true(isnan(decode(d, back)));
            else
                assert_int_equal(back, code);
            if (isfinite(value))
                assert_int_equal(encode(d, value, true), code);
        }
    }
}

/* Between neighbours, the middle decides: below it down, above it up, on it to the even code. */
static void rounds_to_nearest_even(void **state)
{
    (void)state;
    for (size_t f = 0; f < COUNT(definitions); f++) {
        const struct definition *d = &definitions[f];
        unsigned sign = 1u << (d->bits - 1);
        for (unsigned code = 0; value_of(d, code) < d->largest; code++) {
            double low = value_of(d, code), high = value_of(d, code + 1);
            double middle = low + (high - low) / 2;
            unsigned even = code + (code & 1);
            unsigned minus_zero = d->only_nan ? 0 : sign;
            for (int saturate = 0; saturate < 2; saturate++) {
                assert_int_equal(encode(d, middle, saturate), even);
                assert_int_equal(encode(d, nextafter(middle, 0), saturate), code);
                assert_int_equal(encode(d, nextafter(middle, INFINITY), saturate), code + 1);
                assert_int_equal(encode(d, -middle, saturate), even ? even | sign : minus_zero);
                assert_int_equal(encode(d, -nextafter(middle, 0), saturate),
                                 code ? code | sign : minus_zero);
                assert_int_equal(encode(d, -nextafter(middle, INFINITY), saturate),
                                 (code + 1) | sign);
            }
        }
    }
}

/* The first value out of range lies half a step beyond the largest one, itself out when that is
 * odd. */
static void out_of_range(void **state)
{
    (void)state;
    for (size_t f = 0; f < COUNT(definitions); f++) {
        const struct definition *d = &definitions[f];
        unsigned sign = 1u << (d->bits - 1), largest = encode(d, d->largest, true);
        double step = d->largest - value_of(d, largest - 1), limit = d->largest + step / 2;
        double first_out = largest & 1 ? limit : nextafter(limit, INFINITY);
        assert_int_equal(encode(d, nextafter(first_out, 0), false), largest);
        const double beyond[] = {first_out, 1e300, INFINITY};
        for (size_t i = 0; i < COUNT(beyond); i++) {
            if (d->bits <= 8) {
                assert_int_equal(encode(d, beyond[i], true), largest);
                assert_int_equal(encode(d, -beyond[i], true), largest | sign);
            }
            double out = decode(d, encode(d, beyond[i], false));
            double minus_out = decode(d, encode(d, -beyond[i], false));
            if (d->dtype == TSSA_FLOAT4E2M1)
                assert_true(out == 6 && minus_out == -6);
            else if (d->has_infinity)
                assert_true(out == INFINITY && minus_out == -INFINITY);
            else
                assert_true(isnan(out) && isnan(minus_out));
        }
    }
}

static void known_codes(void **state)
{
    (void)state;
    static const struct {
        tssa_dtype dtype;
        double value;
        unsigned code;
    } known[] = {
        {TSSA_FLOAT16, 1, 0x3c00},          {TSSA_FLOAT16, 0x1p-24, 0x0001},
        {TSSA_FLOAT16, 65519.996, 0x7bff},  {TSSA_FLOAT16, 65520, 0x7c00},
        {TSSA_FLOAT16, -0.0, 0x8000},       {TSSA_FLOAT16, 1.0 / 3, 0x3555},
        {TSSA_BFLOAT16, 1, 0x3f80},         {TSSA_BFLOAT16, 3.14159265, 0x4049},
        {TSSA_FLOAT8E4M3FN, 448, 0x7e},     {TSSA_FLOAT8E4M3FN, 0.47892547, 0x2f},
        {TSSA_FLOAT8E4M3FN, -1, 0xb8},      {TSSA_FLOAT8E4M3FNUZ, 240, 0x7f},
        {TSSA_FLOAT8E4M3FNUZ, -1, 0xc0},    {TSSA_FLOAT8E4M3FNUZ, -0.0, 0},
        {TSSA_FLOAT8E5M2, 57344, 0x7b},     {TSSA_FLOAT8E5M2, -1, 0xbc},
        {TSSA_FLOAT8E5M2FNUZ, 57344, 0x7f}, {TSSA_FLOAT8E5M2FNUZ, -1, 0xc0},
        {TSSA_FLOAT8E5M2FNUZ, -1e-9, 0},    {TSSA_FLOAT4E2M1, 0.25, 0},
        {TSSA_FLOAT4E2M1, 0.75, 2},         {TSSA_FLOAT4E2M1, 1.75, 4},
        {TSSA_FLOAT4E2M1, 2.5, 4},          {TSSA_FLOAT4E2M1, 5, 6},
        {TSSA_FLOAT4E2M1, -5.1, 0xf},       {TSSA_FLOAT4E2M1, -0.0, 8},
    };
    for (size_t i = 0; i < COUNT(known); i++) {
        for (size_t f = 0; f < COUNT(definitions); f++)
            if (definitions[f].dtype == known[i].dtype)
                assert_int_equal(encode(&definitions[f], known[i].value, true), known[i].code);
    }
}

static void nan_stays_nan(void **state)
{
    (void)state;
    for (int saturate = 0; saturate < 2; saturate++) {
        assert_int_equal(float_to_small_float(TSSA_FLOAT8E4M3FN, NAN, saturate) & 0x7f, 0x7f);
        assert_int_equal(float_to_small_float(TSSA_FLOAT8E4M3FNUZ, NAN, saturate), 0x80);
        assert_int_equal(float_to_small_float(TSSA_FLOAT8E4M3FNUZ, -NAN, saturate), 0x80);
        assert_int_equal(float_to_small_float(TSSA_FLOAT8E5M2, NAN, saturate) & 0x7f, 0x7e);
        assert_int_equal(float_to_small_float(TSSA_FLOAT8E5M2FNUZ, -NAN, saturate), 0x80);
        assert_int_equal(float_to_small_float(TSSA_FLOAT8E8M0, NAN, saturate), 0xff);
        assert_int_equal(float_to_small_float(TSSA_FLOAT4E2M1, NAN, saturate), 8);
    }
    /* Payloads with nothing in the kept bits must not become infinity. */
    uint32_t bits = 0x7f800001;
    float nan;
    memcpy(&nan, &bits, sizeof nan);
    assert_true(isnan(half_to_float(float_to_half(nan))));
    assert_true(isnan(bfloat16_to_float(float_to_bfloat16(nan))));
    assert_true(isnan(half_to_float(double_to_half(nan))));
    assert_true(isnan(bfloat16_to_float(double_to_bfloat16(-nan))));
}

/* The short cuts for floats give what the one encoder gives. */
static void float_short_cuts(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < UINT64_C(1) << 32; i += 4093) {
        uint32_t bits = (uint32_t)i;
        float value;
        memcpy(&value, &bits, sizeof value);
        if (isnan(value))
            continue;
        assert_int_equal(float_to_half(value), double_to_half(value));
        assert_int_equal(float_to_bfloat16(value), double_to_bfloat16(value));
    }
    /* All floats around each rounding decision of half. */
    for (unsigned code = 0; code < 0x7c00; code++) {
        float middle = (float)((value_of(&definitions[0], code) +
                                (code == 0x7bff ? 65536 : value_of(&definitions[0], code + 1))) /
                               2);
        for (int step = -1; step <= 1; step++) {
            float value = step ? nextafterf(middle, (float)step * INFINITY) : middle;
            assert_int_equal(float_to_half(value), double_to_half(value));
            assert_int_equal(float_to_half(-value), double_to_half(value) | 0x8000);
        }
    }
}

static void doubles_round_once(void **state)
{
    (void)state;
    /* Just above the middle between two halves; by way of a float it would be a tie. */
    assert_int_equal(double_to_half(1 + 0x1p-11 + 0x1p-40), 0x3c01);
    assert_int_equal(float_to_half((float)(1 + 0x1p-11 + 0x1p-40)), 0x3c00);
    assert_int_equal(double_to_bfloat16(1 + 0x1p-8 + 0x1p-40), 0x3f81);
    assert_int_equal(double_to_small_float(TSSA_FLOAT8E5M2, 1.125 + 0x1p-40, true), 0x3d);
    assert_int_equal(double_to_half(0x1p-1074), 0);
    assert_int_equal(double_to_half(-0x1p-1040), 0x8000);
}

static void e8m0(void **state)
{
    (void)state;
    for (unsigned code = 0; code < 255; code++) {
        float value = small_float_to_float(TSSA_FLOAT8E8M0, (uint8_t)code);
        assert_true(value == (float)ldexp(1, (int)code - 127));
        if (code == 0)
            continue;
        for (int mode = ROUND_UP; mode <= ROUND_NEAREST; mode++) {
            assert_int_equal(float_to_e8m0(value, true, (enum round_mode)mode), code);
            assert_int_equal(float_to_e8m0(-value, true, (enum round_mode)mode), code);
        }
        unsigned up = code == 254 ? 254 : code + 1;
        assert_int_equal(float_to_e8m0(value * 1.25f, true, ROUND_UP), up);
        assert_int_equal(float_to_e8m0(value * 1.25f, true, ROUND_DOWN), code);
        assert_int_equal(float_to_e8m0(value * 1.25f, true, ROUND_NEAREST), code);
        assert_int_equal(float_to_e8m0(value * 1.5f, true, ROUND_NEAREST), up); /* ties go up */
        assert_int_equal(float_to_e8m0(value * 1.5f, true, ROUND_DOWN), code);
        assert_int_equal(float_to_e8m0(nextafterf(value * 1.5f, 0), true, ROUND_NEAREST), code);
    }
    assert_true(isnan(small_float_to_float(TSSA_FLOAT8E8M0, 0xff)));
    for (int mode = ROUND_UP; mode <= ROUND_NEAREST; mode++) {
        assert_int_equal(float_to_e8m0(0, true, (enum round_mode)mode), 0);
        assert_int_equal(float_to_e8m0(INFINITY, true, (enum round_mode)mode), 0xff);
        assert_int_equal(float_to_e8m0(NAN, false, (enum round_mode)mode), 0xff);
    }
    assert_int_equal(float_to_e8m0(0x1p-127f, true, ROUND_NEAREST), 0);
    assert_int_equal(float_to_e8m0(0x1.8p-127f, true, ROUND_NEAREST), 1);
    assert_int_equal(float_to_e8m0(0x1.8p127f, false, ROUND_UP), 0xff); /* not clamped: NaN */
    assert_int_equal(float_to_e8m0(0x1.8p127f, false, ROUND_DOWN), 0xfe);
}

/* ---- Loads and stores ------------------------------------------------------------------------ */

struct range {
    tssa_dtype dtype;
    int bits;
    bool is_signed;
};

static const struct range integers[] = {
    {TSSA_INT8, 8, true},     {TSSA_INT16, 16, true},   {TSSA_INT32, 32, true},
    {TSSA_INT4, 4, true},     {TSSA_INT2, 2, true},     {TSSA_UINT8, 8, false},
    {TSSA_UINT16, 16, false}, {TSSA_UINT32, 32, false}, {TSSA_UINT4, 4, false},
    {TSSA_UINT2, 2, false},
};

/* The value of the low bits of v. */
static int64_t wrapped(const struct range *r, int64_t v)
{
    int64_t modulus = INT64_C(1) << r->bits, low = ((v % modulus) + modulus) % modulus;
    return r->is_signed && low >= modulus / 2 ? low - modulus : low;
}

static void integers_wrap(void **state)
{
    (void)state;
    static const int64_t values[] = {
        0,         1,         -1,        5,         -9,         127,         128,
        -129,      255,       256,       32767,     32768,      65535,       -65537,
        INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN, 4294967295, -4294967297, 123456789};
    for (size_t k = 0; k < COUNT(integers); k++) {
        const struct range *r = &integers[k];
        unsigned char guarded[16];
        for (size_t i = 0; i < COUNT(values); i++) {
            memset(guarded, 0x77, sizeof guarded);
            void *element = guarded + 3; /* unaligned */
            dtype_store_int64(r->dtype, element, values[i]);
            assert_int_equal(dtype_load_int64(r->dtype, element), wrapped(r, values[i]));
            assert_true(dtype_load_double(r->dtype, element) == (double)wrapped(r, values[i]));
            assert_int_equal(guarded[2], 0x77);
            assert_int_equal(guarded[3 + tssa_dtype_size(r->dtype)], 0x77);
            if (values[i] >= INT32_MIN && values[i] <= INT32_MAX) {
                double v = (double)values[i];
                dtype_store_double(r->dtype, element, v + (v < 0 ? -0.75 : 0.75) * (i % 2));
                assert_int_equal(dtype_load_int64(r->dtype, element), wrapped(r, values[i]));
            }
        }
    }
}

static int64_t stored(tssa_dtype dtype, double value)
{
    unsigned char element[8];
    dtype_store_double(dtype, element, value);
    return dtype_load_int64(dtype, element);
}

/* What numpy does on x86. */
static void doubles_out_of_range(void **state)
{
    (void)state;
    const double out[] = {NAN, INFINITY, -INFINITY, 1e30, -1e30};
    for (size_t i = 0; i < COUNT(out); i++) {
        assert_int_equal(double_to_int64(out[i]), INT64_MIN);
        assert_int_equal(stored(TSSA_INT64, out[i]), INT64_MIN);
        assert_int_equal(stored(TSSA_INT32, out[i]), INT32_MIN);
        assert_int_equal(stored(TSSA_INT8, out[i]), 0);
        assert_int_equal(stored(TSSA_UINT4, out[i]), 0);
        assert_int_equal(stored(TSSA_UINT32, out[i]), 0);
        assert_int_equal(stored(TSSA_BOOL, out[i]), 1);
    }
    assert_int_equal(stored(TSSA_INT32, 3e9), INT32_MIN);
    assert_int_equal(stored(TSSA_INT32, 2147483647.9), INT32_MAX);
    assert_int_equal(stored(TSSA_INT32, -2147483648.9), INT32_MIN);
    assert_int_equal(stored(TSSA_INT32, -2147483647.9), -2147483647);
    assert_int_equal(stored(TSSA_UINT32, 3e9), 3000000000);
    assert_int_equal(stored(TSSA_UINT64, 0x1p63), INT64_MIN); /* read back wrapped */
    assert_int_equal(stored(TSSA_UINT64, 0x1.8p63), INT64_MIN + (INT64_C(1) << 62));
    assert_int_equal(stored(TSSA_UINT64, -1), -1);
    assert_int_equal(stored(TSSA_INT64, -0x1p63), INT64_MIN);
    assert_int_equal(stored(TSSA_INT64, 0x1.fffffffffffffp62), INT64_MAX - 1023);
}

static void wide_types(void **state)
{
    (void)state;
    const uint64_t big = UINT64_MAX;
    assert_true(dtype_load_double(TSSA_UINT64, &big) == 0x1p64);
    assert_int_equal(dtype_load_int64(TSSA_UINT64, &big), -1);
    const int64_t small = INT64_MIN;
    assert_true(dtype_load_double(TSSA_INT64, &small) == -0x1p63);
    float f;
    dtype_store_double(TSSA_FLOAT, &f, 1.0 / 3);
    assert_true(f == 1.0f / 3);
    dtype_store_int64(TSSA_FLOAT, &f, 16777217);
    assert_true(f == 16777216.0f);
    assert_int_equal(dtype_load_int64(TSSA_FLOAT, &(float){-2.9f}), -2);
    assert_int_equal(dtype_load_int64(TSSA_DOUBLE, &(double){NAN}), INT64_MIN);
    uint8_t b = 7;
    assert_int_equal(dtype_load_int64(TSSA_BOOL, &b), 1);
    dtype_store_double(TSSA_BOOL, &b, 0.1);
    assert_int_equal(b, 1);
    dtype_store_double(TSSA_BOOL, &b, -0.0);
    assert_int_equal(b, 0);
    dtype_store_int64(TSSA_BOOL, &b, INT64_C(1) << 40);
    assert_int_equal(b, 1);
    double pair[2] = {1, 2};
    dtype_store_double(TSSA_COMPLEX128, pair, 5);
    assert_true(pair[0] == 1 && dtype_load_double(TSSA_COMPLEX128, pair) == 0);
}

static void integers_round_once_into_small_floats(void **state)
{
    (void)state;
    uint16_t code;
    /* Just above the middle of two bfloat16 values, by less than a double can tell. */
    int64_t middle = (INT64_C(1) << 62) + (INT64_C(1) << 54);
    dtype_store_int64(TSSA_BFLOAT16, &code, middle);
    assert_true(bfloat16_to_float(code) == 0x1p62f);
    dtype_store_int64(TSSA_BFLOAT16, &code, middle + 1);
    assert_true(bfloat16_to_float(code) == 0x1.02p62f);
    dtype_store_int64(TSSA_BFLOAT16, &code, -middle - 1);
    assert_true(bfloat16_to_float(code) == -0x1.02p62f);
    dtype_store_int64(TSSA_BFLOAT16, &code, INT64_MIN);
    assert_true(bfloat16_to_float(code) == -0x1p63f);
    dtype_store_int64(TSSA_FLOAT16, &code, 2049);
    assert_true(half_to_float(code) == 2048);
    dtype_store_int64(TSSA_FLOAT16, &code, -70000);
    assert_true(half_to_float(code) == -INFINITY);
    uint8_t byte;
    dtype_store_int64(TSSA_FLOAT8E4M3FN, &byte, 1000);
    assert_int_equal(byte, 0x7e); /* saturates */
    dtype_store_double(TSSA_FLOAT4E2M1, &byte, -1.4);
    assert_true(dtype_load_double(TSSA_FLOAT4E2M1, &byte) == -1.5);
    dtype_store_int64(TSSA_FLOAT8E8M0, &byte, 5);
    assert_true(dtype_load_double(TSSA_FLOAT8E8M0, &byte) == 8); /* rounds up */
}

/* ---- Packing --------------------------------------------------------------------------------- */

static void packs_low_bits_first(void **state)
{
    (void)state;
    const uint8_t packed[] = {0x21, 0xf8};
    uint8_t elements[5], back[2];
    memset(elements, 0x55, sizeof elements);
    dtype_unpack(TSSA_INT4, packed, 3, elements);
    const uint8_t signed_nibbles[] = {1, 2, 0xf8, 0x55};
    assert_memory_equal(elements, signed_nibbles, 4);
    dtype_unpack(TSSA_UINT4, packed, 4, elements);
    const uint8_t nibbles[] = {1, 2, 8, 15, 0x55};
    assert_memory_equal(elements, nibbles, 5);
    dtype_pack(TSSA_UINT4, elements, 3, back);
    assert_int_equal(back[0], 0x21);
    assert_int_equal(back[1], 0x08); /* padded with zero */

    const uint8_t pairs = 0xe4; /* 0, 1, 2, 3 from the low end */
    dtype_unpack(TSSA_INT2, &pairs, 4, elements);
    const uint8_t signed_pairs[] = {0, 1, 0xfe, 0xff, 0x55};
    assert_memory_equal(elements, signed_pairs, 5);
}

static void packing_round_trips(void **state)
{
    (void)state;
    static const tssa_dtype types[] = {TSSA_INT4, TSSA_UINT4, TSSA_FLOAT4E2M1, TSSA_INT2,
                                       TSSA_UINT2};
    for (size_t t = 0; t < COUNT(types); t++) {
        int bits = dtype_info(types[t])->file_bits;
        for (size_t count = 0; count < 20; count++) {
            size_t bytes;
            assert_true(dtype_file_bytes(types[t], count, &bytes));
            assert_int_equal(bytes, (count * (size_t)bits + 7) / 8);
            uint8_t packed[16], elements[32], again[16];
            for (size_t i = 0; i < sizeof packed; i++)
                packed[i] = (uint8_t)(37 * i + 101 * count);
            dtype_unpack(types[t], packed, count, elements);
            memset(again, 0xee, sizeof again);
            dtype_pack(types[t], elements, count, again);
            assert_int_equal(again[bytes], 0xee); /* nothing beyond */
            size_t whole = count * (size_t)bits / 8;
            for (size_t i = 0; i < whole; i++)
                assert_int_equal(again[i], packed[i]);
            for (size_t i = 0; i < count; i++) {
                int64_t v = dtype_load_int64(types[t], &elements[i]);
                if (types[t] != TSSA_FLOAT4E2M1)
                    assert_int_equal(v & ((1 << bits) - 1), elements[i] & ((1 << bits) - 1));
            }
        }
    }
    /* Whole bytes are copied. */
    const int32_t words[] = {1, -2, 3};
    int32_t copy[3];
    dtype_unpack(TSSA_INT32, (const uint8_t *)words, 3, (uint8_t *)copy);
    assert_memory_equal(copy, words, sizeof words);
    dtype_pack(TSSA_INT32, NULL, 0, NULL);
}

static void file_sizes_are_checked(void **state)
{
    (void)state;
    size_t bytes = 77;
    assert_false(dtype_file_bytes(TSSA_STRING, 1, &bytes));
    assert_false(dtype_file_bytes(TSSA_UNDEFINED, 1, &bytes));
    assert_false(dtype_file_bytes(TSSA_FLOAT, SIZE_MAX / 2, &bytes));
    assert_int_equal(bytes, 77);
    assert_true(dtype_file_bytes(TSSA_INT2, SIZE_MAX, &bytes));
    assert_int_equal(bytes, SIZE_MAX / 4 + 1);
    assert_true(dtype_file_bytes(TSSA_COMPLEX128, 3, &bytes));
    assert_int_equal(bytes, 48);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(table_is_complete),
        cmocka_unit_test(numbers_outside_the_enum),
        cmocka_unit_test(every_code_decodes),
        cmocka_unit_test(every_code_survives_a_round_trip),
        cmocka_unit_test(rounds_to_nearest_even),
        cmocka_unit_test(out_of_range),
        cmocka_unit_test(known_codes),
        cmocka_unit_test(nan_stays_nan),
        cmocka_unit_test(float_short_cuts),
        cmocka_unit_test(doubles_round_once),
        cmocka_unit_test(e8m0),
        cmocka_unit_test(integers_wrap),
        cmocka_unit_test(doubles_out_of_range),
        cmocka_unit_test(wide_types),
        cmocka_unit_test(integers_round_once_into_small_floats),
        cmocka_unit_test(packs_low_bits_first),
        cmocka_unit_test(packing_round_trips),
        cmocka_unit_test(file_sizes_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
