/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An element's place in order is how many others are before it. A block counts for as many elements
 * as a warp has lanes: its warps share the others among them, so that a line of some hundred
 * elements keeps some tens of blocks busy. This stands before the texts that rank (CMakeLists.txt).
 */
#define OWN (WARP * LANE_COUNT + LANE)

/* Of the keys that the block's threads have put into `keys`, of the elements from number `first`
 * on: how many of the warp's are before the element of this key and number. Smaller keys are, and
 * of equal ones lower numbers. */
SCALAR_FN int count_before(SHARED_PLACE(T_BITS) keys, int first, T_BITS key, int number)
{
    const int own = WARP * LANE_COUNT;
    int before = 0;
    UNROLL for (int other = 0; other < LANE_COUNT; other++)
    {
        const T_BITS others = keys[own + other];
        before += others < key || (others == key && first + own + other < number);
    }
    return before;
}

/* Of what the warps have counted for their lanes: to threads of the first warp the sum. What was in
 * `counts` before may have been read until here. */
SCALAR_FN int add_warps(SHARED_PLACE(int) counts, int own)
{
    MEET;
    counts[OWN] = own;
    MEET;
    for (int warp = 1; warp < WARP_COUNT && WARP == 0; warp++)
        own += counts[warp * LANE_COUNT + LANE];
    return own;
}
