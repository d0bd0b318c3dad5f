/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows looked up in a constant table and multiplied with a constant matrix are looked up in the
 * product:
 *
 *     MatMul(E[tokens], W)   ->   (E W)[tokens]
 *
 * The first product of a decoder with an embedding is such a lookup. The product may be larger than
 * what it is made of, though the table and the matrix go with their last use: rows of four gates
 * take the place of rows of an embedding. Where it exceeds the budget of a file (pass_file_growth),
 * and nobody has set one, it is made when it adds no more than one part in MAX_FILE_PART to all
 * constants of the model: it saves a product in every iteration, a third of the time of a small
 * decoder. A remark says the bytes.
 *
 *   needs   accesses (recover), an evaluator
 *   keeps   nothing of the last bits: the product of many rows may be summed in another order
 *   breaks  nothing
 */
#include "ir/infer.h"
#include "ir/rule.h"
#include "passes/pass.h"

/* The product may be so many times as large as what it is made of. */
#define MAX_GROWTH 2
#define MAX_FILE_PART 4

static const struct tensor *constant_matrix(const struct ir_value *value)
{
    const struct tensor *tensor = value ? ir_value_constant(value) : NULL;
    return tensor && tensor->rank == 2 && dtype_is_float(tensor->dtype) ? tensor : NULL;
}

/* Whole rows, whose elements come last: [gather(0, $0)], [select(0, i)], [select(0, i),
 * unsqueeze(0)]. */
static bool takes_rows(const struct rule *rule)
{
    const struct rule_step *steps = rule->steps;
    if (rule->n_steps == 1 && steps[0].kind == RULE_GATHER)
        return steps[0].params[0].value == 0;
    if (rule->n_steps < 1 || rule->n_steps > 2 || steps[0].kind != RULE_SELECT ||
        steps[0].params[0].value != 0)
        return false;
    return rule->n_steps == 1 || (steps[1].kind == RULE_UNSQUEEZE && steps[1].n_params == 1 &&
                                  steps[1].params[0].value == 0);
}

/* The table that `value` is rows of. */
static const struct tensor *find_table(const struct ir_value *value)
{
    const struct ir_op *op = value ? value->op : NULL;
    if (!op || !ir_op_is(op, IR_OP_access) || !takes_rows(rule_of(op)))
        return NULL;
    return constant_matrix(ir_operand(op, 0));
}

static bool is_small_enough(const struct tensor *table, const struct tensor *matrix)
{
    int64_t rows = table->dims[0], inner = table->dims[1], columns = matrix->dims[1], product, both;
    return inner == matrix->dims[0] && rows > 0 && columns > 0 && inner > 0 &&
           !__builtin_mul_overflow(rows, columns, &product) &&
           !__builtin_mul_overflow(rows + columns, inner * MAX_GROWTH, &both) && product <= both;
}

static tssa_status *add_constant(void *bytes, struct ir_op *op)
{
    if (ir_op_is(op, IR_OP_Constant) && ir_value_constant(&op->results[0]))
        *(size_t *)bytes += tensor_bytes(ir_value_constant(&op->results[0]));
    return NULL;
}

/* The bytes of a constant that goes with its only user. */
static int64_t freed(const struct ir_value *constant)
{
    return constant->uses->next ? 0 : (int64_t)tensor_bytes(ir_value_constant(constant));
}

/* That the file would be larger by; the product's dims were multiplied before. */
static int64_t growth(const struct ir_op *op, const struct tensor *table,
                      const struct tensor *matrix)
{
    const struct ir_value *rows = ir_operand(op, 0);
    int64_t size = (int64_t)dtype_info(table->dtype)->size;
    int64_t goes =
        freed(ir_operand(op, 1)) + (rows->uses->next ? 0 : freed(ir_operand(rows->op, 0)));
    return table->dims[0] * matrix->dims[1] * size - goes;
}

/* A Constant before `op` with the product of the table and the matrix; NULL in *constant when it
 * cannot be evaluated. */
static tssa_status *make_product(struct pass_context *pass, struct ir_op *op,
                                 struct ir_value *table, struct ir_value *matrix,
                                 struct ir_op **constant)
{
    struct tensor *product = NULL;
    struct ir_op *matmul = ir_op_create(pass->graph, op->info, 2, 1);
    TRY_ALLOC(matmul);
    matmul->version = op->version;
    ir_op_set_operand(matmul, 0, table);
    ir_op_set_operand(matmul, 1, matrix);
    ir_op_insert_before(matmul, op);
    TRY(ir_infer_op_lenient(matmul));
    tssa_status *status = pass->evaluate(pass->evaluate_user, pass->graph, matmul, &product);
    ir_op_remove(matmul);
    TRY(status);
    *constant = NULL;
    if (!product)
        return NULL;
    *constant = ir_constant_create(pass->graph, product);
    return pass_insert(*constant, op);
}

static tssa_status *fold(struct pass_context *pass, struct ir_op *op, int64_t more)
{
    const struct ir_op *rows = ir_operand(op, 0)->op;
    struct ir_value *params[1];
    struct ir_op *constant;
    uint32_t n_params = rule_of(rows)->n_operands;
    TRY(make_product(pass, op, ir_operand(rows, 0), ir_operand(op, 1), &constant));
    if (!constant)
        return NULL;
    if (n_params)
        params[0] = ir_operand(rows, rule_first_operand(rows));
    struct ir_op *access =
        rule_access_create(pass->graph, &constant->results[0], rule_of(rows), n_params, params);
    TRY(pass_remark(pass, TSSA_REMARK_APPLIED, op,
                    "rows of a table times a matrix are looked up, in %lld bytes %s than before",
                    (long long)(more < 0 ? -more : more), more < 0 ? "less" : "more"));
    return pass_replace(pass, op, access);
}

static tssa_status *fold_if_small(struct pass_context *pass, struct ir_op *op, int64_t more)
{
    size_t all = 0;
    if (pass_is_for_session(pass))
        return fold(pass, op, more);
    if (pass->graph->folded_growth + more <= pass_file_growth(pass)) {
        pass->graph->folded_growth += more > 0 ? more : 0;
        return fold(pass, op, more);
    }
    TRY(ir_block_walk(pass->graph->body, add_constant, &all));
    bool is_set = pass->options && pass->options->file_growth;
    if (!is_set && more <= (int64_t)(all / MAX_FILE_PART))
        return fold(pass, op, more);
    return pass_remark(
        pass, TSSA_REMARK_MISSED, op,
        "rows are not looked up in the product of table and matrix: the file would be "
        "%lld bytes larger, and has %zu bytes of constants",
        (long long)more, all);
}

static tssa_status *visit(void *context, struct ir_op *op)
{
    if (!ir_op_is(op, IR_OP_MatMul))
        return NULL;
    const struct tensor *table = find_table(ir_operand(op, 0));
    const struct tensor *matrix = constant_matrix(ir_operand(op, 1));
    if (!table || !matrix || table->dtype != matrix->dtype || !is_small_enough(table, matrix))
        return NULL;
    return fold_if_small(context, op, growth(op, table, matrix));
}

tssa_status *pass_fold_lookups(struct pass_context *pass)
{
    return pass->evaluate ? ir_block_walk(pass->graph->body, visit, pass) : NULL;
}
