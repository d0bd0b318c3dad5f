/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chains of float16 and bfloat16 are computed in float32, and rounded where they end:
 *
 *     Clip(Conv(x, w)) of f16   ->   Cast(Clip(Conv(Cast(x), w')), f16), with w' of f32
 *
 * What computes floats (element-wise operators, products, windows, reductions, normalizations,
 * recurrent ones) is in a chain, and so is what moves the elements of one, and a Cast in it. A
 * chain ends where something else reads it: an output of the graph, another type, a branch's or an
 * iteration's result, an operator that tssa does not have. Constants are widened once. Each
 * operator of these types is computed in float32 anyway, and rounded once: here is no rounding in
 * between, and nobody converts. An operator alone has the same bits.
 *
 * By itself, and for sessions that are asked for it (tssa_session_options.precision); no level runs
 * it.
 *
 *   needs   types
 *   keeps   results but for the roundings, and infinities where a number in between is beyond the
 *           type
 *   breaks  Casts may be there twice (common_subexpressions), or lose their uses (dead_code)
 */
#include "ir/clone.h"
#include "ir/infer.h"
#include "passes/pass.h"

struct chains {
    struct pass_context *pass;
    struct ir_value **wide; /* per value that was there before: its Cast to float32, or NULL */
    uint32_t n_values;
};

static bool is_half(const struct ir_value *value)
{
    return value && value->type->kind == TYPE_TENSOR &&
           (value->type->dtype == TSSA_FLOAT16 || value->type->dtype == TSSA_BFLOAT16);
}

static bool is_cast(const struct ir_op *op)
{
    return op && ir_op_is(op, IR_OP_Cast);
}

/* What is rounded at the end of a chain; NULL: it is no such value. */
static struct ir_value *end_of_chain(const struct ir_value *value)
{
    struct ir_value *from = is_cast(value->op) ? ir_operand(value->op, 0) : NULL;
    const bool single = from && from->type->kind == TYPE_TENSOR && from->type->dtype == TSSA_FLOAT;
    return single && is_half(value) ? from : NULL;
}

/* ---- Which ops ------------------------------------------------------------------------------- */

static bool computes(const struct ir_op *op)
{
    switch (op->info->cls) {
    case IR_CLASS_ELEMENTWISE:
        return !is_cast(op) && !ir_op_is(op, IR_OP_CastLike) && !ir_op_is(op, IR_OP_BitCast);
    case IR_CLASS_REDUCTION:
    case IR_CLASS_CONTRACTION:
    case IR_CLASS_WINDOW:
    case IR_CLASS_NORMALIZATION:
    case IR_CLASS_RECURRENT:
        return true;
    default:
        return false;
    }
}

/* What moves elements is in a chain where all that it moves is, constants aside. */
static bool moves_chain(const struct ir_op *op)
{
    bool any = false;
    if (op->info->cls != IR_CLASS_MOVEMENT && op->info->cls != IR_CLASS_GATHER)
        return false;
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const struct ir_value *value = ir_operand(op, i);
        if (!is_half(value) || ir_value_constant(value))
            continue;
        if (!end_of_chain(value))
            return false;
        any = true;
    }
    return any;
}

/* Are all results that anybody reads of the first one's type? A chain ends in one. */
static bool has_one_type(const struct ir_op *op)
{
    const struct ir_type *first = op->results[0].type;
    for (uint32_t i = 0; i < op->n_results; i++)
        if (op->results[i].uses && (op->results[i].type->kind != TYPE_TENSOR ||
                                    op->results[i].type->dtype != first->dtype))
            return false;
    return true;
}

static bool is_in_chain(const struct ir_op *op)
{
    if (op->n_blocks || !(op->info->flags & IR_PURE) || (op->info->flags & IR_RANDOM) ||
        !(op->info->types & DTYPE_BIT(TSSA_FLOAT)) || op->n_results == 0 ||
        (!computes(op) && !moves_chain(op)))
        return false;
    bool any = false;
    for (uint32_t i = 0; i < op->n_operands; i++)
        any |= is_half(ir_operand(op, i));
    return any && is_half(&op->results[0]) && has_one_type(op);
}

/* ---- Rewriting ------------------------------------------------------------------------------- */

static struct ir_op *make_cast(struct ir_graph *graph, struct ir_value *value, tssa_dtype to)
{
    struct ir_op *cast = ir_op_create(graph, ir_op_info(IR_OP_Cast), 1, 1);
    const struct ir_attr attr = {
        .name = intern_str(&graph->strings, "to"), .kind = IR_ATTR_INT, .i = to};
    if (!cast || !attr.name || !ir_op_set_attr(graph, cast, &attr))
        return NULL;
    cast->version = ir_op_bind(cast->info, IR_NEWEST_OPSET);
    ir_op_set_operand(cast, 0, value);
    return cast;
}

/* Where what the value is made of begins to be there. */
static struct ir_op *behind(const struct ir_value *value)
{
    return value->op ? value->op->next : value->block->first;
}

/* The value in float32: of a constant one, too. */
static tssa_status *make_wide(struct chains *c, struct ir_value *value, struct ir_value **wide)
{
    struct pass_context *pass = c->pass;
    struct ir_op *cast = make_cast(pass->graph, value, TSSA_FLOAT);
    struct tensor *folded = NULL;
    TRY_ALLOC(cast);
    TRY(pass_insert(cast, behind(value)));
    if (ir_value_constant(value) && pass->evaluate)
        TRY(pass->evaluate(pass->evaluate_user, pass->graph, cast, &folded));
    *wide = &cast->results[0];
    if (!folded)
        return NULL;
    const struct tensor *narrow = ir_value_constant(value);
    struct ir_op *constant = ir_constant_create(pass->graph, folded);
    TRY_ALLOC(constant);
    ir_graph_forget(pass->graph, narrow->data, tensor_bytes(narrow));
    TRY(pass_replace(pass, cast, constant));
    *wide = &constant->results[0];
    return NULL;
}

static tssa_status *find_wide(struct chains *c, struct ir_value *value, struct ir_value **wide)
{
    *wide = end_of_chain(value);
    if (*wide)
        return NULL;
    struct ir_value **known = value->id < c->n_values ? &c->wide[value->id] : NULL;
    if (!known || !*known) {
        TRY(make_wide(c, value, wide));
        if (known)
            *known = *wide;
        return NULL;
    }
    *wide = *known;
    return NULL;
}

/* Everybody else reads the result rounded. */
static tssa_status *end_chain(struct chains *c, struct ir_op *op, uint32_t k, tssa_dtype to)
{
    struct ir_value *result = &op->results[k];
    struct ir_op *cast = make_cast(c->pass->graph, NULL, to);
    TRY_ALLOC(cast);
    ir_value_replace(result, &cast->results[0]);
    ir_op_set_operand(cast, 0, result);
    TRY(pass_insert(cast, op->next));
    cast->name = op->name;
    cast->results[0].name = result->name;
    result->name = NULL;
    return NULL;
}

static tssa_status *take(struct chains *c, struct ir_op *op)
{
    const tssa_dtype dtype = op->results[0].type->dtype;
    for (uint32_t i = 0; i < op->n_operands; i++) {
        struct ir_value *value = ir_operand(op, i), *wide;
        if (!is_half(value))
            continue;
        TRY(find_wide(c, value, &wide));
        ir_op_set_operand(op, i, wide);
    }
    ir_forget_declared(op);
    TRY(ir_infer_op_lenient(op));
    for (uint32_t k = op->n_results; k-- > 0;)
        if (op->results[k].uses)
            TRY(end_chain(c, op, k, dtype));
    c->pass->changed = true;
    return NULL;
}

/* A Cast to float32 of what a chain has rounded is what it had before. */
static void pass_over(const struct chains *c, struct ir_op *cast)
{
    const struct ir_value *value = ir_operand(cast, 0);
    struct ir_value *wide = value ? end_of_chain(value) : NULL;
    if (!wide || cast->results[0].type != wide->type)
        return;
    if (!wide->name)
        wide->name = cast->results[0].name;
    ir_value_replace(&cast->results[0], wide);
    ir_op_remove(cast);
    c->pass->changed = true;
}

static tssa_status *visit_block(struct chains *c, struct ir_block *block)
{
    for (struct ir_op *op = block->first, *next; op; op = next) {
        next = op->next;
        for (uint32_t i = 0; i < op->n_blocks; i++)
            TRY(visit_block(c, op->blocks[i]));
        if (is_cast(op))
            pass_over(c, op);
        else if (is_in_chain(op))
            TRY(take(c, op));
    }
    return NULL;
}

tssa_status *pass_relax_floats(struct pass_context *pass)
{
    struct ir_graph *graph = pass->graph;
    struct chains c = {.pass = pass, .n_values = graph->n_values};
    c.wide = allocator_calloc(graph->allocator, (size_t)c.n_values + 1, sizeof *c.wide);
    TRY_ALLOC(c.wide);
    tssa_status *status = visit_block(&c, graph->body);
    allocator_free(graph->allocator, c.wide);
    return status;
}
