/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks to GraphProtos; field numbers as in onnx.proto. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "onnx/export.h"
#include "onnx/made_names.h"
#include "onnx/wire.h"

/* The key in a node's metadata of the name of the model's node that it stands for. */
#define ORIGIN "tssa.origin"
/* Since this version nodes have metadata. */
#define NODE_METADATA_VERSION 10

enum node_field {
    NODE_INPUT = 1,
    NODE_OUTPUT = 2,
    NODE_NAME = 3,
    NODE_OP_TYPE = 4,
    NODE_ATTRIBUTE = 5,
    NODE_DOC = 6,
    NODE_DOMAIN = 7,
    NODE_OVERLOAD = 8,
    NODE_METADATA = 9
};

enum attribute_type { ATTRIBUTE_GRAPH = 5, ATTRIBUTE_GRAPHS = 10 };

static const char *name_of(const struct export *export, const struct ir_value *value)
{
    return value ? export->names[value->id] : "";
}

/* ---- Values ---------------------------------------------------------------------------------- */

/* What inference knows; where that is nothing, what the model said. */
static const struct ir_type *type_of(const struct ir_value *value)
{
    return export_type_known(value->type) || !value->declared ? value->type : value->declared;
}

/* Of a copy of the value that a block returns: what the model said also where inference knows no
 * rank. */
static const struct ir_type *copied_type(const struct ir_value *value)
{
    const struct ir_type *known = type_of(value), *declared = value->declared;
    bool unranked = known->kind == TYPE_TENSOR && known->rank < 0;
    return unranked && declared && type_compatible(declared, known) ? declared : known;
}

/*
 * Of a subgraph's values, what the model said goes first unless it cannot be, and if it said
 * nothing, no more than the element type is: a branch that is never taken may hold nonsense, of
 * which inference here and elsewhere need not make the same.
 */
static struct ir_type inner_type(const struct ir_value *value)
{
    const struct ir_type *declared = value->declared;
    const struct ir_op *from = value->op ? value->op : value->block->owner;
    struct ir_type plain = *value->type;
    if (declared && export_type_known(declared) && type_compatible(declared, value->type))
        return *declared;
    if (plain.kind == TYPE_TENSOR && from && from->origin == IR_ORIGIN_NODE)
        plain.rank = -1;
    return plain;
}

static tssa_status *put_inner_info(struct export *export, uint32_t field, const char *name,
                                   const struct ir_value *value)
{
    struct ir_type type = inner_type(value);
    return export_value_info(export, field, name, &type);
}

/* The size of an axis as a number, of which runtimes lay out stacks: inference is sure of it, or
 * the model says so of the value. NULL: there is none. */
static const struct dim *number_of(const struct ir_value *value, int axis)
{
    const struct ir_type *known = value->type, *said = value->declared;
    int64_t size;
    if (dim_is_const(known->dims[axis], &size))
        return known->dims[axis];
    bool fits = said && said->kind == TYPE_TENSOR && said->rank == known->rank &&
                type_compatible(said, known);
    return fits && dim_is_const(said->dims[axis], &size) ? said->dims[axis] : NULL;
}

/* Names of sizes are those of `type`; `dims` is for as many as inference knows. */
static void show_shape(const struct ir_value *value, struct ir_type *type, const struct dim **dims)
{
    const struct ir_type *known = value->type;
    if (type->kind != TYPE_TENSOR || known->kind != TYPE_TENSOR || known->rank < 0 ||
        (type->rank >= 0 && type->rank != known->rank))
        return;
    for (int i = 0; i < known->rank; i++) {
        const struct dim *said = type->rank >= 0 ? type->dims[i] : NULL;
        const struct dim *number = number_of(value, i);
        int64_t size;
        bool named = said && !dim_is_fresh(said);
        dims[i] = named && (!number || dim_is_const(said, &size)) ? said : number;
    }
    type->rank = known->rank;
    type->dims = dims;
}

/* ---- Nodes ----------------------------------------------------------------------------------- */

/*
 * The length of "name" in "name[0]", which is how a list of graphs is kept as blocks; 0: no list.
 */
