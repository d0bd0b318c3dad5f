/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels of loops: of columns, whose rows are the iterations (gir.h); see maps.h. What the loop
 * carries are states. An operand of which each iteration reads an element along its first axis, by
 * the iteration's number or as a Scan does, has that axis along the rows, and so have results that
 * are stacked.
 */
#include "gir/iteration.h"
#include "gir/mapper.h"
#include "ir/fuse.h"
#include "ir/rebuild.h"
#include "ir/region.h"

/* ---- The loop -------------------------------------------------------------------------------- */

const struct ir_type *mapper_carried(const struct ir_op *loop)
{
    struct ir_value *const *params = loop->blocks[0]->params;
    const uint32_t n = ir_loop_carried(loop);
    const struct ir_type *like = n ? params[ir_loop_param(loop, 0)]->type : NULL;
    if (!like || like->kind != TYPE_TENSOR || like->rank < 0 || like->rank == TSSA_MAX_RANK)
        return NULL;
    for (uint32_t i = 0; i < n; i++)
        if (!gir_has_dims(params[ir_loop_param(loop, i)], like) ||
            !gir_has_dims(ir_operand(loop, ir_loop_operand(loop, i)), like))
            return NULL;
    for (uint32_t i = 0; i < loop->n_results; i++)
        if (!gir_has_dims(gir_loop_next(loop, i), like))
            return NULL;
    return like;
}

/* Does a Scan go along first axes? */
static bool scans_first_axes(const struct ir_op *loop)
{
    for (uint32_t i = 0; i < loop->n_operands + loop->n_results; i++)
        if (gir_loop_number(loop, "scan_input_axes", i) ||
            gir_loop_number(loop, "scan_output_axes", i))
            return false;
    return loop->version >= 9;
}

/* Why its iterations are not told before, or are not of first axes; NULL: they are. */
static const char *find_problem(const struct ir_op *loop)
{
    if (!ir_op_is(loop, IR_OP_Loop))
        return scans_first_axes(loop) ? NULL : "it does not scan first axes";
    return gir_loop_is_counted(loop) ? NULL : "a condition ends the loop";
}

/* ---- Values ---------------------------------------------------------------------------------- */

/* Which row of axis 0 an iteration has: so many behind its number, or before the last one. */
struct place {
    bool reversed;
    int64_t offset;
};

/* The rows, in the order of iterations. */
static void make_rows(const struct place *place, struct rule_param *params, struct rule_step *step)
{
    params[0] = rule_constant(0);
    params[1] = rule_constant(place->reversed ? -1 - place->offset : place->offset);
    params[2] = rule_constant(place->reversed ? INT64_MIN : INT64_MAX);
    params[3] = rule_constant(place->reversed ? -1 : 1);
    *step = (struct rule_step){RULE_SLICE, 4, params};
}

static bool is_moved(const struct place *place)
{
    return place->reversed || place->offset;
}

/* The rule of a view of an iteration's element as one of all iterations' elements: axis 0 is theirs
 * then. NULL: there is none. */
static const struct rule *over_rows(struct ir_graph *graph, const struct rule *rule, int missing,
                                    const struct place *place)
{
    struct rule_step steps[RULE_MAX_STEPS + 2];
    struct rule_param params[RULE_MAX_STEPS + 1][TSSA_MAX_RANK + 1];
    struct rule_param rows[4];
    uint32_t n = rule ? rule->n_steps : 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct rule_step *step = &rule->steps[i];
        const bool permutes = step->kind == RULE_PERMUTE;
        const bool all = permutes || step->kind == RULE_SQUEEZE || step->kind == RULE_UNSQUEEZE;
        if ((!all && step->kind != RULE_SELECT && step->kind != RULE_SLICE) ||
            step->n_params + permutes > TSSA_MAX_RANK)
            return NULL;
        params[i][0] = rule_constant(0); /* of a permutation */
        for (uint32_t k = 0; k < step->n_params; k++) {
            params[i][k + permutes] = step->params[k];
            params[i][k + permutes].value += all || k == 0;
        }
        steps[i] = (struct rule_step){step->kind, step->n_params + permutes, params[i]};
    }
    for (int i = 0; i < missing; i++)
        params[n][i] = rule_constant(1 + i);
    if (missing)
        steps[n] = (struct rule_step){RULE_UNSQUEEZE, (uint32_t)missing, params[n]};
    n += missing > 0;
    if (is_moved(place))
        make_rows(place, rows, &steps[n++]);
    return n > RULE_MAX_STEPS ? NULL : rule_create(graph, n, steps);
}

