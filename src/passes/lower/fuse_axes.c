/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Neighbouring axes that are reduced, and are not the last ones, are made one, with all that is
 * computed element by element for the reduction and of it:
 *
 *     ReduceMean(Relu(x), [1, 2])   ->   ReduceMean(Relu(x[reshape(N, H * W, C)]), [1])
 *
 * which are columns then (ir_column_axis). The order of a reduction is the same: neighbouring axes
 * are one there (docs/numerics.md). What comes from outside, and who reads it outside, have views,
 * which move nothing: values that have all of the axes are reshaped, and what has one element along
 * them has one such axis less for each. So it is done where a reshape can say dims: all but one are
 * the same in every run, and none is 0.
 */
#include "ir/fuse.h"
#include "ir/infer.h"
#include "ir/row.h"
#include "ir/rule.h"
#include "passes/lower/fuse.h"

/* Ops that are merged at once. */
#define MOST_MEMBERS 64
/* Of operands, where there are several. */
#define MOST_BYTES (8 << 20)

/* What is reduced, and where: n axes from the first one on. */
struct axes {
    const struct ir_type *like;
    int first, n;
};

/* An outside value, as members read it. */
struct axes_view {
    const struct ir_value *value;
    struct ir_value *view;
};

struct merging {
    struct fuse_plan *plan;
    struct axes axes;
    uint32_t n_members;
    struct ir_op *members[MOST_MEMBERS];
    VEC(struct axes_view) views;
};

/* How a value that is broadcast with what is reduced has the axes. */
enum axes_how {
    AXES_APART, /* some of them */
    AXES_NONE,  /* there is nothing to be merged */
    AXES_ONES,  /* one element along several of them */
    AXES_ALL
};

/* ---- Types ----------------------------------------------------------------------------------- */

static bool may_reshape(const struct ir_type *type)
{
    int64_t dim;
    int unknown = 0;
    for (int i = 0; i < type->rank; i++)
        if (!dim_is_const(type->dims[i], &dim))
            unknown++;
        else if (dim == 0)
            return false;
    return unknown <= 1;
}

/* Of the value's axes, the first one of those that are merged, and how many it has. */
static int first_merged(const struct axes *axes, const struct ir_type *type, int *n)
{
    const int first = axes->first - (axes->like->rank - type->rank), end = first + axes->n;
    *n = first < 0 ? end : axes->n;
    *n = *n < 0 ? 0 : *n;
    return first < 0 ? 0 : first;
}

static enum axes_how how_of(const struct axes *axes, const struct ir_type *type)
{
    int n, ones = 0, same = 0;
    if (type->kind != TYPE_TENSOR || type->rank < 0 || type->rank > axes->like->rank)
        return AXES_APART;
    const int first = first_merged(axes, type, &n);
    for (int i = 0; i < n; i++) {
        ones += dim_is(type->dims[first + i], 1);
        same += type->dims[first + i] == axes->like->dims[axes->first + axes->n - n + i];
    }
    if (ones == n)
        return n > 1 ? AXES_ONES : AXES_NONE;
    return same == axes->n && may_reshape(type) ? AXES_ALL : AXES_APART;
}

/* The type with one axis for those that are merged; NULL: memory ran out. */
static const struct ir_type *merged_type(struct ir_graph *graph, const struct axes *axes,
                                         const struct ir_type *type)
{
    const struct dim *dims[TSSA_MAX_RANK];
    int n, rank = 0;
    const int first = first_merged(axes, type, &n);
    for (int i = 0; i < type->rank; i++) {
        if (i <= first || i >= first + n)
            dims[rank++] = type->dims[i];
        else if (!(dims[first] = dim_mul(&graph->dims, dims[first], type->dims[i])))
            return NULL;
    }
    return type_tensor(&graph->types, type->dtype, rank, dims);
}

/* ---- Members --------------------------------------------------------------------------------- */

static bool is_member(const struct merging *m, const struct ir_op *op)
{
    for (uint32_t i = 0; op && i < m->n_members; i++)
        if (m->members[i] == op)
            return true;
    return false;
}

