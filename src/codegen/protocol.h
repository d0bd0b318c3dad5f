/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the library (codegen/client.h) and a process that compiles for it (codegen/process) say to
 * each other, by a socket that is the process's standard input: a request with a kernel behind it,
 * and an answer with bytes behind it, in turns. Both are of one build: neither believes in the
 * other's layout for longer.
 */
#ifndef TSSA_CODEGEN_PROTOCOL_H
#define TSSA_CODEGEN_PROTOCOL_H

#include <errno.h>
#include <stddef.h>
#include <sys/socket.h>

#include "base/file.h"

/* The program, where plugins are (base/plugin.h). */
#define CODEGEN_PROGRAM "tssa-codegen"

/* With no request for so long, the process ends. */
#define CODEGEN_IDLE_MS 1000

#define CODEGEN_REQUEST 0x31716372
#define CODEGEN_ANSWER 0x31736e61
#define CODEGEN_MAX_SIZE (64u << 20) /* of a kernel and of an object */

/* What a generator is made of. */
struct codegen_maker {
    struct file_identity identity; /* of the library */
    char version[48];
    char library[464];
};

struct codegen_request {
    uint32_t magic, level; /* enum codegen_level */
    uint32_t size;         /* of the kernel */
};

struct codegen_answer {
    uint32_t magic;
    uint32_t made; /* 1: an object file follows; 0: a line that says why not */
    uint32_t size; /* of what follows */
    uint32_t zero;
    struct codegen_maker maker;
};

/* All of it, or false: the other end is gone, or has no time. */
static inline bool codegen_send(int socket, const void *data, size_t size)
{
    for (size_t done = 0; done < size;) {
        const ssize_t n = send(socket, (const char *)data + done, size - done, MSG_NOSIGNAL);
        if (n < 0 && errno != EINTR)
            return false;
        done += n > 0 ? (size_t)n : 0;
    }
    return true;
}

static inline bool codegen_receive(int socket, void *data, size_t size)
{
    for (size_t done = 0; done < size;) {
        const ssize_t n = recv(socket, (char *)data + done, size - done, 0);
        if (n == 0 || (n < 0 && errno != EINTR))
            return false;
        done += n > 0 ? (size_t)n : 0;
    }
    return true;
}

#endif
