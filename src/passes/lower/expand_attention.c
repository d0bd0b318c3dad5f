/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention as two products and what lies between, where the device has no kernel of it
 * (ir_fusion.expands):
 *
 *     y, present_k, present_v = Attention(q, k, v, mask, past_k, past_v)
 *     ->
 *     present_k = Concat(past_k, k), present_v = Concat(past_v, v)
 *     scores = MatMul(q, present_k turned) * scale    capped; what is masked is -infinity
 *     weights = Softmax(scores)                       0 in rows of which all is masked
 *     y = MatMul(weights, present_v)
 *
 * Heads that are packed in rows are taken apart by accesses. Queries that share a head of keys are
 * rows of one product, so that no key is copied. Narrower types are computed in float32, as the
 * host's kernel does it. With a mask or lengths, a value whose position no query of its head counts
 * is 0 in the product, whatever it holds.
 *
 * What is left, with a remark: numbers of heads or sizes of their elements that are not known;
 * batches, lengths and pasts that are not known to be the same; masks of which sizes are not known
 * to be 1 or those of the scores, but for the last one; masks of integers; windows; nothing to
 * compute.
 *
 *   needs   types
 *   keeps   bits of all that is element-wise: sums of products are the device's, and so is what an
 *           infinite or NaN value does to queries that do not count it (docs/numerics.md)
 *   breaks  nothing
 */
#include "passes/lower/expand_attention.h"

#include "ir/fuse.h"

/* ---- What can be expanded -------------------------------------------------------------------- */

static bool is_tensor(const struct ir_value *x, dtype_mask types, int rank)
{
    return x && x->type->kind == TYPE_TENSOR && x->type->rank == rank &&
           dtype_in(types, x->type->dtype);
}

static bool read_heads(const struct ir_op *op, uint32_t operand, const char *attribute,
                       struct heads *h)
{
    const struct ir_value *x = ir_operand(op, operand);
    const int64_t count = ir_attr_int(op, attribute, 0);
    int64_t packed;
    if (is_tensor(x, T_FLOAT, 4)) {
        h->length = x->type->dims[2];
        return dim_is_const(x->type->dims[1], &h->count) && h->count > 0 &&
               dim_is_const(x->type->dims[3], &h->size) && h->size > 0;
    }
    if (!is_tensor(x, T_FLOAT, 3) || count <= 0 || !dim_is_const(x->type->dims[2], &packed))
        return false;
    h->length = x->type->dims[1];
    h->count = count;
    h->size = packed / count;
    return h->size > 0 && packed % count == 0;
}

static bool same_batch(const struct attention *e, const struct ir_value *x)
{
    return x->type->dims[0] == ir_operand(e->op, ATTENTION_Q)->type->dims[0];
}

/* [batch, heads, past, size], or absent. */
static bool is_past(const struct attention *e, uint32_t operand, uint32_t now,
                    const struct heads *h)
{
    const struct ir_value *x = ir_operand(e->op, operand);
    return !x || (is_tensor(x, DTYPE_BIT(ir_operand(e->op, now)->type->dtype), 4) &&
                  same_batch(e, x) && dim_is(x->type->dims[1], h->count) &&
                  x->type->dims[2] == ir_operand(e->op, ATTENTION_PAST_K)->type->dims[2] &&
                  dim_is(x->type->dims[3], h->size));
}

static bool is_lengths(const struct attention *e)
{
    const struct ir_value *x = ir_operand(e->op, ATTENTION_LENGTHS);
    return !x || (is_tensor(x, DTYPE_BIT(TSSA_INT64), 1) && same_batch(e, x));
}

/* Of the scores, or of fewer positions. */
static bool is_mask(const struct attention *e)
{
    const struct ir_value *x = ir_operand(e->op, ATTENTION_MASK);
    const struct dim *scores[] = {ir_operand(e->op, ATTENTION_Q)->type->dims[0],
                                  dim_const(&e->maker.graph->dims, e->q.count), e->q.length,
                                  e->total};
    int64_t length, total;
    if (!x)
        return true;
    const int rank = x->type->kind == TYPE_TENSOR ? x->type->rank : 0;
    if (rank < 1 || rank > 4 || !is_tensor(x, T_FLOAT | DTYPE_BIT(TSSA_BOOL), rank))
        return false;
    for (int i = 0; i < rank - 1; i++)
        if (!dim_is(x->type->dims[i], 1) && x->type->dims[i] != scores[4 - rank + i])
            return false;
    return !dim_is_const(x->type->dims[rank - 1], &length) || !dim_is_const(e->total, &total) ||
           length <= total;
}

