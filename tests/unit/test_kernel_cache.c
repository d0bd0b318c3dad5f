/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiled kernels on disk: what was kept is found by whom it was made for, and by nobody else;
 * what was changed, or may have been by somebody else, is not believed; and where nothing can be
 * kept, it is said once and compiled each time.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <dirent.h>

#include "codegen/cache.h"
#include "common/compiling.h"
#include "common/no_error.h"
#include "common/process.h"

#define OBJECT "what was compiled"

static const struct gir_kernel kernel = {.magic = GIR_MAGIC, .size = sizeof kernel},
                               another = {.magic = GIR_MAGIC, .size = sizeof another, .n_args = 1};

/* ---- A cache --------------------------------------------------------------------------------- */

struct room {
    char *folder;
    char path[256];    /* of the cache, in a folder that is not there yet */
    char library[256]; /* what LLVM is in this test */
    struct codegen_maker maker;
};

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static int make_room(void **state)
{
    struct room *room = calloc(1, sizeof *room);
    assert_non_null(room);
    room->folder = temporary_folder();
    snprintf(room->path, sizeof room->path, "%s/a/b/kernels", room->folder);
    snprintf(room->library, sizeof room->library, "%s/library", room->folder);
    write_file(room->library, "a library");
    snprintf(room->maker.library, sizeof room->maker.library, "%s", room->library);
    assert_true(file_identify(room->library, &room->maker.identity));
    *state = room;
    return 0;
}

static int leave_room(void **state)
{
    struct room *room = *state;
    remove_folder(room->folder);
    free(room);
    return 0;
}

static void open_cache(const struct room *room, struct cache *cache)
{
    char message[160] = "";
    if (!cache_open(cache, room->path, CODEGEN_V3, message, sizeof message))
        fail_msg("%s", message);
    if (cache->folder < 0)
        skip(); /* there is no plugin in this build */
}

static void keep(const struct room *room, const struct cache *cache)
{
    char message[160] = "";
    if (!cache_write(cache, &allocator_default, cache_subject_of(&kernel), &room->maker, OBJECT,
                     sizeof OBJECT, message, sizeof message))
        fail_msg("%s", message);
}

static bool has(const struct cache *cache, const struct gir_kernel *wanted)
{
    size_t size;
    void *object = cache_read(cache, &allocator_default, cache_subject_of(wanted), &size);
    if (object) {
        assert_int_equal(size, sizeof OBJECT);
        assert_memory_equal(object, OBJECT, size);
    }
    allocator_free(&allocator_default, object);
    return object != NULL;
}

/* Names of what is in it; how many. */
static int list(const struct room *room, char names[][128], int most)
{
    int n = 0;
    DIR *folder = opendir(room->path);
    assert_non_null(folder);
    for (const struct dirent *item; (item = readdir(folder)) != NULL;)
        if (item->d_name[0] != '.' && n++ < most)
            snprintf(names[n - 1], 128, "%.120s", item->d_name);
    closedir(folder);
    return n;
}

/* The path of the one entry. */
static void find_entry(const struct room *room, char *path, size_t size)
{
    char names[1][128];
    assert_int_equal(list(room, names, 1), 1);
    assert_true(snprintf(path, size, "%s/%s", room->path, names[0]) < (int)size);
}

/* ---- Finding --------------------------------------------------------------------------------- */

static void finds_what_was_kept(void **state)
{
    const struct room *room = *state;
    struct cache cache;
    struct stat info;
    open_cache(room, &cache);
    assert_int_equal(stat(room->path, &info), 0);
    assert_int_equal(info.st_mode & 0777, 0700);
    assert_false(has(&cache, &kernel));
    keep(room, &cache);
    assert_true(has(&cache, &kernel));
    assert_false(has(&cache, &another));
    cache_close(&cache);
    assert_false(has(&cache, &kernel));
    open_cache(room, &cache);
    assert_true(has(&cache, &kernel));
    cache_close(&cache);
}

