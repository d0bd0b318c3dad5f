/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Resize by nearest elements, which are words. Of an axis that changes, `places` has from f on
 * which element of x each element is, or -1: `fill`; f is -1 of others. Elements of x lie s from
 * each other.
 */
KERNEL k0(GIVEN(OPERAND, x), GIVEN(OPERAND, places), GIVEN(RESULT, y), int64_t count, int64_t fill,
          AXES(d), AXES(s), AXES(f))
{
    AFTER_OTHERS;
    const int64_t dims[RANK] = {OF_AXES(d)}, steps[RANK] = {OF_AXES(s)},
                  firsts[RANK] = {OF_AXES(f)};
    for (int64_t i = THREAD; i < count; i += ALL_THREADS) {
        int64_t from = 0, left = i;
        int is_there = 1;
        for (int axis = RANK - 1; axis >= 0; axis--) {
            int64_t at = left % dims[axis];
            left /= dims[axis];
            if (firsts[axis] >= 0)
                at =
                    LOAD(int64_t, PLACE_OF(places), (firsts[axis] + at) * (int64_t)sizeof(int64_t));
            is_there = is_there && at >= 0;
            from += at * steps[axis];
        }
        STORE(T, PLACE_OF(y), i * (int64_t)sizeof(T),
              is_there ? LOAD(T, PLACE_OF(x), from * (int64_t)sizeof(T)) : (T)fill);
    }
}
