/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inner loops of every element-wise row for one element type. A file elementwise_TYPE.c defines
 *
 *     T            the C type of an element
 *     T_DTYPE      its number, TSSA_FLOAT
 *     T_TABLE      the table to fill, ew_loops_f32
 *     one of T_IS_FLOAT, T_IS_SIGNED, T_IS_UNSIGNED; for integers T_LOWEST, T_HIGHEST
 *     T_IS_FLOAT32 for float, whose functions are of their own
 *     T_BY_LEVEL   for integers whose rows are compiled once per instruction set, too: of 4 bytes
 *                  and more, for which there are few instructions without SSE4
 *     T_WIDE       for integers: an unsigned type of 32 bits at least and T's width at least
 *
 * and includes this file. The scalar operations of ir/scalar.def are functions with the names that
 * the rows use. A row is compiled for every type, and of floats once per instruction set; the table
 * drops what the row's element types exclude.
 */
#include "base/clones.h"
#include "ir/scalar/ops.h"
#include "kernels/cpu/elementwise/elementwise.h"
#include "kernels/cpu/lib/farthest.h"

/* No element depends on another one, also when out is one of the operands. */
#if defined(__clang__)
#define INDEPENDENT
#else
#define INDEPENDENT _Pragma("GCC ivdep")
#endif

#define P(i) ((T)uniform->params[i])
#define COUNT ((T)uniform->count)
/* Decided before the loop: see LOOP. Rows ask parameter 0 only. */
#define WHEN(i, a, b) WHEN_##i(a, b)
#define WHEN_0(a, b) (when ? (a) : (b))
#define OPT(operand, a) (uniform->present[(#operand)[0] - 'X'] ? (operand) : (a))
#define LAST(a, b) (uniform->last ? (a) : (b))

/* ---- Loops ----------------------------------------------------------------------------------- */

/* A byte of a BOOL tensor is true when it is not 0. */
#if defined(T_IS_BOOL)
#define LOAD(element) ((T)((element) != 0))
#else
#define LOAD(element) (element)
#endif

#define LOOP_ONCE(body)                                                                            \
    INDEPENDENT                                                                                    \
    for (int64_t i = 0; i < n; i++)                                                                \
        body;
/* A row that has no WHEN keeps one of the two loops. */
#define LOOP(id, body)                                                                             \
    do {                                                                                           \
        if (chooses_##id() && uniform->params[0] != 0) {                                           \
            const bool when = true;                                                                \
            LOOP_ONCE(body)                                                                        \
        } else {                                                                                   \
            const bool when = false;                                                               \
            LOOP_ONCE(body)                                                                        \
        }                                                                                          \
    } while (0)

/*
 * exp of X or -|X| alone, sigmoid, and sin, cos and tan, are computed with fewer operations, and
 * the same bits, in parts all of whose elements are near 0. Whether they are is asked on the way,
 * which costs nothing beside the arithmetic, and a part that is not is computed once more; in
 * place, where its elements would be gone, it is asked before.
 */
#if defined(T_IS_FLOAT32)
#define EXP(a) (near ? f32_exp_near(a) : f32_exp(a))
#define SIGMOID(a) (near ? f32_sigmoid_near(a) : f32_sigmoid(a))
#define SIN(a) (near ? f32_sin_near(a) : f32_sin(a))
#define COS(a) (near ? f32_cos_near(a) : f32_cos(a))
#define TAN(a) (near ? f32_tan_near(a) : f32_tan(a))
/* The bits of the largest magnitude that is near to a row of this text, 0 where none is. */
#define SAYS(text, words) (__builtin_strstr(text, words) != NULL)
#define IS(text, words) (__builtin_strcmp(text, words) == 0)
#define NEAR_OF(text)                                                                              \
    (SAYS(text, "EXP(X)") || SAYS(text, "EXP(NEG(ABS(X)))")           ? F32_EXP_NEAR               \
     : IS(text, "SIGMOID(X)")                                         ? F32_EXP_NEAR               \
     : IS(text, "SIN(X)") || IS(text, "COS(X)") || IS(text, "TAN(X)") ? F32_TRIG_NEAR              \
                                                                      : 0)
