/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products of matrices, MatMul and Gemm, in a grid: a part in which each element of a result has a
 * row of terms, over which it sums what the products are made of there; see grid_maker.h.
 */
#include <string.h>

#include "gir/grid_maker.h"
#include "gir/rows.h"
#include "ir/row.h"

/* A row is read once for each element that needs it: of more multiplications, others are faster
 * that keep a tile of both operands; and of more elements and rows. */
#define MOST_MULTIPLICATIONS (INT64_C(1) << 22)
#define FEW_ROWS 8
#define FEW_ELEMENTS 16384
/* The same where an operand is computed for each of them. */
#define MOST_COMPUTED (INT64_C(1) << 18)
/* So many times the multiplications that the products themselves have. */
#define MOST_WORK 2

bool grid_multiplies(const struct ir_op *op)
{
    return !op->opaque && (ir_op_is(op, IR_OP_MatMul) || ir_op_is(op, IR_OP_Gemm));
}

/* ---- Sizes ----------------------------------------------------------------------------------- */

static bool is_matrix(const struct ir_value *value)
{
    return value && value->type->kind == TYPE_TENSOR && value->type->rank >= 2;
}

/* Is operand a or b of a Gemm turned? */
static bool is_turned(const struct ir_op *op, uint32_t operand)
{
    return ir_op_is(op, IR_OP_Gemm) && ir_attr_int(op, operand ? "transB" : "transA", 0) != 0;
}

/* The axis of the operand along which terms are. */
static int axis_of_terms(const struct ir_op *op, uint32_t operand)
{
    const int rank = ir_operand(op, operand)->type->rank;
    return is_turned(op, operand) == (operand == 0) ? rank - 2 : rank - 1;
}

static const struct dim *terms_of(const struct ir_op *op)
{
    return ir_operand(op, 0)->type->dims[axis_of_terms(op, 0)];
}

/* Of all elements; false: nobody knows how many, or too many to say. */
static bool count_multiplications(const struct ir_op *op, int64_t *multiplications)
{
    const struct ir_type *type = op->results[0].type;
    int64_t elements, terms;
    return grid_known_count(type->dims, type->rank, &elements) &&
           dim_is_const(terms_of(op), &terms) &&
           !__builtin_mul_overflow(elements, terms, multiplications);
}

/* Are they few enough? */
static bool is_small(const struct ir_op *op)
{
    const struct ir_type *type = op->results[0].type;
    int64_t elements, m, n, multiplications;
    if (!count_multiplications(op, &multiplications) ||
        !grid_known_count(type->dims, type->rank, &elements) ||
        !dim_is_const(type->dims[type->rank - 2], &m) ||
        !dim_is_const(type->dims[type->rank - 1], &n))
        return false;
    const int64_t few = m < n ? m : n;
    return few <= 1 || (multiplications <= MOST_MULTIPLICATIONS &&
                        (few <= FEW_ROWS || elements <= FEW_ELEMENTS));
}

const char *grid_product_refuses(const struct ir_op *op)
{
    const struct ir_type *type = op->results[0].type;
    if (!is_matrix(ir_operand(op, 0)) || !is_matrix(ir_operand(op, 1)) ||
        type->kind != TYPE_TENSOR || type->rank < 2 || type->rank == TSSA_MAX_RANK)
        return "it is no product of matrices";
    if (!dtype_in(T_F32F64, type->dtype))
        return "kernels have no products of such elements";
    return is_small(op) ? NULL : "the product is large, or nobody knows how large";
}

const struct dim *grid_terms(struct grid_maker *m, const bool *needed, uint32_t first)
{
    const struct dim *terms = NULL;
    for (const struct ir_op *op = m->body->first; op; op = op->next) {
        if (!grid_multiplies(op) || !needed[op->results[0].id - first])
            continue;
        const struct dim *own = is_matrix(ir_operand(op, 0)) ? terms_of(op) : NULL;
        if (!own)
            return NULL;
        terms = terms ? dim_max(&m->body->graph->dims, terms, own) : own;
    }
    return terms;
}

/* ---- Steps ----------------------------------------------------------------------------------- */

/* Of an element of the result, where in the operand its terms are. */
static bool find_terms(struct grid_maker *m, const struct ir_op *op, uint32_t operand,
                       const struct grid_place *place, struct grid_place *at)
{
    const struct ir_type *type = ir_operand(op, operand)->type;
    const int terms = axis_of_terms(op, operand);
    *at = *place;
    grid_claim(m, ir_operand(op, operand)->type->dims[terms], terms_of(op), GIR_SAME);
    at->rank = place->rank - 2;
    if (!grid_broadcast(m, op->results[0].type->dims, type->rank - 2, type->dims, at))
        return false;
    at->rank = type->rank;
    at->at[terms] = m->term;
    at->at[2 * type->rank - 3 - terms] = place->at[place->rank - (operand == 0 ? 2 : 1)];
    return true;
}

/* What the operand has there, in the type of sums. */
static uint32_t factor(struct grid_maker *m, const struct ir_op *op, uint32_t operand,
                       const struct grid_place *place)
{
    struct grid_place at;
    if (!find_terms(m, op, operand, place, &at))
        return 0;
    m->in_term = true;
    const uint32_t step = grid_evaluate(m, ir_operand(op, operand), &at);
    m->in_term = false;
    return step;
}

/* Is the operand more than what is read? */
static bool is_computed(const struct grid_maker *m, const struct ir_op *op, uint32_t operand)
{
    const struct ir_value *value = ir_operand(op, operand);
    while (value->op && ir_op_is(value->op, IR_OP_access))
        value = ir_operand(value->op, 0);
    return value->op && !ir_op_is(value->op, IR_OP_Constant) && !grid_cut_of(m, value);
}