/* Of an operand, what the view sees of each iteration's element. `op`: who reads it. */
static uint32_t load_rows(struct mapper *m, const struct ir_value *param,
                          const struct gir_view *view, const struct ir_op *op,
                          const struct place *place)
{
    const struct ir_type *type = param->type;
    struct gir_view rows = {.ones = view->ones, .chosen = op, .n_choices = 1};
    if (type->kind != TYPE_TENSOR || type->rank < 1 || dim_is(type->dims[0], 1))
        return mapper_refuse(m, "what iterations read is not known to be one of each");
    const struct ir_type *element =
        type_tensor(&m->body->graph->types, type->dtype, type->rank - 1, type->dims + 1);
    if (!element)
        return mapper_check(m, status_out_of_memory(), true);
    const int missing = m->part->space.rank - 1 - gir_view_layout(element, view->rule).rank;
    if (missing < 0 || missing > TSSA_MAX_RANK)
        return mapper_refuse(m, "how shapes are broadcast is not known");
    if (view->rule || missing || is_moved(place)) {
        rows.rule = over_rows(m->body->graph, view->rule, missing, place);
        if (!rows.rule)
            return mapper_refuse(m, "what it moves does not lie in steps");
    }
    return mapper_load(m, param, &rows);
}

/* Of a Scan, operand `index`, which each iteration is handed a row of. */
static uint32_t load_scanned(struct mapper *m, uint32_t index, const struct gir_view *view)
{
    const uint32_t number = index - ir_loop_carried(m->loop);
    const struct place place = {.reversed =
                                    gir_loop_number(m->loop, "scan_input_directions", number)};
    return load_rows(m, ir_operand(m->loop, index), view, m->loop, &place);
}

static uint32_t outer(struct mapper *m, const struct ir_value *value, const struct gir_view *view);

/* A number that is computed beside the iteration's kernel. */
static uint32_t compute_number(struct mapper *m, const struct ir_op *op)
{
    const struct gir_view view = {0};
    uint32_t operands[8];
    if (!op->info->ew || op->n_operands > sizeof operands / sizeof *operands)
        return mapper_refuse(m, "an iteration is more than one kernel");
    for (uint32_t i = 0; i < op->n_operands; i++)
        operands[i] = ir_operand(op, i) && ir_fuse_reads(op, i) ? outer(m, ir_operand(op, i), &view)
                                                                : GIR_NONE;
    return m->maker.why ? 0 : gir_make_op(&m->maker, op, operands);
}

/* A value of the loop's block, or around it. */
static uint32_t outer(struct mapper *m, const struct ir_value *value, const struct gir_view *view)
{
    const struct ir_op *loop = m->loop;
    const struct ir_block *body = loop->blocks[0];
    const uint32_t first = ir_loop_param(loop, 0), n = ir_loop_carried(loop);
    if (value->op && ir_op_is(value->op, IR_OP_Constant))
        return mapper_number(m, value);
    if (value->op && value->op == ir_fuse_iteration(loop))
        return mapper_evaluate(
            m, ir_operand(ir_block_return(m->body), (uint32_t)(value - value->op->results)), *view);
    if (value->op)
        return compute_number(m, value->op);
    if (value->block != body)
        return mapper_load(m, value, view);
    if (first && value->index == 0)
        return gir_make(&m->maker, (struct gir_code){.op = GIR_ROW, .type = TSSA_INT64});
    if (value->index < first)
        return mapper_refuse(m, "a condition ends the loop");
    if (value->index >= first + n)
        return load_scanned(m, value->index, view);
    if (view->rule || view->ones)
        return mapper_refuse(m, "it reads other elements of what it carries");
    return m->states[value->index - first];
}

uint32_t mapper_iteration_param(struct mapper *m, const struct ir_value *param,
                                const struct gir_view *view)
{
    return outer(m, ir_fuse_operand(param), view);
}

static const struct dim *known_number(const struct ir_value *value)
{
    const struct ir_known *known = value ? value->known : NULL;
    return known && known->count == 1 ? known->elements[0] : NULL;
}

static bool is_known(const struct dim *dim, int64_t *number)
{
    return dim && dim_is_const(dim, number);
}

/* Is it the number of an iteration, and a constant? Behind the last row there is none. */
static bool is_forward(struct mapper *m, const struct dim *row, const struct dim *iteration,
                       struct place *place)
{
    const struct dim *offset = dim_sub(&m->body->graph->dims, row, iteration);
    *place = (struct place){0};
    return is_known(offset, &place->offset) && place->offset >= 0;
}

