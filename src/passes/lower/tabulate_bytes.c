/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What element-wise ops make of bytes, and is bytes again in the end, is looked up in a table:
 *
 *     QuantizeLinear(Erf(DequantizeLinear(x, s, z)), t, v)   ->   byte_table(x, [256 bytes])
 *
 * A value of bytes has 256 different elements at most. The ops are computed of these once, by the
 * kernels that a run would use, and an element of x names the entry that it finds: there is one for
 * each pattern of 8 bits. What reads the same value by several ways is one table (a GELU of 15 ops
 * that are quantized one by one), as far back as there is one value of bytes, of the result's
 * shape, and nothing else but constants of one number each.
 *
 * What the ops in between make may have other readers: then it stays, and is no reason for a table.
 * There is one where it takes less time than those ops that go.
 *
 * Only in sessions, whose device has a kernel for it: the CPU's. One that launches grids computes
 * what is element-wise beside what it waits for.
 *
 *   needs   constants where they are (fold_constants); pass->evaluate, or nothing happens
 *   keeps   results' bits
 *   breaks  constants may lose their uses (dead_code)
 */
#include "base/vec.h"
#include "ir/cost.h"
#include "ir/infer.h"
#include "ir/quantization.h"
#include "ir/scalar.h"
#include "passes/pass.h"

#define ENTRIES 256
#define MAX_DEPTH 64 /* ops in a row */

/* What is known of a value; by its id. */
struct origin {
    struct ir_value *bytes; /* that it is made of, element by element; NULL: there are none */
    uint32_t depth;         /* ops between these and the value, in a row */
    uint32_t goes;          /* number of the table for which its op goes; 0: none yet */
    struct ir_value *all;   /* the constant of all bytes, in the order of their bits, of its type */
    struct ir_value *entries; /* what it is made of these: a constant; NULL: that fails */
    bool is_known;            /* `entries` was looked for */
};

struct tables {
    struct pass_context *pass;
    struct origin *origins;
    uint32_t n_values, n_tables;
    VEC(struct ir_op *) ends;  /* QuantizeLinears that may be looked up, in their order */
    VEC(struct ir_op *) going; /* ops that the table in question takes the place of */
};

/* ---- Values ---------------------------------------------------------------------------------- */

static bool is_of_bytes(const struct ir_value *value)
{
    const struct ir_type *type = value->type;
    return type->kind == TYPE_TENSOR && type->rank >= 0 && dtype_in(T_I8U8, type->dtype);
}

/* Each element of the result is made of one element of each operand. */
static bool is_elementwise(const struct ir_op *op)
{
    return !op->opaque && op->n_results == 1 && op->n_blocks == 0 &&
           (op->info->flags & (IR_PURE | IR_RANDOM)) == IR_PURE &&
           (op->info->ew || ir_op_is(op, IR_OP_Cast) || ir_quantizes_elements(op));
}

/* Of values that were there before. */
static struct origin *origin_of(const struct tables *tables, const struct ir_value *value)
{
    return &tables->origins[value->id];
}

/* The bytes that an operand of the op is made of: in the op's block, or it is these itself. */
static struct ir_value *bytes_of(const struct tables *tables, const struct ir_op *op,
                                 struct ir_value *value)
{
    const struct origin *origin = origin_of(tables, value);
    const bool is_made = origin->bytes && value->op->parent == op->parent;
    if (is_made && origin->depth < MAX_DEPTH)
        return origin->bytes;
    return is_of_bytes(value) ? value : NULL;
}

/* What the op's result is made of; NULL: not of one value of bytes alone. */
static struct ir_value *find_bytes(const struct tables *tables, const struct ir_op *op)
{
    struct ir_value *found = NULL;
    for (uint32_t i = 0; i < op->n_operands; i++) {
        struct ir_value *value = ir_operand(op, i);
        const struct tensor *constant = value ? ir_value_constant(value) : NULL;
        if (!value || (constant && tensor_count(constant) == 1))
            continue;
        struct ir_value *bytes = constant ? NULL : bytes_of(tables, op, value);
        if (!bytes || (found && found != bytes))
            return NULL;
        found = bytes;
    }
    return found && type_same_dims(found->type, op->results[0].type) ? found : NULL;
}

static tssa_status *visit(void *context, struct ir_op *op)
{
    struct tables *tables = context;
    struct ir_value *bytes = is_elementwise(op) ? find_bytes(tables, op) : NULL;
    if (!bytes)
        return NULL;
    struct origin *made = origin_of(tables, &op->results[0]);
    made->bytes = bytes;
    made->depth = 1;
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const struct ir_value *value = ir_operand(op, i);
        const struct origin *before = value ? origin_of(tables, value) : NULL;
        if (value && value != bytes && before->bytes == bytes && before->depth >= made->depth)
            made->depth = before->depth + 1;
    }
    if (ir_op_is(op, IR_OP_QuantizeLinear) && is_of_bytes(&op->results[0]))
        return vec_push(&tables->ends, op) ? NULL : status_out_of_memory();
    return NULL;
}

