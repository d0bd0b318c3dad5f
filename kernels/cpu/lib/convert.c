/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conversion between element types: a direct loop for each pair of types that C has, and two steps,
 * through chunks of float or double, where one side is a format that C lacks.
 */
#include "kernels/cpu/lib/convert.h"

#include "base/clones.h"
#include "ir/scalar/convert.h"
#include "kernels/cpu/lib/halves.h"

const struct convert_options convert_default = {.saturate = true, .round_mode = ROUND_UP};

/*
 * A double that rounds to every format of fewer bits as the integer itself would: bits that a
 * double cannot hold are folded into its lowest one.
 */
static inline double to_sticky_double(uint64_t magnitude, bool negative)
{
    if (magnitude >> 53) {
        const uint64_t low = (1u << 11) - 1;
        magnitude = (magnitude & low ? magnitude | (low + 1) : magnitude) & ~low;
    }
    return negative ? -(double)magnitude : (double)magnitude;
}

/* ---- Direct loops ---------------------------------------------------------------------------- */

/* i32_of_f64 of it: whole numbers below -2^31 are too small for the conversion, too. */
static inline int32_t i32_of_f32(float x)
{
    return x >= -0x1p31F && x < 0x1p31F ? (int32_t)x : INT32_MIN;
}

typedef void (*convert_loop)(int64_t n, const void *source, int64_t from_step, void *target,
                             int64_t to_step);

#define LOOP(from, from_type, to, to_type, value)                                                  \
    VECTOR_PROCEDURE(from##_to_##to##_dense, (int64_t n, const from_type *s, to_type *t),          \
                     (n, s, t))                                                                    \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const from_type v = s[i];                                                              \
            t[i] = (to_type)(value);                                                               \
        }                                                                                          \
    }                                                                                              \
    static void from##_to_##to(int64_t n, const void *source, int64_t from_step, void *target,     \
                               int64_t to_step)                                                    \
    {                                                                                              \
        const from_type *s = source;                                                               \
        to_type *t = target;                                                                       \
        if (from_step == 1 && to_step == 1) {                                                      \
            from##_to_##to##_dense(n, s, t);                                                       \
        } else {                                                                                   \
            for (int64_t i = 0; i < n; i++) {                                                      \
                const from_type v = s[i * from_step];                                              \
                t[i * to_step] = (to_type)(value);                                                 \
            }                                                                                      \
        }                                                                                          \
    }

/* One source type to all targets; `number` is the value of a source element v. */
#define FROM_INTEGER(from, type, number)                                                           \
    LOOP(from, type, f32, float, number)                                                           \
    LOOP(from, type, f64, double, number)                                                          \
    LOOP(from, type, i8, int8_t, number)                                                           \
    LOOP(from, type, i16, int16_t, number)                                                         \
    LOOP(from, type, i32, int32_t, number)                                                         \
    LOOP(from, type, i64, int64_t, number)                                                         \
    LOOP(from, type, u8, uint8_t, number)                                                          \
    LOOP(from, type, u16, uint16_t, number)                                                        \
    LOOP(from, type, u32, uint32_t, number)                                                        \
    LOOP(from, type, u64, uint64_t, number)                                                        \
    LOOP(from, type, b8, uint8_t, v != 0)

