/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The verifier. A first walk checks that the lists and owners are sound, so that everything after
 * it, printing the offending op included, may follow the graph's pointers.
 */
#include "ir/verifier.h"

#include <string.h>

#include "ir/fuse.h"
#include "ir/printer.h"
#include "ir/rule.h"

enum visibility { UNDEFINED, VISIBLE, OUT_OF_SCOPE };

struct verifier {
    struct ir_graph *graph;
    const struct ir_op **ops;       /* by id: the op in the graph that has it */
    const struct ir_value **values; /* by id */
    uint8_t *visibility;            /* of values, by id */
    struct map names;
};

/* ---- Messages -------------------------------------------------------------------------------- */

static tssa_status *fail(tssa_code code, const struct ir_op *op, const char *format, ...)
    __attribute__((format(printf, 3, 4), cold));

static tssa_status *fail(tssa_code code, const struct ir_op *op, const char *format, ...)
{
    struct text why, line;
    va_list arguments;
    text_init(&why, op->parent->graph->allocator);
    text_init(&line, op->parent->graph->allocator);
    va_start(arguments, format);
    text_vprintf(&why, format, arguments);
    va_end(arguments);
    ir_print_op_line(op, &line);
    const char *why_string = text_string(&why), *line_string = text_string(&line);
    tssa_status *status = why_string && line_string
                              ? ERROR(code, "%s, in: %s", why_string, line_string)
                              : status_out_of_memory();
    text_free(&why);
    text_free(&line);
    return status;
}

#define FAIL(op, ...) fail(TSSA_INTERNAL, (op), __VA_ARGS__)

/* Before the graph is known to be printable. */
static tssa_status *broken(const struct ir_op *op, const char *what)
{
    char where[256];
    ir_op_describe(op, where, sizeof where);
    return ERROR(TSSA_INTERNAL, "%s: %s", where, what);
}

/* ---- Structure ------------------------------------------------------------------------------- */

static tssa_status *register_value(struct verifier *v, const struct ir_value *value)
{
    if (value->id >= v->graph->n_values || v->values[value->id])
        return ERROR(TSSA_INTERNAL, "value id %u is out of range or used twice",
                     (unsigned)value->id);
    if (!value->type)
        return ERROR(TSSA_INTERNAL, "value %u has no type", (unsigned)value->id);
    v->values[value->id] = value;
    if (value->name) {
        if (map_get(&v->names, &value->name, sizeof value->name))
            return ERROR(TSSA_INTERNAL, "two values are named \"%s\"", value->name);
        if (!map_put(&v->names, &value->name, sizeof value->name, (void *)value))
            return status_out_of_memory();
    }
    return NULL;
}

static tssa_status *check_op_structure(struct verifier *v, const struct ir_op *op)
{
    if (op->id >= v->graph->n_ops || v->ops[op->id])
        return broken(op, "its id is out of range or used twice");
    v->ops[op->id] = op;
    if ((ir_op_is(op, IR_OP_opaque) || ir_op_is(op, IR_OP_call)) != (op->opaque != NULL))
        return broken(op, "an opaque op, and no other, has an opaque name");
    for (uint32_t i = 0; i < op->n_operands; i++)
        if (op->operands[i].user != op)
            return broken(op, "an operand slot belongs to another op");
    for (uint32_t i = 0; i < op->n_results; i++) {
        const struct ir_value *result = &op->results[i];
        if (result->op != op || result->block || result->index != i)
            return broken(op, "a result does not know its op or its index");
        TRY(register_value(v, result));
    }
    for (uint32_t i = 0; i < op->n_attrs; i++)
        if (!op->attrs[i].name || (op->attrs[i].kind == IR_ATTR_TENSOR && !op->attrs[i].tensor))
            return broken(op, "an attribute has no name or no value");
    for (uint32_t i = 0; i < op->n_blocks; i++)
        if (!op->blocks[i] || op->blocks[i]->owner != op || !op->block_names[i])
            return broken(op, "a block has no name or another owner");
    return NULL;
}

