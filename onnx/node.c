/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes to ops: their operators, attributes, subgraphs (ONNX 1.22.0, docs/IR.md). */
#include <string.h>

#include "onnx/import.h"
#include "onnx/made_names.h"

/* A node with more attributes than this is an attack on whoever compares their names. */
#define MAX_ATTRIBUTES 1024
/* No more of a name is shown in an error. */
#define SHOWN_NAME 100
/* Nested nodes that an error names, besides the outermost. */
#define MAX_NAMED_NODES 4

/* ---- Attributes ------------------------------------------------------------------------------ */

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

/* ---- Nodes ----------------------------------------------------------------------------------- */

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
        tssa_status *status = import_block(draft->scope, graphs->data[i].scope,
                                           graphs->data[i].graph, op, &op->blocks[i]);
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

static tssa_status *find_opset(const struct scope *scope, const char *domain, int64_t *version)
{
    *version = import_opset(scope->import, &scope->frame->opsets, domain);
    if (*version)
        return NULL;
    return ERROR(TSSA_MALFORMED, "the %s imports no operator set of domain \"%s\"",
                 scope->frame->function ? "function" : "model", domain[0] ? domain : "ai.onnx");
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
    return scope_append(scope, op);
}

static tssa_status *import_node(struct scope *scope, const Onnx__NodeProto *node)
{
    struct function *function;
    if (!node->op_type || !node->op_type[0])
        return ERROR(TSSA_MALFORMED, "it names no operator");
    TRY(scope_spend(scope, 1 + (uint64_t)node->n_input + node->n_output + node->n_attribute));
    TRY(function_find(scope->import, node, &function));
    return function && !function->info->stays ? function_inline(scope, node, function)
                                              : import_operator(scope, node, function);
}

/* Says where an error was. Of many nested nodes the innermost and the outermost are named: the
 * message must not be cut off before it says what is wrong. */
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
