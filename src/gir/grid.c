/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a fuse op as a grid: over what each goes, and what it stores; see grid.h. */
#include "gir/grid.h"

#include <string.h>

#include "gir/build.h"
#include "gir/form.h"
#include "gir/grid_maker.h"
#include "ir/fuse.h"
#include "ir/row.h"
#include "ir/update.h"

/* ---- What goes over what --------------------------------------------------------------------- */

/* What is stored is a result, or behind them what a stage computes for others alone. */
static uint32_t count_stored(const struct grid_maker *m)
{
    return m->fuse->n_results + m->grid->n_inner;
}

static bool is_inner(const struct grid_maker *m, uint32_t stored)
{
    return grid_inner_cut(m, stored) != NULL;
}

/* The first op that reduces, or sums up, of those that the value is computed of; NULL: there is
 * none. `marked`: room for a mark per value of the block, whose ids begin with `first`: those are
 * marked. */
static const struct ir_op *find_reduction(const struct grid_maker *m, const struct ir_value *value,
                                          bool *marked, uint32_t *first_id)
{
    uint32_t first, n;
    gir_number_values(m->body, &first, &n);
    *first_id = first;
    memset(marked, 0, n * sizeof *marked);
    marked[value->id - first] = true;
    const struct ir_op *reduction = NULL;
    for (const struct ir_op *op = m->body->last; op; op = op->prev) {
        bool needed = false;
        for (uint32_t i = 0; i < op->n_results; i++)
            needed |= marked[op->results[i].id - first];
        if (needed && &op->results[0] != value && grid_cut_of(m, &op->results[0])) {
            marked[op->results[0].id - first] = false; /* it is there */
            continue;
        }
        if (needed && (grid_reduces(op) || ir_scan_axis(op) >= 0))
            reduction = op;
        for (uint32_t i = 0; needed && i < op->n_operands; i++)
            if (ir_operand(op, i))
                marked[ir_operand(op, i)->id - first] = true;
    }
    return reduction;
}

/* Over what the result goes: what the first reduction that it is computed of reduces, or its own
 * elements. */
static bool set_space(struct grid_maker *m, uint32_t result, bool *marked,
                      struct gir_grid_part *part)
{
    const struct ir_value *value = grid_stored_value(m, result);
    uint32_t first;
    const struct ir_op *reduction = find_reduction(m, value, marked, &first);
    const struct dim *terms = grid_terms(m, marked, first);
    if (terms) /* what is reduced is a row of them */
        reduction = NULL;
    const struct ir_type *like = reduction ? ir_operand(reduction, 0)->type : value->type;
    if (like->kind != TYPE_TENSOR || like->rank < 0 || (terms && like->rank == TSSA_MAX_RANK))
        return false;
    part->rank = like->rank;
    part->row = reduction ? ir_row_axes(reduction) : 0;
    part->column = reduction ? ir_column_axis(reduction) : -1;
    if (reduction && ir_scan_axis(reduction) >= 0) {
        part->column = ir_scan_axis(reduction);
        part->scan = ir_attr_int(reduction, "reverse", 0) ? -1 : 1;
    }
    for (int i = 0; i < like->rank; i++)
        part->dims[i] = like->dims[i];
    if (terms) {
        part->sums = true;
        part->row = 1;
        part->dims[part->rank++] = terms;
    }
    return true;
}

static bool same_space(const struct gir_grid_part *a, const struct gir_grid_part *b)
{
    bool same = a->rank == b->rank && a->row == b->row && a->column == b->column &&
                a->scan == b->scan && a->sums == b->sums && a->stage == b->stage;
    for (int i = 0; same && i < a->rank; i++)
        same = a->dims[i] == b->dims[i];
    return same;
}

static bool is_stored_in(const struct grid_maker *m, uint32_t stored, uint32_t stage)
{
    return (is_inner(m, stored) || m->fuse->results[stored].wanted) &&
           (!m->n_cuts || grid_stage_of(m, grid_stored_value(m, stored)) == stage);
}

/* The part of each result that is computed in the stage: those that go over the same are one.
 * part_of[i]: GIR_NONE where nobody wants it. */
static void find_parts(struct grid_maker *m, uint32_t stage, uint32_t *part_of, bool *marked)
{
    for (uint32_t i = 0; i < count_stored(m); i++) {
        struct gir_grid_part part = {.stage = stage};
        if (!is_stored_in(m, i, stage))
            continue;
        if (m->walks ? !grid_loop_space(m, i, &part) : !set_space(m, i, marked, &part)) {
            grid_refuse(m, "the shape of what it computes is not known");
            return;
        }
        uint32_t k = 0;
        while (k < m->grid->n && !same_space(&m->grid->parts[k], &part))
            k++;
        if (k == GIR_GRID_MAX_PARTS) {
            grid_refuse(m, "it has more parts than kernels may have");
            return;
        }
        m->grid->parts[k] = part;
        m->grid->n += k == m->grid->n;
        part_of[i] = k;
    }
}

