/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolutions as primitives. Operands and result are reordered from and to the plain layouts that
 * ONNX has wherever the blocked ones are faster by more than that costs, which is nearly
 * everywhere; what has channels last is computed so. oneDNN says that it can do everything; what it
 * does with plain loops is named "ref", and is refused. Some are computed by Winograd's algorithm
 * (winograd.h).
 */
#include <stdlib.h>
#include <string.h>

#include "device/cpu/onednn/conv_attrs.h"
#include "device/cpu/onednn/unit.h"
#include "device/cpu/onednn/winograd.h"
#include "device/cpu/onednn/winograd_tiles.h"
#include "ir/convolve.h"

struct primitive {
    struct library_primitive base;
    const struct onednn_engine *engine;
    int threads;
    dnnl_data_type_t types[OPERANDS];
    char name[64];
    struct conv_unit conv;
    struct onednn_unit reorders[OPERANDS]; /* from or to the layout of the caller, if another */
    dnnl_memory_desc_t plain[OPERANDS];    /* as the caller has them */
    size_t at[OPERANDS]; /* of copies in the scratch memory, behind the scratchpad */
};

/* ---- Layouts --------------------------------------------------------------------------------- */

/* AVX-512 has blocks of 16, AVX2 of 8. */
static const struct conv_layouts choices[] = {
    {BLOCKS_16, BLOCKS_16}, {PLAIN, BLOCKS_16}, {BLOCKS_8, BLOCKS_8},
    {PLAIN, BLOCKS_8},      {ANY, ANY},         {PLAIN, PLAIN}};

#define CHOICES (sizeof choices / sizeof *choices)
#define CHOOSE_ANY (CHOICES - 2)
#define CHOOSE_PLAIN (CHOICES - 1)

/* An image of so few channels is read as it is. */
#define FEW_CHANNELS 4

static bool is_depthwise(const struct conv_problem *c)
{
    return c->groups > 1 && c->groups == c->in_channels && c->groups == c->out_channels;
}

/* A matrix product in each group. */
static bool is_pointwise(const struct conv_problem *c)
{
    bool pointwise = true;
    for (int i = 0; i < c->rank; i++)
        pointwise &= c->kernel[i] == 1 && c->stride[i] == 1 && c->out[i] == c->in[i];
    return pointwise && !is_depthwise(c);
}

/* What is tried before the others: where images can stay as they are, or are too small for full
 * blocks. */
static size_t first_choice(const struct conv_problem *c)
{
    int64_t pixels = 1;
    for (int i = 0; i < c->rank; i++)
        pixels *= c->out[i];
    if (!is_pointwise(c))
        return 0;
    return pixels >= CONV_MANY_PIXELS ? CHOOSE_PLAIN : c->groups > 1 ? CHOOSE_ANY : 0;
}

/* As the caller has them. */
static struct conv_layouts given_layouts(const struct conv_problem *c)
{
    return (struct conv_layouts){c->x_last ? LAST : PLAIN, c->y_last ? LAST : PLAIN};
}

/* Blocks that are full, and each in one group. */
static bool fits(const struct conv_problem *c, const struct conv_layouts *choice)
{
    int64_t groups = is_depthwise(c) ? 1 : c->groups;
    if (choice->src == PLAIN && choice->dst != PLAIN &&
        (c->in_channels > FEW_CHANNELS || groups > 1))
        return false;
    return c->in_channels / groups % conv_block_of(choice->src) == 0 &&
           c->out_channels / groups % conv_block_of(choice->dst) == 0;
}

/* ---- Choosing -------------------------------------------------------------------------------- */

/* Of one channel or few in each group, matrix products take ten times as long, but are better than
 * nothing. */
static bool is_slow(const struct conv_problem *c, const char *name)
{
    return c->groups > 1 && !is_pointwise(c) && strstr(name, "gemm") != NULL;
}

/* What is done to sums of matrix products is done in a pass of its own, which takes longer than
 * anybody else's. */
static bool appends_slowly(const struct conv_problem *c, const char *name)
{
    return (c->added || c->after != AFTER_NOTHING) && strstr(name, "gemm") != NULL;
}

