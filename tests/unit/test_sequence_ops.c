/* SPDX-License-Identifier: Apache-2.0 */
/* Sequence and optional operators: handles, positions, splitting and joining. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/op_run.h"

/* Input 0 of `run` becomes a sequence of `count` scalars 0, 1, 2, ... */
static void sequence_input(struct op_run *run, tssa_dtype dtype, int64_t count)
{
    struct value sequence, longer, element = {.kind = TSSA_KIND_TENSOR};
    assert_null(sequence_create(&allocator_default, dtype, &sequence));
    for (int64_t i = 0; i < count; i++) {
        element.tensor.data = arena_alloc(&run->arena, 16);
        element.tensor.dtype = dtype;
        element.tensor.rank = 0;
        dtype_store_int64(dtype, element.tensor.data, i);
        assert_null(sequence_insert(&sequence, (size_t)i, &element, &longer));
        value_release(&sequence);
        sequence = longer;
    }
    value_release(&run->inputs[0]);
    run->inputs[0] = sequence;
    run->present[0] = true;
}

/* Output 0 is a sequence of these scalars. */
static void expect_scalars(struct op_run *run, tssa_dtype dtype, size_t count,
                           const int64_t *values)
{
    assert_int_equal(run->outputs[0].kind, TSSA_KIND_SEQUENCE);
    const struct sequence *sequence = run->outputs[0].sequence;
    assert_int_equal(sequence_length(sequence), count);
    assert_int_equal(sequence_dtype(sequence), dtype);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(dtype_load_int64(dtype, sequence_element(sequence, i)->tensor.data),
                         values[i]);
}

static void position(struct op_run *run, uint32_t index, int64_t at)
{
    op_input_ints(run, index, at % 2 ? TSSA_INT32 : TSSA_INT64, 0, 1, &at);
}

static void test_construct_and_empty(void **state)
{
    struct op_run run;
    (void)state;
    op_open(&run, IR_OP_SequenceConstruct, 3, 1);
    for (uint32_t i = 0; i < 3; i++)
        op_input_ints(&run, i, TSSA_INT16, 0, 1, &(int64_t){i + 5});
    op_go(&run);
    expect_scalars(&run, TSSA_INT16, 3, (int64_t[]){5, 6, 7});
    /* The elements are handles on the operands. */
    assert_ptr_equal(sequence_element(run.outputs[0].sequence, 1)->tensor.data,
                     run.inputs[1].tensor.data);
    op_input_ints(&run, 1, TSSA_INT64, 0, 1, &(int64_t){0});
    op_fails(&run, "a sequence of i16 cannot hold a i64 tensor");
    op_close(&run);
    op_open(&run, IR_OP_SequenceEmpty, 0, 1);
    op_go(&run);
    expect_scalars(&run, TSSA_FLOAT, 0, NULL);
    op_int(&run, "dtype", TSSA_STRING);
    op_go(&run);
    expect_scalars(&run, TSSA_STRING, 0, NULL);
    op_int(&run, "dtype", 0);
    op_fails(&run, "dtype 0");
    op_close(&run);
}

static void test_at(void **state)
{
    struct op_run run;
    (void)state;
    op_open(&run, IR_OP_SequenceAt, 2, 1);
    sequence_input(&run, TSSA_INT32, 3);
    for (int64_t at = -3; at < 3; at++) {
        position(&run, 1, at);
        op_go(&run);
        op_expect_ints(&run, 0, 0, NULL, (int64_t[]){(at + 3) % 3});
    }
    position(&run, 1, 3);
    op_fails(&run, "position 3 is outside a sequence of 3");
    position(&run, 1, -4);
    op_fails(&run, "position -4");
    op_input(&run, 0, TSSA_FLOAT, 0, NULL);
    op_fails(&run, "operand 0 is not a sequence");
    op_close(&run);
}

static void test_insert(void **state)
{
    static const struct {
        int64_t at, expected[4];
    } cases[] = {{0, {9, 0, 1, 2}},
                 {1, {0, 9, 1, 2}},
                 {3, {0, 1, 2, 9}},
                 {-1, {0, 1, 9, 2}},
                 {-3, {9, 0, 1, 2}}};
    struct op_run run;
    (void)state;
    op_open(&run, IR_OP_SequenceInsert, 3, 1);
    sequence_input(&run, TSSA_INT64, 3);
    op_input_ints(&run, 1, TSSA_INT64, 0, 1, &(int64_t){9});
    op_go(&run);
    expect_scalars(&run, TSSA_INT64, 4, (int64_t[]){0, 1, 2, 9});
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        position(&run, 2, cases[i].at);
        op_go(&run);
        expect_scalars(&run, TSSA_INT64, 4, cases[i].expected);
        assert_int_equal(sequence_length(run.inputs[0].sequence), 3);
    }
    position(&run, 2, 4);
    op_fails(&run, "position 4");
    position(&run, 2, -4);
    op_fails(&run, "position -4");
    op_input_ints(&run, 1, TSSA_INT32, 0, 1, &(int64_t){9});
    op_fails(&run, "a sequence of i64 cannot hold a i32 tensor");
    op_close(&run);
}

