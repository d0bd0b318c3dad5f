/* SPDX-License-Identifier: Apache-2.0 */
/* Sequences and maps: sharing, immutability of old handles, failure of every allocation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/value.h"
#include "common/test_alloc.h"

/* A scalar INT64. */
static struct value number(const tssa_allocator *allocator, int64_t n)
{
    struct value v = {.kind = TSSA_KIND_TENSOR};
    assert_null(tensor_create(allocator, TSSA_INT64, 0, NULL, &v.tensor));
    memcpy(v.tensor.data, &n, sizeof n);
    return v;
}

static int64_t at(const struct value *sequence, size_t index)
{
    return *(int64_t *)sequence_element(sequence->sequence, index)->tensor.data;
}

/* Inserts a number and gives the result, the input untouched. */
static struct value with(const tssa_allocator *allocator, const struct value *in, size_t position,
                         int64_t n)
{
    struct value element = number(allocator, n), out;
    assert_null(sequence_insert(in, position, &element, &out));
    value_release(&element);
    return out;
}

static void expect(const struct value *sequence, size_t length, const int64_t *numbers)
{
    assert_int_equal(sequence_length(sequence->sequence), length);
    for (size_t i = 0; i < length; i++)
        assert_int_equal(at(sequence, i), numbers[i]);
}
#define EXPECT(sequence, ...)                                                                      \
    expect((sequence), sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (int64_t[]){__VA_ARGS__})

static void old_handles_stay_valid(void **state)
{
    (void)state;
    struct test_alloc alloc;
    test_alloc_init(&alloc);
    const tssa_allocator *a = &alloc.allocator;
    struct value empty, s1, s2, other, front, middle, shorter, last;
    assert_null(sequence_create(a, TSSA_INT64, &empty));
    assert_int_equal(sequence_length(empty.sequence), 0);
    assert_int_equal(sequence_dtype(empty.sequence), TSSA_INT64);
    s1 = with(a, &empty, 0, 1);
    s2 = with(a, &s1, 1, 2);
    other = with(a, &s1, 1, 20); /* a second future for s1 */
    front = with(a, &s2, 0, 0);
    middle = with(a, &s2, 1, 15);
    assert_null(sequence_erase(&middle, 0, &shorter));
    assert_null(sequence_erase(&middle, 2, &last));
    assert_int_equal(sequence_length(empty.sequence), 0);
    EXPECT(&s1, 1);
    EXPECT(&s2, 1, 2);
    EXPECT(&other, 1, 20);
    EXPECT(&front, 0, 1, 2);
    EXPECT(&middle, 1, 15, 2);
    EXPECT(&shorter, 15, 2);
    EXPECT(&last, 1, 15);
    struct value *all[] = {&empty, &s1, &other, &middle, &front, &s2, &last, &shorter};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        value_release(all[i]);
    assert_int_equal(alloc.live, 0);
}

/* Appending in a loop costs a constant number of allocations per element. */
static void appending_is_amortised(void **state)
{
    (void)state;
    struct test_alloc alloc;
    test_alloc_init(&alloc);
    struct value s, element = number(&alloc.allocator, 7);
    assert_null(sequence_create(&alloc.allocator, TSSA_INT64, &s));
    const struct value *first = NULL;
    long copies = 0;
    for (size_t i = 0; i < 5000; i++) {
        struct value next;
        assert_null(sequence_insert(&s, i, &element, &next));
        copies += i > 0 && sequence_element(next.sequence, 0) != first;
        first = sequence_element(next.sequence, 0);
        value_release(&s);
        value_move(&s, &next);
    }
    assert_true(copies < 20);
    assert_true(alloc.live < 5);
    value_release(&s);
    value_release(&element);
    assert_int_equal(alloc.live, 0);
}

static void appends_share_the_array(void **state)
{
    (void)state;
    const tssa_allocator *a = &allocator_default;
    struct value empty, s1, s2, branch, s3;
    assert_null(sequence_create(a, TSSA_INT64, &empty));
    s1 = with(a, &empty, 0, 1);
    s2 = with(a, &s1, 1, 2);
    branch = with(a, &s1, 1, 3);
    assert_ptr_equal(sequence_element(s1.sequence, 0), sequence_element(s2.sequence, 0));
    assert_ptr_not_equal(sequence_element(s1.sequence, 0), sequence_element(branch.sequence, 0));
    /* Once s2 is gone, its element is dropped and its place is used again. */
    value_release(&s2);
    s3 = with(a, &s1, 1, 4);
    assert_ptr_equal(sequence_element(s1.sequence, 0), sequence_element(s3.sequence, 0));
    EXPECT(&s3, 1, 4);
    EXPECT(&branch, 1, 3);
    struct value *all[] = {&empty, &s1, &branch, &s3};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        value_release(all[i]);
}

