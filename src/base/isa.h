/* SPDX-License-Identifier: Apache-2.0 */
/* Which instruction set this machine's vectors have. */
#ifndef TSSA_BASE_ISA_H
#define TSSA_BASE_ISA_H

#include <stddef.h>

/* Levels of x86-64's ABI; other processors have the lowest only. */
enum isa {
    ISA_BASE, /* what the compiler was told to assume */
    ISA_V2,   /* x86-64-v2: SSE4.2 */
    ISA_V3,   /* x86-64-v3: AVX2 and fused multiply-add */
    ISA_V4,   /* x86-64-v4: AVX-512 */
};

/*
 * The highest level that this machine and the environment allow: TSSA_ISA, when it is "base", "v2"
 * or "v3", limits it. Asked once per process. Any thread.
 */
enum isa isa_level(void);

/*
 * Text that differs between processors which differ in model or instructions; cut at `size` bytes.
 */
void isa_describe(char *text, size_t size);

#endif
