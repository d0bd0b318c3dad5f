/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A loop that writes a row of a carried tensor in each iteration, and reads of it the row that it
 * has written one iteration before, or a few, carries that row:
 *
 *     Loop(n, _, y) { (i, c, t):
 *         v = f(access(t, i)[select(0, $0)])
 *         return(c, assign(t, v, i + 1)[select(0, $0)]) }
 *     Loop(n, _, y, y[0]) { (i, c, t, p): v = f(p), return(c, assign(t, v, i + 1), v) }
 *
 * The tensor is only written then, so that its rows may be stacked (scan_outputs), and what an
 * iteration waits for is said. Each read is of the row k iterations ago, 1 to FARTHEST: as many
 * rows are carried. Only where the rows that the first iterations read are there in every run; and
 * in sessions, which write in place, where the tensor is small: a stack is copied once more.
 *
 *   needs   assigns (recover), known elements, counters computed from the iteration's number
 *           (induction), forward_assigns: nothing reads what this iteration has written
 *   keeps   types
 *   breaks  nothing
 */
#include "ir/infer.h"
#include "ir/rebuild.h"
#include "ir/rule.h"
#include "passes/analysis/loops.h"
#include "passes/pass.h"

#define FARTHEST 4
#define SMALL 65536 /* elements, of a tensor that stays in a cache */

struct rows {
    struct pass_context *pass;
    struct loop loop;
    uint32_t carried;
    const struct dim *counter;
    struct ir_op *assign;
    const struct dim *written; /* the row that an iteration writes */
    int64_t first[FARTHEST];   /* the row that was written k + 1 iterations before the first one */
    uint32_t farthest;         /* how far back reads are */
};

/* ---- Recognition ----------------------------------------------------------------------------- */

static bool is_small(const struct ir_type *type)
{
    int64_t count = 1, dim;
    for (int i = 0; i < type->rank; i++)
        if (!dim_is_const(type->dims[i], &dim) || !i64_mul(count, dim, &count))
            return false;
    return count <= SMALL;
}

/* The row that was written so many iterations before this one, or before the first one. */
static const struct dim *written_before(const struct rows *rows, int64_t iterations, bool first)
{
    struct dim_table *dims = &rows->pass->graph->dims;
    const struct dim *back = dim_const(dims, iterations), *from = first ? dim_const(dims, 0) : NULL;
    const struct dim *then = back ? dim_sub(dims, from ? from : rows->counter, back) : NULL;
    return then ? dim_substitute(dims, rows->written, rows->counter, then) : NULL;
}

/* How many iterations ago the row was written; 0: it is another one. */
static uint32_t distance_of(const struct rows *rows, const struct dim *row)
{
    for (uint32_t k = 1; row && k <= FARTHEST; k++)
        if (row == written_before(rows, k, false))
            return k;
    return 0;
}

/* Is row first[k] there before the loop, in every run? From the end it is negative. */
static bool find_first(struct rows *rows, const struct dim *size, uint32_t k)
{
    const struct dim *row = written_before(rows, k + 1, true),
                     *left = row ? dim_sub(&rows->pass->graph->dims, size, row) : NULL;
    int64_t number;
    if (row && dim_is_const(row, &number) && number >= 0 && size->low > number) {
        rows->first[k] = number;
        return true;
    }
    if (!left || !dim_is_const(left, &number) || number < 1 || size->low < number)
        return false;
    rows->first[k] = -number;
    return true;
}

/* Is the parameter only written, and read where earlier iterations have written? */
static bool are_reads_of_rows(struct rows *rows)
{
    const struct ir_value *param = loop_param(&rows->loop, rows->carried);
    rows->farthest = 0;
    for (const struct ir_use *use = param->uses; use; use = use->next) {
        if (use->user == rows->assign)
            continue;
        const bool reads = ir_op_is(use->user, IR_OP_access) && use == use->user->operands &&
                           use->user->parent == rows->loop.body;
        const uint32_t distance = reads ? distance_of(rows, loop_row_of(use->user)) : 0;
        if (distance == 0)
            return false;
        rows->farthest = distance > rows->farthest ? distance : rows->farthest;
    }
    return rows->farthest > 0;
}

static bool find_rows(struct rows *rows)
{
    const struct loop *loop = &rows->loop;
    struct ir_value *next = loop_next(loop, rows->carried);
    const struct ir_value *param = loop_param(loop, rows->carried),
                          *init = loop_initial(loop, rows->carried);
    const struct ir_known *known = loop->body->params[0]->known;
    rows->counter = known && known->count == 1 ? known->elements[0] : NULL;
    if (!next || !init || !rows->counter || rows->counter->kind != DIM_SYMBOL || !next->op ||
        !ir_op_is(next->op, IR_OP_assign) || next->op->parent != loop->body ||
        ir_operand(next->op, 0) != param || param->type != init->type ||
        !loop_is_only_use(next, loop->ret, rows->carried + 1))
        return false;
    rows->assign = next->op;
    rows->written = loop_row_of(next->op);
    if (!rows->written || !loop_is_row(init->type, ir_operand(next->op, 1)->type) ||
        (pass_is_for_session(rows->pass) && !is_small(init->type)) || !are_reads_of_rows(rows))
        return false;
    for (uint32_t k = 0; k < rows->farthest; k++)
        if (!find_first(rows, init->type->dims[0], k))
            return false;
    return true;
}

