/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products whose large result only another product needs, as attention has them of scores, are
 * computed a part at a time, with what lies between:
 *
 *     MatMul(Softmax(MatMul(q, k) / 8), v)     of [1, 6, 1500, 64], [1, 6, 64, 1500], ...
 *       ->   Concat(MatMul(Softmax(MatMul(q[:, 0:1], k[:, 0:1]) / 8), v[:, 0:1]), ...)
 *
 * A part is one element of the first axis of more than one. Its table is used while a cache still
 * has it, and the parts take turns in the memory of one. Parts begin and end where rows of the
 * operands do: to cut and to join them copies nothing.
 *
 *   needs   types, a table of what kernels take that says from what size on it is worth it
 *   keeps   results' bits, as far as a product of one matrix has the same bits in a batch
 *   breaks  what is computed in parts has no uses any more (dead_code)
 */
#include "ir/clone.h"
#include "ir/fuse.h"
#include "ir/infer.h"
#include "ir/rule.h"
#include "passes/maker.h"
#include "passes/pass.h"

#define MAX_OPS 16   /* from one product to the other */
#define MAX_PARTS 64 /* each is so many steps more */
/* Of a part: smaller products are not worth all threads. */
#define MIN_PART_BYTES (INT64_C(1) << 20)

struct chain {
    struct ir_op *ops[MAX_OPS]; /* the products first and last; each but the last is read by the
                                   next one alone */
    uint32_t n;
    int axis; /* from behind, 1 is the last: operands have fewer, too */
    int64_t parts;
};

static const struct ir_type *tensor_type(const struct ir_value *value)
{
    const struct ir_type *type = value ? value->type : NULL;
    return type && type->kind == TYPE_TENSOR && type->rank >= 0 ? type : NULL;
}

/* Is it the same for all parts, or has it an element of the axis for each? */
static bool has_parts(const struct chain *chain, const struct ir_value *value, bool *cut)
{
    const struct ir_type *type = tensor_type(value);
    *cut = false;
    if (!type)
        return false;
    if (type->rank < chain->axis || dim_is(type->dims[type->rank - chain->axis], 1))
        return true;
    *cut = dim_is(type->dims[type->rank - chain->axis], chain->parts);
    return *cut;
}

static bool have_parts(const struct chain *chain, const struct ir_op *op)
{
    bool cut;
    for (uint32_t i = 0; i < op->n_operands; i++)
        if (!has_parts(chain, ir_operand(op, i), &cut))
            return false;
    return true;
}

static bool is_product(const struct ir_op *op)
{
    return ir_op_is(op, IR_OP_MatMul) && !op->opaque;
}

/* Is each row of its result computed of one row of an operand of that shape? */
static bool is_by_rows(const struct ir_op *op, const struct ir_type *table)
{
    const struct ir_type *type = op->n_results == 1 ? tensor_type(&op->results[0]) : NULL;
    if (!type || op->opaque || op->n_blocks || !type_same_dims(type, table))
        return false;
    if (!ir_op_is(op, IR_OP_Softmax))
        return op->info->ew != NULL;
    const int64_t axis = ir_attr_int(op, "axis", op->version < 13 ? 1 : -1);
    return axis == -1 || axis == type->rank - 1;
}

/* The first axis of more than one element, where it is one of batches. */
static bool find_axis(struct chain *chain, const struct ir_type *table)
{
    int axis = 0;
    while (axis < table->rank && dim_is(table->dims[axis], 1))
        axis++;
    chain->axis = table->rank - axis;
    return chain->axis > 2 && dim_is_const(table->dims[axis], &chain->parts) &&
           chain->parts <= MAX_PARTS;
}

static bool is_large(const struct chain *chain, const struct ir_type *table, int64_t least)
{
    int64_t bytes = (int64_t)tssa_dtype_size(table->dtype), size;
    for (int i = 0; i < table->rank; i++)
        if (!dim_is_const(table->dims[i], &size) || !i64_mul(bytes, size, &bytes))
            return false;
    return bytes >= least && bytes / chain->parts >= MIN_PART_BYTES;
}

static struct ir_op *only_reader(const struct ir_op *op)
{
    const struct ir_use *use = op->results[0].uses;
    return use && !use->next && use->user->parent == op->parent ? use->user : NULL;
}

