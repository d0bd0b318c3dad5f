/* SPDX-License-Identifier: Apache-2.0 */
/* A growable text buffer for printers, and UTF-8. */
#ifndef TSSA_BASE_TEXT_H
#define TSSA_BASE_TEXT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/alloc.h"

/*
 * Failure is sticky: once memory runs out, `failed` stays set and further appends do nothing, so
 * that a printer checks once, at its end. Not thread-safe.
 */
struct text {
    const tssa_allocator *allocator;
    char *data; /* not terminated; see text_string */
    size_t size, capacity;
    bool failed;
};

void text_init(struct text *text, const tssa_allocator *allocator);
void text_free(struct text *text);
/* Empties the buffer and forgets a failure, but keeps the memory. */
void text_clear(struct text *text);

void text_append(struct text *text, const void *data, size_t size);
void text_puts(struct text *text, const char *string);
void text_putc(struct text *text, char c);
void text_printf(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));
void text_vprintf(struct text *text, const char *format, va_list arguments)
    __attribute__((format(printf, 2, 0)));

/* The text, NUL-terminated; valid until the next append. NULL when memory ran out. */
const char *text_string(struct text *text);

/* The length (1 to 4) of the UTF-8 character that `data` starts with; 0 when it is not one: cut
 * off, overlong, a surrogate, or above U+10FFFF. `size` > 0. */
size_t utf8_length(const void *data, size_t size);
bool utf8_valid(const void *data, size_t size);
/* The longest prefix of at most `limit` bytes that does not end inside a character. */
size_t utf8_cut(const void *data, size_t size, size_t limit);

#endif
