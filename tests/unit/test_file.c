/* SPDX-License-Identifier: Apache-2.0 */
/* Mapped files and atomic writes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "common/test_alloc.h"

static char folder[64];

static const char *in_folder(const char *name)
{
    static char path[2][400];
    static int turn;
    turn = !turn;
    snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
    return path[turn];
}

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof folder, "/tmp/tssa-test-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

/* The number of entries, "." and ".." not counted. */
static int entries(void)
{
    int count = 0;
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    while (readdir(dir))
        count++;
    closedir(dir);
    return count - 2;
}

static int remove_folder(void **state)
{
    (void)state;
    DIR *dir = opendir(folder);
    if (!dir)
        return -1;
    for (struct dirent *e; (e = readdir(dir));)
        if (e->d_name[0] != '.')
            unlink(in_folder(e->d_name));
    closedir(dir);
    return rmdir(folder);
}

static void expect_content(const char *path, const void *data, size_t size)
{
    struct file_map map;
    assert_null(file_map_open(path, &map));
    assert_int_equal(map.size, size);
    assert_memory_equal(map.data, data, size ? size : 0);
    file_map_close(&map);
    file_map_close(&map); /* closed already */
}

static void expect_io_error(tssa_status *status, const char *part)
{
    assert_int_equal(tssa_status_code(status), TSSA_IO);
    assert_non_null(strstr(tssa_status_message(status), part));
    tssa_status_free(status);
}

static void round_trip(void **state)
{
    (void)state;
    const char *path = in_folder("a");
    assert_null(file_write(&allocator_default, path, "one\0two", 7));
    expect_content(path, "one\0two", 7);
    assert_null(file_write(&allocator_default, path, "new", 3));
    expect_content(path, "new", 3);
    assert_int_equal(entries(), 1);
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    mode_t mask = umask(0);
    umask(mask);
    assert_int_equal(info.st_mode & 0777, 0666 & ~mask);
}

static void empty_file(void **state)
{
    (void)state;
    const char *path = in_folder("empty");
    assert_null(file_write(&allocator_default, path, NULL, 0));
    struct file_map map;
    assert_null(file_map_open(path, &map));
    assert_int_equal(map.size, 0);
    assert_non_null(map.data);
    file_map_close(&map);
}

/* Sizes around the writer's buffer, in uneven pieces. */
static void pieces(void **state)
{
    (void)state;
    enum { TOTAL = 300000 };
    char *data = malloc(TOTAL);
    for (size_t i = 0; i < TOTAL; i++)
        data[i] = (char)(i * 7 + i / 251);
    static const size_t steps[] = {1000, 65535, 65536, 65537, 200000};
    const char *path = in_folder("pieces");
    for (size_t s = 0; s < sizeof steps / sizeof *steps; s++) {
        struct file_writer writer;
        assert_null(file_writer_open(&allocator_default, path, &writer));
        for (size_t at = 0; at < TOTAL; at += steps[s])
            assert_null(file_writer_write(&writer, data + at,
                                          at + steps[s] < TOTAL ? steps[s] : TOTAL - at));
        assert_null(file_writer_commit(&writer));
        expect_content(path, data, TOTAL);
    }
    free(data);
}

static void aborting_leaves_the_old_file(void **state)
{
    (void)state;
    const char *path = in_folder("kept");
    assert_null(file_write(&allocator_default, path, "old", 3));
    int before = entries();
    struct file_writer writer;
    assert_null(file_writer_open(&allocator_default, path, &writer));
    assert_null(file_writer_write(&writer, "half a", 6));
    assert_int_equal(entries(), before + 1);
    expect_content(path, "old", 3);
    file_writer_abort(&writer);
    file_writer_abort(&writer);
    assert_int_equal(entries(), before);
    expect_content(path, "old", 3);
}

