/* SPDX-License-Identifier: Apache-2.0 */
/* Cast between all types, CastLike, BitCast, Identity; against single-element conversions and
 * tables. */
/* ctest-isa: v3 base */
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/op_run.h"
#include "kernels/cpu/lib/convert.h"

static bool real(tssa_dtype dtype)
{
    return dtype_in(T_REAL, dtype);
}

/* What an integer of the type's width keeps of a value. */
static int64_t wrap(tssa_dtype dtype, int64_t value)
{
    const struct dtype_info *info = dtype_info(dtype);
    if (info->cls == DTYPE_CLASS_BOOL)
        return value != 0;
    if (info->file_bits == 64)
        return value;
    uint64_t low = (uint64_t)value & ((UINT64_C(1) << info->file_bits) - 1);
    uint64_t sign = info->cls == DTYPE_CLASS_SIGNED ? UINT64_C(1) << (info->file_bits - 1) : 0;
    return (int64_t)((low ^ sign) - sign);
}

/* As x86-64 converts. */
static int64_t truncate_double(tssa_dtype to, double value)
{
    if (dtype_info(to)->cls == DTYPE_CLASS_BOOL)
        return value != 0; /* NaN too */
    bool wide = to == TSSA_INT64 || to == TSSA_UINT32 || to == TSSA_UINT64;
    double limit = wide ? 0x1p63 : 0x1p31;
    if (to == TSSA_UINT64 && value >= 0x1p63 && value < 0x1p64)
        return (int64_t)(uint64_t)value;
    if (!(value >= -limit - (wide ? 0 : 0.999) && value < limit)) {
        if (to == TSSA_UINT64 && value > 0)
            return 0;
        return wrap(to, wide ? INT64_MIN : INT32_MIN);
    }
    return wrap(to, (int64_t)value);
}

static void store_sample(tssa_dtype dtype, void *element, struct random *random)
{
    static const double interesting[] = {
        0,     -0.0,  1,      -1,     0.5,  1.5,   2.5,   -2.7,  7.9,   100,   127.5, 255,
        256.6, 300,   448,    464,    1e3,  32768, 65504, 65520, 1e5,   -3e9,  4e9,   2147483647,
        1e10,  -1e19, 9.3e18, 1.8e19, 1e20, 1e30,  1e-3,  1e-7,  1e-40, 3.4e38};
    int64_t kind = random_int(random, 0, 2);
    uint64_t bits = random_bits(random);
    if (kind == 0 && dtype_info(dtype)->file_bits >= 8)
        memcpy(element, &bits, dtype_info(dtype)->size); /* NaN and infinities among them */
    else if (kind == 1)
        dtype_store_double(dtype, element, interesting[random_int(random, 0, 33)]);
    else
        dtype_store_int64(dtype, element, (int64_t)(bits >> random_int(random, 0, 63)));
    if (dtype == TSSA_BOOL)
        *(uint8_t *)element &= 1;
}

/* One element, by way of its value. */
static void check_element(tssa_dtype from, const void *x, tssa_dtype to, const void *y)
{
    uint64_t wanted = 0;
    size_t size = dtype_info(to)->size;
    double value = dtype_load_double(from, x);
    if (dtype_is_float(from) && dtype_is_float(to)) {
        if (isnan(value)) {
            /* FLOAT4E2M1 has no NaN. */
            assert_true(to == TSSA_FLOAT4E2M1 || isnan(dtype_load_double(to, y)));
            return;
        }
        dtype_store_double(to, &wanted, value);
    } else if (dtype_is_float(from)) {
        dtype_store_int64(to, &wanted, truncate_double(to, value));
    } else if (dtype_is_float(to) && from == TSSA_UINT64 && *(const int64_t *)x < 0) {
        /* A 64-bit number above the signed ones: long double holds it. */
        double rounded = (double)*(const uint64_t *)x;
        if (to == TSSA_FLOAT)
            rounded = (float)*(const uint64_t *)x;
        dtype_store_double(to, &wanted, rounded);
        if (to != TSSA_FLOAT && to != TSSA_DOUBLE)
            return; /* ties near 2^64: see small_floats_from_large_integers */
    } else {
        dtype_store_int64(to, &wanted, dtype_load_int64(from, x));
    }
    if (memcmp(&wanted, y, size) != 0)
        fail_msg("%s %.17g to %s: %.17g, not %.17g", dtype_info(from)->ir_name, value,
                 dtype_info(to)->ir_name, dtype_load_double(to, y), dtype_load_double(to, &wanted));
}

