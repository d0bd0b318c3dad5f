/* SPDX-License-Identifier: Apache-2.0 */
/* The inner loops of Where: elements are copied as bits, so one loop serves all types of a size. */
#include "base/clones.h"
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

/* Steps are constants to the compiler where they are 0 or 1. */
#define SELECT(T, name)                                                                            \
    static inline __attribute__((always_inline)) void select_##name(                               \
        int64_t n, T *o, int64_t so, const uint8_t *c, int64_t sc, const T *x, int64_t sx,         \
        const T *y, int64_t sy)                                                                    \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                          \
            const T a = x[i * sx], b = y[i * sy];                                                  \
            o[i * so] = c[i * sc] ? a : b;                                                         \
        }                                                                                          \
    }

/* A condition that is the same for all takes one of the two. */
#define WHERE(T, name)                                                                             \
    SELECT(T, name)                                                                                \
    VECTOR_PROCEDURE(name,                                                                         \
                     (const struct ew_uniform *uniform, int64_t n, void *out, int64_t out_step,    \
                      const void *const *in, const int64_t *in_step),                              \
                     (uniform, n, out, out_step, in, in_step))                                     \
    {                                                                                              \
        (void)uniform;                                                                             \
        const uint8_t *c = in[0];                                                                  \
        const T *x = in[1], *y = in[2];                                                            \
        T *o = out;                                                                                \
        int64_t sc = in_step[0], sx = in_step[1], sy = in_step[2];                                 \
        if (sc == 0 && n > 0) {                                                                    \
            x = y = *c ? x : y;                                                                    \
            sx = sy = *c ? sx : sy;                                                                \
        }                                                                                          \
        if (out_step != 1 || sc / 2 || sx / 2 || sy / 2 || sc < 0 || sx < 0 || sy < 0)             \
            select_##name(n, o, out_step, c, sc, x, sx, y, sy);                                    \
        else if (sc == 0 && sx == 0)                                                               \
            select_##name(n, o, 1, c, 0, x, 0, x, 0);                                              \
        else if (sc == 0)                                                                          \
            select_##name(n, o, 1, c, 0, x, 1, x, 1);                                              \
        else if (sx == 1 && sy == 1)                                                               \
            select_##name(n, o, 1, c, 1, x, 1, y, 1);                                              \
        else if (sx == 1)                                                                          \
            select_##name(n, o, 1, c, 1, x, 1, y, 0);                                              \
        else if (sy == 1)                                                                          \
            select_##name(n, o, 1, c, 1, x, 0, y, 1);                                              \
        else                                                                                       \
            select_##name(n, o, 1, c, 1, x, 0, y, 0);                                              \
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
