/* SPDX-License-Identifier: Apache-2.0 */
/* Winograd's algorithm, F(4x4, 3x3): its sizes, and its points. */
#ifndef TSSA_DEVICE_CPU_ONEDNN_WINOGRAD_POINTS_H
#define TSSA_DEVICE_CPU_ONEDNN_WINOGRAD_POINTS_H

#define TAPS 3   /* of a kernel, along each axis */
#define PIXELS 4 /* of results of a tile, along each axis */
#define TILE (PIXELS + TAPS - 1)
#define NUMBERS (TILE * TILE)

/*
 * Points where polynomials are multiplied: 0, P, -P, Q, -Q and infinity. Of those with 1 and 2
 * results are twice as far off.
 */
#define P 0.625F
#define Q 1.5F
#define PP (P * P)
#define QQ (Q * Q)

/* Six numbers of three weights, `step` apart: of floats, or of vectors of them. */
#define SPREAD(type, g, step, to, to_step)                                                         \
    do {                                                                                           \
        const float of_0 = 1 / (PP * QQ), of_p = 1 / (2 * PP * (PP - QQ)),                         \
                    of_q = 1 / (2 * QQ * (QQ - PP));                                               \
        const type even_p = of_p * ((g)[0] + PP * (g)[2 * (step)]), odd_p = of_p * P * (g)[step],  \
                   even_q = of_q * ((g)[0] + QQ * (g)[2 * (step)]), odd_q = of_q * Q * (g)[step];  \
        (to)[0] = of_0 * (g)[0];                                                                   \
        (to)[to_step] = even_p + odd_p;                                                            \
        (to)[2 * (to_step)] = even_p - odd_p;                                                      \
        (to)[3 * (to_step)] = even_q + odd_q;                                                      \
        (to)[4 * (to_step)] = even_q - odd_q;                                                      \
        (to)[5 * (to_step)] = (g)[2 * (step)];                                                     \
    } while (0)

#endif
