/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the importer share; everything else includes importer.h. */
#ifndef TSSA_ONNX_IMPORT_H
#define TSSA_ONNX_IMPORT_H

#include "onnx/external.h"
#include "onnx/importer.h"
#include "onnx/node_attrs.h"
#include "onnx/tensor_proto.h"
#include "onnx/wire.h"

struct import;

/* Blocks and function calls may be nested this deep: every level costs stack. A function's body
 * counts from where it is called. */
#define IMPORT_MAX_DEPTH 128
/* Nodes, operands, results and attributes that inlining may make. Models without functions cannot
 * get there: their files end first. */
#define IMPORT_MAX_EXPANSION 2000000

/* An imported operator set. */
struct opset {
    const char *domain; /* "" is ai.onnx */
    int64_t version;
};

struct opset_list {
    const struct opset *data;
    size_t count;
};

/* A function of the model. */
struct function {
    const Onnx__FunctionProto *proto;
    struct opset_list opsets;
    struct ir_function *info; /* what the graph tells of it */
    struct ir_opaque *opaque; /* of its calls; NULL until there is one */
};

/* What an attribute reference in a function's body stands for. */
struct bound_attr {
    const Onnx__AttributeProto *proto;
    struct scope *scope; /* where a subgraph in it looks names up */
};

/* One call of a function, or the model's graph (function NULL). */
struct frame {
    const struct function *function;
    struct opset_list opsets;
    struct map attrs;      /* name -> struct bound_attr */
    struct map call_names; /* name of a function output -> name that the caller gives it */
};

/* The names that a graph or a function's body defines. */
struct scope {
    struct import *import;
    struct scope *parent; /* looked up next; NULL: nothing outside is visible */
    struct frame *frame;
    struct ir_block *block;
    unsigned depth;
    struct map values; /* name -> struct ir_value, or &import->absent */
    struct map hints;  /* name -> Onnx__ValueInfoProto: value_info */
};

struct import {
    const tssa_allocator *allocator;
    struct onnx_import_options options;
    struct ir_graph *graph;
    struct wire_file file;
    struct arena scratch;
    const Onnx__ModelProto *model;
    bool mapped;            /* the model's bytes are a mapped file */
    bool eager;             /* infer every op at once, because upgrades of old opsets need types */
    struct ir_value absent; /* a function input that the caller left out */
    struct map functions;   /* key -> struct function */
    struct function **function_list; /* in the order of the file */
    struct map used_names;           /* names of values -> struct name_use */
    struct map operators;            /* domain and name -> const struct ir_op_info */
    unsigned inlining;               /* function calls that are open */
    unsigned named_nodes;            /* in the error that is on its way out */
    struct map attrs;   /* Onnx__AttributeProto * -> what it became: those of function bodies */
    struct map tensors; /* Onnx__TensorProto * or Onnx__SparseTensorProto *, the same */
    struct external external;
    uint64_t expansion_left; /* see IMPORT_MAX_EXPANSION */
    uint64_t dense_left;     /* bytes that sparse tensors may still grow to */
    /* Of the node being imported, kept for their memory. */
    VEC(struct ir_value *) operands;
    node_attrs node_attrs;
    /* What becomes of the graph's arrays of the same names. */
    VEC(struct ir_value_notes) value_notes;
    VEC(struct ir_annotation) annotations;
};

/* ---- scope.c --------------------------------------------------------------------------------- */

tssa_status *scope_init(struct scope *scope, struct import *import, struct scope *parent,
                        struct frame *frame, struct ir_block *block, unsigned depth);
void scope_free(struct scope *scope);
/* The value of a name, innermost scope first; NULL when there is none. */
struct ir_value *scope_find(const struct scope *scope, const char *name);
/* Makes `name` mean `value`, which keeps the name it has. */
tssa_status *scope_bind(struct scope *scope, const char *name, struct ir_value *value);
/* The same, and gives the value its name, made unique, and its declared type. */
tssa_status *scope_define(struct scope *scope, const char *name, struct ir_value *value);
/* Remembers what the scope's value_info notes of the name, for the value that has it. */
tssa_status *scope_note(const struct scope *scope, const char *name, const struct ir_value *value);
/* Remembers declared types and notes. */
tssa_status *scope_collect_hints(struct scope *scope, Onnx__ValueInfoProto *const *infos,
                                 size_t count);
/* Takes `amount` from the budget of inlining. */
tssa_status *scope_spend(const struct scope *scope, uint64_t amount);
/* Appends an op to the scope's block, and infers it when types are needed at once. */
tssa_status *scope_append(struct scope *scope, struct ir_op *op);

/* ---- opsets.c -------------------------------------------------------------------------------- */

/* "" for ai.onnx under both of its names. */
const char *import_domain(const char *domain);
tssa_status *import_opsets(struct import *import, Onnx__OperatorSetIdProto *const *protos,
                           size_t count, struct opset_list *list);
