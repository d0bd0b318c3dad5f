/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs of devices that launch grids, on disk: what one process compiled no other compiles
 * again, whatever it compiles it with; what was changed, is for another card, or cannot be loaded,
 * is compiled; and where nothing can be kept, that is said once. On the fake driver of CUDA, and on
 * OpenCL where there is one. What the cache itself believes is told by test_kernel_cache.c.
 */
/* ctest-timeout: 600 */
#include <dirent.h>
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
#include <unistd.h>

#include <cmocka.h>

#include "common/fake_cuda.h"
#include "common/model_on_device.h"
#include "common/no_error.h"
#include "common/process.h"

#define MODELS TSSA_SOURCE_DIR "/models/"
/* Launches, and kernels that are written as text; one that shares some of its launches. */
#define MODEL MODELS "yolov3_loop_small/model.onnx"
#define ANOTHER MODELS "yolov3_unrolled_small/model.onnx"

struct room {
    const char *device;
    char *folder;
    char path[256]; /* of the cache */
    char warnings[1024];
    int n_warnings;
};

static void note(void *user, tssa_log_level level, const char *message)
{
    struct room *room = user;
    if (level != TSSA_LOG_WARNING || !strstr(message, "compiled anew"))
        return;
    room->n_warnings++;
    snprintf(room->warnings, sizeof room->warnings, "%s", message);
}

static int make_room(void **state, const char *device)
{
    struct room *room = calloc(1, sizeof *room);
    assert_non_null(room);
    room->device = device;
    room->folder = temporary_folder();
    snprintf(room->path, sizeof room->path, "%s/kernels", room->folder);
    fake_cuda_use(true);
    *state = room;
    return 0;
}

static int make_cuda(void **state)
{
    return make_room(state, "cuda");
}

static int make_opencl(void **state)
{
    return make_room(state, "opencl");
}

static int leave_room(void **state)
{
    struct room *room = *state;
    unsetenv("FAKE_CUDA_FAIL");
    unsetenv("FAKE_CUDA_CAPABILITY");
    remove_folder(room->folder);
    free(room);
    return 0;
}

/* ---- Sessions -------------------------------------------------------------------------------- */

static tssa_status *open_run(struct room *room, struct model_run *run, const char *path,
                             tssa_compile compile)
{
    const tssa_context_options context = {.struct_size = sizeof context,
                                          .threads = 1,
                                          .kernel_cache = room->path,
                                          .log = note,
                                          .log_user = room};
    const tssa_optimize_options optimize = {
        .struct_size = sizeof optimize, .level = 2, .target = TSSA_TARGET_SESSION};
    const tssa_session_options options = {
        .struct_size = sizeof options, .device = room->device, .compile = compile};
    TRY(tssa_context_create(&context, &run->context));
    TRY(model_run_load(run, path));
    TRY(tssa_model_optimize(run->model, &optimize));
    TRY(model_run_read_inputs(run, path));
    return tssa_session_create(run->model, &options, &run->session);
}

/* Makes a session, as a process of its own would, and runs it. */
static tssa_status *play(struct room *room, const char *path, tssa_compile compile,
                         tssa_compile_info *info)
{
    struct model_run run = {0};
    tssa_status *status = open_run(room, &run, path, compile);
    if (!status)
        status = model_on_device_run(&run);
    if (!status)
        status = tssa_session_compiled(run.session, info);
    model_run_close(&run);
    return status;
}

/* The same, with the CPU's results. */
static tssa_compile_info check(struct room *room, const char *path, tssa_compile compile)
{
    struct model_run wanted = {0}, made = {0};
    tssa_compile_info info;
    tssa_status *status = open_run(room, &made, path, compile);
    if (tssa_status_code(status) == TSSA_UNSUPPORTED) {
        print_message("%s\n", tssa_status_message(status));
        tssa_status_free(status);
        model_run_close(&made);
        skip();
    }
    no_error(status);
    no_error(model_on_device_run(&made));
    no_error(model_on_device_open(&wanted, path, 2, NULL));
    no_error(model_run_execute(&wanted));
    model_on_device_compare(&made, &wanted, path);
    no_error(tssa_session_compiled(made.session, &info));
    model_run_close(&wanted);
    model_run_close(&made);
    assert_true(info.kernels > 3);
    assert_true(info.nanoseconds > 0);
    return info;
}

