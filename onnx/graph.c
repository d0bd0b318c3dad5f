/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs to blocks: scopes and names, inputs, initializers, nodes (ONNX 1.22.0, docs/IR.md). */
#include <stdio.h>
#include <string.h>

#include "ir/infer.h"
#include "onnx/import.h"
#include "onnx/made_names.h"

/* A node with more attributes than this is an attack on whoever compares their names. */
#define MAX_ATTRIBUTES 1024
/* Of a name that has to be made unique, no more is kept. */
#define MAX_REPEATED_NAME 200
/* No more of a name is shown in an error. */
#define SHOWN_NAME 100

/* Nested nodes that an error names, besides the outermost. */
#define MAX_NAMED_NODES 4

/* How often a name was asked for. */
struct name_use {
    uint64_t next;
};

/* ---- Scopes and names ----------------------------------------------------------------------------- */

tssa_status *scope_init(struct scope *scope, struct import *import, struct scope *parent,
                        struct frame *frame, struct ir_block *block, unsigned depth)
{
    *scope = (struct scope){
        .import = import, .parent = parent, .frame = frame, .block = block, .depth = depth};
    map_init(&scope->values, import->allocator);
    map_init(&scope->hints, import->allocator);
    if (depth > IMPORT_MAX_DEPTH)
        return ERROR(TSSA_LIMIT, "subgraphs and function calls are nested more than %d deep",
                     IMPORT_MAX_DEPTH);
    return NULL;
}

void scope_free(struct scope *scope)
{
    map_free(&scope->values);
    map_free(&scope->hints);
}

struct ir_value *scope_find(const struct scope *scope, const char *name)
{
    for (; scope; scope = scope->parent) {
        struct ir_value *value = map_get_str(&scope->values, name);
        if (value)
            return value;
    }
    return NULL;
}

tssa_status *scope_bind(struct scope *scope, const char *name, struct ir_value *value)
{
    if (map_get_str(&scope->values, name))
        return ERROR(TSSA_MALFORMED, "\"%s\" is defined twice", name);
    if (!map_put_str(&scope->values, name, value))
        return status_out_of_memory();
    return NULL;
}

/* `name`, or "name_1", "name_2", ... when a value of the graph has it already: subgraphs and function
 * bodies may use the same names. */
static tssa_status *unique_name(struct import *import, const char *name, const char **unique)
{
    struct intern_table *strings = &import->graph->strings;
    struct name_use *use = map_get_str(&import->used_names, name);
    *unique = intern_str(strings, name);
    TRY_ALLOC(*unique);
    if (use) {
        int kept = (int)utf8_cut(name, strlen(name), MAX_REPEATED_NAME);
        do {
            char text[MAX_REPEATED_NAME + 32];
            snprintf(text, sizeof text, "%.*s_%llu", kept, name, (unsigned long long)++use->next);
            *unique = intern_str(strings, text);
            TRY_ALLOC(*unique);
        } while (map_get_str(&import->used_names, *unique));
    }
    struct name_use *own = ARENA_NEW(&import->scratch, struct name_use);
    if (!own || !map_put_str(&import->used_names, *unique, own))
        return status_out_of_memory();
    return NULL;
}

/* What value_info says about a name. Hints of ranks above TSSA_MAX_RANK are ignored, not refused: the
 * value itself may never be made. */
static tssa_status *declare(const struct scope *scope, const char *name, struct ir_value *value)
{
    const Onnx__ValueInfoProto *info = map_get_str(&scope->hints, name);
    const struct ir_type *type;
    if (!info || !info->type)
        return NULL;
    tssa_status *status = import_type(scope->import, info->type, &type);
    if (status && tssa_status_code(status) == TSSA_LIMIT) {
        tssa_status_free(status);
        return NULL;
    }
    if (status)
        return status_prefix(status, "type of \"%s\"", name);
    value->declared = type;
    return NULL;
}

tssa_status *scope_define(struct scope *scope, const char *name, struct ir_value *value)
{
    TRY(scope_bind(scope, name, value));
    TRY(declare(scope, name, value));
    if (made_value_name(name) && (scope->block->owner || !value->block))
        return NULL;
    const char *shown = map_get_str(&scope->frame->call_names, name);
    TRY(unique_name(scope->import, shown && !scope->parent ? shown : name, &value->name));
    return scope_note(scope, name, value);
}

tssa_status *scope_note(const struct scope *scope, const char *name, const struct ir_value *value)
{
    const Onnx__ValueInfoProto *info = map_get_str(&scope->hints, name);
    return info && value->name ? notes_of_value(scope->import, info, value) : NULL;
}

