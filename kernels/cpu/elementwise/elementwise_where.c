/* SPDX-License-Identifier: Apache-2.0 */
/* The inner loops of Where: elements are copied as bits, so one loop serves all types of a size. */
#include "kernels/cpu/elementwise/elementwise.h"

/* Bits of any type: the compiler must not conclude that floats are never written here. */
typedef uint8_t bits_1 __attribute__((may_alias));
typedef uint16_t bits_2 __attribute__((may_alias));
typedef uint32_t bits_4 __attribute__((may_alias));
typedef uint64_t bits_8 __attribute__((may_alias));
struct bits_16 {
    bits_8 a, b;
} __attribute__((may_alias));
_Static_assert(sizeof(struct bits_16) == sizeof(tssa_string), "strings are moved as pairs");

#define WHERE(T, name)                                                                             \
    static void name(const struct ew_uniform *uniform, int64_t n, void *out, int64_t out_step,     \
                     const void *const *in, const int64_t *in_step)                                \
    {                                                                                              \
        (void)uniform;                                                                             \
        const uint8_t *c = in[0];                                                                  \
        const T *x = in[1], *y = in[2];                                                            \
        T *o = out;                                                                                \
        const int64_t so = out_step, sc = in_step[0], sx = in_step[1], sy = in_step[2];            \
        if (so == 1 && sc == 1 && sx == 1 && sy == 1)                                              \
            for (int64_t i = 0; i < n; i++) {                                                      \
                const T a = x[i], b = y[i];                                                        \
                o[i] = c[i] ? a : b;                                                               \
            }                                                                                      \
        else                                                                                       \
            for (int64_t i = 0; i < n; i++) {                                                      \
                const T a = x[i * sx], b = y[i * sy];                                              \
                o[i * so] = c[i * sc] ? a : b;                                                     \
            }                                                                                      \
    }

WHERE(bits_1, where_1)
WHERE(bits_2, where_2)
WHERE(bits_4, where_4)
WHERE(bits_8, where_8)
WHERE(struct bits_16, where_16)

ew_loop ew_where_loop(size_t element_size)
{
    switch (element_size) {
    case 1:
        return where_1;
    case 2:
        return where_2;
    case 4:
        return where_4;
    case 8:
        return where_8;
    default:
        return where_16;
    }
}
