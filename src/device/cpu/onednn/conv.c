/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolutions as primitives. Operands and result are reordered from and to the plain layouts that
 * ONNX has wherever the blocked ones are faster by more than that costs, which is nearly
 * everywhere; what has channels last is computed so. oneDNN says that it can do everything; what it
 * does with plain loops is named "ref", and is refused.
 */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "device/cpu/onednn/conv_attrs.h"
#include "ir/convolve.h"

#define SPACE (CONV_MAX_RANK + 3) /* groups, out, in, spatial */

enum operand { SRC, WEIGHTS, BIAS, DST, OPERANDS };

/* One of oneDNN's primitives, and the memory that it needs for itself. */
struct unit {
    dnnl_primitive_t primitive; /* NULL: there is nothing to do */
    dnnl_memory_desc_t scratchpad;
    size_t scratch_bytes;
};

/* Source, weights, result, perhaps bias, perhaps scratchpad. */
#define MOST_ARGS 5

/* Arguments of a convolution in one run; oneDNN takes no addresses, but handles with one each. */
struct call_args {
    int n;
    dnnl_exec_arg_t args[MOST_ARGS];
    void *at[MOST_ARGS]; /* that they point to */
};

struct primitive {
    struct library_primitive base;
    _Atomic(struct call_args *) idle; /* of an earlier run; NULL: there are none */
    const struct onednn_engine *engine;
    int threads;
    bool biased;
    dnnl_data_type_t types[OPERANDS];
    char name[64];
    struct unit conv;
    struct unit reorders[OPERANDS]; /* from or to the layout of the caller, where that is another */
    dnnl_memory_desc_t plain[OPERANDS]; /* as the caller has them */
    dnnl_memory_desc_t used[OPERANDS];  /* as the primitive wants them */
    size_t at[OPERANDS];                /* of copies in the scratch memory, behind the scratchpad */
};

/* ---- Layouts --------------------------------------------------------------------------------- */

enum layout { PLAIN, BLOCKS_16, BLOCKS_8, ANY, LAST, LAYOUTS };

static const int64_t block_of[LAYOUTS] = {
    [PLAIN] = 1, [BLOCKS_16] = 16, [BLOCKS_8] = 8, [ANY] = 1, [LAST] = 1};

/* Of images, by rank: batch, channels, two or three spatial axes. */
static const dnnl_format_tag_t tags[LAYOUTS][SPACE] = {
    [PLAIN] = {[4] = dnnl_abcd, [5] = dnnl_abcde},
    [BLOCKS_16] = {[4] = dnnl_aBcd16b, [5] = dnnl_aBcde16b},
    [BLOCKS_8] = {[4] = dnnl_aBcd8b, [5] = dnnl_aBcde8b},
    [ANY] = {[4] = dnnl_format_tag_any, [5] = dnnl_format_tag_any},
    [LAST] = {[4] = dnnl_acdb, [5] = dnnl_acdeb},
};