/* ---- Results --------------------------------------------------------------------------------- */

/* The place in the region of an assign is one in what that writes into. */
static const struct dim *const *leave_region(struct grid_maker *m, const struct ir_op *assign,
                                             struct grid_place *place)
{
    grid_through(m, assign, place);
    return assign->results[0].type->dims;
}

static void evaluate_result(struct grid_maker *m, uint32_t index, struct grid_stored *stored)
{
    if (m->walks) {
        grid_loop_result(m, index, stored);
        return;
    }
    const struct ir_value *value = m->stored = grid_stored_value(m, index);
    const struct dim *const *dims = value->type->dims;
    struct grid_place place = m->space;
    uint32_t is_there = GIR_NONE, before = 0;
    const bool inner = is_inner(m, index), updates = !inner && grid_updates(m, index),
               begins = !inner && grid_begins_as(m, index, &before);
    if (m->number == GIR_NONE && !grid_find_place(m, value, &place, &is_there)) {
        grid_refuse(m, "where what it reduces is stored is not known");
        return;
    }
    m->active = is_there;
    stored->value = grid_element(m, grid_evaluate(m, value, &place), value->type->dtype);
    if (updates)
        dims = leave_region(m, grid_result_value(m, index)->op, &place);
    m->active = GIR_NONE;
    stored->number = grid_flatten(m, &place, dims);
    if (is_there != GIR_NONE)
        stored->number = grid_choose(m, is_there, stored->number, grid_constant(m, -1));
    stored->arg = grid_arg(m, inner ? GIR_INNER : GIR_OF_OP,
                           inner ? index - m->fuse->n_results : index, true, value->type->dtype);
    m->part->wholes[stored->arg].updates = begins ? before + 1 : 0;
    stored->inside = grid_is_sure(m, stored->arg, stored->number, dims, place.rank);
    stored->type = value->type->dtype == TSSA_BOOL ? TSSA_UINT8 : value->type->dtype;
}

static void store(struct grid_maker *m, const struct grid_stored *stored)
{
    gir_make(&m->maker, (struct gir_code){.op = GIR_STORE_AT,
                                          .type = (uint8_t)stored->type,
                                          .inside = stored->inside,
                                          .operands = {stored->value, stored->number},
                                          .bits = gir_bits(stored->arg, 0)});
}

/* ---- Parts ----------------------------------------------------------------------------------- */

/* Where an element is by the number of its row and its position in that. */
static void begin_rows(struct grid_maker *m, uint32_t row, uint32_t position)
{
    const struct gir_grid_part *part = m->part;
    const int outer = part->rank - part->row;
    struct grid_place last;
    grid_know_below(m, row, grid_count(m, part->dims, outer));
    grid_know_below(m, position, grid_count(m, part->dims + outer, part->row));
    grid_unflatten(m, row, outer, part->dims, &m->space);
    grid_unflatten(m, position, part->row, part->dims + outer, &last);
    memcpy(&m->space.at[outer], last.at, (size_t)part->row * sizeof *last.at);
}

static void begin_columns(struct grid_maker *m, uint32_t row, uint32_t position)
{
    const struct gir_grid_part *part = m->part;
    const struct dim *others[TSSA_MAX_RANK];
    struct grid_place column;
    int n = 0;
    if (part->scan < 0)
        row = grid_sub(m, grid_sub(m, grid_dim(m, part->dims[part->column]), grid_constant(m, 1)),
                       row);
    for (int i = 0; i < part->rank; i++)
        if (i != part->column)
            others[n++] = part->dims[i];
    grid_know_below(m, row, part->dims[part->column]);
    grid_know_below(m, position, grid_count(m, others, n));
    grid_unflatten(m, position, n, others, &column);
    for (int i = 0, k = 0; i < part->rank; i++)
        m->space.at[i] = i == part->column ? row : column.at[k++];
}

static void begin_sums(struct grid_maker *m, uint32_t row, uint32_t term)
{
    const struct gir_grid_part *part = m->part;
    const int outer = part->rank - 1;
    grid_know_below(m, row, grid_count(m, part->dims, outer));
    grid_know_below(m, term, part->dims[outer]);
    grid_unflatten(m, row, outer, part->dims, &m->space);
}

