/* SPDX-License-Identifier: Apache-2.0 */
/* What a sum becomes in Gemm's result: alpha * sum + beta * c, where there is a c. Rounded each. */
SCALAR_FN T finish(T sum, int64_t alpha, int64_t with_c, T c, int64_t beta)
{
    const T scaled = OF_BITS(alpha) * sum;
    return with_c ? scaled + OF_BITS(beta) * c : scaled;
}

/* `c` at an element, of which such steps away are others: 0 where there is none. */
SCALAR_FN T load_c(OPERAND_IN_PLACE c, int64_t with_c, int64_t at)
{
    return with_c ? LOAD_T(c, at) : 0;
}

/* What a sum of Conv becomes: with its bias, then with what is `added` at the element, then not
 * less than 0; each of it is rounded to what elements are. */
#define ADDS 1
#define CLIPS 2
#define ROUNDED(x) T_OF(T_TO(x))
SCALAR_FN T follow(T sum, OPERAND_IN_PLACE added, int64_t at, int64_t follows)
{
    T value = ROUNDED(sum);
    if (follows & ADDS)
        value = ROUNDED(value + LOAD_T(added, at));
    return follows & CLIPS && value < 0 ? 0 : value;
}
