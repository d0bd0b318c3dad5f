/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The float formats that C has no type for. One encoder serves them all: it takes the exact value
 * as a double, so that a value is rounded once, whatever it came from.
 */
#include <string.h>

#include "base/dtype.h"

/* Sign, exponent, mantissa; codes without the sign bit. */
struct float_format {
    int mantissa_bits, bias;
    uint16_t sign;     /* the sign bit */
    uint16_t largest;  /* the largest finite value */
    uint16_t overflow; /* what lies beyond it: infinity or NaN */
    uint16_t nan;
    bool one_zero; /* no negative zero: its code is the NaN */
};

static const struct float_format half_format = {10, 15, 0x8000, 0x7bff, 0x7c00, 0x7e00, false};
static const struct float_format bfloat16_format = {7, 127, 0x8000, 0x7f7f, 0x7f80, 0x7fc0, false};

/* FLOAT4E2M1 has neither infinity nor NaN: Cast clamps, and turns NaN into -0 as ml_dtypes does. */
static const struct float_format small_formats[TSSA_DTYPE_COUNT] = {
    [TSSA_FLOAT8E4M3FN] = {3, 7, 0x80, 0x7e, 0x7f, 0x7f, false},
    [TSSA_FLOAT8E4M3FNUZ] = {3, 8, 0x80, 0x7f, 0x80, 0x80, true},
    [TSSA_FLOAT8E5M2] = {2, 15, 0x80, 0x7b, 0x7c, 0x7e, false},
    [TSSA_FLOAT8E5M2FNUZ] = {2, 16, 0x80, 0x7f, 0x80, 0x80, true},
    [TSSA_FLOAT4E2M1] = {1, 1, 0x08, 0x07, 0x07, 0x08, false},
};