static size_t list_name(const char *name, uint32_t index)
{
    const char *bracket = strrchr(name, '[');
    char *end;
    if (!bracket || bracket == name || strtoull(bracket + 1, &end, 10) != index ||
        strcmp(end, "]") != 0)
        return 0;
    return (size_t)(bracket - name);
}

/* The blocks from `first` on that are one attribute; *next is the block behind them. */
static tssa_status *put_graph_attribute(struct export *export, const struct ir_op *op,
                                        uint32_t first, uint32_t *next)
{
    struct output *out = &export->out;
    struct output_mark mark = output_open(out, NODE_ATTRIBUTE);
    const char *name = op->block_names[first];
    size_t size = list_name(name, 0);
    wire_put_bytes(&out->bytes, 1, name, size ? size : strlen(name));
    *next = first;
    do {
        TRY(export_block(export, size ? 11 : 6, op->blocks[*next]));
        ++*next;
    } while (size && *next < op->n_blocks &&
             list_name(op->block_names[*next], *next - first) == size &&
             strncmp(op->block_names[*next], name, size) == 0);
    wire_put_int(&out->bytes, 20, size ? ATTRIBUTE_GRAPHS : ATTRIBUTE_GRAPH);
    output_close(out, mark);
    return NULL;
}

static void put_name(struct output *out, uint32_t field, const char *name)
{
    wire_put_bytes(&out->bytes, field, name, strlen(name));
}

/* A copy of what an earlier run made tells already. */
static bool tells_origin(const struct ir_notes *notes)
{
    for (size_t i = 0; notes && i < notes->n_metadata; i++)
        if (strcmp(notes->metadata[i].key, ORIGIN) == 0)
            return true;
    return false;
}

/* What a pass put in the place of a node tells where it comes from. */
static void put_node_notes(struct export *export, const struct ir_op *op, const char *name)
{
    export_notes(&export->out, op->notes, NODE_DOC, NODE_METADATA);
    if (name && !tells_origin(op->notes) &&
        (op->origin == IR_ORIGIN_MADE || strcmp(name, op->name) != 0) &&
        export->ir_version >= NODE_METADATA_VERSION)
        export_metadata(&export->out, NODE_METADATA, ORIGIN, op->name);
}

static tssa_status *put_node_fields(struct export *export, const struct export_draft *draft,
                                    const char *name)
{
    struct output *out = &export->out;
    const struct ir_op *op = draft->op;
    for (size_t i = 0; i < export->operands.count; i++)
        put_name(out, NODE_INPUT, name_of(export, export->operands.data[i]));
    for (uint32_t i = 0; i < op->n_results; i++) {
        const char *result = op->results[i].wanted ? name_of(export, &op->results[i]) : "";
        if (!result[0] &&
            i < draft->min_outputs) { /* nobody wants it, and it may not be left out */
            result = name_of(export, &op->results[i]);
            if (!result)
                TRY(export_fresh_name(export, "unused", &result));
        }
        put_name(out, NODE_OUTPUT, result);
    }
    output_string(out, NODE_NAME, name);
    output_string(out, NODE_OP_TYPE, draft->name);
    output_string(out, NODE_DOMAIN, draft->domain);
    output_string(out, NODE_OVERLOAD, draft->overload);
    put_node_notes(export, op, name);
    for (size_t i = 0; i < export->node_attrs.count; i++)
        TRY(export_attribute(export, NODE_ATTRIBUTE, &export->node_attrs.data[i]));
    return NULL;
}

/* The names of a graph's nodes are different, for which runtimes ask. */
struct node_names {
    struct map owners; /* name -> its struct ir_op */
    struct map counts; /* name -> struct name_count */
};

struct name_count {
    uint64_t made;
};

/* Those of the model go first. */
static tssa_status *claim_node_names(const struct ir_block *block, struct map *owners)
{
    for (const struct ir_op *op = block->first; op; op = op->next)
        if (op->origin == IR_ORIGIN_NODE && op->name && !map_get_str(owners, op->name) &&
            !map_put_str(owners, op->name, (void *)op))
            return status_out_of_memory();
    return NULL;
}

