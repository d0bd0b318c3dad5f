/* SPDX-License-Identifier: Apache-2.0 */
/* The hash map, against a plain array. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/map.h"
#include "base/status.h"
#include "common/test_alloc.h"

static void empty_map(void **state)
{
    (void)state;
    struct map map;
    map_init(&map, &allocator_default);
    assert_null(map_get_str(&map, "x"));
    assert_false(map_remove(&map, "x", 1));
    assert_null(map_next(&map, NULL));
    map_free(&map);
}

static void keys_are_byte_strings(void **state)
{
    (void)state;
    struct map map;
    map_init(&map, &allocator_default);
    int a, b, c, d;
    assert_true(map_put(&map, "k\0a", 3, &a));
    assert_true(map_put(&map, "k\0b", 3, &b));
    assert_true(map_put_str(&map, "k", &c));
    assert_true(map_put(&map, NULL, 0, &d));
    assert_ptr_equal(map_get(&map, "k\0a", 3), &a);
    assert_ptr_equal(map_get(&map, "k\0b", 3), &b);
    assert_ptr_equal(map_get_str(&map, "k"), &c);
    assert_ptr_equal(map_get_str(&map, ""), &d);
    assert_ptr_equal(map_get(&map, NULL, 0), &d);
    assert_null(map_get(&map, "k\0", 2));
    assert_true(map_put_str(&map, "k", &a)); /* replaces */
    assert_ptr_equal(map_get_str(&map, "k"), &a);
    assert_int_equal(map.live, 4);
    map_free(&map);
}

enum { KEYS = 2000 };

/* Random puts and removes, with the expected content beside the map. */
static void random_operations(void **state)
{
    (void)state;
    static char keys[KEYS][8];
    static int values[KEYS];
    static long put_at[KEYS]; /* 0: absent; else when the key last came in */
    for (int i = 0; i < KEYS; i++)
        sprintf(keys[i], "k%d", i);
    struct test_alloc alloc;
    test_alloc_init(&alloc);
    struct map map;
    map_init(&map, &alloc.allocator);
    size_t live = 0;
    uint32_t random = 1;
    for (long step = 1; step < 60000; step++) {
        random = random * 1664525u + 1013904223u;
        int i = (int)(random >> 8) % (step < 30000 ? KEYS : 50);
        if (random >> 30) {
            assert_true(map_put_str(&map, keys[i], &values[i]));
            live += put_at[i] == 0;
            put_at[i] = put_at[i] ? put_at[i] : step;
        } else {
            assert_int_equal(map_remove(&map, keys[i], strlen(keys[i])), put_at[i] != 0);
            live -= put_at[i] != 0;
            put_at[i] = 0;
        }
        assert_int_equal(map.live, live);
    }
    size_t seen = 0;
    long last = 0;
    for (const struct map_entry *e = map_next(&map, NULL); e; e = map_next(&map, e), seen++) {
        long i = (int *)e->value - values;
        assert_ptr_equal(e->key, keys[i]);
        assert_true(put_at[i] > last); /* insertion order */
        last = put_at[i];
    }
    assert_int_equal(seen, live);
    for (int i = 0; i < KEYS; i++)
        assert_ptr_equal(map_get_str(&map, keys[i]), put_at[i] ? &values[i] : NULL);
    map_free(&map);
    assert_int_equal(alloc.live, 0);
}

static void churn_does_not_grow(void **state)
{
    (void)state;
    struct map map;
    map_init(&map, &allocator_default);
    int value;
    static char keys[100000][8];
    for (int i = 0; i < 100000; i++) {
        sprintf(keys[i], "%d", i);
        assert_true(map_put_str(&map, keys[i], &value));
        assert_true(map_remove(&map, keys[i], strlen(keys[i])));
    }
    assert_int_equal(map.live, 0);
    assert_true(map.capacity < 64);
    map_free(&map);
}

static tssa_status *fill(const tssa_allocator *allocator)
{
    static char keys[100][8];
    struct map map;
    map_init(&map, allocator);
    bool ok = true;
    int i;
    for (i = 0; ok && i < 100; i++) {
        sprintf(keys[i], "%d", i);
        ok = map_put_str(&map, keys[i], keys[i]);
    }
    for (int k = 0; k < i - !ok; k++) /* a failed put leaves the others */
        assert_ptr_equal(map_get_str(&map, keys[k]), keys[k]);
    map_free(&map);
    return ok ? NULL : status_out_of_memory();
}

static void survives_failure(void **state)
{
    (void)state;
    assert_true(test_alloc_sweep(fill) >= 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(empty_map),         cmocka_unit_test(keys_are_byte_strings),
        cmocka_unit_test(random_operations), cmocka_unit_test(churn_does_not_grow),
        cmocka_unit_test(survives_failure),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
