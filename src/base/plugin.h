/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plugins: parts of tssa that bring large libraries along and are therefore opened only when
 * wanted. They are looked for in the folder that the environment variable TSSA_PLUGIN_DIR names,
 * beside the file that holds this code (libtssa.so, or a program that links it statically), in its
 * subfolder tssa/, and in the folder they were installed to. A plugin that was opened stays open
 * until the process ends: OpenMP's threads cannot be taken back.
 */
#ifndef TSSA_BASE_PLUGIN_H
#define TSSA_BASE_PLUGIN_H

#include <stdbool.h>
#include <stddef.h>

/* A symbol of the plugin `name` ("tssa-onednn"); NULL when there is no such plugin here. */
void *plugin_symbol(const char *name, const char *symbol);
/* Why it is not here, for a message: "libdnnl.so.3: cannot open shared object file", "there is no
 * ...". Cut at `size` bytes. */
void plugin_problem(const char *name, char *text, size_t size);
/*
 * The path of the file ("tssa-llvm.so") where plugins are, that of the first one that can be read.
 */
bool plugin_file(const char *file, char *path, size_t size);

#endif