/* From the product on to the next one. */
static bool find_chain(struct ir_op *product, int64_t least, struct chain *chain)
{
    const struct ir_type *table = tensor_type(&product->results[0]);
    if (!table || !find_axis(chain, table) || !is_large(chain, table, least) ||
        !have_parts(chain, product))
        return false;
    chain->ops[chain->n++] = product;
    for (struct ir_op *op = only_reader(product); op && chain->n < MAX_OPS; op = only_reader(op)) {
        const struct ir_op *before = chain->ops[chain->n - 1];
        chain->ops[chain->n++] = op;
        if (!have_parts(chain, op))
            return false;
        if (is_product(op)) {
            const struct ir_type *type = tensor_type(&op->results[0]);
            return ir_operand(op, 0) == &before->results[0] && type && type->rank == table->rank;
        }
        if (!is_by_rows(op, table))
            return false;
    }
    return false;
}

/* ---- Parts ----------------------------------------------------------------------------------- */

struct splitting {
    const struct chain *chain;
    struct ir_cloner cloner;
    struct pass_maker maker;
};

/* Has copies read that part of the value, if it is not computed by the chain itself. */
static tssa_status *map_part(struct splitting *s, struct ir_value *value, int64_t part)
{
    bool cut;
    if (ir_cloner_get(&s->cloner, value) != value || !has_parts(s->chain, value, &cut) || !cut)
        return NULL;
    const int64_t numbers[] = {value->type->rank - s->chain->axis, part, part + 1, 1};
    struct ir_value *piece = pass_make_access(&s->maker, value, RULE_SLICE, 4, numbers, NULL);
    if (piece && !ir_cloner_map(&s->cloner, value, piece))
        s->maker.status = status_out_of_memory();
    return s->maker.status;
}

/* Under the name of what it is a copy of. */
static tssa_status *copy_op(struct splitting *s, const struct ir_op *op, struct ir_value **result)
{
    struct ir_op *copy = ir_clone_op(&s->cloner, op);
    TRY_ALLOC(copy);
    ir_op_insert_before(copy, s->maker.at);
    *result = &copy->results[0];
    return ir_infer_op_lenient(copy);
}

static tssa_status *copy_part(struct splitting *s, int64_t part, struct ir_value **result)
{
    ir_cloner_reset(&s->cloner);
    for (uint32_t i = 0; i < s->chain->n; i++) {
        const struct ir_op *op = s->chain->ops[i];
        for (uint32_t j = 0; j < op->n_operands; j++)
            TRY(map_part(s, ir_operand(op, j), part));
        TRY(copy_op(s, op, result));
    }
    return NULL;
}

static tssa_status *join(struct splitting *s, struct ir_op **join)
{
    struct ir_graph *graph = s->maker.graph;
    const int64_t parts = s->chain->parts;
    const struct ir_attr axis = {.name = intern_str(&graph->strings, "axis"),
                                 .kind = IR_ATTR_INT,
                                 .i = -(int64_t)s->chain->axis};
    struct ir_op *op = ir_op_create(graph, ir_op_info(IR_OP_Concat), (uint32_t)parts, 1);
    if (!op || !axis.name || !ir_op_set_attr(graph, op, &axis))
        return status_out_of_memory();
    op->version = ir_op_bind(op->info, IR_NEWEST_OPSET);
    *join = op;
    for (int64_t i = 0; i < parts; i++) {
        struct ir_value *part = NULL;
        TRY(copy_part(s, i, &part));
        ir_op_set_operand(op, (uint32_t)i, part);
    }
    return NULL;
}

static tssa_status *split(struct pass_context *pass, const struct chain *chain)
{
    struct ir_op *last = chain->ops[chain->n - 1], *joined = NULL;
    struct splitting s = {.chain = chain, .maker = {.at = last, .graph = pass->graph}};
    ir_cloner_init(&s.cloner, pass->graph);
    tssa_status *status = join(&s, &joined);
    ir_cloner_free(&s.cloner);
    TRY(status);
    TRY(pass_remark(pass, TSSA_REMARK_APPLIED, last, "computed in %lld parts, with what it reads",
                    (long long)chain->parts));
    TRY(pass_insert(joined, last));
    joined->results[0].name = last->results[0].name;
    last->results[0].name = NULL;
    ir_value_replace(&last->results[0], &joined->results[0]);
    pass->changed = true;
    return NULL;
}

/* Parts are visited in turn: those of an axis of batches may have heads. */
static tssa_status *visit(void *context, struct ir_op *op)
{
    struct pass_context *pass = context;
    struct chain chain = {.n = 0};
    return is_product(op) && find_chain(op, pass->fusion->table_bytes, &chain) ? split(pass, &chain)
                                                                               : NULL;
}

tssa_status *pass_split_tables(struct pass_context *pass)
{
    return pass->fusion && pass->fusion->table_bytes ? ir_block_walk(pass->graph->body, visit, pass)
                                                     : NULL;
}
