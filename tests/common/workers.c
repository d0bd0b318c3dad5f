/* SPDX-License-Identifier: Apache-2.0 */
/* Child processes fed over pipes: the parent sends an index, the child answers with result and
 * report. */
#include "common/workers.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NO_JOB SIZE_MAX
#define REPORT_MAX ((size_t)64 << 20)

struct worker {
    pid_t pid; /* 0: not running */
    int to, from;
    size_t job; /* NO_JOB: idle */
    double started;
};

struct reply {
    int result;
    uint64_t size;
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static bool write_all(int descriptor, const void *data, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t n = write(descriptor, (const char *)data + done, size - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        done += (size_t)n;
    }
    return true;
}

static bool read_all(int descriptor, void *data, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t n = read(descriptor, (char *)data + done, size - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        done += (size_t)n;
    }
    return true;
}

/* ---- The child ------------------------------------------------------------------------------- */

static void limit_child(const struct workers_options *options)
{
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    if (options->address_space) {
        struct rlimit limit = {options->address_space, options->address_space};
        setrlimit(RLIMIT_AS, &limit);
    }
    if (options->quiet) {
        int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
        if (null >= 0) {
            dup2(null, STDERR_FILENO);
            close(null);
        }
    }
}

_Noreturn static void child_main(const struct workers_options *options, int from, int to)
{
    struct text report;
    size_t index;
    limit_child(options);
    text_init(&report, &allocator_default);
    while (read_all(from, &index, sizeof index)) {
        text_clear(&report);
        struct reply reply = {.result = options->job(options->context, index, &report)};
        reply.size = report.failed ? 0 : report.size;
        if (!write_all(to, &reply, sizeof reply) || !write_all(to, report.data, reply.size))
            break;
    }
    text_free(&report);
    exit(0); /* not _exit: sanitizers look for leaks at exit */
}

/* ---- The parent ------------------------------------------------------------------------------ */

static bool worker_start(struct worker *worker, struct worker *all, int count,
                         const struct workers_options *options)
{
    int there[2], back[2];
    if (pipe2(there, O_CLOEXEC) != 0)
        return false;
    if (pipe2(back, O_CLOEXEC) != 0) {
        close(there[0]);
        close(there[1]);
        return false;
    }
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        for (int i = 0; i < count; i++) { /* or the others would never see the end of their input */
            if (all[i].pid) {
                close(all[i].to);
                close(all[i].from);
            }
        }
        close(there[1]);
        close(back[0]);
        child_main(options, there[0], back[1]);
    }
    close(there[0]);
    close(back[1]);
    if (pid < 0) {
        close(there[1]);
        close(back[0]);
        return false;
    }
    *worker = (struct worker){.pid = pid, .to = there[1], .from = back[0], .job = NO_JOB};
    return true;
}

/* Ends the child and returns its wait status. */
static int worker_stop(struct worker *worker, bool kill_it)
{
    int status = 0;
    if (kill_it)
        kill(worker->pid, SIGKILL);
    close(worker->to);
    close(worker->from);
    while (waitpid(worker->pid, &status, 0) < 0 && errno == EINTR)
        continue;
    worker->pid = 0;
    return status;
}

static void report_death(struct worker *worker, const struct workers_options *options, bool timeout)
{
    char why[120];
    size_t job = worker->job;
    double seconds = now() - worker->started;
    int status = worker_stop(worker, timeout);
    int result = timeout               ? WORKER_TIMEOUT
                 : WIFSIGNALED(status) ? WORKER_DIED
                                       : WORKER_EXITED(WEXITSTATUS(status));
    if (timeout)
        snprintf(why, sizeof why, "did not end within %g s", options->timeout_seconds);
    else if (WIFSIGNALED(status))
        snprintf(why, sizeof why, "crashed: %s", strsignal(WTERMSIG(status)));
    else
        snprintf(why, sizeof why, "ended the process with status %d", WEXITSTATUS(status));
    options->done(options->context, job, result, why, strlen(why), seconds);
}

/* Reads one answer. */
static void worker_answer(struct worker *worker, const struct workers_options *options)
{
    struct reply reply;
    char *report = NULL;
    bool whole = read_all(worker->from, &reply, sizeof reply) && reply.size < REPORT_MAX &&
                 (report = malloc(reply.size + 1)) != NULL &&
                 read_all(worker->from, report, reply.size);
    if (whole) {
        report[reply.size] = '\0';
        size_t job = worker->job;
        worker->job = NO_JOB;
        options->done(options->context, job, reply.result, report, reply.size,
                      now() - worker->started);
    } else {
        report_death(worker, options, false);
    }
    free(report);
}

/* Gives idle children their next jobs. False when no child can be started. */
static bool feed(struct worker *workers, const struct workers_options *options, size_t *next,
                 size_t count)
{
    for (int i = 0; i < options->workers && *next < count; i++) {
        struct worker *worker = &workers[i];
        if (!worker->pid && !worker_start(worker, workers, options->workers, options))
            return false;
        if (worker->job != NO_JOB)
            continue;
        worker->job = *next;
        worker->started = now();
        if (write_all(worker->to, next, sizeof *next))
            (*next)++;
        else /* it died while idle; the job is still to be done */
            worker_stop(worker, true);
    }
    return true;
}

/* Waits for answers and deadlines of busy children. */
static void attend(struct worker *workers, const struct workers_options *options)
{
    struct pollfd polls[64];
    struct worker *polled[64];
    nfds_t busy = 0;
    double deadline = now() + 3600;
    for (int i = 0; i < options->workers; i++) {
        if (!workers[i].pid || workers[i].job == NO_JOB)
            continue;
        polls[busy] = (struct pollfd){.fd = workers[i].from, .events = POLLIN};
        polled[busy++] = &workers[i];
        if (workers[i].started + options->timeout_seconds < deadline)
            deadline = workers[i].started + options->timeout_seconds;
    }
    double wait = deadline - now();
    if (poll(polls, busy, wait > 0 ? (int)(wait * 1e3) + 1 : 0) < 0)
        return;
    for (nfds_t i = 0; i < busy; i++) {
        if (polls[i].revents)
            worker_answer(polled[i], options);
        else if (now() - polled[i]->started > options->timeout_seconds)
            report_death(polled[i], options, true);
    }
}

int workers_run(const struct workers_options *given, size_t count)
{
    struct worker workers[64] = {0};
    struct workers_options options = *given;
    struct sigaction ignore = {.sa_handler = SIG_IGN}, old;
    size_t next = 0;
    int bad = 0;
    if (options.workers < 1)
        options.workers = 1;
    if (options.workers > 64)
        options.workers = 64;
    sigaction(SIGPIPE, &ignore, &old);
    for (;;) {
        bool started = feed(workers, &options, &next, count), busy = false;
        for (int i = 0; i < options.workers; i++)
            busy |= workers[i].pid && workers[i].job != NO_JOB;
        if (!busy && (next == count || !started))
            break;
        attend(workers, &options);
    }
    for (int i = 0; i < options.workers; i++) {
        if (workers[i].pid && worker_stop(&workers[i], false) != 0)
            bad++;
    }
    sigaction(SIGPIPE, &old, NULL);
    return next == count ? bad : -1;
}