static void every_pair(void **state)
{
    (void)state;
    struct random random = {5};
    for (int from = 1; from < TSSA_DTYPE_COUNT; from++)
        for (int to = 1; to < TSSA_DTYPE_COUNT; to++) {
            if (!real((tssa_dtype)from) || !real((tssa_dtype)to))
                continue;
            struct op_run run;
            const int64_t n = 700;
            op_open(&run, IR_OP_Cast, 1, 1);
            op_int(&run, "to", to);
            char *x = op_input(&run, 0, (tssa_dtype)from, 1, &n)->data;
            size_t x_size = dtype_info((tssa_dtype)from)->size,
                   y_size = dtype_info((tssa_dtype)to)->size;
            for (int64_t i = 0; i < n; i++)
                store_sample((tssa_dtype)from, x + (size_t)i * x_size, &random);
            op_go(&run);
            const char *y = op_output(&run, 0, (tssa_dtype)to, 1, &n)->data;
            if (from == to)
                assert_memory_equal(x, y, (size_t)n * x_size);
            else
                for (int64_t i = 0; i < n; i++)
                    check_element((tssa_dtype)from, x + (size_t)i * x_size, (tssa_dtype)to,
                                  y + (size_t)i * y_size);
            op_close(&run);
        }
}

/* Steps other than 1 on both sides. */
static void strided(void **state)
{
    (void)state;
    for (int from = 1; from < TSSA_DTYPE_COUNT; from++)
        for (int to = 1; to < TSSA_DTYPE_COUNT; to++) {
            if (!convert_supports((tssa_dtype)from) || !convert_supports((tssa_dtype)to))
                continue;
            uint64_t source[3 * 300], dense[300], target[2 * 300];
            size_t x_size = dtype_info((tssa_dtype)from)->size,
                   y_size = dtype_info((tssa_dtype)to)->size;
            char *x = (char *)source, *d = (char *)dense, *y = (char *)target;
            for (int i = 0; i < 300; i++) {
                dtype_store_int64((tssa_dtype)from, x + 3u * (size_t)i * x_size, i % 5);
                dtype_store_int64((tssa_dtype)from, d + (size_t)i * x_size, i % 5);
            }
            convert_elements(300, (tssa_dtype)from, x, 3, (tssa_dtype)to, y, 2, &convert_default);
            uint64_t packed[300];
            convert_elements(300, (tssa_dtype)from, d, 1, (tssa_dtype)to, packed, 1,
                             &convert_default);
            for (size_t i = 0; i < 300; i++)
                assert_memory_equal(y + 2 * i * y_size, (char *)packed + i * y_size, y_size);
        }
}

