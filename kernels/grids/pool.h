/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MaxPool of up to three axes, of which a thread computes an element: of elements that are equal
 * the first one, and what is no number if there is such; `lowest` of a window that meets nothing.
 */
#ifdef T_IS_FLOAT
#define LOWEST OF_BITS(lowest)
#define IS_NUMBER(x) ((x) == (x))
#else
#define LOWEST ((T)lowest)
#define IS_NUMBER(x) 1
#endif

KERNEL k0(GIVEN(OPERAND, x), GIVEN(RESULT, y), int64_t planes, int64_t in0, int64_t in1,
          int64_t in2, int64_t out0, int64_t out1, int64_t out2, int64_t taps0, int64_t taps1,
          int64_t taps2, int64_t stride0, int64_t stride1, int64_t stride2, int64_t dilation0,
          int64_t dilation1, int64_t dilation2, int64_t pad0, int64_t pad1, int64_t pad2,
          int64_t lowest)
{
    AFTER_OTHERS;
    const int64_t outs = out0 * out1 * out2;
    for (int64_t i = THREAD; i < planes * outs; i += ALL_THREADS) {
        const int64_t plane = i / outs, place = i % outs;
        const int64_t from0 = place / out2 / out1 * stride0 - pad0,
                      from1 = place / out2 % out1 * stride1 - pad1,
                      from2 = place % out2 * stride2 - pad2;
        T most = LOWEST;
        for (int64_t t = 0; t < taps0 * taps1; t++) {
            const int64_t at0 = from0 + t / taps1 * dilation0, at1 = from1 + t % taps1 * dilation1,
                          row = ((plane * in0 + at0) * in1 + at1) * in2;
            int64_t at2 = from2;
            if (!IS_IN(at0, in0) || !IS_IN(at1, in1))
                continue;
            for (int64_t t2 = 0; t2 < taps2; t2++, at2 += dilation2) {
                const T value =
                    IS_IN(at2, in2) ? LOAD(T, PLACE_OF(x), (row + at2) * (int64_t)sizeof(T)) : most;
                most = value > most || !IS_NUMBER(value) ? value : most;
            }
        }
        STORE(T, PLACE_OF(y), i * (int64_t)sizeof(T), most);
    }
}

/* And the number of the element among all of x: the one that is found first, -1 of none. */
KERNEL k1(GIVEN(OPERAND, x), GIVEN(RESULT, y), GIVEN(RESULT, indices), int64_t planes, int64_t in0,
          int64_t in1, int64_t in2, int64_t out0, int64_t out1, int64_t out2, int64_t taps0,
          int64_t taps1, int64_t taps2, int64_t stride0, int64_t stride1, int64_t stride2,
          int64_t dilation0, int64_t dilation1, int64_t dilation2, int64_t pad0, int64_t pad1,
          int64_t pad2, int64_t lowest, int64_t with_y, int64_t column_major)
{
    AFTER_OTHERS;
    const int64_t outs = out0 * out1 * out2;
    for (int64_t i = THREAD; i < planes * outs; i += ALL_THREADS) {
        const int64_t plane = i / outs, place = i % outs, first = plane * in0 * in1 * in2;
        const int64_t from0 = place / out2 / out1 * stride0 - pad0,
                      from1 = place / out2 % out1 * stride1 - pad1,
                      from2 = place % out2 * stride2 - pad2;
        T most = LOWEST;
        int64_t index = -1;
        for (int64_t t = 0; t < taps0 * taps1; t++) {
            const int64_t at0 = from0 + t / taps1 * dilation0, at1 = from1 + t % taps1 * dilation1,
                          row = (at0 * in1 + at1) * in2;
            int64_t at2 = from2;
            if (!IS_IN(at0, in0) || !IS_IN(at1, in1))
                continue;
            for (int64_t t2 = 0; t2 < taps2; t2++, at2 += dilation2) {
                if (!IS_IN(at2, in2))
                    continue;
                const T value = LOAD(T, PLACE_OF(x), (first + row + at2) * (int64_t)sizeof(T));
                if (value > most || (!IS_NUMBER(value) && IS_NUMBER(most)) || index < 0) {
                    most = value;
                    index = column_major ? (at2 * in1 + at1) * in0 + at0 : row + at2;
                }
            }
        }
        if (with_y)
            STORE(T, PLACE_OF(y), i * (int64_t)sizeof(T), most);
        STORE(int64_t, PLACE_OF(indices), i * (int64_t)sizeof(int64_t),
              index < 0 ? index : first + index);
    }
}
