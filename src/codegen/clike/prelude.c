/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Preludes: the dialect's own text, then what all have. The build makes lists of lines of the files
 * (cmake/embed_lines.cmake). ir/scalar/ops.h is for one type, so it is there once for each, and its
 * functions are called by the type, too: f32_ADD.
 */
#include "codegen/clike/clike.h"

static const char *const lines_of_cuda[] = {
#include "codegen/clike/cuda.inc"
    NULL};
static const char *const lines_of_opencl[] = {
#include "codegen/clike/opencl.inc"
    NULL};
static const char *const lines_of_shim[] = {
#include "codegen/clike/shim.inc"
    NULL};
static const char *const lines_of_functions[] = {
#include "codegen/clike/functions.inc"
    NULL};
static const char *const lines_of_ops[] = {
#include "codegen/clike/ops.inc"
    NULL};

static void print_lines(const char *const *lines, struct text *text)
{
    for (; *lines; lines++)
        text_puts(text, *lines);
}

/* ---- Operations of a type -------------------------------------------------------------------- */

/* What ops.h wants to know: of integers also the widths of C's names. */
static const struct type {
    tssa_dtype dtype;
    const char *name, *limits, *is, *wide;
} types[] = {
    {TSSA_FLOAT, "float", NULL, "FLOAT", NULL},
    {TSSA_DOUBLE, "double", NULL, "FLOAT", NULL},
    {TSSA_INT8, "int8_t", "INT8", "SIGNED", "uint32_t"},
    {TSSA_INT16, "int16_t", "INT16", "SIGNED", "uint32_t"},
    {TSSA_INT32, "int32_t", "INT32", "SIGNED", "uint32_t"},
    {TSSA_INT64, "int64_t", "INT64", "SIGNED", "uint64_t"},
    {TSSA_UINT8, "uint8_t", "UINT8", "UNSIGNED", "uint32_t"},
    {TSSA_UINT16, "uint16_t", "UINT16", "UNSIGNED", "uint32_t"},
    {TSSA_UINT32, "uint32_t", "UINT32", "UNSIGNED", "uint32_t"},
    {TSSA_UINT64, "uint64_t", "UINT64", "UNSIGNED", "uint64_t"},
};

/* Macros of ops.h that are not the same for all types. */
static const char *const macros[] = {"from_double", "T",      "T_IS_FLOAT", "T_IS_FLOAT32",
                                     "T_IS_SIGNED", "T_WIDE", "T_LOWEST",   "T_IS_UNSIGNED",
                                     "T_HIGHEST",   "LOWEST", "HIGHEST",    "FUNCTION",
                                     "OWN",         "T_BITS", "K",          "SEL",
                                     "MAGNITUDE",   "INLINE", "UNARY",      "BINARY",
                                     "TEST",        "TRUTH",  "WITH_SIGN",  "INTEGERS_FROM"};

#define COUNT(array) (sizeof(array) / sizeof *(array))

static void print_limits(const struct type *type, struct text *text)
{
    if (type->dtype == TSSA_FLOAT)
        text_puts(text, "#define T_IS_FLOAT32\n");
    if (!type->limits)
        return;
    text_printf(text, "#define T_WIDE %s\n#define T_HIGHEST %s_MAX\n", type->wide, type->limits);
    if (type->is[0] == 'S')
        text_printf(text, "#define T_LOWEST %s_MIN\n", type->limits);
    else
        text_puts(text, "#define T_LOWEST 0\n");
}

/* Is it a function there? Choices are a macro. */
static bool is_function(enum scalar_id id)
{
    return scalar_info(id)->operands && id != SCALAR_SEL;
}

static void print_type(const struct type *type, struct text *text)
{
    const char *prefix = dtype_info(type->dtype)->ir_name;
    text_printf(text, "\n#define T %s\n#define T_IS_%s\n", type->name, type->is);
    print_limits(type, text);
    text_printf(text, "#define from_double %s_from_double\n", prefix);
    for (int id = 1; id < SCALAR_COUNT_OF_IDS; id++)
        if (is_function(id))
            text_printf(text, "#define %s %s_%s\n", scalar_info(id)->name, prefix,
                        scalar_info(id)->name);
    print_lines(lines_of_ops, text);
    for (int id = 1; id < SCALAR_COUNT_OF_IDS; id++)
        if (is_function(id))
            text_printf(text, "#undef %s\n", scalar_info(id)->name);
    for (size_t i = 0; i < COUNT(macros); i++)
        text_printf(text, "#undef %s\n", macros[i]);
}

bool clike_print_prelude(enum clike_dialect dialect, dtype_mask wanted, struct text *text)
{
    static const char *const *const lines[] = {[CLIKE_CUDA] = lines_of_cuda,
                                               [CLIKE_OPENCL] = lines_of_opencl,
                                               [CLIKE_SHIM] = lines_of_shim};
    print_lines(lines[dialect], text);
    print_lines(lines_of_functions, text);
    for (size_t i = 0; i < COUNT(types); i++)
        if (dtype_in(wanted, types[i].dtype))
            print_type(&types[i], text);
    text_puts(text, "\n" CLIKE_PRELUDE_END);
    return !text->failed;
}
