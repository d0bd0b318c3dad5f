/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AveragePool of up to three axes, of which a thread computes an element: rows of a window are
 * added up from left to right, from 0 on, then these. Padding at the end, `end`, tells how many
 * elements a window has where padding counts.
 */

/* How many of an axis' taps lie in [low, high). */
SCALAR_FN int64_t count_taps(int64_t from, int64_t taps, int64_t dilation, int64_t low,
                             int64_t high)
{
    const int64_t begin = from >= low ? 0 : (low - from + dilation - 1) / dilation,
                  end = from >= high ? 0 : (high - from + dilation - 1) / dilation,
                  last = end < taps ? end : taps;
    return last > begin ? last - begin : 0;
}

KERNEL k0(GIVEN(OPERAND, x), GIVEN(RESULT, y), int64_t planes, int64_t in0, int64_t in1,
          int64_t in2, int64_t out0, int64_t out1, int64_t out2, int64_t taps0, int64_t taps1,
          int64_t taps2, int64_t stride0, int64_t stride1, int64_t stride2, int64_t dilation0,
          int64_t dilation1, int64_t dilation2, int64_t pad0, int64_t pad1, int64_t pad2,
          int64_t end0, int64_t end1, int64_t end2, int64_t with_padding)
{
    AFTER_OTHERS;
    const int64_t outs = out0 * out1 * out2, low = with_padding ? 1 : 0;
    for (int64_t i = THREAD; i < planes * outs; i += ALL_THREADS) {
        const int64_t plane = i / outs, place = i % outs;
        const int64_t from0 = place / out2 / out1 * stride0 - pad0,
                      from1 = place / out2 % out1 * stride1 - pad1,
                      from2 = place % out2 * stride2 - pad2;
        const double count =
            (double)count_taps(from0, taps0, dilation0, -low * pad0, in0 + low * end0) *
            (double)count_taps(from1, taps1, dilation1, -low * pad1, in1 + low * end1) *
            (double)count_taps(from2, taps2, dilation2, -low * pad2, in2 + low * end2);
        T sum = 0;
        for (int64_t t = 0; t < taps0 * taps1; t++) {
            const int64_t at0 = from0 + t / taps1 * dilation0, at1 = from1 + t % taps1 * dilation1,
                          row = ((plane * in0 + at0) * in1 + at1) * in2;
            int64_t at2 = from2;
            T line = 0;
            if (!IS_IN(at0, in0) || !IS_IN(at1, in1))
                continue;
            for (int64_t t2 = 0; t2 < taps2; t2++, at2 += dilation2)
                line +=
                    IS_IN(at2, in2) ? LOAD(T, PLACE_OF(x), (row + at2) * (int64_t)sizeof(T)) : 0;
            sum += line;
        }
        STORE(T, PLACE_OF(y), i * (int64_t)sizeof(T), sum / (count > 0 ? (T)count : (T)INFINITY));
    }
}