static tssa_status *check_structure(struct verifier *v, const struct ir_block *block)
{
    const struct ir_op *previous = NULL;
    if (block->graph != v->graph)
        return ERROR(TSSA_INTERNAL, "a block belongs to another graph");
    for (uint32_t i = 0; i < block->n_params; i++) {
        const struct ir_value *param = block->params[i];
        if (!param || param->block != block || param->op || param->index != i)
            return ERROR(TSSA_INTERNAL, "a parameter does not know its block or its index");
        TRY(register_value(v, param));
    }
    for (const struct ir_op *op = block->first; op; previous = op, op = op->next) {
        if (op->prev != previous || op->parent != block)
            return broken(op, "its links to its block or its neighbours are wrong");
        TRY(check_op_structure(v, op));
        for (uint32_t i = 0; i < op->n_blocks; i++)
            TRY(check_structure(v, op->blocks[i]));
    }
    if (block->last != previous)
        return ERROR(TSSA_INTERNAL, "a block's last op is not at the end of its list");
    return NULL;
}

/* ---- Uses ------------------------------------------------------------------------------------ */

/* Every use in a value's list is an operand slot of an op in the graph that holds the value. */
static tssa_status *check_uses(const struct verifier *v)
{
    for (uint32_t id = 0; id < v->graph->n_values; id++) {
        const struct ir_use *previous = NULL;
        if (!v->values[id])
            continue;
        for (const struct ir_use *use = v->values[id]->uses; use; previous = use, use = use->next) {
            if (use->value != v->values[id] || use->prev != previous)
                return ERROR(TSSA_INTERNAL, "the use list of value %u is broken", (unsigned)id);
            if (use->user->id >= v->graph->n_ops || v->ops[use->user->id] != use->user)
                return ERROR(TSSA_INTERNAL, "value %u is used by an op that is not in the graph",
                             (unsigned)id);
        }
    }
    return NULL;
}

static bool is_listed(const struct ir_use *use)
{
    return use->prev ? use->prev->next == use : use->value->uses == use;
}

static tssa_status *check_operands(const struct verifier *v, const struct ir_op *op)
{
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const struct ir_value *value = op->operands[i].value;
        bool required = i < op->info->min_operands && op->info->cls != IR_CLASS_CONTROL;
        if (!value && (required || ir_op_is(op, IR_OP_return)))
            return FAIL(op, "operand %u is missing", (unsigned)i);
        if (!value)
            continue;
        if (value->id >= v->graph->n_values || v->values[value->id] != value)
            return FAIL(op, "operand %u is not defined in the graph", (unsigned)i);
        if (v->visibility[value->id] == UNDEFINED)
            return FAIL(op, "operand %u is used before it is defined", (unsigned)i);
        if (v->visibility[value->id] == OUT_OF_SCOPE)
            return FAIL(op, "operand %u is defined in a block that does not enclose its use",
                        (unsigned)i);
        if (!value->wanted)
            return FAIL(op, "operand %u is an unwanted result", (unsigned)i);
        if (!is_listed(&op->operands[i]))
            return FAIL(op, "operand %u is not in its value's use list", (unsigned)i);
    }
    return NULL;
}

/* ---- Ops ------------------------------------------------------------------------------------- */

static tssa_status *check_count(const struct ir_op *op, const char *what, uint32_t n, unsigned min,
                                unsigned max)
{
    if (n < min)
        return FAIL(op, "%u %s, but at least %u are needed", (unsigned)n, what, min);
    if (n > max && max != IR_VARIADIC)
        return FAIL(op, "%u %s, but at most %u are allowed", (unsigned)n, what, max);
    return NULL;
}

static tssa_status *check_version(const struct ir_op *op)
{
    const uint8_t *version = op->info->versions;
    if (*version == 0 && op->version == 0)
        return NULL;
    while (*version && *version != op->version)
        version++;
    return *version ? NULL : FAIL(op, "the operator has no version %d", op->version);
}

