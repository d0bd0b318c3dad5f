/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs on disk (codegen/cache.h), of contexts that have a folder for that. What is compiled
 * together lies in one entry, a group; each launch has an entry of its own that says in which group
 * it is. So a launch is found whatever is compiled with it in this process. All text of it is
 * compared with what the group was made of.
 *
 * Threads: one at a time.
 */
#ifndef TSSA_DEVICE_GRIDS_STORED_H
#define TSSA_DEVICE_GRIDS_STORED_H

#include "codegen/cache.h"
#include "device/grids/launcher.h"

#define STORED_LAUNCHES 16 /* in a group, at most */

struct stored {
    const struct device_context *context;
    struct cache cache; /* no folder: nothing is found, and nothing kept */
    struct text about;  /* what the launcher says of images */
    bool writes;        /* false: something could not be written */
    char problem[160];  /* the first one; "" */
};

/* A launch: kernels side by side. */
struct stored_launch {
    const struct gir_kernel *const *kernels;
    uint32_t n;
    enum clike_width width;
};

/* Launches as k0, k1, ... of one text. */
struct stored_text {
    struct text text;
    dtype_mask types; /* that its prelude has */
    uint32_t n;
    size_t ends[STORED_LAUNCHES + 1]; /* of the prelude, and of each launch */
};

/* Which group a launch is in, and which function of it. */
struct stored_place {
    uint64_t group[2];
    uint32_t index;
};

/* A group that was read. */
struct stored_group {
    void *bytes; /* the allocator's; NULL: there is none */
    uint32_t n;
    const char *text;
    const uint64_t *ends; /* as in struct stored_text */
    const void *image;
    size_t image_size;
};

/* Opens the context's folder, where it has one; what is wrong with that is the problem. */
void stored_open(struct stored *stored, struct device_context *context);
void stored_close(struct stored *stored);

/* Empty at first: text_init. False: memory ran out. */
bool stored_print(enum clike_dialect dialect, const struct stored_launch *launches, uint32_t n,
                  struct stored_text *text);

/* False: it is not there. */
bool stored_find(const struct stored *stored, const struct stored_launch *launch,
                 struct stored_place *place);
/* One that has an image, and the prelude that there is now; else it is none. */
struct stored_group stored_read(const struct stored *stored, const uint64_t group[2]);
void stored_release(const struct stored *stored, struct stored_group *group);
/* Is this function of it this launch? */
bool stored_has(const struct stored *stored, const struct stored_group *group, uint32_t index,
                const struct stored_launch *launch);
/* Keeps what was made of a text, as a group. */
void stored_write(struct stored *stored, const struct stored_text *text,
                  const struct stored_launch *launches, const struct launcher_image *image);

/* An image of a text that is a program of its own: of the allocator, NULL: it is not there. */
void *stored_read_text(const struct stored *stored, struct text *text, size_t *size);
void stored_write_text(struct stored *stored, struct text *text,
                       const struct launcher_image *image);

#endif
