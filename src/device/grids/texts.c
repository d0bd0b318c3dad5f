/* SPDX-License-Identifier: Apache-2.0 */
#include "device/grids/texts.h"

#include "device/grids/programs.h"

/* More would have threads start that have next to nothing to do: each block goes on with others. */
#define MOST_BLOCKS 65535

static const char *const lines_of_product[] = {
#include "kernels/grids/product.inc"
    NULL};
static const char *const lines_of_scale[] = {
#include "kernels/grids/scale.inc"
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

/* What a text says of its type. */
static const struct type {
    tssa_dtype dtype;
    const char *name, *fma, *of_bits;
} types[] = {
    {TSSA_FLOAT, "float", "f32_fma", "f32_of((uint32_t)(bits))"},
    {TSSA_DOUBLE, "double", "f64_fma", "f64_of((uint64_t)(bits))"},
};

static void print_type(tssa_dtype dtype, struct text *text)
{
    size_t i = 0;
    while (types[i].dtype != dtype)
        i++;
    text_printf(text, "#define T %s\n#define FMA %s\n#define OF_BITS(bits) %s\n", types[i].name,
                types[i].fma, types[i].of_bits);
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
    text_puts(text, texts[id].defines);
    for (const char *const *line = texts[id].lines; *line; line++)
        text_puts(text, *line);
    return text_string(text) != NULL;
}

uint32_t grids_threads(const struct device_context *context)
{
    return 32 * context->device->launcher->height;
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