static tssa_status *check_attrs(const struct ir_op *op)
{
    /* Attributes are few; a hostile list of them is checked in part. */
    uint32_t n = op->n_attrs < 64 ? op->n_attrs : 64;
    for (uint32_t i = 1; i < n; i++)
        for (uint32_t j = 0; j < i; j++)
            if (strcmp(op->attrs[i].name, op->attrs[j].name) == 0)
                return FAIL(op, "attribute \"%s\" is there twice", op->attrs[i].name);
    return NULL;
}

/* Views, accesses and assigns. */
static tssa_status *check_rule(const struct ir_op *op)
{
    const struct rule *rule = rule_of(op);
    bool needed =
        ir_op_is(op, IR_OP_view) || ir_op_is(op, IR_OP_access) || ir_op_is(op, IR_OP_assign);
    if (needed != (rule != NULL))
        return FAIL(op, needed ? "there is no rule" : "only view, access and assign have a rule");
    if (!rule)
        return NULL;
    if (rule_problem(rule))
        return FAIL(op, "%s", rule_problem(rule));
    if (op->n_operands != rule_first_operand(op) + rule->n_operands)
        return FAIL(op, "the rule has %u operands, the op %u", (unsigned)rule->n_operands,
                    (unsigned)(op->n_operands - rule_first_operand(op)));
    return NULL;
}

static tssa_status *check_dtype(const struct ir_op *op)
{
    uint32_t index = ir_op_is(op, IR_OP_Where) ? 1 : 0; /* its condition is BOOL */
    const struct ir_value *value = ir_operand(op, index);
    if (!value || value->type->kind != TYPE_TENSOR || value->type->dtype == TSSA_UNDEFINED ||
        dtype_in(op->info->types, value->type->dtype))
        return NULL;
    return fail(TSSA_UNSUPPORTED, op, "operand %u cannot have element type %s", (unsigned)index,
                dtype_info(value->type->dtype)->ir_name);
}

/* ---- Control flow ---------------------------------------------------------------------------- */

/* A block by name with the given numbers of parameters and results. */
static tssa_status *check_block(const struct ir_op *op, const char *name, uint64_t n_params,
                                uint64_t n_results)
{
    const struct ir_block *block = ir_op_block(op, name);
    if (!block)
        return FAIL(op, "there is no block \"%s\"", name);
    const struct ir_op *ret = ir_block_return(block);
    if (!ret)
        return FAIL(op, "block \"%s\" does not end in return", name);
    if (block->n_params != n_params)
        return FAIL(op, "block \"%s\" has %u parameters, not %u", name, (unsigned)block->n_params,
                    (unsigned)n_params);
    if (ret->n_operands != n_results)
        return FAIL(op, "block \"%s\" returns %u values, not %u", name, (unsigned)ret->n_operands,
                    (unsigned)n_results);
    return NULL;
}

/* Of one kind and element type, whatever the shapes are. */
static bool same_elements(const struct ir_type *a, const struct ir_type *b)
{
    if (a->kind == TYPE_UNKNOWN || b->kind == TYPE_UNKNOWN)
        return true;
    return a->kind == b->kind &&
           (a->dtype == b->dtype || a->dtype == TSSA_UNDEFINED || b->dtype == TSSA_UNDEFINED);
}

/* The first result of the block that is of another type than the If's; n_results: none. */
static uint32_t find_misfit(const struct ir_op *op, const struct ir_block *block,
                            bool (*fits)(const struct ir_type *a, const struct ir_type *b))
{
    const struct ir_op *ret = ir_block_return(block);
    for (uint32_t i = 0; i < op->n_results; i++)
        if (ret->operands[i].value && !fits(ret->operands[i].value->type, op->results[i].type))
            return i;
    return op->n_results;
}

/* A branch that is never taken, for inference knew the condition, may return other shapes; of other
 * element types it may be where that is still known. */
