/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of fuse ops with accesses and assigns; see maps.h. */
#include "gir/maps.h"

#include <string.h>

#include "gir/mapper.h"
#include "ir/fuse.h"
#include "ir/row.h"

#define MOST_OPS 1024 /* of a block: evaluation is recursive */

/* ---- Parts ----------------------------------------------------------------------------------- */

/* Marks what needs, in the same place, what the assign computes whose part it is. */
static void mark_dependents(struct mapper *m)
{
    for (const struct ir_op *op = m->body->first; op; op = op->next) {
        const uint32_t n = ir_op_is(op, IR_OP_access)   ? 0
                           : ir_op_is(op, IR_OP_assign) ? 1
                                                        : op->n_operands;
        bool marked = op == m->active;
        for (uint32_t i = 0; i < n && !marked; i++)
            marked = ir_operand(op, i) && m->marked[ir_operand(op, i)->id - m->first_value];
        for (uint32_t i = 0; i < op->n_results; i++)
            m->marked[op->results[i].id - m->first_value] = marked;
    }
}

static void evaluate_results(struct mapper *m, uint32_t *steps)
{
    const struct ir_op *ret = ir_block_return(m->body);
    mark_dependents(m);
    for (uint32_t i = 0; i < m->fuse->n_results; i++)
        if (m->fuse->results[i].wanted &&
            (!m->active || m->marked[ir_operand(ret, i)->id - m->first_value]))
            steps[i] =
                mapper_evaluate(m, ir_operand(ret, i), mapper_root_of(m, ir_operand(ret, i)));
        else
            steps[i] = GIR_NONE;
}

/* Steps of the part, of what the root sees. */
static void fill_part(struct mapper *m)
{
    const struct ir_op *ret = ir_block_return(m->body);
    uint32_t steps[GIR_MAX_ARGS];
    evaluate_results(m, steps);
    for (uint32_t i = 0; i < m->fuse->n_results; i++)
        if (steps[i] != GIR_NONE && !m->maker.why)
            mapper_store(m, ir_operand(ret, i), i, mapper_root_of(m, ir_operand(ret, i)).rule, 0, 1,
                         steps[i]);
    mapper_finish_args(m);
}

/* A part over what others have made, of the region of an assign. */
static tssa_status *make_assigned(struct mapper *m, const struct ir_op *assign)
{
    m->active = assign;
    m->root = (struct gir_view){0};
    TRY(gir_view_rule(assign, &m->root.rule));
    if (m->parts->n == GIR_MAX_PARTS) {
        mapper_refuse(m, "it has more assigns than kernels may have");
        return NULL;
    }
    if (!m->root.rule || gir_view_refuses(assign)) {
        mapper_refuse(m, "which elements an assign writes is not known in advance");
        return NULL;
    }
    mapper_begin_part(m, gir_view_layout(m->like, m->root.rule).rank);
    fill_part(m);
    return m->maker.why ? NULL : mapper_finish_part(m);
}

/* A part without unrolling, but not yet its kernel. */
static tssa_status *make_plain(struct mapper *m)
{
    m->active = NULL;
    m->unrolls = false;
    m->root = (struct gir_view){0};
    TRY(mapper_region_rule(m, &m->region, -1, &m->root.rule));
    mapper_begin_region(m, m->like->rank);
    fill_part(m);
    return NULL;
}

/* How many columns the region has, where these are few; else 0. */
static int64_t few_columns(const struct mapper *m)
{
    const int last = m->like->rank - 1;
    int64_t n;
    if (last < 0 || !dim_is_const(m->like->dims[last], &n))
        return 0;
    if (m->region.cut >> last & 1)
        n = m->region.end[last] - m->region.begin[last];
    return n >= 2 && n <= GIR_MAX_FIELDS ? n : 0;
}

/*
 * A part in which each column of the last axis is computed beside the others; not yet its kernel.
 */
