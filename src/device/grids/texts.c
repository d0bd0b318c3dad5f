/* SPDX-License-Identifier: Apache-2.0 */
#include "device/grids/texts.h"

#include "device/grids/programs.h"

/* More would have threads start that have next to nothing to do: each block goes on with others. */
#define MOST_BLOCKS 65535

static const char *const lines_of_elements[] = {
#include "kernels/grids/elements.inc"
    NULL};
static const char *const lines_of_finish[] = {
#include "kernels/grids/finish.inc"
    NULL};
static const char *const lines_of_product[] = {
#include "kernels/grids/product.inc"
    NULL};
static const char *const lines_of_rows[] = {
#include "kernels/grids/rows.inc"
    NULL};
static const char *const lines_of_scale[] = {
#include "kernels/grids/scale.inc"
    NULL};
static const char *const lines_of_spread[] = {
#include "kernels/grids/spread.inc"
    NULL};
static const char *const lines_of_scatter[] = {
#include "kernels/grids/scatter.inc"
    NULL};
static const char *const lines_of_extreme[] = {
#include "kernels/grids/extreme.inc"
    NULL};
static const char *const lines_of_nms[] = {
#include "kernels/grids/nms.inc"
    NULL};
static const char *const lines_of_topk[] = {
#include "kernels/grids/topk.inc"
    NULL};
static const char *const lines_of_unique[] = {
#include "kernels/grids/unique.inc"
    NULL};
static const char *const lines_of_keep[] = {
#include "kernels/grids/keep.inc"
    NULL};
static const char *const lines_of_conv[] = {
#include "kernels/grids/conv.inc"
    NULL};
static const char *const lines_of_conv_each[] = {
#include "kernels/grids/conv_each.inc"
    NULL};
static const char *const lines_of_bias[] = {
#include "kernels/grids/bias.inc"
    NULL};
static const char *const lines_of_pool[] = {
#include "kernels/grids/pool.inc"
    NULL};
static const char *const lines_of_average[] = {
#include "kernels/grids/average.inc"
    NULL};
static const char *const lines_of_planes[] = {
#include "kernels/grids/planes.inc"
    NULL};
static const char *const lines_of_nearest[] = {
#include "kernels/grids/nearest.inc"
    NULL};
static const char *const lines_of_resample[] = {
#include "kernels/grids/resample.inc"
    NULL};
static const char *const lines_of_roi[] = {
#include "kernels/grids/roi.inc"
    NULL};
static const char *const lines_of_grid_sample[] = {
#include "kernels/grids/sample_axis.inc"
/* what it is made of stands above */
#include "kernels/grids/grid_sample.inc"
    NULL};

