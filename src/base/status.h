/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Errors as values. NULL is success; anything else is owned by whoever holds it and must be
 * returned, or freed with tssa_status_free(). A status carries a code, one line of text and where
 * it arose.
 *
 * Statuses come from malloc, not from the context's allocator, so that an error can always be told;
 * when even that fails, a shared static out-of-memory status is returned (freeing it does nothing).
 */
#ifndef TSSA_BASE_STATUS_H
#define TSSA_BASE_STATUS_H

#include "tssa.h"

/*
 * Makes a status. Use the ERROR macro, which adds the location. Control characters that come from a
 * model (names!) are escaped, and the text is cut at 1 KiB on a UTF-8 boundary, so that it stays
 * one line.
 */
tssa_status *status_make(tssa_code code, const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 4, 5), cold));

/* Puts "text: " before the message; consumes `status` and returns the new one. NULL stays NULL. */
tssa_status *status_prefix(tssa_status *status, const char *format, ...)
    __attribute__((format(printf, 2, 3), cold));

#define ERROR(code, ...) status_failed_(status_make((code), __FILE__, __LINE__, __VA_ARGS__))

/* Tells the compiler, and the analyzers, that an error is an error: what a failed call left
 * unwritten is not read after TRY. */
static inline tssa_status *status_failed_(tssa_status *status)
{
    if (status == NULL)
        __builtin_unreachable();
    return status;
}

/* The shared out-of-memory status. */
tssa_status *status_shared_out_of_memory_(void);

static inline tssa_status *status_out_of_memory(void)
{
    return status_failed_(status_shared_out_of_memory_());
}

/* Returns early with a failed call's status. */
#define TRY(call)                                                                                  \
    do {                                                                                           \
        tssa_status *try_status_ = (call);                                                         \
        if (__builtin_expect(try_status_ != NULL, 0))                                              \
            return try_status_;                                                                    \
    } while (0)

/* Jumps to `label` with the failed call's status in `variable`. */
#define TRY_GOTO(variable, call, label)                                                            \
    do {                                                                                           \
        (variable) = (call);                                                                       \
        if (__builtin_expect((variable) != NULL, 0))                                               \
            goto label;                                                                            \
    } while (0)

/* Returns the out-of-memory status when an allocation gave NULL. */
#define TRY_ALLOC(pointer)                                                                         \
    do {                                                                                           \
        if (__builtin_expect((pointer) == NULL, 0))                                                \
            return status_out_of_memory();                                                         \
    } while (0)

#endif
