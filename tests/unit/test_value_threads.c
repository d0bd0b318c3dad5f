/* SPDX-License-Identifier: Apache-2.0 */
/* Values shared between threads: counts are exact, frozen sequences are only read. */
// ctest-labels: tsan
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>

#include "base/value.h"

enum { THREADS = 4, ROUNDS = 2000 };

static struct value shared;

/*
 * Copies, appends to, detaches and releases the shared sequence; no thread frees it for the others.
 */
static void *use(void *unused)
{
    (void)unused;
    for (int round = 0; round < ROUNDS; round++) {
        struct value copy, longer, detached;
        value_copy(&copy, &shared);
        const struct value *element = sequence_element(copy.sequence, 0);
        if (sequence_insert(&copy, sequence_length(copy.sequence), element, &longer))
            return NULL;
        if (value_detach(&allocator_default, &longer, &detached))
            return NULL;
        value_release(&copy);
        value_release(&longer);
        int sum = *(const int32_t *)sequence_element(detached.sequence, 2)->tensor.data;
        value_release(&detached);
        if (sum != 7)
            return NULL;
    }
    return &shared;
}

static void frozen_sequences_are_shared(void **state)
{
    (void)state;
    struct value empty, one, element = {.kind = TSSA_KIND_TENSOR};
    assert_null(tensor_create(&allocator_default, TSSA_INT32, 0, NULL, &element.tensor));
    *(int32_t *)element.tensor.data = 7;
    assert_null(sequence_create(&allocator_default, TSSA_INT32, &empty));
    assert_null(sequence_insert(&empty, 0, &element, &one));
    assert_null(sequence_insert(&one, 1, &element, &shared)); /* with room for more behind it */
    struct buffer *buffer = element.tensor.owner;
    assert_int_equal(buffer->references, 3);
    sequence_freeze(&shared);

    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use, NULL), 0);
    for (int i = 0; i < THREADS; i++) {
        void *result;
        assert_int_equal(pthread_join(threads[i], &result), 0);
        assert_ptr_equal(result, &shared);
    }
    assert_int_equal(buffer->references, 3);
    value_release(&shared);
    value_release(&one);
    value_release(&empty);
    assert_int_equal(buffer->references, 1);
    value_release(&element);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(frozen_sequences_are_shared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
