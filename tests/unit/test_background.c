/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels that are compiled while a session runs: the bits are the same before and after, nobody
 * waits, and whatever happens to the process that compiles, or to the one that it compiles for, the
 * session runs.
 */
/* ctest-labels: tsan */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "common/compiling.h"
#include "common/no_error.h"
#include "common/process.h"

#if defined(__x86_64__)
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#endif

#if defined(__SANITIZE_THREAD__)
__attribute__((visibility("default"))) const char *__tsan_default_options(void);

/* A child has the threads of who forked it as ended, and nobody can join them there: no leak of its
 * own. */
const char *__tsan_default_options(void)
{
    return "report_thread_leaks=0";
}
#endif

static bool is_possible;

#define NEEDS_A_GENERATOR                                                                          \
    do {                                                                                           \
        (void)state;                                                                               \
        if (!is_possible)                                                                          \
            skip();                                                                                \
    } while (0)

static double seconds_since(uint64_t start)
{
    return (double)(clock_monotonic() - start) * 1e-9;
}

/* ---- Changing -------------------------------------------------------------------------------- */

static void changes_between_runs(void **state)
{
    NEEDS_A_GENERATOR;
    struct compiling c;
    tssa_compile_info info;
    compiling_fake("slow");
    compiling_open(&c, TSSA_COMPILE_BACKGROUND, NULL);
    no_error(tssa_session_compiled(c.session, &info));
    assert_int_equal(info.pending, 1);
    assert_int_equal(info.kernels, 0);
    compiling_run(&c);
    info = compiling_finish(&c);
    assert_int_equal(info.kernels, 2);
    assert_int_equal(info.refused, 0);
    assert_true(info.nanoseconds > 300000000);
    assert_int_equal(c.n_warnings, 0);
    compiling_close(&c);
}

/* The second session finds what the first has. */
static void compiles_once(void **state)
{
    NEEDS_A_GENERATOR;
    struct compiling c;
    compiling_fake(NULL);
    compiling_open(&c, TSSA_COMPILE_BACKGROUND, NULL);
    assert_int_equal(compiling_finish(&c).kernels, 2);
    compiling_fake("hang");
    compiling_again(&c, TSSA_COMPILE_WAIT);
    assert_int_equal(compiling_finish(&c).kernels, 2);
    compiling_close(&c);
}

/* Two threads, two processes at once. */
static void compiles_at_once(void **state)
{
    NEEDS_A_GENERATOR;
    struct compiling c;
    char *folder = temporary_folder(), file[256];
    snprintf(file, sizeof file, "%s/came", folder);
    setenv("TSSA_FAKE_FILE", file, 1);
    compiling_fake("together");
    compiling_open_two(&c);
    assert_int_equal(compiling_finish(&c).kernels, 2);
    compiling_close(&c);
    remove_folder(folder);
}

/* OpenMP binds the thread that calls it to a processor: what compiles may use the others. */
static void compiles_elsewhere(void **state)
{
    NEEDS_A_GENERATOR;
    struct compiling c;
    cpu_set_t all, one;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    if (CPU_COUNT(&all) < 2)
        skip();
    compiling_fake("unbound");
    compiling_open(&c, TSSA_COMPILE_OFF, NULL);
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
    compiling_again(&c, TSSA_COMPILE_WAIT);
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
    assert_int_equal(compiling_finish(&c).kernels, 2);
    compiling_close(&c);
}

struct runner {
    struct compiling *c;
    _Atomic bool *end;
};

/* Values are the thread's own. */
static void *run_again_and_again(void *context)
{
    const struct runner *runner = context;
    tssa_value *outputs[2] = {NULL};
    for (int i = 0; i < 20000 && !atomic_load(runner->end); i++) {
        tssa_status *status =
            tssa_session_run(runner->c->session, 2, runner->c->inputs, 2, outputs);
        if (status)
            return status;
        for (int k = 0; k < 2; k++) {
            tssa_value_free(outputs[k]);
            outputs[k] = NULL;
        }
    }
    return NULL;
}

static void changes_under_concurrent_runs(void **state)
{
    NEEDS_A_GENERATOR;
    struct compiling c;
    pthread_t threads[3];
    compiling_fake(NULL);
    for (int round = 0; round < 5; round++) {
        _Atomic bool end = false;
        struct runner runner = {&c, &end};
        compiling_open(&c, TSSA_COMPILE_BACKGROUND, NULL);
        for (int i = 0; i < 3; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, run_again_and_again, &runner), 0);
        assert_int_equal(compiling_finish(&c).kernels, 2);
        atomic_store(&end, true);
        for (int i = 0; i < 3; i++) {
            void *status;
            pthread_join(threads[i], &status);
            no_error(status);
        }
        compiling_close(&c);
    }
}

