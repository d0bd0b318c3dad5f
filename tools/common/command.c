/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/common/command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/common/clock.h"
#include "tools/common/interrupt.h"

/* ---- Words ----------------------------------------------------------------------------------- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n';
}

/* One word from *text on, which is moved behind it. False when a quote does not end. */
static bool take_word(const char **text, char *word)
{
    char quote = 0;
    const char *c = *text;
    for (; *c && (quote || !is_blank(*c)); c++) {
        bool escapes = *c == '\\' && c[1] && (!quote || (quote == '"' && strchr("\"\\", c[1])));
        if (escapes)
            *word++ = *++c;
        else if (quote ? *c == quote : *c == '\'' || *c == '"')
            quote = quote ? 0 : *c;
        else
            *word++ = *c;
    }
    *word = '\0';
    *text = c;
    return !quote;
}

void command_free(char **words)
{
    for (size_t i = 0; words && words[i]; i++)
        free(words[i]);
    free(words);
}

static tssa_status *split(const char *text, char **words)
{
    size_t count = 0;
    for (const char *at = text;;) {
        while (is_blank(*at))
            at++;
        if (!*at)
            break;
        words[count] = malloc(strlen(at) + 1);
        TRY_ALLOC(words[count]);
        if (!take_word(&at, words[count++]))
            return ERROR(TSSA_INVALID_ARGUMENT, "%s: a quote does not end", text);
    }
    return count && words[0][0] ? NULL : ERROR(TSSA_INVALID_ARGUMENT, "no command is named");
}

tssa_status *command_split(const char *text, char ***out)
{
    char **words = calloc(strlen(text) / 2 + 2, sizeof *words);
    TRY_ALLOC(words);
    tssa_status *status = split(text, words);
    if (status)
        command_free(words);
    else
        *out = words;
    return status;
}

/* ---- Looking for it -------------------------------------------------------------------------- */

static bool is_program(const char *path)
{
    struct stat about;
    if (stat(path, &about) != 0)
        return false;
    errno = EACCES;
    return S_ISREG(about.st_mode) && access(path, X_OK) == 0;
}

/* In the folders of $PATH, an empty one being this. */
static bool is_in_path(const char *word)
{
    const char *path = getenv("PATH");
    for (const char *from = path ? path : "/bin:/usr/bin"; from;) {
        const char *colon = strchr(from, ':');
        int length = colon ? (int)(colon - from) : (int)strlen(from);
        char *name = NULL;
        if (asprintf(&name, "%.*s/%s", length ? length : 1, length ? from : ".", word) < 0)
            return true; /* whoever starts it will say what is wrong */
        bool found = is_program(name);
        free(name);
        if (found)
            return true;
        from = colon ? colon + 1 : NULL;
    }
    errno = ENOENT;
    return false;
}

tssa_status *command_find(const char *word)
{
    errno = ENOENT;
    if (strchr(word, '/') ? is_program(word) : is_in_path(word))
        return NULL;
    return ERROR(TSSA_INVALID_ARGUMENT, "%s: %s", word, strerror(errno));
}

/* ---- Running --------------------------------------------------------------------------------- */

static int spawn(char *const *argv, const char *log, pid_t *pid)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none, usual;
    int error = posix_spawn_file_actions_init(&files);
    if (error)
        return error;
    error = posix_spawnattr_init(&attributes);
    if (error) {
        posix_spawn_file_actions_destroy(&files);
        return error;
    }
    sigemptyset(&none);
    sigemptyset(&usual);
    sigaddset(&usual, SIGXFSZ); /* the tools ignore it */
    error = posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK |
                                                      POSIX_SPAWN_SETSIGDEF);
    if (!error)
        error = posix_spawnattr_setsigmask(&attributes, &none);
    if (!error)
        error = posix_spawnattr_setsigdefault(&attributes, &usual);
    if (!error)
        error = posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (!error)
        error = posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    if (!error)
        error = posix_spawn_file_actions_addopen(&files, STDERR_FILENO, log,
                                                 O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (!error)
        error = posix_spawnp(pid, argv[0], &files, &attributes, argv, environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    return error;
}

static void sleep_for(double seconds)
{
    const struct timespec t = {.tv_nsec = (long)(seconds * 1e9)};
    nanosleep(&t, NULL);
}

/* Whether it ended until then. */
static bool wait_until(pid_t pid, double end, bool heed_signals, int *how, struct rusage *usage)
{
    double pause = 0.0005;
    for (;;) {
        if (wait4(pid, how, WNOHANG, usage) == pid)
            return true;
        if (clock_seconds() >= end || (heed_signals && interrupt_pending()))
            return false;
        sleep_for(pause);
        if (pause < 0.01)
            pause *= 2;
    }
}

/* Asks the group to end, and soon makes it. */
static void end_group(pid_t pid, int *how, struct rusage *usage)
{
    kill(-pid, SIGTERM);
    if (!wait_until(pid, clock_seconds() + 1, false, how, usage)) {
        kill(-pid, SIGKILL);
        while (wait4(pid, how, 0, usage) < 0 && errno == EINTR)
            ;
    }
}

tssa_status *command_run(char *const *argv, const char *log, double seconds,
                         struct command_result *result)
{
    struct rusage usage = {.ru_maxrss = 0};
    int how = 0;
    pid_t pid;
    double start = clock_seconds();
    int error = spawn(argv, log, &pid);
    if (error)
        return ERROR(TSSA_IO, "cannot start %s: %s", argv[0], strerror(error));
    bool ended = wait_until(pid, start + seconds, true, &how, &usage);
    if (!ended)
        end_group(pid, &how, &usage);
    kill(-pid, SIGKILL); /* what it started and left behind */
    result->seconds = clock_seconds() - start;
    result->memory = (size_t)usage.ru_maxrss * 1024;
    if (!ended)
        result->end = interrupt_pending() ? COMMAND_INTERRUPTED : COMMAND_TIMED_OUT;
    else
        result->end = WIFSIGNALED(how) ? COMMAND_SIGNALLED : COMMAND_EXITED;
    result->number = WIFSIGNALED(how) ? WTERMSIG(how) : WEXITSTATUS(how);
    return NULL;
}
