/* SPDX-License-Identifier: Apache-2.0 */
/* Products of matrices in the fuse ops that read them, where these alone do: what they come to is
 * computed where it is read. Or in those that compute an operand for them alone. Who has kernels
 * says where that is one. */
#include "ir/fuse.h"
#include "passes/lower/fuse_remake.h"

/* ---- Products -------------------------------------------------------------------------------- */

/* A product, and the views of it through which alone it is read, the last of which an operand is.
 */
struct product {
    struct ir_op *op;
    struct ir_value *last;
};

static bool is_product(const struct ir_op *op)
{
    return !op->opaque && (ir_op_is(op, IR_OP_MatMul) || ir_op_is(op, IR_OP_Gemm));
}

/* That the operand of the fuse op is; false: it is none, or others read it, too. */
static bool find_product(const struct fuse_plan *plan, const struct ir_op *fuse, uint32_t operand,
                         struct product *product)
{
    struct ir_value *value = ir_operand(fuse, operand);
    struct ir_op *op = fuse_maker(value, fuse->parent);
    product->last = value;
    while (op && op->n_operands == 1 && fuse_is_view(plan, op) && fuse_is_read_once(value)) {
        value = ir_operand(op, 0);
        op = fuse_maker(value, fuse->parent);
    }
    product->op = op;
    return op && fuse_is_read_once(value) && is_product(op);
}

/* Moves the product and its views before `before`, in order. */
static void move(const struct product *product, struct ir_op *before)
{
    for (struct ir_op *op = product->last->op;; op = ir_operand(op, 0)->op) {
        ir_op_move_before(op, before);
        before = op;
        if (op == product->op)
            return;
    }
}

/* Back out of the fuse op. */
static void move_out(const struct product *product, struct ir_op *fuse)
{
    move(product, fuse);
    fuse_leave_block(product->op, fuse);
}

/* Takes the product in if there is a kernel of that. *why says why not, or is NULL. */
static tssa_status *take_in(struct pass_context *pass, struct ir_op **fuse, uint32_t operand,
                            const struct product *product, const char **why)
{
    const struct ir_block *body = ir_fuse_body(*fuse);
    move(product, body->first);
    ir_value_replace(body->params[operand], product->last);
    TRY(fuse_remake(pass, fuse));
    *why = fuse_refuses_whole(pass, *fuse);
    if (!*why)
        return NULL;
    move_out(product, *fuse);
    return fuse_remake(pass, fuse);
}

static tssa_status *say(struct pass_context *pass, const struct ir_op *fuse,
                        const struct ir_op *product, const char *why)
{
    char other[128];
    if (!why)
        return pass_remark(pass, TSSA_REMARK_APPLIED, fuse, "one kernel with the %s that it reads",
                           product->info->name);
    ir_op_describe(fuse, other, sizeof other);
    return pass_remark(pass, TSSA_REMARK_MISSED, product, "it is not computed in %s: %s", other,
                       why);
}

/* ---- What computes an operand ---------------------------------------------------------------- */

/* A product that alone reads what a fuse op computes, as this operand. */
struct reader {
    struct ir_op *op;
    uint32_t operand;
    struct ir_value result; /* what the fuse op's result was */
};

static struct ir_op *find_operand(const struct ir_op *product, uint32_t operand)
{
    const struct ir_value *value = ir_operand(product, operand);
    struct ir_op *fuse = fuse_maker(value, product->parent);
    return fuse && ir_fuse_body(fuse) && !ir_fuse_loop(fuse) && fuse->n_results == 1 &&
                   fuse_is_read_once(value)
               ? fuse
               : NULL;
}

/* What is said of one value is said of another, but for its type's dims being its own. */
static void rename_value(struct ir_value *value, const struct ir_value *as)
{
    value->type = as->type;
    value->known = as->known;
    value->declared = as->declared;
    value->name = as->name;
}

static void forget_names(struct ir_value *value)
{
    value->declared = NULL;
    value->name = NULL;
}

/* The product goes into the fuse op, which stands where that was, and has its result. */
static void join_reader(struct ir_op *fuse, struct reader *reader)
{
    struct ir_op *ret = ir_block_return(ir_fuse_body(fuse));
    struct ir_value *result = &reader->op->results[0];
    const struct ir_value made = *result;
    reader->result = fuse->results[0];
    ir_op_move_before(fuse, reader->op);
    ir_op_set_operand(reader->op, reader->operand, ir_operand(ret, 0));
    forget_names(result);
    ir_value_replace(result, &fuse->results[0]);
    rename_value(&fuse->results[0], &made);
    ir_op_move_before(reader->op, ret);
    ir_op_set_operand(ret, 0, result);
}