/* "name_tssa1", "name_tssa2", ... */
static tssa_status *other_name(struct export *export, struct node_names *names, const char **name)
{
    const char *base = *name;
    struct name_count *count = map_get_str(&names->counts, base);
    if (!count) {
        count = ARENA_NEW(&export->scratch, struct name_count);
        if (!count || !map_put_str(&names->counts, base, count))
            return status_out_of_memory();
    }
    do {
        *name =
            arena_printf(&export->scratch, "%s" MADE_NODE_SUFFIX "%" PRIu64, base, ++count->made);
        TRY_ALLOC(*name);
    } while (map_get_str(&names->owners, *name));
    return NULL;
}

/*
 * The name of a node; NULL: it has none. Constants that a pass made bear that of what they are for.
 */
static tssa_status *node_name(struct export *export, const struct ir_op *op,
                              struct node_names *names, const char **name)
{
    bool helper = ir_op_is(op, IR_OP_Constant) && op->origin == IR_ORIGIN_MADE;
    *name = op->name && op->name[0] && !helper ? op->name : NULL;
    if (!*name)
        return NULL;
    const struct ir_op *owner = map_get_str(&names->owners, *name);
    if (owner == op)
        return NULL;
    if (owner)
        TRY(other_name(export, names, name));
    if (!map_put_str(&names->owners, *name, (void *)op))
        return status_out_of_memory();
    return NULL;
}

static tssa_status *put_node(struct export *export, const struct ir_op *op,
                             struct node_names *names)
{
    struct export_draft draft;
    const char *name;
    TRY(node_name(export, op, names, &name));
    TRY(export_draft(export, op, export->opset, &draft));
    export->uses_onnx |= !draft.domain[0];
    struct output_mark mark = output_open(&export->out, GRAPH_NODE);
    TRY(put_node_fields(export, &draft, name));
    for (uint32_t i = 0, next; i < op->n_blocks; i = next)
        TRY(put_graph_attribute(export, op, i, &next));
    output_close(&export->out, mark);
    return NULL;
}

/* Initializers, then nodes. */
static tssa_status *put_ops(struct export *export, const struct ir_block *block,
                            struct node_names *names)
{
    const struct ir_op *const *ops;
    size_t count;
    TRY(export_order(export, block, &ops, &count));
    for (size_t i = 0; i < count; i++)
        if (export_is_initializer(export, ops[i]))
            TRY(export_constant(export, ops[i]));
    for (size_t i = 0; i < count; i++)
        if (!export_is_initializer(export, ops[i]))
            TRY(put_node(export, ops[i], names));
    return NULL;
}

static tssa_status *put_nodes(struct export *export, const struct ir_block *block)
{
    struct node_names names;
    map_init(&names.owners, export->allocator);
    map_init(&names.counts, export->allocator);
    tssa_status *status = claim_node_names(block, &names.owners);
    if (!status)
        status = put_ops(export, block, &names);
    map_free(&names.counts);
    map_free(&names.owners);
    return status;
}

/* ---- Graphs ---------------------------------------------------------------------------------- */

static void put_identity(struct output *out, const char *from, const char *to)
{
    struct output_mark mark = output_open(out, GRAPH_NODE);
    put_name(out, NODE_INPUT, from);
    put_name(out, NODE_OUTPUT, to);
    put_name(out, NODE_OP_TYPE, "Identity");
    output_close(out, mark);
}

static bool is_defined_in(const struct ir_value *value, const struct ir_block *block)
{
    return value->op ? value->op->parent == block : value->block == block;
}

/* The name of an output of a graph; a copy has one of its own. */
static tssa_status *output_name(struct export *export, const struct ir_op *results, uint32_t index,
                                const char **name)
{
    const struct ir_value *value = results->operands[index].value;
    const struct ir_graph *graph = export->graph;
    const char *given = name_of(export, value);
    *name = given;
    if (!results->parent->owner && graph->output_names)
        *name = graph->output_names[index];
    else if (export_copies_result(export, results, index))
        TRY(export_fresh_name(export, given, name));
    if (strcmp(*name, given) != 0) {
        put_identity(&export->out, given, *name);
        export->uses_onnx = true;
    }
    return NULL;
}

