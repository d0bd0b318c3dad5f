/* SPDX-License-Identifier: Apache-2.0 */
#include "common/process.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/xmalloc.h"

static void limit(int resource, rlim_t value)
{
    const struct rlimit both = {value, value};
    setrlimit(resource, &both);
}

_Noreturn static void become(const char *const *argv, const char *in, const char *out, int pipe_out,
                             int pipe_err, const struct process_limits *limits)
{
    int from = open(in ? in : "/dev/null", O_RDONLY);
    int to = out ? open(out, O_WRONLY | O_CREAT | O_TRUNC, 0666) : pipe_out;
    dup2(from, STDIN_FILENO);
    dup2(to, STDOUT_FILENO);
    dup2(pipe_err, STDERR_FILENO);
    limit(RLIMIT_CORE, 0);
    if (limits->address_space)
        limit(RLIMIT_AS, limits->address_space);
    if (limits->file_size) {
        limit(RLIMIT_FSIZE, limits->file_size);
        signal(SIGXFSZ, SIG_IGN); /* write says EFBIG, as ENOSPC on a full disk */
    }
    execv(argv[0], (char *const *)argv);
    _exit(127);
}

/* Reads once; false at the end. */
static bool gather(int descriptor, char **text, size_t *size)
{
    char bytes[4096];
    ssize_t n = read(descriptor, bytes, sizeof bytes);
    if (n <= 0)
        return n < 0 && errno == EINTR;
    *text = xrealloc(*text, *size + (size_t)n + 1);
    memcpy(*text + *size, bytes, (size_t)n);
    *size += (size_t)n;
    (*text)[*size] = '\0';
    return true;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Until both pipes are closed or time is up. */
static void listen_to(pid_t pid, int out, int err, double seconds, struct process_result *result)
{
    struct pollfd polls[2] = {{.fd = out, .events = POLLIN}, {.fd = err, .events = POLLIN}};
    size_t sizes[2] = {0, 0};
    char **texts[2] = {&result->out, &result->err};
    double end = now() + seconds;
    while (polls[0].fd >= 0 || polls[1].fd >= 0) {
        double left = end - now();
        if (left <= 0)
            kill(pid, SIGKILL);
        poll(polls, 2, left > 0 ? (int)(left * 1e3) + 1 : 100);
        for (int i = 0; i < 2; i++) {
            if (polls[i].fd >= 0 && polls[i].revents && !gather(polls[i].fd, texts[i], &sizes[i]))
                polls[i].fd = -1;
        }
    }
}

struct process_result process_run(const char *const *argv, const char *in, const char *out,
                                  const struct process_limits *limits)
{
    struct process_result result = {-1, xstrdup(""), xstrdup("")};
    int pipe_out[2], pipe_err[2], status;
    if (pipe2(pipe_out, O_CLOEXEC) != 0)
        return result;
    if (pipe2(pipe_err, O_CLOEXEC) != 0) {
        close(pipe_out[0]);
        close(pipe_out[1]);
        return result;
    }
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        become(argv, in, out, pipe_out[1], pipe_err[1], limits);
    close(pipe_out[1]);
    close(pipe_err[1]);
    if (pid > 0) {
        listen_to(pid, pipe_out[0], pipe_err[0], limits->seconds, &result);
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            continue;
        result.status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
    }
    close(pipe_out[0]);
    close(pipe_err[0]);
    return result;
}

void process_result_free(struct process_result *result)
{
    free(result->out);
    free(result->err);
}

void process_drop_announcements(struct process_result *result)
{
    char *to = result->err;
    for (const char *line = result->err, *next; *line; line = next) {
        size_t length = strcspn(line, "\n");
        next = line + length + (line[length] == '\n');
        if (length >= 4 && memcmp(line + length - 4, " ...", 4) == 0)
            continue;
        memmove(to, line, (size_t)(next - line));
        to += next - line;
    }
    *to = '\0';
}

char *temporary_folder(void)
{
    char *folder = xstrdup("/tmp/tssa-test-XXXXXX");
    if (!mkdtemp(folder)) {
        perror(folder);
        exit(2);
    }
    return folder;
}

static int remove_one(const char *path, const struct stat *about, int kind, struct FTW *position)
{
    (void)about;
    (void)kind;
    (void)position;
    return remove(path);
}

void remove_folder(char *folder)
{
    nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(folder);
}