/* Has the member's result the axes? */
static bool has_axes(const struct ir_op *member)
{
    return member->info->ew || ir_attr_int(member, "keepdims", 1) != 0;
}

/* Which neighbouring axes, more than one, the reduction is of; false: it is of others. */
static bool find_axes(const struct ir_op *op, struct axes *axes)
{
    int64_t told[IR_KNOWN_MAX];
    uint64_t marked = 0;
    size_t n;
    int axis;
    if (!op->info->reduction || op->info->cls != IR_CLASS_REDUCTION || op->opaque ||
        op->n_operands < 2 || infer_value_rank(ir_operand(op, 0)) < 3 ||
        !infer_const_ints(op, 1, told, &n) || n < 2)
        return false;
    axes->like = ir_operand(op, 0)->type;
    axes->first = axes->like->rank;
    for (size_t i = 0; i < n; i++) {
        if (!infer_find_axis(told[i], axes->like->rank, &axis) || dim_is(axes->like->dims[axis], 1))
            return false;
        marked |= UINT64_C(1) << axis;
        axes->first = axis < axes->first ? axis : axes->first;
    }
    axes->n = (int)n;
    return marked == ((UINT64_C(1) << n) - 1) << axes->first;
}

/* Is it a reduction of the same axes? There are columns where there are several elements behind. */
static bool reduces(const struct merging *m, const struct ir_op *op)
{
    struct axes axes;
    bool behind = false;
    if (!find_axes(op, &axes) || axes.first != m->axes.first || axes.n != m->axes.n ||
        axes.like->rank != m->axes.like->rank || !op->results[0].wanted)
        return false;
    for (int i = 0; i < axes.like->rank; i++) {
        if (axes.like->dims[i] != m->axes.like->dims[i])
            return false;
        behind |= i >= axes.first + axes.n && dim_at_least(axes.like->dims[i], 2);
    }
    return behind && may_reshape(axes.like);
}

static bool is_elementwise(const struct merging *m, const struct ir_op *op)
{
    if (op->info->cls != IR_CLASS_ELEMENTWISE || !ir_op_broadcasts(op) || op->n_results != 1 ||
        op->n_blocks || op->opaque || op->results[0].known || !fuse_is_candidate(m->plan, op) ||
        fuse_refusal(m->plan, op) || how_of(&m->axes, op->results[0].type) < AXES_ONES)
        return false;
    for (uint32_t i = 0; i < op->n_operands; i++)
        if (ir_operand(op, i) && how_of(&m->axes, ir_operand(op, i)->type) == AXES_APART)
            return false;
    return true;
}

static bool may_be_member(const struct merging *m, const struct ir_op *op)
{
    for (uint32_t i = 0; i < op->n_operands; i++)
        if (ir_operand(op, i) && ir_value_is_mutable(op->parent->graph, ir_operand(op, i)))
            return false;
    return op->info->ew ? is_elementwise(m, op) : reduces(m, op);
}

static void add_member(struct merging *m, struct ir_op *op)
{
    if (m->n_members < MOST_MEMBERS && !is_member(m, op))
        m->members[m->n_members++] = op;
}

/* Could all that read the value be members with the op? */
static bool is_read_by_members(const struct merging *m, const struct ir_value *value,
                               const struct ir_op *op)
{
    for (const struct ir_use *use = value->uses; use; use = use->next)
        if (use->user->parent != op->parent || !may_be_member(m, use->user))
            return false;
    return true;
}

/* What is computed for members alone, and what is computed of what they come to. */
static void find_members(struct merging *m, struct ir_op *reduction)
{
    m->n_members = 0;
    add_member(m, reduction);
    for (uint32_t i = 0; i < m->n_members; i++) {
        const struct ir_op *op = m->members[i];
        for (uint32_t k = 0; k < op->n_operands; k++) {
            struct ir_op *maker = fuse_maker(ir_operand(op, k), op->parent);
            if (maker && may_be_member(m, maker) &&
                is_read_by_members(m, &maker->results[0], maker))
                add_member(m, maker);
        }
        for (const struct ir_use *use = has_axes(op) ? op->results[0].uses : NULL; use;
             use = use->next)
            if (use->user->parent == op->parent && may_be_member(m, use->user))
                add_member(m, use->user);
    }
}