static void begin_elements(struct grid_maker *m, uint32_t position)
{
    const struct gir_grid_part *part = m->part;
    grid_know_below(m, position, grid_count(m, part->dims, part->rank));
    grid_unflatten(m, position, part->rank, part->dims, &m->space);
}

static void begin_part(struct grid_maker *m)
{
    const struct gir_grid_part *part = m->part;
    const uint32_t row = gir_make(&m->maker, (struct gir_code){.op = GIR_ROW, .type = TSSA_INT64}),
                   position = gir_make(&m->maker,
                                       (struct gir_code){.op = GIR_POSITION, .type = TSSA_INT64});
    m->number = part->sums ? row : part->row || part->column >= 0 ? GIR_NONE : position;
    m->term = position;
    if (m->loop && !m->walks)
        m->row = grid_make_trip(m);
    if (m->walks)
        grid_loop_part(m, row, position);
    else if (part->sums)
        begin_sums(m, row, position);
    else if (part->row)
        begin_rows(m, row, position);
    else if (part->column >= 0)
        begin_columns(m, row, position);
    else
        begin_elements(m, position);
    m->space.rank = part->rank - (m->walks || part->sums);
}

static uint32_t count_reductions(const struct gir_maker *maker)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < maker->n; i++)
        n += maker->codes[i].op == GIR_REDUCE;
    return n;
}

static tssa_status *copy_out(struct grid_maker *m)
{
    const size_t args = m->n_args * sizeof(struct gir_arg),
                 codes = m->maker.n * sizeof(struct gir_code);
    struct gir_kernel *made = allocator_alloc(m->grid->allocator, sizeof *made + args + codes);
    TRY_ALLOC(made);
    *made = (struct gir_kernel){.magic = GIR_MAGIC,
                                .size = (uint32_t)(sizeof *made + args + codes),
                                .n_args = m->n_args,
                                .n_codes = m->maker.n,
                                .whole_rows = m->part->row > 0,
                                .columns = m->part->column >= 0,
                                .grid = 1,
                                .stage = m->n_cuts ? m->part->stage + 1 : 0,
                                .form = grid_find_form(m)};
    for (uint32_t i = 0; made->form == GIR_FORM_ROWS_ACROSS && i < m->maker.n; i++)
        m->maker.codes[i].inside = 0; /* threads of a tile read rows and terms that there are not */
    memcpy(made + 1, m->args, args);
    memcpy((char *)(made + 1) + args, m->maker.codes, codes);
    m->part->kernel = made;
    return NULL;
}

static tssa_status *make_part(struct grid_maker *m, uint32_t number, const uint32_t *part_of,
                              struct grid_stored *stored)
{
    uint32_t n = 0;
    m->part = &m->grid->parts[number];
    m->maker.n = 0;
    m->n_args = 0;
    m->seen.count = m->below.count = 0;
    m->active = GIR_NONE;
    m->across = false;
    begin_part(m);
    for (uint32_t i = 0; i < count_stored(m) && !m->maker.why; i++)
        if (part_of[i] == number)
            evaluate_result(m, i, &stored[n++]);
    if (m->walks)
        grid_end_loop(m);
    for (uint32_t i = 0; i < n && !m->maker.why; i++)
        store(m, &stored[i]);
    if (m->maker.why)
        return NULL;
    gir_drop_dead(&m->maker, m->numbers);
    if (count_reductions(&m->maker) > GIR_MAX_REDUCTIONS) {
        grid_refuse(m, "it has more reductions than kernels may have");
        return NULL;
    }
    return copy_out(m);
}

/* Of parts that are made: which dims are the same is known by their names in the graph. */
static void tell_spaces(struct grid_maker *m)
{
    for (uint32_t i = 0; i < m->grid->n; i++)
        for (int a = m->grid->parts[i].trips ? 1 : 0; a < m->grid->parts[i].rank && !m->maker.why;
             a++) {
            const struct dim *told = grid_told(m, m->grid->parts[i].dims[a]);
            if (!told)
                grid_refuse(m, "nobody tells how much there is of what it reduces");
            m->grid->parts[i].dims[a] = told;
        }
}

/* All that is stored has a part, of all stages that there may be. */
static void refuse_late_stages(struct grid_maker *m, const uint32_t *part_of)
{
    for (uint32_t i = 0; i < count_stored(m) && !m->maker.why; i++)
        if (part_of[i] == GIR_NONE && (is_inner(m, i) || m->fuse->results[i].wanted))
            grid_refuse(m, "it has more stages than a launch may have");
}