tssa_status *scope_collect_hints(struct scope *scope, Onnx__ValueInfoProto *const *infos,
                                 size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (infos[i]->name && !map_put_str(&scope->hints, infos[i]->name, infos[i]))
            return status_out_of_memory();
    return NULL;
}

/* ---- Operators ------------------------------------------------------------------------------------ */

tssa_status *import_spend(const struct scope *scope, uint64_t amount)
{
    struct import *import = scope->import;
    if (!scope->frame->function)
        return NULL;
    if (amount > import->expansion_left)
        return ERROR(TSSA_LIMIT, "inlining the model's functions takes too many nodes");
    import->expansion_left -= amount;
    return NULL;
}

static int64_t newest_opset(const char *domain)
{
    return !domain[0]                          ? IR_NEWEST_OPSET
           : strcmp(domain, "ai.onnx.ml") == 0 ? IR_NEWEST_ML_OPSET
                                               : 1;
}

int64_t import_opset(const struct import *import, const struct opset_list *opsets,
                     const char *domain)
{
    for (size_t i = 0; i < opsets->count; i++)
        if (strcmp(opsets->data[i].domain, domain) == 0)
            return opsets->data[i].version;
    /* Before IR 3 there was one operator set. */
    return import->model->ir_version < 3 ? 1 : 0;
}

static tssa_status *find_opset(const struct scope *scope, const char *domain, int64_t *version)
{
    *version = import_opset(scope->import, &scope->frame->opsets, domain);
    if (*version)
        return NULL;
    return ERROR(TSSA_MALFORMED, "the %s imports no operator set of domain \"%s\"",
                 scope->frame->function ? "function" : "model", domain[0] ? domain : "ai.onnx");
}

/* The row of the op table; the one of opaque ops where tssa has none. */
static tssa_status *find_info(struct import *import, const char *domain, const char *name,
                              const struct ir_op_info **info)
{
    const struct ir_op_info *opaque = ir_op_info(IR_OP_opaque);
    *info = opaque;
    if (strcmp(domain, opaque->domain) == 0) /* not ONNX's: models cannot name these */
        return NULL;
    if (domain[0]) {
        const struct ir_op_info *found = ir_op_lookup(domain, name);
        *info = found ? found : opaque;
        return NULL;
    }
    *info = map_get_str(&import->operators, name);
    if (*info)
        return NULL;
    *info = ir_op_lookup(domain, name);
    if (!*info)
        *info = opaque;
    if (!map_put_str(&import->operators, name, (void *)*info))
        return status_out_of_memory();
    return NULL;
}

tssa_status *import_bind(struct import *import, const char *domain, const char *name, int64_t opset,
                         const struct ir_op_info **info, int *version)
{
    int replaced = 0;
    *version = 0;
    *info = ir_op_info(IR_OP_opaque);
    if (opset > newest_opset(domain))
        return NULL;
    const char *replacement = domain[0] ? NULL : upgrade_replaced(name, opset, &replaced);
    TRY(find_info(import, domain, replacement ? replacement : name, info));
    if ((*info)->id == IR_OP_opaque)
        return NULL;
    *version = replacement ? replaced : ir_op_bind(*info, opset);
    if (*version == 0) /* the operator is younger than the opset */
        *info = ir_op_info(IR_OP_opaque);
    return NULL;
}

/* ---- Attributes ----------------------------------------------------------------------------------- */

/* A subgraph of a node. */
struct graph_attr {
    const char *name;
    const Onnx__GraphProto *graph;
    struct scope *scope; /* where its outer names are looked up */
};

struct graph_attrs {
    struct graph_attr *data;
    uint32_t count;
};

static size_t count_graphs(struct scope *scope, const Onnx__NodeProto *node)
{
    size_t count = 0;
    for (size_t i = 0; i < node->n_attribute; i++) {
        const Onnx__AttributeProto *proto = attribute_resolve(scope, node->attribute[i]).proto;
        count += proto ? (proto->g != NULL) + proto->n_graphs : 0;
    }
    return count;
}

