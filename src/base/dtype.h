/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Element types: one table (dtype.def), and exact conversion of single elements.
 *
 * In memory every element is a whole number of bytes: the sub-byte types hold one element per byte
 * (INT4 and INT2 sign-extended in an int8, UINT4 and UINT2 in a uint8, FLOAT4E2M1 as its 4-bit
 * code). Packing exists only in files (dtype_pack, dtype_unpack).
 */
#ifndef TSSA_BASE_DTYPE_H
#define TSSA_BASE_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tssa.h"

enum dtype_class {
    DTYPE_CLASS_NONE,
    DTYPE_CLASS_FLOAT, /* every float format, E8M0 included */
    DTYPE_CLASS_SIGNED,
    DTYPE_CLASS_UNSIGNED,
    DTYPE_CLASS_BOOL,
    DTYPE_CLASS_COMPLEX,
    DTYPE_CLASS_STRING
};

struct dtype_info {
    const char *name;    /* ONNX spelling, "FLOAT16" */
    const char *ir_name; /* IR text and remarks, "f16" */
    const char *numpy;   /* .npy descr without byte order, "f2"; NULL where numpy has none */
    enum dtype_class cls;
    uint8_t size;      /* bytes in memory; 0 for UNDEFINED */
    uint8_t file_bits; /* bits in a file: 4 for INT4; 0 for STRING */
};

/* Never NULL: the UNDEFINED row for anything outside the enum. */
const struct dtype_info *dtype_info(tssa_dtype dtype);
/* By ONNX spelling or IR name; UNDEFINED when unknown. */
tssa_dtype dtype_from_name(const char *name);

/* Sets of types, for the op table. */
typedef uint32_t dtype_mask;
#define DTYPE_BIT(dtype) ((dtype_mask)1 << (dtype))
static inline bool dtype_in(dtype_mask mask, tssa_dtype dtype)
{
    return (unsigned)dtype < TSSA_DTYPE_COUNT && (mask >> dtype & 1);
}

static inline bool dtype_is_float(tssa_dtype d)
{
    return dtype_info(d)->cls == DTYPE_CLASS_FLOAT;
}
static inline bool dtype_is_integer(tssa_dtype d)
{
    return dtype_info(d)->cls == DTYPE_CLASS_SIGNED || dtype_info(d)->cls == DTYPE_CLASS_UNSIGNED;
}

/*
 * Bit patterns of the small float formats to float (exact) and back (round to nearest, ties to
 * even). `saturate` is Cast's attribute: out of range becomes the largest finite value, else
 * infinity or NaN.
 */
float half_to_float(uint16_t bits);
uint16_t float_to_half(float value);
uint16_t double_to_half(double value); /* rounds once */
float bfloat16_to_float(uint16_t bits);
uint16_t float_to_bfloat16(float value);
uint16_t double_to_bfloat16(double value); /* rounds once */
float small_float_to_float(tssa_dtype dtype, uint8_t code);
uint8_t float_to_small_float(tssa_dtype dtype, float value, bool saturate);
uint8_t double_to_small_float(tssa_dtype dtype, double value, bool saturate); /* rounds once */
/* E8M0 with Cast-24's round_mode. */
enum round_mode { ROUND_UP, ROUND_DOWN, ROUND_NEAREST };
uint8_t float_to_e8m0(float value, bool saturate, enum round_mode mode);

/* Truncates; NaN and what an int64 cannot hold give INT64_MIN, as the x86 instruction does. */
int64_t double_to_int64(double value);

/*
 * One element of a numeric or BOOL type as a double / an int64 (floats truncate, UINT64 wraps).
 * Elements need not be aligned. Of COMPLEX and STRING elements, loads give 0 and stores do nothing.
 */
double dtype_load_double(tssa_dtype dtype, const void *element);
int64_t dtype_load_int64(tssa_dtype dtype, const void *element);
/*
 * Stores with the destination's rounding; float8 and smaller saturate (Cast's default); integers
 * wrap, BOOL is value != 0. A double that is NaN or out of range stores what numpy gives on x86:
 * INT32_MIN in an INT32 (whose low bits go to narrower types), INT64_MIN in an INT64 (whose low
 * bits go to UINT32).
 */
void dtype_store_double(tssa_dtype dtype, void *element, double value);
void dtype_store_int64(tssa_dtype dtype, void *element, int64_t value);

/* Between one element per byte and the packed file form (low bits first); `count` elements. */
void dtype_unpack(tssa_dtype dtype, const uint8_t *packed, size_t count, uint8_t *elements);
void dtype_pack(tssa_dtype dtype, const uint8_t *elements, size_t count, uint8_t *packed);
/* Bytes of `count` elements in a file; false on overflow. STRING: false. */
bool dtype_file_bytes(tssa_dtype dtype, size_t count, size_t *bytes);

/* The bits of an element (of a half of it, for 16 bytes) that make it differ from zero: not a sign.
 * 0: of this type nobody asks that. */
uint64_t dtype_value_bits(tssa_dtype dtype);

#endif
