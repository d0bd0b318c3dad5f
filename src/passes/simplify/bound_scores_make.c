/* SPDX-License-Identifier: Apache-2.0 */
/* What is put in the place of scores that are compared with a threshold (bound_scores.c). */
#include "passes/simplify/bound_scores.h"

#include "ir/infer.h"
#include "ir/rule.h"
#include "passes/loops/branch.h"
#include "passes/pass.h"

/* Rows and elements are moved one by one as long as there are fewer than one in so many: that takes
 * five times as long for a row as to compute it with its neighbours, ten times for an element. */
#define ONE_ROW_IN 8
#define ONE_ELEMENT_IN 16

/* Ops before another one. What fails is told in the end: until then NULL is made of NULL. */
struct maker {
    struct ir_op *at;
    struct ir_graph *graph;
    tssa_status *status;
};

static struct ir_value *put(struct maker *m, struct ir_op *op)
{
    if (!m->status)
        m->status = pass_insert(op, m->at);
    return m->status ? NULL : &op->results[0];
}

static struct ir_op *new_op(struct maker *m, enum ir_op_id id, uint32_t n, struct ir_value *a,
                            struct ir_value *b)
{
    const struct ir_op_info *info = ir_op_info(id);
    struct ir_op *op = m->status ? NULL : ir_op_create(m->graph, info, n, 1);
    if (!op)
        return NULL;
    op->version = ir_op_bind(info, IR_NEWEST_OPSET);
    ir_op_set_operand(op, 0, a);
    if (n > 1)
        ir_op_set_operand(op, 1, b);
    return op;
}

static struct ir_value *make(struct maker *m, enum ir_op_id id, uint32_t n, struct ir_value *a,
                             struct ir_value *b)
{
    return put(m, new_op(m, id, n, a, b));
}

static struct ir_value *make_with(struct maker *m, enum ir_op_id id, struct ir_value *a,
                                  struct ir_value *b, const char *name, int64_t number)
{
    struct ir_op *op = new_op(m, id, 2, a, b);
    const struct ir_attr attr = {
        .name = intern_str(&m->graph->strings, name), .kind = IR_ATTR_INT, .i = number};
    return put(m, op && attr.name && ir_op_set_attr(m->graph, op, &attr) ? op : NULL);
}

static struct ir_value *make_int(struct maker *m, int rank, int64_t number)
{
    return m->status ? NULL : put(m, ir_constant_ints(m->graph, rank, 1, &number));
}

static struct ir_value *make_float(struct maker *m, float number)
{
    struct tensor *tensor = ARENA_NEW(&m->graph->arena, struct tensor);
    float *data = arena_copy(&m->graph->arena, &number, sizeof number);
    if (!tensor || !data)
        return put(m, NULL);
    tensor->dtype = TSSA_FLOAT;
    tensor->data = data;
    return put(m, ir_constant_create(m->graph, tensor));
}

/* An access of one step; `param`: its second param, if that is no number. */
static struct ir_value *make_access(struct maker *m, struct ir_value *x, enum rule_kind kind,
                                    uint32_t n, const int64_t *numbers, struct ir_value *param)
{
    struct rule_param params[TSSA_MAX_RANK];
    const struct rule_step step = {kind, n, params};
    if (m->status)
        return NULL;
    for (uint32_t i = 0; i < n; i++)
        params[i] = param && i == 1 ? rule_operand(0) : rule_constant(numbers[i]);
    const struct rule *rule = rule_create(m->graph, 1, &step);
    return put(m, rule ? rule_access_create(m->graph, x, rule, param ? 1 : 0, &param) : NULL);
}

static struct ir_value *make_select(struct maker *m, struct ir_value *x, int64_t index)
{
    return make_access(m, x, RULE_SELECT, 2, (int64_t[]){0, index}, NULL);
}

/* What the mask, a tensor of one axis, has of each row. */
static struct ir_value *make_masked(struct maker *m, struct ir_value *x, struct ir_value *mask)
{
    return make_access(m, x, RULE_MASK, 2, (int64_t[]){0, 0}, mask);
}