static tssa_status *check_if(const struct ir_op *op)
{
    static const char *const names[] = {"then_branch", "else_branch"};
    const struct ir_value *condition = ir_operand(op, 0);
    bool known = condition && condition->known && condition->known->count == 1 &&
                 condition->known->elements[0];
    int misfits = 0;
    for (int b = 0; b < 2; b++) {
        TRY(check_block(op, names[b], 0, op->n_results));
        const struct ir_block *block = ir_op_block(op, names[b]);
        uint32_t misfit = find_misfit(op, block, type_compatible);
        misfits += misfit < op->n_results;
        if (misfits < 2 && !known)
            misfit = find_misfit(op, block, same_elements);
        if (misfit < op->n_results && (misfits == 2 || !known))
            return FAIL(op, "block \"%s\" returns another type as result %u", names[b],
                        (unsigned)misfit);
    }
    return NULL;
}

static tssa_status *check_loop(const struct ir_op *op)
{
    uint32_t carried = op->n_operands > 2 ? op->n_operands - 2 : 0;
    if (op->n_results < carried)
        return FAIL(op, "%u carried values, but %u results", (unsigned)carried,
                    (unsigned)op->n_results);
    return check_block(op, "body", (uint64_t)carried + 2, (uint64_t)op->n_results + 1);
}

static tssa_status *check_scan(const struct ir_op *op)
{
    uint32_t lengths = op->version == 8; /* Scan-8 has sequence_lens first */
    int64_t inputs = ir_attr_int(op, "num_scan_inputs", -1);
    if (inputs < 1 || inputs > (int64_t)op->n_operands - lengths)
        return FAIL(op, "num_scan_inputs does not fit the operands");
    if ((int64_t)op->n_operands - lengths - inputs > op->n_results)
        return FAIL(op, "there are more state variables than results");
    return check_block(op, "body", op->n_operands - lengths, op->n_results);
}

static bool captures(const struct ir_op *op, const struct ir_block *block)
{
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const struct ir_value *value = op->operands[i].value;
        if (value && (value->op ? value->op->parent : value->block) != block)
            return true;
    }
    return false;
}

/* Do ops of the op's blocks read what is neither there nor in `block`? */
static bool captures_inside(const struct ir_op *op, const struct ir_block *block)
{
    for (uint32_t i = 0; i < op->n_blocks; i++)
        for (const struct ir_op *inner = op->blocks[i]->first; inner; inner = inner->next) {
            for (uint32_t k = 0; k < inner->n_operands; k++) {
                const struct ir_value *value = inner->operands[k].value;
                const struct ir_block *from = value && value->op ? value->op->parent
                                              : value            ? value->block
                                                                 : block;
                while (from && from != block)
                    from = from->owner ? from->owner->parent : NULL;
                if (!from)
                    return true;
            }
            if (captures_inside(inner, block))
                return true;
        }
    return false;
}

static tssa_status *check_fused(const struct ir_op *op)
{
    const struct ir_block *block = op->parent;
    const bool loops = ir_op_is(op, IR_OP_Loop) || ir_op_is(op, IR_OP_Scan);
    if (captures(op, block) || (loops && captures_inside(op, block)))
        return FAIL(op, "the block of a fuse op captures a value");
    if (ir_op_is(op, IR_OP_return))
        return NULL;
    if (op->opaque || !(op->info->flags & IR_PURE))
        return FAIL(op, "an op with effects is in the block of a fuse op");
    return op->n_blocks && !loops ? FAIL(op, "an op with blocks is in the block of a fuse op")
                                  : NULL;
}

static tssa_status *check_fuse(const struct ir_op *op)
{
    const struct ir_graph *graph = op->parent->graph;
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const struct ir_value *value = ir_operand(op, i);
        if (!value)
            return FAIL(op, "operand %u is missing", (unsigned)i);
        if (ir_value_is_mutable(graph, value))
            return FAIL(op, "operand %u may change", (unsigned)i);
    }
    TRY(check_block(op, IR_FUSE_BODY, op->n_operands, op->n_results));
    const struct ir_block *block = ir_fuse_body(op);
    for (const struct ir_op *inner = block->first; inner; inner = inner->next)
        TRY(check_fused(inner));
    const struct ir_op *ret = ir_block_return(block);
    for (uint32_t i = 0; i < op->n_results; i++)
        if (op->results[i].wanted &&
            !type_compatible(ir_operand(ret, i)->type, op->results[i].type))
            return FAIL(op, "block \"%s\" returns another type as result %u", IR_FUSE_BODY,
                        (unsigned)i);
    return NULL;
}