static bool is_empty(const struct attention *e)
{
    return dim_is(ir_operand(e->op, ATTENTION_Q)->type->dims[0], 0) || dim_is(e->q.length, 0) ||
           dim_is(e->total, 0);
}

static bool read_total(struct attention *e)
{
    const struct ir_value *k = ir_operand(e->op, ATTENTION_PAST_K),
                          *v = ir_operand(e->op, ATTENTION_PAST_V);
    if (!k != !v || (k && !is_tensor(k, T_FLOAT, 4)))
        return false;
    e->total = k ? dim_add(&e->maker.graph->dims, k->type->dims[2], e->k.length) : e->k.length;
    return e->total && is_past(e, ATTENTION_PAST_K, ATTENTION_K, &e->k) &&
           is_past(e, ATTENTION_PAST_V, ATTENTION_V, &e->v);
}

/* Sets the sizes. Why it stays as it is; NULL: it need not. */
static const char *find_obstacle(struct attention *e)
{
    const struct ir_op *op = e->op;
    if (ir_attr_int(op, "left_window_size", -1) != -1 ||
        ir_attr_int(op, "right_window_size", -1) != -1)
        return "it has a window";
    if (e->mode < SCORES_RAW || e->mode > SCORES_SOFTMAX)
        return "it asks for scores that there are not";
    if (!read_heads(op, ATTENTION_Q, "q_num_heads", &e->q) ||
        !read_heads(op, ATTENTION_K, "kv_num_heads", &e->k) ||
        !read_heads(op, ATTENTION_V, "kv_num_heads", &e->v))
        return "its numbers of heads or their sizes are not known";
    if (!same_batch(e, ir_operand(op, ATTENTION_K)) ||
        !same_batch(e, ir_operand(op, ATTENTION_V)) ||
        ir_operand(op, ATTENTION_K)->type->dtype != ir_operand(op, ATTENTION_Q)->type->dtype ||
        e->k.size != e->q.size || e->k.count != e->v.count || e->k.length != e->v.length ||
        e->q.count % e->k.count != 0)
        return "its queries, keys and values are not known to fit each other";
    if (!read_total(e))
        return "its past is not known to fit the keys and values";
    if (!is_mask(e) || !is_lengths(e))
        return "its mask or lengths are not known to fit the scores";
    return is_empty(e) ? "there is nothing to compute" : NULL;
}

/* ---- The pass -------------------------------------------------------------------------------- */

static void read_attributes(struct attention *e)
{
    e->causal = ir_attr_int(e->op, "is_causal", 0) != 0;
    e->softcap = (double)ir_attr_float(e->op, "softcap", 0);
    e->mode = ir_attr_int(e->op, "qk_matmul_output_mode", SCORES_RAW);
}

static tssa_status *visit(void *context, struct ir_op *op)
{
    struct pass_context *pass = context;
    struct attention e = {.op = op, .maker = {.at = op, .graph = pass->graph}};
    if (op->info->id != IR_OP_Attention || !ir_op_is_used(op))
        return NULL;
    read_attributes(&e);
    const char *why = find_obstacle(&e);
    if (why)
        return pass_remark(pass, TSSA_REMARK_MISSED, op, "runs as one operator: %s", why);
    expand_scores(&e);
    TRY(e.maker.status);
    TRY(pass_remark(pass, TSSA_REMARK_APPLIED, op, "is two products and what lies between"));
    ir_op_remove(op);
    pass->changed = true;
    return NULL;
}

tssa_status *pass_expand_attention(struct pass_context *pass)
{
    if (!pass->fusion || !pass->fusion->expands)
        return NULL;
    return ir_block_walk(pass->graph->body, visit, pass);
}