/* Each part of the key counts, also where the name is the same by accident. */
static void finds_nothing_of_others(void **state)
{
    const struct room *room = *state;
    struct cache cache;
    char path[512], other[512];
    char names[2][128];
    open_cache(room, &cache);
    keep(room, &cache);
    find_entry(room, path, sizeof path);
    for (size_t i = 0; i < sizeof cache.key; i++) {
        ((char *)&cache.key)[i] ^= 1;
        assert_false(has(&cache, &kernel));
        if (i % 40 == 0) { /* its own, under whose name the first is put */
            keep(room, &cache);
            assert_int_equal(list(room, names, 2), 2);
            snprintf(other, sizeof other, "%s/%s", room->path,
                     names[strstr(path, names[0]) ? 1 : 0]);
            assert_true(has(&cache, &kernel));
            assert_int_equal(unlink(other), 0);
            assert_int_equal(link(path, other), 0);
            assert_false(has(&cache, &kernel));
            assert_int_equal(unlink(other), 0);
        }
        ((char *)&cache.key)[i] ^= 1;
    }
    assert_true(has(&cache, &kernel));
    cache_close(&cache);
}

static void finds_nothing_of_another_library(void **state)
{
    const struct room *room = *state;
    struct cache cache;
    open_cache(room, &cache);
    keep(room, &cache);
    write_file(room->library, "a library of the same name");
    assert_false(has(&cache, &kernel));
    unlink(room->library);
    assert_false(has(&cache, &kernel));
    cache_close(&cache);
}

/* ---- What is not believed -------------------------------------------------------------------- */

static void damaged_entries(void **state)
{
    const struct room *room = *state;
    struct cache cache;
    char path[512], bytes[4096];
    open_cache(room, &cache);
    keep(room, &cache);
    find_entry(room, path, sizeof path);
    int file = open(path, O_RDWR);
    const ssize_t size = read(file, bytes, sizeof bytes);
    assert_in_range(size, sizeof kernel + sizeof OBJECT, sizeof bytes - 1);
    for (ssize_t i = 0; i < size; i++) {
        const char changed = (char)(bytes[i] ^ 4);
        assert_int_equal(pwrite(file, &changed, 1, i), 1);
        assert_false(has(&cache, &kernel));
        assert_int_equal(pwrite(file, &bytes[i], 1, i), 1);
    }
    assert_true(has(&cache, &kernel));
    assert_int_equal(pwrite(file, "", 1, size), 1); /* one more */
    assert_false(has(&cache, &kernel));
    for (ssize_t i = 0; i < size; i += 7) {
        assert_int_equal(ftruncate(file, i), 0);
        assert_false(has(&cache, &kernel));
    }
    close(file);
    keep(room, &cache); /* in its place */
    assert_true(has(&cache, &kernel));
    cache_close(&cache);
}

static void entries_of_others(void **state)
{
    const struct room *room = *state;
    struct cache cache;
    char path[512], away[512];
    open_cache(room, &cache);
    keep(room, &cache);
    find_entry(room, path, sizeof path);
    assert_int_equal(chmod(path, 0620), 0);
    assert_false(has(&cache, &kernel));
    assert_int_equal(chmod(path, 0600), 0);
    assert_true(has(&cache, &kernel));
    if (geteuid() == 0) {
        assert_int_equal(chown(path, 1234, 0), 0);
        assert_false(has(&cache, &kernel));
        assert_int_equal(chown(path, 0, 0), 0);
    }
    snprintf(away, sizeof away, "%s/away", room->folder);
    assert_int_equal(rename(path, away), 0);
    assert_int_equal(symlink(away, path), 0);
    assert_false(has(&cache, &kernel));
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_false(has(&cache, &kernel)); /* and does not wait */
    cache_close(&cache);
}

static void expect_refused(const struct room *room, const char *why)
{
    struct cache cache;
    char message[160] = "";
    assert_false(cache_open(&cache, room->path, CODEGEN_V3, message, sizeof message));
    assert_int_equal(cache.folder, -1);
    assert_non_null(strstr(message, why));
    assert_false(has(&cache, &kernel));
    cache_close(&cache);
}

