/* SPDX-License-Identifier: Apache-2.0 */
/* k0 adds the bias of its channel to each of `count` elements, which are in planes of `plane`. */
KERNEL k0(GIVEN(RESULT, y), GIVEN(OPERAND, bias), int64_t count, int64_t plane, int64_t channels)
{
    AFTER_OTHERS;
    for (int64_t i = THREAD; i < count; i += ALL_THREADS)
        STORE_T(PLACE_OF(y), i,
                LOAD_T(PLACE_OF(y), i) + LOAD_T(PLACE_OF(bias), i / plane % channels));
}

/* What follows a convolution that is there, where it lies. */
KERNEL k1(GIVEN(RESULT, y), GIVEN(OPERAND, added), int64_t count, int64_t follows)
{
    AFTER_OTHERS;
    for (int64_t i = THREAD; i < count; i += ALL_THREADS)
        STORE_T(PLACE_OF(y), i, follow(LOAD_T(PLACE_OF(y), i), PLACE_OF(added), i, follows));
}