static struct ir_value *make_turned(struct maker *m, struct ir_value *x)
{
    return make_access(m, x, RULE_PERMUTE, 2, (int64_t[]){1, 0}, NULL);
}

static struct ir_value *make_gathered(struct maker *m, struct ir_value *x, struct ir_value *numbers)
{
    return make_access(m, x, RULE_GATHER, 2, (int64_t[]){0, 0}, numbers);
}

/* x * scale + offset */
static struct ir_value *make_linear(struct maker *m, struct ir_value *x, int64_t scale,
                                    struct ir_value *offset)
{
    return make(m, IR_OP_Add, 2, make(m, IR_OP_Mul, 2, x, make_int(m, 0, scale)), offset);
}

static struct ir_value *make_unsqueezed(struct maker *m, struct ir_value *x, int64_t axis)
{
    return make_access(m, x, RULE_UNSQUEEZE, 1, &axis, NULL);
}

/* ---- What may pass --------------------------------------------------------------------------- */

static struct ir_value *make_columns(struct maker *m, const struct scores *s, struct ir_value *x,
                                     int64_t from, int64_t to)
{
    return to - from == s->columns
               ? x
               : make_access(m, x, RULE_SLICE, 4, (int64_t[]){1, from, to, 1}, NULL);
}

/* The largest of some columns of each row, [groups, cells]. */
static struct ir_value *make_largest(struct maker *m, const struct scores *s, struct ir_value *x,
                                     int64_t from, int64_t to)
{
    return make_with(m, IR_OP_ReduceMax, make_columns(m, s, x, from, to), make_int(m, 1, 1),
                     "keepdims", 0);
}

/* Places of what is above the bound, in the order of rows. So a NaN is. */
static struct ir_value *find_above(struct maker *m, struct ir_value *x, float bound, uint32_t rank)
{
    static const int64_t perm[2][3] = {{1, 0}, {2, 0, 1}};
    struct ir_value *above = make(m, IR_OP_LessOrEqual, 2, x, make_float(m, bound));
    above = make(m, IR_OP_Not, 1, above, NULL);
    above = make_access(m, above, RULE_PERMUTE, rank, perm[rank - 2], NULL);
    return make(m, IR_OP_NonZero, 1, above, NULL);
}

/* Cells and groups of rows, i64[2, n], or cells, groups and columns of elements, i64[3, n]. */
static struct ir_value *find_near(struct maker *m, const struct scores *s)
{
    const int64_t shape[] = {s->groups, s->columns, s->cells};
    struct ir_value *x = make_access(m, s->planes, RULE_RESHAPE, 3, shape, NULL);
    if (s->is_by_element)
        return find_above(m, make_columns(m, s, x, s->from, s->to), s->bound, 3);
    struct ir_value *largest = make_largest(m, s, x, s->from, s->to);
    struct ir_value *rest =
        s->from ? make_largest(m, s, x, 0, s->from) : make_largest(m, s, x, s->to, s->columns);
    largest = make(m, IR_OP_Sub, 2, largest, make(m, IR_OP_Max, 2, largest, rest));
    return find_above(m, largest, s->bound, 2);
}

/* Are they few enough? */
static struct ir_value *ask(struct maker *m, const struct scores *s, struct ir_value *near)
{
    const int64_t rows = s->groups * s->cells, few = s->is_by_element
                                                         ? rows * (s->to - s->from) / ONE_ELEMENT_IN
                                                         : rows / ONE_ROW_IN;
    struct ir_value *count = make_select(m, make(m, IR_OP_Shape, 1, near, NULL), 1);
    return make(m, IR_OP_Less, 2, count, make_int(m, 0, few));
}

static struct ir_value *make_list(struct maker *m, const struct scores *s)
{
    return make_access(m, s->planes, RULE_RESHAPE, 1, (int64_t[]){-1}, NULL);
}

