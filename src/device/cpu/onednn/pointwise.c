/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cpu/onednn/pointwise.h"

#include <stdlib.h>
#include <string.h>

#include "device/cpu/onednn/conv_attrs.h"
#include "device/cpu/onednn/flush.h"

static bool make_product(struct pointwise *p, const struct onednn_engine *engine,
                         const struct conv_problem *c, dnnl_primitive_attr_t attr)
{
    static const dnnl_data_type_t types[OPERANDS] = {dnnl_f32, dnnl_f32, dnnl_f32, dnnl_f32};
    static const struct conv_layouts last = {LAST, LAST};
    dnnl_memory_desc_t descs[OPERANDS];
    dnnl_primitive_desc_t desc = NULL;
    memset(descs, 0, sizeof descs);
    if (conv_describe(c, types, &last, true, descs))
        desc = conv_create_desc(engine, c, dnnl_convolution_direct, descs, attr);
    conv_drop_descs(descs);
    if (desc && strncmp(conv_name(desc), "jit", 3) == 0)
        return conv_unit_make(&p->product, engine, false, desc);
    dnnl_primitive_desc_destroy(desc);
    return false;
}

/* A reorder runs on as many threads as there were when it was made. */
static bool make_packing(struct pointwise *p, const struct onednn_engine *engine, int threads,
                         const struct conv_problem *c, bool turned, dnnl_primitive_attr_t attr)
{
    const dnnl_dims_t dims = {c->out_channels, c->in_channels, 1, 1};
    desc_view used = DESC(p->product.used[WEIGHTS]);
    p->packed_bytes = dnnl_memory_desc_get_size(used);
    p->packing_threads = onednn_packing_threads(p->packed_bytes, threads);
    struct onednn_setting before = onednn_enter(p->packing_threads);
    const bool made = desc_make(&p->plain, 4, dims, dnnl_f32, turned ? dnnl_bacd : dnnl_abcd) &&
                      onednn_unit_reorder(&p->packing, engine, DESC(p->plain), used, attr);
    onednn_leave(before);
    return made && p->packing.primitive;
}

bool pointwise_make(struct pointwise *p, const struct onednn_engine *engine, int threads,
                    int64_t rows, int64_t in, int64_t out, bool turned)
{
    const struct conv_problem c = {.rank = 2,
                                   .batch = 1,
                                   .groups = 1,
                                   .in_channels = in,
                                   .out_channels = out,
                                   .in = {1, rows},
                                   .out = {1, rows},
                                   .kernel = {1, 1},
                                   .stride = {1, 1},
                                   .dilation = {1, 1}};
    struct onednn_attrs attrs = {NULL, NULL};
    struct onednn_setting before = onednn_enter(threads);
    const bool made = onednn_conv_attrs(&c, &attrs) && make_product(p, engine, &c, attrs.conv) &&
                      make_packing(p, engine, threads, &c, turned, attrs.reorder);
    onednn_leave(before);
    dnnl_primitive_attr_destroy(attrs.conv);
    dnnl_primitive_attr_destroy(attrs.reorder);
    return made;
}

void pointwise_drop(struct pointwise *p)
{
    conv_unit_drop(&p->product);
    onednn_unit_drop(&p->packing);
    desc_drop(&p->plain);
}

bool pointwise_pack(const struct pointwise *p, const void *weights, void *packed, void *scratch)
{
    struct onednn_setting before = onednn_enter(p->packing_threads);
    const bool done = onednn_reorder(&p->packing, p->product.engine, DESC(p->plain), weights,
                                     DESC(p->product.used[WEIGHTS]), packed, scratch);
    onednn_leave(before);
    return done;
}

bool pointwise_run(struct pointwise *p, const float *x, const void *packed, float *y, void *scratch)
{
    const struct conv_places places = {
        .at = {[SRC] = (void *)x, [WEIGHTS] = (void *)packed, [DST] = y}, .scratch = scratch};
    return conv_unit_run(&p->product, &places);
}

/* ---- Products of matrices -------------------------------------------------------------------- */

/* Fewer rows or multiplications are not worth a primitive of their own. */
#define MIN_ROWS 8
#define MIN_WORK (INT64_C(1) << 22)

struct product {
    struct library_primitive base;
    struct pointwise pointwise;
    int threads;
};

static bool run(const struct library_primitive *base, struct device_stream *stream,
                const struct library_call *call)
{
    struct product *p = (struct product *)(void *)base; /* but for what is kept, unchanged */
    struct onednn_setting before = onednn_enter(p->threads);
    struct flush_setting modes;
    (void)stream;
    flush_enter(&modes, p->threads);
    const bool done = pointwise_run(&p->pointwise, device_place_at(call->operands[0]),
                                    device_place_at(call->operands[1]),
                                    device_place_at(call->result), device_place_at(call->scratch));
    flush_leave(&modes);
    onednn_leave(before);
    return done;
}

static bool pack(const struct library_primitive *base, const void *weights, void *packed,
                 void *scratch)
{
    const struct product *p = (const struct product *)(const void *)base;
    return pointwise_pack(&p->pointwise, weights, packed, scratch);
}

static bool same_packing(const struct library_primitive *a, const struct library_primitive *b)
{
    const struct pointwise *p = &((const struct product *)(const void *)a)->pointwise,
                           *q = &((const struct product *)(const void *)b)->pointwise;
    return conv_unit_same_packing(&p->product, &q->product) &&
           dnnl_memory_desc_equal(DESC(p->plain), DESC(q->plain));
}

static void release(struct library_primitive *base)
{
    struct product *p = (struct product *)(void *)base;
    pointwise_drop(&p->pointwise);
    free(p);
}

/* Dense matrices, of which B may be read transposed. */
static bool is_worth_it(const struct library_problem *problem)
{
    const struct matmul_problem *m = &problem->matmul;
    const bool plain = m->b_column == 1 && m->b_row == m->n,
               transposed = m->b_row == 1 && m->b_column == m->k;
    return problem->dtype == TSSA_FLOAT && m->batch == 1 && m->b_constant &&
           (plain || transposed) && m->a_column == 1 && m->a_row == m->k && m->m >= MIN_ROWS &&
           m->k % POINTWISE_BLOCK == 0 && m->n % POINTWISE_BLOCK == 0 && m->k > 0 && m->n > 0 &&
           m->m >= MIN_WORK / (m->k * m->n) && onednn_has_isa(dnnl_cpu_isa_avx2) &&
           !onednn_has_isa(dnnl_cpu_isa_avx512_core);
}

struct library_primitive *pointwise_make_matmul(struct cpu_engine *engine,
                                                const struct library_problem *problem)
{
    static const struct primitive_table table = {
        .same_packing = same_packing, .pack = pack, .run = run, .release = release};
    const struct matmul_problem *m = &problem->matmul;
    struct product *p = is_worth_it(problem) ? calloc(1, sizeof *p) : NULL;
    if (!p)
        return NULL;
    p->base.table = &table;
    p->base.name = "pointwise";
    p->threads = (int)problem->threads;
    if (pointwise_make(&p->pointwise, (const struct onednn_engine *)engine, p->threads, m->m, m->k,
                       m->n, m->b_column == 1)) {
        p->base.packed_bytes = p->pointwise.packed_bytes;
        p->base.scratch_bytes = onednn_aligned(p->pointwise.product.unit.scratch_bytes);
        p->base.pack_scratch_bytes = p->pointwise.packing.scratch_bytes;
        return &p->base;
    }
    release(&p->base);
    return NULL;
}