static void folders_of_others(void **state)
{
    struct room *room = *state;
    struct cache cache;
    char away[512];
    open_cache(room, &cache);
    cache_close(&cache);
    assert_int_equal(chmod(room->path, 0770), 0);
    expect_refused(room, "others");
    assert_int_equal(chmod(room->path, 0700), 0);
    if (geteuid() == 0) {
        assert_int_equal(chown(room->path, 1234, 0), 0);
        expect_refused(room, "not ours");
        snprintf(room->path, sizeof room->path, "%s/a/b/kernels/of/root", room->folder);
        expect_refused(room, "No such file"); /* root makes none there */
        snprintf(room->path, sizeof room->path, "%s/a/b/kernels", room->folder);
        assert_int_equal(chown(room->path, 0, 0), 0);
    }
    snprintf(away, sizeof away, "%s/away", room->folder);
    assert_int_equal(rename(room->path, away), 0);
    assert_int_equal(symlink(away, room->path), 0);
    expect_refused(room, "cannot keep kernels in");
    snprintf(room->path, sizeof room->path, "%s/library/kernels", room->folder);
    expect_refused(room, "Not a directory");
}

/* ---- Bounds ---------------------------------------------------------------------------------- */

static void keep_numbered(const struct room *room, const struct cache *cache, uint32_t number)
{
    struct gir_kernel numbered = kernel;
    char message[160] = "";
    numbered.n_codes = number;
    assert_true(cache_write(cache, &allocator_default, cache_subject_of(&numbered), &room->maker,
                            OBJECT, sizeof OBJECT, message, sizeof message));
}

static bool has_numbered(const struct cache *cache, uint32_t number)
{
    struct gir_kernel numbered = kernel;
    numbered.n_codes = number;
    return has(cache, &numbered);
}

/* Entries that are younger become as old as that: a file system's clock may stand still for ten
 * milliseconds, so that those kept one after the other had the same time. */
static void age_younger(const struct room *room, time_t than)
{
    char names[32][128], path[512];
    struct stat info;
    const struct timespec times[2] = {{.tv_sec = than}, {.tv_sec = than}};
    const int n = list(room, names, 32);
    assert_in_range(n, 1, 32);
    for (int i = 0; i < n; i++) {
        assert_true(snprintf(path, sizeof path, "%s/%s", room->path, names[i]) < (int)sizeof path);
        assert_int_equal(stat(path, &info), 0);
        if (info.st_mtim.tv_sec > than)
            assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
    }
}

static void the_oldest_go(void **state)
{
    const struct room *room = *state;
    struct cache cache;
    struct stat info;
    char path[512];
    open_cache(room, &cache);
    keep_numbered(room, &cache, 0);
    find_entry(room, path, sizeof path);
    assert_int_equal(stat(path, &info), 0);
    const struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);
    const time_t now = time(NULL);
    for (uint32_t i = 1; i < 20; i++) {
        keep_numbered(room, &cache, i);
        age_younger(room, now - 100 + i);
    }
    snprintf(path, sizeof path, "%s/cut.kernel.tmp1-1", room->path);
    write_file(path, "");
    cache_trim(&cache, &allocator_default, 20 * (uint64_t)info.st_size);
    for (uint32_t i = 0; i < 20; i++)
        assert_true(has_numbered(&cache, i)); /* which makes the first a young one */
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);
    cache_trim(&cache, &allocator_default, 20 * (uint64_t)info.st_size - 1);
    assert_int_equal(access(path, F_OK), -1);
    assert_true(has_numbered(&cache, 0));
    for (uint32_t i = 1; i < 20; i++)
        assert_int_equal(has_numbered(&cache, i), i > 6);
    cache_close(&cache);
}

/* A disk that is full, as far as a process can be told that it is. */
static void a_full_disk(void **state)
{
    const struct room *room = *state;
    struct cache cache;
    struct rlimit before, small;
    char message[160] = "", names[1][128];
    open_cache(room, &cache);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 100;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    assert_false(cache_write(&cache, &allocator_default, cache_subject_of(&kernel), &room->maker,
                             OBJECT, sizeof OBJECT, message, sizeof message));
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_non_null(strstr(message, "cannot keep kernels"));
    assert_int_equal(list(room, names, 1), 0);
    cache_close(&cache);
}

/* ---- Sessions -------------------------------------------------------------------------------- */

