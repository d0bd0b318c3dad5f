/* SPDX-License-Identifier: Apache-2.0 */
/* Statuses: made with malloc, escaped to one line, cut to a bounded size. */
#include "base/status.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

#define MESSAGE_LIMIT 1024

struct tssa_status {
    tssa_code code;
    const char *message, *location; /* of a status from malloc: behind the struct */
};

/* Never written: freeing and prefixing check for it. */
static const tssa_status out_of_memory = {
    .code = TSSA_OUT_OF_MEMORY,
    .message = "out of memory",
    .location = "",
};

tssa_status *status_shared_out_of_memory_(void)
{
    return (tssa_status *)&out_of_memory;
}

/* Control characters, and what a terminal or a log reader takes for the end of a line. */
static bool must_escape(const uint8_t *s, size_t length)
{
    if (length == 0)
        return true; /* not UTF-8 */
    if (length == 1)
        return s[0] < 0x20 || s[0] == 0x7f;
    if (length == 2)
        return s[0] == 0xc2 && s[1] < 0xa0; /* U+0080 to U+009F */
    return length == 3 && s[0] == 0xe2 && s[1] == 0x80 && (s[2] == 0xa8 || s[2] == 0xa9);
}

/* A message in the making: terminated, and at most MESSAGE_LIMIT bytes. */
struct message {
    char text[MESSAGE_LIMIT + 1];
    size_t size;
    bool cut; /* ends in "..." and takes no more */
};

static void append_escaped(struct message *message, const char *text, size_t size)
{
    static const char dots[] = "...";
    const size_t limit = MESSAGE_LIMIT - (sizeof dots - 1);
    for (size_t i = 0, length; i < size && !message->cut; i += length) {
        const uint8_t *s = (const uint8_t *)text + i;
        length = utf8_length(s, size - i);
        bool escape = must_escape(s, length);
        if (length == 0)
            length = 1;
        if (message->size + (escape ? 4 * length : length) > limit) {
            memcpy(message->text + message->size, dots, sizeof dots);
            message->size += sizeof dots - 1;
            message->cut = true;
            return;
        }
        for (size_t k = 0; k < length; k++) {
            if (escape)
                message->size += (size_t)sprintf(message->text + message->size, "\\x%02x", s[k]);
            else
                message->text[message->size++] = (char)s[k];
        }
    }
    message->text[message->size] = '\0';
}

/* Formats and escapes. What lies beyond the limit is not even formatted. */
static void format_escaped(struct message *message, const char *format, va_list arguments)
{
    char raw[MESSAGE_LIMIT + 8];
    message->size = 0;
    message->cut = false;
    int wanted = vsnprintf(raw, sizeof raw, format, arguments);
    size_t size = wanted < 0 ? 0 : strlen(raw);
    /* A character that vsnprintf cut in two lies beyond the limit, so the cut below hides it. */
    append_escaped(message, raw, size);
}

static tssa_status *make(tssa_code code, const struct message *message, const char *location)
{
    size_t location_size = strlen(location) + 1;
    tssa_status *status = malloc(sizeof *status + message->size + 1 + location_size);
    if (!status)
        return NULL;
    char *text = (char *)(status + 1);
    char *place = text + message->size + 1;
    memcpy(text, message->text, message->size + 1);
    memcpy(place, location, location_size);
    *status = (tssa_status){code, text, place};
    return status;
}

tssa_status *status_make(tssa_code code, const char *file, int line, const char *format, ...)
{
    struct message message;
    char location[256];
    va_list arguments;
    va_start(arguments, format);
    format_escaped(&message, format, arguments);
    va_end(arguments);
    snprintf(location, sizeof location, "%s:%d", file, line);
    tssa_status *status = make(code, &message, location);
    return status ? status : status_out_of_memory();
}

tssa_status *status_prefix(tssa_status *status, const char *format, ...)
{
    if (!status)
        return NULL;
    struct message message;
    va_list arguments;
    va_start(arguments, format);
    format_escaped(&message, format, arguments);
    va_end(arguments);
    append_escaped(&message, ": ", 2);
    append_escaped(&message, status->message, strlen(status->message));
    tssa_status *prefixed = make(status->code, &message, status->location);
    if (!prefixed)
        return status; /* a shorter story is better than none */
    tssa_status_free(status);
    return prefixed;
}

tssa_code tssa_status_code(const tssa_status *status)
{
    return status ? status->code : TSSA_OK;
}

const char *tssa_status_message(const tssa_status *status)
{
    return status ? status->message : "";
}

const char *tssa_status_location(const tssa_status *status)
{
    return status ? status->location : "";
}

void tssa_status_free(tssa_status *status)
{
    if (status != &out_of_memory)
        free(status);
}
