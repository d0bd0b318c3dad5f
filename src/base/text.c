/* SPDX-License-Identifier: Apache-2.0 */
/* Growable text, and the UTF-8 decoder behind every check of names. */
#include "base/text.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

void text_init(struct text *text, const tssa_allocator *allocator)
{
    *text = (struct text){.allocator = allocator};
}

void text_free(struct text *text)
{
    allocator_free(text->allocator, text->data);
    text_init(text, text->allocator);
}

void text_clear(struct text *text)
{
    text->size = 0;
    text->failed = false;
}

/* Room for `extra` bytes and a terminator. */
static bool reserve(struct text *text, size_t extra)
{
    size_t needed;
    if (text->failed || !size_add(text->size, extra, &needed) || !size_add(needed, 1, &needed))
        goto fail;
    if (needed <= text->capacity)
        return true;
    size_t capacity = text->capacity < 128 ? 256 : text->capacity * 2;
    if (capacity < needed)
        capacity = needed;
    char *data = allocator_alloc(text->allocator, capacity);
    if (!data)
        goto fail;
    if (text->size)
        memcpy(data, text->data, text->size);
    allocator_free(text->allocator, text->data);
    text->data = data;
    text->capacity = capacity;
    return true;
fail:
    text->failed = true;
    return false;
}

void text_append(struct text *text, const void *data, size_t size)
{
    if (size == 0 || !reserve(text, size))
        return;
    memcpy(text->data + text->size, data, size);
    text->size += size;
}

void text_puts(struct text *text, const char *string)
{
    text_append(text, string, strlen(string));
}

void text_putc(struct text *text, char c)
{
    text_append(text, &c, 1);
}

void text_vprintf(struct text *text, const char *format, va_list arguments)
{
    char small[256];
    va_list again;
    va_copy(again, arguments);
    int length = vsnprintf(small, sizeof small, format, arguments);
    if (length < 0)
        text->failed = true;
    else if ((size_t)length < sizeof small)
        text_append(text, small, (size_t)length);
    else if (reserve(text, (size_t)length)) {
        vsnprintf(text->data + text->size, (size_t)length + 1, format, again);
        text->size += (size_t)length;
    }
    va_end(again);
}

void text_printf(struct text *text, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    text_vprintf(text, format, arguments);
    va_end(arguments);
}

const char *text_string(struct text *text)
{
    if (!reserve(text, 0))
        return NULL;
    text->data[text->size] = '\0';
    return text->data;
}

size_t utf8_length(const void *data, size_t size)
{
    const uint8_t *s = data;
    if (s[0] < 0x80)
        return 1;
    size_t length = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    if (s[0] < 0xc2 || s[0] > 0xf4 || size < length)
        return 0;
    for (size_t i = 1; i < length; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    /* The second byte tells overlong forms, surrogates and what lies above U+10FFFF. */
    bool overlong = (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xf0 && s[1] < 0x90);
    bool surrogate = s[0] == 0xed && s[1] > 0x9f;
    bool too_high = s[0] == 0xf4 && s[1] > 0x8f;
    return overlong || surrogate || too_high ? 0 : length;
}

bool utf8_valid(const void *data, size_t size)
{
    const char *s = data;
    for (size_t i = 0; i < size;) {
        size_t length = utf8_length(s + i, size - i);
        if (length == 0)
            return false;
        i += length;
    }
    return true;
}

size_t utf8_cut(const void *data, size_t size, size_t limit)
{
    if (size <= limit)
        return size;
    const uint8_t *s = data;
    /* At most three continuation bytes precede the cut; more would not be UTF-8 anyway. */
    for (size_t back = 0; back < 4 && back <= limit; back++)
        if ((s[limit - back] & 0xc0) != 0x80)
            return limit - back;
    return limit;
}
