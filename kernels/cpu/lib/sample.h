/* SPDX-License-Identifier: Apache-2.0 */
/* Interpolation in a grid of any rank at a point given by coordinates: GridSample, DeformConv. */
#ifndef TSSA_KERNELS_CPU_LIB_SAMPLE_H
#define TSSA_KERNELS_CPU_LIB_SAMPLE_H

#include "kernels/grids/sample_axis.h"

/*
 * Prepares one axis of `size` elements, `stride` apart, for coordinate x (element i is at i). NaN
 * counts as beyond the grid with SAMPLE_ZEROS, else as the first element. `align_corners` says
 * where reflection turns: at the outer elements' centers, or half an element further out.
 */
void sample_axis_init(struct sample_axis *axis, enum sample_mode mode, enum sample_padding padding,
                      bool align_corners, double x, int64_t size, int64_t stride);

/* The same for n coordinates, which `step` entries of `axes` are apart from each other. */
void sample_axes_init(const struct sample_line *line, const double *x, int64_t n,
                      struct sample_axis *axes, int64_t step);

/*
 * The value at the point: along each axis the sum of weight times element, or along the axes behind
 * it such a sum, in the order of the elements, from 0 on and without those beyond the grid. Each
 * product and sum is rounded. There is an axis.
 */
float sample_floats_at(const float *grid, const struct sample_axis *axes, int rank);
double sample_doubles_at(const double *grid, const struct sample_axis *axes, int rank);

#endif
