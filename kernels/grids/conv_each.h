/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolutions of up to three axes, of which a thread computes an element: k0 with the terms of
 * conv.h, in their order, for groups of few filters, of which a block would have no tile. k1 is
 * ConvTranspose: an element meets the kernel's positions that a stride of its own leads to, in the
 * same order, of every stride / gcd(stride, dilation) positions one, or none.
 */

KERNEL k0(GIVEN(OPERAND, x), GIVEN(OPERAND, w), GIVEN(OPERAND, bias), GIVEN(OPERAND, added),
          GIVEN(RESULT, y), int64_t batch, int64_t groups, int64_t channels, int64_t filters,
          int64_t in0, int64_t in1, int64_t in2, int64_t out0, int64_t out1, int64_t out2,
          int64_t taps0, int64_t taps1, int64_t taps2, int64_t stride0, int64_t stride1,
          int64_t stride2, int64_t dilation0, int64_t dilation1, int64_t dilation2, int64_t pad0,
          int64_t pad1, int64_t pad2, int64_t with_bias, int64_t follows)
{
    AFTER_OTHERS;
    const int64_t outs = out0 * out1 * out2, all = batch * groups * filters * outs;
    for (int64_t i = THREAD; i < all; i += ALL_THREADS) {
        const int64_t place = i % outs, filter = i / outs % (groups * filters),
                      first = i / outs / filters * channels; /* of all items' channels */
        const int64_t from0 = place / out2 / out1 * stride0 - pad0,
                      from1 = place / out2 % out1 * stride1 - pad1,
                      from2 = place % out2 * stride2 - pad2;
        int64_t weight = filter * channels * taps0 * taps1 * taps2;
        T sum = 0;
        for (int64_t c = first; c < first + channels; c++)
            for (int64_t t = 0; t < taps0 * taps1; t++) {
                const int64_t at0 = from0 + t / taps1 * dilation0,
                              at1 = from1 + t % taps1 * dilation1,
                              row = ((c * in0 + at0) * in1 + at1) * in2;
                const int row_is_there = IS_IN(at0, in0) && IS_IN(at1, in1);
                int64_t at2 = from2;
                for (int64_t t2 = 0; t2 < taps2; t2++, at2 += dilation2, weight++)
                    sum = FMA(LOAD_T(PLACE_OF(w), weight),
                              row_is_there && IS_IN(at2, in2) ? LOAD_T(PLACE_OF(x), row + at2) : 0,
                              sum);
            }
        if (with_bias)
            sum += load_c(PLACE_OF(bias), 1, filter);
        STORE_T(PLACE_OF(y), i, follow(sum, PLACE_OF(added), i, follows));
    }
}

/* The first position of an axis that is a multiple of the stride away from `place`; `taps`: none
 * is. */
SCALAR_FN int64_t first_tap(int64_t place, int64_t taps, int64_t stride, int64_t dilation)
{
    int64_t tap = 0;
    while (tap < taps && (place - tap * dilation) % stride != 0)
        tap++;
    return tap;
}

/* Such positions are `next` apart, and what they meet is `back`. */
KERNEL k1(GIVEN(OPERAND, x), GIVEN(OPERAND, w), GIVEN(OPERAND, bias), GIVEN(OPERAND, added),
          GIVEN(RESULT, y), int64_t batch, int64_t groups, int64_t channels, int64_t filters,
          int64_t in0, int64_t in1, int64_t in2, int64_t out0, int64_t out1, int64_t out2,
          int64_t taps0, int64_t taps1, int64_t taps2, int64_t stride0, int64_t stride1,
          int64_t stride2, int64_t dilation0, int64_t dilation1, int64_t dilation2, int64_t pad0,
          int64_t pad1, int64_t pad2, int64_t with_bias, int64_t follows, int64_t next0,
          int64_t next1, int64_t next2, int64_t back0, int64_t back1, int64_t back2)
{
    AFTER_OTHERS;
    const int64_t outs = out0 * out1 * out2, all = batch * groups * filters * outs;
    for (int64_t i = THREAD; i < all; i += ALL_THREADS) {
        const int64_t place = i % outs, filter = i / outs % (groups * filters),
                      first = i / outs / filters * channels; /* of all items' channels */
        const int64_t place0 = place / out2 / out1 + pad0, place1 = place / out2 % out1 + pad1,
                      place2 = place % out2 + pad2;
        const int64_t begin0 = first_tap(place0, taps0, stride0, dilation0),
                      begin1 = first_tap(place1, taps1, stride1, dilation1),
                      begin2 = first_tap(place2, taps2, stride2, dilation2);
        const int64_t from0 = (place0 - begin0 * dilation0) / stride0,
                      from1 = (place1 - begin1 * dilation1) / stride1,
                      from2 = (place2 - begin2 * dilation2) / stride2;
        T sum = 0;
        for (int64_t c = 0; c < channels; c++) {
            const int64_t weights =
                ((filter / filters * channels + c) * filters + filter % filters) * taps0;
            int64_t at0 = from0;
            for (int64_t t0 = begin0; t0 < taps0; t0 += next0, at0 -= back0) {
                int64_t at1 = from1;
                for (int64_t t1 = begin1; t1 < taps1; t1 += next1, at1 -= back1) {
                    const int64_t row = (((first + c) * in0 + at0) * in1 + at1) * in2,
                                  weight = ((weights + t0) * taps1 + t1) * taps2;
                    int64_t at2 = from2;
                    if (!IS_IN(at0, in0) || !IS_IN(at1, in1))
                        continue;
                    for (int64_t t2 = begin2; t2 < taps2; t2 += next2, at2 -= back2)
                        if (IS_IN(at2, in2))
                            sum = FMA(LOAD_T(PLACE_OF(w), weight + t2),
                                      LOAD_T(PLACE_OF(x), row + at2), sum);
                }
            }
        }
        STORE_T(PLACE_OF(y), i, with_bias ? sum + load_c(PLACE_OF(bias), 1, filter) : sum);
    }
}