static void test_erase_and_length(void **state)
{
    struct op_run run;
    (void)state;
    op_open(&run, IR_OP_SequenceErase, 2, 1);
    sequence_input(&run, TSSA_INT64, 3);
    op_go(&run);
    expect_scalars(&run, TSSA_INT64, 2, (int64_t[]){0, 1});
    position(&run, 1, -3);
    op_go(&run);
    expect_scalars(&run, TSSA_INT64, 2, (int64_t[]){1, 2});
    position(&run, 1, 3);
    op_fails(&run, "position 3");
    sequence_input(&run, TSSA_INT64, 0);
    position(&run, 1, 0);
    op_fails(&run, "position 0 is outside a sequence of 0");
    run.present[1] = false;
    op_fails(&run, "the sequence is empty");
    op_close(&run);
    op_open(&run, IR_OP_SequenceLength, 1, 1);
    sequence_input(&run, TSSA_BOOL, 4);
    op_go(&run);
    op_expect_ints(&run, 0, 0, NULL, (int64_t[]){4});
    op_close(&run);
}

/* ---- SplitToSequence and ConcatFromSequence -------------------------------------------------- */

static void test_split_and_concat(void **state)
{
    struct random random = {1};
    (void)state;
    for (int round = 0; round < 300; round++) {
        struct op_run split, concat;
        int rank = (int)random_int(&random, 1, 4), axis = (int)random_int(&random, 0, rank - 1);
        int64_t dims[4], sizes[8], n = 0, form = random_int(&random, 0, 4);
        tssa_dtype dtype = round % 2 ? TSSA_STRING : TSSA_FLOAT;
        for (int i = 0; i < rank; i++)
            dims[i] = random_int(&random, round % 20 == 0 ? 0 : 1, 5);
        op_open(&split, IR_OP_SplitToSequence, 2, 1);
        op_int(&split, "axis", round % 3 ? axis : axis - rank);
        /* 0: single slices; 1: single slices without the axis; 2: parts of one size; 3: a list; 4:
         * as 1, and the size is said. */
        bool drops = form == 1 || form == 4;
        op_int(&split, "keepdims", !drops && (form == 0 || round % 7 != 0));
        if (form == 4)
            op_input_ints(&split, 1, TSSA_INT64, 0, 1, &(int64_t){1});
        if (form == 2) {
            int64_t size = random_int(&random, 2, 3);
            op_input_ints(&split, 1, TSSA_INT64, 0, 1, &size);
            for (int64_t left = dims[axis]; left > 0; left -= size)
                sizes[n++] = left < size ? left : size;
        } else if (form == 3) {
            dims[axis] = 0;
            for (n = 0; n < 3; n++)
                dims[axis] += sizes[n] = random_int(&random, 0, 3);
            op_input_ints(&split, 1, TSSA_INT32, 1, n, sizes);
        } else {
            for (n = 0; n < dims[axis]; n++)
                sizes[n] = 1;
        }
        const struct tensor *x = op_random(&split, 0, &random, dtype, rank, dims);
        op_go(&split);
        const struct sequence *parts = split.outputs[0].sequence;
        assert_int_equal(sequence_length(parts), n);
        assert_int_equal(sequence_dtype(parts), dtype);
        for (int64_t i = 0; i < n; i++) {
            const struct tensor *part = &sequence_element(parts, (size_t)i)->tensor;
            assert_int_equal(part->rank, rank - drops);
            for (int d = 0; d < part->rank; d++)
                assert_int_equal(part->dims[d], drops       ? dims[d < axis ? d : d + 1]
                                                : d == axis ? sizes[i]
                                                            : dims[d]);
        }
        /* Joining the parts gives x back. */
        op_open(&concat, IR_OP_ConcatFromSequence, 1, 1);
        op_int(&concat, "axis", round % 5 ? axis : axis - rank);
        op_int(&concat, "new_axis", drops);
        value_copy(&concat.inputs[0], &split.outputs[0]);
        concat.present[0] = true;
        if (n == 0) {
            op_fails(&concat, "the sequence is empty");
        } else {
            op_go(&concat);
            const struct tensor *y = op_output(&concat, 0, dtype, rank, dims);
            assert_memory_equal(y->data, x->data, tensor_bytes(x));
        }
        op_close(&concat);
        op_close(&split);
    }
}

