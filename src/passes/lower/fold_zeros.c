/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the zero point of an image takes from each sum of a convolution of bytes is in its bias:
 *
 *     QLinearConv(x, x_zero, w, bias)   ->   QLinearConv(x, 0, w, bias - x_zero * sum(w))
 *
 * where nothing is padded, since x_zero is what pads are. Sums are integers, and the same. oneDNN 2
 * has its fast convolutions by tiles of bytes for images without a zero point alone: of 24 channels
 * to 144 in 56 x 56 in half the time.
 *
 *   needs   multiply_bytes; only in sessions
 *   keeps   results' bits
 *   breaks  constants may lose their uses (dead_code)
 */
#include <string.h>

#include "base/alloc.h"
#include "ir/rebuild.h"
#include "ir/weights_turned.h"
#include "passes/pass.h"

enum operand { X_ZERO = 2, W = 3, W_ZERO = 5, BIAS = 8 };

struct folding {
    struct ir_op *op;
    const struct tensor *w, *w_zeros, *bias; /* w_zeros of one element or of one per channel; bias
                                                NULL: none */
    bool turned;                             /* w is [in][out][1][1], not [out][rest] */
    int64_t channels, rest, zero;
};

static const struct tensor *constant_of(const struct ir_op *op, enum operand operand)
{
    const struct ir_value *value = ir_operand(op, operand);
    return value ? ir_value_constant(value) : NULL;
}

/* ---- Finding --------------------------------------------------------------------------------- */

static bool pads_nothing(const struct ir_op *op)
{
    const char *how = ir_attr_str(op, "auto_pad", "NOTSET");
    size_t n;
    const int64_t *pads = ir_attr_ints(op, "pads", &n);
    for (size_t i = 0; pads && i < n; i++)
        if (pads[i] != 0)
            return false;
    return strcmp(how, "NOTSET") == 0 || strcmp(how, "VALID") == 0;
}

static bool read_zero(struct folding *f)
{
    const struct tensor *zero = constant_of(f->op, X_ZERO);
    if (!zero || tensor_count(zero) != 1 || !dtype_in(T_I8U8, zero->dtype))
        return false;
    f->zero = dtype_load_int64(zero->dtype, zero->data);
    return f->zero != 0;
}

static bool read_weights(struct folding *f)
{
    f->w = constant_of(f->op, W);
    f->w_zeros = constant_of(f->op, W_ZERO);
    f->bias = constant_of(f->op, BIAS);
    f->turned = ir_attr_int(f->op, IR_WEIGHTS_TURNED, 0) != 0;
    if (!f->w || f->w->rank < 3 || !dtype_in(T_I8U8, f->w->dtype) || tensor_count(f->w) == 0)
        return false;
    f->channels = f->w->dims[f->turned];
    f->rest = (int64_t)tensor_count(f->w) / f->channels;
    const int64_t zeros = f->w_zeros ? (int64_t)tensor_count(f->w_zeros) : 0;
    if ((zeros != 1 && zeros != f->channels) || f->w_zeros->dtype != f->w->dtype)
        return false;
    return f->bias ? f->bias->dtype == TSSA_INT32 && f->bias->rank == 1 &&
                         f->bias->dims[0] == f->channels
                   : !ir_operand(f->op, BIAS);
}

/* ---- Sums ------------------------------------------------------------------------------------ */

/* Of the weights of each channel, `step` apart from channel to channel. */
#define ADD_WEIGHTS(name, T)                                                                       \
    static void name(const struct folding *f, int64_t *sums)                                       \
    {                                                                                              \
        const T *w = f->w->data;                                                                   \
        if (f->turned)                                                                             \
            for (int64_t i = 0; i < f->rest; i++, w += f->channels)                                \
                for (int64_t c = 0; c < f->channels; c++)                                          \
                    sums[c] += w[c];                                                               \
        else                                                                                       \
            for (int64_t c = 0; c < f->channels; c++, w += f->rest)                                \
                for (int64_t i = 0; i < f->rest; i++)                                              \
                    sums[c] += w[i];                                                               \
    }