/* A list of graphs becomes blocks named "name[0]", "name[1]", ... */
static tssa_status *add_graphs(struct import *import, const char *name,
                               const struct bound_attr *bound, struct graph_attrs *graphs)
{
    const Onnx__AttributeProto *proto = bound->proto;
    if (attribute_type(proto) == ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH) {
        if (!proto->g)
            return ERROR(TSSA_MALFORMED, "attribute \"%s\" has no graph", name);
        for (uint32_t i = 0; i < graphs->count; i++)
            if (graphs->data[i].name == name)
                return ERROR(TSSA_MALFORMED, "attribute \"%s\" is there twice", name);
        graphs->data[graphs->count++] = (struct graph_attr){name, proto->g, bound->scope};
        return NULL;
    }
    for (size_t i = 0; i < proto->n_graphs; i++) {
        const char *own = arena_printf(&import->scratch, "%.200s[%zu]", name, i);
        own = own ? intern_str(&import->graph->strings, own) : NULL;
        TRY_ALLOC(own);
        graphs->data[graphs->count++] = (struct graph_attr){own, proto->graphs[i], bound->scope};
    }
    return NULL;
}

static bool is_graph(const Onnx__AttributeProto *proto)
{
    int type = attribute_type(proto);
    return type == ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPH ||
           type == ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__GRAPHS;
}

static tssa_status *read_attribute(struct draft *draft, const Onnx__AttributeProto *written,
                                   struct graph_attrs *graphs)
{
    struct import *import = draft->scope->import;
    if (!written->name || !written->name[0])
        return ERROR(TSSA_MALFORMED, "an attribute has no name");
    struct bound_attr bound = attribute_resolve(draft->scope, written);
    if (!bound.proto) /* a reference to what the call leaves out */
        return NULL;
    const char *name = intern_str(&import->graph->strings, written->name);
    TRY_ALLOC(name);
    if (is_graph(bound.proto))
        return add_graphs(import, name, &bound, graphs);
    struct ir_attr attr;
    tssa_status *status = attribute_import(draft->scope, bound.proto, &attr);
    if (status)
        return status_prefix(status, "attribute \"%s\"", name);
    attr.name = name;
    for (size_t i = 0; i < import->node_attrs.count; i++)
        if (import->node_attrs.data[i].name == name)
            return ERROR(TSSA_MALFORMED, "attribute \"%s\" is there twice", name);
    if (!vec_push(&import->node_attrs, attr))
        return status_out_of_memory();
    return NULL;
}

static tssa_status *read_attributes(struct draft *draft, struct graph_attrs *graphs)
{
    const Onnx__NodeProto *node = draft->node;
    struct import *import = draft->scope->import;
    if (node->n_attribute > MAX_ATTRIBUTES)
        return ERROR(TSSA_LIMIT, "it has more than %d attributes", MAX_ATTRIBUTES);
    import->node_attrs.count = 0;
    size_t n_graphs = count_graphs(draft->scope, node);
    graphs->count = 0;
    graphs->data = n_graphs ? ARENA_ARRAY(&import->scratch, struct graph_attr, n_graphs) : NULL;
    if (n_graphs)
        TRY_ALLOC(graphs->data);
    for (size_t i = 0; i < node->n_attribute; i++)
        TRY(read_attribute(draft, node->attribute[i], graphs));
    return NULL;
}

/* ---- Nodes ---------------------------------------------------------------------------------------- */

static tssa_status *read_operands(struct draft *draft)
{
    const Onnx__NodeProto *node = draft->node;
    struct import *import = draft->scope->import;
    import->operands.count = 0;
    for (size_t i = 0; i < node->n_input; i++) {
        const char *name = node->input[i];
        struct ir_value *value = name[0] ? scope_find(draft->scope, name) : NULL;
        if (name[0] && !value)
            return ERROR(TSSA_MALFORMED, "input \"%s\" is defined nowhere", name);
        if (value == &import->absent)
            value = NULL;
        if (!vec_push(&import->operands, value))
            return status_out_of_memory();
    }
    return NULL;
}

static tssa_status *check_count(const char *what, size_t have, unsigned min, unsigned max)
{
    if (have < min)
        return ERROR(TSSA_MALFORMED, "it has %zu %s and needs %u", have, what, min);
    if (max != IR_VARIADIC && have > max)
        return ERROR(TSSA_MALFORMED, "it has %zu %s and takes %u at most", have, what, max);
    return NULL;
}

static tssa_status *check_counts(const struct draft *draft)
{
    const struct ir_op_info *info = draft->info;
    const struct import *import = draft->scope->import;
    size_t operands = import->operands.count, results = draft->n_results;
    if (operands > INT32_MAX || results > INT32_MAX)
        return ERROR(TSSA_LIMIT, "it has too many inputs or outputs");
    TRY(check_count("inputs", operands, info->min_operands, info->max_operands));
    unsigned first =
        draft->version < 9 && info == ir_op_info(IR_OP_Scan); /* Scan-8: sequence_lens? */
    for (unsigned i = first; i < info->min_operands; i++)
        if (!import->operands.data[i])
            return ERROR(TSSA_MALFORMED, "input %u is missing", i);
    return check_count("outputs", results, info->min_results, info->max_results);
}

