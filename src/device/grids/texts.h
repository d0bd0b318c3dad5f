/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels that are written as text, in what the preludes of codegen/clike make one language
 * (kernels/grids), for what is no grid. A text is for one type, T, and is compiled when it is first
 * launched. The shim has no memory that a block shares, and does not run these; the fake driver of
 * CUDA (tests/cuda) puts such memory, and threads that meet, behind the shim's prelude.
 */
#ifndef TSSA_DEVICE_GRIDS_TEXTS_H
#define TSSA_DEVICE_GRIDS_TEXTS_H

#include "device/grids/launcher.h"

enum grids_text {
#define GRIDS_TEXT(id, lines, functions, defines) GRIDS_TEXT_##id,
#include "device/grids/texts.def"
#undef GRIDS_TEXT
    GRIDS_TEXT_COUNT
};

uint32_t grids_text_functions(enum grids_text text);

/* The prelude, what is the type's, and the text; `height` as in struct launch. False: memory ran
 * out. */
bool grids_print_text(enum clike_dialect dialect, uint32_t height, enum grids_text id,
                      tssa_dtype dtype, struct text *text);

static inline struct launch_param grids_number(int64_t number)
{
    return (struct launch_param){.number = number};
}

static inline struct launch_param grids_memory(struct device_place place)
{
    return (struct launch_param){.is_memory = true, .place = place};
}

/* Threads of a block. */
uint32_t grids_threads(const struct device_context *context);
/* Blocks of a launch that ranks so many elements (kernels/grids/ranks.h). */
int64_t grids_ranked_blocks(int64_t n);

/* Launches function `function` of it, with so many blocks, or as many of them as make sense; none:
 * nothing. */
tssa_status *grids_launch_text(struct device_stream *stream, enum grids_text id, tssa_dtype dtype,
                               uint32_t function, int64_t blocks, const struct launch_param *params,
                               uint32_t n_params);
/* The same of as many threads as there are items, or as many as make sense. */
tssa_status *grids_launch_each(struct device_stream *stream, enum grids_text id, tssa_dtype dtype,
                               uint32_t function, int64_t items, const struct launch_param *params,
                               uint32_t n_params);

/* The type that elements are moved as; TSSA_UNDEFINED: texts do not move these. */
tssa_dtype grids_word(tssa_dtype dtype);
/* What texts compute in of elements of this type: of FLOAT16 and BFLOAT16 it is FLOAT. */
tssa_dtype grids_computed_in(tssa_dtype dtype);
/* Is there T of this type, which computes with elements? */
bool grids_text_takes(tssa_dtype dtype);

#endif
