/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way back of a sliding window: what each element of the output gives to each element that it
 * read is added up (Col2Im, ConvTranspose). An element's sum is over the kernel's positions in
 * row-major order, as of an axis that is not the innermost one (ir/reduction.def).
 */
#ifndef TSSA_KERNELS_CPU_LIB_ADD_BACK_H
#define TSSA_KERNELS_CPU_LIB_ADD_BACK_H

#include "device/window.h"

/* Bytes of the memory that add_back needs; false: more than there can be. */
bool add_back_bytes(const struct window *window, tssa_dtype dtype, size_t *bytes);

/*
 * `planes`: kernel_count planes of the output's size, dense, one for each position. Returns a plane
 * of the input's size that lies in `memory`, of add_back_bytes. What padding read is dropped.
 * Elements are of `dtype`, FLOAT or DOUBLE.
 */
void *add_back(const struct window *window, tssa_dtype dtype, const void *planes, void *memory);

/*
 * Two axes, of which each element is read at one position alone: kernels as large as strides, of
 * two columns, without pads. Then planes of FLOAT are put side by side, in a quarter of the time,
 * and `more` is added to each element: what add_back gives, and that added to it. `to` is a plane
 * of the input's size.
 */
bool add_back_is_apart(const struct window *window);
void add_back_apart(const struct window *window, const float *planes, float more, float *to);

#endif
