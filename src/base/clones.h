/* SPDX-License-Identifier: Apache-2.0 */
/* Functions compiled for several instruction sets, of which the machine's best is taken at load time. */
#ifndef TSSA_BASE_CLONES_H
#define TSSA_BASE_CLONES_H

#include <limits.h> /* __GLIBC__ */

/*
 * Before a hot loop's function. All variants give the same bits, because the compiler neither fuses nor
 * reorders floating-point operations here. Needs gcc and glibc's indirect functions; instrumented builds
 * cannot have them, since those are resolved before the sanitizer's runtime starts.
 */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) &&       \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define VECTOR_CLONES __attribute__((target_clones("default", "avx2", "arch=x86-64-v4")))
#else
#define VECTOR_CLONES
#endif

#endif