ADD_WEIGHTS(add_signed, int8_t)
ADD_WEIGHTS(add_unsigned, uint8_t)

/* The bias of each channel; false: it is no INT32. */
static bool find_biases(const struct folding *f, const int64_t *sums, int32_t *biases)
{
    const bool each = tensor_count(f->w_zeros) > 1;
    for (int64_t c = 0; c < f->channels; c++) {
        const char *w_zero = (const char *)f->w_zeros->data + (each ? c : 0);
        const int64_t sum = sums[c] - f->rest * dtype_load_int64(f->w->dtype, w_zero);
        const int64_t bias = (f->bias ? ((const int32_t *)f->bias->data)[c] : 0) - f->zero * sum;
        if (bias < INT32_MIN || bias > INT32_MAX)
            return false;
        biases[c] = (int32_t)bias;
    }
    return true;
}

/* ---- Folding --------------------------------------------------------------------------------- */

static tssa_status *set_constant(struct folding *f, enum operand operand, tssa_dtype dtype,
                                 int rank, const int64_t *dims, const void *data)
{
    struct ir_graph *graph = f->op->parent->graph;
    struct tensor *tensor = ARENA_NEW(&graph->arena, struct tensor);
    TRY_ALLOC(tensor);
    *tensor = (struct tensor){.dtype = dtype, .rank = rank, .data = (void *)data};
    if (rank)
        tensor->dims[0] = dims[0];
    struct ir_op *constant = ir_constant_create(graph, tensor);
    TRY(pass_insert(constant, f->op));
    if (operand < f->op->n_operands) {
        ir_op_set_operand(f->op, operand, &constant->results[0]);
        return NULL;
    }
    return ir_op_add_operand(f->op, &constant->results[0]) ? NULL : status_out_of_memory();
}

static tssa_status *fold(struct pass_context *pass, struct folding *f, const int64_t *sums)
{
    static _Alignas(TENSOR_ALIGNMENT) const char none[TENSOR_ALIGNMENT] = {0};
    struct ir_graph *graph = pass->graph;
    int32_t *biases =
        arena_alloc_aligned(&graph->arena, (size_t)f->channels * sizeof *biases, TENSOR_ALIGNMENT);
    TRY_ALLOC(biases);
    if (!find_biases(f, sums, biases))
        return NULL;
    TRY(set_constant(f, X_ZERO, constant_of(f->op, X_ZERO)->dtype, 0, NULL, none));
    TRY(set_constant(f, BIAS, TSSA_INT32, 1, &f->channels, biases));
    pass->changed = true;
    return pass_remark(pass, TSSA_REMARK_APPLIED, f->op,
                       "has the zero point of its input in its bias");
}

static tssa_status *visit(void *context, struct ir_op *op)
{
    struct pass_context *pass = context;
    struct folding f = {.op = op};
    if (!ir_op_is(op, IR_OP_QLinearConv) || op->opaque || !read_zero(&f) || !read_weights(&f) ||
        !pads_nothing(op))
        return NULL;
    int64_t *sums = allocator_calloc(pass->graph->allocator, (size_t)f.channels, sizeof *sums);
    TRY_ALLOC(sums);
    (f.w->dtype == TSSA_INT8 ? add_signed : add_unsigned)(&f, sums);
    tssa_status *status = fold(pass, &f, sums);
    allocator_free(pass->graph->allocator, sums);
    return status;
}

tssa_status *pass_fold_zeros(struct pass_context *pass)
{
    struct ir_block *body = pass->graph->body;
    if (!pass_is_for_session(pass) || !ir_block_has(body, IR_OP_QLinearConv))
        return NULL;
    return ir_block_walk(body, visit, pass);
}