/* ---- What is worth it ------------------------------------------------------------------------ */

static bool goes(const struct tables *tables, const struct ir_op *op)
{
    const struct ir_value *made = op->n_results == 1 ? &op->results[0] : NULL;
    return made && made->id < tables->n_values && origin_of(tables, made)->goes == tables->n_tables;
}

/* Whoever reads the value goes. */
static bool is_left(const struct tables *tables, const struct ir_value *value)
{
    for (const struct ir_use *use = value->uses; use; use = use->next)
        if (!goes(tables, use->user))
            return false;
    return true;
}

static tssa_status *let_go(struct tables *tables, struct ir_op *op)
{
    origin_of(tables, &op->results[0])->goes = tables->n_tables;
    return vec_push(&tables->going, op) ? NULL : status_out_of_memory();
}

/* The ops between the bytes and the end of which nobody else reads anything: users first. */
static tssa_status *find_going(struct tables *tables, struct ir_op *end)
{
    const struct ir_value *bytes = origin_of(tables, &end->results[0])->bytes;
    tables->n_tables++;
    tables->going.count = 0;
    TRY(let_go(tables, end));
    for (size_t i = 0; i < tables->going.count; i++) {
        const struct ir_op *op = tables->going.data[i];
        for (uint32_t k = 0; k < op->n_operands; k++) {
            const struct ir_value *value = ir_operand(op, k);
            if (value && value != bytes && origin_of(tables, value)->bytes == bytes &&
                !goes(tables, value->op) && is_left(tables, value))
                TRY(let_go(tables, value->op));
        }
    }
    return NULL;
}

static double work_of(const struct ir_op *op)
{
    static const enum scalar_id to_bytes[] = {SCALAR_DIV, SCALAR_ROUND, SCALAR_ADD, SCALAR_MAX,
                                              SCALAR_MIN},
                                to_floats[] = {SCALAR_SUB, SCALAR_MUL};
    const bool quantizes = ir_op_is(op, IR_OP_QuantizeLinear);
    const enum scalar_id *ids = quantizes ? to_bytes : to_floats;
    const size_t n =
        quantizes ? sizeof to_bytes / sizeof *to_bytes : sizeof to_floats / sizeof *to_floats;
    double work = 1; /* to another type */
    if (!ir_quantizes_elements(op))
        return cost_element_work(op);
    for (size_t i = 0; i < n; i++)
        work += scalar_info(ids[i])->work;
    return work;
}

/* Kernels of fused ops move what is between them in registers: what goes is computing alone. */
static bool is_worth_it(const struct tables *tables, const struct ir_op *end)
{
    const struct cost_sizes sizes = {.size = 1024};
    const double elements = cost_elements(end->results[0].type, &sizes);
    const struct cost_work table = {.calls = 1, .bytes = 2 * elements};
    struct cost_work chain = {0};
    for (size_t i = 0; i < tables->going.count; i++)
        chain.operations += elements * work_of(tables->going.data[i]);
    return cost_seconds(&cost_cpu, &table) < cost_seconds(&cost_cpu, &chain);
}

/* ---- Entries --------------------------------------------------------------------------------- */

/* A constant, before the op. */
static tssa_status *make_constant(struct ir_graph *graph, const struct tensor *tensor,
                                  struct ir_op *before, struct ir_value **made)
{
    struct ir_op *constant = ir_constant_create(graph, tensor);
    TRY(pass_insert(constant, before));
    *made = &constant->results[0];
    return NULL;
}

/* All bytes, of the value's type and rank: constants that belong to it go on fitting. */
static tssa_status *make_all(struct ir_graph *graph, const struct ir_value *value,
                             struct ir_op *before, struct ir_value **made)
{
    const int rank = value->type->rank ? value->type->rank : 1;
    struct tensor *all = ARENA_NEW(&graph->arena, struct tensor);
    uint8_t *data = arena_alloc_aligned(&graph->arena, ENTRIES, TENSOR_ALIGNMENT);
    TRY_ALLOC(all);
    TRY_ALLOC(data);
    *all = (struct tensor){.dtype = value->type->dtype, .rank = rank, .data = data};
    for (int i = 0; i < rank; i++)
        all->dims[i] = i + 1 < rank ? 1 : ENTRIES;
    for (int i = 0; i < ENTRIES; i++)
        data[i] = (uint8_t)i;
    return make_constant(graph, all, before, made);
}

static tssa_status *find_entries(struct tables *tables, struct ir_value *value,
                                 struct ir_op *before);

/* What the op's operand is of all bytes; NULL: nobody knows. */
static tssa_status *find_operand(struct tables *tables, const struct ir_op *op, uint32_t index,
                                 struct ir_op *before, struct ir_value **entries)
{
    struct ir_value *value = ir_operand(op, index),
                    *bytes = origin_of(tables, &op->results[0])->bytes;
    *entries = value;
    if (!value || ir_value_constant(value))
        return NULL;
    struct origin *origin = origin_of(tables, value);
    if (value != bytes)
        TRY(find_entries(tables, value, before));
    else if (!origin->all)
        TRY(make_all(tables->pass->graph, bytes, before, &origin->all));
    *entries = value == bytes ? origin->all : origin->entries;
    return NULL;
}