/* And out again. */
static void part_reader(struct ir_op *fuse, const struct reader *reader)
{
    struct ir_value *result = &reader->op->results[0];
    const struct ir_value made = fuse->results[0];
    ir_op_set_operand(ir_block_return(ir_fuse_body(fuse)), 0,
                      ir_operand(reader->op, reader->operand));
    ir_op_move_before(reader->op, fuse->next);
    fuse_leave_block(reader->op, fuse);
    forget_names(&fuse->results[0]);
    ir_value_replace(&fuse->results[0], result);
    rename_value(result, &made);
    rename_value(&fuse->results[0], &reader->result);
    ir_op_set_operand(reader->op, reader->operand, &fuse->results[0]);
}

static tssa_status *take_reader(struct pass_context *pass, struct ir_op **fuse,
                                struct reader *reader, const char **why)
{
    join_reader(*fuse, reader);
    TRY(fuse_remake(pass, fuse));
    *why = fuse_refuses_whole(pass, *fuse);
    if (!*why)
        return NULL;
    part_reader(*fuse, reader);
    return fuse_remake(pass, fuse);
}

static tssa_status *fuse_operands(struct pass_context *pass, struct ir_op *product)
{
    const struct ir_fusion *fusion = pass->fusion;
    for (uint32_t i = 0; i < 2; i++) {
        struct reader reader = {.op = product, .operand = i};
        struct ir_op *fuse = find_operand(product, i);
        const char *why = NULL;
        if (!fuse || (fusion->refuses && fusion->refuses(fusion->user, product)))
            continue;
        TRY(take_reader(pass, &fuse, &reader, &why));
        pass->changed |= !why;
        if (!why)
            return pass_remark(pass, TSSA_REMARK_APPLIED, fuse, "one kernel with the %s of it",
                               product->info->name);
        TRY(pass_remark(pass, TSSA_REMARK_MISSED, product,
                        "what operand %u is is not computed in it: %s", (unsigned)i, why));
    }
    return NULL;
}

/* ---- What reads it --------------------------------------------------------------------------- */

/* The number of the operand. */
static uint32_t operand_of(const struct ir_op *fuse, const struct ir_value *value)
{
    uint32_t i = 0;
    while (ir_operand(fuse, i) != value)
        i++;
    return i;
}

static tssa_status *fuse_with(struct pass_context *pass, struct ir_op **fuse,
                              const struct product *product)
{
    const struct ir_fusion *fusion = pass->fusion;
    const char *why = fusion->refuses ? fusion->refuses(fusion->user, product->op) : NULL;
    if (!why)
        TRY(take_in(pass, fuse, operand_of(*fuse, product->last), product, &why));
    pass->changed |= !why;
    TRY(say(pass, *fuse, product->op, why));
    return why ? fuse_operands(pass, product->op) : NULL;
}

static tssa_status *fuse_of(const struct fuse_plan *plan, struct ir_op *fuse)
{
    struct pass_context *pass = plan->pass;
    VEC(struct product) all;
    struct product product;
    tssa_status *status = NULL;
    vec_init(&all, pass->graph->allocator);
    for (uint32_t i = 0; i < fuse->n_operands && !status; i++)
        if (find_product(plan, fuse, i, &product) && !vec_push(&all, product))
            status = status_out_of_memory();
    for (size_t i = 0; i < all.count && !status; i++)
        status = fuse_with(pass, &fuse, &all.data[i]);
    vec_free(&all);
    return status;
}

/* ---- All ------------------------------------------------------------------------------------- */

/* Does a fuse op alone read it, or views of it? */
static bool is_read_by_kernel(const struct fuse_plan *plan, const struct ir_op *product)
{
    const struct ir_value *value = &product->results[0];
    while (fuse_is_read_once(value) && value->uses->user->n_operands == 1 &&
           fuse_is_view(plan, value->uses->user))
        value = &value->uses->user->results[0];
    return fuse_is_read_once(value) && ir_fuse_body(value->uses->user) &&
           value->uses->user->parent == product->parent;
}

static tssa_status *fuse_alone(const struct fuse_plan *plan, struct ir_op *product)
{
    TRY(fuse_operands(plan->pass, product));
    return ir_fuse_is_inside(product)
               ? NULL
               : pass_remark(plan->pass, TSSA_REMARK_MISSED, product, "%s", fuse_outside(product));
}

static bool takes_products(const struct fuse_plan *plan)
{
    return (plan->fusion->classes & IR_FUSES_PRODUCTS) && plan->fusion->refuses_whole;
}

bool fuse_takes_product(const struct fuse_plan *plan, const struct ir_op *op)
{
    return takes_products(plan) && is_product(op);
}

tssa_status *fuse_products(const struct fuse_plan *plan, struct ir_block *block)
{
    struct ir_op *next;
    if (!takes_products(plan))
        return NULL;
    for (struct ir_op *op = block->first; op; op = next) {
        next = op->next;
        for (uint32_t i = 0; i < op->n_blocks && !op->opaque && !ir_fuse_body(op); i++)
            TRY(fuse_products(plan, op->blocks[i]));
        if (is_product(op) && !is_read_by_kernel(plan, op))
            TRY(fuse_alone(plan, op));
        if (ir_fuse_body(op) && !ir_fuse_loop(op))
            TRY(fuse_of(plan, op));
    }
    return NULL;
}
