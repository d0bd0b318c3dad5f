/* SPDX-License-Identifier: Apache-2.0 */
/* Generators of code ask this, too: nothing here needs the rest of the library. */
#include "gir/form.h"

#define SHORT_ROW 20 /* elements: a vector of so few is slower than copies and full vectors */
#define PLANE_ROW                                                                                  \
    GIR_MAX_PLANES /* elements, where an argument's lie apart: its rows are side by side then */
#define LEAST_ROWS 4
#define LEAST_PLANE_ROWS 12     /* of these, fewer are gathered row by row */
#define MOST_BYTES (96 * 1024)  /* of the stack, for rows as lanes */
#define MASK_REGISTER_BYTES 64  /* AVX-512 */
#define SMALL_REGISTER_BYTES 16 /* SSE */
#define SHORT_OPERATIONS 4      /* with masks, the longest row of nothing that takes long */
#define SHORT_REDUCTIONS 12     /* and of reductions */
#define SHORT_EXTREMES                                                                             \
    GIR_FORM_TILE /* of the highest and the lowest: their lanes take longer to join */

unsigned gir_width(tssa_dtype dtype)
{
    switch (dtype) {
    case TSSA_BOOL:
    case TSSA_INT8:
    case TSSA_UINT8:
        return 1;
    case TSSA_FLOAT16:
    case TSSA_BFLOAT16:
    case TSSA_INT16:
    case TSSA_UINT16:
        return 2;
    case TSSA_FLOAT:
    case TSSA_INT32:
    case TSSA_UINT32:
        return 4;
    default:
        return 8;
    }
}

bool gir_finds_extreme(const struct gir_code *code)
{
    return code->op == GIR_REDUCE && (code->scalar == SCALAR_MAX || code->scalar == SCALAR_MIN) &&
           (code->type == TSSA_FLOAT || code->type == TSSA_DOUBLE);
}

/* Where registers are small, functions, and truth values that are as wide as what they are of,
 * leave none for all lanes. */
unsigned gir_piece_of(const struct gir_kernel *kernel, unsigned register_bytes)
{
    if (register_bytes > SMALL_REGISTER_BYTES)
        return GIR_FORM_LANES;
    for (uint32_t i = 0; i < kernel->n_codes; i++) {
        const struct gir_code *code = &gir_codes(kernel)[i];
        if (gir_is_call(code) || gir_finds_extreme(code) || code->type == TSSA_BOOL)
            return GIR_FORM_LANES / 2;
    }
    return GIR_FORM_LANES;
}

static bool has_planes(const struct gir_kernel *kernel)
{
    for (uint32_t i = 0; i < kernel->n_args; i++)
        if (gir_args(kernel)[i].moves == GIR_STRIDED)
            return true;
    return false;
}

/* Of rows as lanes, whose vectors lie on the stack: how many bytes that takes. */
static size_t bytes_across(const struct gir_kernel *kernel, const struct gir_when *when,
                           uint64_t most)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < kernel->n_args; i++)
        bytes += (size_t)gir_width((tssa_dtype)gir_args(kernel)[i].dtype) *
                 (gir_args(kernel)[i].moves ? most : 1);
    for (uint32_t i = 0; i < kernel->n_codes; i++) {
        const struct gir_code *code = &gir_codes(kernel)[i];
        const size_t width = gir_width((tssa_dtype)code->type);
        bytes += code->op == GIR_REDUCE ? width * GIR_FORM_LANES : 0;
        bytes += when[i].kept_in ? width * most : 0;
    }
    return bytes * GIR_FORM_LANES;
}

/* Up to how many elements the copies cost less than vectors of which few lanes are there: functions
 * take long, halving the lanes of a reduction takes a while, and everything does where masks are
 * made of vectors. */
static uint64_t longest(const struct gir_kernel *kernel, unsigned register_bytes)
{
    uint64_t n = SHORT_OPERATIONS;
    if (register_bytes < MASK_REGISTER_BYTES)
        return SHORT_ROW;
    for (uint32_t i = 0; i < kernel->n_codes; i++) {
        if (gir_is_call(&gir_codes(kernel)[i]))
            return SHORT_ROW;
        if (gir_codes(kernel)[i].op == GIR_REDUCE && n < SHORT_REDUCTIONS)
            n = SHORT_REDUCTIONS;
        if (gir_finds_extreme(&gir_codes(kernel)[i]))
            n = SHORT_EXTREMES;
    }
    return n;
}

struct gir_across gir_find_across(const struct gir_kernel *kernel, const struct gir_when *when,
                                  unsigned register_bytes)
{
    struct gir_across across = {.planes = has_planes(kernel)};
    const uint64_t room = across.planes ? PLANE_ROW : SHORT_ROW;
    if (!kernel->whole_rows || bytes_across(kernel, when, room) > MOST_BYTES)
        return across;
    across.room = room;
    across.longest = across.planes ? room : longest(kernel, register_bytes);
    across.fewest = across.planes ? LEAST_PLANE_ROWS : LEAST_ROWS;
    return across;
}

enum gir_form gir_form_of(const struct gir_kernel *kernel, const struct gir_across *across,
                          double rows, double length)
{
    if (kernel->columns)
        return gir_iterates(kernel) ? GIR_FORM_ITERATIONS : GIR_FORM_COLUMNS;
    if (!kernel->whole_rows)
        return GIR_FORM_ELEMENTS;
    return across->room && length <= (double)across->longest && rows >= (double)across->fewest
               ? GIR_FORM_ROWS_ACROSS
               : GIR_FORM_ROWS_ALONG;
}