static void erasing_the_last_shares(void **state)
{
    (void)state;
    const tssa_allocator *a = &allocator_default;
    struct value empty, s1, s2, popped, pushed;
    assert_null(sequence_create(a, TSSA_INT64, &empty));
    s1 = with(a, &empty, 0, 1);
    s2 = with(a, &s1, 1, 2);
    assert_null(sequence_erase(&s2, 1, &popped));
    assert_ptr_equal(sequence_element(popped.sequence, 0), sequence_element(s2.sequence, 0));
    pushed = with(a, &popped, 1, 9); /* s2 still sees 2 there */
    EXPECT(&s2, 1, 2);
    EXPECT(&pushed, 1, 9);
    struct value *all[] = {&empty, &s1, &s2, &popped, &pushed};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        value_release(all[i]);
}

static void frozen_arrays_are_left_alone(void **state)
{
    (void)state;
    const tssa_allocator *a = &allocator_default;
    struct value empty, s1, s2, s3;
    assert_null(sequence_create(a, TSSA_INT64, &empty));
    s1 = with(a, &empty, 0, 1);
    sequence_freeze(&s1);
    s2 = with(a, &s1, 1, 2);
    assert_ptr_not_equal(sequence_element(s1.sequence, 0), sequence_element(s2.sequence, 0));
    s3 = with(a, &s2, 2, 3); /* the copy is not frozen */
    assert_ptr_equal(sequence_element(s2.sequence, 0), sequence_element(s3.sequence, 0));
    EXPECT(&s1, 1);
    EXPECT(&s3, 1, 2, 3);
    struct value none = {.kind = TSSA_KIND_NONE};
    sequence_freeze(&none);
    struct value *all[] = {&empty, &s1, &s2, &s3};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        value_release(all[i]);
}

/* Random edits of a growing family of sequences, each compared with a plain array in the end. */
static void random_edits(void **state)
{
    (void)state;
    enum { FAMILY = 400, LONGEST = 40 };
    static struct value family[FAMILY];
    static int64_t expected[FAMILY][LONGEST];
    static size_t lengths[FAMILY];
    static bool released[FAMILY];
    struct test_alloc alloc;
    test_alloc_init(&alloc);
    uint32_t random = 12345;
    assert_null(sequence_create(&alloc.allocator, TSSA_INT64, &family[0]));
    lengths[0] = 0;
    for (int i = 1; i < FAMILY; i++) {
        random = random * 1664525u + 1013904223u;
        int parent = i - 1 - (int)(random >> 8) % (i < 10 ? i : 10);
        while (released[parent])
            parent = parent ? parent - 1 : i - 1; /* i - 1 is never released yet */
        size_t n = lengths[parent];
        bool append = random >> 29 < 5 && n < LONGEST;
        if (append || n == 0) {
            size_t position = random >> 30 ? n : (random >> 4) % (n + 1);
            family[i] = with(&alloc.allocator, &family[parent], position, i);
            memcpy(expected[i], expected[parent], position * sizeof(int64_t));
            expected[i][position] = i;
            memcpy(expected[i] + position + 1, expected[parent] + position,
                   (n - position) * sizeof(int64_t));
            lengths[i] = n + 1;
        } else {
            size_t position = random >> 30 ? n - 1 : (random >> 4) % n;
            assert_null(sequence_erase(&family[parent], position, &family[i]));
            memcpy(expected[i], expected[parent], position * sizeof(int64_t));
            memcpy(expected[i] + position, expected[parent] + position + 1,
                   (n - position - 1) * sizeof(int64_t));
            lengths[i] = n - 1;
        }
        int victim = i - 5;
        if (victim > 0 && random % 3 == 0) {
            value_release(&family[victim]);
            released[victim] = true;
        }
    }
    for (int i = 0; i < FAMILY; i++)
        if (!released[i])
            expect(&family[i], lengths[i], expected[i]);
    for (int i = 0; i < FAMILY; i++)
        value_release(&family[i]);
    assert_int_equal(alloc.live, 0);
}

static void expect_error(tssa_status *status, tssa_code code, const char *part)
{
    assert_int_equal(tssa_status_code(status), code);
    assert_non_null(strstr(tssa_status_message(status), part));
    tssa_status_free(status);
}

