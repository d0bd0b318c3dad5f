/* SPDX-License-Identifier: Apache-2.0 */
/* tssa_model_control_flow: why the loops and branches of a model are what they are. */
#include <inttypes.h>

#include "api/handles.h"
#include "base/text.h"

struct visitor {
    void (*visit)(void *user, const tssa_control_info *info);
    void *user;
    struct text trips, condition, carries;
};

/* ---- Texts ----------------------------------------------------------------------------------- */

static void print_name(const struct ir_value *value, struct text *text)
{
    char op[128];
    if (value->name) {
        text_printf(text, "%%%s", value->name);
    } else if (value->op) {
        ir_op_describe(value->op, op, sizeof op);
        text_printf(text, "the result of %s", op);
    } else {
        text_printf(text, "parameter %" PRIu32, value->index);
    }
}

/* The one element of an integer or bool value: as a number or expression where it is known, else by
 * the value's name. */
static bool print_scalar(const struct ir_value *value, struct text *text)
{
    const struct dim *element =
        value->known && value->known->count == 1 ? value->known->elements[0] : NULL;
    int64_t number;
    if (element)
        dim_print(element, text);
    else
        print_name(value, text);
    return dim_is_const(element, &number);
}

static bool print_condition(const struct ir_value *value, struct text *text)
{
    const struct dim *element =
        value->known && value->known->count == 1 ? value->known->elements[0] : NULL;
    int64_t number;
    if (dim_is_const(element, &number)) {
        text_puts(text, number ? "true" : "false");
        return true;
    }
    print_name(value, text);
    return false;
}

static void print_carried(const struct ir_value *value, struct text *text)
{
    text_puts(text, text->size ? ", " : "");
    print_name(value, text);
    text_putc(text, ' ');
    type_print(value->type, text);
}

/* ---- Counting -------------------------------------------------------------------------------- */

static tssa_status *count_op(void *count, struct ir_op *op)
{
    *(size_t *)count += ir_op_computes(op);
    return NULL;
}

struct captures {
    const struct ir_op *owner;
    struct map seen;
};

/* Is the block one of the op's, or inside of one? */
static bool is_inside(const struct ir_block *block, const struct ir_op *owner)
{
    for (; block; block = block->owner ? block->owner->parent : NULL)
        if (block->owner == owner)
            return true;
    return false;
}

static tssa_status *collect_captures(void *context, struct ir_op *op)
{
    struct captures *captures = context;
    for (uint32_t i = 0; i < op->n_operands; i++) {
        struct ir_value *value = op->operands[i].value;
        if (!value || ir_value_constant(value))
            continue;
        const struct ir_block *block = value->op ? value->op->parent : value->block;
        if (!is_inside(block, captures->owner) &&
            !map_put(&captures->seen, &value->id, sizeof value->id, value))
            return status_out_of_memory();
    }
    return NULL;
}

static tssa_status *count_captured(const struct ir_op *op, size_t *count)
{
    struct captures captures = {.owner = op};
    tssa_status *status = NULL;
    map_init(&captures.seen, op->parent->graph->allocator);
    for (uint32_t i = 0; i < op->n_blocks && !status; i++)
        status = ir_block_walk(op->blocks[i], collect_captures, &captures);
    *count = captures.seen.live;
    map_free(&captures.seen);
    return status;
}

/* ---- What each kind of op says of itself ----------------------------------------------------- */

/* Whether a Loop goes on: what its body returns first, looked at through Identities. */
static const struct ir_value *continuation(const struct ir_block *body)
{
    const struct ir_value *value = ir_operand(ir_block_return(body), 0);
    while (value && value->op && ir_op_is(value->op, IR_OP_Identity))
        value = ir_operand(value->op, 0);
    return value;
}

/* What exporters write where there is no trip count: the largest number that their own integers
 * hold. */
static bool is_no_limit(const struct ir_value *trips)
{
    const struct ir_known *known = trips->known;
    int64_t number;
    return known && known->count == 1 && dim_is_const(known->elements[0], &number) &&
           number >= INT32_MAX;
}

static void describe_loop(const struct ir_op *op, struct visitor *visitor, tssa_control_info *info)
{
    const struct ir_block *body = op->blocks[0];
    const struct ir_value *trips = ir_operand(op, 0), *first = ir_operand(op, 1);
    const struct ir_value *next = continuation(body);
    if (trips && !is_no_limit(trips))
        info->trips_are_constant = print_scalar(trips, &visitor->trips);
    if (next && body->n_params > 1 && next == body->params[1])
        next = first;
    if (next)
        info->condition_is_constant = print_condition(next, &visitor->condition);
    else
        info->condition_is_constant = 1;
    if (!next)
        text_puts(&visitor->condition, "true");
    for (uint32_t i = 2; i < body->n_params; i++)
        print_carried(body->params[i], &visitor->carries);
    info->carried = body->n_params > 2 ? body->n_params - 2 : 0;
    info->collected = op->n_results > info->carried ? op->n_results - info->carried : 0;
}

