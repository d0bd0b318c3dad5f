/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cpu/onednn/conv_desc.h"

#define SPACE (CONV_MAX_RANK + 3) /* groups, out, in, spatial */

/* Of images, by rank: batch, channels, two or three spatial axes. */
static const dnnl_format_tag_t tags[LAYOUTS][SPACE] = {
    [PLAIN] = {[4] = dnnl_abcd, [5] = dnnl_abcde},
    [BLOCKS_16] = {[4] = dnnl_aBcd16b, [5] = dnnl_aBcde16b},
    [BLOCKS_8] = {[4] = dnnl_aBcd8b, [5] = dnnl_aBcde8b},
    [ANY] = {[4] = dnnl_format_tag_any, [5] = dnnl_format_tag_any},
    [LAST] = {[4] = dnnl_acdb, [5] = dnnl_acdeb},
};

int64_t conv_block_of(enum conv_layout layout)
{
    return layout == BLOCKS_16 ? 16 : layout == BLOCKS_8 ? 8 : 1;
}

int conv_spatial_rank(const struct conv_problem *c)
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
                       dnnl_data_type_t type, enum conv_layout layout, dnnl_memory_desc_t *desc)
{
    dnnl_dims_t dims = {c->batch, channels};
    int n = conv_spatial_rank(c) + 2;
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
    n += conv_spatial_rank(c);
    return desc_make(desc, n, dims, type, any ? dnnl_format_tag_any : plain[n]);
}

bool conv_describe(const struct conv_problem *c, const dnnl_data_type_t *types,
                   const struct conv_layouts *layouts, bool any_weights, dnnl_memory_desc_t *descs)
{
    const dnnl_dims_t channels = {c->out_channels};
    return image_desc(c, c->in_channels, c->in, types[SRC], layouts->src, &descs[SRC]) &&
           weights_desc(c, types[WEIGHTS], any_weights, &descs[WEIGHTS]) &&
           desc_make(&descs[BIAS], 1, channels, types[BIAS], dnnl_a) &&
           image_desc(c, c->out_channels, c->out, types[DST], layouts->dst, &descs[DST]);
}

void conv_drop_descs(dnnl_memory_desc_t *descs)
{
    for (int i = 0; i < OPERANDS; i++)
        desc_drop(&descs[i]);
}

dnnl_primitive_desc_t conv_create_desc(const struct onednn_engine *engine,
                                       const struct conv_problem *c, dnnl_alg_kind_t algorithm,
                                       const dnnl_memory_desc_t *descs, dnnl_primitive_attr_t attr)
{
    dnnl_primitive_desc_t made = NULL;
    dnnl_dims_t strides, dilations, begin, end;
    spatial(c, c->stride, 1, strides);
    spatial(c, c->dilation, 1, dilations);
    spatial(c, c->pad_begin, 0, begin);
    spatial(c, c->pad_end, 0, end);
    for (int i = 0; i < conv_spatial_rank(c); i++)
        dilations[i]--;
#if DNNL_VERSION_MAJOR >= 3
    dnnl_convolution_forward_primitive_desc_create(
        &made, engine->engine, dnnl_forward_inference, algorithm, descs[SRC], descs[WEIGHTS],
        c->biased ? descs[BIAS] : NULL, descs[DST], strides, dilations, begin, end, attr);
#else
    dnnl_convolution_desc_t desc;
    if (dnnl_dilated_convolution_forward_desc_init(&desc, dnnl_forward_inference, algorithm,
                                                   &descs[SRC], &descs[WEIGHTS],
                                                   c->biased ? &descs[BIAS] : NULL, &descs[DST],
                                                   strides, dilations, begin, end) == dnnl_success)
        dnnl_primitive_desc_create(&made, &desc, attr, engine->engine, NULL);
#endif
    return made;
}

const char *conv_name(dnnl_primitive_desc_t desc)
{
    const char *name = "";
    dnnl_primitive_desc_query(desc, dnnl_query_impl_info_str, 0, (void *)&name);
    return name;
}
