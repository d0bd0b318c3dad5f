/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads object files that a generator of code made: relocatable ELF of x86-64 that needs nothing
 * from elsewhere. What is said in the file is checked before it is believed.
 */
#ifndef TSSA_DEVICE_CPU_OBJECT_H
#define TSSA_DEVICE_CPU_OBJECT_H

#include <stddef.h>

struct object {
    void *memory; /* executable, not writable */
    size_t size;
    const void *entry;
};

/* NULL: it is loaded; else why not. */
const char *object_load(struct object *object, const void *bytes, size_t size, const char *entry);
void object_unload(struct object *object);

#endif
