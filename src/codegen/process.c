/* SPDX-License-Identifier: Apache-2.0 */
#include "codegen/process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/plugin.h"

/* So long a process may take to read a request or to write an answer that it has begun: it does
 * nothing else then. */
#define MOST_SECONDS 30

struct codegen_process {
    const tssa_allocator *allocator;
    int socket;
    pid_t pid, owner; /* owner: who has started it */
};

extern char **environ;

/* ---- Starting -------------------------------------------------------------------------------- */

/* A group of its own, so that Ctrl-C is who has started it's alone to deal with; no signal blocked
 * or ignored. */
static int set_attributes(posix_spawnattr_t *attributes)
{
    sigset_t all, none;
    sigfillset(&all);
    sigemptyset(&none);
    int error = posix_spawnattr_setflags(
        attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    error = error ? error : posix_spawnattr_setpgroup(attributes, 0);
    error = error ? error : posix_spawnattr_setsigmask(attributes, &none);
    return error ? error : posix_spawnattr_setsigdefault(attributes, &all);
}

static int set_files(posix_spawn_file_actions_t *actions, int socket)
{
    int error = posix_spawn_file_actions_adddup2(actions, socket, STDIN_FILENO);
    error =
        error ? error
              : posix_spawn_file_actions_addopen(actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    return error
               ? error
               : posix_spawn_file_actions_addopen(actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
}

/* An errno. */
static int spawn(const char *path, int socket, pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    char *const arguments[] = {(char *)path, NULL};
    char *const nothing[] = {NULL}; /* of the environment, to who is privileged by it */
    int error = posix_spawnattr_init(&attributes);
    if (error)
        return error;
    error = posix_spawn_file_actions_init(&actions);
    if (!error) {
        error = set_attributes(&attributes);
        error = error ? error : set_files(&actions, socket);
        error = error ? error
                      : posix_spawn(pid, path, &actions, &attributes, arguments,
                                    getauxval(AT_SECURE) ? nothing : environ);
        posix_spawn_file_actions_destroy(&actions);
    }
    posix_spawnattr_destroy(&attributes);
    return error;
}

static bool start(struct codegen_process *process, const char *path, char *message, size_t size)
{
    const struct timeval most = {.tv_sec = MOST_SECONDS};
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends)) {
        snprintf(message, size, "there is no socket for %s", CODEGEN_PROGRAM);
        return false;
    }
    setsockopt(ends[0], SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
    setsockopt(ends[0], SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most);
    const int error = spawn(path, ends[1], &process->pid);
    close(ends[1]);
    if (error) {
        char text[64];
        close(ends[0]);
        snprintf(message, size, "%.80s cannot be started: %s", path,
                 strerror_r(error, text, sizeof text));
        return false;
    }
    process->socket = ends[0];
    process->owner = getpid();
    return true;
}

struct codegen_process *codegen_process_start(const tssa_allocator *allocator,
                                              const cpu_set_t *processors, char *message,
                                              size_t size)
{
    char path[PATH_MAX];
    if (!plugin_file(CODEGEN_PROGRAM, path, sizeof path)) {
        snprintf(message, size, "there is no %s beside tssa or where it was installed",
                 CODEGEN_PROGRAM);
        return NULL;
    }
    struct codegen_process *process = allocator_alloc(allocator, sizeof *process);
    if (process) {
        process->allocator = allocator;
        if (start(process, path, message, size)) {
            if (processors)
                sched_setaffinity(process->pid, sizeof *processors, processors);
            return process;
        }
        allocator_free(allocator, process);
    } else {
        snprintf(message, size, "memory ran out");
    }
    return NULL;
}

/* ---- Ending ---------------------------------------------------------------------------------- */

bool codegen_process_is_ours(const struct codegen_process *process)
{
    return process->owner == getpid();
}

int codegen_process_descriptor(const struct codegen_process *process)
{
    return process->socket;
}

/* A shutdown reaches it even where somebody forked has the socket as well. */
void codegen_process_end(struct codegen_process *process, char *message, size_t size)
{
    int how = 0;
    pid_t ended = 0;
    if (!process)
        return;
    if (codegen_process_is_ours(process)) {
        shutdown(process->socket, SHUT_RDWR);
        while ((ended = waitpid(process->pid, &how, 0)) < 0 && errno == EINTR)
            ;
    }
    close(process->socket);
    if (ended == process->pid && WIFSIGNALED(how))
        snprintf(message, size, "%s was ended by signal %d", CODEGEN_PROGRAM, WTERMSIG(how));
    else
        snprintf(message, size, "%s ended", CODEGEN_PROGRAM);
    allocator_free(process->allocator, process);
}

/* ---- Talking --------------------------------------------------------------------------------- */

bool codegen_process_ask(struct codegen_process *process, const struct gir_kernel *kernel,
                         enum codegen_level level)
{
    const struct codegen_request request = {CODEGEN_REQUEST, level, kernel->size};
    return codegen_send(process->socket, &request, sizeof request) &&
           codegen_send(process->socket, kernel, kernel->size);
}

static bool hear_refusal(const struct codegen_process *process, const struct codegen_answer *head,
                         struct codegen_job *job)
{
    if (head->size >= sizeof job->message ||
        !codegen_receive(process->socket, job->message, head->size))
        return false;
    job->message[head->size] = '\0';
    return true;
}

bool codegen_process_hear(struct codegen_process *process, const tssa_allocator *allocator,
                          struct codegen_job *job)
{
    struct codegen_answer head;
    if (!codegen_receive(process->socket, &head, sizeof head) || head.magic != CODEGEN_ANSWER ||
        head.size > CODEGEN_MAX_SIZE)
        return false;
    if (!head.made)
        return hear_refusal(process, &head, job);
    void *object = allocator_alloc(allocator, head.size);
    if (!object) {
        snprintf(job->message, sizeof job->message, "memory ran out");
        return false;
    }
    if (!codegen_receive(process->socket, object, head.size)) {
        allocator_free(allocator, object);
        return false;
    }
    job->object = object;
    job->size = head.size;
    job->maker = head.maker;
    return true;
}
