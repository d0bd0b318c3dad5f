/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes one `fuse` op of a NonMaxSuppression of one class and of the fuse op that alone reads what
 * it keeps (ir_fuse_boxes): results of a detector. A device computes them for as many boxes as may
 * be kept, and its host waits for how many they are when all is launched, as it waits for the
 * results.
 *
 *   needs   types, a table of what kernels take, else nothing is done
 *   keeps   results' bits
 *   breaks  nothing
 *
 * Rows that are not kept are made of the first box. So each operand that is read has a row for each
 * box, and what is computed of a row depends on no other one, nor on how many there are.
 */
#include "ir/clone.h"
#include "ir/fuse.h"
#include "ir/infer.h"
#include "passes/pass.h"

#define MOST_OPERANDS 32

/* ---- Which --------------------------------------------------------------------------------- */

static bool has_rows(const struct ir_value *value, const struct dim *rows)
{
    const struct ir_type *type = value->type;
    return type->kind == TYPE_TENSOR && type->rank > 0 && type->dims[0] == rows;
}

/* Operands are all there, and each another one. */
static bool is_of_one_class(const struct ir_op *op)
{
    const struct ir_value *boxes = ir_operand(op, 0), *scores = ir_operand(op, 1);
    for (uint32_t i = 0; i < op->n_operands; i++)
        for (uint32_t k = 0; k <= i; k++)
            if (!ir_operand(op, i) || (k < i && ir_operand(op, k) == ir_operand(op, i)))
                return false;
    return op->n_operands > 2 && boxes->type->kind == TYPE_TENSOR && boxes->type->rank == 3 &&
           scores->type->kind == TYPE_TENSOR && scores->type->rank == 3 &&
           dim_is(scores->type->dims[0], 1) && dim_is(scores->type->dims[1], 1);
}

/* The fuse op that alone reads the boxes; NULL: there is none. */
static struct ir_op *reader_of(const struct ir_op *op)
{
    struct ir_op *reader = op->results[0].uses ? op->results[0].uses->user : NULL;
    for (const struct ir_use *use = op->results[0].uses; use; use = use->next)
        if (use->user != reader)
            return NULL;
    return reader && reader->parent == op->parent && ir_fuse_body(reader) &&
                   !ir_fuse_loop(reader) && !reader->opaque
               ? reader
               : NULL;
}

static bool may_follow(const struct pass_context *pass, const struct ir_op *op,
                       const struct ir_op *reader)
{
    const struct ir_value *kept = &op->results[0];
    const struct dim *boxes = ir_operand(op, 0)->type->dims[1];
    if (kept->type->kind != TYPE_TENSOR || kept->type->rank != 2 ||
        kept->type->dims[0]->kind != DIM_SYMBOL)
        return false;
    for (uint32_t i = 0; i < reader->n_operands; i++)
        if (ir_operand(reader, i) != kept && !has_rows(ir_operand(reader, i), boxes))
            return false;
    for (uint32_t i = 0; i < reader->n_results; i++)
        if (!reader->results[i].wanted || !has_rows(&reader->results[i], kept->type->dims[0]))
            return false;
    return pass->fusion->is_free_of(pass->fusion->user, reader, kept->type->dims[0]);
}

/* ---- Making -------------------------------------------------------------------------------- */

struct making {
    struct ir_graph *graph;
    struct ir_op *boxes, *reader, *fuse, *ret;
    struct ir_block *body;
    uint32_t n;
    struct ir_value *operands[MOST_OPERANDS];
};

static struct ir_value *enter(struct making *m, struct ir_value *value)
{
    for (uint32_t i = 0; i < m->n; i++)
        if (m->operands[i] == value)
            return m->body->params[i];
    struct ir_value *param = ir_block_add_param(m->body);
    if (!param)
        return NULL;
    param->type = value->type;
    param->known = value->known;
    m->operands[m->n++] = value;
    return param;
}

/* What the reader's parameters stood for is that of the new block, or the boxes. */
static tssa_status *replace_params(struct making *m)
{
    struct ir_block *from = ir_fuse_body(m->reader);
    for (uint32_t i = 0; i < m->reader->n_operands; i++) {
        struct ir_value *value = ir_operand(m->reader, i),
                        *by = value == &m->boxes->results[0] ? value : enter(m, value);
        TRY_ALLOC(by);
        ir_value_replace(from->params[i], by);
    }
    return NULL;
}

