/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products of dequantized values that are quantized again are computed of the bytes:
 *
 *     QuantizeLinear(Conv(DequantizeLinear(x), DequantizeLinear(w), b))    ->  QLinearConv(x, w, b)
 *     QuantizeLinear(MatMul(DequantizeLinear(a), DequantizeLinear(b)))     ->  QLinearMatMul(a, b)
 *
 * A product with a constant matrix, Gemm's or MatMul's, is a convolution of an image of one row,
 * whose pixels are the rows and whose channels are the last axis: libraries keep its weights
 * packed, and take a bias. The matrix stays as the model has it, and is turned where it is packed.
 *
 * A Relu in between goes where the zero point is the type's lowest value, which saturates as well.
 * x and the result have one scale and zero point each, constant weights of a Conv perhaps one scale
 * for each channel, the matrix b one for each column. The bias is rounded to a multiple of the
 * product of the scales, which it was where the model's maker quantized it; where that would be
 * more than a BIAS_SHARE of a step of the result, the product stays.
 *
 * Only in sessions, where the CPU sums products of bytes exactly. Weights whose zero points differ
 * stay in float.
 *
 *   needs   constants where they are (fold_constants), but for weights
 *   keeps   results but for one step of the quantization, where the number was half-way between
 *           two, or nearer to that than the bias was rounded by
 *   breaks  DequantizeLinears may lose their uses (dead_code)
 */
#include <math.h>
#include <string.h>

#include "ir/weights_turned.h"
#include "passes/lower/quantized.h"

/* A value and what it is dequantized with. */
struct bytes {
    struct ir_value *value, *scale, *zero; /* zero NULL: 0 */
};

struct found {
    struct ir_op *quantize, *product;
    struct bytes x, w, y;
    bool flat;       /* a product with a constant matrix w */
    bool turned;     /* whose rows are columns of the result */
    int64_t in, out; /* its sizes */
};

/* ---- Finding --------------------------------------------------------------------------------- */

static bool is_of_bytes(const struct ir_value *value)
{
    return value && value->type->kind == TYPE_TENSOR && dtype_in(T_I8U8, value->type->dtype);
}

static const struct tensor *constant_of(const struct ir_value *value)
{
    return value ? ir_value_constant(value) : NULL;
}

/* Scales in float32, `n` of them or one. */
static bool has_scales(const struct bytes *bytes, int64_t n)
{
    const struct tensor *scale = constant_of(bytes->scale), *zero = constant_of(bytes->zero);
    if (!scale || scale->dtype != TSSA_FLOAT || (bytes->zero && !zero))
        return false;
    const size_t count = tensor_count(scale);
    return (count == 1 || count == (size_t)n) && scale->rank <= 1 &&
           (!zero || (zero->dtype == bytes->value->type->dtype && tensor_count(zero) == count));
}

/* What the op reads as operand `index`, dequantized for it from bytes to float32. */
static bool find_bytes(const struct ir_op *op, uint32_t index, struct bytes *bytes)
{
    const struct ir_value *value = ir_operand(op, index);
    const struct ir_op *from = value ? value->op : NULL;
    if (!from || !ir_op_is(from, IR_OP_DequantizeLinear) || value->type->dtype != TSSA_FLOAT ||
        ir_attr_int(from, "block_size", 0) != 0 || !is_of_bytes(ir_operand(from, 0)))
        return false;
    *bytes = (struct bytes){ir_operand(from, 0), ir_operand(from, 1), ir_operand(from, 2)};
    return true;
}

static int64_t zero_of(const struct tensor *zero, size_t i)
{
    return zero ? dtype_load_int64(zero->dtype, (const char *)zero->data + i) : 0;
}

/* Are the weights' zero points one number? */
static bool has_one_zero(const struct bytes *w)
{
    const struct tensor *zero = constant_of(w->zero);
    const size_t n = zero ? tensor_count(zero) : 1;
    bool one = true;
    for (size_t i = 1; i < n; i++)
        one &= zero_of(zero, i) == zero_of(zero, 0);
    return one;
}

static bool is_alone(const struct ir_op *op, const struct ir_op *user)
{
    const struct ir_use *use = op->results[0].uses;
    return op->n_results == 1 && use && !use->next && op->parent == user->parent;
}

/* The product whose result the op quantizes, through a Relu that saturation is as good as. */
static struct ir_op *find_product(const struct ir_op *quantize, const struct bytes *y)
{
    struct ir_op *op = ir_operand(quantize, 0)->op;
    const int64_t lowest = y->value->type->dtype == TSSA_INT8 ? INT8_MIN : 0;
    if (!op || !is_alone(op, quantize))
        return NULL;
    if (!ir_op_is(op, IR_OP_Relu) || zero_of(constant_of(y->zero), 0) != lowest)
        return op;
    struct ir_op *before = ir_operand(op, 0)->op;
    return before && is_alone(before, op) ? before : NULL;
}