/* ---- Ending ---------------------------------------------------------------------------------- */

/* Session, model and context in the midst of it. */
static void ends_at_once(void **state)
{
    (void)state;
    struct compiling c;
    compiling_fake("hang");
    for (int wait = 0; wait < 60; wait += 20) {
        const uint64_t start = clock_monotonic();
        compiling_open(&c, TSSA_COMPILE_BACKGROUND, NULL);
        compiling_run(&c);
        usleep((useconds_t)wait * 1000);
        compiling_close(&c);
        assert_true(seconds_since(start) < 10);
        assert_int_equal(c.n_warnings, 0);
    }
}

/* The other one goes on, and its process with it. */
static void one_of_two_ends(void **state)
{
    NEEDS_A_GENERATOR;
    struct compiling ended, other;
    compiling_fake("slow");
    compiling_open(&other, TSSA_COMPILE_BACKGROUND, NULL);
    compiling_open(&ended, TSSA_COMPILE_BACKGROUND, NULL);
    compiling_close(&ended);
    assert_int_equal(compiling_finish(&other).kernels, 2);
    compiling_close(&other);
}

/* A program that returns from main while a kernel is compiled: this one, as main says. */
static const char exits[] = "--exits";
static const char *self;

static int exit_while_compiling(void)
{
    struct compiling *c = malloc(sizeof *c);
    compiling_fake("hang");
    compiling_open(c, TSSA_COMPILE_BACKGROUND, NULL);
    compiling_run(c);
    usleep(20000);
    return 0;
}

static void a_program_exits(void **state)
{
    (void)state;
    const char *const arguments[] = {self, exits, NULL};
    const struct process_limits limits = {.seconds = 60};
    setenv("ASAN_OPTIONS", "detect_leaks=0", 1); /* it frees nothing, which is what is tested */
    setenv("TSAN_OPTIONS", "report_thread_leaks=0", 1);
    const uint64_t start = clock_monotonic();
    struct process_result result = process_run(arguments, NULL, NULL, &limits);
    unsetenv("ASAN_OPTIONS");
    unsetenv("TSAN_OPTIONS");
    assert_string_equal(result.err, "");
    assert_int_equal(result.status, 0);
    assert_true(seconds_since(start) < 20);
    process_result_free(&result);
}

/* ---- Forking --------------------------------------------------------------------------------- */