/* Is it, and that too often? */
static bool computes_too_much(const struct grid_maker *m, const struct ir_op *op)
{
    int64_t multiplications;
    return (is_computed(m, op, 0) || is_computed(m, op, 1)) &&
           (!count_multiplications(op, &multiplications) || multiplications > MOST_COMPUTED);
}

static uint32_t times(struct grid_maker *m, tssa_dtype type, uint32_t step, float by)
{
    if (by == 1)
        return step;
    const uint32_t number = gir_make_number(&m->maker, type, (double)by);
    return gir_make_scalar(&m->maker, SCALAR_MUL, type, (uint32_t[]){step, number});
}

/* What Gemm makes of a sum. */
static uint32_t finish(struct grid_maker *m, const struct ir_op *op, uint32_t sum,
                       const struct grid_place *place)
{
    const struct ir_value *c = ir_operand(op, 2);
    const struct ir_type *type = op->results[0].type;
    struct grid_place at = *place;
    sum = times(m, type->dtype, sum, ir_attr_float(op, "alpha", 1));
    if (!c)
        return sum;
    if (c->type->kind != TYPE_TENSOR || c->type->rank < 0)
        return grid_refuse(m, "the shape of what it reads is not known");
    if (!grid_broadcast(m, type->dims, c->type->rank, c->type->dims, &at))
        return 0;
    const uint32_t more =
        times(m, type->dtype, grid_evaluate(m, c, &at), ir_attr_float(op, "beta", 1));
    return gir_make_scalar(&m->maker, SCALAR_ADD, type->dtype, (uint32_t[]){sum, more});
}

/* One for each element of the part. */
static bool add_sums(struct grid_maker *m)
{
    int64_t elements;
    if (!grid_known_count(m->part->dims, m->part->rank - 1, &elements))
        return grid_refuse(m, "nobody knows how often the product would be computed");
    m->sums += elements;
    return true;
}

/* Do terms of the second operand lie side by side? Else elements of the result do. */
static bool terms_lie_together(const struct ir_op *op)
{
    const struct ir_type *type = ir_operand(op, 1)->type;
    return axis_of_terms(op, 1) == type->rank - 1 || dim_is(type->dims[type->rank - 1], 1);
}

uint32_t grid_multiply(struct grid_maker *m, const struct ir_op *op, const struct grid_place *place)
{
    const tssa_dtype type = op->results[0].type->dtype;
    const char *why = grid_product_refuses(op);
    if (why || !m->part->sums || m->in_term)
        return grid_refuse(m, why ? why : "a product is needed for each term of another");
    if (computes_too_much(m, op))
        return grid_refuse(m, "operands of products would be computed again and again");
    m->across |= !terms_lie_together(op);
    const uint32_t a = factor(m, op, 0, place), b = factor(m, op, 1, place);
    if (m->maker.why || !add_sums(m))
        return 0;
    uint32_t term = gir_make_scalar(&m->maker, SCALAR_MUL, type, (uint32_t[]){a, b});
    const struct dim *terms = terms_of(op);
    if (terms != m->part->dims[m->part->rank - 1])
        term = grid_choose(m, grid_test(m, SCALAR_LT, m->term, grid_dim(m, terms)), term,
                           gir_make_number(&m->maker, type, 0));
    const uint32_t sum = gir_make(&m->maker, (struct gir_code){.op = GIR_REDUCE,
                                                               .scalar = SCALAR_ADD,
                                                               .type = (uint8_t)type,
                                                               .operands = {term}});
    return ir_op_is(op, IR_OP_Gemm) ? finish(m, op, sum, place) : sum;
}

/* ---- Rows of terms --------------------------------------------------------------------------- */

/* Are the op's rows what the terms are of? */
static bool is_row_of_terms(const struct grid_maker *m, const struct ir_op *op,
                            const struct grid_place *place)
{
    const int last = place->rank - 1;
    bool is = m->in_term && ir_row_axes(op) == 1 && !ir_row_folds(op) && op->n_operands == 1 &&
              place->at[last] == m->term &&
              ir_operand(op, 0)->type->dims[last] == m->part->dims[m->part->rank - 1];
    for (int i = 0; i < last; i++)
        is &= place->at[i] != m->term;
    return is;
}

uint32_t grid_row_of_terms(struct grid_maker *m, const struct ir_op *op,
                           const struct grid_place *place)
{
    if (!is_row_of_terms(m, op, place))
        return grid_refuse(m, "rows are reduced that are no terms of a product");
    const uint32_t step = grid_evaluate(m, ir_operand(op, 0), place);
    return m->maker.why ? 0 : gir_make_row_op(&m->maker, op, &step);
}

/* ---- Parts ----------------------------------------------------------------------------------- */

/* Of more sums, what threads meet for is most of what they do: in a tile they meet once for all. */
#define MOST_ALONG 2

static uint32_t count_sums(const struct gir_code *codes, uint32_t n)
{
    uint32_t sums = 0;
    for (uint32_t i = 0; i < n; i++)
        sums += codes[i].op == GIR_REDUCE;
    return sums;
}

/* Of stages, a block that has few warps has all rows of a group: they are side by side. */
bool grid_is_across(const struct grid_maker *m)
{
    return m->part->sums &&
           (m->across || m->n_cuts || count_sums(m->maker.codes, m->maker.n) > MOST_ALONG);
}

bool grid_multiplies_again(const struct grid_maker *m)
{
    int64_t elements, all = 0;
    for (const struct ir_op *op = m->body->first; op; op = op->next) {
        const struct ir_type *type = op->n_results ? op->results[0].type : NULL;
        if (grid_multiplies(op) && grid_known_count(type->dims, type->rank, &elements))
            all += elements;
    }
    return m->sums > MOST_WORK * all;
}