static bool has_axis(const struct ir_op *product, int64_t wanted, int64_t rank)
{
    const int64_t axis = ir_attr_int(product->operands[1].value->op, "axis", 1);
    return axis == wanted || axis == wanted - rank;
}

static bool has_one_scale(const struct bytes *w)
{
    const struct tensor *scale = constant_of(w->scale);
    return scale && tensor_count(scale) == 1;
}

static bool takes_conv(const struct found *f)
{
    const struct tensor *w = constant_of(f->w.value),
                        *bias = constant_of(ir_operand(f->product, 2));
    const bool biased = ir_operand(f->product, 2) != NULL;
    return w && w->rank >= 3 && w->rank <= 5 && has_one_zero(&f->w) &&
           has_scales(&f->w, w->dims[0]) &&
           (has_one_scale(&f->w) || has_axis(f->product, 0, w->rank)) &&
           (!biased ||
            (bias && bias->dtype == TSSA_FLOAT && bias->rank == 1 && bias->dims[0] == w->dims[0]));
}

/* No bias, or one number for each column. */
static bool has_flat_bias(const struct found *f)
{
    const struct ir_value *value = ir_operand(f->product, 2);
    const struct tensor *bias = constant_of(value);
    return !value || (bias && bias->dtype == TSSA_FLOAT && bias->rank >= 1 &&
                      bias->dims[bias->rank - 1] == f->out && tensor_count(bias) == (size_t)f->out);
}

/* Can the result's dims be told by those that are known and one that is not? */
static bool has_told_dims(const struct ir_type *type)
{
    int unknown = 0;
    int64_t size;
    for (int i = 0; i + 1 < type->rank; i++)
        unknown += !dim_is_const(type->dims[i], &size) || size == 0;
    return type->rank >= 2 && unknown <= 1;
}

/* Are there as many as the matrix has, in every run? What is no product shall not become one. */
static bool has_terms(const struct ir_value *value, int64_t n)
{
    const struct ir_type *type = value->type;
    return type->rank >= 2 && dim_is(type->dims[type->rank - 1], n);
}

/* With a constant matrix. */
static bool takes_flat(struct found *f)
{
    const struct tensor *w = constant_of(f->w.value);
    const bool gemm = ir_op_is(f->product, IR_OP_Gemm);
    if (!w || w->rank != 2 ||
        (gemm &&
         (ir_attr_int(f->product, "transA", 0) != 0 || ir_attr_float(f->product, "alpha", 1) != 1 ||
          ir_attr_float(f->product, "beta", 1) != 1)))
        return false;
    f->turned = gemm && ir_attr_int(f->product, "transB", 0) != 0;
    f->out = w->dims[f->turned ? 0 : 1];
    f->in = w->dims[f->turned ? 1 : 0];
    return f->in > 0 && f->out > 0 && has_one_zero(&f->w) && has_scales(&f->w, f->out) &&
           (has_one_scale(&f->w) || has_axis(f->product, f->turned ? 0 : 1, 2)) &&
           has_flat_bias(f) && has_terms(f->x.value, f->in) && has_told_dims(f->y.value->type);
}

/* Columns are the last axis. */
static bool takes_matmul(const struct found *f)
{
    const struct ir_type *type = f->w.value->type;
    int64_t columns = 1;
    if (type->rank < 2 || f->x.value->type->rank < 2)
        return false;
    const bool known = dim_is_const(type->dims[type->rank - 1], &columns);
    return has_one_scale(&f->w) ? has_scales(&f->w, 1)
                                : known && type->rank == 2 && has_axis(f->product, 1, 2) &&
                                      has_one_zero(&f->w) && has_scales(&f->w, columns);
}

/* Is the quotient rounded to fewer bits than float32 has, before it is to an integer? */
static bool rounds_before(const struct ir_op *quantize)
{
    const int64_t precision = ir_attr_int(quantize, "precision", TSSA_UNDEFINED);
    return precision != TSSA_UNDEFINED && precision != TSSA_FLOAT;
}

