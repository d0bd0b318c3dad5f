/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolutions. oneDNN chooses the layouts; operands and result are reordered from and to the plain ones
 * that ONNX has, because its kernels for plain layouts are several times slower than the reorders.
 */
#include <string.h>

#include "device/cpu/onednn/onednn.h"

#define MAX_DIMS (CONV_MAX_RANK + 3) /* groups, out, in, spatial */

enum operand { SRC, WEIGHTS, BIAS, DST, OPERANDS };

/* An operand in the caller's layout, and in the one that the primitive wants. */
struct side {
    dnnl_memory_desc_t plain;
    dnnl_memory_t given, used; /* `used` is `given` where the layouts agree */
};

struct job {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_desc_t description;
    dnnl_primitive_t primitive;
    struct side sides[OPERANDS];
    bool biased;
};

/* Row-major, contiguous. */
static const dnnl_format_tag_t plain_tags[MAX_DIMS + 1] = {
    dnnl_format_tag_undef, dnnl_a, dnnl_ab, dnnl_abc, dnnl_abcd, dnnl_abcde, dnnl_abcdef};

#if DNNL_VERSION_MAJOR >= 3
typedef const_dnnl_memory_desc_t desc_view;
static bool make_desc(dnnl_memory_desc_t *desc, int n, const dnnl_dims_t dims,
                      dnnl_format_tag_t tag)
{
    return dnnl_memory_desc_create_with_tag(desc, n, dims, dnnl_f32, tag) == dnnl_success;
}
static void drop_desc(dnnl_memory_desc_t *desc)
{
    dnnl_memory_desc_destroy(*desc);
}
static bool make_memory(dnnl_memory_t *memory, desc_view desc, dnnl_engine_t engine, void *data)
{
    return dnnl_memory_create(memory, desc, engine, data) == dnnl_success;
}
#define DESC(desc) (desc)
#else
typedef const dnnl_memory_desc_t *desc_view;
static bool make_desc(dnnl_memory_desc_t *desc, int n, const dnnl_dims_t dims,
                      dnnl_format_tag_t tag)
{
    return dnnl_memory_desc_init_by_tag(desc, n, dims, dnnl_f32, tag) == dnnl_success;
}
static void drop_desc(dnnl_memory_desc_t *desc)
{
    (void)desc;
}
static bool make_memory(dnnl_memory_t *memory, desc_view desc, dnnl_engine_t engine, void *data)
{
    return dnnl_memory_create(memory, desc, engine, data) == dnnl_success;
}
#define DESC(desc) (&(desc))
#endif

/* ---- Descriptions --------------------------------------------------------------------------------- */

static int weight_dims(const struct conv *c, dnnl_dims_t dims)
{
    int n = 0;
    if (c->groups > 1)
        dims[n++] = c->groups;
    dims[n++] = c->out_channels / c->groups;
    dims[n++] = c->in_channels / c->groups;
    for (int i = 0; i < c->rank; i++)
        dims[n++] = c->kernel[i];
    return n;
}

static int image_dims(int64_t batch, int64_t channels, int rank, const int64_t *sizes,
                      dnnl_dims_t dims)
{
    dims[0] = batch;
    dims[1] = channels;
    for (int i = 0; i < rank; i++)
        dims[i + 2] = sizes[i];
    return rank + 2;
}

/* The four operands in one format: row-major, or whatever the primitive likes. */
static bool describe_operands(const struct conv *c, bool any, dnnl_memory_desc_t *descs)
{
    dnnl_dims_t dims;
    int n = image_dims(c->batch, c->in_channels, c->rank, c->in, dims);
    if (!make_desc(&descs[SRC], n, dims, any ? dnnl_format_tag_any : plain_tags[n]))
        return false;
    n = image_dims(c->batch, c->out_channels, c->rank, c->out, dims);
    if (!make_desc(&descs[DST], n, dims, any ? dnnl_format_tag_any : plain_tags[n]))
        return false;
    n = weight_dims(c, dims);
    if (!make_desc(&descs[WEIGHTS], n, dims, any ? dnnl_format_tag_any : plain_tags[n]))
        return false;
    dims[0] = c->out_channels;
    return make_desc(&descs[BIAS], 1, dims, dnnl_a);
}

static bool create_description(struct job *job, const struct conv *c, const dnnl_memory_desc_t *any)
{
    dnnl_dims_t strides, dilations, begin, end;
    for (int i = 0; i < c->rank; i++) {
        strides[i] = c->stride[i];
        dilations[i] = c->dilation[i] - 1;
        begin[i] = c->pad_begin[i];
        end[i] = c->pad_end[i];
    }
#if DNNL_VERSION_MAJOR >= 3
    return dnnl_convolution_forward_primitive_desc_create(
               &job->description, job->engine, dnnl_forward_inference, dnnl_convolution_auto,
               any[SRC], any[WEIGHTS], job->biased ? any[BIAS] : NULL, any[DST], strides, dilations,
               begin, end, NULL) == dnnl_success;
#else
    dnnl_convolution_desc_t desc;
    return dnnl_dilated_convolution_forward_desc_init(
               &desc, dnnl_forward_inference, dnnl_convolution_auto, &any[SRC], &any[WEIGHTS],
               job->biased ? &any[BIAS] : NULL, &any[DST], strides, dilations, begin,
               end) == dnnl_success &&
           dnnl_primitive_desc_create(&job->description, &desc, NULL, job->engine, NULL) ==
               dnnl_success;
#endif
}

