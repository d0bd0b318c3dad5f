/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What Slice takes of one axis, in numbers: for the kernel, for inference and for rules alike.
 *
 * As numpy takes it, but for a start before the first element: that is the first element, in
 * whichever direction the slice goes. So say the standard's text and ONNX's shape inference.
 */
#ifndef TSSA_IR_SLICE_H
#define TSSA_IR_SLICE_H

#include <stdbool.h>
#include <stdint.h>

/* Counted from the front, and within low and high; dim is at most PTRDIFF_MAX. */
static inline int64_t slice_within(int64_t bound, int64_t dim, int64_t low, int64_t high)
{
    bound = bound >= 0 ? bound : bound < -dim ? -1 : bound + dim;
    return bound < low ? low : bound > high ? high : bound;
}

/* How many of `dim` elements start:end:step takes, a step of 0 aside; *start is then the first. */
static inline int64_t slice_cut(int64_t dim, int64_t *start, int64_t end, int64_t step)
{
    const bool up = step > 0;
    const int64_t last = up ? dim : dim - 1;
    *start = slice_within(*start, dim, up || dim ? 0 : -1, last);
    end = slice_within(end, dim, up ? 0 : -1, last);
    const int64_t span = up ? end - *start : *start - end;
    step = up ? step : step < -INT64_MAX ? INT64_MAX : -step;
    return span > 0 ? (span - 1) / step + 1 : 0;
}

#endif