static void halves_in_bulk(void **state)
{
    (void)state;
    static uint16_t codes[65536], back[65536];
    static float values[65536];
    for (int i = 0; i < 65536; i++)
        codes[i] = (uint16_t)i;
    for (int kind = 0; kind < 2; kind++) {
        tssa_dtype dtype = kind ? TSSA_BFLOAT16 : TSSA_FLOAT16;
        convert_elements(65536, dtype, codes, 1, TSSA_FLOAT, values, 1, &convert_default);
        for (int i = 0; i < 65536; i++) {
            float wanted = kind ? bfloat16_to_float((uint16_t)i) : half_to_float((uint16_t)i);
            assert_memory_equal(&values[i], &wanted, 4);
        }
        /* The value itself, and next to the middle of two neighbours. */
        for (int shift = -1; shift <= 1; shift++) {
            for (int i = 0; i < 65536; i++) {
                uint32_t bits;
                memcpy(&bits, &values[i], 4);
                bits += (kind ? 0x8000u : 0x1000u) + (uint32_t)shift;
                memcpy(&values[i], &bits, 4);
            }
            convert_elements(65536, TSSA_FLOAT, values, 1, dtype, back, 1, &convert_default);
            for (int i = 0; i < 65536; i++)
                assert_int_equal(back[i],
                                 kind ? float_to_bfloat16(values[i]) : float_to_half(values[i]));
        }
    }
}

/* 2^60 + 2^52 + 1 lies just above the middle of two bfloat16 numbers; its double is that middle. */
static void small_floats_from_large_integers(void **state)
{
    (void)state;
    uint16_t y;
    int64_t x = (INT64_C(1) << 60) + (INT64_C(1) << 52) + 1;
    convert_elements(1, TSSA_INT64, &x, 1, TSSA_BFLOAT16, &y, 1, &convert_default);
    assert_int_equal(bfloat16_to_float(y), (INT64_C(1) << 60) + (INT64_C(1) << 53));
    x = -x;
    convert_elements(1, TSSA_INT64, &x, 1, TSSA_BFLOAT16, &y, 1, &convert_default);
    assert_int_equal(bfloat16_to_float(y), -(INT64_C(1) << 60) - (INT64_C(1) << 53));
    uint64_t u = UINT64_MAX;
    convert_elements(1, TSSA_UINT64, &u, 1, TSSA_BFLOAT16, &y, 1, &convert_default);
    assert_true(bfloat16_to_float(y) == 0x1p64f);
    double d = 1 + 0x1p-8 + 0x1p-40; /* rounds up once, but down by way of float */
    convert_elements(1, TSSA_DOUBLE, &d, 1, TSSA_BFLOAT16, &y, 1, &convert_default);
    assert_true(bfloat16_to_float(y) == 1 + 0x1p-7f);
}

/* ---- Attributes ------------------------------------------------------------------------------ */

static void cast_floats(tssa_dtype to, int64_t saturate, const char *mode, int64_t n,
                        const float *x, const uint8_t *wanted)
{
    struct op_run run;
    op_open(&run, IR_OP_Cast, 1, 1);
    op_int(&run, "to", to);
    op_int(&run, "saturate", saturate);
    if (mode)
        op_string(&run, "round_mode", mode);
    memcpy(op_input(&run, 0, TSSA_FLOAT, 1, &n)->data, x, (size_t)n * sizeof *x);
    op_go(&run);
    const uint8_t *y = op_output(&run, 0, to, 1, &n)->data;
    for (int64_t i = 0; i < n; i++)
        if (y[i] != wanted[i])
            fail_msg("%.9g to %s is %02x, not %02x", (double)x[i], dtype_info(to)->ir_name, y[i],
                     wanted[i]);
    op_close(&run);
}

