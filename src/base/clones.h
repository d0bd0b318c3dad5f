/* SPDX-License-Identifier: Apache-2.0 */
/* Functions compiled for several instruction sets, of which each call takes the machine's best. */
#ifndef TSSA_BASE_CLONES_H
#define TSSA_BASE_CLONES_H

#include "base/isa.h"

/*
 * Before a hot loop's body:
 *
 *     VECTOR_FUNCTION(float, sum, (const float *x, int64_t n), (x, n))
 *     {
 *         ...
 *     }
 *
 * defines a static function `sum` of these parameters, compiled once per level of isa.h;
 * VECTOR_PROCEDURE is for functions without a result. All variants give the same bits, because the
 * compiler neither fuses nor reorders floating-point operations here. What the body calls must be
 * inlined to become vectors, too.
 *
 * Not target_clones: clang 14 knows none for x86-64-v3, and what those need of the loader
 * sanitizers cannot have.
 */
/*
 * Bodies that say how wide their vectors are:
 *
 *     VECTOR_BY_WIDTH(sum, (float *x), (x))
 *
 * defines a static function `sum` of inline functions sum_of_32, of 32 bytes, and sum_of_64, which
 * is taken where there is AVX-512.
 */
#if defined(__x86_64__)
#define VECTOR_V3 __attribute__((target("arch=x86-64-v3")))
#if defined(__clang__)
#define VECTOR_V4 __attribute__((target("arch=x86-64-v4")))
#else
#define VECTOR_V4 __attribute__((target("arch=x86-64-v4,prefer-vector-width=512")))
#endif

#define VECTOR_VARIANT(target, type, name, variant, params, statement)                             \
    target static type name##_##variant params                                                     \
    {                                                                                              \
        statement;                                                                                 \
    }
#define VECTOR_FUNCTION(type, name, params, args)                                                  \
    static inline __attribute__((always_inline)) type name##_body params;                          \
    VECTOR_VARIANT(, type, name, base, params, return name##_body args)                            \
    VECTOR_VARIANT(VECTOR_V3, type, name, v3, params, return name##_body args)                     \
    VECTOR_VARIANT(VECTOR_V4, type, name, v4, params, return name##_body args)                     \
    static inline type name params                                                                 \
    {                                                                                              \
        enum isa level = isa_level();                                                              \
        if (level == ISA_V4)                                                                       \
            return name##_v4 args;                                                                 \
        return level == ISA_V3 ? name##_v3 args : name##_base args;                                \
    }                                                                                              \
    static inline __attribute__((always_inline)) type name##_body params
#define VECTOR_CHOICE(name, params, args)                                                          \
    static inline void name params                                                                 \
    {                                                                                              \
        enum isa level = isa_level();                                                              \
        if (level == ISA_V4)                                                                       \
            name##_v4 args;                                                                        \
        else if (level == ISA_V3)                                                                  \
            name##_v3 args;                                                                        \
        else                                                                                       \
            name##_base args;                                                                      \
    }
#define VECTOR_PROCEDURE(name, params, args)                                                       \
    static inline __attribute__((always_inline)) void name##_body params;                          \
    VECTOR_VARIANT(, void, name, base, params, name##_body args)                                   \
    VECTOR_VARIANT(VECTOR_V3, void, name, v3, params, name##_body args)                            \
    VECTOR_VARIANT(VECTOR_V4, void, name, v4, params, name##_body args)                            \
    VECTOR_CHOICE(name, params, args)                                                              \
    static inline __attribute__((always_inline)) void name##_body params
#define VECTOR_BY_WIDTH(name, params, args)                                                        \
    VECTOR_VARIANT(, void, name, base, params, name##_of_32 args)                                  \
    VECTOR_VARIANT(VECTOR_V3, void, name, v3, params, name##_of_32 args)                           \
    VECTOR_VARIANT(VECTOR_V4, void, name, v4, params, name##_of_64 args)                           \
    VECTOR_CHOICE(name, params, args)
#else
#define VECTOR_FUNCTION(type, name, params, args) static type name params
#define VECTOR_PROCEDURE(name, params, args) static void name params
#define VECTOR_BY_WIDTH(name, params, args)                                                        \
    static inline void name params                                                                 \
    {                                                                                              \
        name##_of_32 args;                                                                         \
    }
#endif

#endif