#define FROM_FLOAT(from, type)                                                                     \
    LOOP(from, type, f32, float, v)                                                                \
    LOOP(from, type, f64, double, v)                                                               \
    LOOP(from, type, i8, int8_t, i32_of_##from(v))                                                 \
    LOOP(from, type, i16, int16_t, i32_of_##from(v))                                               \
    LOOP(from, type, i32, int32_t, i32_of_##from(v))                                               \
    LOOP(from, type, i64, int64_t, i64_of_f64((double)v))                                          \
    LOOP(from, type, u8, uint8_t, i32_of_##from(v))                                                \
    LOOP(from, type, u16, uint16_t, i32_of_##from(v))                                              \
    LOOP(from, type, u32, uint32_t, i64_of_f64((double)v))                                         \
    LOOP(from, type, u64, uint64_t, u64_of_f64((double)v))                                         \
    LOOP(from, type, b8, uint8_t, v != 0)

FROM_FLOAT(f32, float)
FROM_FLOAT(f64, double)
FROM_INTEGER(i8, int8_t, v)
FROM_INTEGER(i16, int16_t, v)
FROM_INTEGER(i32, int32_t, v)
FROM_INTEGER(i64, int64_t, v)
FROM_INTEGER(u8, uint8_t, v)
FROM_INTEGER(u16, uint16_t, v)
FROM_INTEGER(u32, uint32_t, v)
FROM_INTEGER(u64, uint64_t, v)
FROM_INTEGER(b8, uint8_t, v != 0)

/* 64-bit integers on their way to a small float. */
LOOP(i64, int64_t, sticky, double, to_sticky_double(v < 0 ? -(uint64_t)v : (uint64_t)v, v < 0))
LOOP(u64, uint64_t, sticky, double, to_sticky_double(v, false))

/* Formats that C lacks, to float (exact) and from float or double. */
LOOP(f16, uint16_t, f32_apart, float, f32_of_f16(v))
LOOP(bf16, uint16_t, f32, float, f32_of_bf16(v))
LOOP(f32, float, f16_apart, uint16_t, f16_of_f32(v))
LOOP(f32, float, bf16, uint16_t, bf16_of_f32(v))
LOOP(f64, double, f16, uint16_t, double_to_half(v))
LOOP(f64, double, bf16, uint16_t, double_to_bfloat16(v))

/* One way where elements lie side by side, another where they lie apart. */
#define BY_STEPS(name, dense, apart)                                                               \
    static void name(int64_t n, const void *source, int64_t from_step, void *target,               \
                     int64_t to_step)                                                              \
    {                                                                                              \
        if (from_step == 1 && to_step == 1)                                                        \
            dense(n, source, target);                                                              \
        else                                                                                       \
            apart(n, source, from_step, target, to_step);                                          \
    }
BY_STEPS(f16_to_f32, halves_widen, f16_to_f32_apart)
BY_STEPS(f32_to_f16, halves_narrow, f32_to_f16_apart)

/*
 * Between INT64 and FLOAT, where AVX2 has instructions for 32 bits alone: a block whose elements
 * all fit into these goes by way of them, with the same results.
 */
#define BLOCK 64
#define BY_HALVES(name, from_type, to_type, mask, beyond, most, half, whole)                       \
    VECTOR_PROCEDURE(name, (int64_t n, const from_type *s, to_type *t), (n, s, t))                 \
    {                                                                                              \
        int64_t i = 0;                                                                             \
        for (; i + BLOCK <= n; i += BLOCK) {                                                       \
            mask any = 0;                                                                          \
            int32_t halves[BLOCK];                                                                 \
            for (int64_t k = 0; k < BLOCK; k++) {                                                  \
                const from_type v = s[i + k];                                                      \
                any |= beyond;                                                                     \
                halves[k] = half;                                                                  \
            }                                                                                      \
            for (int64_t k = 0; any <= (most) && k < BLOCK; k++)                                   \
                t[i + k] = (to_type)halves[k];                                                     \
            for (int64_t k = 0; any > (most) && k < BLOCK; k++) {                                  \
                const from_type v = s[i + k];                                                      \
                t[i + k] = (to_type)(whole);                                                       \
            }                                                                                      \
        }                                                                                          \
        for (; i < n; i++) {                                                                       \
            const from_type v = s[i];                                                              \
            t[i] = (to_type)(whole);                                                               \
        }                                                                                          \
    }
BY_HALVES(f32_to_i64_halves, float, int64_t, uint32_t, !(v >= -0x1p31F && v < 0x1p31F), 0,
          i32_of_f32(v), i64_of_f64((double)v))
BY_HALVES(i64_to_f32_halves, int64_t, float, uint64_t, (uint64_t)v + ((uint64_t)1 << 31),
          UINT32_MAX, (int32_t)v, v)
BY_STEPS(f32_to_i64_by_halves, f32_to_i64_halves, f32_to_i64)
BY_STEPS(i64_to_f32_by_halves, i64_to_f32_halves, i64_to_f32)

/*
 * Integers of 4 and 2 bits are kept one per byte: as sources they are bytes, as targets low bits.
 */
#define SIGNED_BITS(v, bits)                                                                       \
    ((((int)(v) & ((1 << (bits)) - 1)) ^ 1 << ((bits)-1)) - (1 << ((bits)-1)))
LOOP(i8, int8_t, i4, int8_t, SIGNED_BITS(v, 4))
LOOP(i8, int8_t, i2, int8_t, SIGNED_BITS(v, 2))
LOOP(u8, uint8_t, u4, uint8_t, v & 15)
LOOP(u8, uint8_t, u2, uint8_t, v & 3)

#define TO_ALL(from)                                                                               \
    {                                                                                              \
        [TSSA_FLOAT] = from##_to_f32, [TSSA_DOUBLE] = from##_to_f64, [TSSA_INT8] = from##_to_i8,   \
        [TSSA_INT16] = from##_to_i16, [TSSA_INT32] = from##_to_i32, [TSSA_INT64] = from##_to_i64,  \
        [TSSA_UINT8] = from##_to_u8, [TSSA_UINT16] = from##_to_u16, [TSSA_UINT32] = from##_to_u32, \
        [TSSA_UINT64] = from##_to_u64, [TSSA_BOOL] = from##_to_b8                                  \
    }

/* NULL where one side is a format that C lacks. */
static const convert_loop direct[TSSA_DTYPE_COUNT][TSSA_DTYPE_COUNT] = {
    [TSSA_FLOAT] = TO_ALL(f32),  [TSSA_DOUBLE] = TO_ALL(f64), [TSSA_INT8] = TO_ALL(i8),
    [TSSA_INT16] = TO_ALL(i16),  [TSSA_INT32] = TO_ALL(i32),  [TSSA_INT64] = TO_ALL(i64),
    [TSSA_UINT8] = TO_ALL(u8),   [TSSA_UINT16] = TO_ALL(u16), [TSSA_UINT32] = TO_ALL(u32),
    [TSSA_UINT64] = TO_ALL(u64), [TSSA_BOOL] = TO_ALL(b8),    [TSSA_INT4] = TO_ALL(i8),
    [TSSA_INT2] = TO_ALL(i8),    [TSSA_UINT4] = TO_ALL(u8),   [TSSA_UINT2] = TO_ALL(u8),
};

/* Overrides and additions. */
static convert_loop direct_loop(tssa_dtype from, tssa_dtype to)
{
    if (from == TSSA_FLOAT16 || from == TSSA_BFLOAT16)
        return to != TSSA_FLOAT ? NULL : from == TSSA_FLOAT16 ? f16_to_f32 : bf16_to_f32;
    if (to == TSSA_FLOAT16 || to == TSSA_BFLOAT16) {
        if (from == TSSA_FLOAT)
            return to == TSSA_FLOAT16 ? f32_to_f16 : f32_to_bf16;
        return from != TSSA_DOUBLE ? NULL : to == TSSA_FLOAT16 ? f64_to_f16 : f64_to_bf16;
    }
    if (from == TSSA_FLOAT && to == TSSA_INT64)
        return f32_to_i64_by_halves;
    if (from == TSSA_INT64 && to == TSSA_FLOAT)
        return i64_to_f32_by_halves;
    if (from == TSSA_INT8 && (to == TSSA_INT4 || to == TSSA_INT2))
        return to == TSSA_INT4 ? i8_to_i4 : i8_to_i2;
    if (from == TSSA_UINT8 && (to == TSSA_UINT4 || to == TSSA_UINT2))
        return to == TSSA_UINT4 ? u8_to_u4 : u8_to_u2;
    return direct[from][to];
}

/* ---- Small floats: FLOAT8*, FLOAT4E2M1, FLOAT8E8M0 ------------------------------------------- */

static bool is_small_float(tssa_dtype dtype)
{
    return dtype_is_float(dtype) && dtype_info(dtype)->size == 1;
}

static void small_to_float(int64_t n, tssa_dtype from, const uint8_t *source, int64_t step,
                           float *target)
{
    for (int64_t i = 0; i < n; i++)
        target[i] = small_float_to_float(from, source[i * step]);
}

static void double_to_small(int64_t n, const double *source, tssa_dtype to, uint8_t *target,
                            int64_t step, const struct convert_options *options)
{
    if (to == TSSA_FLOAT8E8M0) {
        for (int64_t i = 0; i < n; i++)
            target[i * step] =
                float_to_e8m0((float)source[i], options->saturate, options->round_mode);
    } else {
        for (int64_t i = 0; i < n; i++)
            target[i * step] = double_to_small_float(to, source[i], options->saturate);
    }
}

/* ---- Two steps ------------------------------------------------------------------------------- */

#define CHUNK 256

static void to_double(int64_t n, tssa_dtype from, const void *source, int64_t step, double *target)
{
    if (from == TSSA_INT64)
        i64_to_sticky(n, source, step, target, 1);
    else if (from == TSSA_UINT64)
        u64_to_sticky(n, source, step, target, 1);
    else
        direct[from][TSSA_DOUBLE](n, source, step, target, 1);
}

/* From a type that C has to one it lacks. */
static void encode(int64_t n, tssa_dtype from, const void *source, int64_t from_step, tssa_dtype to,
                   void *target, int64_t to_step, const struct convert_options *options)
{
    double chunk[CHUNK];
    bool narrow = dtype_is_integer(to); /* 4 and 2 bits */
    tssa_dtype byte = dtype_info(to)->cls == DTYPE_CLASS_SIGNED ? TSSA_INT8 : TSSA_UINT8;
    if (narrow) {
        direct[from][byte](n, source, from_step, chunk, 1);
        direct_loop(byte, to)(n, chunk, 1, target, to_step);
        return;
    }
    to_double(n, from, source, from_step, chunk);
    if (is_small_float(to))
        double_to_small(n, chunk, to, target, to_step, options);
    else
        direct_loop(TSSA_DOUBLE, to)(n, chunk, 1, target, to_step);
}

void convert_elements(int64_t n, tssa_dtype from, const void *source, int64_t from_step,
                      tssa_dtype to, void *target, int64_t to_step,
                      const struct convert_options *options)
{
    convert_loop loop = direct_loop(from, to);
    if (loop) {
        loop(n, source, from_step, target, to_step);
        return;
    }
    /* What is wider than needed: a bit pattern in a type that C lacks is read as a float. */
    bool decode = is_small_float(from) || from == TSSA_FLOAT16 || from == TSSA_BFLOAT16;
    size_t from_size = dtype_info(from)->size, to_size = dtype_info(to)->size;
    for (int64_t begin = 0; begin < n; begin += CHUNK) {
        int64_t count = n - begin < CHUNK ? n - begin : CHUNK;
        const char *s = (const char *)source + begin * from_step * (int64_t)from_size;
        char *t = (char *)target + begin * to_step * (int64_t)to_size;
        float floats[CHUNK];
        if (!decode) {
            encode(count, from, s, from_step, to, t, to_step, options);
            continue;
        }
        if (is_small_float(from))
            small_to_float(count, from, (const uint8_t *)s, from_step, floats);
        else
            direct_loop(from, TSSA_FLOAT)(count, s, from_step, floats, 1);
        loop = direct_loop(TSSA_FLOAT, to);
        if (loop)
            loop(count, floats, 1, t, to_step);
        else
            encode(count, TSSA_FLOAT, floats, 1, to, t, to_step, options);
    }
}

bool convert_supports(tssa_dtype dtype)
{
    enum dtype_class cls = dtype_info(dtype)->cls;
    return cls != DTYPE_CLASS_NONE && cls != DTYPE_CLASS_COMPLEX && cls != DTYPE_CLASS_STRING;
}
