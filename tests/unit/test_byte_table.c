/* SPDX-License-Identifier: Apache-2.0 */
/*
 * byte_table against a loop: at all lengths around those of vectors, at every alignment, in parts;
 * and what it refuses. Each level of the machine's instructions has a loop of its own.
 */
/* ctest-isa: v3 base */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/op_run.h"

#define LONGEST 200
#define MANY 200001

static struct random numbers = {11};
static uint8_t table[256], from[MANY];

static void fill(uint8_t *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        bytes[i] = (uint8_t)random_bits(&numbers);
}

static tssa_dtype either(void)
{
    return random_chance(&numbers, 50) ? TSSA_UINT8 : TSSA_INT8;
}

static void expect(const struct op_run *run, tssa_dtype to, const uint8_t *x, int64_t n)
{
    const struct tensor *y = &run->outputs[0].tensor;
    assert_int_equal(y->dtype, to);
    assert_int_equal(tensor_count(y), n);
    for (int64_t i = 0; i < n; i++)
        assert_int_equal(((const uint8_t *)y->data)[i], table[x[i]]);
}

/* Parts of it as on several threads (op_run.h). */
static void check(const uint8_t *x, int64_t n)
{
    struct op_run run;
    const tssa_dtype to = either();
    const int64_t dims[2] = {n % 2 ? 1 : 2, n % 2 ? n : n / 2}, entries = 256;
    op_begin(&run, IR_OP_byte_table, 0);
    op_add(&run, either(), 2, dims, x);
    op_add(&run, to, 1, &entries, table);
    op_go(&run);
    expect(&run, to, x, n);
    op_close(&run);
}

static void all_lengths(void **state)
{
    (void)state;
    for (int64_t n = 0; n <= LONGEST; n++) {
        fill(table, sizeof table);
        fill(from, LONGEST + 64);
        check(from + n % 64, n);
    }
}

static void all_bytes(void **state)
{
    (void)state;
    fill(table, sizeof table);
    for (size_t i = 0; i < 512; i++)
        from[i] = (uint8_t)i;
    for (int64_t shift = 0; shift < 256; shift++)
        check(from + shift, 256);
}

static void parts(void **state)
{
    (void)state;
    fill(table, sizeof table);
    fill(from, MANY);
    check(from, MANY);
}

static void refused(void **state)
{
    (void)state;
    struct op_run run;
    const int64_t n = 3, entries = 255;
    op_begin(&run, IR_OP_byte_table, 0);
    op_add(&run, TSSA_UINT8, 1, &n, from);
    op_add(&run, TSSA_UINT8, 1, &entries, table);
    op_fails(&run, "256");
    op_close(&run);
    op_begin(&run, IR_OP_byte_table, 0);
    op_add(&run, TSSA_BOOL, 1, &n, from);
    op_add(&run, TSSA_UINT8, 1, &(const int64_t){256}, table);
    op_fails(&run, "bytes");
    op_close(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_lengths),
        cmocka_unit_test(all_bytes),
        cmocka_unit_test(parts),
        cmocka_unit_test(refused),
    };
    return cmocka_run_group_tests_name("byte_table", tests, NULL, NULL);
}
