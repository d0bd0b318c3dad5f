/* SPDX-License-Identifier: Apache-2.0 */
/* Adds the bias of its channel to each of `count` elements, which are in planes of `plane`. */
KERNEL k0(GIVEN(RESULT, y), GIVEN(OPERAND, bias), int64_t count, int64_t plane, int64_t channels)
{
    AFTER_OTHERS;
    for (int64_t i = THREAD; i < count; i += ALL_THREADS)
        STORE_T(PLACE_OF(y), i,
                LOAD_T(PLACE_OF(y), i) + LOAD_T(PLACE_OF(bias), i / plane % channels));
}