/* AVX-512 has blocks of 16, AVX2 of 8. */
static const struct choice {
    enum layout src, dst;
} choices[] = {{BLOCKS_16, BLOCKS_16}, {PLAIN, BLOCKS_16}, {BLOCKS_8, BLOCKS_8},
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
static struct choice given_layouts(const struct conv_problem *c)
{
    return (struct choice){c->x_last ? LAST : PLAIN, c->y_last ? LAST : PLAIN};
}

/* Blocks that are full, and each in one group. */
static bool fits(const struct conv_problem *c, const struct choice *choice)
{
    int64_t groups = is_depthwise(c) ? 1 : c->groups;
    if (choice->src == PLAIN && choice->dst != PLAIN &&
        (c->in_channels > FEW_CHANNELS || groups > 1))
        return false;
    return c->in_channels / groups % block_of[choice->src] == 0 &&
           c->out_channels / groups % block_of[choice->dst] == 0;
}

/* ---- Descriptions ---------------------------------------------------------------------------- */

/* One spatial axis is the second of two: oneDNN has fast code for those only. */
static int spatial_rank(const struct conv_problem *c)
{
    return c->rank == 1 ? 2 : (int)c->rank;
}

static void spatial(const struct conv_problem *c, const int64_t *sizes, int64_t missing,
                    dnnl_dim_t *dims)
{
    int n = 0;
    if (c->rank == 1)
        dims[n++] = missing;
    for (int i = 0; i < c->rank; i++)
        dims[n++] = sizes[i];
}

static bool image_desc(const struct conv_problem *c, int64_t channels, const int64_t *sizes,
                       dnnl_data_type_t type, enum layout layout, dnnl_memory_desc_t *desc)
{
    dnnl_dims_t dims = {c->batch, channels};
    int n = spatial_rank(c) + 2;
    spatial(c, sizes, 1, dims + 2);
    return desc_make(desc, n, dims, type, tags[layout][n]);
}

static bool weights_desc(const struct conv_problem *c, dnnl_data_type_t type, bool any,
                         dnnl_memory_desc_t *desc)
{
    static const dnnl_format_tag_t plain[SPACE + 1] = {
        [4] = dnnl_abcd, [5] = dnnl_abcde, [6] = dnnl_abcdef};
    dnnl_dims_t dims;
    int n = 0;
    if (c->groups > 1)
        dims[n++] = c->groups;
    dims[n++] = c->out_channels / c->groups;
    dims[n++] = c->in_channels / c->groups;
    spatial(c, c->kernel, 1, dims + n);
    n += spatial_rank(c);
    return desc_make(desc, n, dims, type, any ? dnnl_format_tag_any : plain[n]);
}

static bool describe(const struct conv_problem *c, const dnnl_data_type_t *types,
                     const struct choice *choice, bool any_weights, dnnl_memory_desc_t *descs)
{
    const dnnl_dims_t channels = {c->out_channels};
    return image_desc(c, c->in_channels, c->in, types[SRC], choice->src, &descs[SRC]) &&
           weights_desc(c, types[WEIGHTS], any_weights, &descs[WEIGHTS]) &&
           desc_make(&descs[BIAS], 1, channels, types[BIAS], dnnl_a) &&
           image_desc(c, c->out_channels, c->out, types[DST], choice->dst, &descs[DST]);
}

static void drop_descs(dnnl_memory_desc_t *descs)
{
    for (int i = 0; i < OPERANDS; i++)
        desc_drop(&descs[i]);
}

static dnnl_primitive_desc_t create(const struct onednn_engine *engine,
                                    const struct conv_problem *c, const dnnl_memory_desc_t *descs,
                                    dnnl_primitive_attr_t attr)
{
    dnnl_primitive_desc_t made = NULL;
    dnnl_dims_t strides, dilations, begin, end;
    spatial(c, c->stride, 1, strides);
    spatial(c, c->dilation, 1, dilations);
    spatial(c, c->pad_begin, 0, begin);
    spatial(c, c->pad_end, 0, end);
    for (int i = 0; i < spatial_rank(c); i++)
        dilations[i]--;
#if DNNL_VERSION_MAJOR >= 3
    dnnl_convolution_forward_primitive_desc_create(
        &made, engine->engine, dnnl_forward_inference, dnnl_convolution_direct, descs[SRC],
        descs[WEIGHTS], c->biased ? descs[BIAS] : NULL, descs[DST], strides, dilations, begin, end,
        attr);
#else
    dnnl_convolution_desc_t desc;
    if (dnnl_dilated_convolution_forward_desc_init(
            &desc, dnnl_forward_inference, dnnl_convolution_direct, &descs[SRC], &descs[WEIGHTS],
            c->biased ? &descs[BIAS] : NULL, &descs[DST], strides, dilations, begin,
            end) == dnnl_success)
        dnnl_primitive_desc_create(&made, &desc, attr, engine->engine, NULL);
#endif
    return made;
}

/* ---- Choosing -------------------------------------------------------------------------------- */

static const char *name_of(dnnl_primitive_desc_t desc)
{
    const char *name = "";
    dnnl_primitive_desc_query(desc, dnnl_query_impl_info_str, 0, (void *)&name);
    return name;
}

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
                                        const struct choice *choice, dnnl_primitive_attr_t attr)
{
    dnnl_memory_desc_t descs[OPERANDS];
    dnnl_primitive_desc_t made = NULL;
    memset(descs, 0, sizeof descs);
    if (fits(c, choice) && describe(c, p->types, choice, true, descs))
        made = create(p->engine, c, descs, attr);
    drop_descs(descs);
    if (made && (strncmp(name_of(made), "ref", 3) == 0 || appends_slowly(c, name_of(made)))) {
        dnnl_primitive_desc_destroy(made);
        return NULL;
    }
    return made;
}