/* The subgraphs that operators of ai.onnx have. */
static tssa_status *check_graphs(const struct draft *draft, const struct graph_attrs *graphs)
{
    static const struct {
        enum ir_op_id op;
        const char *name;
    } known[] = {
        {IR_OP_If, "then_branch"}, {IR_OP_If, "else_branch"},   {IR_OP_Loop, "body"},
        {IR_OP_Scan, "body"},      {IR_OP_SequenceMap, "body"},
    };
    for (uint32_t i = 0; i < graphs->count; i++) {
        bool found = draft->info->id == IR_OP_opaque || draft->info->id == IR_OP_call;
        for (size_t k = 0; k < sizeof known / sizeof *known && !found; k++)
            found =
                known[k].op == draft->info->id && strcmp(known[k].name, graphs->data[i].name) == 0;
        if (!found)
            return ERROR(TSSA_MALFORMED, "it has no subgraph \"%s\"", graphs->data[i].name);
    }
    return NULL;
}

static tssa_status *import_block(struct scope *outside, const struct graph_attr *attr,
                                 struct ir_op *op, struct ir_block **block);

static tssa_status *make_blocks(struct draft *draft, const struct graph_attrs *graphs,
                                struct ir_op *op)
{
    if (graphs->count == 0)
        return NULL;
    struct ir_graph *graph = draft->scope->import->graph;
    if (!ir_op_set_blocks(graph, op, graphs->count))
        return status_out_of_memory();
    op->n_blocks = 0; /* no more than are there, for messages on the way */
    for (uint32_t i = 0; i < graphs->count; i++) {
        tssa_status *status = import_block(draft->scope, &graphs->data[i], op, &op->blocks[i]);
        if (status)
            return status_prefix(status, "%s", graphs->data[i].name);
        op->block_names[i] = graphs->data[i].name;
        op->n_blocks = i + 1;
    }
    return NULL;
}

static tssa_status *make_opaque(const struct scope *scope, const Onnx__NodeProto *node,
                                const char *domain, int64_t opset, struct ir_opaque **made)
{
    struct intern_table *strings = &scope->import->graph->strings;
    struct ir_opaque *opaque = ARENA_NEW(&scope->import->graph->arena, struct ir_opaque);
    TRY_ALLOC(opaque);
    opaque->domain = intern_str(strings, domain);
    opaque->name = intern_str(strings, node->op_type);
    opaque->overload = intern_str(strings, node->overload ? node->overload : "");
    opaque->opset = opset;
    if (!opaque->domain || !opaque->name || !opaque->overload)
        return status_out_of_memory();
    *made = opaque;
    return NULL;
}

/* All calls of a function are the same operator. The domain's version says nothing of it. */
static tssa_status *make_call(const struct scope *scope, const Onnx__NodeProto *node,
                              struct function *function, struct ir_opaque **made)
{
    const char *domain = import_domain(node->domain);
    int64_t opset = import_opset(scope->import, &scope->frame->opsets, domain);
    if (!function->opaque) {
        TRY(make_opaque(scope, node, domain, opset ? opset : 1, &function->opaque));
        function->opaque->function = function->info;
    }
    *made = function->opaque;
    return NULL;
}

static tssa_status *name_op(struct ir_graph *graph, const char *name, struct ir_op *op)
{
    size_t size = strlen(name), base = made_node_base(name);
    op->name = intern(&graph->strings, name, base);
    TRY_ALLOC(op->name);
    if (base != size)
        op->origin = IR_ORIGIN_MADE;
    return NULL;
}