static tssa_status *make_all(struct grid_maker *m, uint32_t *part_of, bool *marked,
                             struct grid_stored *stored)
{
    tssa_status *status = NULL;
    for (uint32_t i = 0; i < count_stored(m); i++)
        part_of[i] = GIR_NONE;
    if (!m->loop || (grid_begin_loop(m) && (m->walks || grid_begin_trips(m))))
        for (uint32_t i = 0; i < (m->n_cuts ? GIR_MAX_STAGES : 1) && !m->maker.why; i++)
            find_parts(m, i, part_of, marked);
    refuse_late_stages(m, part_of);
    for (uint32_t i = 0; !status && !m->maker.why && i < m->grid->n; i++)
        status = make_part(m, i, part_of, stored);
    if (!status && !m->maker.why && grid_multiplies_again(m))
        grid_refuse(m, "elements of products would be computed again and again");
    if (!status)
        tell_spaces(m);
    for (uint32_t i = 0; !status && !m->maker.why && i < m->grid->n; i++)
        m->grid->parts[i].kernel->n_numbers = m->grid->n_numbers;
    for (uint32_t i = 0; !status && !m->maker.why && i < m->grid->n; i++)
        grid_find_turned(m, &m->grid->parts[i]);
    if (!status && !m->maker.why && m->n_cuts)
        grid_find_groups(m);
    return status ? status : m->status;
}

/* Of more elements than these, the highest of all has a kernel of its own, of many blocks: a row is
 * a warp's. */
#define MOST_IN_ROW 128

static bool is_long_extreme(const struct ir_op *op)
{
    const bool is_one = ir_op_is(op, IR_OP_ReduceMax) || ir_op_is(op, IR_OP_ReduceMin);
    const struct ir_type *type = is_one ? ir_operand(op, 0)->type : NULL;
    int64_t n = 1, size;
    if (!type || type->kind != TYPE_TENSOR || ir_row_axes(op) != type->rank)
        return false;
    for (int i = 0; i < type->rank; i++)
        if (!dim_is_const(type->dims[i], &size) || !i64_mul(n, size, &n))
            return false;
    return n > MOST_IN_ROW;
}

const char *gir_grid_refuses(const struct ir_op *op)
{
    const tssa_dtype dtype = op->results[0].type->dtype;
    if (grid_multiplies(op))
        return grid_product_refuses(op);
    if (op->info->cls == IR_CLASS_GATHER || ir_op_is(op, IR_OP_access) ||
        ir_op_is(op, IR_OP_assign) || ir_op_is(op, IR_OP_Concat) || ir_op_is(op, IR_OP_Trilu) ||
        ir_op_is(op, IR_OP_Range)) {
        if (!dtype_in(T_FLOAT | T_INT | T_BOOL, dtype))
            return "kernels have no such elements";
        return rule_of(op) ? grid_rule_refuses(op) : NULL;
    }
    if (is_long_extreme(op))
        return "what all elements come to is no warp's work";
    return gir_refuses(op);
}

void gir_grid_free(struct gir_grid *grid)
{
    if (!grid)
        return;
    for (uint32_t i = 0; i < grid->n; i++)
        allocator_free(grid->allocator, grid->parts[i].kernel);
    allocator_free(grid->allocator, grid);
}

static bool keeps(const struct ir_block *body)
{
    for (const struct ir_op *op = body->first; op; op = op->next)
        if (ir_fuse_keeps(op))
            return true;
    return false;
}

static const char nothing_to_hand_on[] = "there is nothing that stages would hand on";

static tssa_status *build(const struct ir_op *fuse, const struct ir_op *before, bool stages,
                          const tssa_allocator *allocator, struct gir_grid **grid, const char **why)
{
    struct grid_maker m = {.fuse = fuse, .loop = ir_fuse_loop(fuse), .before = before};
    uint32_t first, n;
    m.own = m.loop ? ir_fuse_iteration(m.loop) : fuse;
    m.body = ir_fuse_body(m.own);
    m.walks = m.loop && !stages;
    gir_number_values(m.body, &first, &n);
    vec_init(&m.seen, allocator);
    vec_init(&m.below, allocator);
    const size_t stored_most = fuse->n_results + GIR_MAX_STAGES;
    m.grid = allocator_calloc(allocator, 1, sizeof *m.grid);
    m.maker.codes = allocator_alloc(allocator, GIR_MAX_CODES * sizeof *m.maker.codes);
    m.maker.capacity = GIR_MAX_CODES;
    m.numbers = allocator_alloc(allocator, GIR_MAX_CODES * sizeof *m.numbers);
    bool *marked = allocator_alloc(allocator, (n ? n : 1) * sizeof *marked);
    uint32_t *part_of = allocator_alloc(allocator, stored_most * sizeof *part_of);
    struct grid_stored *stored = allocator_alloc(allocator, stored_most * sizeof *stored);
    tssa_status *status = NULL;
    if (keeps(m.body))
        grid_refuse(&m, "how many are kept is not known to an element");
    if (!m.grid || !m.maker.codes || !m.numbers || !marked || !part_of || !stored) {
        status = status_out_of_memory();
    } else {
        m.grid->allocator = allocator;
        if (stages && !grid_find_cuts(&m))
            grid_refuse(&m, nothing_to_hand_on);
        status = m.maker.why ? NULL : make_all(&m, part_of, marked, stored);
    }
    *why = m.maker.why;
    *grid = m.grid;
    if (status || m.maker.why) {
        gir_grid_free(m.grid);
        *grid = NULL;
    }
    allocator_free(allocator, stored);
    allocator_free(allocator, part_of);
    allocator_free(allocator, marked);
    allocator_free(allocator, m.numbers);
    allocator_free(allocator, m.maker.codes);
    vec_free(&m.seen);
    vec_free(&m.below);
    return status;
}