static void expect_all_found(struct room *room, const char *path, tssa_compile compile)
{
    setenv("FAKE_CUDA_FAIL", "nvrtcCreateProgram:6", 1); /* it is not even asked */
    const tssa_compile_info info = check(room, path, compile);
    unsetenv("FAKE_CUDA_FAIL");
    assert_int_equal(info.cached, info.kernels);
}

/* Whatever is compiled together, since it is found one by one. */
static void all_is_found(void **state)
{
    static const tssa_compile ways[] = {TSSA_COMPILE_WAIT, TSSA_COMPILE_OFF};
    struct room *room = *state;
    for (int first = 0; first < 2; first++) {
        assert_int_equal(check(room, MODEL, ways[first]).cached, 0);
        for (int second = 0; second < 2; second++)
            expect_all_found(room, MODEL, ways[second]);
        snprintf(room->path, sizeof room->path, "%s/others", room->folder);
    }
    assert_int_equal(room->n_warnings, 0);
}

static void models_share_what_is_kept(void **state)
{
    struct room *room = *state;
    assert_int_equal(check(room, MODEL, TSSA_COMPILE_WAIT).cached, 0);
    const tssa_compile_info info = check(room, ANOTHER, TSSA_COMPILE_OFF);
    assert_in_range(info.cached, 1, info.kernels - 1);
    expect_all_found(room, ANOTHER, TSSA_COMPILE_WAIT);
    expect_all_found(room, MODEL, TSSA_COMPILE_OFF);
}

/* ---- What is not believed -------------------------------------------------------------------- */

/* Does something to each file of the cache; how many there are. */
static int each_entry(const struct room *room, void (*does)(const char *path))
{
    char path[512];
    int n = 0;
    DIR *folder = opendir(room->path);
    assert_non_null(folder);
    for (const struct dirent *item; (item = readdir(folder)) != NULL;) {
        if (item->d_name[0] == '.')
            continue;
        assert_true(snprintf(path, sizeof path, "%s/%s", room->path, item->d_name) <
                    (int)sizeof path);
        does(path);
        n++;
    }
    closedir(folder);
    return n;
}

static void change_byte(const char *path)
{
    unsigned char byte;
    struct stat info;
    const int file = open(path, O_RDWR);
    assert_int_equal(fstat(file, &info), 0);
    assert_int_equal(pread(file, &byte, 1, info.st_size - 5), 1);
    byte ^= 1;
    assert_int_equal(pwrite(file, &byte, 1, info.st_size - 5), 1);
    close(file);
}

static void let_others_write(const char *path)
{
    assert_int_equal(chmod(path, 0620), 0);
}

static void link_it(const char *path)
{
    char away[600];
    snprintf(away, sizeof away, "%s.away", path);
    assert_int_equal(rename(path, away), 0);
    assert_int_equal(symlink(away, path), 0);
}

static void empty(const char *path)
{
    assert_int_equal(truncate(path, 0), 0);
}

static void give_away(const char *path)
{
    if (geteuid() == 0)
        assert_int_equal(chown(path, 1234, 0), 0);
    else
        unlink(path);
}

/* The entries of launches are left, without those of what they are in. */
static void drop_group(const char *path)
{
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    if (info.st_size > 16384)
        unlink(path);
}

static void what_is_wrong_is_compiled(void **state)
{
    static void (*const ways[])(const char *) = {change_byte, let_others_write, empty,
                                                 drop_group,  give_away,        link_it};
    struct room *room = *state;
    const size_t kernels = check(room, MODEL, TSSA_COMPILE_WAIT).kernels;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        assert_true(each_entry(room, ways[i]) > 3);
        const tssa_compile_info info =
            check(room, MODEL, i % 2 ? TSSA_COMPILE_OFF : TSSA_COMPILE_WAIT);
        assert_int_equal(info.kernels, kernels);
        assert_int_equal(info.cached, 0);
        expect_all_found(room, MODEL, TSSA_COMPILE_WAIT);
    }
    assert_int_equal(room->n_warnings, 0);
}

