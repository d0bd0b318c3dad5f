/* SPDX-License-Identifier: Apache-2.0 */
/* Element functions: a question about an element is moved from an op's result to its operands. */
#include <string.h>

#include "ir/element_reader.h"

/* Ops asked per question: every exporter's grid takes fewer, and a pass stays linear. */
#define BUDGET 128

/* Of ops that are neither element-wise nor movements, and of movements whose types say more than
 * their rule. */
static const struct row {
    element_read_fn *read;
    bool moves; /* the element is one of an operand, as it is */
} rows[IR_OP_COUNT] = {
    [IR_OP_Cast] = {element_read_cast, true},
    [IR_OP_Expand] = {element_read_same, true},
    [IR_OP_Range] = {element_read_range, false},
    [IR_OP_ConstantOfShape] = {element_read_constant_of_shape, false},
    [IR_OP_Concat] = {element_read_concat, true},
    [IR_OP_Split] = {element_read_split, true},
    [IR_OP_access] = {element_read_access, true},
    [IR_OP_Tile] = {element_read_tile, true},
};

static struct row row_of(const struct ir_value *value)
{
    const struct ir_op_info *info = value->op->info;
    if (info->ew)
        return (struct row){element_read_scalar, false};
    if (rows[info->id].read)
        return rows[info->id];
    if (ir_op_keeps_order(value->op))
        return (struct row){element_read_reshape, true};
    return (struct row){info->rule ? element_read_movement : NULL, true};
}

/* What inference knows of an element; NULL: nothing. */
static const struct dim *known_element(const struct ir_value *value, const struct element *at)
{
    const struct ir_known *known = value->known;
    int64_t place = 0;
    if (!known || value->type->rank > 1 ||
        (value->type->rank == 1 && !element_is_number(&at[0], &place)) || place < 0 ||
        (uint64_t)place >= known->count)
        return NULL;
    return known->elements[place];
}

static bool ask_op(struct reader *reader, struct ir_value *value, const struct element *at,
                   struct element *out)
{
    const struct tensor *table = ir_value_constant(value);
    if (table)
        return table->rank == value->type->rank && element_read_table(reader, table, at, out);
    if (!value->op)
        return false;
    struct row row = row_of(value);
    if (!row.read || (reader->traces && !row.moves))
        return false;
    return reader->budget-- > 0 && row.read(reader, value, at, out);
}

/* A known number is enough; of what else is known, the op can say which scalar holds it. */
static bool ask(struct reader *reader, struct ir_value *value, const struct element *at,
                struct element *out)
{
    const struct dim *known = known_element(value, at);
    const struct ir_value *doubt = reader->doubt;
    struct element asked = {0};
    bool answered = !(known && known->kind == DIM_CONST) && ask_op(reader, value, at, &asked);
    if (!known || (answered && asked.scalar)) {
        *out = asked;
        return answered;
    }
    reader->doubt = doubt;
    *out = (struct element){.offset = known, .witness = asked.witness};
    return true;
}

bool element_read_value(struct reader *reader, struct ir_value *value, const struct element *at,
                        struct element *out)
{
    if (!value || value->type->kind != TYPE_TENSOR || value->type->rank < 0 ||
        !dtype_is_integer(value->type->dtype))
        return false;
    if (reader->traces && value->op && ir_op_is(value->op, reader->id)) {
        reader->origin = value;
        memcpy(reader->origin_at, at, (size_t)value->type->rank * sizeof *at);
        return element_set(reader, 0, out);
    }
    const struct ir_value *doubt = reader->doubt;
    bool single = type_has_one_element(value->type);
    if (ask(reader, value, at, out)) {
        if (single && !out->witness)
            out->witness = value;
        return true;
    }
    if (reader->out_of_memory)
        return false;
    if (single) { /* known to a run only, but it is one number */
        reader->doubt = doubt;
        *out = (struct element){.scalar = value, .scale = 1, .witness = value};
        out->offset = dim_const(&reader->graph->dims, 0);
        return element_made(reader, out->offset);
    }
    if (!reader->doubt)
        reader->doubt = value;
    return false;
}

tssa_status *element_read(struct ir_graph *graph, const struct element_space *space,
                          struct ir_value *value, const struct element *at, struct element *element,
                          bool *proven, struct element_doubt *doubt)
{
    struct reader reader = {.graph = graph, .space = space, .budget = BUDGET};
    *proven = element_read_value(&reader, value, at, element);
    doubt->value = reader.doubt ? reader.doubt : value;
    return reader.out_of_memory ? status_out_of_memory() : NULL;
}

tssa_status *element_trace(struct ir_graph *graph, const struct element_space *space,
                           struct ir_value *value, const struct element *at, enum ir_op_id id,
                           struct ir_value **origin, struct element *origin_at)
{
    struct element element;
    struct reader reader = {.graph = graph,
                            .space = space,
                            .budget = BUDGET,
                            .traces = true,
                            .id = id,
                            .origin_at = origin_at};
    *origin = element_read_value(&reader, value, at, &element) ? reader.origin : NULL;
    return reader.out_of_memory ? status_out_of_memory() : NULL;
}
