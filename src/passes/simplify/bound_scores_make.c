/* SPDX-License-Identifier: Apache-2.0 */
/* What is put in the place of scores that are compared with a threshold (bound_scores.c). */
#include "passes/simplify/bound_scores.h"

#include "ir/infer.h"
#include "passes/loops/branch.h"
#include "passes/maker.h"
#include "passes/pass.h"

/* Rows and elements are moved one by one as long as there are fewer than one in so many: that takes
 * five times as long for a row as to compute it with its neighbours, ten times for an element. */
#define ONE_ROW_IN 8
#define ONE_ELEMENT_IN 16

static struct ir_value *make_select(struct pass_maker *m, struct ir_value *x, int64_t index)
{
    return pass_make_access(m, x, RULE_SELECT, 2, (int64_t[]){0, index}, NULL);
}

/* What the mask, a tensor of one axis, has of each row. */
static struct ir_value *make_masked(struct pass_maker *m, struct ir_value *x, struct ir_value *mask)
{
    return pass_make_access(m, x, RULE_MASK, 2, (int64_t[]){0, 0}, mask);
}

static struct ir_value *make_turned(struct pass_maker *m, struct ir_value *x)
{
    return pass_make_access(m, x, RULE_PERMUTE, 2, (int64_t[]){1, 0}, NULL);
}

static struct ir_value *make_gathered(struct pass_maker *m, struct ir_value *x,
                                      struct ir_value *numbers)
{
    return pass_make_access(m, x, RULE_GATHER, 2, (int64_t[]){0, 0}, numbers);
}

/* x * scale + offset */
static struct ir_value *make_linear(struct pass_maker *m, struct ir_value *x, int64_t scale,
                                    struct ir_value *offset)
{
    return pass_make(m, IR_OP_Add, 2, pass_make(m, IR_OP_Mul, 2, x, pass_make_int(m, 0, scale)),
                     offset);
}

static struct ir_value *make_unsqueezed(struct pass_maker *m, struct ir_value *x, int64_t axis)
{
    return pass_make_access(m, x, RULE_UNSQUEEZE, 1, &axis, NULL);
}

/* ---- What may pass --------------------------------------------------------------------------- */

static struct ir_value *make_columns(struct pass_maker *m, const struct scores *s,
                                     struct ir_value *x, int64_t from, int64_t to)
{
    return to - from == s->columns
               ? x
               : pass_make_access(m, x, RULE_SLICE, 4, (int64_t[]){1, from, to, 1}, NULL);
}

/* The largest of some columns of each row, [groups, cells]. */
static struct ir_value *make_largest(struct pass_maker *m, const struct scores *s,
                                     struct ir_value *x, int64_t from, int64_t to)
{
    return pass_make_with(m, IR_OP_ReduceMax, make_columns(m, s, x, from, to),
                          pass_make_int(m, 1, 1), "keepdims", 0);
}

/* Places of what is above the bound, in the order of rows. So a NaN is. */
static struct ir_value *find_above(struct pass_maker *m, struct ir_value *x, float bound,
                                   uint32_t rank)
{
    static const int64_t perm[2][3] = {{1, 0}, {2, 0, 1}};
    struct ir_value *above = pass_make(m, IR_OP_LessOrEqual, 2, x, pass_make_float(m, bound));
    above = pass_make(m, IR_OP_Not, 1, above, NULL);
    above = pass_make_access(m, above, RULE_PERMUTE, rank, perm[rank - 2], NULL);
    return pass_make(m, IR_OP_NonZero, 1, above, NULL);
}