static tssa_status *create(struct making *m)
{
    const uint32_t n = m->reader->n_results;
    m->fuse = ir_op_create(m->graph, ir_op_info(IR_OP_fuse), m->n, n);
    m->ret = ir_op_create(m->graph, ir_op_info(IR_OP_return), n, 0);
    if (!m->fuse || !m->ret || !ir_op_set_blocks(m->graph, m->fuse, 1))
        return status_out_of_memory();
    m->fuse->blocks[0] = m->body;
    m->fuse->block_names[0] = intern_str(&m->graph->strings, IR_FUSE_BODY);
    TRY_ALLOC(m->fuse->block_names[0]);
    m->body->owner = m->fuse;
    m->fuse->name = m->reader->name;
    for (uint32_t i = 0; i < m->n; i++)
        ir_op_set_operand(m->fuse, i, m->operands[i]);
    ir_op_append(m->body, m->ret);
    return NULL;
}

static void move_in(struct making *m)
{
    struct ir_block *from = ir_fuse_body(m->reader);
    for (uint32_t i = 0; i < m->reader->n_operands; i++)
        ir_op_set_operand(m->reader, i, NULL);
    ir_op_move_before(m->boxes, m->ret);
    for (uint32_t i = 0; i < m->boxes->n_operands; i++)
        ir_op_set_operand(m->boxes, i, m->body->params[i]);
    for (struct ir_op *op = from->first, *next; !ir_op_is(op, IR_OP_return); op = next) {
        next = op->next;
        ir_op_move_before(op, m->ret);
    }
    for (uint32_t i = 0; i < m->reader->n_results; i++) {
        struct ir_value *result = &m->reader->results[i], *by = &m->fuse->results[i];
        ir_op_set_operand(m->ret, i, ir_operand(ir_block_return(from), i));
        by->type = result->type;
        by->known = result->known;
        by->declared = result->declared;
        by->name = result->name;
        result->name = NULL;
        ir_value_replace(result, by);
    }
}

static tssa_status *make(struct making *m)
{
    m->body = ir_block_create(m->graph, NULL, 0);
    TRY_ALLOC(m->body);
    for (uint32_t i = 0; i < m->boxes->n_operands; i++)
        TRY_ALLOC(enter(m, ir_operand(m->boxes, i)));
    TRY(replace_params(m));
    TRY(create(m));
    ir_op_insert_before(m->fuse, m->reader);
    move_in(m);
    ir_release_blocks(m->reader);
    ir_op_remove(m->reader);
    m->fuse->inferred_from = ir_infer_stamp(m->fuse);
    return NULL;
}

/* The NonMaxSuppression that the op reads; NULL: none that will do. */
static struct ir_op *boxes_of(const struct pass_context *pass, const struct ir_op *reader)
{
    for (uint32_t i = 0; ir_fuse_body(reader) && i < reader->n_operands; i++) {
        struct ir_op *op = ir_operand(reader, i)->op;
        if (op && ir_op_is(op, IR_OP_NonMaxSuppression) && !op->opaque && is_of_one_class(op) &&
            reader_of(op) == reader && reader->n_operands + op->n_operands <= MOST_OPERANDS &&
            may_follow(pass, op, reader))
            return op;
    }
    return NULL;
}

static tssa_status *visit(void *context, struct ir_op *op)
{
    struct pass_context *pass = context;
    struct making m = {.graph = pass->graph, .boxes = boxes_of(pass, op), .reader = op};
    if (!m.boxes)
        return NULL;
    TRY(make(&m));
    pass->changed = true;
    return pass_remark(pass, TSSA_REMARK_APPLIED, m.fuse,
                       "one op of NonMaxSuppression and what is read of the boxes that it keeps");
}

tssa_status *pass_follow_boxes(struct pass_context *pass)
{
    return pass->fusion && pass->fusion->is_free_of ? ir_block_walk(pass->graph->body, visit, pass)
                                                    : NULL;
}
