/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The random fuse ops that kernels are tested with (test_kernels.c) have everything that kernels
 * are made of: element types, ranks, shapes, operators, and numbers that are like no others.
 */
/* ctest-labels: random */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/dtype.h"
#include "common/kernel_check.h"
#include "common/random_programs.h"

#define USUAL 300 /* of each kind */

static struct kernel_seen seen;

static int look(void **state)
{
    (void)state;
    const unsigned long n = programs_count(USUAL);
    for (int kind = 0; kind < KERNEL_KINDS; kind++)
        for (uint64_t seed = 0; seed < n; seed++)
            kernel_see(kind, seed, &seen);
    print_message("of %lu programs:", seen.programs);
    return 0;
}

static void expect(const char *what, unsigned long count)
{
    print_message(" %s %lu", what, count);
    if (!count && seen.programs >= 1000)
        fail_msg("no random program has %s", what);
}

static void operands(void **state)
{
    (void)state;
    for (int dtype = 0; dtype < TSSA_DTYPE_COUNT; dtype++)
        if (dtype_in(T_FLOAT | T_INT | T_BOOL, (tssa_dtype)dtype))
            expect(dtype_info((tssa_dtype)dtype)->ir_name, seen.dtypes[dtype]);
    for (int rank = 0; rank <= KERNEL_MAX_RANK; rank++) {
        char name[24];
        snprintf(name, sizeof name, "rank %d", rank);
        expect(name, seen.ranks[rank]);
    }
    expect("broadcast", seen.broadcast);
    expect("of an axis of 1", seen.ones);
    expect("empty", seen.empty);
    expect("slices backward", seen.backward);
    expect("rows looked up by what is computed", seen.computed);
    print_message("\n");
}

static void elements(void **state)
{
    (void)state;
    expect("NaN", seen.nan);
    expect("infinite", seen.infinite);
    expect("-0", seen.minus_zero);
    expect("denormal", seen.denormal);
    print_message("\n");
}

static void operators(void **state)
{
    (void)state;
    for (int id = 0; id < IR_OP_COUNT; id++) {
        const struct ir_op_info *info = ir_op_info((enum ir_op_id)id);
        if (info->ew || seen.ops[id] || id == IR_OP_CumSum || id == IR_OP_CumProd ||
            id == IR_OP_Range)
            expect(info->name, seen.ops[id]);
    }
    expect("walks of columns", seen.column_walks);
    expect("places in columns", seen.column_places);
    expect("elements of columns", seen.column_elements);
    print_message("\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(operands), cmocka_unit_test(elements),
                                       cmocka_unit_test(operators)};
    return cmocka_run_group_tests(tests, look, NULL);
}