/* What is scored of these rows, [n, columns]. */
static struct ir_value *make_rows(struct maker *m, const struct scores *s, struct ir_value *cells,
                                  struct ir_value *groups)
{
    int64_t *apart = ARENA_ARRAY(&m->graph->arena, int64_t, (size_t)s->columns);
    if (!apart)
        return put(m, NULL);
    for (int64_t i = 0; i < s->columns; i++)
        apart[i] = i * s->cells;
    struct ir_value *first = make_linear(m, groups, s->columns * s->cells, cells);
    first = make_unsqueezed(m, first, 1);
    struct ir_value *steps =
        m->status ? NULL : put(m, ir_constant_ints(m->graph, 1, (size_t)s->columns, apart));
    struct ir_value *places = make(m, IR_OP_Add, 2, first, steps);
    return make_gathered(m, make_list(m, s), places);
}

/* ---- Branches -------------------------------------------------------------------------------- */

static struct ir_op *copy_of(struct maker *m, struct ir_cloner *cloner, const struct ir_op *op)
{
    struct ir_op *copy = m->status ? NULL : ir_clone_op(cloner, op);
    return put(m, copy) ? copy : NULL;
}

/* Where the same comparison is true of what the cloner has in the place of what is scored, and the
 * scores there. */
static struct ir_value *compare_again(struct maker *m, struct ir_cloner *cloner,
                                      const struct scores *s, struct ir_value **scores)
{
    struct ir_op *score = copy_of(m, cloner, s->score),
                 *slice = s->slice ? copy_of(m, cloner, s->slice) : score,
                 *compare = copy_of(m, cloner, s->compare);
    if (m->status)
        return NULL;
    struct ir_value *found = make(m, IR_OP_NonZero, 1, &compare->results[0], NULL);
    *scores =
        make(m, IR_OP_GatherND, 2, &(s->from ? slice : score)->results[0], make_turned(m, found));
    return found;
}

static void give_back(const struct maker *m, struct ir_value *places, struct ir_value *scores)
{
    if (m->status)
        return;
    ir_op_set_operand(m->at, 0, places);
    ir_op_set_operand(m->at, 1, scores);
}

static tssa_status *of_few_rows(struct ir_block *block, struct ir_cloner *cloner,
                                const struct scores *s, struct ir_value *near)
{
    struct maker m = {.at = ir_block_return(block), .graph = block->graph};
    struct ir_value *cells = make_select(&m, near, 0), *groups = make_select(&m, near, 1),
                    *rows = make_rows(&m, s, cells, groups), *scores = NULL;
    ir_cloner_reset(cloner);
    if (!m.status && !ir_cloner_map(cloner, ir_operand(s->score, 0), rows))
        m.status = status_out_of_memory();
    struct ir_value *found = compare_again(&m, cloner, s, &scores);
    struct ir_value *columns = make_access(&m, found, RULE_SLICE, 4, (int64_t[]){0, 1, 2, 1}, NULL);
    rows = make_gathered(&m, make_linear(&m, cells, s->groups, groups), make_select(&m, found, 0));
    rows = make_unsqueezed(&m, rows, 0);
    give_back(&m, make_with(&m, IR_OP_Concat, rows, columns, "axis", 0), scores);
    return m.status;
}

/* Elements of a score that are above the bound: one after the other, and then those of them that
 * pass. */
static tssa_status *of_few_elements(struct ir_block *block, struct ir_cloner *cloner,
                                    const struct scores *s, struct ir_value *near)
{
    struct maker m = {.at = ir_block_return(block), .graph = block->graph};
    struct ir_value *cells = make_select(&m, near, 0), *groups = make_select(&m, near, 1),
                    *columns = make_select(&m, near, 2);
    struct ir_value *at = make_linear(&m, groups, s->columns, columns);
    if (s->from)
        at = make(&m, IR_OP_Add, 2, at, make_int(&m, 0, s->from));
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
              make_with(&m, IR_OP_Concat, make_unsqueezed(&m, rows, 0),
                        make_unsqueezed(&m, columns, 0), "axis", 0),
              make_masked(&m, &score->results[0], mask));
    return m.status;
}

static tssa_status *of_all(struct ir_block *block, struct ir_cloner *cloner, const struct scores *s)
{
    struct maker m = {.at = ir_block_return(block), .graph = block->graph};
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
    struct maker m = {.at = s->compare, .graph = s->compare->parent->graph};
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
