/* SPDX-License-Identifier: Apache-2.0 */
/* Grids are compiled by NVRTC, to machine code for the card. */
#include "device/cuda/launcher.h"

#include <inttypes.h>
#include <stdio.h>

#include "device/cuda/nvrtc.h"
#include "device/cuda/recording.h"

/* A warp is 32 threads, which share a row, where there are rows. */
enum { WARP = 32, WARPS = 8 };

/* Of a launch: those of 4 KiB, which is what all drivers take. */
#define MOST_PARAMS 512

/* ---- Programs -------------------------------------------------------------------------------- */

static tssa_status *find_functions(const struct cuda_card *card, cuda_module module, uint32_t n,
                                   void **functions)
{
    for (uint32_t i = 0; i < n; i++) {
        char name[16];
        cuda_function function;
        snprintf(name, sizeof name, "k%" PRIu32, i);
        TRY(CUDA(&card->api, cuModuleGetFunction, &function, module, name));
        functions[i] = function;
    }
    return NULL;
}

static tssa_status *load(const struct cuda_card *card, const void *code, uint32_t n,
                         void **functions, cuda_module *module)
{
    TRY(status_prefix(CUDA(&card->api, cuModuleLoadData, module, code),
                      "a driver for CUDA %d.%d does not take what NVRTC makes", card->driver / 1000,
                      card->driver % 1000 / 10));
    tssa_status *status = find_functions(card, *module, n, functions);
    if (status)
        tssa_status_free(CUDA(&card->api, cuModuleUnload, *module));
    return status;
}

static tssa_status *load_image(struct device_context *context, const void *image, size_t size,
                               uint32_t n, void **functions, void **program)
{
    const struct cuda_card *card;
    cuda_module module;
    (void)size; /* the driver reads it in the code */
    TRY(cuda_enter(context, &card));
    TRY(load(card, image, n, functions, &module));
    *program = module;
    return NULL;
}

/* The image becomes the other one, with the NUL behind it, where the compiler's file is known, by
 * which it is found again. */
static void give(struct image *image, struct launcher_image *given)
{
    struct codegen_maker *maker = &given->maker;
    if (!file_identify(image->library, &maker->identity))
        return;
    snprintf(maker->library, sizeof maker->library, "%s", image->library);
    snprintf(maker->version, sizeof maker->version, "NVRTC %d.%d", image->version[0],
             image->version[1]);
    given->data = image->data;
    given->size = image->size + 1;
    image->data = NULL;
}

static tssa_status *build(struct device_context *context, const char *text, uint32_t n,
                          void **functions, void **program, struct launcher_image *wanted)
{
    const struct nvrtc_source source = {text, "grids.cu", {CLIKE_CUDA_OPTIONS}, false};
    const struct cuda_card *card;
    cuda_module module;
    struct image image;
    TRY(cuda_enter(context, &card));
    TRY(nvrtc_compile(context->allocator, &source, card->architecture, IMAGE_CUBIN, &image));
    tssa_status *status = load(card, image.data, n, functions, &module);
    if (!status) {
        *program = module;
        if (wanted)
            give(&image, wanted);
    }
    allocator_free(context->allocator, image.data);
    return status;
}

static void describe(struct device_context *context, struct text *text)
{
    static const char *const options[] = {CLIKE_CUDA_OPTIONS};
    const struct cuda_card *card = context->connected;
    text_printf(text, "CUDA, compute capability %d.%d,", card->architecture / 10,
                card->architecture % 10);
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        text_printf(text, " %s", options[i]);
    text_printf(text, "\n%s\n", shared_only_folder());
}

static void release(struct device_context *context, void *program, uint32_t n, void **functions)
{
    const struct cuda_card *card = cuda_enter_anyway(context);
    (void)n;
    (void)functions; /* are the module's */
    tssa_status_free(CUDA(&card->api, cuModuleUnload, program));
}

/* ---- Launches -------------------------------------------------------------------------------- */

/* Eight bytes each: an address or a number. */
static int64_t value_of(const struct launch_param *param)
{
    if (!param->is_memory)
        return param->number;
    return (int64_t)((intptr_t)param->place.memory + (intptr_t)param->place.offset);
}

/*
 * On a card that can do that, a kernel's blocks take their places while the one before still runs,
 * and wait where their text says AFTER_OTHERS: what lies between two small kernels is most of what
 * they take. Kernels of libraries, copies and fills are waited for as ever; and so is everything in
 * the body of a conditional node, and behind one: what was measured of these was.
 */
static bool begins_early(const struct cuda_card *card, struct cuda_queue *queue)
{
    const bool apart = queue->behind_node || cuda_record_nested(queue);
    queue->behind_node = false;
    return card->architecture >= 90 && card->api.cuLaunchKernelEx && !apart;
}

static tssa_status *launch_early(const struct cuda_card *card, const struct launch *launch,
                                 cuda_stream stream, void **params)
{
    struct cuda_launch_attribute early = {.id = CUDA_LAUNCH_PROGRAMMATIC, .value = 1};
    const struct cuda_launch config = {.blocks = {launch->blocks, 1, 1},
                                       .threads = {WARP, launch->height, 1},
                                       .stream = stream,
                                       .attributes = &early,
                                       .n_attributes = 1};
    return CUDA(&card->api, cuLaunchKernelEx, &config, launch->function, params, NULL);
}

static tssa_status *launch(struct device_stream *stream, const struct launch *launch)
{
    const struct cuda_card *card;
    cuda_stream own;
    int64_t values[MOST_PARAMS];
    void *params[MOST_PARAMS];
    if (launch->n_params > MOST_PARAMS)
        return ERROR(TSSA_RUNTIME, "%" PRIu32 " parameters are too many for a launch",
                     launch->n_params);
    for (uint32_t i = 0; i < launch->n_params; i++) {
        values[i] = value_of(&launch->params[i]);
        params[i] = &values[i];
    }
    TRY(cuda_enter_stream(stream, &card, &own));
    if (begins_early(card, (struct cuda_queue *)stream))
        return launch_early(card, launch, own, params);
    return CUDA(&card->api, cuLaunchKernel, launch->function, launch->blocks, 1, 1, WARP,
                launch->height, 1, 0, own, params, NULL);
}

const struct launcher cuda_launcher = {
    .dialect = CLIKE_CUDA,
    .row_height = WARPS,
    .height = WARPS,
    .most_bytes = 8 * MOST_PARAMS,
    .build = build,
    .load = load_image,
    .describe = describe,
    .release = release,
    .launch = launch,
};