/* The op without its blocks and results' names. */
static tssa_status *make_op(struct draft *draft, struct ir_op **made)
{
    struct import *import = draft->scope->import;
    struct ir_graph *graph = import->graph;
    const Onnx__NodeProto *node = draft->node;
    struct ir_op *op = ir_op_create(graph, draft->info, (uint32_t)import->operands.count,
                                    (uint32_t)draft->n_results);
    TRY_ALLOC(op);
    op->version = draft->version;
    op->origin = IR_ORIGIN_NODE;
    TRY(import_notes(import, node->doc_string, node->metadata_props, node->n_metadata_props,
                     &op->notes));
    if (node->name && node->name[0])
        TRY(name_op(graph, node->name, op));
    for (uint32_t i = 0; i < op->n_operands; i++)
        ir_op_set_operand(op, i, import->operands.data[i]);
    if (import->node_attrs.count) {
        op->n_attrs = (uint32_t)import->node_attrs.count;
        op->attrs = arena_copy(&graph->arena, import->node_attrs.data,
                               import->node_attrs.count * sizeof *op->attrs);
        TRY_ALLOC(op->attrs);
    }
    *made = op;
    return NULL;
}

tssa_status *import_append(struct scope *scope, struct ir_op *op)
{
    ir_op_append(scope->block, op);
    if (!scope->import->eager)
        return NULL;
    tssa_status *status = ir_infer_op(op);
    if (tssa_status_code(status) == TSSA_OUT_OF_MEMORY)
        return status;
    /* Parameters of subgraphs have declared types only, which may be wrong. What really cannot be is
     * told when the whole graph is inferred. */
    tssa_status_free(status);
    return NULL;
}

static tssa_status *name_results(struct scope *scope, const Onnx__NodeProto *node, struct ir_op *op)
{
    for (uint32_t i = 0; i < op->n_results; i++) {
        if (node->output[i][0])
            TRY(scope_define(scope, node->output[i], &op->results[i]));
        else
            op->results[i].wanted = false;
    }
    return NULL;
}

/* Sets the draft's row and version, or what the op is instead. */
static tssa_status *bind_operator(struct draft *draft, struct function *called,
                                  struct ir_opaque **opaque)
{
    const struct scope *scope = draft->scope;
    const Onnx__NodeProto *node = draft->node;
    const char *domain = import_domain(node->domain);
    int64_t opset;
    *opaque = NULL;
    draft->info = ir_op_info(IR_OP_opaque);
    if (called) {
        if (called->info->is_pure)
            draft->info = ir_op_info(IR_OP_call);
        return make_call(scope, node, called, opaque);
    }
    TRY(find_opset(scope, domain, &opset));
    TRY(import_bind(scope->import, domain, node->op_type, opset, &draft->info, &draft->version));
    return draft->info->id == IR_OP_opaque ? make_opaque(scope, node, domain, opset, opaque) : NULL;
}

/* `called`: the function whose call stays a call; NULL: an operator. */
static tssa_status *import_operator(struct scope *scope, const Onnx__NodeProto *node,
                                    struct function *called)
{
    struct draft draft = {.scope = scope, .node = node, .n_results = node->n_output};
    struct graph_attrs graphs = {0};
    struct ir_opaque *opaque;
    struct ir_op *op;
    TRY(bind_operator(&draft, called, &opaque));
    TRY(read_attributes(&draft, &graphs));
    TRY(read_operands(&draft));
    if (!opaque)
        TRY(upgrade_draft(&draft));
    TRY(check_counts(&draft));
    TRY(check_graphs(&draft, &graphs));
    TRY(make_op(&draft, &op));
    op->opaque = opaque;
    TRY(make_blocks(&draft, &graphs, op));
    TRY(name_results(scope, node, op));
    return import_append(scope, op);
}

static tssa_status *import_node(struct scope *scope, const Onnx__NodeProto *node)
{
    struct function *function;
    if (!node->op_type || !node->op_type[0])
        return ERROR(TSSA_MALFORMED, "it names no operator");
    TRY(import_spend(scope, 1 + (uint64_t)node->n_input + node->n_output + node->n_attribute));
    TRY(function_find(scope->import, node, &function));
    return function && !function->info->stays ? function_inline(scope, node, function)
                                              : import_operator(scope, node, function);
}

/* Says where an error was. Of many nested nodes the innermost and the outermost are named: the message
 * must not be cut off before it says what is wrong. */
static tssa_status *name_node(const struct scope *scope, const Onnx__NodeProto *node,
                              uint32_t index, tssa_status *status)
{
    const char *type = node->op_type ? node->op_type : "";
    if (scope->import->named_nodes++ >= MAX_NAMED_NODES && scope->depth > 0)
        return status;
    const char *name = node->name ? node->name : "";
    int type_size = (int)utf8_cut(type, strlen(type), SHOWN_NAME);
    if (!name[0])
        return status_prefix(status, "node %u (%.*s)", (unsigned)index, type_size, type);
    return status_prefix(status, "node \"%.*s\" (%.*s)",
                         (int)utf8_cut(name, strlen(name), SHOWN_NAME), name, type_size, type);
}

