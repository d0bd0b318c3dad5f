/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tssa-codegen: compiles kernels for a process that has started it (codegen/client.h), one after
 * the other. What it is made of may abort, take any amount of memory and any time, and has
 * destructors that do not expect threads: here that hurts nobody. It ends when the other end of its
 * standard input is closed, at once, whatever it is doing.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/plugin.h"
#include "codegen/codegen.h"
#include "codegen/protocol.h"

/* Their shadow is address space. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED
#endif
#endif

#define SOCKET STDIN_FILENO
#define MOST_MEMORY ((rlim_t)4 << 30)

/* ---- The generator --------------------------------------------------------------------------- */

static const struct codegen *open_codegen(char *message, size_t size)
{
    codegen_open get = NULL;
    void *symbol = plugin_symbol(CODEGEN_PLUGIN, CODEGEN_SYMBOL);
    if (!symbol) {
        plugin_problem(CODEGEN_PLUGIN, message, size);
        return NULL;
    }
    memcpy(&get, &symbol, sizeof symbol); /* ISO C has no such cast; POSIX promises it works */
    return get(message, size);
}

static void tell_maker(const struct codegen *codegen, struct codegen_maker *maker)
{
    snprintf(maker->version, sizeof maker->version, "%s", codegen->version);
    const int length = snprintf(maker->library, sizeof maker->library, "%s", codegen->library);
    if (length < 0 || (size_t)length >= sizeof maker->library ||
        !file_identify(maker->library, &maker->identity))
        maker->library[0] = '\0';
}

static bool refuse(struct codegen_answer *head, const char *message)
{
    head->made = 0;
    head->size = (uint32_t)strlen(message);
    return codegen_send(SOCKET, head, sizeof *head) && codegen_send(SOCKET, message, head->size);
}

static bool compile(const struct gir_kernel *kernel, enum codegen_level level)
{
    char message[160] = "";
    struct codegen_answer head = {.magic = CODEGEN_ANSWER};
    struct codegen_object object;
    const struct codegen *codegen = open_codegen(message, sizeof message);
    if (!codegen || !codegen->compile(kernel, level, &object, message, sizeof message))
        return refuse(&head, message);
    head.made = 1;
    head.size = (uint32_t)object.size;
    tell_maker(codegen, &head.maker);
    const bool good = object.size <= CODEGEN_MAX_SIZE
                          ? codegen_send(SOCKET, &head, sizeof head) &&
                                codegen_send(SOCKET, object.bytes, object.size)
                          : refuse(&head, "its code is too large");
    codegen->release(&object);
    return good;
}

/* ---- Serving --------------------------------------------------------------------------------- */

/* False: there is nothing more to do. */
static bool serve(void)
{
    struct codegen_request request;
    struct pollfd wait = {.fd = SOCKET, .events = POLLIN};
    if (poll(&wait, 1, CODEGEN_IDLE_MS) <= 0 ||
        !codegen_receive(SOCKET, &request, sizeof request) || request.magic != CODEGEN_REQUEST ||
        request.size > CODEGEN_MAX_SIZE)
        return false;
    struct gir_kernel *kernel = malloc(request.size);
    const bool good =
        kernel && codegen_receive(SOCKET, kernel, request.size) && compile(kernel, request.level);
    free(kernel);
    return good;
}

/* Ends the process when nobody waits for it any more. */
static void *watch(void *context)
{
    struct pollfd wait = {.fd = SOCKET, .events = POLLRDHUP};
    while (poll(&wait, 1, -1) < 0 && errno == EINTR)
        ;
    _exit(0);
    return context;
}

/* Nothing of who has started it is kept: open files, room for a core, memory without end. */
static void settle(void)
{
    const struct rlimit none = {0, 0}, most = {MOST_MEMORY, MOST_MEMORY};
    syscall(SYS_close_range, 3u, ~0u, 0u);
    setrlimit(RLIMIT_CORE, &none);
#if !defined(SANITIZED)
    setrlimit(RLIMIT_AS, &most);
#else
    (void)most;
#endif
}

int main(void)
{
    pthread_t watcher;
    int type;
    socklen_t size = sizeof type;
    if (getsockopt(SOCKET, SOL_SOCKET, SO_TYPE, &type, &size)) {
        fprintf(stderr, "tssa-codegen is started by libtssa, and does nothing for anybody else\n");
        return 2;
    }
    settle();
    if (pthread_create(&watcher, NULL, watch, NULL))
        return 1;
    while (serve())
        ;
    _exit(0); /* no destructors */
}