/* Gives the op, which is of nothing yet, the entries of the other's operands, and computes it. */
static tssa_status *evaluate(struct tables *tables, const struct ir_op *op, struct ir_op *made,
                             struct tensor **result)
{
    struct pass_context *pass = tables->pass;
    for (uint32_t i = 0; i < op->n_operands; i++) {
        struct ir_value *entries;
        TRY(find_operand(tables, op, i, made, &entries));
        if (ir_operand(op, i) && !entries)
            return NULL;
        ir_op_set_operand(made, i, entries);
    }
    TRY(ir_infer_op_lenient(made));
    return pass->evaluate(pass->evaluate_user, pass->graph, made, result);
}

/* Of a value that an op makes of bytes. The constants that are made for it are left (dead_code). */
static tssa_status *find_entries(struct tables *tables, struct ir_value *value,
                                 struct ir_op *before)
{
    struct origin *origin = origin_of(tables, value);
    struct ir_graph *graph = tables->pass->graph;
    const struct ir_op *op = value->op;
    struct tensor *result = NULL;
    if (origin->is_known)
        return NULL;
    origin->is_known = true;
    struct ir_op *made = ir_op_create(graph, op->info, op->n_operands, 1);
    TRY_ALLOC(made);
    made->version = op->version;
    if (!ir_op_copy_attrs(graph, made, op))
        return status_out_of_memory();
    ir_op_insert_before(made, before);
    tssa_status *status = evaluate(tables, op, made, &result);
    ir_op_remove(made);
    TRY(status);
    if (!result || tensor_count(result) != ENTRIES || result->dtype != value->type->dtype)
        return NULL;
    return make_constant(graph, result, before, &origin->entries);
}

/* ---- Making ---------------------------------------------------------------------------------- */

/* As a row. */
static tssa_status *make_table(struct tables *tables, const struct ir_value *of,
                               struct ir_op *before, struct ir_value **table)
{
    struct ir_graph *graph = tables->pass->graph;
    const struct tensor *entries = ir_value_constant(of);
    struct tensor *row = arena_copy(&graph->arena, entries, sizeof *entries);
    TRY_ALLOC(row);
    row->rank = 1;
    row->dims[0] = ENTRIES;
    return make_constant(graph, row, before, table);
}

static tssa_status *replace(struct tables *tables, struct ir_op *end)
{
    struct pass_context *pass = tables->pass;
    const struct origin *origin = origin_of(tables, &end->results[0]);
    struct ir_value *table;
    TRY(make_table(tables, origin->entries, end, &table));
    struct ir_op *look_up = ir_op_create(pass->graph, ir_op_info(IR_OP_byte_table), 2, 1);
    TRY_ALLOC(look_up);
    ir_op_set_operand(look_up, 0, origin->bytes);
    ir_op_set_operand(look_up, 1, table);
    TRY(pass_remark(pass, TSSA_REMARK_APPLIED, end, "looked up in a table of bytes: %zu operator%s",
                    tables->going.count, tables->going.count == 1 ? "" : "s"));
    TRY(pass_replace(pass, end, look_up));
    for (size_t i = 1; i < tables->going.count; i++)
        ir_op_remove(tables->going.data[i]);
    return NULL;
}

/* From the last one on: what a table takes the place of needs none. */
static tssa_status *look_up_ends(struct tables *tables)
{
    for (size_t i = tables->ends.count; i-- > 0;) {
        struct ir_op *end = tables->ends.data[i];
        struct ir_value *result = &end->results[0];
        if (!end->parent || !result->uses)
            continue;
        TRY(find_going(tables, end));
        if (!is_worth_it(tables, end))
            continue;
        TRY(find_entries(tables, result, end));
        if (origin_of(tables, result)->entries)
            TRY(replace(tables, end));
    }
    return NULL;
}

tssa_status *pass_tabulate_bytes(struct pass_context *pass)
{
    struct ir_graph *graph = pass->graph;
    if (!pass->evaluate || !pass_is_for_session(pass) ||
        !ir_block_has(graph->body, IR_OP_QuantizeLinear))
        return NULL;
    struct tables tables = {.pass = pass, .n_values = graph->n_values};
    vec_init(&tables.ends, graph->allocator);
    vec_init(&tables.going, graph->allocator);
    tables.origins = allocator_calloc(graph->allocator, graph->n_values, sizeof *tables.origins);
    tssa_status *status =
        tables.origins ? ir_block_walk(graph->body, visit, &tables) : status_out_of_memory();
    if (!status)
        status = look_up_ends(&tables);
    allocator_free(graph->allocator, tables.origins);
    vec_free(&tables.ends);
    vec_free(&tables.going);
    return status;
}