/* ---- Memory --------------------------------------------------------------------------------------- */

static bool reorder(struct job *job, dnnl_memory_t from, desc_view from_desc, dnnl_memory_t to,
                    desc_view to_desc)
{
    dnnl_primitive_desc_t description = NULL;
    dnnl_primitive_t primitive = NULL;
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}};
    bool done = dnnl_reorder_primitive_desc_create(&description, from_desc, job->engine, to_desc,
                                                   job->engine, NULL) == dnnl_success &&
                dnnl_primitive_create(&primitive, description) == dnnl_success &&
                dnnl_primitive_execute(primitive, job->stream, 2, args) == dnnl_success;
    dnnl_primitive_destroy(primitive);
    dnnl_primitive_desc_destroy(description);
    return done;
}

static const dnnl_query_t desc_queries[OPERANDS] = {dnnl_query_src_md, dnnl_query_weights_md,
                                                    dnnl_query_weights_md, dnnl_query_dst_md};
static const int desc_indices[OPERANDS] = {0, 0, 1, 0};

static desc_view wanted_desc(const struct job *job, enum operand operand)
{
    return dnnl_primitive_desc_query_md(job->description, desc_queries[operand],
                                        desc_indices[operand]);
}

/* Wraps the caller's memory and, where the primitive wants another layout, makes memory of that. */
static bool bind(struct job *job, enum operand operand, const void *data)
{
    struct side *side = &job->sides[operand];
    desc_view wanted = wanted_desc(job, operand);
    if (!make_memory(&side->given, DESC(side->plain), job->engine, (void *)data))
        return false;
    if (dnnl_memory_desc_equal(DESC(side->plain), wanted)) {
        side->used = side->given;
        return true;
    }
    if (!make_memory(&side->used, wanted, job->engine, DNNL_MEMORY_ALLOCATE))
        return false;
    return operand == DST || reorder(job, side->given, DESC(side->plain), side->used, wanted);
}

static bool execute(struct job *job)
{
    const struct side *s = job->sides;
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, s[SRC].used},
                                    {DNNL_ARG_WEIGHTS, s[WEIGHTS].used},
                                    {DNNL_ARG_DST, s[DST].used},
                                    {DNNL_ARG_BIAS, s[BIAS].used}};
    if (dnnl_primitive_execute(job->primitive, job->stream, job->biased ? 4 : 3, args) !=
        dnnl_success)
        return false;
    if (s[DST].used != s[DST].given &&
        !reorder(job, s[DST].used, wanted_desc(job, DST), s[DST].given, DESC(s[DST].plain)))
        return false;
    return dnnl_stream_wait(job->stream) == dnnl_success;
}

static void job_close(struct job *job)
{
    for (int i = 0; i < OPERANDS; i++) {
        if (job->sides[i].used != job->sides[i].given)
            dnnl_memory_destroy(job->sides[i].used);
        dnnl_memory_destroy(job->sides[i].given);
    }
    dnnl_primitive_destroy(job->primitive);
    dnnl_primitive_desc_destroy(job->description);
    dnnl_stream_destroy(job->stream);
    dnnl_engine_destroy(job->engine);
}

static bool job_run(struct job *job, const struct conv *c)
{
    dnnl_memory_desc_t any[OPERANDS], plain[OPERANDS];
    memset(any, 0, sizeof any);
    memset(plain, 0, sizeof plain);
    bool done =
        dnnl_engine_create(&job->engine, dnnl_cpu, 0) == dnnl_success &&
        dnnl_stream_create(&job->stream, job->engine, dnnl_stream_default_flags) == dnnl_success &&
        describe_operands(c, true, any) && describe_operands(c, false, plain) &&
        create_description(job, c, any) &&
        dnnl_primitive_create(&job->primitive, job->description) == dnnl_success;
    for (int i = 0; i < OPERANDS; i++)
        job->sides[i].plain = plain[i];
    done = done && bind(job, SRC, c->x) && bind(job, WEIGHTS, c->w) &&
           (!job->biased || bind(job, BIAS, c->bias)) && bind(job, DST, c->y) && execute(job);
    for (int i = 0; i < OPERANDS; i++) {
        drop_desc(&any[i]);
        drop_desc(&plain[i]);
    }
    return done;
}

bool onednn_conv_f32(const struct conv *c, int threads)
{
    struct job job = {.biased = c->bias != NULL};
    if (c->rank < 1 || c->rank > CONV_MAX_RANK)
        return false;
    struct onednn_setting before = onednn_enter(threads);
    bool done = job_run(&job, c);
    job_close(&job);
    onednn_leave(before);
    return done;
}