/* The tables of the standard. */
static void saturation(void **state)
{
    (void)state;
    const float x[] = {0, -0.0f, NAN, INFINITY, -INFINITY, 1e6f, -1e6f, 1, 0.5f};
    cast_floats(TSSA_FLOAT8E4M3FN, 1, NULL, 9, x,
                (uint8_t[]){0, 0x80, 0x7f, 0x7e, 0xfe, 0x7e, 0xfe, 0x38, 0x30});
    cast_floats(TSSA_FLOAT8E4M3FN, 0, NULL, 9, x,
                (uint8_t[]){0, 0x80, 0x7f, 0x7f, 0xff, 0x7f, 0xff, 0x38, 0x30});
    cast_floats(TSSA_FLOAT8E5M2, 1, NULL, 9, x,
                (uint8_t[]){0, 0x80, 0x7e, 0x7b, 0xfb, 0x7b, 0xfb, 0x3c, 0x38});
    cast_floats(TSSA_FLOAT8E5M2, 0, NULL, 9, x,
                (uint8_t[]){0, 0x80, 0x7e, 0x7c, 0xfc, 0x7c, 0xfc, 0x3c, 0x38});
    cast_floats(TSSA_FLOAT8E4M3FNUZ, 1, NULL, 9, x,
                (uint8_t[]){0, 0, 0x80, 0x7f, 0xff, 0x7f, 0xff, 0x40, 0x38});
    cast_floats(TSSA_FLOAT8E4M3FNUZ, 0, NULL, 9, x,
                (uint8_t[]){0, 0, 0x80, 0x80, 0x80, 0x80, 0x80, 0x40, 0x38});
    cast_floats(TSSA_FLOAT8E5M2FNUZ, 0, NULL, 9, x,
                (uint8_t[]){0, 0, 0x80, 0x80, 0x80, 0x80, 0x80, 0x40, 0x3c});
    cast_floats(TSSA_FLOAT4E2M1, 1, NULL, 9, x, (uint8_t[]){0, 8, 8, 7, 15, 7, 15, 2, 1});
}

static void rounding_of_scales(void **state)
{
    (void)state;
    const float x[] = {1, 1.1f, 1.5f, 1.9f, 2};
    cast_floats(TSSA_FLOAT8E8M0, 1, "up", 5, x, (uint8_t[]){127, 128, 128, 128, 128});
    cast_floats(TSSA_FLOAT8E8M0, 1, "down", 5, x, (uint8_t[]){127, 127, 127, 127, 128});
    cast_floats(TSSA_FLOAT8E8M0, 1, "nearest", 5, x, (uint8_t[]){127, 127, 128, 128, 128});
    struct op_run run;
    op_open(&run, IR_OP_Cast, 1, 1);
    op_fails(&run, "\"to\" is missing");
    op_int(&run, "to", 99);
    op_fails(&run, "\"to\" is missing or no element type");
    op_int(&run, "to", TSSA_FLOAT8E8M0);
    op_string(&run, "round_mode", "sideways");
    op_fails(&run, "\"round_mode\" is \"sideways\"");
    op_close(&run);
}

static void narrow_integers_keep_low_bits(void **state)
{
    (void)state;
    const float x[] = {-9, -8, -1, 7, 8, 15, 16.9f};
    cast_floats(TSSA_INT4, 1, NULL, 7, x, (uint8_t[]){7, 0xf8, 0xff, 7, 0xf8, 0xff, 0});
    cast_floats(TSSA_UINT4, 1, NULL, 7, x, (uint8_t[]){7, 8, 15, 7, 8, 15, 0});
    cast_floats(TSSA_INT2, 1, NULL, 7, x, (uint8_t[]){0xff, 0, 0xff, 0xff, 0, 0xff, 0});
    cast_floats(TSSA_UINT2, 1, NULL, 7, x, (uint8_t[]){3, 0, 3, 3, 0, 3, 0});
}

/* ---- Strings --------------------------------------------------------------------------------- */

static void to_string(tssa_dtype from, double value, const char *wanted)
{
    struct op_run run;
    op_open(&run, IR_OP_Cast, 1, 1);
    op_int(&run, "to", TSSA_STRING);
    dtype_store_double(from, op_input(&run, 0, from, 0, NULL)->data, value);
    op_go(&run);
    const tssa_string *y = op_output(&run, 0, TSSA_STRING, 0, NULL)->data;
    if (y->size != strlen(wanted) || memcmp(y->data, wanted, y->size) != 0)
        fail_msg("%s %.17g is \"%.*s\", not \"%s\"", dtype_info(from)->ir_name, value, (int)y->size,
                 y->data, wanted);
    op_close(&run);
}