tssa_status *import_nodes(struct scope *scope, Onnx__NodeProto *const *nodes, size_t count)
{
    const uint32_t *order;
    size_t n_ordered;
    TRY(import_order(scope, nodes, count, &order, &n_ordered));
    for (size_t i = 0; i < n_ordered; i++) {
        tssa_status *status = import_node(scope, nodes[order[i]]);
        if (status)
            return name_node(scope, nodes[order[i]], order[i], status);
    }
    return NULL;
}

/* ---- Graphs --------------------------------------------------------------------------------------- */

static const char *sparse_name(const Onnx__SparseTensorProto *proto)
{
    return proto->values && proto->values->name ? proto->values->name : "";
}

static tssa_status *collect_initial(const Onnx__GraphProto *graph, struct map *initial)
{
    for (size_t i = 0; i < graph->n_initializer; i++) {
        const char *name = graph->initializer[i]->name;
        if (name && !map_put_str(initial, name, graph->initializer[i]))
            return status_out_of_memory();
    }
    for (size_t i = 0; i < graph->n_sparse_initializer; i++)
        if (!map_put_str(initial, sparse_name(graph->sparse_initializer[i]),
                         graph->sparse_initializer[i]))
            return status_out_of_memory();
    return NULL;
}

/* The iteration number is a scalar, and runtimes that find it declared as a tensor of one element hand over such
 * a tensor. The condition has the rank that the loop is given. */
static bool is_loop_list(const struct scope *scope, const struct ir_type *type)
{
    const struct ir_block *block = scope->block;
    int64_t size;
    return block->owner && ir_op_is(block->owner, IR_OP_Loop) && block->n_params == 0 &&
           type->kind == TYPE_TENSOR && type->rank == 1 &&
           (!dim_is_const(type->dims[0], &size) || size == 1);
}

/* The name is that of the scalar with an axis more. */
static tssa_status *import_loop_list(struct scope *scope, const Onnx__ValueInfoProto *info,
                                     const struct ir_type *type)
{
    static const int64_t front = 0;
    struct ir_graph *graph = scope->import->graph;
    const struct ir_op_info *unsqueeze = ir_op_info(IR_OP_Unsqueeze);
    struct ir_value *param = ir_block_add_param(scope->block);
    struct ir_op *axes = ir_constant_ints(graph, 1, 1, &front);
    struct ir_op *op = ir_op_create(graph, unsqueeze, 2, 1);
    TRY_ALLOC(param);
    TRY_ALLOC(axes);
    TRY_ALLOC(op);
    param->type = param->declared = type_scalar(&graph->types, type->dtype);
    TRY_ALLOC(param->type);
    op->version = ir_op_bind(unsqueeze, IR_NEWEST_OPSET);
    ir_op_set_operand(op, 0, param);
    ir_op_set_operand(op, 1, &axes->results[0]);
    TRY(scope_define(scope, info->name, &op->results[0]));
    op->results[0].declared = type;
    TRY(import_append(scope, axes));
    TRY(import_append(scope, op));
    return notes_of_value(scope->import, info, &op->results[0]);
}

/* `is_initial`: an initializer has the input's name. Before IR 4 every initializer had to be an input
 * too, and it is a constant none the less; since then such an input of the model has a default. */
static tssa_status *import_input(struct scope *scope, const Onnx__ValueInfoProto *info,
                                 bool is_initial)
{
    bool is_main = scope->block->owner == NULL;
    if (!info->name || !info->name[0])
        return ERROR(TSSA_MALFORMED, "a graph input has no name");
    if (is_initial && scope->import->model->ir_version < 4)
        return NULL;
    if (is_initial && !is_main)
        return ERROR(TSSA_MALFORMED, "input \"%s\" of a subgraph is an initializer too",
                     info->name);
    const struct ir_type *type;
    tssa_status *status = import_type(scope->import, info->type, &type);
    if (status)
        return status_prefix(status, "input \"%s\"", info->name);
    if (is_loop_list(scope, type))
        return import_loop_list(scope, info, type);
    struct ir_value *param = ir_block_add_param(scope->block);
    TRY_ALLOC(param);
    TRY(scope_define(scope, info->name, param));
    param->type = type;
    param->declared = info->type ? type : NULL;
    return is_main ? NULL : notes_of_value(scope->import, info, param);
}

