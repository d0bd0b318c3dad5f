/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An axis of which constant places are written is put together anew from pieces of the base and of
 * what is written; assigns that follow each other along one axis, at once.
 */
#include "passes/lower/lower_writer.h"

/* More pieces of a Concat than this cost more than a Gather from all of them. */
#define MAX_PIECES 32
#define MAX_PLACES 4096 /* of an axis that is written piece by piece */

bool lower_has_places(const struct region *region, int axis, int64_t *dim)
{
    int64_t start, count;
    return lower_const_axis(&region->axes[axis], &start, &count) &&
           dim_is_const(region->base[axis], dim) && *dim <= MAX_PLACES;
}

/* Where the element at a place of an axis comes from: sources[source] at `at`. */
struct origin {
    uint32_t source;
    int64_t at;
};

/* An axis that is put together anew from sources, the base first. */
struct assembly {
    struct lowering *l;
    int axis;
    int64_t n; /* places */
    struct origin *origins;
    uint32_t n_sources;
    struct ir_value **sources;
};

static bool continues(const struct assembly *a, int64_t i)
{
    return i > 0 && a->origins[i].source == a->origins[i - 1].source &&
           a->origins[i].at == a->origins[i - 1].at + 1;
}

static struct ir_value *assemble_pieces(struct assembly *a)
{
    struct ir_value *parts[MAX_PIECES];
    uint32_t n = 0;
    for (int64_t i = 0, end; i < a->n; i = end) {
        const struct origin *from = &a->origins[i];
        for (end = i + 1; end < a->n && continues(a, end); end++)
            ;
        if (n == MAX_PIECES)
            return NULL;
        parts[n++] =
            lower_cut(a->l, a->sources[from->source], a->axis, from->at, from->at + end - i);
    }
    return lower_concat(a->l, n, parts, a->axis);
}

static int64_t count_pieces(const struct assembly *a)
{
    int64_t n = 0;
    for (int64_t i = 0; i < a->n; i++)
        n += !continues(a, i);
    return n;
}

/* From all sources that are used, one behind the other. */
static struct ir_value *assemble_gather(struct assembly *a, int64_t *places, int64_t *firsts)
{
    struct ir_value **used = a->sources; /* compacted in place */
    uint32_t n = 0;
    int64_t end = 0, size;
    for (uint32_t s = 0; s < a->n_sources; s++) {
        bool is_used = false;
        for (int64_t i = 0; i < a->n && !is_used; i++)
            is_used = a->origins[i].source == s;
        if (!is_used || a->l->status || lower_rank(a->sources[s]) <= a->axis ||
            !dim_is_const(a->sources[s]->type->dims[a->axis], &size))
            continue;
        firsts[s] = end;
        end += size;
        used[n++] = a->sources[s];
    }
    for (int64_t i = 0; i < a->n; i++)
        places[i] = firsts[a->origins[i].source] + a->origins[i].at;
    struct ir_value *const operands[] = {lower_concat(a->l, n, used, a->axis),
                                         lower_ints(a->l, 1, (size_t)a->n, places)};
    return lower_emit_axis(a->l, IR_OP_Gather, 2, operands, a->axis);
}

static struct ir_value *assemble(struct assembly *a)
{
    const tssa_allocator *allocator = a->l->graph->allocator;
    struct ir_value *y = NULL;
    if (a->l->status || a->n == 0)
        return a->sources[0];
    if (count_pieces(a) <= MAX_PIECES)
        return assemble_pieces(a);
    int64_t *places = allocator_calloc(allocator, (size_t)a->n, sizeof *places);
    int64_t *firsts = allocator_calloc(allocator, a->n_sources, sizeof *firsts);
    if (places && firsts)
        y = assemble_gather(a, places, firsts);
    else if (!a->l->status)
        a->l->status = status_out_of_memory();
    allocator_free(allocator, places);
    allocator_free(allocator, firsts);
    return y;
}

static tssa_status *assembly_init(struct assembly *a, struct lowering *l, struct ir_value *x,
                                  int axis, int64_t n, uint32_t n_writes)
{
    const tssa_allocator *allocator = l->graph->allocator;
    *a = (struct assembly){.l = l, .axis = axis, .n = n, .n_sources = 1};
    a->origins = allocator_calloc(allocator, (size_t)n + 1, sizeof *a->origins);
    a->sources = allocator_calloc(allocator, (size_t)n_writes + 1, sizeof *a->sources);
    TRY_ALLOC(a->origins);
    TRY_ALLOC(a->sources);
    a->sources[0] = x;
    for (int64_t i = 0; i < n; i++)
        a->origins[i].at = i;
    return NULL;
}