/* Cells and groups of rows, i64[2, n], or cells, groups and columns of elements, i64[3, n]. */
static struct ir_value *find_near(struct pass_maker *m, const struct scores *s)
{
    const int64_t shape[] = {s->groups, s->columns, s->cells};
    struct ir_value *x = pass_make_access(m, s->planes, RULE_RESHAPE, 3, shape, NULL);
    if (s->is_by_element)
        return find_above(m, make_columns(m, s, x, s->from, s->to), s->bound, 3);
    struct ir_value *largest = make_largest(m, s, x, s->from, s->to);
    struct ir_value *rest =
        s->from ? make_largest(m, s, x, 0, s->from) : make_largest(m, s, x, s->to, s->columns);
    largest = pass_make(m, IR_OP_Sub, 2, largest, pass_make(m, IR_OP_Max, 2, largest, rest));
    return find_above(m, largest, s->bound, 2);
}

/* Are they few enough? */
static struct ir_value *ask(struct pass_maker *m, const struct scores *s, struct ir_value *near)
{
    const int64_t rows = s->groups * s->cells, few = s->is_by_element
                                                         ? rows * (s->to - s->from) / ONE_ELEMENT_IN
                                                         : rows / ONE_ROW_IN;
    struct ir_value *count = make_select(m, pass_make(m, IR_OP_Shape, 1, near, NULL), 1);
    return pass_make(m, IR_OP_Less, 2, count, pass_make_int(m, 0, few));
}

static struct ir_value *make_list(struct pass_maker *m, const struct scores *s)
{
    return pass_make_access(m, s->planes, RULE_RESHAPE, 1, (int64_t[]){-1}, NULL);
}

/* What is scored of these rows, [n, columns]. */
static struct ir_value *make_rows(struct pass_maker *m, const struct scores *s,
                                  struct ir_value *cells, struct ir_value *groups)
{
    int64_t *apart = ARENA_ARRAY(&m->graph->arena, int64_t, (size_t)s->columns);
    if (!apart)
        return pass_put(m, NULL);
    for (int64_t i = 0; i < s->columns; i++)
        apart[i] = i * s->cells;
    struct ir_value *first = make_linear(m, groups, s->columns * s->cells, cells);
    first = make_unsqueezed(m, first, 1);
    struct ir_value *steps =
        m->status ? NULL : pass_put(m, ir_constant_ints(m->graph, 1, (size_t)s->columns, apart));
    struct ir_value *places = pass_make(m, IR_OP_Add, 2, first, steps);
    return make_gathered(m, make_list(m, s), places);
}

/* ---- Branches -------------------------------------------------------------------------------- */

static struct ir_op *copy_of(struct pass_maker *m, struct ir_cloner *cloner, const struct ir_op *op)
{
    struct ir_op *copy = m->status ? NULL : ir_clone_op(cloner, op);
    return pass_put(m, copy) ? copy : NULL;
}

/* Where the same comparison is true of what the cloner has in the place of what is scored, and the
 * scores there. */
static struct ir_value *compare_again(struct pass_maker *m, struct ir_cloner *cloner,
                                      const struct scores *s, struct ir_value **scores)
{
    struct ir_op *score = copy_of(m, cloner, s->score),
                 *slice = s->slice ? copy_of(m, cloner, s->slice) : score,
                 *compare = copy_of(m, cloner, s->compare);
    if (m->status)
        return NULL;
    struct ir_value *found = pass_make(m, IR_OP_NonZero, 1, &compare->results[0], NULL);
    *scores = pass_make(m, IR_OP_GatherND, 2, &(s->from ? slice : score)->results[0],
                        make_turned(m, found));
    return found;
}

static void give_back(const struct pass_maker *m, struct ir_value *places, struct ir_value *scores)
{
    if (m->status)
        return;
    ir_op_set_operand(m->at, 0, places);
    ir_op_set_operand(m->at, 1, scores);
}

