/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RoiAlign, of which a thread computes a bin of a plane: where its samples lie and their weights in
 * double, what is made of elements in T, operation by operation as the CPU does
 * (kernels/cpu/window/roi_align.c). A region that is of no item, or not finite or too large, is
 * noted.
 */
#define MOST_SAMPLES 65536

/* One axis of a region: bins of `samples` samples each, of `size` elements; -1: it is not finite,
 * or too large. */
struct axis {
    double start, bin;
    int64_t samples, size;
};

SCALAR_FN struct axis axis_of(double start, double end, int64_t bins, int64_t size,
                              int64_t sampling, int64_t half_pixel)
{
    struct axis axis;
    double length = end - start;
    if (!half_pixel && length < 1)
        length = 1;
    axis.start = start;
    axis.bin = length / (double)bins;
    axis.size = size;
    axis.samples = -1;
    if (start - start != 0 || !((sampling ? (double)sampling : axis.bin) <= MOST_SAMPLES))
        return axis;
    axis.samples = sampling;
    if (!sampling && axis.bin > 0) {
        axis.samples = (int64_t)axis.bin;
        axis.samples += (double)axis.samples < axis.bin;
    }
    return axis;
}

/* The two elements around sample s of a bin and the second one's weight, where it is not beyond the
 * input. */
struct place {
    int is_there;
    int64_t first, second;
    double weight;
};

SCALAR_FN struct place place_of(struct axis axis, int64_t bin, int64_t s)
{
    struct place place;
    const double last = (double)(axis.size - 1);
    double x =
        axis.start + (double)bin * axis.bin + ((double)s + 0.5) * axis.bin / (double)axis.samples;
    place.is_there = x >= -1 && x <= (double)axis.size;
    x = place.is_there && x > 0 ? x < last ? x : last : 0;
    place.first = (int64_t)x;
    place.second = place.first < axis.size - 1 ? place.first + 1 : place.first;
    place.weight = x - (double)place.first;
    return place;
}

SCALAR_FN double corner(OPERAND_IN_PLACE rois, int64_t i, int64_t scale, int64_t half_pixel)
{
    return (double)LOAD(T, rois, i * (int64_t)sizeof(T)) * f64_of((uint64_t)scale) -
           (half_pixel ? 0.5 : 0);
}

SCALAR_FN T take(T result, T other, int64_t largest)
{
    if (!largest)
        return result + other;
    return other > result || result != result ? other : result;
}

/* A sample, interpolated, or its largest weighted corner; of two zeros the first one. */
SCALAR_FN T sample_of(OPERAND_IN_PLACE x, int64_t plane, struct place row, struct place column,
                      int64_t width, int64_t largest)
{
    const int64_t above = plane + row.first * width, below = plane + row.second * width;
    T result = (T)((1 - row.weight) * (1 - column.weight)) *
               LOAD(T, x, (above + column.first) * (int64_t)sizeof(T));
    result = take(result,
                  (T)((1 - row.weight) * column.weight) *
                      LOAD(T, x, (above + column.second) * (int64_t)sizeof(T)),
                  largest);
    result = take(result,
                  (T)(row.weight * (1 - column.weight)) *
                      LOAD(T, x, (below + column.first) * (int64_t)sizeof(T)),
                  largest);
    return take(result,
                (T)(row.weight * column.weight) *
                    LOAD(T, x, (below + column.second) * (int64_t)sizeof(T)),
                largest);
}

KERNEL k0(GIVEN(OPERAND, x), GIVEN(OPERAND, rois), GIVEN(OPERAND, items), GIVEN(RESULT, y),
          GIVEN(RESULT, note), int64_t count, int64_t batch, int64_t channels, int64_t height,
          int64_t width, int64_t bins_down, int64_t bins_across, int64_t sampling, int64_t scale,
          int64_t half_pixel, int64_t largest)
{
    AFTER_OTHERS;
    for (int64_t i = THREAD; i < count; i += ALL_THREADS) {
        const int64_t across = i % bins_across, down = i / bins_across % bins_down,
                      channel = i / bins_across / bins_down % channels,
                      roi = i / bins_across / bins_down / channels,
                      item = LOAD(int64_t, PLACE_OF(items), roi * (int64_t)sizeof(int64_t)),
                      plane = (item * channels + channel) * height * width;
        const struct axis columns = axis_of(corner(PLACE_OF(rois), 4 * roi, scale, half_pixel),
                                            corner(PLACE_OF(rois), 4 * roi + 2, scale, half_pixel),
                                            bins_across, width, sampling, half_pixel),
                          rows = axis_of(corner(PLACE_OF(rois), 4 * roi + 1, scale, half_pixel),
                                         corner(PLACE_OF(rois), 4 * roi + 3, scale, half_pixel),
                                         bins_down, height, sampling, half_pixel);
        const int is_good = IS_IN(item, batch) && rows.samples >= 0 && columns.samples >= 0;
        const int64_t samples = is_good ? rows.samples * columns.samples : 0;
        T result = 0;
        if (!is_good)
            STORE(uint8_t, PLACE_OF(note), 0, 1);
        for (int64_t s = 0; s < samples; s++) {
            const struct place row = place_of(rows, down, s / columns.samples),
                               column = place_of(columns, across, s % columns.samples);
            const T value = row.is_there && column.is_there
                                ? sample_of(PLACE_OF(x), plane, row, column, width, largest)
                                : 0;
            if (!largest)
                result += value;
            else if (s == 0 || value > result)
                result = value;
        }
        STORE(T, PLACE_OF(y), i * (int64_t)sizeof(T),
              largest || samples == 0 ? result : result / (T)samples);
    }
}