static tssa_status *import_inputs(struct scope *scope, const Onnx__GraphProto *graph)
{
    struct map initial;
    map_init(&initial, scope->import->allocator);
    tssa_status *status = collect_initial(graph, &initial);
    for (size_t i = 0; i < graph->n_input && !status; i++) {
        const char *name = graph->input[i]->name;
        status = import_input(scope, graph->input[i], name && map_get_str(&initial, name));
    }
    map_free(&initial);
    return status;
}

/* The default of an input of the model. */
static tssa_status *set_default(struct scope *scope, const struct ir_value *param,
                                const struct tensor *tensor, const struct ir_notes *notes)
{
    struct ir_graph *graph = scope->import->graph;
    const struct ir_type *type =
        type_tensor_const(&graph->types, tensor->dtype, tensor->rank, tensor->dims);
    TRY_ALLOC(type);
    if (!type_compatible(param->type, type)) {
        char text[128];
        tensor_describe(tensor, text, sizeof text);
        return ERROR(TSSA_MALFORMED, "input \"%s\" has a default of another type, %s", param->name,
                     text);
    }
    if (graph->input_defaults[param->index])
        return ERROR(TSSA_MALFORMED, "\"%s\" is initialized twice", param->name);
    graph->input_defaults[param->index] = tensor;
    graph->default_notes[param->index] = notes;
    return NULL;
}

static tssa_status *import_initializer(struct scope *scope, const char *name,
                                       const Onnx__TensorProto *proto, const struct tensor *tensor)
{
    if (!name || !name[0])
        return ERROR(TSSA_MALFORMED, "an initializer has no name");
    struct ir_value *input = map_get_str(&scope->values, name);
    const struct ir_notes *notes;
    TRY(import_notes(scope->import, proto->doc_string, proto->metadata_props,
                     proto->n_metadata_props, &notes));
    if (input && input->block && !scope->block->owner)
        return set_default(scope, input, tensor, notes);
    struct ir_op *op = ir_constant_create(scope->import->graph, tensor);
    TRY_ALLOC(op);
    op->origin = IR_ORIGIN_INITIALIZER;
    op->notes = notes;
    TRY(scope_define(scope, name, &op->results[0]));
    return import_append(scope, op);
}

static tssa_status *import_initializers(struct scope *scope, const Onnx__GraphProto *graph)
{
    const struct tensor *tensor;
    for (size_t i = 0; i < graph->n_initializer; i++) {
        TRY(import_tensor(scope->import, graph->initializer[i], &tensor));
        TRY(import_initializer(scope, graph->initializer[i]->name, graph->initializer[i], tensor));
    }
    for (size_t i = 0; i < graph->n_sparse_initializer; i++) {
        TRY(import_sparse(scope->import, graph->sparse_initializer[i], &tensor));
        TRY(import_initializer(scope, sparse_name(graph->sparse_initializer[i]),
                               graph->sparse_initializer[i]->values, tensor));
    }
    return NULL;
}

static tssa_status *import_outputs(struct scope *scope, const Onnx__GraphProto *graph)
{
    struct import *import = scope->import;
    if (graph->n_output > INT32_MAX)
        return ERROR(TSSA_LIMIT, "the graph has too many outputs");
    struct ir_op *op =
        ir_op_create(import->graph, ir_op_info(IR_OP_return), (uint32_t)graph->n_output, 0);
    TRY_ALLOC(op);
    for (uint32_t i = 0; i < op->n_operands; i++) {
        const char *name = graph->output[i]->name;
        struct ir_value *value = name && name[0] ? scope_find(scope, name) : NULL;
        if (!value)
            return ERROR(TSSA_MALFORMED, "graph output %u, \"%s\", is defined nowhere", (unsigned)i,
                         name ? name : "");
        if (value == &import->absent)
            return ERROR(TSSA_MALFORMED,
                         "graph output %u, \"%s\", is an input that the function's call leaves out",
                         (unsigned)i, name);
        ir_op_set_operand(op, i, value);
    }
    ir_op_append(scope->block, op);
    return NULL;
}

static tssa_status *import_graph_notes(struct scope *scope, const Onnx__GraphProto *graph)
{
    struct import *import = scope->import;
    struct ir_block *block = scope->block;
    if (block->owner && graph->name && graph->name[0]) {
        block->name = intern_str(&import->graph->strings, graph->name);
        TRY_ALLOC(block->name);
    }
    return import_notes(import, graph->doc_string, graph->metadata_props, graph->n_metadata_props,
                        &block->notes);
}