/* Those of another card, and of another folder of libraries. */
static void others_are_not_found(void **state)
{
    struct room *room = *state;
    char linked[512];
    assert_int_equal(check(room, MODEL, TSSA_COMPILE_WAIT).cached, 0);
    setenv("FAKE_CUDA_CAPABILITY", "80", 1);
    assert_int_equal(check(room, MODEL, TSSA_COMPILE_WAIT).cached, 0);
    expect_all_found(room, MODEL, TSSA_COMPILE_WAIT);
    unsetenv("FAKE_CUDA_CAPABILITY");
    expect_all_found(room, MODEL, TSSA_COMPILE_WAIT);
    snprintf(linked, sizeof linked, "%s/libraries", room->folder);
    assert_int_equal(symlink(getenv("TSSA_CUDA_LIBRARIES"), linked), 0);
    setenv("TSSA_CUDA_LIBRARIES", linked, 1);
    assert_int_equal(check(room, MODEL, TSSA_COMPILE_WAIT).cached, 0);
    fake_cuda_use(true);
    expect_all_found(room, MODEL, TSSA_COMPILE_WAIT);
}

/* ---- What cannot be kept --------------------------------------------------------------------- */

static void expect_warned(struct room *room, const char *what)
{
    const tssa_compile_info info = check(room, MODEL, TSSA_COMPILE_OFF);
    assert_int_equal(info.cached, 0);
    assert_int_equal(room->n_warnings, 1);
    assert_non_null(strstr(room->warnings, what));
    room->n_warnings = 0;
}

static void folders_that_will_not_do(void **state)
{
    struct room *room = *state;
    assert_int_equal(mkdir(room->path, 0770), 0);
    assert_int_equal(chmod(room->path, 0770), 0);
    expect_warned(room, "others may write");
    assert_int_equal(rmdir(room->path), 0);
    assert_int_equal(symlink("/tmp", room->path), 0);
    expect_warned(room, "cannot keep kernels in");
    assert_int_equal(unlink(room->path), 0);
    close(open(room->path, O_WRONLY | O_CREAT, 0600));
    expect_warned(room, "Not a directory");
}

/* As far as a process can be told so: the fake compiler knows the texts by then, and writes none.
 */
static void a_full_disk(void **state)
{
    struct room *room = *state;
    struct rlimit before, small;
    tssa_compile_info info;
    assert_int_equal(check(room, MODEL, TSSA_COMPILE_OFF).cached, 0);
    snprintf(room->path, sizeof room->path, "%s/full", room->folder);
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 100;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    tssa_status *status = play(room, MODEL, TSSA_COMPILE_OFF, &info);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    no_error(status);
    assert_int_equal(info.cached, 0);
    assert_int_equal(room->n_warnings, 1);
    assert_non_null(strstr(room->warnings, "File too large"));
}

/* An image that the driver refuses is compiled again; all else is an error; nothing is left. */
static void each_call_fails_once(void **state)
{
    struct room *room = *state;
    tssa_compile_info info;
    const size_t kernels = check(room, MODEL, TSSA_COMPILE_WAIT).kernels;
    unsigned compiled = 0;
    const unsigned long before = fake_cuda_calls();
    no_error(play(room, MODEL, TSSA_COMPILE_OFF, &info));
    const unsigned long calls = fake_cuda_calls() - before;
    for (unsigned long i = 0; i < calls; i++) {
        fake_cuda_fail_at(fake_cuda_calls() + i, 999);
        tssa_status *status = play(room, MODEL, TSSA_COMPILE_OFF, &info);
        if (!status)
            assert_int_equal(info.kernels, kernels);
        compiled += !status && info.cached < kernels;
        tssa_status_free(status);
        assert_int_equal(fake_cuda_alive(), 0);
    }
    fake_cuda_fail_at(-1ul, 0);
    assert_true(compiled > 0);
    expect_all_found(room, MODEL, TSSA_COMPILE_OFF);
}

#define ON_CUDA(name) cmocka_unit_test_setup_teardown(name, make_cuda, leave_room)
#define ON_OPENCL(name) cmocka_unit_test_setup_teardown(name, make_opencl, leave_room)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_CUDA(all_is_found),
        ON_CUDA(models_share_what_is_kept),
        ON_CUDA(what_is_wrong_is_compiled),
        ON_CUDA(others_are_not_found),
        ON_CUDA(folders_that_will_not_do),
        ON_CUDA(a_full_disk),
        ON_CUDA(each_call_fails_once),
        ON_OPENCL(all_is_found),
        ON_OPENCL(what_is_wrong_is_compiled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
