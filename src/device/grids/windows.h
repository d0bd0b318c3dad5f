/* SPDX-License-Identifier: Apache-2.0 */
/* Windows as texts are given them: of three axes, of which those that lack are the first ones. */
#ifndef TSSA_DEVICE_GRIDS_WINDOWS_H
#define TSSA_DEVICE_GRIDS_WINDOWS_H

#include "device/grids/texts.h"

#define WINDOW_AXES 3

/* The sizes of axes, where they lack 1, or so many. */
struct axes {
    const int64_t *values;
    int64_t lacking;
};

static inline void grids_axes(struct launch_param *params, int rank, struct axes axes)
{
    const int lack = WINDOW_AXES - rank;
    for (int i = 0; i < WINDOW_AXES; i++)
        params[i] = grids_number(i < lack ? axes.lacking : axes.values[i - lack]);
}

/* in, out, taps, stride, dilation, pad. */
#define WINDOW_PARAMS (6 * WINDOW_AXES)

static inline void grids_window(struct launch_param params[WINDOW_PARAMS], int rank,
                                const int64_t *in, const int64_t *out, const int64_t *kernel,
                                const int64_t *stride, const int64_t *dilation,
                                const int64_t *pad_begin)
{
    const struct axes all[] = {{in, 1},     {out, 1},      {kernel, 1},
                               {stride, 1}, {dilation, 1}, {pad_begin, 0}};
    for (int i = 0; i < 6; i++)
        grids_axes(params + (size_t)i * WINDOW_AXES, rank, all[i]);
}

#endif