static void assembly_free(struct assembly *a)
{
    allocator_free(a->l->graph->allocator, a->origins);
    allocator_free(a->l->graph->allocator, a->sources);
}

static void assembly_write(struct assembly *a, const struct region_axis *at, struct ir_value *part)
{
    int64_t start = 0, count = 0;
    (void)lower_const_axis(at, &start, &count);
    a->sources[a->n_sources] = part;
    for (int64_t i = 0; i < count; i++)
        a->origins[start + i * at->step] = (struct origin){a->n_sources, i};
    a->n_sources++;
}

struct ir_value *lower_write_pieces(struct writer *w, struct ir_value *x, struct ir_value *part,
                                    int axis)
{
    struct assembly a;
    struct ir_value *y = NULL;
    int64_t dim;
    if (!lower_has_places(&w->region, axis, &dim))
        return NULL;
    tssa_status *status = assembly_init(&a, w->l, x, axis, dim, 1);
    if (!status) {
        assembly_write(&a, &w->region.axes[axis], part);
        y = assemble(&a);
    } else if (!w->l->status) {
        w->l->status = status;
    } else {
        tssa_status_free(status);
    }
    assembly_free(&a);
    return y;
}

/* ---- Chains ---------------------------------------------------------------------------------- */

/*
 * The one axis that an assign writes a constant part of, all others being whole; -1: it is not so.
 */
static tssa_status *constant_axis(struct lowering *l, const struct ir_op *op, int *axis)
{
    struct ir_value *params[IR_VARIADIC];
    struct writer w;
    int axes[TSSA_MAX_RANK];
    int64_t dim;
    for (uint32_t i = 0; i < rule_of(op)->n_operands; i++)
        params[i] = ir_operand(op, rule_first_operand(op) + i);
    TRY(lower_open_writer(&w, l, ir_operand(op, 0), ir_operand(op, 1), rule_of(op), params));
    bool one = w.is_box && lower_partial_axes(&w.region, axes) == 1 &&
               lower_has_places(&w.region, axes[0], &dim);
    *axis = one ? axes[0] : -1;
    return NULL;
}

/* The assign whose base is this assign's result, which nothing else uses; NULL: none. */
static struct ir_op *next_write(const struct ir_op *op)
{
    const struct ir_use *use = op->results[0].uses;
    if (!use || use->next || !ir_op_is(use->user, IR_OP_assign) ||
        use->user->parent != op->parent || ir_operand(use->user, 0) != &op->results[0])
        return NULL;
    return use->user;
}

tssa_status *lower_is_chained(struct lowering *l, const struct ir_op *op, bool *chained)
{
    const struct ir_op *next = next_write(op);
    int axis, next_axis;
    *chained = false;
    if (!next)
        return NULL;
    TRY(constant_axis(l, op, &axis));
    if (axis < 0)
        return NULL;
    TRY(constant_axis(l, next, &next_axis));
    *chained = next_axis == axis;
    return NULL;
}

/* Puts one write into the assembly. */
static tssa_status *add_write(struct assembly *a, const struct ir_op *op)
{
    struct ir_value *params[IR_VARIADIC];
    struct writer w;
    for (uint32_t i = 0; i < rule_of(op)->n_operands; i++)
        params[i] = ir_operand(op, rule_first_operand(op) + i);
    TRY(lower_open_writer(&w, a->l, ir_operand(op, 0), ir_operand(op, 1), rule_of(op), params));
    w.x = a->sources[0]; /* of the same shape; the assign between goes */
    assembly_write(a, &w.region.axes[a->axis], lower_forward_source(&w));
    return a->l->status;
}

static tssa_status *write_chain(struct assembly *a, struct ir_op *const *ops, uint32_t n,
                                struct ir_value **y)
{
    for (uint32_t i = 0; i < n; i++)
        TRY(add_write(a, ops[i]));
    *y = assemble(a);
    return a->l->status;
}

tssa_status *lower_chain(struct lowering *l, struct ir_op *const *ops, uint32_t n,
                         struct ir_value **y)
{
    struct assembly a;
    int64_t dim = 0;
    int axis;
    TRY(constant_axis(l, ops[0], &axis));
    struct ir_value *x = ir_operand(ops[0], 0);
    (void)dim_is_const(x->type->dims[axis], &dim);
    tssa_status *status = assembly_init(&a, l, x, axis, dim, n);
    if (!status)
        status = write_chain(&a, ops, n, y);
    assembly_free(&a);
    return status;
}