static bool find(struct ir_op *quantize, struct found *f)
{
    *f = (struct found){
        .quantize = quantize,
        .y = {&quantize->results[0], ir_operand(quantize, 1), ir_operand(quantize, 2)}};
    if (!is_of_bytes(f->y.value) || !has_scales(&f->y, 1) || rounds_before(quantize))
        return false;
    f->product = find_product(quantize, &f->y);
    if (!f->product || !find_bytes(f->product, 0, &f->x) || !find_bytes(f->product, 1, &f->w) ||
        !has_scales(&f->x, 1))
        return false;
    if (ir_op_is(f->product, IR_OP_Conv))
        return takes_conv(f);
    if (ir_op_is(f->product, IR_OP_MatMul) || ir_op_is(f->product, IR_OP_Gemm))
        f->flat = takes_flat(f);
    return f->flat || (ir_op_is(f->product, IR_OP_MatMul) && takes_matmul(f));
}

/* ---- Making ---------------------------------------------------------------------------------- */

static struct tensor *new_tensor(struct ir_graph *graph, tssa_dtype dtype, int rank, int64_t n)
{
    const size_t bytes = (size_t)n * tssa_dtype_size(dtype);
    struct tensor *tensor = ARENA_NEW(&graph->arena, struct tensor);
    void *data = arena_alloc_aligned(&graph->arena, bytes + 1, TENSOR_ALIGNMENT);
    if (!tensor || !data)
        return NULL;
    *tensor = (struct tensor){.dtype = dtype, .rank = rank, .dims = {n}, .data = data};
    memset(data, 0, bytes);
    return tensor;
}

static tssa_status *insert_constant(struct ir_graph *graph, struct tensor *tensor,
                                    struct ir_op *before, struct ir_value **value)
{
    TRY_ALLOC(tensor);
    struct ir_op *constant = ir_constant_create(graph, tensor);
    TRY(pass_insert(constant, before));
    *value = &constant->results[0];
    return NULL;
}

/* The zero point, which these ops must be given. */
static tssa_status *make_zero(struct ir_graph *graph, const struct found *f,
                              const struct bytes *bytes, struct ir_value **zero)
{
    *zero = bytes->zero;
    if (*zero)
        return NULL;
    struct tensor *none = new_tensor(graph, bytes->value->type->dtype, 0, 1);
    return insert_constant(graph, none, f->quantize, zero);
}

static float scale_of(const struct bytes *bytes, int64_t i)
{
    const struct tensor *scale = constant_of(bytes->scale);
    return ((const float *)scale->data)[tensor_count(scale) == 1 ? 0 : i];
}

#define BIAS_SHARE (1.0 / 16)

/* In units of what sums are multiples of; NULL: one is too large for INT32, or lies too far from a
 * multiple. */
static tssa_status *make_bias(struct ir_graph *graph, const struct found *f,
                              const struct tensor *bias, struct tensor **made)
{
    const int64_t n = (int64_t)tensor_count(bias);
    *made = new_tensor(graph, TSSA_INT32, 1, n);
    TRY_ALLOC(*made);
    for (int64_t i = 0; i < n; i++) {
        const double unit = (double)scale_of(&f->x, 0) * (double)scale_of(&f->w, i),
                     exact = (double)((const float *)bias->data)[i] / unit, steps = rint(exact),
                     off = fabs(exact - steps) * unit / (double)scale_of(&f->y, 0);
        if (!(steps > INT32_MIN && steps < INT32_MAX && off <= BIAS_SHARE)) {
            *made = NULL;
            return NULL;
        }
        ((int32_t *)(*made)->data)[i] = (int32_t)steps;
    }
    return NULL;
}

/* Operands in the order of both ops; `bias` NULL: none. */
static tssa_status *make(struct pass_context *pass, const struct found *f, enum ir_op_id id,
                         struct ir_value *bias, struct ir_op **made)
{
    struct ir_op *op = ir_op_create(pass->graph, ir_op_info(id), bias ? 9 : 8, 1);
    TRY_ALLOC(op);
    op->version = ir_op_bind(op->info, IR_NEWEST_OPSET);
    const struct bytes *operands[] = {&f->x, &f->w, &f->y};
    for (uint32_t i = 0; i < 3; i++) {
        struct ir_value *zero;
        TRY(make_zero(pass->graph, f, operands[i], &zero));
        uint32_t at = 3 * i;
        if (i < 2)
            ir_op_set_operand(op, at++, operands[i]->value);
        ir_op_set_operand(op, at, operands[i]->scale);
        ir_op_set_operand(op, at + 1, zero);
    }
    if (bias)
        ir_op_set_operand(op, 8, bias);
    *made = op;
    return NULL;
}

