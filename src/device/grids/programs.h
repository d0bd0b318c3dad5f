/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Launches of a context, and the programs that they are compiled to (struct launcher). A launch is
 * known by the bytes of its kernels, and has a narrow text (clike_is_narrow), and a wide one if
 * that is ever wanted; a kernel that is written as text by that and its type.
 *
 * Threads: any may ask at any time; one compiles, and the others wait for it.
 */
#ifndef TSSA_DEVICE_GRIDS_PROGRAMS_H
#define TSSA_DEVICE_GRIDS_PROGRAMS_H

#include "device/grids/texts.h"
#include "gir/grid.h"

struct grids_code;

/* The launch of a grid, which is added where there is none like it. It lives as long as the
 * context. */
tssa_status *grids_code_find(struct device_context *context, const struct gir_grid *grid,
                             struct grids_code **code);
/* Its function (struct launch) of the width that the call allows, compiled with all others that
 * wait. What a compiler says against one text it says each time. */
tssa_status *grids_code_function(struct device_context *context, struct grids_code *code,
                                 enum clike_width width, void **function);

/* The same of a text: one of its functions. */
tssa_status *grids_text_function(struct device_context *context, enum grids_text id,
                                 tssa_dtype dtype, uint32_t index, void **function);

/* It will be launched: it waits to be compiled with all others (grids_compile_waiting). */
tssa_status *grids_text_want(struct device_context *context, enum grids_text id, tssa_dtype dtype);

/* Where an op notes that it has found something wrong: a byte of the stream's notes, below
 * GRIDS_NOTES, the lower the earlier it was asked for; the last one is for all that come too late.
 */
tssa_status *grids_add_note(struct device_context *context, const char *name, uint32_t *note);
/* The name that was given, or "", as long as the context lives. */
const char *grids_note_name(struct device_context *context, uint32_t note);

#endif
