/* SPDX-License-Identifier: Apache-2.0 */
/* Generators of code ask this, too: nothing here needs the rest of the library. */
#include "gir/form.h"

/* Elements of the longest rows that are across, as bench/bench_forms.c measured. */
#define PLANE_ROW GIR_MAX_PLANES /* of planes, whose rows are side by side */
#define LONG_ROW 48              /* where elements take long */
#define SHORT_ROW 28             /* else */
#define SHORT_MASKED 16          /* else, with masks, where something is reduced */
#define SHORT_OPERATIONS 4       /* and where nothing is */
#define LEAST_ROOM 20            /* where there is no room for more */
#define LEAST_ROWS 4
#define LEAST_PLANE_ROWS 12     /* of these, fewer are gathered row by row */
#define MOST_BYTES (96 * 1024)  /* of the stack, for rows as lanes */
#define MASK_REGISTER_BYTES 64  /* AVX-512 */
#define SMALL_REGISTER_BYTES 16 /* SSE */

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
static unsigned lanes_of_rows(const struct gir_kernel *kernel, unsigned register_bytes)
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

/* Has a step so wide a value: of columns, one that is computed in each row? */
static bool is_wide(const struct gir_kernel *kernel)
{
    struct gir_when when[GIR_MAX_CODES];
    if (kernel->columns)
        gir_find_passes(kernel, when);
    for (uint32_t i = 0; i < kernel->n_codes; i++) {
        const struct gir_code *code = &gir_codes(kernel)[i];
        if (gir_width((tssa_dtype)code->type) == sizeof(uint64_t) &&
            (!kernel->columns || when[i].varies || code->op == GIR_REDUCE))
            return true;
    }
    return false;
}

/* Else two registers of the widest type: 32 floats with AVX-512. */
unsigned gir_lanes_of(const struct gir_kernel *kernel, unsigned register_bytes)
{
    const unsigned lanes = register_bytes / 2;
    if (kernel->lanes)
        return kernel->lanes;
    if (kernel->whole_rows)
        return lanes_of_rows(kernel, register_bytes);
    return is_wide(kernel) ? lanes / 2 : lanes;
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

/* Do its elements take long, by functions, by several reductions, of which each joins its lanes in
 * the end, or by conversions; or the highest of doubles, where masks are made of vectors? */
static bool takes_long(const struct gir_kernel *kernel, bool masks)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < kernel->n_codes; i++) {
        const struct gir_code *code = &gir_codes(kernel)[i];
        const bool is_half = code->op == GIR_LOAD && code->type == TSSA_FLOAT16,
                   is_wide = gir_finds_extreme(code) && code->type == TSSA_DOUBLE && !masks;
        n += code->op == GIR_REDUCE;
        if (gir_is_call(code) || is_half || is_wide || n > 1)
            return true;
    }
    return false;
}

/* Is a function once for a row? Along, it is computed in all lanes. */
static bool calls_once(const struct gir_kernel *kernel, const struct gir_when *when)
{
    for (uint32_t i = 0; i < kernel->n_codes; i++)
        if (gir_is_call(&gir_codes(kernel)[i]) && !when[i].varies)
            return true;
    return false;
}

static bool reduces(const struct gir_kernel *kernel)
{
    for (uint32_t i = 0; i < kernel->n_codes; i++)
        if (gir_codes(kernel)[i].op == GIR_REDUCE)
            return true;
    return false;
}

/* Up to how many elements the copies cost less than vectors of which not all lanes are there:
 * everything takes long where masks are made of vectors. */
static uint64_t longest(const struct gir_kernel *kernel, const struct gir_when *when,
                        unsigned register_bytes)
{
    const bool masks = register_bytes >= MASK_REGISTER_BYTES;
    if (kernel->form == GIR_FORM_ROWS_ACROSS || calls_once(kernel, when))
        return GIR_FORM_LONGEST_ROW; /* a function once for a row, or it is asked for */
    if (takes_long(kernel, masks))
        return LONG_ROW;
    if (!masks)
        return SHORT_ROW;
    return reduces(kernel) ? SHORT_MASKED : SHORT_OPERATIONS;
}

/* A row along takes as long as so many elements across; of what is gathered, as a row has. */
static uint64_t times_of(const struct gir_kernel *kernel, const struct gir_across *across,
                         bool masks)
{
    if (across->planes || kernel->form)
        return GIR_MAX_PLANES;
    return takes_long(kernel, masks) && !masks ? 2 : 1;
}

struct gir_across gir_find_across(const struct gir_kernel *kernel, const struct gir_when *when,
                                  unsigned register_bytes)
{
    struct gir_across across = {.planes = has_planes(kernel)};
    uint64_t room = across.planes ? PLANE_ROW : longest(kernel, when, register_bytes);
    if (bytes_across(kernel, when, room) > MOST_BYTES && room > LEAST_ROOM)
        room = LEAST_ROOM;
    if (!kernel->whole_rows || kernel->form == GIR_FORM_ROWS_ALONG ||
        bytes_across(kernel, when, room) > MOST_BYTES)
        return across;
    across.room = across.longest = room;
    across.but = across.planes || room == GIR_FORM_LONGEST_ROW ? UINT64_MAX : GIR_FORM_LANES;
    across.fewest = across.planes ? LEAST_PLANE_ROWS : LEAST_ROWS;
    across.times = times_of(kernel, &across, register_bytes >= MASK_REGISTER_BYTES);
    return across;
}

enum gir_form gir_form_of(const struct gir_kernel *kernel, const struct gir_across *across,
                          double rows, double length)
{
    if (kernel->columns)
        return gir_iterates(kernel) ? GIR_FORM_ITERATIONS : GIR_FORM_COLUMNS;
    if (!kernel->whole_rows)
        return GIR_FORM_ELEMENTS;
    const bool is_across = across->room && length <= (double)across->longest &&
                           length != (double)across->but && rows >= (double)across->fewest &&
                           rows * (double)across->times >= length;
    return is_across ? GIR_FORM_ROWS_ACROSS : GIR_FORM_ROWS_ALONG;
}