static tssa_status *make_reshape(struct ir_graph *graph, const struct found *f,
                                 struct ir_value *value, int rank, const int64_t *dims,
                                 struct ir_op **made)
{
    struct ir_op *shape = ir_constant_ints(graph, 1, (size_t)rank, dims);
    TRY(pass_insert(shape, f->quantize));
    *made = ir_op_create(graph, ir_op_info(IR_OP_Reshape), 2, 1);
    TRY_ALLOC(*made);
    (*made)->version = ir_op_bind((*made)->info, IR_NEWEST_OPSET);
    ir_op_set_operand(*made, 0, value);
    ir_op_set_operand(*made, 1, &shape->results[0]);
    return NULL;
}

/* The matrix as weights of a convolution: [out][in][1][1], or as it lies [in][out][1][1]. */
static tssa_status *make_weights(struct ir_graph *graph, const struct found *f,
                                 struct ir_value **value)
{
    struct tensor *w = ARENA_NEW(&graph->arena, struct tensor);
    TRY_ALLOC(w);
    *w = *constant_of(f->w.value);
    w->rank = 4;
    w->dims[2] = w->dims[3] = 1;
    return insert_constant(graph, w, f->quantize, value);
}

static tssa_status *set_flag(struct ir_graph *graph, struct ir_op *op, const char *name)
{
    const struct ir_attr attr = {
        .name = intern_str(&graph->strings, name), .kind = IR_ATTR_INT, .i = 1};
    return attr.name && ir_op_set_attr(graph, op, &attr) ? NULL : status_out_of_memory();
}

/* The dims of the result, one of which may be told by the others. */
static void told_dims(const struct ir_type *type, int64_t *dims)
{
    for (int i = 0; i < type->rank; i++)
        if (!dim_is_const(type->dims[i], &dims[i]) || dims[i] == 0)
            dims[i] = -1;
}

static tssa_status *make_flat(struct pass_context *pass, const struct found *f,
                              struct ir_value *bias)
{
    struct ir_graph *graph = pass->graph;
    const struct ir_type *type = f->y.value->type;
    const int64_t image[] = {1, 1, -1, f->in};
    struct found flat = *f;
    struct ir_op *reshape, *op;
    int64_t dims[TSSA_MAX_RANK];
    told_dims(type, dims);
    TRY(make_reshape(graph, f, f->x.value, 4, image, &reshape));
    TRY(pass_insert(reshape, f->quantize));
    flat.x.value = &reshape->results[0];
    TRY(make_weights(graph, f, &flat.w.value));
    TRY(make(pass, &flat, IR_OP_QLinearConv, bias, &op));
    TRY(set_flag(graph, op, IR_CHANNELS_LAST));
    if (!f->turned)
        TRY(set_flag(graph, op, IR_WEIGHTS_TURNED));
    TRY(pass_insert(op, f->quantize));
    TRY(make_reshape(graph, f, &op->results[0], type->rank, dims, &reshape));
    return pass_replace(pass, f->quantize, reshape);
}

static tssa_status *make_same(struct pass_context *pass, const struct found *f,
                              struct ir_value *bias)
{
    const bool conv = ir_op_is(f->product, IR_OP_Conv);
    struct ir_op *op;
    TRY(make(pass, f, conv ? IR_OP_QLinearConv : IR_OP_QLinearMatMul, bias, &op));
    if (!ir_op_copy_attrs(pass->graph, op, f->product))
        return status_out_of_memory();
    return pass_replace(pass, f->quantize, op);
}

static tssa_status *rewrite(struct pass_context *pass, const struct found *f)
{
    const struct tensor *bias = constant_of(ir_operand(f->product, 2));
    struct tensor *steps = NULL;
    struct ir_value *value = NULL;
    if (bias) {
        TRY(make_bias(pass->graph, f, bias, &steps));
        if (!steps)
            return pass_remark(pass, TSSA_REMARK_MISSED, f->product,
                               "does not multiply bytes: its bias is no multiple of what sums are");
        TRY(insert_constant(pass->graph, steps, f->quantize, &value));
    }
    TRY(pass_remark(pass, TSSA_REMARK_APPLIED, f->product, "multiplies bytes"));
    return f->flat ? make_flat(pass, f, value) : make_same(pass, f, value);
}

/* ---- The pass -------------------------------------------------------------------------------- */

static tssa_status *visit(void *context, struct ir_op *op)
{
    struct pass_context *pass = context;
    struct found f;
    if (!ir_op_is(op, IR_OP_QuantizeLinear) || !find(op, &f))
        return NULL;
    return rewrite(pass, &f);
}

tssa_status *pass_multiply_bytes(struct pass_context *pass)
{
    if (!pass_is_for_session(pass))
        return NULL;
    return ir_block_walk(pass->graph->body, visit, pass);
}