static void numbers_to_strings(void **state)
{
    (void)state;
    to_string(TSSA_FLOAT, 0.1, "0.1");
    to_string(TSSA_FLOAT, 1, "1.0");
    to_string(TSSA_FLOAT, -0.0, "-0.0");
    to_string(TSSA_FLOAT, 0.47892547, "0.47892547");
    to_string(TSSA_FLOAT, 123456789, "123456790.0");
    to_string(TSSA_FLOAT, 1e15, "1000000000000000.0");
    to_string(TSSA_FLOAT, 1e16, "1e+16");
    to_string(TSSA_FLOAT, 1e-4, "0.0001");
    to_string(TSSA_FLOAT, 1.25e-5, "1.25e-05");
    to_string(TSSA_FLOAT, 314.15926, "314.15927");
    to_string(TSSA_FLOAT, NAN, "nan");
    to_string(TSSA_FLOAT, -INFINITY, "-inf");
    to_string(TSSA_DOUBLE, 0.1, "0.1");
    to_string(TSSA_DOUBLE, 0.1 + 0.2, "0.30000000000000004");
    to_string(TSSA_DOUBLE, 5e-324, "5e-324");
    to_string(TSSA_DOUBLE, 1.7976931348623157e308, "1.7976931348623157e+308");
    to_string(TSSA_FLOAT16, 0.1, "0.1");
    to_string(TSSA_FLOAT16, 65504, "65500.0");
    to_string(TSSA_BFLOAT16, 3.140625, "3.14");
    to_string(TSSA_FLOAT8E4M3FN, 448, "450.0");
    to_string(TSSA_FLOAT8E8M0, 0.25, "0.2");
    to_string(TSSA_INT64, -42, "-42");
    to_string(TSSA_INT4, -8, "-8");
    to_string(TSSA_UINT8, 255, "255");
    to_string(TSSA_BOOL, 1, "True");
    to_string(TSSA_BOOL, 0, "False");
}

static void from_string(tssa_dtype to, const char *text, double wanted)
{
    struct op_run run;
    op_open(&run, IR_OP_Cast, 1, 1);
    op_int(&run, "to", to);
    *(tssa_string *)op_input(&run, 0, TSSA_STRING, 0, NULL)->data =
        (tssa_string){text, strlen(text)};
    op_go(&run);
    double got = dtype_load_double(to, op_output(&run, 0, to, 0, NULL)->data);
    if (got != wanted && !(isnan(got) && isnan(wanted)))
        fail_msg("\"%s\" is %.17g, not %.17g", text, got, wanted);
    op_close(&run);
}

static void strings_to_numbers(void **state)
{
    (void)state;
    from_string(TSSA_FLOAT, "3.14", 3.14f);
    from_string(TSSA_FLOAT, " 1e-5 ", 1e-5f);
    from_string(TSSA_FLOAT, "1E8", 1e8);
    from_string(TSSA_FLOAT, "+INF", INFINITY);
    from_string(TSSA_FLOAT, "-inf", -INFINITY);
    from_string(TSSA_FLOAT, "NaN", NAN);
    from_string(TSSA_DOUBLE, "0.1", 0.1);
    from_string(TSSA_FLOAT16, "65504", 65504);
    from_string(TSSA_FLOAT8E4M3FN, "1000", 448);
    from_string(TSSA_INT32, "1000", 1000);
    from_string(TSSA_INT32, "100.5", 100);
    from_string(TSSA_INT8, "-128", -128);
    from_string(TSSA_INT64, "9007199254740993", 9007199254740993.0);
    from_string(TSSA_UINT64, "18446744073709551615", 18446744073709551615.0);
    from_string(TSSA_BOOL, "True", 1);
    from_string(TSSA_BOOL, "0", 0);
    static const char *const bad[] = {"",     " ",   "Hello World!", "1.5x",
                                      "0x10", "1 2", "nan(1)",       "--1"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct op_run run;
        op_open(&run, IR_OP_Cast, 1, 1);
        op_int(&run, "to", TSSA_FLOAT);
        *(tssa_string *)op_input(&run, 0, TSSA_STRING, 0, NULL)->data =
            (tssa_string){bad[i], strlen(bad[i])};
        op_fails(&run, "is not a number");
        op_close(&run);
    }
}

