/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GridSample of up to three axes, each made of TAPS elements (MODE), by what sample_axis.h says. A
 * thread has a point, and of its item `each` channels, since where the elements lie is the same for
 * all of them. Sums are those of kernels/cpu/lib/sample.h: of each axis from 0 on, the last axis
 * innermost; an axis that is not there has one element of weight 1, which changes no sum that began
 * at 0.
 */
#define NUMBER(type, i) LOAD(type, grid, (i) * (int64_t)sizeof(type))

/* Of coordinate i of all, in elements; the grid's numbers are floats, doubles, or as x's. */
#define DOUBLES 1
#define AS_X 2
SCALAR_FN double place_of(OPERAND_IN_PLACE grid, int64_t i, int64_t size, bool corners,
                          int64_t numbers)
{
    if (numbers == DOUBLES)
        return sample_place_f64(NUMBER(double, i), size, corners);
    return sample_place_f32(numbers == AS_X ? (float)LOAD_T(grid, i) : NUMBER(float, i), size,
                            corners);
}

/* Axis `at` from the last one, which the coordinates begin with. */
SCALAR_FN struct sample_axis axis_of(OPERAND_IN_PLACE grid, int64_t point, int64_t rank, int64_t at,
                                     int64_t size, int64_t stride, int64_t padding, int64_t corners,
                                     int64_t numbers)
{
    struct sample_line line;
    struct sample_axis axis;
    const int64_t i = point * rank + at;
    line.mode = MODE;
    line.padding = (enum sample_padding)padding;
    line.align_corners = corners != 0;
    line.size = size;
    line.stride = stride;
    UNROLL for (int tap = 0; tap < TAPS; tap++)
    {
        axis.offsets[tap] = tap ? -1 : 0;
        axis.weights[tap] = 1;
    }
    if (at < rank)
        sample_axis_make(line, place_of(grid, i, size, line.align_corners, numbers), &axis);
    return axis;
}

#define EACH_TAP(i, axis) UNROLL for (int i = 0; i < TAPS; i++) if (axis.offsets[i] >= 0)

KERNEL k0(GIVEN(OPERAND, x), GIVEN(OPERAND, grid), GIVEN(RESULT, y), int64_t batch,
          int64_t channels, int64_t each, int64_t points, int64_t rank, int64_t in0, int64_t in1,
          int64_t in2, int64_t padding, int64_t corners, int64_t numbers)
{
    AFTER_OTHERS;
    const int64_t parts = (channels + each - 1) / each, plane = in0 * in1 * in2;
    for (int64_t i = THREAD; i < batch * parts * points; i += ALL_THREADS) {
        const int64_t place = i % points, part = i / points % parts, item = i / points / parts,
                      point = item * points + place, end = (part + 1) * each;
        const struct sample_axis axis0 = axis_of(PLACE_OF(grid), point, rank, 2, in0, in1 * in2,
                                                 padding, corners, numbers),
                                 axis1 = axis_of(PLACE_OF(grid), point, rank, 1, in1, in2, padding,
                                                 corners, numbers),
                                 axis2 = axis_of(PLACE_OF(grid), point, rank, 0, in2, 1, padding,
                                                 corners, numbers);
        for (int64_t c = part * each; c < end && c < channels; c++) {
            const int64_t from = (item * channels + c) * plane;
            T sum = 0;
            EACH_TAP(i0, axis0)
            {
                T sum1 = 0;
                EACH_TAP(i1, axis1)
                {
                    T sum2 = 0;
                    EACH_TAP(i2, axis2)
                    {
                        sum2 += (T)axis2.weights[i2] *
                                LOAD_T(PLACE_OF(x), from + axis0.offsets[i0] + axis1.offsets[i1] +
                                                        axis2.offsets[i2]);
                    }
                    sum1 += (T)axis1.weights[i1] * sum2;
                }
                sum += (T)axis0.weights[i0] * sum1;
            }
            STORE_T(PLACE_OF(y), (item * channels + c) * points + place, sum);
        }
    }
}