static void wrong_edits(void **state)
{
    (void)state;
    const tssa_allocator *a = &allocator_default;
    struct value floats, untyped, typed, out, element = number(a, 1);
    assert_null(sequence_create(a, TSSA_FLOAT, &floats));
    expect_error(sequence_insert(&floats, 0, &element, &out), TSSA_RUNTIME,
                 "i64[] does not belong in a sequence of f32");
    expect_error(sequence_insert(&floats, 1, &element, &out), TSSA_RUNTIME, "insert at 1");
    expect_error(sequence_erase(&floats, 0, &out), TSSA_RUNTIME, "erase element 0");
    assert_null(sequence_create(a, TSSA_UNDEFINED, &untyped));
    assert_null(sequence_insert(&untyped, 0, &element, &typed));
    assert_int_equal(sequence_dtype(typed.sequence), TSSA_INT64);
    char text[64];
    value_describe(&typed, text, sizeof text);
    assert_string_equal(text, "seq<i64>(1)");
    struct value *all[] = {&floats, &untyped, &typed, &element};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        value_release(all[i]);
}

/* Releasing recurses, so nesting is bounded. */
static void nesting_is_bounded(void **state)
{
    (void)state;
    struct test_alloc alloc;
    test_alloc_init(&alloc);
    struct value inner, outer, empty;
    assert_null(sequence_create(&alloc.allocator, TSSA_INT64, &empty));
    value_copy(&inner, &empty);
    int depth = 1;
    tssa_status *status;
    while (!(status = sequence_insert(&empty, 0, &inner, &outer))) {
        value_release(&inner);
        value_move(&inner, &outer);
        assert_true(++depth < 100);
    }
    assert_true(depth >= 4);
    tssa_status_free(status);
    /* A shallow element does not make a deep sequence shallow. */
    struct value element = number(&alloc.allocator, 1);
    assert_null(sequence_insert(&inner, 0, &element, &outer));
    value_release(&inner);
    value_release(&element);
    value_move(&inner, &outer);
    status = sequence_insert(&empty, 0, &inner, &outer);
    expect_error(status, TSSA_LIMIT, "nest");
    value_release(&inner);
    value_release(&empty);
    assert_int_equal(alloc.live, 0);
}

static void freezing_reaches_nested_sequences(void **state)
{
    (void)state;
    const tssa_allocator *a = &allocator_default;
    struct value empty, inner, outer, detached, appended;
    assert_null(sequence_create(a, TSSA_INT64, &empty));
    inner = with(a, &empty, 0, 1);
    assert_null(sequence_insert(&empty, 0, &inner, &outer));
    assert_null(value_detach(a, &outer, &detached));
    const struct value *nested = sequence_element(detached.sequence, 0);
    assert_ptr_not_equal(nested->sequence, inner.sequence);
    appended = with(a, nested, 1, 2);
    assert_ptr_not_equal(sequence_element(appended.sequence, 0),
                         sequence_element(nested->sequence, 0));
    value_release(&appended);
    sequence_freeze(&outer);
    appended = with(a, &inner, 1, 2);
    assert_ptr_not_equal(sequence_element(appended.sequence, 0),
                         sequence_element(inner.sequence, 0));
    struct value *all[] = {&empty, &inner, &outer, &detached, &appended};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        value_release(all[i]);
}

/* ---- Maps ------------------------------------------------------------------------------------ */

static void maps(void **state)
{
    (void)state;
    struct test_alloc alloc;
    test_alloc_init(&alloc);
    const tssa_allocator *a = &alloc.allocator;
    struct value keys = {.kind = TSSA_KIND_TENSOR}, values = keys, map, copy, detached;
    assert_null(tensor_create(a, TSSA_STRING, 1, (int64_t[]){2}, &keys.tensor));
    assert_null(tensor_create(a, TSSA_FLOAT, 1, (int64_t[]){2}, &values.tensor));
    tssa_string *names = keys.tensor.data;
    names[0] = (tssa_string){"cat", 3};
    names[1] = (tssa_string){"dog", 3};
    memcpy(values.tensor.data, (float[]){1, 2}, 8);
    assert_null(value_map_create(a, &keys, &values, &map));
    value_release(&keys);
    value_release(&values);
    value_copy(&copy, &map);
    assert_null(value_detach(a, &map, &detached));
    value_release(&map);
    assert_int_equal(value_map_keys(copy.map)->tensor.dims[0], 2);
    value_release(&copy);
    const tssa_string *kept = value_map_keys(detached.map)->tensor.data;
    assert_memory_equal(kept[1].data, "dog", 3);
    assert_true(((float *)value_map_values(detached.map)->tensor.data)[1] == 2);
    value_release(&detached);
    assert_int_equal(alloc.live, 0);
}