static void test_split_shares_what_is_contiguous(void **state)
{
    struct op_run run;
    (void)state;
    op_open(&run, IR_OP_SplitToSequence, 2, 1);
    const struct tensor *x = op_input(&run, 0, TSSA_FLOAT, 2, (int64_t[]){4, 3});
    op_go(&run);
    const struct tensor *part = &sequence_element(run.outputs[0].sequence, 2)->tensor;
    assert_ptr_equal(part->data, (float *)x->data + 6);
    op_close(&run);
}

static void test_split_refuses(void **state)
{
    struct op_run run;
    (void)state;
    op_open(&run, IR_OP_SplitToSequence, 2, 1);
    op_input(&run, 0, TSSA_FLOAT, 1, (int64_t[]){4});
    op_input_ints(&run, 1, TSSA_INT64, 0, 1, (int64_t[]){0});
    op_fails(&run, "cannot split into parts of 0");
    op_input_ints(&run, 1, TSSA_INT64, 1, 2, (int64_t[]){3, 2});
    op_fails(&run, "do not add up to 4");
    op_input_ints(&run, 1, TSSA_INT64, 1, 2, (int64_t[]){5, -1});
    op_fails(&run, "do not add up to 4");
    op_input_ints(&run, 1, TSSA_INT64, 1, 2, (int64_t[]){1, 2});
    op_fails(&run, "add up to 3, not 4");
    op_int(&run, "axis", 1);
    op_fails(&run, "outside a tensor of rank 1");
    op_close(&run);
}

static void test_concat_refuses(void **state)
{
    struct op_run construct, run;
    (void)state;
    op_open(&construct, IR_OP_SequenceConstruct, 2, 1);
    op_input(&construct, 0, TSSA_FLOAT, 1, (int64_t[]){2});
    op_input(&construct, 1, TSSA_FLOAT, 1, (int64_t[]){3});
    op_go(&construct);
    op_open(&run, IR_OP_ConcatFromSequence, 1, 1);
    value_copy(&run.inputs[0], &construct.outputs[0]);
    run.present[0] = true;
    op_int(&run, "axis", 0);
    op_int(&run, "new_axis", 1);
    op_fails(&run, "cannot concatenate f32[2] and f32[3] along axis 0");
    op_int(&run, "new_axis", 0);
    op_go(&run);
    op_output(&run, 0, TSSA_FLOAT, 1, (int64_t[]){5});
    op_close(&run);
    op_close(&construct);
}

/* ---- Optionals ------------------------------------------------------------------------------- */

static void test_optionals(void **state)
{
    struct op_run run;
    (void)state;
    op_open(&run, IR_OP_Optional, 1, 1);
    op_go(&run);
    assert_int_equal(run.outputs[0].kind, TSSA_KIND_NONE);
    op_input_ints(&run, 0, TSSA_INT64, 0, 1, (int64_t[]){3});
    op_go(&run);
    op_expect_ints(&run, 0, 0, NULL, (int64_t[]){3});
    op_close(&run);

    op_open(&run, IR_OP_OptionalGetElement, 1, 1);
    op_fails(&run, "the optional is empty");
    run.present[0] = true; /* an empty optional */
    op_fails(&run, "the optional is empty");
    sequence_input(&run, TSSA_INT64, 2);
    op_go(&run);
    expect_scalars(&run, TSSA_INT64, 2, (int64_t[]){0, 1});
    op_close(&run);

    op_open(&run, IR_OP_OptionalHasElement, 1, 1);
    op_go(&run);
    op_expect_ints(&run, 0, 0, NULL, (int64_t[]){0});
    run.present[0] = true;
    op_go(&run);
    op_expect_ints(&run, 0, 0, NULL, (int64_t[]){0});
    sequence_input(&run, TSSA_INT64, 0);
    op_go(&run);
    op_expect_ints(&run, 0, 0, NULL, (int64_t[]){1});
    op_close(&run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_construct_and_empty),
        cmocka_unit_test(test_at),
        cmocka_unit_test(test_insert),
        cmocka_unit_test(test_erase_and_length),
        cmocka_unit_test(test_split_and_concat),
        cmocka_unit_test(test_split_shares_what_is_contiguous),
        cmocka_unit_test(test_split_refuses),
        cmocka_unit_test(test_concat_refuses),
        cmocka_unit_test(test_optionals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
