/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/common/random.h"

#include "base/dtype.h"

static uint64_t splitmix(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

void random_seed(struct random *random, uint64_t seed, uint64_t stream)
{
    uint64_t state = seed;
    state = splitmix(&state) ^ stream;
    for (int i = 0; i < 4; i++)
        random->state[i] = splitmix(&state);
}

static uint64_t rotate(uint64_t x, int k)
{
    return x << k | x >> (64 - k);
}

uint64_t random_next(struct random *random)
{
    uint64_t *s = random->state, result = rotate(s[1] * 5, 7) * 9, t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate(s[3], 45);
    return result;
}

static double normal(struct random *random)
{
    uint64_t sum = 0;
    for (int i = 0; i < 6; i++) {
        uint64_t bits = random_next(random);
        sum += (bits >> 32) + (bits & 0xffffffffu);
    }
    return (double)sum * 0x1p-32 - 6.0;
}

/*
 * Of 64 numbers one is -0.0: a rewrite that changes the sign of a zero is seen behind a division.
 */
static double next_float(struct random *random, uint64_t bits, enum random_floats kind)
{
    if (kind == RANDOM_ZEROS && bits >> 63)
        return bits >> 62 & 1 ? -0.0 : 0.0;
    if (kind != RANDOM_UNIT && bits >> 58 == 0)
        return -0.0;
    switch (kind) {
    case RANDOM_UNIT:
        return (double)(random_next(random) >> 11) * 0x1p-53;
    case RANDOM_WIDE:
        return 100 * normal(random);
    case RANDOM_NORMAL:
    case RANDOM_ZEROS:
        break;
    }
    return normal(random);
}

/*
 * The first number that an integer type does not hold; no need for larger ones than that of int16.
 */
static int64_t end_of(tssa_dtype dtype)
{
    switch (dtype) {
    case TSSA_INT2:
        return 2;
    case TSSA_UINT2:
        return 4;
    case TSSA_INT4:
        return 8;
    case TSSA_UINT4:
        return 16;
    case TSSA_INT8:
        return 128;
    case TSSA_UINT8:
        return 256;
    default:
        return INT16_MAX;
    }
}

static int64_t pick_integer(uint64_t bits, const struct random_style *style, tssa_dtype dtype,
                            size_t count)
{
    int64_t end = end_of(dtype);
    bool wide = dtype_info(dtype)->size >= sizeof(int32_t);
    if (style->single && count == 1 && (wide || style->single < end))
        return style->single - (int64_t)(bits >> 33) % (style->single / 2 + 1);
    if (style->integers)
        return (int64_t)(bits >> 33) % (style->integers < end ? style->integers : end);
    return (int64_t)(bits >> 62) % (end < RANDOM_INTEGERS ? end : RANDOM_INTEGERS);
}

void random_fill(struct random *random, struct tensor *tensor)
{
    static const struct random_style style;
    random_fill_style(random, &style, tensor);
}

void random_fill_style(struct random *random, const struct random_style *style,
                       struct tensor *tensor)
{
    static const tssa_string strings[RANDOM_INTEGERS] = {
        {"s0", 2}, {"s1", 2}, {"s2", 2}, {"s3", 2}};
    const struct dtype_info *info = dtype_info(tensor->dtype);
    size_t count = tensor_count(tensor);
    for (size_t i = 0; i < count; i++) {
        char *element = (char *)tensor->data + i * info->size;
        uint64_t bits = random_next(random);
        switch (info->cls) {
        case DTYPE_CLASS_FLOAT:
            dtype_store_double(tensor->dtype, element, next_float(random, bits, style->floats));
            break;
        case DTYPE_CLASS_COMPLEX: {
            tssa_dtype part = tensor->dtype == TSSA_COMPLEX64 ? TSSA_FLOAT : TSSA_DOUBLE;
            dtype_store_double(part, element, normal(random));
            dtype_store_double(part, element + info->size / 2, normal(random));
            break;
        }
        case DTYPE_CLASS_STRING:
            ((tssa_string *)tensor->data)[i] = strings[bits >> 62];
            break;
        case DTYPE_CLASS_BOOL:
            *(uint8_t *)element = bits >> 62 & 1;
            break;
        default:
            dtype_store_int64(tensor->dtype, element,
                              pick_integer(bits, style, tensor->dtype, count));
        }
    }
}