static dnnl_primitive_desc_t try_choice(const struct primitive *p, const struct conv_problem *c,
                                        const struct conv_layouts *choice,
                                        dnnl_primitive_attr_t attr)
{
    dnnl_memory_desc_t descs[OPERANDS];
    dnnl_primitive_desc_t made = NULL;
    memset(descs, 0, sizeof descs);
    if (fits(c, choice) && conv_describe(c, p->types, choice, true, descs))
        made = conv_create_desc(p->engine, c, dnnl_convolution_direct, descs, attr);
    conv_drop_descs(descs);
    if (made && (strncmp(conv_name(made), "ref", 3) == 0 || appends_slowly(c, conv_name(made)))) {
        dnnl_primitive_desc_destroy(made);
        return NULL;
    }
    return made;
}

/* One block of all channels is channels last, which oneDNN does not see. An image of few channels
 * is read as it is then: of 3 channels in 224 x 224, whose result has 16, in 53 us and not in 96.
 */
static dnnl_primitive_desc_t choose_one_block(const struct primitive *p,
                                              const struct conv_problem *c,
                                              dnnl_primitive_attr_t attr,
                                              struct conv_layouts *given)
{
    for (size_t i = 0; i < CHOICES && !c->x_last && c->y_last; i++) {
        const struct conv_layouts *choice = &choices[i];
        if (choice->src != PLAIN || conv_block_of(choice->dst) != c->out_channels)
            continue;
        dnnl_primitive_desc_t made = try_choice(p, c, choice, attr);
        if (made)
            *given = *choice;
        return made;
    }
    return NULL;
}

/* The caller's layouts, of images with channels last, or channels last for both: to turn an image
 * of few channels is nothing. Where these are not computed quickly, the caller does better with
 * plain ones. */
static dnnl_primitive_desc_t choose_last(const struct primitive *p, const struct conv_problem *c,
                                         dnnl_primitive_attr_t attr, struct conv_layouts *given)
{
    const struct conv_layouts tried[] = {*given, {LAST, LAST}};
    dnnl_primitive_desc_t one_block = choose_one_block(p, c, attr, given);
    if (one_block)
        return one_block;
    for (size_t i = 0; i < sizeof tried / sizeof *tried; i++) {
        dnnl_primitive_desc_t made = try_choice(p, c, &tried[i], attr);
        if (!made || !strstr(conv_name(made), "gemm") || (is_pointwise(c) && c->groups == 1))
            if (made)
                return made;
        dnnl_primitive_desc_destroy(made);
    }
    return NULL;
}

/* *given: the caller's layouts, of which another one of the same bytes may be told. */
static dnnl_primitive_desc_t choose(const struct primitive *p, const struct conv_problem *c,
                                    dnnl_primitive_attr_t attr, struct conv_layouts *given)
{
    dnnl_primitive_desc_t slow = NULL;
    if (p->types[SRC] != dnnl_f32) /* channels last; or else by plain loops */
        return try_choice(p, c, &choices[CHOOSE_ANY], attr);
    if (c->x_last || c->y_last)
        return choose_last(p, c, attr, given);
    dnnl_primitive_desc_t made = try_choice(p, c, &choices[first_choice(c)], attr);
    for (size_t i = 0; i < CHOICES && (!made || is_slow(c, conv_name(made))); i++) {
        if (slow)
            dnnl_primitive_desc_destroy(made);
        else
            slow = made;
        made = try_choice(p, c, &choices[i], attr);
    }
    if (!made)
        return slow;
    dnnl_primitive_desc_destroy(slow);
    return made;
}

/* ---- Making ---------------------------------------------------------------------------------- */

/* It adds the bias to a sum in floats. */
#define MOST_SUM (INT64_C(1) << 24)

static bool find_types(struct primitive *p, const struct library_problem *problem)
{
    const struct library_quantizer *quantizer = onednn_quantizer(&problem->conv);
    const bool bytes = problem->dtype != TSSA_FLOAT;
    p->types[SRC] = !bytes ? dnnl_f32 : problem->dtype == TSSA_UINT8 ? dnnl_u8 : dnnl_s8;
    p->types[WEIGHTS] = bytes ? dnnl_s8 : dnnl_f32;
    p->types[BIAS] = bytes ? dnnl_s32 : dnnl_f32;
    p->types[DST] = !bytes                           ? dnnl_f32
                    : !quantizer                     ? dnnl_s32
                    : quantizer->dtype == TSSA_UINT8 ? dnnl_u8
                                                     : dnnl_s8;
    return bytes ? onednn_sums_bytes() && !problem->conv.w_zero &&
                       (quantizer ? quantizer->most <= MOST_SUM : !problem->conv.biased)
                 : true;
}