static tssa_status *import_graph(struct scope *scope, const Onnx__GraphProto *graph)
{
    struct ir_graph *ir = scope->import->graph;
    TRY(import_graph_notes(scope, graph));
    TRY(import_spend(scope, (uint64_t)graph->n_input + graph->n_output + graph->n_value_info +
                                graph->n_initializer + graph->n_sparse_initializer));
    TRY(scope_collect_hints(scope, graph->output, graph->n_output));
    TRY(scope_collect_hints(scope, graph->value_info, graph->n_value_info));
    TRY(import_inputs(scope, graph));
    if (!scope->block->owner) {
        ir->input_defaults = ARENA_ARRAY(&ir->arena, const struct tensor *, ir->body->n_params);
        ir->default_notes = ARENA_ARRAY(&ir->arena, const struct ir_notes *, ir->body->n_params);
        if (!ir->input_defaults || !ir->default_notes)
            return status_out_of_memory();
    }
    TRY(import_initializers(scope, graph));
    TRY(import_nodes(scope, graph->node, graph->n_node));
    TRY(notes_of_quantization(scope, graph));
    return import_outputs(scope, graph);
}

static tssa_status *import_block(struct scope *outside, const struct graph_attr *attr,
                                 struct ir_op *op, struct ir_block **block)
{
    struct import *import = outside->import;
    *block = ir_block_create(import->graph, op, 0);
    TRY_ALLOC(*block);
    struct scope scope;
    tssa_status *status =
        scope_init(&scope, import, attr->scope, attr->scope->frame, *block, outside->depth + 1);
    if (!status)
        status = import_graph(&scope, attr->graph);
    scope_free(&scope);
    return status;
}

/* Ranks above TSSA_MAX_RANK are not refused: the value itself may never be made. */
static tssa_status *declared_type(struct import *import, const Onnx__ValueInfoProto *info,
                                  const struct ir_type **type)
{
    tssa_status *status = info->type ? import_type(import, info->type, type) : NULL;
    if (tssa_status_code(status) != TSSA_LIMIT)
        return status_prefix(status, "output \"%s\"", info->name);
    tssa_status_free(status);
    *type = NULL;
    return NULL;
}

static tssa_status *signature_notes(struct import *import, Onnx__ValueInfoProto *const *infos,
                                    size_t count, const struct ir_notes ***notes)
{
    *notes = ARENA_ARRAY(&import->graph->arena, const struct ir_notes *, count);
    TRY_ALLOC(*notes);
    for (size_t i = 0; i < count; i++)
        TRY(import_notes(import, infos[i]->doc_string, infos[i]->metadata_props,
                         infos[i]->n_metadata_props, &(*notes)[i]));
    return NULL;
}

/* Inputs that are constants have no parameter: their notes are passed over. */
static tssa_status *input_notes(struct import *import, const Onnx__GraphProto *graph)
{
    struct ir_graph *ir = import->graph;
    const struct ir_notes **all;
    uint32_t n = 0;
    TRY(signature_notes(import, graph->input, graph->n_input, &all));
    for (size_t i = 0; i < graph->n_input && n < ir->body->n_params; i++)
        if (strcmp(graph->input[i]->name, ir->body->params[n]->name) == 0)
            all[n++] = all[i];
    ir->input_notes = n == ir->body->n_params ? all : NULL;
    return NULL;
}

static tssa_status *name_outputs(struct import *import, const Onnx__GraphProto *graph)
{
    struct ir_graph *ir = import->graph;
    TRY(input_notes(import, graph));
    TRY(signature_notes(import, graph->output, graph->n_output, &ir->output_notes));
    ir->output_names = ARENA_ARRAY(&ir->arena, const char *, graph->n_output);
    ir->output_types = ARENA_ARRAY(&ir->arena, const struct ir_type *, graph->n_output);
    if (!ir->output_names || !ir->output_types)
        return status_out_of_memory();
    for (size_t i = 0; i < graph->n_output; i++) {
        ir->output_names[i] = intern_str(&ir->strings, graph->output[i]->name);
        TRY_ALLOC(ir->output_names[i]);
        TRY(declared_type(import, graph->output[i], &ir->output_types[i]));
    }
    return NULL;
}

tssa_status *import_main_graph(struct import *import, struct frame *frame)
{
    struct scope scope;
    tssa_status *status = scope_init(&scope, import, NULL, frame, import->graph->body, 0);
    if (!status)
        status = import_graph(&scope, import->model->graph);
    scope_free(&scope);
    TRY(status);
    TRY(name_outputs(import, import->model->graph));
    return notes_finish(import);
}
