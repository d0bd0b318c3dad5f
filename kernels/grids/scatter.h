/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is written at places that indices tell, in three launches: where each update goes, which of
 * them another one writes over, and the writing. T is a word of the elements' size.
 */
#define AT(i) ((i) * (int64_t)sizeof(int64_t))

/* An index of an axis, -1 where it is out of range, which is noted. */
SCALAR_FN int64_t find(OPERAND_IN_PLACE indices, int64_t i, int64_t wide, int64_t limit,
                       RESULT_IN_PLACE note)
{
    const int64_t given = wide ? LOAD(int64_t, indices, AT(i))
                               : LOAD(int32_t, indices, i * (int64_t)sizeof(int32_t)),
                  index = given < 0 ? given + limit : given;
    if (IS_IN(index, limit))
        return index;
    STORE(uint8_t, note, 0, 1);
    return -1;
}

/* Of tuples of indices of the first axes: the number of the block, or -1. */
KERNEL k0(GIVEN(OPERAND, indices), GIVEN(RESULT, places), GIVEN(RESULT, note), int64_t count,
          int64_t depth, int64_t wide, AXES(d), AXES(s))
{
    AFTER_OTHERS;
    const int64_t dims[RANK] = {OF_AXES(d)}, steps[RANK] = {OF_AXES(s)};
    for (int64_t i = THREAD; i < count; i += ALL_THREADS) {
        int64_t place = 0;
        for (int64_t axis = 0; axis < depth; axis++) {
            const int64_t index =
                find(PLACE_OF(indices), i * depth + axis, wide, dims[axis], PLACE_OF(note));
            place = index < 0 || place < 0 ? -1 : place + index * steps[axis];
        }
        STORE(int64_t, PLACE_OF(places), AT(i), place);
    }
}

/* Of indices along one axis, of which there are so many in a tensor of these dims. */
KERNEL k1(GIVEN(OPERAND, indices), GIVEN(RESULT, places), GIVEN(RESULT, note), int64_t count,
          int64_t axis, int64_t limit, int64_t wide, AXES(d), AXES(s))
{
    AFTER_OTHERS;
    const int64_t dims[RANK] = {OF_AXES(d)}, steps[RANK] = {OF_AXES(s)};
    for (int64_t i = THREAD; i < count; i += ALL_THREADS) {
        const int64_t index = find(PLACE_OF(indices), i, wide, limit, PLACE_OF(note));
        int64_t place = 0, left = i;
        for (int a = RANK - 1; a >= 0; a--) {
            place += (a == axis ? index : left % dims[a]) * steps[a];
            left /= dims[a];
        }
        STORE(int64_t, PLACE_OF(places), AT(i), index < 0 ? -1 : place);
    }
}

/* The places but for those that a later update has, too, of `along` that are `inner` from each
 * other: -1. */
KERNEL k2(GIVEN(OPERAND, places), GIVEN(RESULT, last), int64_t count, int64_t along, int64_t inner)
{
    AFTER_OTHERS;
    for (int64_t i = THREAD; i < count; i += ALL_THREADS) {
        int64_t place = LOAD(int64_t, PLACE_OF(places), AT(i));
        const int64_t later = along - 1 - i / inner % along;
        for (int64_t k = 1; k <= later && place >= 0; k++)
            if (LOAD(int64_t, PLACE_OF(places), AT(i + k * inner)) == place)
                place = -1;
        STORE(int64_t, PLACE_OF(last), AT(i), place);
    }
}

KERNEL k3(GIVEN(OPERAND, updates), GIVEN(OPERAND, last), GIVEN(RESULT, y), int64_t count,
          int64_t width)
{
    AFTER_OTHERS;
    for (int64_t i = THREAD; i < count; i += ALL_THREADS) {
        const int64_t place = LOAD(int64_t, PLACE_OF(last), AT(i / width));
        if (place >= 0)
            STORE(T, PLACE_OF(y), (place * width + i % width) * (int64_t)sizeof(T),
                  LOAD(T, PLACE_OF(updates), i * (int64_t)sizeof(T)));
    }
}