static void permissions_and_links_stay(void **state)
{
    (void)state;
    char target[400], link[400];
    snprintf(target, sizeof target, "%s", in_folder("target"));
    snprintf(link, sizeof link, "%s", in_folder("link"));
    assert_null(file_write(&allocator_default, target, "x", 1));
    assert_int_equal(chmod(target, 0640), 0);
    assert_int_equal(symlink(target, link), 0);
    assert_null(file_write(&allocator_default, link, "through", 7));
    expect_content(target, "through", 7);
    struct stat info;
    assert_int_equal(lstat(link, &info), 0);
    assert_true(S_ISLNK(info.st_mode));
    assert_int_equal(stat(target, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0640);
}

static void special_targets_are_written_directly(void **state)
{
    (void)state;
    struct stat before, after;
    assert_int_equal(stat("/dev/null", &before), 0);
    assert_null(file_write(&allocator_default, "/dev/null", "gone", 4));
    assert_int_equal(stat("/dev/null", &after), 0);
    assert_true(S_ISCHR(after.st_mode) && before.st_ino == after.st_ino);
    /* A device that is always full. */
    if (access("/dev/full", W_OK) == 0)
        expect_io_error(file_write(&allocator_default, "/dev/full", "x", 1), "No space left");
}

static void what_cannot_be_read(void **state)
{
    (void)state;
    struct file_map map;
    expect_io_error(file_map_open(in_folder("missing"), &map), "No such file");
    expect_io_error(file_map_open(folder, &map), "Is a directory");
    expect_io_error(file_map_open("/dev/null", &map), "not a regular file");
    const char *fifo = in_folder("fifo");
    assert_int_equal(mkfifo(fifo, 0600), 0);
    expect_io_error(file_map_open(fifo, &map), "not a regular file"); /* and does not wait */
    expect_io_error(file_map_descriptor(-1, "nothing", &map), "cannot read nothing");
}

static void what_cannot_be_written(void **state)
{
    (void)state;
    int before = entries();
    expect_io_error(file_write(&allocator_default, folder, "x", 1), "Is a directory");
    expect_io_error(file_write(&allocator_default, in_folder("none/such"), "x", 1), "No such file");
    expect_io_error(file_write(&allocator_default, "", "x", 1), "No such file");
    assert_int_equal(entries(), before);
}

static tssa_status *write_one(const tssa_allocator *allocator)
{
    return file_write(allocator, in_folder("swept"), "x", 1);
}

static void survives_failure(void **state)
{
    (void)state;
    int before = entries();
    assert_int_equal(test_alloc_sweep(write_one), 3);
    assert_int_equal(entries(), before + 1); /* no temporary file is left */
}

/* ---- What a killed process leaves ------------------------------------------------------------ */

static void touch(const char *path)
{
    int descriptor = open(path, O_WRONLY | O_CREAT, 0600);
    assert_true(descriptor >= 0);
    close(descriptor);
}

static bool exists(const char *path)
{
    return access(path, F_OK) == 0;
}

/* Writes half a file and is gone; returns its process id. */
static pid_t write_and_die(const char *path)
{
    pid_t child = fork();
    if (child == 0) {
        struct file_writer writer;
        tssa_status *status = file_writer_open(&allocator_default, path, &writer);
        if (!status)
            raise(SIGKILL);
        _exit(1);
    }
    int how;
    assert_int_equal(waitpid(child, &how, 0), child);
    assert_true(WIFSIGNALED(how));
    return child;
}

static void stale_files_go(void **state)
{
    (void)state;
    char left[64], locked[64], mine[64];
    pid_t dead = write_and_die(in_folder("model"));
    snprintf(left, sizeof left, "model.tmp%ld-0", (long)dead);
    snprintf(locked, sizeof locked, "model.tmp%ld-1", (long)dead);
    snprintf(mine, sizeof mine, "model.tmp%ld-7", (long)getpid());
    const char *const others[] = {"model.tmp", "model.tmp-0", "model.tmp1x-0", "model.tmpx-0",
                                  "model2.tmp1-0"};
    assert_true(exists(in_folder(left)));
    touch(in_folder(mine));
    touch(in_folder(locked));
    int lock = open(in_folder(locked), O_RDONLY);
    assert_int_equal(flock(lock, LOCK_EX), 0);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        touch(in_folder(others[i]));

    assert_null(file_write(&allocator_default, in_folder("model"), "x", 1));
    assert_false(exists(in_folder(left)));
    assert_true(exists(in_folder(mine)));
    assert_true(exists(in_folder(locked)));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_true(exists(in_folder(others[i])));
    close(lock);
    file_remove_stale(in_folder("model"));
    assert_false(exists(in_folder(locked)));
}

/* What is forgotten is read again, whatever part of pages it is. */
static void what_is_forgotten_is_there(void **state)
{
    enum { SIZE = 5 * 65536 + 17 };
    static char bytes[SIZE];
    struct file_map map;
    (void)state;
    for (size_t i = 0; i < SIZE; i++)
        bytes[i] = (char)(i * 7 + i / 256);
    assert_null(file_write(&allocator_default, in_folder("weights"), bytes, SIZE));
    assert_null(file_map_open(in_folder("weights"), &map));
    assert_memory_equal(map.data, bytes, SIZE);
    file_map_forget(map.data, 0);
    file_map_forget((const char *)map.data + 4095, 2);
    file_map_forget((const char *)map.data + 100, 3 * 65536);
    file_map_forget(map.data, SIZE);
    assert_memory_equal(map.data, bytes, SIZE);
    file_map_close(&map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip),
        cmocka_unit_test(empty_file),
        cmocka_unit_test(pieces),
        cmocka_unit_test(aborting_leaves_the_old_file),
        cmocka_unit_test(permissions_and_links_stay),
        cmocka_unit_test(special_targets_are_written_directly),
        cmocka_unit_test(what_cannot_be_read),
        cmocka_unit_test(what_cannot_be_written),
        cmocka_unit_test(survives_failure),
        cmocka_unit_test(stale_files_go),
        cmocka_unit_test(what_is_forgotten_is_there),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
