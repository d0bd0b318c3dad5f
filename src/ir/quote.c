/* SPDX-License-Identifier: Apache-2.0 */
#include "ir/quote.h"

#include <string.h>

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

bool ir_is_identifier(const char *text)
{
    if (!is_word(*text) || (*text >= '0' && *text <= '9'))
        return false;
    while (is_word(*text))
        text++;
    return *text == '\0';
}

static void print_byte(struct text *text, unsigned char byte)
{
    static const char named[] = "\"\"\\\\\nn\rr\tt"; /* pairs: a byte, its letter */
    for (const char *p = named; *p; p += 2) {
        if ((unsigned char)*p == byte) {
            text_putc(text, '\\');
            text_putc(text, p[1]);
            return;
        }
    }
    text_printf(text, "\\x%02x", byte);
}

void ir_print_quoted(struct text *text, const void *data, size_t size)
{
    const char *at = data;
    text_putc(text, '"');
    while (size > 0) {
        size_t length = utf8_length(at, size);
        bool plain = length > 1 || (length == 1 && (unsigned char)*at >= ' ' && *at != 127 &&
                                    *at != '"' && *at != '\\');
        if (plain)
            text_append(text, at, length);
        else
            print_byte(text, (unsigned char)*at);
        length = plain ? length : 1;
        at += length;
        size -= length;
    }
    text_putc(text, '"');
}

void ir_print_name(struct text *text, const char *name)
{
    if (ir_is_identifier(name))
        text_puts(text, name);
    else
        ir_print_quoted(text, name, strlen(name));
}