static void wrong_maps(void **state)
{
    (void)state;
    int64_t data[4] = {0};
    struct value i1 = {.kind = TSSA_KIND_TENSOR,
                       .tensor = {.dtype = TSSA_INT64, .rank = 1, .dims = {2}, .data = data}};
    struct value out, i2 = i1, f1 = i1, three = i1, scalar = i1, sequence;
    i2.tensor.rank = 2;
    i2.tensor.dims[1] = 1;
    f1.tensor.dtype = TSSA_DOUBLE;
    three.tensor.dims[0] = 3;
    scalar.tensor.rank = 0;
    expect_error(value_map_create(&allocator_default, &i2, &i1, &out), TSSA_INVALID_ARGUMENT,
                 "keys");
    expect_error(value_map_create(&allocator_default, &f1, &i1, &out), TSSA_INVALID_ARGUMENT,
                 "keys");
    expect_error(value_map_create(&allocator_default, &i1, &three, &out), TSSA_INVALID_ARGUMENT,
                 "2 entries");
    expect_error(value_map_create(&allocator_default, &i1, &scalar, &out), TSSA_INVALID_ARGUMENT,
                 "2 entries");
    assert_null(sequence_create(&allocator_default, TSSA_INT64, &sequence));
    expect_error(value_map_create(&allocator_default, &sequence, &i1, &out), TSSA_INVALID_ARGUMENT,
                 "keys");
    expect_error(value_map_create(&allocator_default, &i1, &sequence, &out), TSSA_INVALID_ARGUMENT,
                 "2 entries");
    value_release(&sequence);
}

/* ---- Failing allocations --------------------------------------------------------------------- */

/* Every way to make a value; *count tells how many of them were made. */
static tssa_status *make_all(const tssa_allocator *allocator, struct value *made, int *count)
{
#define ADD(call)                                                                                  \
    do {                                                                                           \
        TRY(call);                                                                                 \
        ++*count;                                                                                  \
    } while (0)
    struct value *scalar = &made[0];
    scalar->kind = TSSA_KIND_TENSOR;
    tssa_status *status = tensor_create(allocator, TSSA_INT64, 0, NULL, &scalar->tensor);
    if (status) {
        scalar->kind = TSSA_KIND_NONE;
        return status;
    }
    *count = 1;
    ADD(sequence_create(allocator, TSSA_INT64, &made[1]));
    ADD(sequence_insert(&made[1], 0, scalar, &made[2]));
    ADD(sequence_insert(&made[2], 1, scalar, &made[3]));
    ADD(sequence_insert(&made[3], 0, scalar, &made[4]));
    ADD(sequence_erase(&made[4], 0, &made[5]));
    ADD(sequence_erase(&made[4], 2, &made[6]));
    ADD(sequence_insert(&made[1], 0, &made[6], &made[7])); /* nested */
    static tssa_string words[] = {{"one", 3}, {"two", 3}, {"three", 5}};
    struct value keys = {.kind = TSSA_KIND_TENSOR,
                         .tensor = {.dtype = TSSA_STRING, .rank = 1, .dims = {3}, .data = words}};
    ADD(value_map_create(allocator, &keys, &made[4], &made[8]));
    ADD(sequence_insert(&made[1], 0, &made[8], &made[9]));
    ADD(value_detach(allocator, &made[7], &made[10]));
    ADD(value_detach(allocator, &made[9], &made[11]));
    return NULL;
#undef ADD
}

static tssa_status *make_and_release(const tssa_allocator *allocator)
{
    struct value made[12];
    int count = 0;
    tssa_status *status = make_all(allocator, made, &count);
    while (count)
        value_release(&made[--count]);
    return status;
}

static void survives_failure(void **state)
{
    (void)state;
    assert_true(test_alloc_sweep(make_and_release) >= 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(old_handles_stay_valid),
        cmocka_unit_test(appending_is_amortised),
        cmocka_unit_test(appends_share_the_array),
        cmocka_unit_test(erasing_the_last_shares),
        cmocka_unit_test(frozen_arrays_are_left_alone),
        cmocka_unit_test(random_edits),
        cmocka_unit_test(wrong_edits),
        cmocka_unit_test(nesting_is_bounded),
        cmocka_unit_test(freezing_reaches_nested_sequences),
        cmocka_unit_test(maps),
        cmocka_unit_test(wrong_maps),
        cmocka_unit_test(survives_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
