/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bits of an element that are less for what comes earlier: the smallest, or where the largest are
 * wanted these. NaN is larger than all else, and all of them are equal, as zeros of both signs are.
 * This stands before the texts that put elements in order (CMakeLists.txt).
 */
SCALAR_FN T_BITS key_of(T x, int64_t largest)
{
    const T_BITS sign = (T_BITS)((T_BITS)1 << (8 * sizeof(T) - 1));
#ifdef T_IS_FLOAT
    const T_BITS bits = BITS_OF(x);
    T_BITS key = (T_BITS)-1;
    if ((T_BITS)(bits << 1) == 0)
        key = sign; /* -0, too */
    else if (x == x)
        key = bits & sign ? (T_BITS)~bits : bits | sign;
#else
    const T_BITS key = (T_BITS)((T_BITS)x ^ ((T)-1 < 0 ? sign : 0));
#endif
    return (T_BITS)(largest ? ~key : key);
}