static uint32_t float_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float float_from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint64_t double_bits(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* v >> shift, rounded to nearest, ties to even; 0 < shift < 64. */
static uint64_t shift_rounded(uint64_t v, int shift)
{
    uint64_t kept = v >> shift;
    uint64_t rest = v & ((UINT64_C(1) << shift) - 1);
    uint64_t half = UINT64_C(1) << (shift - 1);
    return kept + (rest > half || (rest == half && (kept & 1)));
}

/* The code of a finite magnitude, which may come out above format->largest. */
static uint64_t encode_magnitude(const struct float_format *format, uint64_t bits)
{
    int exponent = (int)(bits >> 52) - 1023;
    if (exponent == -1023)
        return 0; /* a subnormal double is far below half of any format's smallest value */
    uint64_t mantissa = (bits & ((UINT64_C(1) << 52) - 1)) | UINT64_C(1) << 52;
    int smallest = 1 - format->bias; /* exponent of the normal numbers' lowest binade */
    int shift = 52 - format->mantissa_bits;
    if (exponent < smallest) {
        shift += smallest - exponent;
        exponent = smallest;
        if (shift > 54)
            return 0;
    }
    /* Normal mantissas bring the implicit bit along, which counts the exponent up by one; a
     * mantissa that rounds up to the next power of two carries into the exponent by itself. */
    uint64_t base = (uint64_t)(exponent - smallest) << format->mantissa_bits;
    return base + shift_rounded(mantissa, shift);
}

static uint16_t encode(const struct float_format *format, double value, bool saturate)
{
    uint64_t bits = double_bits(value);
    uint16_t sign = bits >> 63 ? format->sign : 0;
    bits &= ~(UINT64_C(1) << 63);
    const uint64_t infinity = UINT64_C(0x7ff) << 52;
    if (bits > infinity)
        return sign | format->nan;
    uint64_t code = bits == infinity ? UINT64_MAX : encode_magnitude(format, bits);
    if (code > format->largest)
        code = saturate ? format->largest : format->overflow;
    if (format->one_zero && code == 0)
        sign = 0;
    return sign | (uint16_t)code;
}

float half_to_float(uint16_t bits)
{
    uint32_t sign = (uint32_t)(bits & 0x8000) << 16;
    uint32_t magnitude = bits & 0x7fff;
    if (magnitude >= 0x7c00) {
        uint32_t quiet = magnitude > 0x7c00 ? 0x400000 : 0;
        return float_from_bits(sign | 0x7f800000 | quiet | (magnitude & 0x3ff) << 13);
    }
    if (magnitude < 0x400) {
        float value = (float)magnitude * 0x1p-24f;
        return sign ? -value : value;
    }
    return float_from_bits(sign | ((magnitude << 13) + ((127 - 15) << 23)));
}

/* The common case by integer arithmetic on the float itself; the encoder gives the same. */
uint16_t float_to_half(float value)
{
    uint32_t bits = float_bits(value);
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    bits &= 0x7fffffff;
    if (bits > 0x7f800000)
        return sign | 0x7e00 | (bits >> 13 & 0x3ff); /* quiet, as the CPU's own conversion */
    if (bits >= 0x47800000)
        return sign | 0x7c00; /* 65536 and up */
    if (bits < 0x38800000)
        return encode(&half_format, value, false);
    bits -= (uint32_t)(127 - 15) << 23;
    return sign | (uint16_t)((bits + 0xfff + (bits >> 13 & 1)) >> 13);
}

uint16_t double_to_half(double value)
{
    /* A NaN keeps the top of its payload on the way through float. */
    return value != value ? float_to_half((float)value) : encode(&half_format, value, false);
}

float bfloat16_to_float(uint16_t bits)
{
    return float_from_bits((uint32_t)bits << 16);
}

uint16_t float_to_bfloat16(float value)
{
    uint32_t bits = float_bits(value);
    if ((bits & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(bits >> 16) | 0x40;
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

uint16_t double_to_bfloat16(double value)
{
    return value != value ? float_to_bfloat16((float)value)
                          : encode(&bfloat16_format, value, false);
}

static float e8m0_to_float(uint8_t code)
{
    if (code == 0xff)
        return float_from_bits(0x7fc00000);
    return float_from_bits(code ? (uint32_t)code << 23 : 0x400000); /* 2^-127 is subnormal */
}

float small_float_to_float(tssa_dtype dtype, uint8_t code)
{
    if (dtype == TSSA_FLOAT8E8M0)
        return e8m0_to_float(code);
    const struct float_format *format = &small_formats[dtype];
    uint32_t sign = code & format->sign ? UINT32_C(1) << 31 : 0;
    uint32_t magnitude = code & (format->sign - 1u);
    if (format->one_zero && code == format->nan)
        return float_from_bits(0x7fc00000);
    if (magnitude > format->largest) {
        bool infinite = magnitude == format->overflow && format->overflow != format->nan;
        return float_from_bits(sign | (infinite ? 0x7f800000 : 0x7fc00000));
    }
    int m = format->mantissa_bits;
    if (magnitude >> m == 0) {
        float unit = float_from_bits((uint32_t)(127 + 1 - format->bias - m) << 23);
        float value = (float)magnitude * unit;
        return sign ? -value : value;
    }
    return float_from_bits(sign |
                           ((magnitude << (23 - m)) + ((uint32_t)(127 - format->bias) << 23)));
}

uint8_t double_to_small_float(tssa_dtype dtype, double value, bool saturate)
{
    if (dtype == TSSA_FLOAT8E8M0)
        return float_to_e8m0((float)value, saturate, ROUND_UP);
    return (uint8_t)encode(&small_formats[dtype], value, saturate);
}

uint8_t float_to_small_float(tssa_dtype dtype, float value, bool saturate)
{
    return double_to_small_float(dtype, value, saturate);
}

/*
 * As the ONNX reference: the sign is dropped, zero and what rounds to it becomes 2^-127, infinity
 * and NaN become NaN, and "nearest" takes ties up.
 */
uint8_t float_to_e8m0(float value, bool saturate, enum round_mode mode)
{
    uint32_t bits = float_bits(value) & 0x7fffffff;
    uint32_t exponent = bits >> 23;
    uint32_t fraction = bits & 0x7fffff;
    if (exponent == 0xff)
        return 0xff;
    bool up = false;
    if (mode == ROUND_UP)
        up = fraction != 0;
    else if (mode == ROUND_NEAREST) /* subnormals: 2^-127 itself is no tie */
        up = exponent ? fraction >= 0x400000 : fraction > 0x400000;
    if (up && exponent == 0xfe && saturate)
        up = false;
    return (uint8_t)(exponent + up);
}