/* The version of the domain's operator set; 0: it is not imported. */
int64_t import_opset(const struct import *import, const struct opset_list *opsets,
                     const char *domain);
/* The row and the version of an operator; the row of opaque ops where tssa has none. */
tssa_status *import_bind(struct import *import, const char *domain, const char *name, int64_t opset,
                         const struct ir_op_info **info, int *version);

/* ---- node.c ---------------------------------------------------------------------------------- */

tssa_status *import_nodes(struct scope *scope, Onnx__NodeProto *const *nodes, size_t count);

/* ---- graph.c --------------------------------------------------------------------------------- */

tssa_status *import_main_graph(struct import *import, struct frame *frame);
/* A subgraph of an op that stands in the scope `outside`; outer names are looked up in `names`. */
tssa_status *import_block(struct scope *outside, struct scope *names, const Onnx__GraphProto *graph,
                          struct ir_op *op, struct ir_block **block);

/* ---- order.c --------------------------------------------------------------------------------- */

/*
 * An order of the nodes of a scope in which every value is defined before it is used, as close to
 * the given one as a depth-first search gets, without Constants that others override. *order is in
 * the scratch arena. Two definitions of a name and cycles are errors.
 */
tssa_status *import_order(const struct scope *scope, Onnx__NodeProto *const *nodes, size_t count,
                          const uint32_t **order, size_t *n_ordered);

/* ---- attribute.c ----------------------------------------------------------------------------- */

/* The attribute that `proto` stands for in this scope; proto NULL: it refers to nothing. */
struct bound_attr attribute_resolve(struct scope *scope, const Onnx__AttributeProto *proto);
/* The type, found out from the field that is set where the file does not tell. */
int attribute_type(const Onnx__AttributeProto *proto);
/* Any attribute but a graph. */
tssa_status *attribute_import(struct scope *scope, const Onnx__AttributeProto *proto,
                              struct ir_attr *attr);

/* ---- type_proto.c ---------------------------------------------------------------------------- */

/* NULL: unknown. */
tssa_status *import_type(struct import *import, const Onnx__TypeProto *proto,
                         const struct ir_type **type);

/* ---- initializer.c --------------------------------------------------------------------------- */

/* The tensors live as long as the graph. */
tssa_status *import_tensor(struct import *import, const Onnx__TensorProto *proto,
                           const struct tensor **tensor);
tssa_status *import_sparse(struct import *import, const Onnx__SparseTensorProto *proto,
                           const struct tensor **tensor);

/* ---- notes.c --------------------------------------------------------------------------------- */

/* NULL where there is nothing to note. */
tssa_status *import_notes(struct import *import, const char *doc,
                          Onnx__StringStringEntryProto *const *metadata, size_t n_metadata,
                          const struct ir_notes **notes);

/* Remembers what `info` says of the value beside its type. */
tssa_status *notes_of_value(struct import *import, const Onnx__ValueInfoProto *info,
                            const struct ir_value *value);
/* Gives the graph what was remembered, annotations too. */
tssa_status *notes_finish(struct import *import);

/* ---- annotations.c --------------------------------------------------------------------------- */

/* Remembers the quantization annotations of a graph whose values are all defined. */
tssa_status *import_annotations(struct scope *scope, const Onnx__GraphProto *graph);

/* ---- function.c ------------------------------------------------------------------------------ */

/* Indexes the model's functions and refuses cycles. `order`: their indices, callees before callers;
 * NULL where there are none. */
tssa_status *functions_init(struct import *import, const uint32_t **order);
/* NULL when the node calls none. */
tssa_status *function_find(const struct import *import, const Onnx__NodeProto *node,
                           struct function **function);

/* ---- inline.c -------------------------------------------------------------------------------- */

tssa_status *function_inline(struct scope *scope, const Onnx__NodeProto *node,
                             const struct function *function);

/* ---- function_list.c ------------------------------------------------------------------------- */

/* Says in the graph what each function consists of and who calls it, and decides whose calls stay.
 * `order`: what functions_init gave. */
tssa_status *functions_describe(struct import *import, const uint32_t *order);

/* ---- upgrade.c ------------------------------------------------------------------------------- */

/* A node on its way to an op: attributes and operands are those of import->operands, node_attrs. */
struct draft {
    struct scope *scope;
    const Onnx__NodeProto *node;
    const struct ir_op_info *info;
    int version;
    size_t n_results; /* the node's outputs; upgrades may leave some out */
};

/* Where `name` of ai.onnx is replaced by another operator: that one's name, and the version of the
 * old one that `opset` binds to; else NULL. */
const char *upgrade_replaced(const char *name, int64_t opset, int *version);
/* Brings a draft to the newest interface of its operator. May append ops to the scope's block. */
tssa_status *upgrade_draft(struct draft *draft);

#endif