static tssa_status *put_inner_output(struct export *export, const struct ir_op *results,
                                     uint32_t index, const char *name)
{
    const struct ir_value *value = results->operands[index].value;
    const struct dim *dims[TSSA_MAX_RANK];
    struct ir_type type;
    if (!is_defined_in(value, results->parent)) /* a copy */
        type = *copied_type(value);
    else
        type = inner_type(value);
    enum export_shape shape = export_result_shape(export, results, index);
    if (shape == SHAPE_INFERRED)
        show_shape(value, &type, dims);
    else if (shape == SHAPE_NONE && type.kind == TYPE_TENSOR)
        type.rank = -1;
    return export_value_info(export, GRAPH_OUTPUT, name, &type);
}

/* The caller sees what the model declares, unless shapes were fixed that contradict it. */
static tssa_status *put_model_output(struct export *export, const struct ir_value *value,
                                     uint32_t index, const char *name)
{
    const struct ir_graph *graph = export->graph;
    const struct ir_type *declared = graph->output_types ? graph->output_types[index] : NULL;
    bool holds = declared && type_compatible(declared, value->type);
    return export_noted_info(export, GRAPH_OUTPUT, name, holds ? declared : type_of(value),
                             graph->output_notes ? graph->output_notes[index] : NULL);
}

static tssa_status *put_outputs(struct export *export, const struct ir_block *block)
{
    const struct ir_op *results = ir_block_return(block);
    const char **names = ARENA_ARRAY(&export->scratch, const char *, results->n_operands);
    TRY_ALLOC(names);
    for (uint32_t i = 0; i < results->n_operands; i++)
        TRY(output_name(export, results, i, &names[i]));
    for (uint32_t i = 0; i < results->n_operands; i++) {
        const struct ir_value *value = results->operands[i].value;
        TRY(block->owner ? put_inner_output(export, results, i, names[i])
                         : put_model_output(export, value, i, names[i]));
    }
    return NULL;
}

static bool is_output(const struct ir_value *value, const struct ir_block *block)
{
    const struct ir_op *results = ir_block_return(block);
    for (const struct ir_use *use = value->uses; use; use = use->next)
        if (use->user == results)
            return true;
    return false;
}

/* In subgraphs, no more is said than the model did: see put_inner_info. */
static bool wants_type(const struct ir_value *value, const struct ir_block *block)
{
    return value->wanted && export_type_known(type_of(value)) &&
           (!block->owner || value->declared) && !is_output(value, block);
}

static tssa_status *put_types(struct export *export, const struct ir_block *block)
{
    for (const struct ir_op *op = block->first; op; op = op->next) {
        if (ir_op_is(op, IR_OP_Constant))
            continue;
        for (uint32_t i = 0; i < op->n_results; i++) {
            const struct ir_value *value = &op->results[i];
            if (wants_type(value, block) && block->owner)
                TRY(put_inner_info(export, GRAPH_VALUE_INFO, name_of(export, value), value));
            else if (wants_type(value, block))
                TRY(export_value_info(export, GRAPH_VALUE_INFO, name_of(export, value),
                                      type_of(value)));
        }
    }
    return NULL;
}

/* ONNX wants a name. */
static void put_graph_name(struct export *export, const struct ir_block *block)
{
    const char *name = block->owner ? block->name : export->graph->name;
    if (!name && block->owner)
        name = block->owner->name;
    put_name(&export->out, GRAPH_NAME, name && name[0] ? name : "graph");
    export_notes(&export->out, block->notes, GRAPH_DOC, GRAPH_METADATA);
}

static tssa_status *put_block(struct export *export, const struct ir_block *block)
{
    put_graph_name(export, block);
    for (uint32_t i = 0; i < block->n_params; i++) {
        const struct ir_value *param = block->params[i];
        if (block->owner)
            TRY(put_inner_info(export, GRAPH_INPUT, name_of(export, param), param));
        else
            TRY(export_noted_info(export, GRAPH_INPUT, name_of(export, param), type_of(param),
                                  export->graph->input_notes ? export->graph->input_notes[i]
                                                             : NULL));
    }
    if (!block->owner)
        TRY(export_other_initializers(export));
    TRY(put_nodes(export, block));
    TRY(put_outputs(export, block));
    TRY(put_types(export, block));
    return export_annotations(export, GRAPH_QUANTIZATION, block);
}

tssa_status *export_block(struct export *export, uint32_t field, const struct ir_block *block)
{
    struct output_mark mark = output_open(&export->out, field);
    TRY(put_block(export, block));
    output_close(&export->out, mark);
    return NULL;
}
