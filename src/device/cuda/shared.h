/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared libraries that are opened when they are wanted. Nothing of CUDA is linked: a program
 * starts, and says what is missing, on a machine that has none of it.
 *
 * Where they are looked for: in the folder that the environment variable TSSA_CUDA_LIBRARIES names,
 * and nowhere else when it is set; otherwise where the loader looks, then in $CUDA_HOME/lib64, then
 * in /usr/local/cuda/lib64.
 */
#ifndef TSSA_DEVICE_CUDA_SHARED_H
#define TSSA_DEVICE_CUDA_SHARED_H

#include <stddef.h>

#include "base/status.h"

#define SHARED_FOLDER "TSSA_CUDA_LIBRARIES"

struct shared_names {
    const char *what;     /* for the message: "CUDA driver" */
    const char *names[4]; /* file names, the preferred one first, NULL at the end */
    const char *needs; /* file name pattern of what it opens by name and would not find, or NULL */
};

tssa_status *shared_open(const struct shared_names *names, void **library);

/*
 * Writes the address of a function to *target, a function pointer; NULL when the library lacks it.
 */
void shared_function(void *library, const char *name, void *target);

/* The file that a function is in, and the folder where alone libraries are looked for; "": none
 * that is known. */
void shared_file(const void *function, char *path, size_t size);
const char *shared_only_folder(void);

/* A table of functions is a struct of pointers, made from a list X(result, name, parameters). */
#define SHARED_MEMBER(result, name, parameters) result(*name) parameters;

/* Calls a function of a table and makes its result a status by `status_of(table, result, name)`; a
 * function that the library lacks is an error like others. */
#define SHARED_CALL(status_of, table, function, ...)                                               \
    ((table)->function ? status_of((table), (table)->function(__VA_ARGS__), #function)             \
                       : shared_lacks(#function))

tssa_status *shared_lacks(const char *function);

#endif