/* Elements, as far as the type tells, times bytes. */
static double bytes_of(const struct ir_type *type)
{
    double bytes = (double)dtype_info(type->dtype)->size;
    int64_t dim;
    for (int i = 0; i < type->rank; i++)
        bytes *= dim_is_const(type->dims[i], &dim) ? (double)dim : 1;
    return bytes;
}

/* Do members read several values of all elements from outside, more than caches have? Columns take
 * longer of these than one operator after the other, since each row of each is a page of its own.
 */
static bool reads_much(const struct merging *m)
{
    const struct ir_value *first = NULL;
    bool several = false;
    double bytes = 0;
    for (uint32_t i = 0; i < m->n_members; i++)
        for (uint32_t k = 0; k < m->members[i]->n_operands; k++) {
            const struct ir_value *value = ir_operand(m->members[i], k);
            if (!value || value == first ||
                is_member(m, fuse_maker(value, m->members[i]->parent)) ||
                how_of(&m->axes, value->type) != AXES_ALL)
                continue;
            several |= first != NULL;
            first = first ? first : value;
            bytes += bytes_of(value->type);
        }
    return several && bytes > MOST_BYTES;
}

/* Is anything but reductions computed? */
static bool is_worth_it(const struct merging *m)
{
    bool any = false;
    for (uint32_t i = 0; i < m->n_members; i++)
        any |= m->members[i]->info->ew != NULL;
    return any && !reads_much(m);
}

/* ---- Views ----------------------------------------------------------------------------------- */

/* A view that has the dims of the type: a reshape where it has all of the axes, else axes of one
 * element come (or go) in the place of some. */
static struct ir_op *make_view(struct ir_graph *graph, const struct axes *axes,
                               struct ir_value *value, const struct ir_type *apart,
                               const struct ir_type *to)
{
    struct rule_param params[TSSA_MAX_RANK];
    struct rule_step step = {RULE_RESHAPE, 0, params};
    int n;
    const int first = first_merged(axes, apart, &n);
    if (how_of(axes, apart) == AXES_ALL) {
        for (int i = 0; i < to->rank; i++) {
            int64_t dim;
            params[step.n_params++] = rule_constant(dim_is_const(to->dims[i], &dim) ? dim : -1);
        }
    } else {
        step.kind = to == apart ? RULE_UNSQUEEZE : RULE_SQUEEZE;
        for (int i = 1; i < n; i++)
            params[step.n_params++] = rule_constant(first + i);
    }
    const struct rule *rule = rule_create(graph, 1, &step);
    return rule ? rule_access_create(graph, value, rule, 0, NULL) : NULL;
}

static tssa_status *put_view(struct ir_op *view, struct ir_op *before, const struct ir_type *type)
{
    TRY(pass_insert(view, before));
    view->results[0].type = type;
    view->inferred_from = ir_infer_stamp(view);
    return NULL;
}

/* The outside value with one axis, behind what makes it. */
static tssa_status *view_of(struct merging *m, struct ir_value *value, struct ir_block *block,
                            struct ir_value **view)
{
    struct ir_graph *graph = block->graph;
    const struct ir_op *maker = fuse_maker(value, block);
    for (size_t i = 0; i < m->views.count; i++)
        if (m->views.data[i].value == value) {
            *view = m->views.data[i].view;
            return NULL;
        }
    const struct ir_type *type = merged_type(graph, &m->axes, value->type);
    TRY_ALLOC(type);
    struct ir_op *op = make_view(graph, &m->axes, value, value->type, type);
    TRY(put_view(op, maker ? maker->next : block->first, type));
    *view = &op->results[0];
    return vec_push(&m->views, ((struct axes_view){value, *view})) ? NULL : status_out_of_memory();
}

/* ---- Merging --------------------------------------------------------------------------------- */

