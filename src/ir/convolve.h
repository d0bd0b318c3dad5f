/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What `convolve` says beside what Conv says. It is Conv of float32, of sessions whose device has a
 * library that computes it so:
 *
 *     y = after(Conv(x, w, bias) + added)      convolve(x, w, bias, added)
 *
 * bias and added may be absent. Where x_last is 1, channels are the last axis of x, not the second;
 * where y_last is, those of y, and of added, which has y's shape. Where winograd is 1, sums may be
 * those of Winograd's algorithm (winograd_convs), and a NaN or infinity may reach its neighbours.
 */
#ifndef TSSA_IR_CONVOLVE_H
#define TSSA_IR_CONVOLVE_H

#include "ir/ir.h"

/* Below so many multiplications kernels compute convolutions without a library: to compile code for
 * them takes longer than many runs. The reference takes some 15 us for 6,000 of ten channels, the
 * library 2. */
#define CONV_MIN_WORK 1024
/* A matrix product of so many pixels is computed as such, with channels first. */
#define CONV_MANY_PIXELS 128

enum { CONVOLVE_X, CONVOLVE_W, CONVOLVE_BIAS, CONVOLVE_ADDED, CONVOLVE_OPERANDS };

#define CONVOLVE_X_LAST "x_last"
#define CONVOLVE_Y_LAST "y_last"
#define CONVOLVE_WINOGRAD "winograd" /* 1: the library may use Winograd's algorithm */
#define CONVOLVE_AFTER "after"       /* a name of ir/after.def; absent: nothing */
#define CONVOLVE_A "after_a"
#define CONVOLVE_B "after_b"

enum convolve_after {
    AFTER_NOTHING,
#define AFTER(name, expression) AFTER_##name,
#include "ir/after.def"
#undef AFTER
    AFTER_COUNT
};

/* "" of AFTER_NOTHING. */
const char *convolve_after_name(enum convolve_after after);
/* AFTER_COUNT: there is none of this name. */
enum convolve_after convolve_after_find(const char *name);

#endif