static void need_scratch(struct primitive *p, size_t bytes)
{
    if (onednn_aligned(bytes) > p->base.scratch_bytes)
        p->base.scratch_bytes = onednn_aligned(bytes);
}

static bool make_reorder(struct primitive *p, enum conv_operand operand, dnnl_primitive_attr_t attr)
{
    desc_view plain = DESC(p->plain[operand]), used = DESC(p->conv.used[operand]);
    const bool made =
        operand == DST ? onednn_unit_reorder(&p->reorders[operand], p->engine, used, plain, attr)
                       : onednn_unit_reorder(&p->reorders[operand], p->engine, plain, used, attr);
    need_scratch(p, p->reorders[operand].scratch_bytes);
    return made;
}

static int packing_threads(const struct primitive *p)
{
    return onednn_packing_threads(dnnl_memory_desc_get_size(DESC(p->plain[WEIGHTS])), p->threads);
}

/* A reorder runs on as many threads as there were when it was made. */
static bool make_packing(struct primitive *p, dnnl_primitive_attr_t attr)
{
    struct onednn_setting before = onednn_enter(packing_threads(p));
    const bool made = make_reorder(p, WEIGHTS, attr);
    onednn_leave(before);
    return made;
}

/* Where the copies of operands lie in the scratch memory. */
static void lay_out(struct primitive *p)
{
    for (int i = 0; i < OPERANDS; i++) {
        p->at[i] = p->base.scratch_bytes;
        if (p->reorders[i].primitive && i != WEIGHTS)
            p->base.scratch_bytes +=
                onednn_aligned(dnnl_memory_desc_get_size(DESC(p->conv.used[i])));
    }
    p->base.pack_scratch_bytes = p->reorders[WEIGHTS].scratch_bytes;
    if (p->reorders[WEIGHTS].primitive)
        p->base.packed_bytes = dnnl_memory_desc_get_size(DESC(p->conv.used[WEIGHTS]));
}

static bool make(struct primitive *p, const struct conv_problem *c,
                 const struct onednn_attrs *attrs)
{
    struct conv_layouts given = given_layouts(c);
    dnnl_primitive_desc_t desc = choose(p, c, attrs->conv, &given);
    if (!desc)
        return false;
    strncpy(p->name, conv_name(desc), sizeof p->name - 1);
    p->base.name = p->name;
    if (!conv_unit_make(&p->conv, p->engine, c->biased, desc) ||
        !conv_describe(c, p->types, &given, false, p->plain))
        return false;
    need_scratch(p, p->conv.unit.scratch_bytes);
    if (!make_reorder(p, SRC, attrs->reorder) || !make_packing(p, attrs->reorder) ||
        !make_reorder(p, DST, attrs->reorder) ||
        (c->added && p->reorders[DST].primitive)) /* what is added would be in another layout */
        return false;
    lay_out(p);
    return true;
}

/* What is packed with it, and never run. */
static bool make_packer(struct primitive *p, const struct conv_problem *c,
                        const struct onednn_attrs *attrs)
{
    struct conv_layouts given = given_layouts(c);
    dnnl_primitive_desc_t desc = choose(p, c, attrs->conv, &given);
    if (!desc || !conv_unit_describe(&p->conv, p->engine, c->biased, desc) ||
        !conv_describe(c, p->types, &given, false, p->plain) || !make_packing(p, attrs->reorder))
        return false;
    lay_out(p);
    return true;
}

/* ---- Running --------------------------------------------------------------------------------- */

static bool same_packing(const struct library_primitive *a, const struct library_primitive *b)
{
    return conv_unit_same_packing(&((const struct primitive *)a)->conv,
                                  &((const struct primitive *)b)->conv);
}

static bool reorder(const struct primitive *p, enum conv_operand operand, const void *from,
                    void *to, void *scratch)
{
    desc_view plain = DESC(p->plain[operand]), used = DESC(p->conv.used[operand]);
    return operand == DST
               ? onednn_reorder(&p->reorders[operand], p->engine, used, from, plain, to, scratch)
               : onednn_reorder(&p->reorders[operand], p->engine, plain, from, used, to, scratch);
}

