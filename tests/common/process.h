/* SPDX-License-Identifier: Apache-2.0 */
/* Running a program and keeping what it says. */
#ifndef TSSA_TESTS_PROCESS_H
#define TSSA_TESTS_PROCESS_H

#include <stdbool.h>
#include <stddef.h>

struct process_limits {
    double seconds;       /* then it is killed */
    size_t address_space; /* bytes (RLIMIT_AS); 0: none */
    size_t file_size;     /* bytes (RLIMIT_FSIZE), a disk that is full; 0: none */
};

struct process_result {
    int status;      /* exit status; 128 + n: ended by signal n; -1: did not start */
    char *out, *err; /* NUL-terminated */
};

/* Runs argv[0], a path; argv ends with NULL. `in`: a file for standard input, NULL: empty. `out`: a
 * file for standard output (then result.out is empty), NULL: kept. */
struct process_result process_run(const char *const *argv, const char *in, const char *out,
                                  const struct process_limits *limits);
void process_result_free(struct process_result *result);

/* Without the lines that only say what is being done, "tool: loading x ..." of a slow machine. */
void process_drop_announcements(struct process_result *result);

/* A new folder below /tmp; and its removal with everything in it. */
char *temporary_folder(void);
void remove_folder(char *folder); /* frees the name */

#endif