/* Every float comes back, whatever the locale says of decimal points. */
static void strings_round_trip(void **state)
{
    (void)state;
    struct random random = {11};
    setlocale(LC_ALL, "de_DE.UTF-8"); /* where it is installed */
    static const tssa_dtype types[] = {TSSA_FLOAT,      TSSA_DOUBLE, TSSA_FLOAT16, TSSA_BFLOAT16,
                                       TSSA_FLOAT8E5M2, TSSA_INT64,  TSSA_UINT64};
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        struct op_run there, back;
        const int64_t n = 500;
        op_open(&there, IR_OP_Cast, 1, 1);
        op_int(&there, "to", TSSA_STRING);
        struct tensor *x = op_random(&there, 0, &random, types[t], 1, &n);
        op_go(&there);
        const struct tensor *text = op_output(&there, 0, TSSA_STRING, 1, &n);
        op_open(&back, IR_OP_Cast, 1, 1);
        op_int(&back, "to", types[t]);
        memcpy(op_input(&back, 0, TSSA_STRING, 1, &n)->data, text->data, tensor_bytes(text));
        op_go(&back);
        const char *y = op_output(&back, 0, types[t], 1, &n)->data;
        size_t size = dtype_info(types[t])->size;
        for (size_t i = 0; i < (size_t)n; i++) {
            const char *element = (const char *)x->data + i * size;
            if (isnan(dtype_load_double(types[t], element)))
                assert_true(isnan(dtype_load_double(types[t], y + i * size)));
            else if (!(types[t] == TSSA_FLOAT8E5M2 && isinf(dtype_load_double(types[t], element))))
                assert_memory_equal(y + i * size, element, size); /* Cast saturates infinities */
        }
        op_close(&back);
        op_close(&there);
    }
    setlocale(LC_ALL, "C");
}

static void strings_stay_strings(void **state)
{
    (void)state;
    struct op_run run;
    const int64_t n = 2;
    op_open(&run, IR_OP_Cast, 1, 1);
    op_int(&run, "to", TSSA_STRING);
    tssa_string *x = op_input(&run, 0, TSSA_STRING, 1, &n)->data;
    x[0] = (tssa_string){"abc", 3};
    x[1] = (tssa_string){NULL, 0};
    op_go(&run);
    assert_memory_equal(op_output(&run, 0, TSSA_STRING, 1, &n)->data, x, 2 * sizeof *x);
    op_close(&run);
}

/* ---- The others ------------------------------------------------------------------------------ */

static void cast_like(void **state)
{
    (void)state;
    struct op_run run;
    const int64_t n = 3, none = 0;
    op_open(&run, IR_OP_CastLike, 2, 1);
    memcpy(op_input(&run, 0, TSSA_FLOAT, 1, &n)->data, (float[]){1.5f, -2, 3}, 12);
    op_input(&run, 1, TSSA_INT8, 1, &none);
    op_go(&run);
    static const int64_t wanted[] = {1, -2, 3};
    op_expect_ints(&run, 0, 1, &n, wanted);
    op_input(&run, 1, TSSA_COMPLEX64, 1, &none);
    op_fails(&run, "no conversion from f32 to c64");
    op_close(&run);
}

