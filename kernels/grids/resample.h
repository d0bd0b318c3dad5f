/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resize by sums of elements times weights, along up to three axes: `axis` 0 first, from what is
 * there, then 1, from what that gives, then 2. What comes to an element is computed for it alone.
 * Of an axis, and of element number o along it, the `taps` elements of x are in `places`, and their
 * weights in `weights`, from `first` + o * taps on; the first place is -1 where the element is
 * `other`. An element of weight 0 counts as nothing, even if it is no number. Elements of x lie s
 * from each other. An axis that is not there is -1, of one tap of weight 1.
 */
#define PLACE_AT(i) LOAD(int64_t, PLACE_OF(places), (i) * (int64_t)sizeof(int64_t))
#define WEIGHT_AT(i) LOAD(T, PLACE_OF(weights), (i) * (int64_t)sizeof(T))

KERNEL k0(GIVEN(OPERAND, x), GIVEN(OPERAND, places), GIVEN(OPERAND, weights), GIVEN(RESULT, y),
          int64_t count, int64_t other, int64_t axis0, int64_t axis1, int64_t axis2, int64_t taps0,
          int64_t taps1, int64_t taps2, int64_t first0, int64_t first1, int64_t first2, AXES(d),
          AXES(s))
{
    AFTER_OTHERS;
    const int64_t dims[RANK] = {OF_AXES(d)}, steps[RANK] = {OF_AXES(s)};
    for (int64_t i = THREAD; i < count; i += ALL_THREADS) {
        int64_t from = 0, left = i, at0 = first0, at1 = first1, at2 = first2;
        int64_t step0 = 0, step1 = 0, step2 = 0;
        for (int axis = RANK - 1; axis >= 0; axis--) {
            const int64_t at = left % dims[axis], step = steps[axis];
            left /= dims[axis];
            if (axis == axis0) {
                at0 += at * taps0;
                step0 = step;
            } else if (axis == axis1) {
                at1 += at * taps1;
                step1 = step;
            } else if (axis == axis2) {
                at2 += at * taps2;
                step2 = step;
            } else {
                from += at * step;
            }
        }
        const int is_there0 = PLACE_AT(at0) >= 0, is_there1 = PLACE_AT(at1) >= 0,
                  is_there2 = PLACE_AT(at2) >= 0;
        T sum2 = is_there2 ? 0 : OF_BITS(other);
        for (int64_t k2 = at2; is_there2 && k2 < at2 + taps2; k2++) {
            T sum1 = is_there1 ? 0 : OF_BITS(other);
            if (WEIGHT_AT(k2) == 0)
                continue;
            for (int64_t k1 = at1; is_there1 && k1 < at1 + taps1; k1++) {
                const int64_t row = from + PLACE_AT(k2) * step2 + PLACE_AT(k1) * step1;
                T sum0 = is_there0 ? 0 : OF_BITS(other);
                if (WEIGHT_AT(k1) == 0)
                    continue;
                for (int64_t k0 = at0; is_there0 && k0 < at0 + taps0; k0++)
                    if (WEIGHT_AT(k0) != 0)
                        sum0 +=
                            WEIGHT_AT(k0) *
                            LOAD(T, PLACE_OF(x), (row + PLACE_AT(k0) * step0) * (int64_t)sizeof(T));
                sum1 += WEIGHT_AT(k1) * sum0;
            }
            sum2 += WEIGHT_AT(k2) * sum1;
        }
        STORE(T, PLACE_OF(y), i * (int64_t)sizeof(T), sum2);
    }
}
