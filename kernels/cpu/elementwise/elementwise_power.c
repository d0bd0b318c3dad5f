/* SPDX-License-Identifier: Apache-2.0 */
/* The inner loops of Pow with one exponent that makes it a product, a quotient or a root. */
#include <math.h>

#include "base/clones.h"
#include "kernels/cpu/elementwise/elementwise.h"

#define POWER(name, T, expression)                                                                 \
    VECTOR_PROCEDURE(name,                                                                         \
                     (const struct ew_uniform *uniform, int64_t n, void *out, int64_t out_step,    \
                      const void *const *in, const int64_t *in_step),                              \
                     (uniform, n, out, out_step, in, in_step))                                     \
    {                                                                                              \
        (void)uniform;                                                                             \
        const T *x = in[0];                                                                        \
        T *o = out;                                                                                \
        const int64_t so = out_step, sx = in_step[0];                                              \
        if (so == 1 && sx == 1)                                                                    \
            for (int64_t i = 0; i < n; i++) {                                                      \
                const T a = x[i];                                                                  \
                o[i] = expression;                                                                 \
            }                                                                                      \
        else                                                                                       \
            for (int64_t i = 0; i < n; i++) {                                                      \
                const T a = x[i * sx];                                                             \
                o[i * so] = expression;                                                            \
            }                                                                                      \
    }
#define POWERS(suffix, T, root)                                                                    \
    POWER(same_##suffix, T, a)                                                                     \
    POWER(square_##suffix, T, a *a)                                                                \
    POWER(cube_##suffix, T, a *a *a)                                                               \
    POWER(reciprocal_##suffix, T, 1 / a)                                                           \
    /* Of -0 it is 0, of -infinity infinity. */                                                    \
    POWER(root_##suffix, T, a == -(T)INFINITY ? (T)INFINITY : root(a) + 0)

POWERS(f32, float, sqrtf)
POWERS(f64, double, sqrt)

/* The bits that POW gives. */
static const struct {
    double exponent;
    ew_loop narrow, wide;
} powers[] = {
    {1, same_f32, same_f64},   {2, square_f32, square_f64},
    {3, cube_f32, cube_f64},   {-1, reciprocal_f32, reciprocal_f64},
    {0.5, root_f32, root_f64},
};

ew_loop ew_power_loop(tssa_dtype dtype, double exponent)
{
    if (dtype != TSSA_FLOAT && dtype != TSSA_DOUBLE)
        return NULL;
    for (size_t i = 0; i < sizeof powers / sizeof *powers; i++)
        if (powers[i].exponent == exponent)
            return dtype == TSSA_FLOAT ? powers[i].narrow : powers[i].wide;
    return NULL;
}
