/* SPDX-License-Identifier: Apache-2.0 */
/* What a mask keeps: elements, rows that are computed for it, and rows that are copied. */
#include "gir/mapper.h"
#include "ir/fuse.h"

_Static_assert(IR_FUSE_COLUMNS <= GIR_MAX_FIELDS, "a row that is kept is a record");

const struct ir_op *mapper_keeper(const struct ir_value *value)
{
    return value->op && ir_fuse_keeps(value->op) ? value->op : NULL;
}

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
    const struct ir_op *keeper = mapper_keeper(value);
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
    const struct ir_op *keeper = mapper_keeper(ir_operand(ir_block_return(m->body), index));
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

tssa_status *mapper_make_kept(struct mapper *m)
{
    const struct ir_op *ret = ir_block_return(m->body);
    struct kept kept[GIR_MAX_ARGS] = {{0}};
    m->active = NULL;
    m->unrolls = true;
    m->root = (struct gir_view){0};
    m->region = (struct mapper_region){0};
    mapper_begin_region(m, m->like->rank);
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