static tssa_status *make_unrolled(struct mapper *m, int64_t columns)
{
    uint32_t steps[GIR_MAX_FIELDS][GIR_MAX_ARGS];
    const struct rule *rules[GIR_MAX_FIELDS], *records;
    const int axis = m->like->rank - 1;
    const bool all = !(m->region.cut >> axis & 1);
    const int first = all ? 0 : (int)m->region.begin[axis];
    m->unrolls = true;
    m->active = NULL;
    mapper_begin_region(m, axis);
    TRY(mapper_region_rule(m, &m->region, -1, &records));
    for (int64_t c = 0; c < columns; c++) {
        TRY(mapper_region_rule(m, &m->region, first + (int)c, &rules[c]));
        m->root = (struct gir_view){.rule = rules[c]};
        evaluate_results(m, steps[c]);
    }
    for (uint32_t i = 0; i < m->fuse->n_results; i++)
        for (int64_t c = 0; c < columns && !m->maker.why; c++)
            if (steps[c][i] != GIR_NONE)
                mapper_store(m, ir_operand(ir_block_return(m->body), i), i,
                             all ? records : rules[c], all ? (uint32_t)c : 0,
                             all ? (uint32_t)columns : 1, steps[c][i]);
    mapper_finish_args(m);
    return NULL;
}

/* One part, of the columns like those of the reduction. */
static tssa_status *make_columns(struct mapper *m, const struct ir_op *reduction)
{
    m->active = NULL;
    m->unrolls = false;
    mapper_begin_part(m, ir_operand(reduction, 0)->type->rank);
    TRY(mapper_begin_columns(m, reduction));
    fill_part(m);
    mapper_finish_columns(m);
    return m->maker.why ? NULL : mapper_finish_part(m);
}

/* ---- Running sums ---------------------------------------------------------------------------- */

/* One part, of the columns along which sums run. */
static tssa_status *make_scans(struct mapper *m, const struct ir_op *scan)
{
    m->active = NULL;
    m->unrolls = false;
    mapper_begin_part(m, m->like->rank);
    TRY(mapper_begin_scans(m, scan));
    fill_part(m);
    mapper_finish_scans(m);
    return m->maker.why ? NULL : mapper_finish_part(m);
}

/* ---- Which parts ----------------------------------------------------------------------------- */

/* Is it there after the run as it was before? */
static bool is_lasting(const struct ir_value *value)
{
    return ir_value_constant(value) || (value->block && !value->block->owner);
}

/* Is a result what assigns have made of an operand? They can write into it, unless that is what the
 * graph is given, or a constant. */
static bool writes_operand(const struct mapper *m)
{
    const struct ir_op *ret = ir_block_return(m->body);
    for (uint32_t i = 0; i < m->fuse->n_results; i++) {
        const struct ir_value *value = ir_operand(ret, i);
        while (value->op && ir_op_is(value->op, IR_OP_assign))
            value = ir_operand(value->op, 0);
        if (m->fuse->results[i].wanted && value->block && !is_lasting(ir_fuse_operand(value)))
            return true;
    }
    return false;
}

static bool has_op(const struct mapper *m, enum ir_op_id id)
{
    for (const struct ir_op *op = m->body->first; op; op = op->next)
        if (ir_op_is(op, id))
            return true;
    return false;
}

static bool keeps(const struct ir_op *fuse)
{
    for (const struct ir_op *op = ir_fuse_body(fuse)->first; op; op = op->next)
        if (ir_fuse_keeps(op))
            return true;
    return false;
}

static bool has_assigns(const struct mapper *m)
{
    return has_op(m, IR_OP_assign);
}

/* Another try. */
static void forget_why(struct mapper *m)
{
    m->maker.why = NULL;
    m->is_cut = false;
}

/* Rows of fewer elements leave most of a vector empty. */
#define SHORT_ROW 24

/* The part, or one by columns where its rows would be short. */
static tssa_status *make_better(struct mapper *m)
{
    const int last = m->like->rank - 1;
    const int64_t columns = few_columns(m);
    TRY(make_plain(m));
    if (m->maker.why || has_assigns(m) || last < 0 || m->part->space.dims[last] < 2 ||
        m->part->space.dims[last] > SHORT_ROW ||
        !mapper_has_short_rows(m, m->part->space.dims[last]))
        return NULL;
    if (columns) {
        TRY(make_unrolled(m, columns));
        if (!m->maker.why || m->status)
            return NULL;
        forget_why(m);
        TRY(make_plain(m));
    }
    if (m->region.cut >> last & 1)
        mapper_refuse(m, "pieces of a Concat are short rows");
    return NULL;
}

