/* SPDX-License-Identifier: Apache-2.0 */
#include "device/grids/stored.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"

static const tssa_allocator *allocator_of(const struct stored *stored)
{
    return stored->context->allocator;
}

static enum clike_dialect dialect_of(const struct stored *stored)
{
    return stored->context->device->launcher->dialect;
}

static bool is_open(const struct stored *stored)
{
    return stored->cache.folder >= 0;
}

void stored_open(struct stored *stored, struct device_context *context)
{
    struct cache_key key = {.version = ""};
    *stored = (struct stored){.context = context, .cache = {.folder = -1}, .writes = true};
    text_init(&stored->about, context->allocator);
    if (!context->cache)
        return;
    context->device->launcher->describe(context, &stored->about);
    snprintf(key.processor, sizeof key.processor, "%s", context->device->name);
    if (!stored->about.failed)
        cache_open_as(&stored->cache, context->cache, &key, stored->problem,
                      sizeof stored->problem);
}

void stored_close(struct stored *stored)
{
    cache_close(&stored->cache);
    text_free(&stored->about);
}

/* ---- Texts ----------------------------------------------------------------------------------- */

static bool print_launch(enum clike_dialect dialect, const struct stored_launch *launch,
                         uint32_t index, struct text *text)
{
    char name[16];
    snprintf(name, sizeof name, "k%" PRIu32, index);
    return clike_print_launch(launch->kernels, launch->n, dialect, launch->width, name, text);
}

bool stored_print(enum clike_dialect dialect, const struct stored_launch *launches, uint32_t n,
                  struct stored_text *text)
{
    text->types = 0;
    text->n = n;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < launches[i].n; k++)
            text->types |= clike_types(launches[i].kernels[k]);
    bool good = clike_print_prelude(dialect, text->types, &text->text);
    text->ends[0] = text->text.size;
    for (uint32_t i = 0; good && i < n; i++) {
        good = print_launch(dialect, &launches[i], i, &text->text);
        text->ends[i + 1] = text->text.size;
    }
    return good && text_string(&text->text);
}

/* ---- Entries --------------------------------------------------------------------------------- */

/* What an entry is found by: what the launcher says, which of the three kinds it is, and bytes. */
static bool print_subject(const struct stored *stored, const char *kind, const void *bytes,
                          size_t size, struct text *subject)
{
    text_init(subject, allocator_of(stored));
    text_append(subject, stored->about.data, stored->about.size);
    text_puts(subject, kind);
    text_append(subject, bytes, size);
    return !subject->failed;
}

static void *read_entry(const struct stored *stored, const char *kind, const void *bytes,
                        size_t size, size_t *object_size)
{
    struct text subject;
    void *object = NULL;
    if (print_subject(stored, kind, bytes, size, &subject))
        object = cache_read(&stored->cache, allocator_of(stored),
                            (struct cache_subject){subject.data, subject.size}, object_size);
    text_free(&subject);
    return object;
}

/* After one that failed nothing is written any more: a disk that is full is for all of them. */
static void write_entry(struct stored *stored, const char *kind, const void *bytes, size_t size,
                        const struct codegen_maker *maker, const void *object, size_t object_size)
{
    static const struct codegen_maker none;
    struct text subject;
    if (!stored->writes)
        return;
    if (print_subject(stored, kind, bytes, size, &subject))
        stored->writes = cache_write(&stored->cache, allocator_of(stored),
                                     (struct cache_subject){subject.data, subject.size},
                                     memcmp(maker, &none, sizeof none) ? maker : NULL, object,
                                     object_size, stored->problem, sizeof stored->problem);
    text_free(&subject);
}

static void trim(const struct stored *stored)
{
    cache_trim(&stored->cache, allocator_of(stored), CACHE_MOST_BYTES);
}

#define KIND_TEXT "text\n"
#define KIND_LAUNCH "launch\n"
#define KIND_GROUP "group\n"

void *stored_read_text(const struct stored *stored, struct text *text, size_t *size)
{
    return is_open(stored) ? read_entry(stored, KIND_TEXT, text->data, text->size, size) : NULL;
}

void stored_write_text(struct stored *stored, struct text *text, const struct launcher_image *image)
{
    if (!is_open(stored) || !image->data)
        return;
    write_entry(stored, KIND_TEXT, text->data, text->size, &image->maker, image->data, image->size);
    trim(stored);
}

/* ---- Launches -------------------------------------------------------------------------------- */

