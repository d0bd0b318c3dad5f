/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes one `fuse` op of ops on lists that do not need each other, of several NonZeros or TopKs
 * (ir_fuse_lists): what detectors do on each of their levels. A device has one launch for all of
 * them, and where data tells how many elements there are, its host waits once. So that they stand
 * beside each other, what is computed of the results of such ops, or of what these are computed of,
 * goes behind all that is not.
 *
 *   needs   types, a table of what kernels take, else nothing is done
 *   keeps   results' bits; the order of ops with effects
 *   breaks  nothing
 */
#include <stdlib.h>

#include "ir/fuse.h"
#include "ir/infer.h"
#include "passes/lower/fuse.h"

struct place {
    struct ir_op *op;
    uint32_t stage; /* how many ops on lists, one after the other, it waits for */
    uint32_t kind;  /* as ir_fuse_lists has it */
    uint32_t index; /* in the block */
    uint32_t group; /* 0: it is in none */
};

struct grouping {
    struct pass_context *pass;
    uint32_t n_ops;
    uint32_t *waited; /* per op id: how many of them what reads it waits for */
    VEC(struct place) places;
    uint32_t n_groups;
};

/* ---- Stages ---------------------------------------------------------------------------------- */

static void wait_for(const struct grouping *g, const struct ir_value *value,
                     const struct ir_block *block, uint32_t *stage)
{
    const struct ir_op *maker = fuse_maker(value, block);
    if (maker && g->waited[maker->id] > *stage)
        *stage = g->waited[maker->id];
}

static void wait_for_all(const struct grouping *g, const struct ir_op *op,
                         const struct ir_block *block, uint32_t *stage)
{
    for (uint32_t i = 0; i < op->n_operands; i++)
        wait_for(g, ir_operand(op, i), block, stage);
    for (uint32_t i = 0; i < op->n_blocks; i++)
        for (const struct ir_op *inner = op->blocks[i]->first; inner; inner = inner->next)
            wait_for_all(g, inner, block, stage);
}

/* The ops of the block, but for its return; *grouped where several are of one kind and stage. */
static tssa_status *find_places(struct grouping *g, const struct ir_block *block)
{
    g->places.count = 0;
    for (struct ir_op *op = block->first; op->next; op = op->next) {
        struct place place = {
            .op = op, .kind = ir_fuse_lists(op), .index = (uint32_t)g->places.count};
        wait_for_all(g, op, block, &place.stage);
        g->waited[op->id] = place.stage + (place.kind != 0);
        if (!vec_push(&g->places, place))
            return status_out_of_memory();
    }
    return NULL;
}

/* By stage, in it what is on lists last, by kind; else as they were. */
static int compare_places(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->stage != y->stage)
        return x->stage < y->stage ? -1 : 1;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    return x->index < y->index ? -1 : 1;
}

static bool is_pure(const struct ir_block *block)
{
    for (const struct ir_op *op = block->first; op->next; op = op->next)
        if (!ir_op_is_pure(op))
            return false;
    return true;
}

/* Numbers those of a kind and stage, which lie side by side, so many at a time; true if there are
 * any of several. */
static bool find_groups(struct grouping *g)
{
    uint32_t n = 0;
    g->n_groups = 0;
    for (size_t i = 0; i < g->places.count; i++) {
        struct place *place = &g->places.data[i], *before = i ? place - 1 : NULL;
        const bool joins = before && place->kind && before->kind == place->kind &&
                           before->stage == place->stage && n < IR_FUSE_LISTS;
        n = joins ? n + 1 : 1;
        if (joins && n == 2)
            before->group = ++g->n_groups;
        place->group = joins ? g->n_groups : 0;
    }
    return g->n_groups > 0;
}

/* ---- Making ---------------------------------------------------------------------------------- */

struct making {
    struct ir_op *fuse, *ret;
    struct ir_block *body;
    VEC(struct ir_value *) operands;
};

static tssa_status *enter(struct making *m, struct ir_op *op)
{
    for (uint32_t i = 0; i < op->n_operands; i++) {
        struct ir_value *value = ir_operand(op, i), *param;
        size_t k = 0;
        while (value && k < m->operands.count && m->operands.data[k] != value)
            k++;
        if (!value)
            continue;
        if (k == m->operands.count) {
            if (!vec_push(&m->operands, value) || !(param = ir_block_add_param(m->body)))
                return status_out_of_memory();
            param->type = value->type;
            param->known = value->known;
        }
        ir_op_set_operand(op, i, m->body->params[k]);
    }
    return NULL;
}