static tssa_status *of_few_rows(struct ir_block *block, struct ir_cloner *cloner,
                                const struct scores *s, struct ir_value *near)
{
    struct pass_maker m = {.at = ir_block_return(block), .graph = block->graph};
    struct ir_value *cells = make_select(&m, near, 0), *groups = make_select(&m, near, 1),
                    *rows = make_rows(&m, s, cells, groups), *scores = NULL;
    ir_cloner_reset(cloner);
    if (!m.status && !ir_cloner_map(cloner, ir_operand(s->score, 0), rows))
        m.status = status_out_of_memory();
    struct ir_value *found = compare_again(&m, cloner, s, &scores);
    struct ir_value *columns =
        pass_make_access(&m, found, RULE_SLICE, 4, (int64_t[]){0, 1, 2, 1}, NULL);
    rows = make_gathered(&m, make_linear(&m, cells, s->groups, groups), make_select(&m, found, 0));
    rows = make_unsqueezed(&m, rows, 0);
    give_back(&m, pass_make_with(&m, IR_OP_Concat, rows, columns, "axis", 0), scores);
    return m.status;
}

/* Elements of a score that are above the bound: one after the other, and then those of them that
 * pass. */
static tssa_status *of_few_elements(struct ir_block *block, struct ir_cloner *cloner,
                                    const struct scores *s, struct ir_value *near)
{
    struct pass_maker m = {.at = ir_block_return(block), .graph = block->graph};
    struct ir_value *cells = make_select(&m, near, 0), *groups = make_select(&m, near, 1),
                    *columns = make_select(&m, near, 2);
    struct ir_value *at = make_linear(&m, groups, s->columns, columns);
    if (s->from)
        at = pass_make(&m, IR_OP_Add, 2, at, pass_make_int(&m, 0, s->from));
    at = make_gathered(&m, make_list(&m, s), make_linear(&m, at, s->cells, cells));
    ir_cloner_reset(cloner);
    if (!m.status && !ir_cloner_map(cloner, ir_operand(s->score, 0), at))
        m.status = status_out_of_memory();
    struct ir_op *score = copy_of(&m, cloner, s->score);
    if (score && s->slice && !ir_cloner_map(cloner, &s->slice->results[0], &score->results[0]))
        m.status = status_out_of_memory();
    struct ir_op *compare = copy_of(&m, cloner, s->compare);
    TRY(m.status);
    struct ir_value *mask = &compare->results[0];
    struct ir_value *rows = make_masked(&m, make_linear(&m, cells, s->groups, groups), mask);
    columns = make_masked(&m, columns, mask);
    give_back(&m,
              pass_make_with(&m, IR_OP_Concat, make_unsqueezed(&m, rows, 0),
                             make_unsqueezed(&m, columns, 0), "axis", 0),
              make_masked(&m, &score->results[0], mask));
    return m.status;
}

static tssa_status *of_all(struct ir_block *block, struct ir_cloner *cloner, const struct scores *s)
{
    struct pass_maker m = {.at = ir_block_return(block), .graph = block->graph};
    struct ir_value *scores = NULL;
    ir_cloner_reset(cloner);
    copy_of(&m, cloner, s->turns);
    copy_of(&m, cloner, s->flattens);
    struct ir_value *places = compare_again(&m, cloner, s, &scores);
    give_back(&m, places, scores);
    return m.status;
}

tssa_status *bound_scores_make(const struct scores *s, struct ir_cloner *cloner,
                               struct passed *passed)
{
    struct pass_maker m = {.at = s->compare, .graph = s->compare->parent->graph};
    struct ir_value *near = find_near(&m, s), *few = ask(&m, s, near);
    struct ir_op *branch = m.status ? NULL : ir_op_create(m.graph, ir_op_info(IR_OP_If), 1, 2);
    TRY(m.status);
    TRY_ALLOC(branch);
    branch->version = ir_op_bind(branch->info, IR_NEWEST_OPSET);
    branch->name = s->score->name;
    ir_op_set_operand(branch, 0, few);
    ir_op_insert_before(branch, s->compare);
    TRY(branch_make_blocks(branch, 2));
    TRY((s->is_by_element ? of_few_elements : of_few_rows)(branch->blocks[0], cloner, s, near));
    TRY(of_all(branch->blocks[1], cloner, s));
    *passed = (struct passed){branch, &branch->results[0], &branch->results[1]};
    return ir_infer_op_lenient(branch);
}
