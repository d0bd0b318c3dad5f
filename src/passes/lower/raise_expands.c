/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is broadcast by an Expand is read by a rule, which says so to kernels that read it:
 *
 *     Expand(x, s)   ->   x[expand(1, 80, s[2])]
 *
 * with a size of s only where x has one element and the size is not known. Where that comes from
 * the shape of what is computed element by element, it is that of what that is computed of: a
 * kernel that computes both need not wait for itself.
 *
 *   needs   types, known elements, a table of what kernels take, else nothing is done
 *   keeps   results' bits
 *   breaks  nothing
 */
#include "ir/fuse.h"
#include "ir/infer.h"
#include "ir/rule.h"
#include "passes/pass.h"

struct raising {
    struct pass_context *pass;
    struct ir_op *op;
    struct ir_value *shape;
    uint32_t n_sizes;
    struct ir_value *sizes[TSSA_MAX_RANK]; /* that only a run tells */
    struct rule_param params[TSSA_MAX_RANK];
};

static bool is_ranked(const struct ir_value *value)
{
    return value && value->type->kind == TYPE_TENSOR && value->type->rank >= 0;
}

/* Of the same shape, which the value is computed of element by element; itself: of none. */
static struct ir_value *source_of(struct ir_value *value)
{
    const struct ir_op *op = value->op;
    uint32_t i = 0;
    while (op && op->info->ew && !op->opaque) {
        while (i < op->n_operands &&
               !(ir_operand(op, i) && type_same_dims(ir_operand(op, i)->type, value->type)))
            i++;
        if (i == op->n_operands)
            return value;
        value = ir_operand(op, i);
        op = value->op;
        i = 0;
    }
    return value;
}

/* The shape as a list that waits for no more than it must. */
static tssa_status *find_shape(struct raising *r)
{
    struct ir_op *op = r->shape->op;
    if (!op || !ir_op_is(op, IR_OP_Shape) || op->opaque || ir_attr(op, "start") ||
        ir_attr(op, "end"))
        return NULL;
    struct ir_value *of = ir_operand(op, 0), *source = source_of(of);
    if (source == of)
        return NULL;
    struct ir_op *shape = ir_op_create(r->pass->graph, op->info, 1, 1);
    TRY_ALLOC(shape);
    shape->version = op->version;
    ir_op_set_operand(shape, 0, source);
    TRY(pass_insert(shape, r->op));
    r->shape = &shape->results[0];
    return NULL;
}

static tssa_status *add_size(struct raising *r, int i)
{
    const struct rule_param params[] = {rule_constant(0), rule_constant(i)};
    const struct rule *rule =
        rule_create(r->pass->graph, 1, &(struct rule_step){RULE_SELECT, 2, params});
    TRY_ALLOC(rule);
    struct ir_op *size = rule_access_create(r->pass->graph, r->shape, rule, 0, NULL);
    TRY(pass_insert(size, r->op));
    r->params[i] = rule_operand(r->n_sizes);
    r->sizes[r->n_sizes++] = &size->results[0];
    return NULL;
}

/* Of an axis of the result: 1 where the operand has as many. */
static tssa_status *find_param(struct raising *r, int i)
{
    const struct ir_type *from = ir_operand(r->op, 0)->type, *to = r->op->results[0].type;
    const int at = i - (to->rank - from->rank);
    int64_t size;
    if (at >= 0 && from->dims[at] == to->dims[i]) {
        r->params[i] = rule_constant(1);
        return NULL;
    }
    if (!dim_is_const(to->dims[i], &size))
        return add_size(r, i);
    r->params[i] = rule_constant(size);
    return NULL;
}

static tssa_status *raise(struct raising *r)
{
    struct ir_graph *graph = r->pass->graph;
    const struct ir_type *type = r->op->results[0].type;
    TRY(find_shape(r));
    for (int i = 0; i < type->rank; i++)
        TRY(find_param(r, i));
    const struct rule *rule =
        rule_create(graph, 1, &(struct rule_step){RULE_EXPAND, (uint32_t)type->rank, r->params});
    TRY_ALLOC(rule);
    struct ir_op *access =
        rule_access_create(graph, ir_operand(r->op, 0), rule, r->n_sizes, r->sizes);
    TRY_ALLOC(access);
    TRY(pass_replace(r->pass, r->op, access));
    access->results[0].type = type; /* its sizes have names */
    access->inferred_from = ir_infer_stamp(access);
    return pass_remark(r->pass, TSSA_REMARK_APPLIED, access, "broadcast where it is read");
}

/* Is each of its sizes the operand's, known, or what the shape says? */
static bool may_raise(const struct ir_op *op)
{
    const struct ir_value *x = ir_operand(op, 0), *shape = ir_operand(op, 1);
    const struct ir_type *to = op->results[0].type;
    int64_t size;
    if (!is_ranked(x) || !is_ranked(&op->results[0]) || !shape || !shape->known ||
        to->rank < x->type->rank || shape->known->count != (size_t)to->rank)
        return false;
    for (int i = 0; i < to->rank; i++) {
        const int at = i - (to->rank - x->type->rank);
        if ((at >= 0 && x->type->dims[at] == to->dims[i]) || dim_is_const(to->dims[i], &size))
            continue;
        if ((at >= 0 && !dim_is(x->type->dims[at], 1)) || shape->known->elements[i] != to->dims[i])
            return false;
    }
    return true;
}

static tssa_status *visit(void *context, struct ir_op *op)
{
    struct raising r = {.pass = context, .op = op};
    if (!ir_op_is(op, IR_OP_Expand) || op->opaque || !may_raise(op))
        return NULL;
    r.shape = ir_operand(op, 1);
    return raise(&r);
}

tssa_status *pass_raise_expands(struct pass_context *pass)
{
    return pass->fusion && (pass->fusion->classes & IR_FUSES_LISTS)
               ? ir_block_walk(pass->graph->body, visit, pass)
               : NULL;
}
