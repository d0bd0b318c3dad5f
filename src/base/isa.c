/* SPDX-License-Identifier: Apache-2.0 */
#include "base/isa.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__x86_64__)
#include <cpuid.h>

static bool has_v2(void)
{
    unsigned a, b, basic, extended, d;
    const unsigned CX16 = 1u << 13, LAHF = 1u;
    if (!__get_cpuid(1, &a, &b, &basic, &d) || !__get_cpuid(0x80000001, &a, &b, &extended, &d))
        return false;
    return (basic & CX16) != 0 && (extended & LAHF) != 0 && __builtin_cpu_supports("ssse3") &&
           __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt");
}

/* The compilers' question also covers whether the operating system keeps the registers. */
static bool has_v3(void)
{
    unsigned a, b, basic, extended, d;
    const unsigned MOVBE_F16C = 1u << 22 | 1u << 29, LZCNT = 1u << 5;
    if (!__get_cpuid(1, &a, &b, &basic, &d) || !__get_cpuid(0x80000001, &a, &b, &extended, &d))
        return false;
    return (basic & MOVBE_F16C) == MOVBE_F16C && (extended & LZCNT) != 0 &&
           __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
}

static bool has_v4(void)
{
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
}

static enum isa machine_level(void)
{
    if (!has_v3())
        return has_v2() ? ISA_V2 : ISA_BASE;
    return has_v4() ? ISA_V4 : ISA_V3;
}

/* What tells the processor's model and its instructions; not the number of the core that answers
 * (leaf 1, ebx). */
void isa_describe(char *text, size_t size)
{
    unsigned vendor[4] = {0}, model[4] = {0}, more[4] = {0}, most[4] = {0}, extended[4] = {0};
    __get_cpuid(0, &vendor[0], &vendor[1], &vendor[2], &vendor[3]);
    __get_cpuid(1, &model[0], &model[1], &model[2], &model[3]);
    __get_cpuid_count(7, 0, &more[0], &more[1], &more[2], &more[3]);
    __get_cpuid_count(7, 1, &most[0], &most[1], &most[2], &most[3]);
    __get_cpuid(0x80000001, &extended[0], &extended[1], &extended[2], &extended[3]);
    snprintf(text, size, "x86-64 %d %08x%08x%08x %08x%08x%08x %08x%08x%08x %08x %08x%08x",
             (int)isa_level(), vendor[1], vendor[2], vendor[3], model[0], model[2], model[3],
             more[1], more[2], more[3], most[0], extended[2], extended[3]);
}
#else
static enum isa machine_level(void)
{
    return ISA_BASE;
}

void isa_describe(char *text, size_t size)
{
    snprintf(text, size, "generic");
}
#endif

static enum isa allowed_level(void)
{
    const char *wanted = secure_getenv("TSSA_ISA");
    static const char *const names[] = {"base", "v2", "v3"};
    for (int i = 0; wanted && i < ISA_V4; i++)
        if (strcmp(wanted, names[i]) == 0)
            return (enum isa)i;
    return ISA_V4;
}

enum isa isa_level(void)
{
    static _Atomic int answer; /* 1 + the level; 0: not asked yet. Whoever asks finds the same. */
    int known = atomic_load_explicit(&answer, memory_order_relaxed);
    if (__builtin_expect(known == 0, 0)) {
        enum isa machine = machine_level(), allowed = allowed_level();
        known = 1 + (int)(machine < allowed ? machine : allowed);
        atomic_store_explicit(&answer, known, memory_order_relaxed);
    }
    return (enum isa)(known - 1);
}
