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
