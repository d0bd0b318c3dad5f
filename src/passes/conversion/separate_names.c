/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a name means is certain where the branch that chose it has not ended yet: what follows the
 * branch goes into both sides of it. What a loop carries into its first iteration is certain where
 * that one is not in the loop.
 *
 *     y = If(c) { then: a } { else: b }; write(y, s); f(a)
 *     If(c) { then: write(a, s); f(a) } { else: write(b, s); f(a) }
 *
 *     y = Loop(n, c, a) { (i, c, x): g(x, i)  return(c, x') }
 *     y = If(n > 0 and c) { then: g(a, 0)
 *                                 z = Loop(n - 1, c, a') { (i, c, x): g(x, i + 1)  return(c, x') }
 *                                 z } { else: a }
 *
 * Only where conversion would have to leave a write alone otherwise, and as long as the program
 * does not grow too large: such a program cannot be run at all.
 *
 *   needs   no updates; graphs without view and write are left alone
 *   keeps   what the program does, in the same order
 *   breaks  names of values in the copies
 */
#include "ir/clone.h"
#include "ir/infer.h"
#include "ir/rebuild.h"
#include "passes/analysis/loops.h"
#include "passes/conversion/alias.h"

/* Ops that are copied for one branch or loop, and for all. */
#define MAX_REST 400
#define MAX_COPIED 4000

struct separation {
    struct pass_context *pass;
    struct ir_cloner cloner;
    VEC(struct ir_value *) needed; /* by the return of the block that the branch is in */
    VEC(struct ir_op *) peeled;    /* loops without their first iteration */
    uint32_t n_copied;
};

/* ---- Which branch ---------------------------------------------------------------------------- */

/*
 * The If behind which something follows that could go into it: this one, or the one that it ends.
 */
static struct ir_op *with_rest(struct ir_op *op)
{
    while (op && ir_op_is(op, IR_OP_If) && op->next == ir_block_return(op->parent))
        op = op->parent->owner;
    return op && ir_op_is(op, IR_OP_If) ? op : NULL;
}

static uint32_t rest_size(const struct ir_op *branch)
{
    uint32_t size = 0;
    for (const struct ir_op *op = branch->next; op && size <= MAX_REST; op = op->next) {
        size++;
        for (uint32_t b = 0; b < op->n_blocks; b++)
            size += loop_size(op->blocks[b], MAX_REST);
    }
    return size;
}

static bool was_peeled(const struct separation *separation, const struct ir_op *loop)
{
    for (size_t i = 0; i < separation->peeled.count; i++)
        if (separation->peeled.data[i] == loop)
            return true;
    return false;
}

/* A loop that stacks nothing, and whose first iteration is still in it. */
static bool is_peelable(const struct separation *separation, const struct ir_op *op)
{
    return ir_op_is(op, IR_OP_Loop) && op->n_results == ir_loop_carried(op) && op->n_results > 0 &&
           !was_peeled(separation, op);
}

/* What can be done about the op that gives a name to storage which has another one: the branch or
 * loop to change, and how many ops are copied. */
static struct ir_op *changeable(const struct separation *separation, struct ir_op *where,
                                uint32_t *size)
{
    struct ir_op *op = is_peelable(separation, where) ? where : with_rest(where);
    *size = 0;
    if (op)
        *size = ir_op_is(op, IR_OP_If) ? rest_size(op) : loop_size(op->blocks[0], MAX_REST + 1);
    return op && *size <= MAX_REST && separation->n_copied + *size <= MAX_COPIED ? op : NULL;
}

/* A branch or loop that keeps a write from conversion. */
static struct ir_op *find_choice(struct separation *separation, const struct aliases *aliases)
{
    for (size_t i = 0; i < aliases->writes.count; i++) {
        const struct alias_value *set = alias_set(aliases, ir_operand(aliases->writes.data[i], 0));
        uint32_t size;
        struct ir_op *op =
            set->refusal == ALIAS_PASSED_ON ? changeable(separation, set->where, &size) : NULL;
        if (op) {
            separation->n_copied += size;
            return op;
        }
    }
    return NULL;
}

/* ---- Moving ---------------------------------------------------------------------------------- */

static bool is_needed(const struct separation *separation, const struct ir_value *value)
{
    for (size_t i = 0; i < separation->needed.count; i++)
        if (separation->needed.data[i] == value)
            return true;
    return false;
}

/* What the block returns of what the branch and the ops after it make. */
static tssa_status *list_needed(struct separation *separation, const struct ir_op *branch)
{
    const struct ir_op *ret = ir_block_return(branch->parent);
    separation->needed.count = 0;
    for (const struct ir_op *op = branch; op != ret; op = op->next)
        for (uint32_t r = 0; r < op->n_results; r++) {
            struct ir_value *value = (struct ir_value *)&op->results[r];
            for (const struct ir_use *use = value->uses; use; use = use->next)
                if (use->user == ret && !is_needed(separation, value) &&
                    !vec_push(&separation->needed, value))
                    return status_out_of_memory();
        }
    return NULL;
}

/* The program's outputs are read at its end: they are copied, and give storage no other name. */
static tssa_status *copy_output(struct ir_op *ret, struct ir_value **value)
{
    enum type_kind kind = (*value)->type->kind;
    if (kind == TYPE_SEQUENCE || kind == TYPE_OPTIONAL || kind == TYPE_MAP)
        return NULL;
    struct ir_op *copy = loop_make_op(ret, IR_OP_Identity, 1);
    TRY_ALLOC(copy);
    ir_op_set_operand(copy, 0, *value);
    *value = &copy->results[0];
    return ir_infer_op_lenient(copy);
}

/* The ops after the branch at the end of one side, which returns what the block needs of them. */
static tssa_status *copy_rest(struct separation *separation, struct ir_op *branch,
                              struct ir_block *side)
{
    struct ir_op *ret = ir_block_return(side);
    struct ir_cloner *cloner = &separation->cloner;
    uint32_t n = (uint32_t)separation->needed.count;
    struct ir_value **values =
        ARENA_ARRAY(&separation->pass->graph->arena, struct ir_value *, (size_t)n + 1);
    TRY_ALLOC(values);
    ir_cloner_reset(cloner);
    for (uint32_t r = 0; r < branch->n_results; r++)
        if (!ir_cloner_map(cloner, &branch->results[r], ir_operand(ret, r)))
            return status_out_of_memory();
    for (const struct ir_op *op = branch->next; op != ir_block_return(branch->parent);
         op = op->next) {
        struct ir_op *copy = ir_clone_op(cloner, op);
        TRY_ALLOC(copy);
        ir_op_insert_before(copy, ret);
        TRY(ir_infer_op_lenient(copy));
    }
    for (uint32_t i = 0; i < n; i++) {
        values[i] = ir_cloner_get(cloner, separation->needed.data[i]);
        if (!branch->parent->owner)
            TRY(copy_output(ret, &values[i]));
    }
    return ir_op_set_operands(ret, n, values) ? NULL : status_out_of_memory();
}

/* Takes the ops after the branch out. The block returns results of the branch from now on. */
static tssa_status *take_rest(struct separation *separation, struct ir_op *branch)
{
    struct ir_op *ret = ir_block_return(branch->parent);
    uint32_t n = (uint32_t)separation->needed.count;
    struct arena *arena = &separation->pass->graph->arena;
    uint32_t *place = ARENA_ARRAY(arena, uint32_t, (size_t)ret->n_operands + 1);
    uint32_t *from = ARENA_ARRAY(arena, uint32_t, (size_t)n + 1);
    const struct ir_type **types = ARENA_ARRAY(arena, const struct ir_type *, (size_t)n + 1);
    const char **names = ARENA_ARRAY(arena, const char *, (size_t)n + 1);
    if (!place || !from || !types || !names)
        return status_out_of_memory();
    for (uint32_t i = 0; i < n; i++) {
        struct ir_value *value = separation->needed.data[i];
        from[i] = IR_FRESH;
        types[i] = value->type;
        names[i] = value->name;
        for (uint32_t r = 0; r < ret->n_operands; r++)
            if (ir_operand(ret, r) == value) {
                place[r] = i + 1;
                ir_op_set_operand(ret, r, NULL);
            }
    }
    while (branch->next != ret) {
        struct ir_op *last = ret->prev;
        ir_release_blocks(last);
        ir_op_remove(last);
    }
    if (!ir_op_set_results(branch, n, from))
        return status_out_of_memory();
    for (uint32_t i = 0; i < n; i++) {
        branch->results[i].type = types[i];
        branch->results[i].name = names[i];
    }
    for (uint32_t r = 0; r < ret->n_operands; r++)
        if (place[r])
            ir_op_set_operand(ret, r, &branch->results[place[r] - 1]);
    return NULL;
}

static tssa_status *move_rest(struct separation *separation, struct ir_op *branch)
{
    TRY(pass_remark(separation->pass, TSSA_REMARK_APPLIED, branch,
                    "what follows is done in both branches: what names mean depends on which is "
                    "taken"));
    TRY(list_needed(separation, branch));
    for (uint32_t b = 0; b < 2; b++)
        TRY(copy_rest(separation, branch, branch->blocks[b]));
    separation->pass->changed = true;
    return take_rest(separation, branch);
}

/* ---- Loops ----------------------------------------------------------------------------------- */

static tssa_status *emit(struct ir_op *at, enum ir_op_id id, struct ir_value *a, struct ir_value *b,
                         struct ir_value **result)
{
    struct ir_op *op = loop_make_op(at, id, b ? 2 : 1);
    TRY_ALLOC(op);
    ir_op_set_operand(op, 0, a);
    if (b)
        ir_op_set_operand(op, 1, b);
    *result = &op->results[0];
    return ir_infer_op_lenient(op);
}

/*
 * Before the loop: is there an iteration at all, and how many after the first one? NULL: no limit.
 */
static tssa_status *read_limits(const struct loop *loop, struct ir_value **enters,
                                struct ir_value **left)
{
    struct ir_value *count = ir_operand(loop->op, 0), *condition = ir_operand(loop->op, 1);
    struct ir_value *zero, *one;
    *left = NULL;
    TRY(loop_make_bool(loop->op, true, enters));
    if (count) {
        TRY(loop_make_int(loop->op, 0, 0, &zero));
        TRY(loop_make_int(loop->op, 0, 1, &one));
        TRY(emit(loop->op, IR_OP_Greater, count, zero, enters));
        TRY(emit(loop->op, IR_OP_Sub, count, one, left));
    }
    if (condition)
        TRY(emit(loop->op, IR_OP_And, condition, *enters, enters));
    return NULL;
}

/* The first iteration before `at`, a branch's return; what it returns comes into `returned`. */
static tssa_status *copy_first(struct separation *separation, const struct loop *loop,
                               struct ir_op *at, struct ir_value **returned)
{
    struct ir_cloner *cloner = &separation->cloner;
    struct ir_value *number, *truth;
    TRY(loop_make_int(at, 0, 0, &number));
    TRY(loop_make_bool(at, true, &truth));
    ir_cloner_reset(cloner);
    bool mapped = ir_cloner_map(cloner, loop->body->params[0], number) &&
                  ir_cloner_map(cloner, loop->body->params[1], truth);
    for (uint32_t k = 0; k < loop->n_carried && mapped; k++)
        mapped = ir_cloner_map(cloner, loop_param(loop, k), loop_initial(loop, k));
    if (!mapped)
        return status_out_of_memory();
    TRY(ir_clone_ops(cloner, loop->body, at));
    for (uint32_t i = 0; i <= loop->n_carried; i++)
        returned[i] = ir_cloner_get(cloner, ir_operand(loop->ret, i));
    return NULL;
}

/* The other iterations: the same loop, whose counter begins with 1. */
static tssa_status *copy_others(struct separation *separation, const struct loop *loop,
                                struct ir_op *at, struct ir_value *left,
                                struct ir_value *const *returned, struct ir_op **made)
{
    struct ir_value *one, *number;
    ir_cloner_reset(&separation->cloner);
    struct ir_op *copy = ir_clone_op(&separation->cloner, loop->op);
    TRY_ALLOC(copy);
    ir_op_insert_before(copy, at);
    ir_op_set_operand(copy, 0, left);
    for (uint32_t i = 0; i <= loop->n_carried; i++)
        ir_op_set_operand(copy, i + 1, returned[i]);
    struct ir_op *first = copy->blocks[0]->first;
    TRY(loop_make_int(first, 0, 1, &one));
    struct ir_op *sum = loop_make_op(first, IR_OP_Add, 2);
    TRY_ALLOC(sum);
    number = &sum->results[0];
    ir_value_replace(copy->blocks[0]->params[0], number);
    ir_op_set_operand(sum, 0, copy->blocks[0]->params[0]);
    ir_op_set_operand(sum, 1, one);
    *made = copy;
    return vec_push(&separation->peeled, copy) ? ir_infer_op_lenient(copy) : status_out_of_memory();
}

/* One side of a branch, empty but for its return. */
static struct ir_op *make_side(struct ir_graph *graph, struct ir_op *branch, uint32_t index,
                               uint32_t n)
{
    static const char *const names[] = {"then_branch", "else_branch"};
    struct ir_block *block = ir_block_create(graph, branch, 0);
    struct ir_op *ret = ir_op_create(graph, ir_op_info(IR_OP_return), n, 0);
    branch->blocks[index] = block;
    branch->block_names[index] = intern_str(&graph->strings, names[index]);
    if (!block || !ret || !branch->block_names[index])
        return NULL;
    ir_op_append(block, ret);
    return ret;
}

static tssa_status *peel(struct separation *separation, const struct loop *loop)
{
    struct ir_graph *graph = separation->pass->graph;
    struct ir_op *op = loop->op, *others;
    struct ir_value *enters, *left;
    uint32_t n = loop->n_carried;
    struct ir_value **returned = ARENA_ARRAY(&graph->arena, struct ir_value *, (size_t)n + 1);
    TRY_ALLOC(returned);
    TRY(pass_remark(separation->pass, TSSA_REMARK_APPLIED, op,
                    "its first iteration comes before it: what names mean differs in it"));
    TRY(read_limits(loop, &enters, &left));
    struct ir_op *branch = ir_op_create(graph, ir_op_info(IR_OP_If), 1, n);
    TRY_ALLOC(branch);
    if (!ir_op_set_blocks(graph, branch, 2))
        return status_out_of_memory();
    branch->version = ir_op_bind(branch->info, IR_NEWEST_OPSET);
    branch->name = op->name;
    ir_op_set_operand(branch, 0, enters);
    struct ir_op *then = make_side(graph, branch, 0, n), *other = make_side(graph, branch, 1, n);
    TRY_ALLOC(then);
    TRY_ALLOC(other);
    ir_op_insert_before(branch, op);
    TRY(copy_first(separation, loop, then, returned));
    TRY(copy_others(separation, loop, then, left, returned, &others));
    for (uint32_t k = 0; k < n; k++) {
        ir_op_set_operand(then, k, &others->results[k]);
        ir_op_set_operand(other, k, loop_initial(loop, k));
        branch->results[k].type = op->results[k].type;
        loop_replace(&op->results[k], &branch->results[k]);
    }
    ir_release_blocks(op);
    ir_op_remove(op);
    separation->pass->changed = true;
    return NULL;
}

/* ---- The pass -------------------------------------------------------------------------------- */

/* One branch or loop; *found: there was one. */
static tssa_status *separate_one(struct separation *separation, bool *found)
{
    struct aliases aliases;
    struct ir_block *body = separation->pass->graph->body;
    TRY(alias_bind_same(body));
    tssa_status *status = alias_analyse(&aliases, separation->pass);
    struct ir_op *op = status ? NULL : find_choice(separation, &aliases);
    alias_free(&aliases);
    *found = op != NULL;
    if (!op)
        return status;
    if (ir_op_is(op, IR_OP_If))
        return move_rest(separation, op);
    struct loop loop = loop_of(op);
    return peel(separation, &loop);
}

tssa_status *pass_separate_names(struct pass_context *pass)
{
    struct separation separation = {.pass = pass};
    tssa_status *status = NULL;
    bool found = true;
    if (!ir_block_is_imperative(pass->graph->body))
        return NULL;
    vec_init(&separation.needed, pass->graph->allocator);
    vec_init(&separation.peeled, pass->graph->allocator);
    ir_cloner_init(&separation.cloner, pass->graph);
    while (!status && found)
        status = separate_one(&separation, &found);
    ir_cloner_free(&separation.cloner);
    vec_free(&separation.peeled);
    vec_free(&separation.needed);
    return status;
}