#define NEAR_PART 1024
#define LOOP_NEAR(id)                                                                              \
    do {                                                                                           \
        for (int64_t begin = 0, end; begin < n; begin = end) {                                     \
            end = n - begin < NEAR_PART ? n : begin + NEAR_PART;                                   \
            uint32_t farthest = 0;                                                                 \
            if ((const void *)o != x || farthest_of(x + begin, end - begin, 0) <= near_##id()) {   \
                INDEPENDENT                                                                        \
                for (int64_t i = begin; i < end; i++) {                                            \
                    const float a = x[i];                                                          \
                    farthest = farther(farthest, a);                                               \
                    o[i] = evaluate_near_##id(a, 0, 0, uniform, false, true);                      \
                }                                                                                  \
                if (farthest <= near_##id())                                                       \
                    continue;                                                                      \
            }                                                                                      \
            INDEPENDENT                                                                            \
            for (int64_t i = begin; i < end; i++)                                                  \
                o[i] = evaluate_near_##id(x[i], 0, 0, uniform, false, false);                      \
        }                                                                                          \
    } while (0)
#else
#define NEAR_OF(text) 0
#define LOOP_NEAR(id) (void)0
#endif

#define LOOP_PARAMS                                                                                \
    (const struct ew_uniform *shared, int64_t n, void *out, int64_t out_step,                      \
     const void *const *in, const int64_t *in_step)
#if !defined(T_IS_FLOAT) && !defined(T_BY_LEVEL)
#define LOOP_FUNCTION(name) static void name LOOP_PARAMS
#else
#define LOOP_FUNCTION(name)                                                                        \
    VECTOR_PROCEDURE(name, LOOP_PARAMS, (shared, n, out, out_step, in, in_step))
#endif

#define LOOP_BEGIN(id, R)                                                                          \
    LOOP_FUNCTION(loop_##id)                                                                       \
    {                                                                                              \
        const struct ew_uniform own = *shared, *uniform = &own;                                    \
        R *o = out;                                                                                \
        const int64_t so = out_step;                                                               \
        const T *x = in[0];                                                                        \
        const int64_t sx = in_step[0];

#define LOOPS_1(id, R)                                                                             \
    LOOP_BEGIN(id, R)                                                                              \
    if (so == 1 && sx == 1 && near_##id())                                                         \
        LOOP_NEAR(id);                                                                             \
    else if (so == 1 && sx == 1)                                                                   \
        LOOP(id, o[i] = evaluate_##id(LOAD(x[i]), 0, 0, uniform, when));                           \
    else                                                                                           \
        LOOP(id, o[i * so] = evaluate_##id(LOAD(x[i * sx]), 0, 0, uniform, when));                 \
    }

#define LOOPS_2(id, R)                                                                             \
    LOOP_BEGIN(id, R)                                                                              \
    const T *y = in[1];                                                                            \
    const int64_t sy = in_step[1];                                                                 \
    if (so == 1 && sx == 1 && sy == 1) {                                                           \
        LOOP(id, o[i] = evaluate_##id(LOAD(x[i]), LOAD(y[i]), 0, uniform, when));                  \
    } else if (so == 1 && sx == 1 && sy == 0) {                                                    \
        const T b = LOAD(*y);                                                                      \
        LOOP(id, o[i] = evaluate_##id(LOAD(x[i]), b, 0, uniform, when));                           \
    } else if (so == 1 && sx == 0 && sy == 1) {                                                    \
        const T a = LOAD(*x);                                                                      \
        LOOP(id, o[i] = evaluate_##id(a, LOAD(y[i]), 0, uniform, when));                           \
    } else {                                                                                       \
        LOOP(id, o[i * so] = evaluate_##id(LOAD(x[i * sx]), LOAD(y[i * sy]), 0, uniform, when));   \
    }                                                                                              \
    }
/* IR_VARIADIC: a fold, two operands at a time. */
#define LOOPS_255(id, R) LOOPS_2(id, R)
_Static_assert(IR_VARIADIC == 255, "the macro above is named after the number");

#define LOOPS_3(id, R)                                                                             \
    LOOP_BEGIN(id, R)                                                                              \
    const T *y = in[1], *z = in[2];                                                                \
    const int64_t sy = in_step[1], sz = in_step[2];                                                \
    if (so == 1 && sx == 1 && sy == 0 && sz == 0) {                                                \
        const T b = LOAD(*y), c = LOAD(*z);                                                        \
        LOOP(id, o[i] = evaluate_##id(LOAD(x[i]), b, c, uniform, when));                           \
    } else {                                                                                       \
        LOOP(id, o[i * so] = evaluate_##id(LOAD(x[i * sx]), LOAD(y[i * sy]), LOAD(z[i * sz]),      \
                                           uniform, when));                                        \
    }                                                                                              \
    }

/* EW_WHERE moves elements without reading them: elementwise_where.c. */
#define DEFINE(id, operands, R, expression, text)                                                  \
    INLINE bool chooses_##id(void)                                                                 \
    {                                                                                              \
        return __builtin_strstr(text, "WHEN(") != NULL;                                            \
    }                                                                                              \
    INLINE uint32_t near_##id(void)                                                                \
    {                                                                                              \
        return NEAR_OF(text);                                                                      \
    }                                                                                              \
    INLINE R evaluate_near_##id(T X, T Y, T Z, const struct ew_uniform *uniform, bool when,        \
                                bool near)                                                         \
    {                                                                                              \
        (void)X, (void)Y, (void)Z, (void)uniform, (void)when, (void)near;                          \
        return (R)(expression);                                                                    \
    }                                                                                              \
    INLINE R evaluate_##id(T X, T Y, T Z, const struct ew_uniform *uniform, bool when)             \
    {                                                                                              \
        return evaluate_near_##id(X, Y, Z, uniform, when, false);                                  \
    }                                                                                              \
    LOOPS_##operands(id, R)
#define DEFINE_EW_SAME(id, operands, expression, text) DEFINE(id, operands, T, expression, text)
#define DEFINE_EW_BOOL(id, operands, expression, text)                                             \
    DEFINE(id, operands, uint8_t, expression, text)
#define DEFINE_EW_FIRST(id, operands, expression, text) DEFINE(id, operands, T, expression, text)
#define DEFINE_EW_WHERE(id, operands, expression, text)

#define OP(...)
#define EW(id, versions, min, max, types, result, params, expression)                              \
    DEFINE_##result(id, max, expression, #expression)
#include "ir/ops.def"
#undef EW

#define ENTRY_EW_SAME(id, types) [IR_OP_##id] = dtype_bits(types) ? loop_##id : NULL,
#define ENTRY_EW_BOOL(id, types) ENTRY_EW_SAME(id, types)
#define ENTRY_EW_FIRST(id, types) ENTRY_EW_SAME(id, types)
#define ENTRY_EW_WHERE(id, types)
#define dtype_bits(types) (((types) >> T_DTYPE & 1) != 0)

const ew_loop T_TABLE[IR_OP_COUNT] = {
#define EW(id, versions, min, max, types, result, params, expression) ENTRY_##result(id, types)
#include "ir/ops.def"
#undef EW
#undef OP
};
