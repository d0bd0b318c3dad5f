/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of fuse ops with accesses and assigns; see maps.h. */
#include "gir/maps.h"

#include <string.h>

#include "gir/mapper.h"
#include "ir/fuse.h"
#include "ir/row.h"

#define MOST_OPS 1024 /* of a block: evaluation is recursive */

/* ---- Parts ----------------------------------------------------------------------------------- */

/* Axes that anything has. */
static uint32_t all_axes(const struct mapper *m)
{
    uint32_t all = 0;
    for (uint32_t i = 0; i < m->n_args; i++)
        all |= m->part->maps[i].axes;
    return all;
}

/* The innermost one, of elements. */
static uint32_t innermost(const struct mapper *m)
{
    const int column = m->part->space.column;
    const uint32_t all = all_axes(m) & ~(column < 0 ? 0 : 1u << column);
    uint32_t axis = 0;
    for (uint32_t bit = 1; bit <= all; bit <<= 1)
        if (all & bit)
            axis = bit;
    return axis;
}

/* Is a row of the part no more than the columns of its last axis, since there is an argument that
 * lies elsewhere behind them? */
static bool has_short_rows(const struct mapper *m, int64_t columns)
{
    const uint32_t all = all_axes(m);
    const int last = m->part->space.rank - 1;
    int next = last - 1;
    while (next >= 0 && !(all >> next & 1))
        next--;
    if (next < 0 || !(all >> last & 1))
        return false;
    for (uint32_t i = 0; i < m->n_args; i++) {
        const bool has = m->part->maps[i].axes >> last & 1;
        if (has != (m->part->maps[i].axes >> next & 1) ||
            (has && m->apart[i][next] != m->apart[i][last] * columns))
            return true;
    }
    return false;
}

void mapper_finish_args(struct mapper *m)
{
    const uint32_t inner = innermost(m);
    uint32_t told = m->part->space.trips ? 1u << m->part->space.column : 0;
    for (int i = 0; i < m->part->space.rank; i++)
        told |= m->part->space.dims[i] >= 0 ? 1u << i : 0;
    for (uint32_t i = 0; i < m->n_args; i++) {
        struct gir_arg *arg = &m->args[i];
        const bool has = m->part->maps[i].axes & inner, close = m->side_by_side[i] & inner;
        arg->moves = has              ? close ? GIR_SIDE_BY_SIDE : GIR_STRIDED
                     : arg->is_result ? GIR_SIDE_BY_SIDE
                                      : GIR_STAYS;
        if (arg->fields > 1 && arg->moves == GIR_STRIDED)
            mapper_refuse(m, "records are not side by side");
        if (gir_tells_size(&m->part->maps[i]) && (!arg->is_result || m->parts->n > 0))
            told |= m->part->maps[i].axes;
    }
    for (uint32_t i = 0; i < m->n_args; i++)
        if (m->part->maps[i].axes & ~told)
            mapper_refuse(m, "how shapes are broadcast is not known");
}

tssa_status *mapper_finish_part(struct mapper *m)
{
    const size_t args = m->n_args * sizeof(struct gir_arg);
    gir_drop_dead(&m->maker, m->numbers);
    const size_t codes = m->maker.n * sizeof(struct gir_code);
    struct gir_kernel *made = allocator_alloc(m->allocator, sizeof *made + args + codes);
    TRY_ALLOC(made);
    *made = (struct gir_kernel){.magic = GIR_MAGIC,
                                .size = (uint32_t)(sizeof *made + args + codes),
                                .n_args = m->n_args,
                                .n_codes = m->maker.n,
                                .columns = m->part->space.column >= 0,
                                .checks = m->checks};
    memcpy(made + 1, m->args, args);
    memcpy((char *)(made + 1) + args, m->maker.codes, codes);
    m->part->kernel = made;
    m->parts->n++;
    return NULL;
}

void mapper_begin_part(struct mapper *m, int rank)
{
    m->part = &m->parts->parts[m->parts->n];
    *m->part =
        (struct gir_part){.space = {.rank = rank, .result_rank = m->like->rank, .column = -1}};
    for (int i = 0; i < TSSA_MAX_RANK; i++)
        m->part->space.dims[i] = m->part->space.result_dims[i] = -1;
    for (int i = 0; i < m->like->rank; i++)
        (void)dim_is_const(m->like->dims[i], &m->part->space.result_dims[i]);
    m->n_args = 0;
    m->checks = false;
    m->maker.n = 0;
    m->seen.count = 0;
    memset(m->heads, 0, m->n_values * sizeof *m->heads);
}

/* The same of the region of results. */
static void begin_region(struct mapper *m, int rank)
{
    mapper_begin_part(m, rank);
    for (int i = 0; i < rank; i++)
        m->part->space.dims[i] = m->region.cut >> i & 1 ? m->region.end[i] - m->region.begin[i]
                                                        : m->part->space.result_dims[i];
}

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