static tssa_status *view_operands(struct merging *m, struct ir_op *op)
{
    for (uint32_t i = 0; i < op->n_operands; i++) {
        struct ir_value *value = ir_operand(op, i), *view;
        if (!value || (i > 0 && !op->info->ew) || is_member(m, fuse_maker(value, op->parent)) ||
            how_of(&m->axes, value->type) == AXES_NONE)
            continue;
        TRY(view_of(m, value, op->parent, &view));
        ir_op_set_operand(op, i, view);
    }
    return NULL;
}

/* An op that is no member, and not this one, and reads the value; NULL: there is none. */
static struct ir_op *outside_reader(const struct merging *m, const struct ir_value *value,
                                    const struct ir_op *view)
{
    const struct ir_use *use = value->uses;
    while (use && (use->user == view || is_member(m, use->user)))
        use = use->next;
    return use ? use->user : NULL;
}

/* Whoever is no member reads a view that has all axes. */
static tssa_status *view_result(struct merging *m, struct ir_op *op)
{
    struct ir_value *result = &op->results[0];
    struct ir_graph *graph = op->parent->graph;
    const struct ir_type *apart = result->type, *type = merged_type(graph, &m->axes, apart);
    struct ir_op *reader = outside_reader(m, result, NULL);
    TRY_ALLOC(type);
    result->type = type;
    if (!reader)
        return NULL;
    struct ir_op *view = make_view(graph, &m->axes, result, apart, apart);
    TRY_ALLOC(view);
    for (; reader; reader = outside_reader(m, result, view))
        for (uint32_t i = 0; i < reader->n_operands; i++)
            if (ir_operand(reader, i) == result)
                ir_op_set_operand(reader, i, &view->results[0]);
    view->results[0].name = result->name;
    result->name = NULL;
    return put_view(view, op->next, apart);
}

/* The reduction is of the one axis. */
static tssa_status *reduce_one(const struct merging *m, struct ir_op *op)
{
    const int64_t axis = m->axes.first;
    struct ir_op *constant = ir_constant_ints(op->parent->graph, 1, 1, &axis);
    TRY(pass_insert(constant, op));
    ir_op_set_operand(op, 1, &constant->results[0]);
    return NULL;
}

static tssa_status *merge(struct merging *m)
{
    m->views.count = 0;
    for (uint32_t i = 0; i < m->n_members; i++)
        TRY(view_operands(m, m->members[i]));
    for (uint32_t i = 0; i < m->n_members; i++)
        if (has_axes(m->members[i]))
            TRY(view_result(m, m->members[i]));
    for (uint32_t i = 0; i < m->n_members; i++)
        if (!m->members[i]->info->ew)
            TRY(reduce_one(m, m->members[i]));
    for (uint32_t i = 0; i < m->n_members; i++)
        m->members[i]->inferred_from = ir_infer_stamp(m->members[i]);
    m->plan->pass->changed = true;
    return pass_remark(m->plan->pass, TSSA_REMARK_APPLIED, m->members[0],
                       "%d neighbouring axes that are reduced are one, for %u operators", m->axes.n,
                       (unsigned)m->n_members);
}

static tssa_status *visit_block(struct merging *m, struct ir_block *block)
{
    for (struct ir_op *op = block->first; op; op = op->next) {
        for (uint32_t i = 0; i < op->n_blocks && !op->opaque && !ir_op_is(op, IR_OP_fuse); i++)
            TRY(visit_block(m, op->blocks[i]));
        if (!find_axes(op, &m->axes) || !may_be_member(m, op))
            continue;
        find_members(m, op);
        if (is_worth_it(m))
            TRY(merge(m));
    }
    return NULL;
}

tssa_status *fuse_merge_axes(struct fuse_plan *plan)
{
    struct merging m = {.plan = plan};
    if (!(plan->fusion->classes & IR_FUSES_COLUMNS))
        return NULL;
    vec_init(&m.views, plan->pass->graph->allocator);
    tssa_status *status = visit_block(&m, plan->pass->graph->body);
    vec_free(&m.views);
    return status;
}