/* Is it the last one of so many rows, less a constant and the number of the iteration? Before the
 * first row would be the last one again: it is not where there are as many. */
static bool is_backward(struct mapper *m, const struct dim *row, const struct dim *iteration,
                        const struct dim *rows, struct place *place)
{
    struct dim_table *dims = &m->body->graph->dims;
    const struct dim *sum = dim_add(dims, row, iteration),
                     *trips = known_number(ir_operand(m->loop, 0)),
                     *rest = sum ? dim_sub(dims, rows, sum) : NULL,
                     *left = trips ? dim_sub(dims, rows, trips) : NULL;
    *place = (struct place){.reversed = true};
    if (!is_known(rest, &place->offset) || !left)
        return false;
    place->offset--;
    return place->offset >= 0 && left->low >= place->offset;
}

/* Is the step a choice along the first axis, of `rows`, by what tells iterations apart? */
static bool chooses_own(struct mapper *m, const struct ir_op *op, const struct rule_step *step,
                        const struct dim *rows, struct place *place)
{
    if (step->kind != RULE_SELECT || step->params[0].is_operand || step->params[0].value != 0 ||
        !step->params[1].is_operand || !ir_op_is(m->loop, IR_OP_Loop))
        return false;
    const struct ir_value *number = rule_param_value(op, &step->params[1]),
                          *own = m->loop->blocks[0]->params[0];
    *place = (struct place){0};
    if (!number->block)
        return false;
    if (ir_fuse_operand(number) == own)
        return true;
    const struct dim *row = known_number(number), *iteration = known_number(own);
    return row && iteration &&
           (is_forward(m, row, iteration, place) || is_backward(m, row, iteration, rows, place));
}

/* The rule's steps from `from` on, then the view. Numbers of theirs that only a run tells are not
 * followed. */
static bool see_through(struct mapper *m, const struct ir_op *op, const struct ir_type *base,
                        uint32_t from, struct gir_view *view)
{
    const struct rule *rule = rule_of(op), *both = view->rule;
    for (uint32_t i = from; i < rule->n_steps; i++)
        for (uint32_t k = 0; k < rule->steps[i].n_params; k++)
            if (rule->steps[i].params[k].is_operand)
                return mapper_refuse(m, "what it moves does not lie in steps") != 0;
    const struct rule *rest = NULL;
    if (rule->n_steps > from) {
        rest = rule_create(m->body->graph, rule->n_steps - from, rule->steps + from);
        if (!rest)
            return mapper_check(m, status_out_of_memory(), true);
    }
    if (rest && both) {
        tssa_status *status = rule_compose(m->body->graph, base, rest, view->rule, 0, &both);
        if (!mapper_check(m, status, both != NULL))
            return false;
    }
    view->rule = rest && !view->rule ? rest : both;
    if (view->rule && !rule_is_strided(view->rule))
        return mapper_refuse(m, "what it moves does not lie in steps") != 0;
    if (view->rule && view->rule->n_steps == 0)
        view->rule = NULL;
    return true;
}

uint32_t mapper_iteration_access(struct mapper *m, const struct ir_op *op,
                                 const struct gir_view *view)
{
    const struct rule *rule = rule_of(op);
    const struct ir_value *base = ir_operand(op, 0);
    const struct ir_type *type = base->type;
    struct gir_view own = *view;
    struct place place;
    if (!rule->n_steps || type->kind != TYPE_TENSOR || type->rank < 1 ||
        !chooses_own(m, op, &rule->steps[0], type->dims[0], &place))
        return see_through(m, op, type, 0, &own) ? mapper_evaluate(m, base, own) : 0;
    const struct ir_value *operand = base->block ? ir_fuse_operand(base) : NULL;
    if (!operand || operand->op || operand->block == m->loop->blocks[0])
        return mapper_refuse(m, "it reads by number what the loop makes");
    const struct ir_type *element =
        type_tensor(&m->body->graph->types, type->dtype, type->rank - 1, type->dims + 1);
    if (!element)
        return mapper_check(m, status_out_of_memory(), true);
    return see_through(m, op, element, 1, &own) ? load_rows(m, operand, &own, op, &place) : 0;
}

/* ---- Steps ----------------------------------------------------------------------------------- */

static tssa_dtype loaded_as(const struct ir_value *value)
{
    return value->type->dtype == TSSA_BOOL ? TSSA_UINT8 : value->type->dtype;
}