/* Parts of a region of results: one, or where pieces of a Concat meet in it, those of what lies on
 * either side. */
static tssa_status *make_region(struct mapper *m, struct mapper_region region)
{
    m->region = region;
    if (m->parts->n == GIR_MAX_PARTS) {
        mapper_refuse(m, "a Concat has more pieces than kernels may have");
        return NULL;
    }
    TRY(make_better(m));
    if (!m->maker.why)
        return mapper_finish_part(m);
    if (!m->is_cut || m->status)
        return NULL;
    forget_why(m);
    const int axis = m->cut_axis;
    if (!(region.cut >> axis & 1)) {
        region.cut |= 1u << axis;
        region.begin[axis] = 0;
        (void)dim_is_const(m->like->dims[axis], &region.end[axis]);
    }
    struct mapper_region rest = region;
    region.end[axis] = rest.begin[axis] = m->cut_at;
    TRY(make_region(m, region));
    return m->maker.why ? NULL : make_region(m, rest);
}

static tssa_status *make_parts(struct mapper *m)
{
    if (writes_operand(m)) {
        mapper_refuse(m, "assigns write into what it reads");
        return NULL;
    }
    TRY(make_region(m, (struct mapper_region){0}));
    for (const struct ir_op *op = m->body->first; op && !m->maker.why; op = op->next)
        if (ir_op_is(op, IR_OP_assign))
            TRY(make_assigned(m, op));
    return NULL;
}

/* ---- The op ---------------------------------------------------------------------------------- */

/* All results have the same dims. NULL: they have not, or there is none. */
static const struct ir_type *find_same(const struct ir_op *fuse)
{
    const struct ir_op *ret = ir_block_return(ir_fuse_body(fuse));
    const struct ir_type *like = NULL;
    for (uint32_t i = 0; i < fuse->n_results; i++) {
        if (!fuse->results[i].wanted)
            continue;
        const struct ir_op *keeper = mapper_keeper(ir_operand(ret, i));
        const struct ir_type *type = keeper ? ir_fuse_mask(keeper)->type : ir_operand(ret, i)->type;
        if (type->kind != TYPE_TENSOR || type->rank < 0 || (like && like->rank != type->rank))
            return NULL;
        like = like ? like : type;
        for (int k = 0; k < type->rank; k++)
            if (type->dims[k] != like->dims[k])
                return NULL;
    }
    return like;
}

/* Of columns, the dims of what they come to. */
static const struct ir_type *find_like(const struct mapper *m)
{
    bool any;
    const struct ir_op *reduction = mapper_find_reduction(m, &any);
    if (!any || !reduction)
        return find_same(m->fuse);
    return mapper_fits_columns(m, reduction) ? reduction->results[0].type : NULL;
}

static const char *find_problem(const struct mapper *m)
{
    uint32_t n = 0, computed = 0;
    for (const struct ir_op *op = m->body->first; op; op = op->next) {
        n++;
        computed += op->info->cls == IR_CLASS_ELEMENTWISE || op->info->reduction ||
                    ir_column_axis(op) >= 0 || ir_scan_axis(op) >= 0;
    }
    if (!computed)
        return "it only moves elements";
    if (n > MOST_OPS || m->fuse->n_operands > GIR_MAX_ARGS || m->fuse->n_results > GIR_MAX_ARGS)
        return "it is longer than kernels may be";
    return m->like ? NULL : "the shapes of what it computes are not the same";
}

static void drop_parts(struct gir_parts *parts)
{
    for (uint32_t i = 0; i < parts->n; i++)
        allocator_free(parts->allocator, parts->parts[i].kernel);
    parts->n = 0;
}

/* By what is reduced, where anything is. Else all in one by columns, where assigns or Concats make
 * these of sources of their own. */