static bool has_products(const struct ir_block *body)
{
    return ir_block_has(body, IR_OP_MatMul) || ir_block_has(body, IR_OP_Gemm);
}

/* Without stages, if that can be. */
static tssa_status *build_either(const struct ir_op *fuse, const tssa_allocator *allocator,
                                 struct gir_grid **grid, const char **why)
{
    const char *why_not;
    const struct ir_op *loop = ir_fuse_loop(fuse);
    TRY(build(fuse, NULL, false, allocator, grid, why));
    if (*grid || !has_products(ir_fuse_body(loop ? ir_fuse_iteration(loop) : fuse)))
        return NULL;
    TRY(build(fuse, NULL, true, allocator, grid, &why_not));
    if (*grid)
        *why = NULL;
    else if (loop && why_not != nothing_to_hand_on) /* an iteration has stages */
        *why = why_not;
    return NULL;
}

tssa_status *gir_build_grid(const struct ir_op *fuse, const tssa_allocator *allocator,
                            struct gir_grid **grid, const char **why)
{
    return build_either(fuse, allocator, grid, why);
}

tssa_status *gir_build_grid_behind(const struct ir_op *fuse, const tssa_allocator *allocator,
                                   struct gir_grid **grid, const char **why)
{
    return build(fuse, ir_fuse_body(fuse)->first, false, allocator, grid, why);
}

/* ---- Sizes that do not matter ---------------------------------------------------------------- */

static bool is_made_of(const struct dim *dim, const struct dim *size)
{
    bool is_it = dim == size;
    for (uint32_t i = 0;
         !is_it && dim->kind != DIM_CONST && dim->kind != DIM_SYMBOL && i < dim->n_terms; i++)
        is_it = is_made_of(dim->terms[i], size);
    return is_it;
}

static bool goes_along(const struct gir_grid_part *part, const struct dim *size)
{
    bool good = part->rank > 0 && part->row == 0 && part->column < 0 && part->dims[0] == size;
    for (int i = 1; good && i < part->rank; i++)
        good = !is_made_of(part->dims[i], size);
    for (uint32_t i = 0; good && i < part->kernel->n_args; i++)
        good = part->wholes[i].updates == 0;
    return good;
}

static bool part_is_free_of(const struct gir_grid *grid, const struct gir_grid_part *part,
                            const struct dim *size)
{
    const struct gir_code *codes = gir_codes(part->kernel);
    bool good = goes_along(part, size);
    for (uint32_t i = 0; good && i < part->kernel->n_codes; i++)
        good = codes[i].op != GIR_NUMBER || !is_made_of(grid->numbers[codes[i].bits], size);
    return good;
}

bool gir_grid_is_free_of(const struct gir_grid *grid, const struct dim *size)
{
    bool good = grid->groups == 0;
    for (uint32_t i = 0; good && i < grid->n_claims; i++)
        good = !is_made_of(grid->claims[i].size, size) && !is_made_of(grid->claims[i].wanted, size);
    for (uint32_t i = 0; good && i < grid->n; i++)
        good = part_is_free_of(grid, &grid->parts[i], size);
    return good;
}

bool gir_is_free_of(const struct ir_op *fuse, const struct dim *size)
{
    struct gir_grid *grid;
    const char *why;
    tssa_status *status = gir_build_grid(fuse, fuse->parent->graph->allocator, &grid, &why);
    const bool good = !status && grid && gir_grid_is_free_of(grid, size);
    tssa_status_free(status);
    gir_grid_free(grid);
    return good;
}