static void begin_states(struct mapper *m)
{
    const struct ir_block *body = m->loop->blocks[0];
    const uint32_t first = ir_loop_param(m->loop, 0), n = ir_loop_carried(m->loop);
    for (uint32_t i = 0; i < n && !m->maker.why; i++) {
        const tssa_dtype type = loaded_as(body->params[first + i]);
        uint32_t begin = outer(m, ir_operand(m->loop, ir_loop_operand(m->loop, i)), &m->root);
        begin = gir_make_as(&m->maker, begin, type);
        m->states[i] = gir_make(
            &m->maker, (struct gir_code){
                           .op = GIR_STATE, .type = (uint8_t)type, .operands = {begin}, .bits = i});
    }
}

/* The steps of the values that an iteration returns. */
static void evaluate_next(struct mapper *m, uint32_t *steps)
{
    const uint32_t n = ir_loop_carried(m->loop);
    for (uint32_t i = 0; i < m->loop->n_results && !m->maker.why; i++) {
        const struct ir_value *value = gir_loop_next(m->loop, i);
        steps[i] = GIR_NONE;
        if (i < n || m->loop->results[i].wanted)
            steps[i] = gir_make_as(&m->maker, outer(m, value, &m->root), loaded_as(value));
    }
}

/* Results of the fuse op are those of the loop, in the order in which its block returns them. */
static void store_results(struct mapper *m, const uint32_t *steps)
{
    const struct rule_param axis = rule_constant(0);
    const struct rule_step unsqueeze = {RULE_UNSQUEEZE, 1, &axis};
    const struct place last = {.reversed = true};
    struct rule_param params[4];
    struct rule_step reverse;
    make_rows(&last, params, &reverse);
    const struct rule *column = rule_create(m->body->graph, 1, &unsqueeze),
                      *back = rule_create(m->body->graph, 1, &reverse);
    const struct ir_op *ret = ir_block_return(ir_fuse_body(m->fuse));
    const uint32_t n = ir_loop_carried(m->loop);
    if (!column || !back)
        mapper_check(m, status_out_of_memory(), true);
    for (uint32_t i = 0; i < m->fuse->n_results && !m->maker.why; i++) {
        const struct ir_value *value = ir_operand(ret, i);
        const uint32_t result = (uint32_t)(value - m->loop->results);
        if (!m->fuse->results[i].wanted)
            continue;
        uint32_t step = steps[result];
        if (result >= n && dim_is(value->type->dims[0], 1))
            mapper_refuse(m, "there is one iteration");
        if (result < n)
            step = gir_make(&m->maker, (struct gir_code){.op = GIR_LAST,
                                                         .type = (uint8_t)loaded_as(value),
                                                         .operands = {m->states[result]}});
        const bool reversed =
            result >= n && gir_loop_number(m->loop, "scan_output_directions", result - n);
        mapper_store(m, value, i, result < n ? column : reversed ? back : NULL, 0, 1, step);
    }
}

static void make_next(struct mapper *m, const uint32_t *steps)
{
    for (uint32_t i = 0; i < ir_loop_carried(m->loop) && !m->maker.why; i++)
        gir_make(&m->maker, (struct gir_code){.op = GIR_NEXT,
                                              .type = m->maker.codes[m->states[i]].type,
                                              .operands = {m->states[i], steps[i]}});
}

/* Which arguments move from iteration to iteration. */
static void finish_args(struct mapper *m)
{
    bool told = m->part->space.trips != 0;
    mapper_finish_args(m);
    for (uint32_t i = 0; i < m->n_args; i++) {
        const struct gir_map *map = &m->part->maps[i];
        m->args[i].per_column = !(map->axes & 1);
        told |= !m->args[i].is_result && (map->axes & 1);
    }
    if (!told)
        mapper_refuse(m, "how many iterations there are is not known");
}

tssa_status *mapper_make_loop(struct mapper *m)
{
    uint32_t steps[GIR_MAX_ARGS];
    const char *why = find_problem(m->loop);
    if (why || m->loop->n_results > GIR_MAX_ARGS) {
        mapper_refuse(m, why ? why : "it has more arguments than kernels may have");
        return NULL;
    }
    mapper_begin_part(m, m->like->rank + 1);
    m->part->space.column = 0;
    for (int i = 0; i < m->like->rank; i++)
        m->part->space.dims[i + 1] = m->part->space.result_dims[i];
    if (ir_op_is(m->loop, IR_OP_Loop))
        m->part->space.trips = 1 + ir_operand(m->loop, 0)->index;
    m->root = (struct gir_view){0};
    begin_states(m);
    evaluate_next(m, steps);
    make_next(m, steps);
    store_results(m, steps);
    finish_args(m);
    return m->maker.why ? NULL : mapper_finish_part(m);
}