static bool convolve(struct primitive *p, const struct library_call *call)
{
    char *scratch = device_place_at(call->scratch), *result = device_place_at(call->result);
    void *x = device_place_at(call->operands[SRC]);
    struct conv_places places = {.at = {[SRC] = x,
                                        [WEIGHTS] = device_place_at(call->operands[WEIGHTS]),
                                        [BIAS] = device_place_at(call->operands[BIAS]),
                                        [DST] = result},
                                 .scratch = scratch};
    if (p->reorders[SRC].primitive) {
        places.at[SRC] = scratch + p->at[SRC];
        if (!reorder(p, SRC, x, places.at[SRC], scratch))
            return false;
    }
    if (!p->reorders[DST].primitive)
        return conv_unit_run(&p->conv, &places);
    places.at[DST] = scratch + p->at[DST];
    return conv_unit_run(&p->conv, &places) && reorder(p, DST, places.at[DST], result, scratch);
}

static bool pack(const struct library_primitive *base, const void *weights, void *packed,
                 void *scratch)
{
    const struct primitive *p = (const struct primitive *)base;
    struct onednn_setting before = onednn_enter(packing_threads(p));
    bool done = reorder(p, WEIGHTS, weights, packed, scratch);
    onednn_leave(before);
    return done;
}

static bool run(const struct library_primitive *base, struct device_stream *stream,
                const struct library_call *call)
{
    struct primitive *p = (struct primitive *)(void *)base; /* but for what is kept, unchanged */
    struct onednn_setting before = onednn_enter(p->threads);
    bool done = convolve(p, call);
    (void)stream;
    onednn_leave(before);
    return done;
}

/* ---- A primitive ----------------------------------------------------------------------------- */

static void release(struct library_primitive *base)
{
    struct primitive *p = (struct primitive *)base;
    conv_unit_drop(&p->conv);
    for (int i = 0; i < OPERANDS; i++)
        onednn_unit_drop(&p->reorders[i]);
    conv_drop_descs(p->plain);
    free(p);
}

static struct primitive *primitive_open(struct cpu_engine *engine,
                                        const struct library_problem *problem)
{
    static const struct primitive_table table = {
        .same_packing = same_packing, .pack = pack, .run = run, .release = release};
    struct primitive *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->base.table = &table;
    p->engine = (const struct onednn_engine *)engine;
    p->threads = (int)problem->threads;
    return p;
}

/* As the library does it, in one layout. */
static struct library_primitive *make_direct(struct cpu_engine *engine,
                                             const struct library_problem *problem,
                                             const struct onednn_attrs *attrs)
{
    struct primitive *p = primitive_open(engine, problem);
    if (!p)
        return NULL;
    if (find_types(p, problem) && make(p, &problem->conv, attrs)) {
        if (p->types[SRC] == dnnl_f32 && strstr(p->name, "gemm"))
            onednn_get_ready(engine); /* it calls sgemm */
        return &p->base;
    }
    release(&p->base);
    return NULL;
}

static struct library_primitive *make_direct_packer(struct cpu_engine *engine,
                                                    const struct library_problem *problem,
                                                    const struct onednn_attrs *attrs)
{
    struct primitive *p = primitive_open(engine, problem);
    if (!p)
        return NULL;
    if (find_types(p, problem) && make_packer(p, &problem->conv, attrs))
        return &p->base;
    release(&p->base);
    return NULL;
}

static struct library_primitive *
make_with_attrs(struct cpu_engine *engine, const struct library_problem *problem, bool only_packs)
{
    const struct conv_problem *conv = &problem->conv;
    struct onednn_attrs attrs = {NULL, NULL};
    struct library_primitive *made = NULL;
    if (conv->rank < 1 || conv->rank > CONV_MAX_RANK || conv->turned)
        return NULL;
    struct onednn_setting before = onednn_enter((int)problem->threads);
    if (onednn_conv_attrs(conv, &attrs)) {
        made = only_packs ? make_direct_packer(engine, problem, &attrs)
                          : winograd_make(engine, problem, &attrs);
        if (!made && !only_packs)
            made = winograd_tiles_make(engine, problem);
        if (!made && !only_packs)
            made = make_direct(engine, problem, &attrs);
    }
    dnnl_primitive_attr_destroy(attrs.conv);
    dnnl_primitive_attr_destroy(attrs.reorder);
    onednn_leave(before);
    return made;
}

struct library_primitive *onednn_make_conv(struct cpu_engine *engine,
                                           const struct library_problem *problem)
{
    return make_with_attrs(engine, problem, false);
}

struct library_primitive *onednn_make_conv_packer(struct cpu_engine *engine,
                                                  const struct library_problem *problem)
{
    return problem->conv.winograd ? NULL : make_with_attrs(engine, problem, true);
}