static uint32_t count_used(const struct place *places, size_t n)
{
    uint32_t used = 0;
    for (size_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < places[i].op->n_results; k++)
            used += places[i].op->results[k].wanted && places[i].op->results[k].uses;
    return used;
}

static tssa_status *create(struct making *m, struct ir_graph *graph, uint32_t n_results)
{
    m->fuse = ir_op_create(graph, ir_op_info(IR_OP_fuse), m->body->n_params, n_results);
    m->ret = ir_op_create(graph, ir_op_info(IR_OP_return), n_results, 0);
    if (!m->fuse || !m->ret || !ir_op_set_blocks(graph, m->fuse, 1))
        return status_out_of_memory();
    m->fuse->blocks[0] = m->body;
    m->fuse->block_names[0] = intern_str(&graph->strings, IR_FUSE_BODY);
    TRY_ALLOC(m->fuse->block_names[0]);
    m->body->owner = m->fuse;
    for (uint32_t i = 0; i < m->body->n_params; i++)
        ir_op_set_operand(m->fuse, i, m->operands.data[i]);
    return NULL;
}

/* The op stands where the first one of them does, and takes them in. */
static tssa_status *fill(struct grouping *g, struct making *m, const struct place *places, size_t n)
{
    struct ir_graph *graph = g->pass->graph;
    uint32_t result = 0;
    m->body = ir_block_create(graph, NULL, 0);
    TRY_ALLOC(m->body);
    for (size_t i = 0; i < n; i++)
        TRY(enter(m, places[i].op));
    TRY(create(m, graph, count_used(places, n)));
    m->fuse->name = places[0].op->name;
    ir_op_insert_before(m->fuse, places[0].op);
    ir_op_append(m->body, m->ret);
    for (size_t i = 0; i < n; i++) {
        ir_op_move_before(places[i].op, m->ret);
        for (uint32_t k = 0; k < places[i].op->n_results; k++) {
            struct ir_value *value = &places[i].op->results[k];
            if (!value->wanted || !value->uses)
                continue;
            fuse_hand_out(value, &m->fuse->results[result]);
            ir_op_set_operand(m->ret, result++, value);
        }
    }
    m->fuse->inferred_from = ir_infer_stamp(m->fuse);
    g->pass->changed = true;
    return pass_remark(g->pass, TSSA_REMARK_APPLIED, m->fuse, "one op of %zu: %s", n,
                       places[0].op->info->name);
}

static tssa_status *make(struct grouping *g, const struct place *places, size_t n)
{
    struct making m = {0};
    if (!count_used(places, n))
        return NULL;
    vec_init(&m.operands, g->pass->graph->allocator);
    tssa_status *status = fill(g, &m, places, n);
    vec_free(&m.operands);
    return status;
}

static tssa_status *make_all(struct grouping *g, struct ir_op *ret)
{
    size_t n;
    for (size_t i = 0; i < g->places.count; i++)
        ir_op_move_before(g->places.data[i].op, ret);
    for (size_t i = 0; i < g->places.count; i += n) {
        const struct place *first = &g->places.data[i];
        n = 1;
        while (first->group && i + n < g->places.count && first[n].group == first->group)
            n++;
        if (n > 1)
            TRY(make(g, first, n));
    }
    return NULL;
}

static tssa_status *group_block(struct grouping *g, struct ir_block *block)
{
    for (struct ir_op *op = block->first; op; op = op->next)
        for (uint32_t i = 0; i < op->n_blocks && !op->opaque && !ir_fuse_body(op); i++)
            TRY(group_block(g, op->blocks[i]));
    if (!is_pure(block))
        return NULL;
    TRY(find_places(g, block));
    if (g->places.count == 0)
        return NULL;
    qsort(g->places.data, g->places.count, sizeof *g->places.data, compare_places);
    return find_groups(g) ? make_all(g, ir_block_return(block)) : NULL;
}

tssa_status *pass_group_lists(struct pass_context *pass)
{
    struct grouping g = {.pass = pass, .n_ops = pass->graph->n_ops};
    if (!pass->fusion || !(pass->fusion->classes & IR_FUSES_LISTS))
        return NULL;
    g.waited = allocator_calloc(pass->graph->allocator, g.n_ops + 1u, sizeof *g.waited);
    TRY_ALLOC(g.waited);
    vec_init(&g.places, pass->graph->allocator);
    tssa_status *status = group_block(&g, pass->graph->body);
    vec_free(&g.places);
    allocator_free(pass->graph->allocator, g.waited);
    return status;
}