static void bit_cast(void **state)
{
    (void)state;
    struct op_run run;
    const int64_t n = 4;
    op_open(&run, IR_OP_BitCast, 1, 1);
    op_int(&run, "to", TSSA_INT32);
    memcpy(op_input(&run, 0, TSSA_FLOAT, 1, &n)->data, (float[]){1, -0.0f, INFINITY, 0}, 16);
    op_go(&run);
    static const int64_t wanted[] = {0x3f800000, INT32_MIN, 0x7f800000, 0};
    op_expect_ints(&run, 0, 1, &n, wanted);
    op_int(&run, "to", TSSA_INT64);
    op_fails(&run, "f32 and i64 differ in width");
    /* Two types of 4 bits, kept in bytes of different look. */
    static const int64_t codes[] = {-8, -1, 0, 7}, unsigned_codes[] = {8, 15, 0, 7};
    op_input_ints(&run, 0, TSSA_INT4, 1, n, codes);
    op_int(&run, "to", TSSA_UINT4);
    op_go(&run);
    op_expect_ints(&run, 0, 1, &n, unsigned_codes);
    op_input_ints(&run, 0, TSSA_UINT4, 1, n, unsigned_codes);
    op_int(&run, "to", TSSA_INT4);
    op_go(&run);
    op_expect_ints(&run, 0, 1, &n, codes);
    op_close(&run);
}

static void identity_shares(void **state)
{
    (void)state;
    struct op_run run;
    const int64_t n = 3;
    op_open(&run, IR_OP_Identity, 1, 1);
    struct tensor *x = op_input(&run, 0, TSSA_INT32, 1, &n);
    op_go(&run);
    assert_ptr_equal(op_output(&run, 0, TSSA_INT32, 1, &n)->data, x->data);
    op_close(&run);
}

/* Many elements side by side give what each gives by itself: random bits, and, so that blocks of
 * them fit into fewer bits, small numbers with a few of these. */
static void side_by_side(void **state)
{
    enum { COUNT = 300 };
    struct random random = {77};
    (void)state;
    for (int from = 1; from < TSSA_DTYPE_COUNT; from++)
        for (int to = 1; to < TSSA_DTYPE_COUNT; to++) {
            if (!convert_supports((tssa_dtype)from) || !convert_supports((tssa_dtype)to))
                continue;
            const size_t size = dtype_info((tssa_dtype)from)->size,
                         result = dtype_info((tssa_dtype)to)->size;
            char x[COUNT * sizeof(uint64_t)], y[COUNT * sizeof(uint64_t)], one[sizeof(uint64_t)];
            for (size_t i = 0; i < COUNT; i++) {
                const int64_t small = random_int(&random, -3, 100);
                const uint64_t bits = random_bits(&random);
                convert_elements(1, TSSA_INT64, &small, 1, (tssa_dtype)from, x + i * size, 1,
                                 &convert_default);
                if (from != TSSA_BOOL && dtype_info((tssa_dtype)from)->file_bits >= 8 &&
                    (i < COUNT / 2 || random_chance(&random, 1)))
                    memcpy(x + i * size, &bits, size);
            }
            convert_elements(COUNT, (tssa_dtype)from, x, 1, (tssa_dtype)to, y, 1, &convert_default);
            for (size_t i = 0; i < COUNT; i++) {
                convert_elements(1, (tssa_dtype)from, x + i * size, 1, (tssa_dtype)to, one, 1,
                                 &convert_default);
                assert_memory_equal(y + i * result, one, result);
            }
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(side_by_side),
        cmocka_unit_test(every_pair),
        cmocka_unit_test(strided),
        cmocka_unit_test(halves_in_bulk),
        cmocka_unit_test(small_floats_from_large_integers),
        cmocka_unit_test(saturation),
        cmocka_unit_test(rounding_of_scales),
        cmocka_unit_test(narrow_integers_keep_low_bits),
        cmocka_unit_test(numbers_to_strings),
        cmocka_unit_test(strings_to_numbers),
        cmocka_unit_test(strings_round_trip),
        cmocka_unit_test(strings_stay_strings),
        cmocka_unit_test(cast_like),
        cmocka_unit_test(bit_cast),
        cmocka_unit_test(identity_shares),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