static tssa_status *check_control(const struct ir_op *op)
{
    switch (op->info->id) {
    case IR_OP_If:
        TRY(check_count(op, "blocks", op->n_blocks, 2, 2));
        return check_if(op);
    case IR_OP_Loop:
        TRY(check_count(op, "blocks", op->n_blocks, 1, 1));
        return check_loop(op);
    case IR_OP_Scan:
        TRY(check_count(op, "blocks", op->n_blocks, 1, 1));
        return check_scan(op);
    case IR_OP_SequenceMap:
        TRY(check_count(op, "blocks", op->n_blocks, 1, 1));
        return check_block(op, "body", op->n_operands, op->n_results);
    case IR_OP_fuse:
        TRY(check_count(op, "blocks", op->n_blocks, 1, 1));
        return check_fuse(op);
    case IR_OP_opaque:
    case IR_OP_call:
        return NULL;
    default:
        return check_count(op, "blocks", op->n_blocks, 0, 0);
    }
}

/* ---- The walk -------------------------------------------------------------------------------- */

static tssa_status *check_op(const struct verifier *v, const struct ir_op *op)
{
    const struct ir_op_info *info = op->info;
    TRY(check_operands(v, op));
    if (op->opaque)
        return NULL;
    TRY(check_count(op, "operands", op->n_operands, info->min_operands, info->max_operands));
    TRY(check_count(op, "results", op->n_results, info->min_results, info->max_results));
    TRY(check_version(op));
    TRY(check_attrs(op));
    TRY(check_rule(op));
    if (ir_op_is(op, IR_OP_return) && op->next)
        return FAIL(op, "return is not the last op of its block");
    return check_dtype(op);
}

static tssa_status *check_ops(struct verifier *v, const struct ir_block *block)
{
    for (uint32_t i = 0; i < block->n_params; i++)
        v->visibility[block->params[i]->id] = VISIBLE;
    for (const struct ir_op *op = block->first; op; op = op->next) {
        TRY(check_op(v, op));
        for (uint32_t i = 0; i < op->n_blocks; i++) {
            if (!ir_block_return(op->blocks[i]))
                return FAIL(op, "block \"%s\" does not end in return", op->block_names[i]);
            TRY(check_ops(v, op->blocks[i]));
        }
        TRY(check_control(op));
        for (uint32_t i = 0; i < op->n_results; i++)
            v->visibility[op->results[i].id] = VISIBLE;
    }
    /* What the block defined cannot be seen from outside. */
    for (uint32_t i = 0; i < block->n_params; i++)
        v->visibility[block->params[i]->id] = OUT_OF_SCOPE;
    for (const struct ir_op *op = block->first; op; op = op->next)
        for (uint32_t i = 0; i < op->n_results; i++)
            v->visibility[op->results[i].id] = OUT_OF_SCOPE;
    return NULL;
}

static tssa_status *verify(struct verifier *v)
{
    TRY_ALLOC(v->ops);
    TRY_ALLOC(v->values);
    TRY_ALLOC(v->visibility);
    TRY(check_structure(v, v->graph->body));
    if (!ir_block_return(v->graph->body))
        return ERROR(TSSA_INTERNAL, "the graph does not end in return");
    TRY(check_uses(v));
    return check_ops(v, v->graph->body);
}

tssa_status *ir_verify(struct ir_graph *graph)
{
    const tssa_allocator *allocator = graph->allocator;
    struct verifier v = {.graph = graph};
    v.ops = allocator_calloc(allocator, graph->n_ops, sizeof *v.ops);
    v.values = allocator_calloc(allocator, graph->n_values, sizeof *v.values);
    v.visibility = allocator_calloc(allocator, graph->n_values, sizeof *v.visibility);
    map_init(&v.names, allocator);
    tssa_status *status = verify(&v);
    map_free(&v.names);
    allocator_free(allocator, v.visibility);
    allocator_free(allocator, v.values);
    allocator_free(allocator, v.ops);
    return status;
}