/* The exit status of a child that runs the session and frees all. */
static int run_in_child(struct compiling *c, bool compiles)
{
    int how = -1;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        alarm(60);
        compiling_run(c);
        if (compiles) {
            compiling_fake(NULL);
            compiling_again(c, TSSA_COMPILE_WAIT);
            compiling_run(c);
        }
        compiling_close(c);
        _exit(7);
    }
    while (waitpid(child, &how, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(how) ? WEXITSTATUS(how) : -1;
}

static void forks_while_compiling(void **state)
{
    (void)state;
    struct compiling c;
    const uint64_t start = clock_monotonic();
    compiling_fake("hang");
    compiling_open(&c, TSSA_COMPILE_BACKGROUND, NULL);
    usleep(20000);
    assert_int_equal(run_in_child(&c, false), 7);
    compiling_run(&c);
    compiling_close(&c);
    assert_true(seconds_since(start) < 20);
}

static void forks_afterwards(void **state)
{
    NEEDS_A_GENERATOR;
    struct compiling c;
    compiling_fake(NULL);
    compiling_open(&c, TSSA_COMPILE_BACKGROUND, NULL);
    assert_int_equal(compiling_finish(&c).kernels, 2);
    assert_int_equal(run_in_child(&c, true), 7);
    compiling_run(&c);
    compiling_close(&c);
}

/* Done, and nobody has run it since: the child changes, without the thread. */
static void forks_before_the_change(void **state)
{
    NEEDS_A_GENERATOR;
    struct compiling c;
    compiling_fake(NULL);
    compiling_open(&c, TSSA_COMPILE_BACKGROUND, NULL);
    sleep(1);
    assert_int_equal(run_in_child(&c, true), 7);
    assert_int_equal(compiling_finish(&c).kernels, 2);
    compiling_close(&c);
}

/* ---- What may fail --------------------------------------------------------------------------- */

/* Nothing is compiled, it runs, and that is said once, whatever comes later. */
static void expect_none(tssa_compile compile, const char *why)
{
    struct compiling c;
    compiling_open(&c, compile, NULL);
    const tssa_compile_info info = compiling_finish(&c);
    assert_int_equal(info.kernels, 0);
    assert_int_equal(info.refused, 2);
    assert_int_equal(c.n_warnings, 1);
    if (!strstr(c.warnings, why))
        fail_msg("%s\nis said where this is to be: %s", c.warnings, why);
    compiling_again(&c, compile);
    compiling_finish(&c);
    assert_int_equal(c.n_warnings, 1);
    compiling_close(&c);
}

static void expect_none_either_way(const char *fake, const char *why)
{
    compiling_fake(fake);
    expect_none(TSSA_COMPILE_WAIT, why);
    expect_none(TSSA_COMPILE_BACKGROUND, why);
}

static void the_generator_aborts(void **state)
{
    (void)state;
    expect_none_either_way("abort", "tssa-codegen was ended by signal 6");
}

static void the_generator_declines(void **state)
{
    (void)state;
    expect_none_either_way("no", "no code today");
    expect_none_either_way("nonsense", "the object file is broken");
}

static void the_generator_is_absent(void **state)
{
    (void)state;
    char *folder = temporary_folder();
    expect_none_either_way("absent", "install libllvm19");
    setenv("TSSA_PLUGIN_DIR", folder, 1);
    expect_none(TSSA_COMPILE_BACKGROUND, "there is no tssa-codegen");
    remove_folder(folder);
}

/* What it aborts on once is asked of another process. */
static void the_generator_aborts_once(void **state)
{
    NEEDS_A_GENERATOR;
    struct compiling c;
    char *folder = temporary_folder(), file[256];
    snprintf(file, sizeof file, "%s/aborted", folder);
    setenv("TSSA_FAKE_FILE", file, 1);
    compiling_fake("once");
    compiling_open(&c, TSSA_COMPILE_BACKGROUND, NULL);
    assert_int_equal(compiling_finish(&c).kernels, 2);
    assert_int_equal(access(file, F_OK), 0);
    compiling_close(&c);
    remove_folder(folder);
}

/* Somebody else's business: signals of children that are ignored, and those that nobody is to wait
 * for. */
static void children_are_not_waited_for(void **state)
{
    NEEDS_A_GENERATOR;
    struct compiling c;
    compiling_fake(NULL);
    signal(SIGCHLD, SIG_IGN);
    compiling_open(&c, TSSA_COMPILE_BACKGROUND, NULL);
    assert_int_equal(compiling_finish(&c).kernels, 2);
    compiling_close(&c);
    signal(SIGCHLD, SIG_DFL);
    errno = 0;
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

#if defined(__x86_64__)
/* From now on no memory becomes executable by mprotect. */
static bool refuse_code(void)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {.len = sizeof rules / sizeof *rules, .filter = rules};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static void no_memory_for_code(void **state)
{
    NEEDS_A_GENERATOR;
    int how = -1;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        alarm(60);
        if (!refuse_code())
            _exit(8);
        compiling_fake(NULL);
        expect_none(TSSA_COMPILE_WAIT, "the system allows no executable memory");
        _exit(7);
    }
    while (waitpid(child, &how, 0) < 0 && errno == EINTR)
        ;
    assert_true(WIFEXITED(how));
    if (WEXITSTATUS(how) == 8)
        skip();
    assert_int_equal(WEXITSTATUS(how), 7);
}
#endif

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
#if defined(__x86_64__)
        cmocka_unit_test(no_memory_for_code),
        cmocka_unit_test(the_generator_aborts),
        cmocka_unit_test(the_generator_declines),
        cmocka_unit_test(the_generator_is_absent),
#endif
        cmocka_unit_test(changes_between_runs),
        cmocka_unit_test(compiles_once),
        cmocka_unit_test(compiles_at_once),
        cmocka_unit_test(compiles_elsewhere),
        cmocka_unit_test(changes_under_concurrent_runs),
        cmocka_unit_test(ends_at_once),
        cmocka_unit_test(one_of_two_ends),
        cmocka_unit_test(a_program_exits),
        cmocka_unit_test(forks_while_compiling),
        cmocka_unit_test(forks_afterwards),
        cmocka_unit_test(forks_before_the_change),
        cmocka_unit_test(the_generator_aborts_once),
        cmocka_unit_test(children_are_not_waited_for)
    };
    self = argv[0];
    if (argc > 1 && strcmp(argv[1], exits) == 0)
        return exit_while_compiling();
    is_possible = compiling_is_possible();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