static const struct {
    const char *const *lines;
    uint32_t functions;
    const char *defines;
} texts[] = {
#define GRIDS_TEXT(id, lines, functions, defines)                                                  \
    [GRIDS_TEXT_##id] = {lines_of_##lines, functions, defines},
#include "device/grids/texts.def"
#undef GRIDS_TEXT
};

uint32_t grids_text_functions(enum grids_text text)
{
    return texts[text].functions;
}

#define INTEGERS                                                                                   \
    (DTYPE_BIT(TSSA_INT8) | DTYPE_BIT(TSSA_INT16) | DTYPE_BIT(TSSA_INT32) |                        \
     DTYPE_BIT(TSSA_INT64) | DTYPE_BIT(TSSA_UINT8) | DTYPE_BIT(TSSA_UINT16) |                      \
     DTYPE_BIT(TSSA_UINT32) | DTYPE_BIT(TSSA_UINT64))
#define FLOATS (DTYPE_BIT(TSSA_FLOAT) | DTYPE_BIT(TSSA_DOUBLE))
#define HALVES (DTYPE_BIT(TSSA_FLOAT16) | DTYPE_BIT(TSSA_BFLOAT16))

tssa_dtype grids_computed_in(tssa_dtype dtype)
{
    return dtype_in(HALVES, dtype) ? TSSA_FLOAT : dtype;
}

bool grids_text_takes(tssa_dtype dtype)
{
    return dtype_in(INTEGERS | FLOATS, dtype);
}

static void print_lines(const char *const *lines, struct text *text)
{
    for (; *lines; lines++)
        text_puts(text, *lines);
}

/* What elements of floats are in memory, and how they come and go (elements.h). */
static void print_elements(tssa_dtype dtype, struct text *text)
{
    const char *ir = dtype_info(dtype)->ir_name;
    if (dtype_in(HALVES, dtype))
        text_printf(text,
                    "#define T_WORD uint16_t\n#define T_OF(word) f32_of_%s(word)\n"
                    "#define T_TO(x) %s_of_f32(x)\n",
                    ir, ir);
    else
        text_puts(text, "#define T_WORD T\n#define T_OF(word) (word)\n#define T_TO(x) (x)\n");
    print_lines(lines_of_elements, text);
}

/* What a text says of the type that it computes in, and of its bits; of floats also what the
 * prelude has for them, what elements are, and how sums are finished. */
static void print_type(tssa_dtype dtype, struct text *text)
{
    const tssa_dtype type = grids_computed_in(dtype);
    const char *ir = dtype_info(type)->ir_name;
    text_printf(text, "#define T %s\n#define T_BITS uint%u_t\n", clike_type_of(type),
                (unsigned)(8 * tssa_dtype_size(type)));
    if (!dtype_in(FLOATS, type))
        return;
    text_printf(text,
                "#define T_IS_FLOAT\n#define FMA %s_fma\n"
                "#define BITS_OF(x) %s_bits(x)\n#define OF_BITS(bits) %s_of((T_BITS)(bits))\n",
                ir, ir, ir);
    print_elements(dtype, text);
    print_lines(lines_of_finish, text);
}

/* RANK parameters, which are called d0, d1, ..., and their names. */
static void print_axes(struct text *text)
{
    text_printf(text, "#define RANK %d\n#define AXES(d)", TSSA_MAX_RANK);
    for (int i = 0; i < TSSA_MAX_RANK; i++)
        text_printf(text, "%s int64_t d##%d", i ? "," : "", i);
    text_puts(text, "\n#define OF_AXES(d)");
    for (int i = 0; i < TSSA_MAX_RANK; i++)
        text_printf(text, "%s d##%d", i ? "," : "", i);
    text_putc(text, '\n');
}

bool grids_print_text(enum clike_dialect dialect, uint32_t height, enum grids_text id,
                      tssa_dtype dtype, struct text *text)
{
    if (!clike_print_prelude(dialect, 0, text))
        return false;
    print_type(dtype, text);
    text_printf(text, "#define WARP_COUNT %u\n", (unsigned)height);
    text_puts(text, "#define THREADS (WARP_COUNT * LANE_COUNT)\n"
                    "#define THREAD (BLOCK * THREADS + WARP * LANE_COUNT + LANE)\n"
                    "#define ALL_THREADS (BLOCKS * THREADS)\n");
    print_axes(text);
    text_puts(text, texts[id].defines);
    print_lines(texts[id].lines, text);
    return text_string(text) != NULL;
}

uint32_t grids_threads(const struct device_context *context)
{
    return 32 * context->device->launcher->height;
}

int64_t grids_ranked_blocks(int64_t n)
{
    return n / 32 + (n % 32 != 0);
}

tssa_status *grids_launch_text(struct device_stream *stream, enum grids_text id, tssa_dtype dtype,
                               uint32_t function, int64_t blocks, const struct launch_param *params,
                               uint32_t n_params)
{
    const struct launcher *launcher = stream->context->device->launcher;
    struct launch launch = {.height = launcher->height, .n_params = n_params, .params = params};
    if (blocks == 0)
        return NULL;
    launch.blocks = (uint32_t)(blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS);
    TRY(grids_text_function(stream->context, id, dtype, function, &launch.function));
    stream->counts.launches++;
    return launcher->launch(stream, &launch);
}

tssa_status *grids_launch_each(struct device_stream *stream, enum grids_text id, tssa_dtype dtype,
                               uint32_t function, int64_t items, const struct launch_param *params,
                               uint32_t n_params)
{
    const int64_t threads = grids_threads(stream->context);
    return grids_launch_text(stream, id, dtype, function, items / threads + (items % threads != 0),
                             params, n_params);
}

tssa_dtype grids_word(tssa_dtype dtype)
{
    static const tssa_dtype words[] = {
        [1] = TSSA_UINT8, [2] = TSSA_UINT16, [4] = TSSA_UINT32, [8] = TSSA_UINT64};
    const size_t size = tssa_dtype_size(dtype);
    return dtype != TSSA_STRING && size < sizeof words / sizeof *words ? words[size]
                                                                       : TSSA_UNDEFINED;
}
