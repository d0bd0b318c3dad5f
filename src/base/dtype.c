/* SPDX-License-Identifier: Apache-2.0 */
/* The table of element types, access to single elements by type, and packing. */
#include "base/dtype.h"

#include <string.h>

#include "base/alloc.h"

static const struct dtype_info infos[TSSA_DTYPE_COUNT] = {
#define DTYPE(name, number, ir_name, numpy, cls, size, file_bits)                                  \
    [TSSA_##name] = {#name, ir_name, numpy, DTYPE_CLASS_##cls, size, file_bits},
#include "base/dtype.def"
#undef DTYPE
};

#define DTYPE(name, number, ir_name, numpy, cls, size, file_bits)                                  \
    _Static_assert(TSSA_##name == (number), "dtype.def and tssa.h number " #name " differently");
#include "base/dtype.def"
#undef DTYPE

const struct dtype_info *dtype_info(tssa_dtype dtype)
{
    return &infos[(unsigned)dtype < TSSA_DTYPE_COUNT ? dtype : TSSA_UNDEFINED];
}

tssa_dtype dtype_from_name(const char *name)
{
    for (int i = 0; i < TSSA_DTYPE_COUNT; i++)
        if (strcmp(name, infos[i].name) == 0 || strcmp(name, infos[i].ir_name) == 0)
            return (tssa_dtype)i;
    return TSSA_UNDEFINED;
}

const char *tssa_dtype_name(tssa_dtype dtype)
{
    return dtype_info(dtype)->name;
}

size_t tssa_dtype_size(tssa_dtype dtype)
{
    return dtype_info(dtype)->size;
}

/* ---- Conversions that C leaves undefined ----------------------------------------------------- */

#define TWO_TO_31 2147483648.0
#define TWO_TO_63 9223372036854775808.0

int64_t double_to_int64(double value)
{
    return value >= -TWO_TO_63 && value < TWO_TO_63 ? (int64_t)value : INT64_MIN;
}

static int32_t double_to_int32(double value)
{
    return value >= -TWO_TO_31 && value < TWO_TO_31 ? (int32_t)value : INT32_MIN;
}

static uint64_t double_to_uint64(double value)
{
    if (value >= TWO_TO_63)
        return (uint64_t)double_to_int64(value - TWO_TO_63) ^ UINT64_C(1) << 63;
    return (uint64_t)double_to_int64(value);
}

/*
 * A double that rounds to any format of at most 24 mantissa bits as `value` itself would: bits that
 * a double cannot hold are folded into its lowest one, so that they break ties but nothing else.
 */
static double int64_to_sticky_double(int64_t value)
{
    uint64_t magnitude = value < 0 ? -(uint64_t)value : (uint64_t)value;
    if (magnitude >> 53) {
        const uint64_t low = (1u << 11) - 1;
        magnitude = (magnitude & low ? magnitude | (low + 1) : magnitude) & ~low;
    }
    return value < 0 ? -(double)magnitude : (double)magnitude;
}

/* ---- One element, by type -------------------------------------------------------------------- */

struct element_ops {
    double (*load_double)(const void *element);
    int64_t (*load_int64)(const void *element);
    void (*store_double)(void *element, double value);
    void (*store_int64)(void *element, int64_t value);
};

/* Elements may be unaligned (a mapped file), so they are copied, not dereferenced. */
#define DEFINE_OPS(name, type, to_double, to_int64, from_double, from_int64)                       \
    static double name##_load_double(const void *element)                                          \
    {                                                                                              \
        type v;                                                                                    \
        memcpy(&v, element, sizeof v);                                                             \
        return to_double;                                                                          \
    }                                                                                              \
    static int64_t name##_load_int64(const void *element)                                          \
    {                                                                                              \
        type v;                                                                                    \
        memcpy(&v, element, sizeof v);                                                             \
        return to_int64;                                                                           \
    }                                                                                              \
    static void name##_store_double(void *element, double v)                                       \
    {                                                                                              \
        type stored = (type)(from_double);                                                         \
        memcpy(element, &stored, sizeof stored);                                                   \
    }                                                                                              \
    static void name##_store_int64(void *element, int64_t v)                                       \
    {                                                                                              \
        type stored = (type)(from_int64);                                                          \
        memcpy(element, &stored, sizeof stored);                                                   \
    }

#define INTEGER_OPS(name, type, from_double)                                                       \
    DEFINE_OPS(name, type, (double)v, (int64_t)v, from_double, v)

/* `bits` low bits, sign-extended or not. */
#define SIGN_EXTEND(v, bits)                                                                       \
    ((((int)(v) & ((1 << (bits)) - 1)) ^ 1 << ((bits)-1)) - (1 << ((bits)-1)))
#define LOW_BITS(v, bits) ((int)(v) & ((1 << (bits)) - 1))
#define NARROW_OPS(name, type, narrow, bits)                                                       \
    DEFINE_OPS(name, type, (double)v, (int64_t)v, narrow(double_to_int32(v), bits),                \
               narrow((uint64_t)v & 0xff, bits))

#define FLOAT_OPS(name, type, decode, from_double, from_int64)                                     \
    DEFINE_OPS(name, type, decode, double_to_int64(decode), from_double, from_int64)

/* Stores saturate, as Cast does by default. */
#define SMALL_FLOAT_OPS(name, dtype)                                                               \
    FLOAT_OPS(name, uint8_t, (double)small_float_to_float(dtype, v),                               \
              double_to_small_float(dtype, v, true),                                               \
              double_to_small_float(dtype, int64_to_sticky_double(v), true))

INTEGER_OPS(int8, int8_t, double_to_int32(v))
INTEGER_OPS(int16, int16_t, double_to_int32(v))
INTEGER_OPS(int32, int32_t, double_to_int32(v))
INTEGER_OPS(int64, int64_t, double_to_int64(v))
INTEGER_OPS(uint8, uint8_t, double_to_int32(v))
INTEGER_OPS(uint16, uint16_t, double_to_int32(v))
INTEGER_OPS(uint32, uint32_t, double_to_int64(v))
INTEGER_OPS(uint64, uint64_t, double_to_uint64(v))
NARROW_OPS(int4, int8_t, SIGN_EXTEND, 4)
NARROW_OPS(int2, int8_t, SIGN_EXTEND, 2)
NARROW_OPS(uint4, uint8_t, LOW_BITS, 4)
NARROW_OPS(uint2, uint8_t, LOW_BITS, 2)
DEFINE_OPS(bool, uint8_t, v != 0, v != 0, v != 0, v != 0)
FLOAT_OPS(float, float, (double)v, (float)v, (float)v)
FLOAT_OPS(double, double, v, v, (double)v)
FLOAT_OPS(half, uint16_t, (double)half_to_float(v), double_to_half(v),
          double_to_half(int64_to_sticky_double(v)))
FLOAT_OPS(bfloat16, uint16_t, (double)bfloat16_to_float(v), double_to_bfloat16(v),
          double_to_bfloat16(int64_to_sticky_double(v)))
SMALL_FLOAT_OPS(e4m3fn, TSSA_FLOAT8E4M3FN)
SMALL_FLOAT_OPS(e4m3fnuz, TSSA_FLOAT8E4M3FNUZ)
SMALL_FLOAT_OPS(e5m2, TSSA_FLOAT8E5M2)
SMALL_FLOAT_OPS(e5m2fnuz, TSSA_FLOAT8E5M2FNUZ)
SMALL_FLOAT_OPS(e8m0, TSSA_FLOAT8E8M0)
SMALL_FLOAT_OPS(e2m1, TSSA_FLOAT4E2M1)

/* What has no numbers: UNDEFINED, STRING, COMPLEX. */
static double none_load_double(const void *element)
{
    (void)element;
    return 0;
}
static int64_t none_load_int64(const void *element)
{
    (void)element;
    return 0;
}
static void none_store_double(void *element, double value)
{
    (void)element, (void)value;
}
static void none_store_int64(void *element, int64_t value)
{
    (void)element, (void)value;
}

#define OPS(name)                                                                                  \
    {                                                                                              \
        name##_load_double, name##_load_int64, name##_store_double, name##_store_int64             \
    }
static const struct element_ops element_ops[TSSA_DTYPE_COUNT] = {
    [TSSA_UNDEFINED] = OPS(none),
    [TSSA_FLOAT] = OPS(float),
    [TSSA_UINT8] = OPS(uint8),
    [TSSA_INT8] = OPS(int8),
    [TSSA_UINT16] = OPS(uint16),
    [TSSA_INT16] = OPS(int16),
    [TSSA_INT32] = OPS(int32),
    [TSSA_INT64] = OPS(int64),
    [TSSA_STRING] = OPS(none),
    [TSSA_BOOL] = OPS(bool),
    [TSSA_FLOAT16] = OPS(half),
    [TSSA_DOUBLE] = OPS(double),
    [TSSA_UINT32] = OPS(uint32),
    [TSSA_UINT64] = OPS(uint64),
    [TSSA_COMPLEX64] = OPS(none),
    [TSSA_COMPLEX128] = OPS(none),
    [TSSA_BFLOAT16] = OPS(bfloat16),
    [TSSA_FLOAT8E4M3FN] = OPS(e4m3fn),
    [TSSA_FLOAT8E4M3FNUZ] = OPS(e4m3fnuz),
    [TSSA_FLOAT8E5M2] = OPS(e5m2),
    [TSSA_FLOAT8E5M2FNUZ] = OPS(e5m2fnuz),
    [TSSA_UINT4] = OPS(uint4),
    [TSSA_INT4] = OPS(int4),
    [TSSA_FLOAT4E2M1] = OPS(e2m1),
    [TSSA_FLOAT8E8M0] = OPS(e8m0),
    [TSSA_UINT2] = OPS(uint2),
    [TSSA_INT2] = OPS(int2),
};

static const struct element_ops *ops_of(tssa_dtype dtype)
{
    return &element_ops[(unsigned)dtype < TSSA_DTYPE_COUNT ? dtype : TSSA_UNDEFINED];
}

double dtype_load_double(tssa_dtype dtype, const void *element)
{
    return ops_of(dtype)->load_double(element);
}

int64_t dtype_load_int64(tssa_dtype dtype, const void *element)
{
    return ops_of(dtype)->load_int64(element);
}

void dtype_store_double(tssa_dtype dtype, void *element, double value)
{
    ops_of(dtype)->store_double(element, value);
}

void dtype_store_int64(tssa_dtype dtype, void *element, int64_t value)
{
    ops_of(dtype)->store_int64(element, value);
}

/* ---- Packing --------------------------------------------------------------------------------- */

void dtype_unpack(tssa_dtype dtype, const uint8_t *packed, size_t count, uint8_t *elements)
{
    const struct dtype_info *info = dtype_info(dtype);
    if (info->file_bits >= 8) {
        if (count)
            memcpy(elements, packed, count * info->size);
        return;
    }
    if (info->file_bits == 0)
        return; /* UNDEFINED and STRING have no packed form */
    unsigned bits = info->file_bits, per_byte = 8 / bits;
    unsigned sign = info->cls == DTYPE_CLASS_SIGNED ? 1u << (bits - 1) : 0;
    for (size_t i = 0; i < count; i++) {
        unsigned code = packed[i / per_byte] >> (i % per_byte * bits) & ((1u << bits) - 1);
        elements[i] = (uint8_t)((code ^ sign) - sign);
    }
}

void dtype_pack(tssa_dtype dtype, const uint8_t *elements, size_t count, uint8_t *packed)
{
    const struct dtype_info *info = dtype_info(dtype);
    if (info->file_bits >= 8) {
        if (count)
            memcpy(packed, elements, count * info->size);
        return;
    }
    if (info->file_bits == 0)
        return;
    unsigned bits = info->file_bits, per_byte = 8 / bits;
    for (size_t i = 0; i < count; i++) {
        if (i % per_byte == 0)
            packed[i / per_byte] = 0;
        unsigned code = elements[i] & ((1u << bits) - 1);
        packed[i / per_byte] |= (uint8_t)(code << (i % per_byte * bits));
    }
}

bool dtype_file_bytes(tssa_dtype dtype, size_t count, size_t *bytes)
{
    size_t bits = dtype_info(dtype)->file_bits;
    if (bits == 0)
        return false;
    if (bits >= 8)
        return size_mul(count, bits / 8, bytes);
    size_t per_byte = 8 / bits;
    *bytes = count / per_byte + (count % per_byte != 0);
    return true;
}

uint64_t dtype_value_bits(tssa_dtype dtype)
{
    static const uint64_t bits[TSSA_DTYPE_COUNT] = {
        [TSSA_FLOAT] = 0x7fffffff,
        [TSSA_UINT8] = 0xff,
        [TSSA_INT8] = 0xff,
        [TSSA_UINT16] = 0xffff,
        [TSSA_INT16] = 0xffff,
        [TSSA_INT32] = 0xffffffff,
        [TSSA_INT64] = UINT64_MAX,
        [TSSA_STRING] = UINT64_MAX,
        [TSSA_BOOL] = 0xff,
        [TSSA_FLOAT16] = 0x7fff,
        [TSSA_DOUBLE] = INT64_MAX,
        [TSSA_UINT32] = 0xffffffff,
        [TSSA_UINT64] = UINT64_MAX,
        [TSSA_COMPLEX64] = 0x7fffffff7fffffff,
        [TSSA_COMPLEX128] = INT64_MAX,
        [TSSA_BFLOAT16] = 0x7fff,
    };
    return (unsigned)dtype < TSSA_DTYPE_COUNT ? bits[dtype] : 0;
}