bool stored_find(const struct stored *stored, const struct stored_launch *launch,
                 struct stored_place *place)
{
    struct text text;
    size_t size = 0;
    void *found = NULL;
    if (!is_open(stored))
        return false;
    text_init(&text, allocator_of(stored));
    if (print_launch(dialect_of(stored), launch, 0, &text))
        found = read_entry(stored, KIND_LAUNCH, text.data, text.size, &size);
    text_free(&text);
    const bool good = found && size == sizeof *place;
    if (good)
        memcpy(place, found, sizeof *place);
    allocator_free(allocator_of(stored), found);
    return good;
}

/* What a group's entry begins with; its text and its image are behind it. */
struct head {
    uint32_t n, zero;
    uint64_t types, ends[STORED_LAUNCHES + 1];
};

static bool is_whole(const struct head *head, size_t size)
{
    if (size < sizeof *head || head->n == 0 || head->n > STORED_LAUNCHES)
        return false;
    for (uint32_t i = 0; i < head->n; i++)
        if (head->ends[i] > head->ends[i + 1])
            return false;
    return head->ends[head->n] <= size - sizeof *head;
}

static bool has_prelude(const struct stored *stored, const struct head *head)
{
    struct text text;
    text_init(&text, allocator_of(stored));
    const bool same = clike_print_prelude(dialect_of(stored), (dtype_mask)head->types, &text) &&
                      text.size == head->ends[0] && memcmp(text.data, head + 1, text.size) == 0;
    text_free(&text);
    return same;
}

struct stored_group stored_read(const struct stored *stored, const uint64_t group[2])
{
    size_t size = 0;
    struct head *head = read_entry(stored, KIND_GROUP, group, 2 * sizeof *group, &size);
    if (!head || !is_whole(head, size) || !has_prelude(stored, head)) {
        allocator_free(allocator_of(stored), head);
        return (struct stored_group){.bytes = NULL};
    }
    const char *text = (const char *)(head + 1);
    const size_t text_size = (size_t)head->ends[head->n];
    return (struct stored_group){.bytes = head,
                                 .n = head->n,
                                 .text = text,
                                 .ends = head->ends,
                                 .image = text + text_size,
                                 .image_size = size - sizeof *head - text_size};
}

void stored_release(const struct stored *stored, struct stored_group *group)
{
    allocator_free(allocator_of(stored), group->bytes);
}

bool stored_has(const struct stored *stored, const struct stored_group *group, uint32_t index,
                const struct stored_launch *launch)
{
    struct text text;
    if (!group->bytes || index >= group->n)
        return false;
    text_init(&text, allocator_of(stored));
    const size_t from = (size_t)group->ends[index], end = (size_t)group->ends[index + 1];
    const bool same = print_launch(dialect_of(stored), launch, index, &text) &&
                      text.size == end - from &&
                      memcmp(text.data, group->text + from, text.size) == 0;
    text_free(&text);
    return same;
}

static void write_group(struct stored *stored, const struct stored_text *text,
                        const struct launcher_image *image, const uint64_t group[2])
{
    struct head head = {.n = text->n, .types = text->types};
    struct text entry;
    for (uint32_t i = 0; i <= text->n; i++)
        head.ends[i] = text->ends[i];
    text_init(&entry, allocator_of(stored));
    text_append(&entry, &head, sizeof head);
    text_append(&entry, text->text.data, text->text.size);
    text_append(&entry, image->data, image->size);
    if (!entry.failed)
        write_entry(stored, KIND_GROUP, group, 2 * sizeof *group, &image->maker, entry.data,
                    entry.size);
    text_free(&entry);
}

static void write_place(struct stored *stored, const struct stored_launch *launch,
                        const struct codegen_maker *maker, const struct stored_place *place)
{
    struct text text;
    text_init(&text, allocator_of(stored));
    if (print_launch(dialect_of(stored), launch, 0, &text))
        write_entry(stored, KIND_LAUNCH, text.data, text.size, maker, place, sizeof *place);
    text_free(&text);
}

void stored_write(struct stored *stored, const struct stored_text *text,
                  const struct stored_launch *launches, const struct launcher_image *image)
{
    struct stored_place place;
    if (!is_open(stored) || !image->data)
        return;
    memset(&place, 0, sizeof place); /* all of it is written */
    place.group[0] = hash_bytes(text->text.data, text->text.size, 0);
    place.group[1] = hash_bytes(text->text.data, text->text.size, place.group[0]);
    write_group(stored, text, image, place.group);
    for (uint32_t i = 0; i < text->n; i++) {
        place.index = i;
        write_place(stored, &launches[i], &image->maker, &place);
    }
    trim(stored);
}