/* The caller's layouts, of images with channels last, or channels last for both: to turn an image
 * of few channels is nothing. Where these are not computed quickly, the caller does better with
 * plain ones. */
static dnnl_primitive_desc_t choose_last(const struct primitive *p, const struct conv_problem *c,
                                         dnnl_primitive_attr_t attr)
{
    const struct choice tried[] = {given_layouts(c), {LAST, LAST}};
    for (size_t i = 0; i < sizeof tried / sizeof *tried; i++) {
        dnnl_primitive_desc_t made = try_choice(p, c, &tried[i], attr);
        if (!made || !strstr(name_of(made), "gemm") || (is_pointwise(c) && c->groups == 1))
            if (made)
                return made;
        dnnl_primitive_desc_destroy(made);
    }
    return NULL;
}

static dnnl_primitive_desc_t choose(const struct primitive *p, const struct conv_problem *c,
                                    dnnl_primitive_attr_t attr)
{
    dnnl_primitive_desc_t slow = NULL;
    if (p->types[SRC] != dnnl_f32) /* channels last; or else by plain loops */
        return try_choice(p, c, &choices[CHOOSE_ANY], attr);
    if (c->x_last || c->y_last)
        return choose_last(p, c, attr);
    dnnl_primitive_desc_t made = try_choice(p, c, &choices[first_choice(c)], attr);
    for (size_t i = 0; i < CHOICES && (!made || is_slow(c, name_of(made))); i++) {
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
    return bytes ? onednn_sums_bytes() && (quantizer || !problem->conv.biased) : true;
}

static size_t aligned(size_t size)
{
    return (size + LIBRARY_ALIGNMENT - 1) / LIBRARY_ALIGNMENT * LIBRARY_ALIGNMENT;
}

/* Takes the description. */
static bool make_unit(struct primitive *p, dnnl_primitive_desc_t desc, struct unit *unit)
{
    desc_view scratchpad = dnnl_primitive_desc_query_md(desc, dnnl_query_scratchpad_md, 0);
    bool made = scratchpad && desc_copy(&unit->scratchpad, scratchpad) &&
                dnnl_primitive_create(&unit->primitive, desc) == dnnl_success;
    if (made)
        unit->scratch_bytes = dnnl_memory_desc_get_size(scratchpad);
    if (aligned(unit->scratch_bytes) > p->base.scratch_bytes)
        p->base.scratch_bytes = aligned(unit->scratch_bytes);
    dnnl_primitive_desc_destroy(desc);
    return made;
}

static bool make_reorder(struct primitive *p, enum operand operand, dnnl_primitive_attr_t attr)
{
    desc_view plain = DESC(p->plain[operand]), used = DESC(p->used[operand]);
    dnnl_engine_t engine = p->engine->engine;
    dnnl_primitive_desc_t desc = NULL;
    if (dnnl_memory_desc_equal(plain, used))
        return true;
    return dnnl_reorder_primitive_desc_create(&desc, operand == DST ? used : plain, engine,
                                              operand == DST ? plain : used, engine,
                                              attr) == dnnl_success &&
           make_unit(p, desc, &p->reorders[operand]);
}

static const dnnl_query_t desc_queries[OPERANDS] = {dnnl_query_src_md, dnnl_query_weights_md,
                                                    dnnl_query_weights_md, dnnl_query_dst_md};

static bool query_layouts(struct primitive *p, dnnl_primitive_desc_t desc)
{
    for (int i = 0; i < OPERANDS; i++) {
        desc_view used = i == BIAS ? DESC(p->plain[BIAS])
                                   : dnnl_primitive_desc_query_md(desc, desc_queries[i], 0);
        if (!used || !desc_copy(&p->used[i], used))
            return false;
    }
    return true;
}

/* Where the copies of operands lie in the scratch memory. */
static void lay_out(struct primitive *p)
{
    for (int i = 0; i < OPERANDS; i++) {
        p->at[i] = p->base.scratch_bytes;
        if (p->reorders[i].primitive && i != WEIGHTS)
            p->base.scratch_bytes += aligned(dnnl_memory_desc_get_size(DESC(p->used[i])));
    }
    if (p->reorders[WEIGHTS].primitive)
        p->base.packed_bytes = dnnl_memory_desc_get_size(DESC(p->used[WEIGHTS]));
}

static bool make(struct primitive *p, const struct conv_problem *c,
                 const struct onednn_attrs *attrs)
{
    dnnl_primitive_desc_t desc = choose(p, c, attrs->conv);
    if (!desc)
        return false;
    strncpy(p->name, name_of(desc), sizeof p->name - 1);
    p->base.name = p->name;
    const struct choice given = given_layouts(c);
    bool described = describe(c, p->types, &given, false, p->plain) && query_layouts(p, desc);
    if (!described)
        dnnl_primitive_desc_destroy(desc);
    if (!described || !make_unit(p, desc, &p->conv) || !make_reorder(p, SRC, attrs->reorder) ||
        !make_reorder(p, WEIGHTS, attrs->reorder) || !make_reorder(p, DST, attrs->reorder) ||
        (c->added && p->reorders[DST].primitive)) /* what is added would be in another layout */
        return false;
    lay_out(p);
    return true;
}

/* ---- Running --------------------------------------------------------------------------------- */

static bool same_packing(const struct library_primitive *a, const struct library_primitive *b)
{
    return dnnl_memory_desc_equal(DESC(((const struct primitive *)a)->used[WEIGHTS]),
                                  DESC(((const struct primitive *)b)->used[WEIGHTS]));
}

static void *at(struct device_place place)
{
    return (char *)place.memory + place.offset;
}

/* An argument whose memory is at `data`. */
static bool bind(const struct primitive *p, int number, desc_view desc, const void *data,
                 dnnl_exec_arg_t *arg)
{
    arg->arg = number;
    return dnnl_memory_create(&arg->memory, desc, p->engine->engine, (void *)data) == dnnl_success;
}

/*
 * Executes the unit on `n` arguments and its scratchpad; drops them, and those that were not bound.
 */
static bool execute(const struct primitive *p, const struct unit *unit, bool bound, int n,
                    dnnl_exec_arg_t *args, void *scratch)
{
    if (bound && unit->scratch_bytes > 0)
        bound = bind(p, DNNL_ARG_SCRATCHPAD, DESC(unit->scratchpad), scratch, &args[n++]);
    bool done = bound &&
                dnnl_primitive_execute(unit->primitive, p->engine->stream, n, args) == dnnl_success;
    for (int i = 0; i < n; i++)
        dnnl_memory_destroy(args[i].memory);
    return done && dnnl_stream_wait(p->engine->stream) == dnnl_success;
}

static bool reorder(const struct primitive *p, enum operand operand, const void *from, void *to,
                    void *scratch)
{
    dnnl_exec_arg_t args[MOST_ARGS] = {{0}};
    desc_view plain = DESC(p->plain[operand]), used = DESC(p->used[operand]);
    bool bound = bind(p, DNNL_ARG_FROM, operand == DST ? used : plain, from, &args[0]) &&
                 bind(p, DNNL_ARG_TO, operand == DST ? plain : used, to, &args[1]);
    return execute(p, &p->reorders[operand], bound, 2, args, scratch);
}

/* ---- Arguments that are kept ----------------------------------------------------------------- */

static bool add_arg(const struct primitive *p, struct call_args *call, int number, desc_view desc)
{
    return bind(p, number, desc, DNNL_MEMORY_NONE, &call->args[call->n++]);
}

static void drop_args(struct call_args *call)
{
    for (int i = 0; call && i < call->n; i++)
        dnnl_memory_destroy(call->args[i].memory);
    free(call);
}

static struct call_args *make_args(const struct primitive *p)
{
    struct call_args *call = calloc(1, sizeof *call);
    if (!call)
        return NULL;
    if (add_arg(p, call, DNNL_ARG_SRC, DESC(p->used[SRC])) &&
        add_arg(p, call, DNNL_ARG_WEIGHTS, DESC(p->used[WEIGHTS])) &&
        add_arg(p, call, DNNL_ARG_DST, DESC(p->used[DST])) &&
        (!p->biased || add_arg(p, call, DNNL_ARG_BIAS, DESC(p->used[BIAS]))) &&
        (p->conv.scratch_bytes == 0 ||
         add_arg(p, call, DNNL_ARG_SCRATCHPAD, DESC(p->conv.scratchpad))))
        return call;
    drop_args(call);
    return NULL;
}

/* Those of an earlier run, for one thread at a time. */
static struct call_args *take_args(struct primitive *p)
{
    struct call_args *call = atomic_exchange_explicit(&p->idle, NULL, memory_order_acquire);
    return call ? call : make_args(p);
}

static void give_args(struct primitive *p, struct call_args *call)
{
    struct call_args *none = NULL;
    if (!atomic_compare_exchange_strong_explicit(&p->idle, &none, call, memory_order_release,
                                                 memory_order_relaxed))
        drop_args(call);
}

static bool set_args(const struct primitive *p, struct call_args *call,
                     const struct library_call *c, void *x, void *y)
{
    void *all[MOST_ARGS] = {x, at(c->operands[WEIGHTS]), y};
    int n = 3;
    if (p->biased)
        all[n++] = at(c->operands[BIAS]);
    all[n] = at(c->scratch);
    bool set = true;
    for (int i = 0; i < call->n && set; i++) {
        if (call->at[i] == all[i]) /* else the library zeros the padding of weights once more */
            continue;
        set = dnnl_memory_set_data_handle(call->args[i].memory, all[i]) == dnnl_success;
        call->at[i] = set ? all[i] : NULL;
    }
    return set;
}

static bool execute_conv(struct primitive *p, const struct library_call *c, void *x, void *y)
{
    struct call_args *call = take_args(p);
    if (!call)
        return false;
    const bool done = set_args(p, call, c, x, y) &&
                      dnnl_primitive_execute(p->conv.primitive, p->engine->stream, call->n,
                                             call->args) == dnnl_success &&
                      dnnl_stream_wait(p->engine->stream) == dnnl_success;
    give_args(p, call);
    return done;
}

static bool convolve(struct primitive *p, const struct library_call *call)
{
    char *scratch = at(call->scratch), *result = at(call->result);
    const bool moves_x = p->reorders[SRC].primitive, moves_y = p->reorders[DST].primitive;
    void *x = at(call->operands[SRC]), *own_x = scratch + p->at[SRC],
         *y = moves_y ? scratch + p->at[DST] : result;
    if (moves_x && !reorder(p, SRC, x, own_x, scratch))
        return false;
    return execute_conv(p, call, moves_x ? own_x : x, y) &&
           (!moves_y || reorder(p, DST, y, result, scratch));
}

static bool pack(const struct library_primitive *base, const void *weights, void *packed,
                 void *scratch)
{
    const struct primitive *p = (const struct primitive *)base;
    struct onednn_setting before = onednn_enter(p->threads);
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
    drop_args(atomic_load_explicit(&p->idle, memory_order_acquire));
    dnnl_primitive_destroy(p->conv.primitive);
    desc_drop(&p->conv.scratchpad);
    for (int i = 0; i < OPERANDS; i++) {
        dnnl_primitive_destroy(p->reorders[i].primitive);
        desc_drop(&p->reorders[i].scratchpad);
    }
    drop_descs(p->plain);
    drop_descs(p->used);
    free(p);
}

struct library_primitive *onednn_make_conv(struct cpu_engine *engine,
                                           const struct library_problem *problem)
{
    static const struct primitive_table table = {
        .same_packing = same_packing, .pack = pack, .run = run, .release = release};
    const struct conv_problem *conv = &problem->conv;
    struct onednn_attrs attrs = {NULL, NULL};
    struct primitive *p = calloc(1, sizeof *p);
    if (!p)
        return NULL;
    p->base.table = &table;
    p->engine = (const struct onednn_engine *)engine;
    p->threads = (int)problem->threads;
    p->biased = conv->biased;
    struct onednn_setting before = onednn_enter(p->threads);
    bool made = conv->rank >= 1 && conv->rank <= CONV_MAX_RANK && !conv->turned &&
                find_types(p, problem) && onednn_conv_attrs(conv, &attrs) && make(p, conv, &attrs);
    dnnl_primitive_attr_destroy(attrs.conv);
    dnnl_primitive_attr_destroy(attrs.reorder);
    onednn_leave(before);
    if (made)
        return &p->base;
    release(&p->base);
    return NULL;
}