static void describe_scan(const struct ir_op *op, struct visitor *visitor, tssa_control_info *info)
{
    int64_t scanned = ir_attr_int(op, "num_scan_inputs", 1);
    uint32_t skip = op->version < 9 ? 1 : 0, n = op->n_operands > skip ? op->n_operands - skip : 0;
    uint32_t states = scanned > 0 && scanned <= n ? n - (uint32_t)scanned : 0;
    const struct ir_value *first = ir_operand(op, skip + states);
    size_t n_axes;
    const int64_t *axes = ir_attr_ints(op, "scan_input_axes", &n_axes);
    int64_t axis = skip ? 1 : axes && n_axes ? axes[0] : 0, number;
    const struct ir_type *type = first ? first->type : NULL;
    if (type && type->kind == TYPE_TENSOR && axis < 0)
        axis += type->rank;
    if (type && type->kind == TYPE_TENSOR && axis >= 0 && axis < type->rank) {
        dim_print(type->dims[axis], &visitor->trips);
        info->trips_are_constant = dim_is_const(type->dims[axis], &number);
    } else if (first) {
        text_puts(&visitor->trips, "length of ");
        print_name(first, &visitor->trips);
    }
    const struct ir_block *body = op->blocks[0];
    for (uint32_t i = 0; i < states && i < body->n_params; i++)
        print_carried(body->params[i], &visitor->carries);
    info->carried = states;
    info->collected = op->n_results > states ? op->n_results - states : 0;
}

static void describe(const struct ir_op *op, struct visitor *visitor, tssa_control_info *info)
{
    const struct ir_value *first = ir_operand(op, 0);
    if (ir_op_is(op, IR_OP_Loop)) {
        describe_loop(op, visitor, info);
    } else if (ir_op_is(op, IR_OP_Scan)) {
        describe_scan(op, visitor, info);
    } else if (ir_op_is(op, IR_OP_If) && first) {
        info->condition_is_constant = print_condition(first, &visitor->condition);
    } else if (ir_op_is(op, IR_OP_SequenceMap) && first) {
        text_puts(&visitor->trips, "length of ");
        print_name(first, &visitor->trips);
        info->collected = op->n_results;
    }
}

/* ---- The walk -------------------------------------------------------------------------------- */

static tssa_status *tell(const struct ir_op *op, int depth, struct visitor *visitor)
{
    char name[128];
    tssa_control_info info = {.op = name, .depth = depth};
    ir_op_describe(op, name, sizeof name);
    text_clear(&visitor->trips);
    text_clear(&visitor->condition);
    text_clear(&visitor->carries);
    describe(op, visitor, &info);
    for (uint32_t i = 0; i < op->n_blocks; i++)
        TRY(ir_block_walk(op->blocks[i], count_op, &info.op_count));
    TRY(count_captured(op, &info.captured));
    info.trips = text_string(&visitor->trips);
    info.condition = text_string(&visitor->condition);
    info.carries = text_string(&visitor->carries);
    if (!info.trips || !info.condition || !info.carries)
        return status_out_of_memory();
    visitor->visit(visitor->user, &info);
    return NULL;
}

static tssa_status *walk(const struct ir_block *block, int depth, struct visitor *visitor)
{
    for (const struct ir_op *op = block->first; op; op = op->next) {
        if (op->n_blocks && !op->opaque)
            TRY(tell(op, depth, visitor));
        for (uint32_t i = 0; i < op->n_blocks; i++)
            TRY(walk(op->blocks[i], depth + 1, visitor));
    }
    return NULL;
}

tssa_status *tssa_model_control_flow(const tssa_model *model,
                                     void (*visit)(void *, const tssa_control_info *), void *user)
{
    if (!model || !visit)
        return ERROR(TSSA_INVALID_ARGUMENT, "tssa_model_control_flow: an argument is NULL");
    const tssa_allocator *allocator = &model->context->allocator;
    struct visitor visitor = {.visit = visit, .user = user};
    text_init(&visitor.trips, allocator);
    text_init(&visitor.condition, allocator);
    text_init(&visitor.carries, allocator);
    tssa_status *status = walk(model->graph->body, 0, &visitor);
    text_free(&visitor.trips);
    text_free(&visitor.condition);
    text_free(&visitor.carries);
    return status;
}