/* ---- Rewriting ------------------------------------------------------------------------------- */

/* init[row], before the loop. */
static tssa_status *take_row(const struct rows *rows, int64_t number, struct ir_value **row)
{
    struct ir_op *at = rows->loop.op;
    struct ir_value *index;
    TRY(loop_make_int(at, 0, number, &index));
    struct ir_op *gather = loop_make_op(at, IR_OP_Gather, 2);
    TRY_ALLOC(gather);
    ir_op_set_operand(gather, 0, loop_initial(&rows->loop, rows->carried));
    ir_op_set_operand(gather, 1, index);
    *row = &gather->results[0];
    return ir_infer_op_lenient(gather);
}

/* The loop carries `farthest` rows more, behind all others. */
static tssa_status *carry(const struct rows *rows, struct ir_value *const *before)
{
    struct ir_op *op = rows->loop.op, *ret = rows->loop.ret;
    struct arena *arena = &rows->pass->graph->arena;
    const uint32_t n = rows->loop.n_carried, more = rows->farthest, total = op->n_results + more;
    struct ir_value **operands = ARENA_ARRAY(arena, struct ir_value *, n + 2 + more);
    struct ir_value **returns = ARENA_ARRAY(arena, struct ir_value *, total + 1);
    uint32_t *params = ARENA_ARRAY(arena, uint32_t, n + 2 + more);
    uint32_t *results = ARENA_ARRAY(arena, uint32_t, total);
    if (!operands || !returns || !params || !results)
        return status_out_of_memory();
    for (uint32_t i = 0; i < n + 2 + more; i++) {
        operands[i] = i < n + 2 ? op->operands[i].value : before[i - n - 2];
        params[i] = i < n + 2 ? i : IR_FRESH;
    }
    returns[0] = ir_operand(ret, 0);
    for (uint32_t i = 0; i < total; i++) {
        results[i] = i < n ? i : i < n + more ? IR_FRESH : i - more;
        returns[i + 1] = results[i] == IR_FRESH ? NULL : ir_operand(ret, results[i] + 1);
    }
    if (!ir_op_set_operands(op, n + 2 + more, operands) ||
        !ir_block_set_params(rows->loop.body, n + 2 + more, params))
        return status_out_of_memory();
    /* Each is next what the one nearer is now, and the nearest what is written. */
    returns[n + 1] = ir_operand(rows->assign, 1);
    for (uint32_t k = 1; k < more; k++)
        returns[n + 1 + k] = rows->loop.body->params[n + 2 + k - 1];
    if (!ir_op_set_operands(ret, total + 1, returns) || !ir_op_set_results(op, total, results))
        return status_out_of_memory();
    for (uint32_t k = 0; k < more; k++)
        rows->loop.body->params[n + 2 + k]->type = op->results[n + k].type = before[k]->type;
    return NULL;
}

static tssa_status *rewrite(struct rows *rows)
{
    struct ir_value *before[FARTHEST];
    const uint32_t n = rows->loop.n_carried;
    for (uint32_t k = 0; k < rows->farthest; k++)
        TRY(take_row(rows, rows->first[k], &before[k]));
    TRY(carry(rows, before));
    struct ir_use *next;
    for (struct ir_use *use = loop_param(&rows->loop, rows->carried)->uses; use; use = next) {
        next = use->next;
        if (use->user == rows->assign)
            continue;
        const uint32_t distance = distance_of(rows, loop_row_of(use->user));
        ir_value_replace(&use->user->results[0], rows->loop.body->params[n + 1 + distance]);
        ir_op_remove(use->user);
    }
    rows->pass->changed = true;
    return pass_remark(rows->pass, TSSA_REMARK_APPLIED, rows->loop.op,
                       "carried value %u is read where %s wrote: the row is carried",
                       (unsigned)rows->carried,
                       rows->farthest == 1 ? "the iteration before" : "iterations before");
}

static tssa_status *visit(void *context, struct ir_op *op)
{
    if (!ir_op_is(op, IR_OP_Loop) || op->n_operands <= 2)
        return NULL;
    struct rows rows = {.pass = context, .loop = loop_of(op)};
    const uint32_t n = rows.loop.n_carried;
    for (rows.carried = 0; rows.carried < n; rows.carried++) {
        rows.loop = loop_of(op);
        if (find_rows(&rows))
            TRY(rewrite(&rows));
    }
    return NULL;
}

tssa_status *pass_carried_rows(struct pass_context *pass)
{
    return ir_block_walk(pass->graph->body, visit, pass);
}