static tssa_status *choose_parts(struct mapper *m)
{
    if (m->loop)
        return mapper_make_loop(m);
    const int64_t columns = few_columns(m);
    bool any, sums;
    const struct ir_op *reduction = mapper_find_reduction(m, &any),
                       *scan = mapper_find_scan(m, &sums);
    if (sums && (!scan || any || has_assigns(m) || keeps(m->fuse))) {
        mapper_refuse(m, "its running sums are not of the same columns");
        return NULL;
    }
    if (sums)
        return make_scans(m, scan);
    if (keeps(m->fuse) && any) {
        mapper_refuse(m, "what elements are kept of is reduced");
        return NULL;
    }
    if (keeps(m->fuse))
        return mapper_make_kept(m);
    if (any && (!reduction || has_assigns(m))) {
        mapper_refuse(m, "its reductions are not of the same columns");
        return NULL;
    }
    if (any)
        return make_columns(m, reduction);
    if (columns && (has_assigns(m) || has_op(m, IR_OP_Concat))) {
        TRY(make_unrolled(m, columns));
        if (!m->maker.why)
            return mapper_finish_part(m);
        if (m->status)
            return NULL;
        forget_why(m);
    }
    return make_parts(m);
}

static tssa_status *build(struct mapper *m)
{
    gir_number_values(m->body, &m->first_value, &m->n_values);
    m->maker.capacity = GIR_MAX_CODES;
    m->maker.codes = allocator_alloc(m->allocator, GIR_MAX_CODES * sizeof *m->maker.codes);
    m->heads = allocator_calloc(m->allocator, m->n_values + 1u, sizeof *m->heads);
    m->numbers = allocator_calloc(m->allocator, GIR_MAX_CODES, sizeof *m->numbers);
    TRY_ALLOC(m->maker.codes);
    m->order = allocator_calloc(m->allocator, m->n_values + 1u, sizeof *m->order);
    TRY_ALLOC(m->heads);
    m->marked = allocator_calloc(m->allocator, m->n_values + 1u, sizeof *m->marked);
    TRY_ALLOC(m->order);
    TRY_ALLOC(m->marked);
    TRY_ALLOC(m->numbers);
    uint32_t n = 0;
    for (const struct ir_op *op = m->body->first; op; op = op->next, n++)
        for (uint32_t i = 0; i < op->n_results; i++)
            m->order[op->results[i].id - m->first_value] = n;
    return choose_parts(m);
}

static tssa_status *build_all(struct mapper *m)
{
    tssa_status *status = NULL;
    m->maker.why = find_problem(m);
    vec_init(&m->seen, m->allocator);
    if (!m->maker.why)
        status = build(m);
    allocator_free(m->allocator, m->maker.codes);
    allocator_free(m->allocator, m->heads);
    allocator_free(m->allocator, m->order);
    allocator_free(m->allocator, m->marked);
    allocator_free(m->allocator, m->numbers);
    vec_free(&m->seen);
    if (!status)
        return m->status;
    tssa_status_free(m->status);
    return status;
}

bool gir_has_maps(const struct ir_op *fuse)
{
    if (ir_fuse_loop(fuse))
        return true;
    for (const struct ir_op *op = ir_fuse_body(fuse)->first; op; op = op->next)
        if (ir_op_is(op, IR_OP_access) || ir_op_is(op, IR_OP_assign) ||
            ir_op_is(op, IR_OP_Concat) || ir_op_is(op, IR_OP_Trilu) || ir_op_is(op, IR_OP_Range) ||
            ir_column_axis(op) >= 0 || ir_scan_axis(op) >= 0 || ir_fuse_keeps(op))
            return true;
    return false;
}

tssa_status *gir_build_maps(const struct ir_op *fuse, const tssa_allocator *allocator,
                            struct gir_parts **parts, const char **why)
{
    struct mapper *m = allocator_calloc(allocator, 1, sizeof *m);
    TRY_ALLOC(m);
    *m = (struct mapper){.fuse = fuse, .loop = ir_fuse_loop(fuse), .allocator = allocator};
    m->body = ir_fuse_body(m->loop ? ir_fuse_iteration(m->loop) : fuse);
    m->like = m->loop ? mapper_carried(m->loop) : find_like(m);
    m->parts = allocator_calloc(allocator, 1, sizeof *m->parts);
    tssa_status *status = m->parts ? NULL : status_out_of_memory();
    if (m->parts) {
        m->parts->allocator = allocator;
        status = build_all(m);
    }
    *why = m->maker.why;
    *parts = m->parts;
    if (status || *why) {
        gir_parts_free(m->parts);
        *parts = NULL;
    }
    allocator_free(allocator, m);
    return status;
}

void gir_parts_free(struct gir_parts *parts)
{
    if (!parts)
        return;
    drop_parts(parts);
    allocator_free(parts->allocator, parts);
}