/* The op that keeps what the value is; NULL: it is all there. */
static const struct ir_op *keeper_of(const struct ir_value *value)
{
    return value->op && ir_fuse_keeps(value->op) ? value->op : NULL;
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
    begin_region(m, m->like->rank);
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
    begin_region(m, axis);
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

/* ---- Masks ----------------------------------------------------------------------------------- */

_Static_assert(IR_FUSE_COLUMNS <= GIR_MAX_FIELDS, "a row that is kept is a record");

/* A result, or what it keeps elements or rows of. */
struct kept {
    uint32_t fields; /* 0: nobody wants it, or it is copied */
    uint32_t steps[GIR_MAX_FIELDS];
    uint32_t where; /* GIR_NONE: all are there */
};

/* Of what the op keeps, a column of several, or all there is. */
static uint32_t evaluate_column(struct mapper *m, const struct ir_op *keeper, uint32_t column,
                                uint32_t columns)
{
    const struct rule_param params[] = {rule_constant(1), rule_constant(column)};
    const struct rule_step select = {RULE_SELECT, 2, params};
    struct gir_view view = {0};
    if (ir_op_is(keeper, IR_OP_NonZero))
        return gir_make(&m->maker, (struct gir_code){.op = GIR_POSITION, .type = TSSA_INT64});
    if (columns > 1) {
        view.rule = rule_create(m->body->graph, 1, &select);
        if (!mapper_check(m, view.rule ? NULL : status_out_of_memory(), true))
            return 0;
    }
    return mapper_evaluate(m, ir_operand(keeper, 0), view);
}

/* Are rows kept that are there already? */
static bool is_copied(const struct ir_op *keeper)
{
    const struct ir_value *x = ir_operand(keeper, 0);
    return x->type->rank > 1 && !x->op;
}

static void evaluate_kept(struct mapper *m, const struct ir_value *value, struct kept *kept)
{
    const struct ir_op *keeper = keeper_of(value);
    kept->where = GIR_NONE;
    if (!keeper) {
        kept->fields = 1;
        kept->steps[0] = mapper_evaluate(m, value, m->root);
        return;
    }
    if (!is_copied(keeper)) {
        kept->fields = (uint32_t)ir_fuse_kept_columns(keeper);
        if (!kept->fields)
            mapper_refuse(m, "rows that are kept are longer than kernels compute them");
        for (uint32_t c = 0; c < kept->fields; c++)
            kept->steps[c] = evaluate_column(m, keeper, c, kept->fields);
    }
    kept->where =
        gir_make_as(&m->maker, mapper_evaluate(m, ir_fuse_mask(keeper), m->root), TSSA_BOOL);
}

static void store_kept(struct mapper *m, uint32_t index, const struct kept *kept)
{
    const struct ir_value *value = ir_operand(ir_block_return(m->body), index);
    for (uint32_t c = 0; c < kept->fields && !m->maker.why; c++)
        if (kept->where == GIR_NONE)
            mapper_store(m, value, index, NULL, 0, 1, kept->steps[c]);
        else
            mapper_keep(m, value, index, c, kept->fields, kept->steps[c], kept->where);
}

#define SHORT_ROW_BYTES 32

/* Are the rows of what is kept so short that they are best found by their numbers? Of longer ones
 * several side by side are best copied at once. */
static bool has_short_records(const struct ir_op *keeper)
{
    const struct ir_type *type = ir_operand(keeper, 0)->type;
    int64_t bytes = (int64_t)dtype_info(type->dtype)->size, dim;
    for (int i = ir_fuse_kept_axis(keeper) + 1; i < type->rank; i++)
        if (!dim_is_const(type->dims[i], &dim) || !i64_mul(bytes, dim, &bytes))
            return false;
    return bytes <= SHORT_ROW_BYTES;
}

/* The argument that tells which rows are kept where the step is true, made where there is none. */
static uint32_t teller_of(struct mapper *m, const struct ir_op *keeper, uint32_t where)
{
    for (uint32_t i = 0; has_short_records(keeper) && i < m->maker.n; i++) {
        const struct gir_code *code = &m->maker.codes[i];
        if (code->op == GIR_KEEP && code->operands[1] == where &&
            m->maker.codes[code->operands[0]].op == GIR_POSITION)
            return gir_arg_of(code);
    }
    return mapper_store_mask(m, where);
}

/* Behind all that is stored. */
static void copy_kept(struct mapper *m, uint32_t index, const struct kept *kept)
{
    const struct ir_op *keeper = keeper_of(ir_operand(ir_block_return(m->body), index));
    if (!keeper || kept->fields || m->maker.why)
        return;
    const struct gir_copy copy = {.operand = ir_operand(keeper, 0)->index,
                                  .result = index,
                                  .axis = ir_fuse_kept_axis(keeper),
                                  .told_by = teller_of(m, keeper, kept->where)};
    m->part->copies[m->part->n_copies++] = copy;
}

/* Does the kernel keep anything itself? Rows that are copied by a mask take an operator no longer.
 */
static bool keeps_here(const struct mapper *m)
{
    for (uint32_t i = 0; i < m->n_args; i++)
        if (m->args[i].is_kept)
            return true;
    return false;
}

/* One part, of elements that a mask has; what has several columns is read by column. */
static tssa_status *make_kept(struct mapper *m)
{
    const struct ir_op *ret = ir_block_return(m->body);
    struct kept kept[GIR_MAX_ARGS] = {{0}};
    m->active = NULL;
    m->unrolls = true;
    m->root = (struct gir_view){0};
    m->region = (struct mapper_region){0};
    begin_region(m, m->like->rank);
    for (uint32_t i = 0; i < m->fuse->n_results && !m->maker.why; i++)
        if (m->fuse->results[i].wanted)
            evaluate_kept(m, ir_operand(ret, i), &kept[i]);
    for (uint32_t i = 0; i < m->fuse->n_results; i++)
        store_kept(m, i, &kept[i]);
    if (!m->maker.why && !keeps_here(m))
        mapper_refuse(m, "all that is kept of it are rows that it does not compute");
    for (uint32_t i = 0; i < m->fuse->n_results; i++)
        if (m->fuse->results[i].wanted)
            copy_kept(m, i, &kept[i]);
    mapper_finish_args(m);
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
        m->part->space.dims[last] > SHORT_ROW || !has_short_rows(m, m->part->space.dims[last]))
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
        const struct ir_op *keeper = keeper_of(ir_operand(ret, i));
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
        return make_kept(m);
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
