/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stages of a grid: products of what products are computed of. What a product needs of another one
 * is stored, by a stage before: a *cut*. Threads of a block alone meet, so what a block stores must
 * be all that it reads of that. This is proven of the parts that are made: of each group of rows,
 * which elements its kernel may read and store (grid_reach.h).
 */
#include <string.h>

#include "gir/grid_maker.h"
#include "gir/grid_reach.h"
#include "ir/fuse.h"
#include "ir/update.h"

/* One would be one block, and stages are not for what a card has to do at large. */
#define LEAST_GROUPS 2
/* What all parts reduce in a group, at most: a block does one after the other, for which a launch
 * less must make up. On an H200 attention's 19,000 took 15 us in a block for each of 12 heads, and
 * 11 in four launches. */
#define MOST_IN_GROUP (INT64_C(1) << 13)

/* ---- What is stored -------------------------------------------------------------------------- */

enum { NEEDED = 1, OF_PRODUCT = 2 };

/* Of a value of the block; NULL: it is another's. */
static uint32_t *mark_of(const struct grid_maker *m, const struct ir_value *value)
{
    uint32_t first, n;
    gir_number_values(m->body, &first, &n);
    return value && value->id - first < n ? &m->numbers[value->id - first] : NULL;
}

static bool clear_marks(const struct grid_maker *m)
{
    uint32_t first, n;
    gir_number_values(m->body, &first, &n);
    if (n > GIR_MAX_CODES)
        return false;
    memset(m->numbers, 0, n * sizeof *m->numbers);
    return true;
}

static void mark_operands(const struct grid_maker *m, const struct ir_op *op)
{
    for (uint32_t i = 0; i < op->n_operands; i++)
        if (mark_of(m, ir_operand(op, i)))
            *mark_of(m, ir_operand(op, i)) |= NEEDED;
}

static void mark_products(const struct grid_maker *m)
{
    for (const struct ir_op *op = m->body->first; op != m->body->last; op = op->next) {
        bool of_product = grid_multiplies(op);
        for (uint32_t i = 0; i < op->n_operands; i++)
            of_product |=
                mark_of(m, ir_operand(op, i)) && (*mark_of(m, ir_operand(op, i)) & OF_PRODUCT);
        for (uint32_t i = 0; i < op->n_results; i++)
            *mark_of(m, &op->results[i]) |= of_product ? OF_PRODUCT : 0;
    }
}

/* That the value is; GIR_NONE: it is none. */
static uint32_t result_of(const struct grid_maker *m, const struct ir_value *value)
{
    uint32_t i = 0;
    while (i < m->fuse->n_results && grid_returned(m, i) != value)
        i++;
    return i < m->fuse->n_results ? i : GIR_NONE;
}

/* Is it stored, if a product needs it? */
static bool is_cut(const struct grid_maker *m, const struct ir_op *op, uint32_t result)
{
    return grid_multiplies(op) ||
           (result != GIR_NONE && (*mark_of(m, &op->results[0]) & OF_PRODUCT) &&
            grid_updates(m, result));
}

static bool add_cut(struct grid_maker *m, const struct ir_op *op, uint32_t result)
{
    struct grid_cut *cut = &m->cuts[m->n_cuts];
    if (m->n_cuts == GIR_MAX_STAGES)
        return false;
    *cut = (struct grid_cut){.value = &op->results[0], .result = result, .inner = GIR_NONE};
    m->n_cuts++;
    return true;
}

bool grid_count_elements(const struct ir_type *type, int64_t *count)
{
    int64_t size;
    *count = 1;
    for (int i = 0; i < type->rank; i++)
        if (!dim_is_const(type->dims[i], &size) || __builtin_mul_overflow(*count, size, count))
            return false;
    return type->kind == TYPE_TENSOR && type->rank >= 0;
}

/* In the order of the block: what a stage needs is stored by one before it. */
static bool order_cuts(struct grid_maker *m)
{
    for (uint32_t k = m->n_cuts; k-- > 0;) {
        struct grid_cut *cut = &m->cuts[k];
        const bool is_result = cut->result != GIR_NONE;
        const bool updates = is_result && ir_op_is(cut->value->op, IR_OP_assign);
        int64_t count;
        if (!grid_count_elements(cut->value->type, &count))
            return false;
        cut->stage = grid_stage_of(m, updates ? ir_operand(cut->value->op, 1) : cut->value);
        if (cut->stage >= GIR_MAX_STAGES)
            return false;
        if (is_result)
            continue;
        cut->inner = m->grid->n_inner;
        m->grid->inner[m->grid->n_inner++] = (struct gir_inner){cut->value->type->dtype, count};
    }
    return true;
}

bool grid_find_cuts(struct grid_maker *m)
{
    if (!clear_marks(m))
        return false;
    mark_products(m);
    for (const struct ir_op *op = m->body->last; op; op = op->prev) {
        const bool needed = op->n_results == 1 && (*mark_of(m, &op->results[0]) & NEEDED);
        const uint32_t result = needed ? result_of(m, &op->results[0]) : GIR_NONE;
        const bool cut = needed && is_cut(m, op, result);
        if (cut && !add_cut(m, op, result))
            return false;
        if ((needed && !cut) || grid_multiplies(op) || grid_reduces(op))
            mark_operands(m, op);
    }
    return m->n_cuts && order_cuts(m);
}

const struct grid_cut *grid_cut_of(const struct grid_maker *m, const struct ir_value *value)
{
    for (uint32_t i = 0; i < m->n_cuts; i++)
        if (m->cuts[i].value == value)
            return &m->cuts[i];
    return NULL;
}