/* A second process has no need of a generator: here it is one that aborts. */
static void sessions_find_kernels(void **state)
{
    const struct room *room = *state;
    struct compiling c;
    char names[3][128];
    if (!compiling_is_possible())
        skip();
    compiling_fake("real");
    compiling_open(&c, TSSA_COMPILE_WAIT, room->path);
    tssa_compile_info info = compiling_finish(&c);
    assert_int_equal(info.kernels, 2);
    assert_int_equal(info.cached, 0);
    compiling_close(&c);
    assert_int_equal(list(room, names, 3), 2);
    compiling_fake("abort");
    for (int i = 0; i < 2; i++) {
        compiling_open(&c, i ? TSSA_COMPILE_BACKGROUND : TSSA_COMPILE_WAIT, room->path);
        info = compiling_finish(&c);
        assert_int_equal(info.kernels, 2);
        assert_int_equal(info.cached, 2);
        assert_int_equal(c.n_warnings, 0);
        compiling_close(&c);
    }
    compiling_fake(NULL); /* another generator */
    compiling_open(&c, TSSA_COMPILE_BACKGROUND, room->path);
    info = compiling_finish(&c);
    assert_int_equal(info.kernels, 2);
    assert_int_equal(info.cached, 0);
    compiling_close(&c);
    assert_int_equal(list(room, names, 3), 4);
}

static tssa_compile_info compile_model(const struct room *room, const char *path)
{
    tssa_context *context;
    tssa_model *model;
    tssa_session *session;
    tssa_compile_info info;
    const tssa_context_options options = {
        .struct_size = sizeof options, .threads = 1, .kernel_cache = room->path};
    const tssa_optimize_options level = {
        .struct_size = sizeof level, .level = 2, .target = TSSA_TARGET_SESSION};
    const tssa_session_options wait = {.struct_size = sizeof wait, .compile = TSSA_COMPILE_WAIT};
    no_error(tssa_context_create(&options, &context));
    no_error(tssa_model_load_file(context, path, NULL, &model));
    no_error(tssa_model_optimize(model, &level));
    no_error(tssa_session_create(model, &wait, &session));
    no_error(tssa_session_compiled(session, &info));
    tssa_session_free(session);
    tssa_model_free(model);
    tssa_context_free(context);
    return info;
}

/* What is told are kernels of operators, be they made of several parts. */
static void kernels_of_parts_are_found(void **state)
{
    static const char path[] = TSSA_SOURCE_DIR "/models/t_dataflow_small/model.onnx";
    const struct room *room = *state;
    if (!compiling_is_possible())
        skip();
    const tssa_compile_info first = compile_model(room, path), second = compile_model(room, path);
    assert_true(first.kernels > 0);
    assert_int_equal(first.cached, 0);
    assert_int_equal(second.kernels, first.kernels);
    assert_int_equal(second.cached, second.kernels);
}

static void sessions_do_without(void **state)
{
    struct room *room = *state;
    struct compiling c;
    if (!compiling_is_possible())
        skip();
    snprintf(room->path, sizeof room->path, "%s/library/kernels", room->folder);
    compiling_open(&c, TSSA_COMPILE_WAIT, room->path);
    assert_int_equal(compiling_finish(&c).kernels, 2);
    compiling_again(&c, TSSA_COMPILE_BACKGROUND);
    assert_int_equal(compiling_finish(&c).kernels, 2);
    assert_int_equal(c.n_warnings, 1);
    assert_non_null(strstr(c.warnings, "Not a directory: kernels are compiled anew each time"));
    compiling_close(&c);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_room, leave_room)

int main(void)
{
    const struct CMUnitTest tests[] = {TEST(finds_what_was_kept),
                                       TEST(finds_nothing_of_others),
                                       TEST(finds_nothing_of_another_library),
                                       TEST(damaged_entries),
                                       TEST(entries_of_others),
                                       TEST(folders_of_others),
                                       TEST(the_oldest_go),
                                       TEST(a_full_disk),
                                       TEST(sessions_find_kernels),
                                       TEST(kernels_of_parts_are_found),
                                       TEST(sessions_do_without)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
