/* SPDX-License-Identifier: Apache-2.0 */
/* .npz archives: arrays by name, the only one by any name, and archives that lie. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zip.h>

#include "base/file.h"
#include "common/process.h"
#include "common/xmalloc.h"
#include "tools/common/npz.h"

static char *folder;

/* A .npy file of one uint8. */
static void make_array(uint8_t element, char *bytes, size_t *size)
{
    static const char dict[] = "{'descr': '|u1', 'fortran_order': False, 'shape': (1,)}";
    memcpy(bytes, "\x93NUMPY\1\0", 8);
    bytes[8] = sizeof dict - 1;
    bytes[9] = 0;
    memcpy(bytes + 10, dict, sizeof dict - 1);
    bytes[10 + sizeof dict - 1] = (char)element;
    *size = 10 + sizeof dict;
}

/* An archive with arrays of these names, that hold 0, 1, ... */
static char *make_archive(const char *const *names, size_t count)
{
    static char bytes[4][128];
    char *path = xprintf("%s/%zu.npz", folder, count);
    int code;
    zip_t *archive = zip_open(path, ZIP_CREATE | ZIP_TRUNCATE, &code);
    assert_non_null(archive);
    for (size_t i = 0; i < count; i++) {
        size_t size;
        make_array((uint8_t)i, bytes[i], &size);
        zip_source_t *source = zip_source_buffer(archive, bytes[i], size, 0);
        assert_true(zip_file_add(archive, names[i], source, 0) >= 0);
    }
    assert_int_equal(zip_close(archive), 0);
    return path;
}

static int read_element(const char *path, const char *name)
{
    struct value value;
    bool found;
    assert_null(npz_read(&allocator_default, path, name, SIZE_MAX, &found, &value));
    if (!found)
        return -1;
    int element = *(uint8_t *)value.tensor.data;
    value_release(&value);
    return element;
}

static void reads_by_name(void **state)
{
    (void)state;
    static const char *const names[] = {"a.npy", "b:0.npy", "c.npy"};
    char *path = make_archive(names, 3);
    assert_int_equal(read_element(path, "a"), 0);
    assert_int_equal(read_element(path, "b:0"), 1);
    assert_int_equal(read_element(path, "c"), 2);
    assert_int_equal(read_element(path, "d"), -1);
    free(path);
}

static void reads_the_only_array(void **state)
{
    (void)state;
    static const char *const names[] = {"arr_0.npy"};
    char *path = make_archive(names, 1);
    assert_int_equal(read_element(path, "anything"), 0);
    free(path);
}

static void refuses_damage(void **state)
{
    (void)state;
    static const char *const names[] = {"a.npy", "b.npy"};
    char *path = make_archive(names, 2), *damaged = xprintf("%s/damaged.npz", folder);
    struct file_map map;
    assert_null(file_map_open(path, &map));
    char *bytes = xcalloc(map.size, 1);
    size_t refused = 0;
    for (size_t i = 0; i < map.size; i++) {
        struct value value;
        bool found = false;
        memcpy(bytes, map.data, map.size);
        bytes[i] = (char)(bytes[i] ^ 0xff);
        assert_null(file_write(&allocator_default, damaged, bytes, map.size));
        tssa_status *status = npz_read(&allocator_default, damaged, "a", SIZE_MAX, &found, &value);
        refused += status != NULL;
        if (status)
            assert_non_null(strstr(tssa_status_message(status), "damaged.npz"));
        else if (found)
            value_release(&value);
        tssa_status_free(status);
    }
    assert_true(refused > 40);
    free(bytes);
    file_map_close(&map);
    free(path);
    free(damaged);
}

static int set_up(void **state)
{
    (void)state;
    folder = temporary_folder();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    remove_folder(folder);
    return 0;
}

/* Refused by the size that it states, before any of it is unpacked. */
static void refuses_large_arrays(void **state)
{
    (void)state;
    struct value value;
    bool found;
    char *path = make_archive((const char *const[]){"a.npy"}, 1);
    tssa_status *status = npz_read(&allocator_default, path, "a", 16, &found, &value);
    assert_int_equal(tssa_status_code(status), TSSA_LIMIT);
    assert_non_null(strstr(tssa_status_message(status), "--memory-limit"));
    tssa_status_free(status);
    free(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_by_name),
        cmocka_unit_test(reads_the_only_array),
        cmocka_unit_test(refuses_damage),
        cmocka_unit_test(refuses_large_arrays),
    };
    return cmocka_run_group_tests_name("npz", tests, set_up, tear_down);
}