uint32_t grid_stage_of(const struct grid_maker *m, const struct ir_value *value)
{
    uint32_t stage = 0;
    clear_marks(m);
    if (!mark_of(m, value))
        return 0;
    *mark_of(m, value) = NEEDED;
    for (const struct ir_op *op = m->body->last; op; op = op->prev) {
        const struct grid_cut *cut =
            op->n_results == 1 && &op->results[0] != value ? grid_cut_of(m, &op->results[0]) : NULL;
        bool needed = false;
        for (uint32_t i = 0; i < op->n_results; i++)
            needed |= *mark_of(m, &op->results[i]) & NEEDED;
        if (needed && cut)
            stage = cut->stage + 1 > stage ? cut->stage + 1 : stage;
        else if (needed)
            mark_operands(m, op);
    }
    return stage;
}

/* ---- Groups ---------------------------------------------------------------------------------- */

/* Rows of the part, and elements of each; false: nobody knows how many, or they are columns. */
static bool count_part(const struct gir_grid_part *part, int64_t *rows, int64_t *n)
{
    const int outer = part->row ? part->rank - part->row : 0;
    return part->column < 0 && grid_known_count(part->dims, outer, rows) &&
           grid_known_count(part->dims + outer, part->rank - outer, n);
}

/* The result, if stages share it, or iterations; NULL: they do not. */
static const struct ir_value *shared_result(const struct grid_maker *m, uint32_t result)
{
    for (uint32_t i = 0; i < m->n_cuts && !m->loop; i++)
        if (m->cuts[i].result == result)
            return m->cuts[i].value;
    return m->loop ? grid_result_value(m, result) : NULL; /* all that it carries */
}

/* Elements that are shared, of the argument; 0: it is not. */
static int64_t shared_count(const struct grid_maker *m, const struct gir_whole *whole,
                            bool is_result)
{
    int64_t count;
    if (whole->owner == GIR_INNER)
        return m->grid->inner[whole->index].count;
    const struct ir_value *value =
        is_result || whole->owner == GIR_OF_RESULT ? shared_result(m, whole->index) : NULL;
    return value && grid_count_elements(value->type, &count) ? count : 0;
}

/* Does the group read and store only its own part of what stages share? */
static bool stays(const struct grid_maker *m, const struct gir_grid_part *part,
                  const struct gir_reach *reach, int64_t group)
{
    const struct gir_kernel *kernel = part->kernel;
    for (uint32_t i = 0; i < kernel->n_codes; i++) {
        const struct gir_code *code = &gir_codes(kernel)[i];
        if (code->op != GIR_LOOKUP && code->op != GIR_STORE_AT)
            continue;
        const uint32_t arg = gir_arg_of(code);
        const int64_t count = shared_count(m, &part->wholes[arg], gir_args(kernel)[arg].is_result);
        const struct gir_interval at =
            reach->ranges[code->operands[code->op == GIR_STORE_AT ? 1 : 0]];
        const int64_t each = count / m->grid->groups;
        if (count &&
            (count % m->grid->groups || at.low < group * each || at.high >= (group + 1) * each))
            return false;
    }
    return true;
}

/* Whichever iteration it is. */
static struct gir_interval all_trips(const struct grid_maker *m)
{
    int64_t trips;
    const bool known = m->trips && dim_is_const(m->trips, &trips) && trips > 0;
    return (struct gir_interval){0, known ? trips - 1 : INT64_MAX};
}

static bool part_stays(const struct grid_maker *m, const struct gir_grid_part *part,
                       struct gir_reach *reach, int64_t *work)
{
    const int64_t groups = m->grid->groups;
    int64_t rows, n, all;
    if (!count_part(part, &rows, &n) || __builtin_mul_overflow(rows, n, &all))
        return false;
    *work += all / groups;
    const int64_t items = part->row ? rows : n, each = items / groups;
    struct gir_reach_of of = {.rows = {0, 0}, .trips = all_trips(m)};
    bool good = items > 0 && items % groups == 0 && part->scan == 0;
    for (int64_t g = 0; good && g < groups; g++) {
        const struct gir_interval own = {g * each, (g + 1) * each - 1};
        of.positions = part->row ? (struct gir_interval){0, n > 0 ? n - 1 : 0} : own;
        if (part->row)
            of.rows = own;
        gir_find_reach(part->kernel, &of, reach);
        good = stays(m, part, reach, g);
    }
    return good;
}

/* *work: what all parts reduce in a group. */
static bool all_stay(const struct grid_maker *m, struct gir_reach *reach, int64_t *work)
{
    bool stay = true;
    *work = 0;
    for (uint32_t i = 0; i < m->grid->n && stay; i++)
        stay = part_stays(m, &m->grid->parts[i], reach, work);
    return stay;
}

/* As many as may be: of what is handed on, those of its first axes, or of fewer of them. */
static const char *divide(struct grid_maker *m, struct gir_reach *reach)
{
    const struct ir_type *type = m->cuts[0].value->type;
    const char *why = "what stages hand on is not of groups";
    int64_t groups, work;
    for (int axes = type->rank; axes > 0; axes--) {
        if (!grid_known_count(type->dims, axes, &groups) || groups < LEAST_GROUPS ||
            groups > MOST_IN_GROUP || groups == m->grid->groups)
            continue;
        m->grid->groups = groups;
        if (all_stay(m, reach, &work))
            return work > MOST_IN_GROUP ? "a group is too much for a block" : NULL;
        why = "what a stage computes is needed by other groups, too";
    }
    return why;
}

void grid_find_groups(struct grid_maker *m)
{
    struct gir_reach *reach = allocator_alloc(m->grid->allocator, sizeof *reach);
    if (!reach) {
        m->status = status_out_of_memory();
        return;
    }
    const char *why = divide(m, reach);
    if (why)
        grid_refuse(m, why);
    allocator_free(m->grid->allocator, reach);
}
