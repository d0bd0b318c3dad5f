/* SPDX-License-Identifier: Apache-2.0 */
/*
 * byte_table: y[i] = table[x[i]], of 256 bytes. One by one that is a load and a store of each byte;
 * vectors keep the table in registers:
 *
 *     AVX-512 VBMI   four registers of 64 entries: a permutation for each half, 64 bytes at a time
 *     AVX2           16 registers of 16 entries, and a shuffle for each, 32 bytes at a time
 *
 * A shuffle of AVX2 gives 0 where the index is negative, and else the entry that its low 4 bits
 * name. So the registers hold by how much (xor) 16 entries differ from the 16 before: the index
 * goes down by 16 from one to the next, saturating, and whatever is not negative yet takes part.
 * That is good for the 128 entries of indices that are not negative in the beginning, and once more
 * for the others, with their highest bit turned.
 */
#include "base/clones.h"
#include "device/kernel.h"

#ifdef VECTOR_V3
#include <immintrin.h>
#endif

extern const struct kernel cpu_kernel_byte_table;

#define ENTRIES 256
#define GRAIN 32768

static void look_up_base(const uint8_t *table, int64_t n, const uint8_t *x, uint8_t *y)
{
    for (int64_t i = 0; i < n; i++)
        y[i] = table[x[i]];
}

#ifdef VECTOR_V3
#define ROW 16 /* entries that one shuffle tells apart */
#define ROWS (ENTRIES / ROW / 2)

/* The rows of a half of the table, each but the first as what it differs by from the one before. */
VECTOR_V3 static void open_half(const uint8_t *half, __m256i *rows)
{
    __m128i before = _mm_setzero_si128();
    for (int k = 0; k < ROWS; k++) {
        const __m128i row = _mm_loadu_si128((const void *)(half + (size_t)k * ROW));
        rows[k] = _mm256_broadcastsi128_si256(_mm_xor_si128(row, before));
        before = row;
    }
}

/* Of indices that are not negative; 0 of others. */
VECTOR_V3 static inline __m256i look_up_half(const __m256i *rows, __m256i index)
{
    const __m256i step = _mm256_set1_epi8(ROW);
    __m256i found = _mm256_shuffle_epi8(rows[0], index);
    for (int k = 1; k < ROWS; k++) {
        index = _mm256_subs_epi8(index, step);
        found = _mm256_xor_si256(found, _mm256_shuffle_epi8(rows[k], index));
    }
    return found;
}

VECTOR_V3 static int64_t look_up_v3(const uint8_t *table, int64_t n, const uint8_t *x, uint8_t *y)
{
    const __m256i highest = _mm256_set1_epi8(INT8_MIN);
    __m256i low[ROWS], high[ROWS];
    int64_t i = 0;
    open_half(table, low);
    open_half(table + ENTRIES / 2, high);
    for (; i + 32 <= n; i += 32) {
        const __m256i index = _mm256_loadu_si256((const void *)(x + i));
        const __m256i found = _mm256_xor_si256(
            look_up_half(low, index), look_up_half(high, _mm256_xor_si256(index, highest)));
        _mm256_storeu_si256((void *)(y + i), found);
    }
    return i;
}

/* A vector of fewer bytes in the end. */
__attribute__((target("arch=x86-64-v4,avx512vbmi"))) static void
look_up_vbmi(const uint8_t *table, int64_t n, const uint8_t *x, uint8_t *y)
{
    const __m512i a = _mm512_loadu_si512(table), b = _mm512_loadu_si512(table + 64),
                  c = _mm512_loadu_si512(table + 128), d = _mm512_loadu_si512(table + 192);
    for (int64_t i = 0; i < n; i += 64) {
        const __mmask64 there = n - i < 64 ? ~(~0ULL << (n - i)) : ~0ULL;
        const __m512i index = _mm512_maskz_loadu_epi8(there, x + i);
        const __m512i low = _mm512_permutex2var_epi8(a, index, b),
                      high = _mm512_permutex2var_epi8(c, index, d);
        const __m512i found = _mm512_mask_blend_epi8(_mm512_movepi8_mask(index), low, high);
        _mm512_mask_storeu_epi8(y + i, there, found);
    }
}
#endif

/* In place, too: what is read of x lies behind what was written. */
static void look_up(const uint8_t *table, int64_t n, const uint8_t *x, uint8_t *y)
{
    int64_t done = 0;
#ifdef VECTOR_V3
    if (isa_level() == ISA_V4 && __builtin_cpu_supports("avx512vbmi")) {
        look_up_vbmi(table, n, x, y);
        return;
    }
    if (isa_level() >= ISA_V3)
        done = look_up_v3(table, n, x, y);
#endif
    look_up_base(table, n - done, x + done, y + done);
}

struct work {
    const uint8_t *table, *x;
    uint8_t *y;
};

static void range(void *context, int64_t begin, int64_t end)
{
    const struct work *work = context;
    look_up(work->table, end - begin, work->x + begin, work->y + begin);
}

static tssa_status *run(struct kernel_args *args)
{
    const struct tensor *x, *table;
    struct tensor *y;
    TRY(kernel_tensor(args, 0, &x));
    TRY(kernel_tensor(args, 1, &table));
    if (!dtype_in(T_I8U8, x->dtype) || !dtype_in(T_I8U8, table->dtype))
        return ERROR(TSSA_RUNTIME, "elements of %s in a table of %s: both must be bytes",
                     dtype_info(x->dtype)->ir_name, dtype_info(table->dtype)->ir_name);
    if (table->rank != 1 || table->dims[0] != ENTRIES)
        return ERROR(TSSA_RUNTIME, "a table of bytes must have 256 entries");
    TRY(kernel_output(args, 0, table->dtype, x->rank, x->dims, &y));
    if (!y)
        return NULL;
    struct work work = {.table = table->data, .x = x->data, .y = y->data};
    team_for(args->env->team, (int64_t)tensor_count(x), GRAIN, range, &work);
    return NULL;
}

const struct kernel cpu_kernel_byte_table = {.run = run};
