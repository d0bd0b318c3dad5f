/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the exporter share; everything else includes exporter.h. */
#ifndef TSSA_ONNX_EXPORT_H
#define TSSA_ONNX_EXPORT_H

#include "base/bitset.h"
#include "onnx/exporter.h"
#include "onnx/node_attrs.h"

/* A tensor that goes to the file of external data. */
struct external_tensor {
    const struct tensor *tensor;
    uint64_t offset;
    size_t size;
};

/* Where the elements of large initializers go when they do not go into the model. */
struct export_external {
    const char *location; /* NULL: they go into the model */
    size_t threshold;
    VEC(struct external_tensor) tensors;
    struct map offsets; /* data pointer -> struct external_tensor: equal tensors are written once */
    uint64_t size;
};

/* Ops that are written in the place of one. */
struct export_ops {
    size_t hazard; /* for the sake of which */
    const struct ir_op *const *ops;
    size_t count;
    /* the opset that cannot say one of them, or 0: the op is written as it is there */
    int64_t unsaid;
};

struct export
{
    const struct ir_graph *graph;
    struct ir_graph *unfused; /* what `graph` is where the one that was given has fuse ops */
    const tssa_allocator *allocator;
    struct onnx_export_options options;
    struct arena scratch;
    struct output out;
    struct export_external external;
    int64_t opset;  /* of ai.onnx */
    bool uses_onnx; /* some node is of ai.onnx */
    int64_t ir_version;
    struct map value_notes;      /* name -> struct ir_notes */
    VEC(struct ir_opset) opsets; /* of other domains, beside those that the model imports */
    struct bitset functions;     /* whose definitions are written */
    struct map rewritten;        /* id of an op -> struct export_ops */
    size_t n_values;       /* those of the graph, `empty`, and results of ops of the export's own */
    const char **names;    /* by id of the value; NULL: it is not written */
    struct map used_names; /* to what has the name: a value, or &export->taken */
    char taken;
    struct map name_counts; /* name -> how many were made from it */
    struct bitset needed;   /* by id of the value: some node or the caller takes it */
    struct bitset placed;   /* by id of the value: scratch of export_order */
    struct ir_value empty;  /* a FLOAT tensor without elements, for operands that must be there */
    bool needs_empty;       /* and no constant of the graph is one */
    /* Of the node being written, kept for their memory. */
    VEC(const struct ir_value *) operands;
    node_attrs node_attrs;
};

/* Fields of a GraphProto. */
enum graph_field {
    GRAPH_NODE = 1,
    GRAPH_NAME = 2,
    GRAPH_INITIALIZER = 5,
    GRAPH_DOC = 10,
    GRAPH_INPUT = 11,
    GRAPH_OUTPUT = 12,
    GRAPH_VALUE_INFO = 13,
    GRAPH_QUANTIZATION = 14,
    GRAPH_METADATA = 16
};

/* ---- hazard.c -------------------------------------------------------------------------------- */

/* Finds the ops that are written as others: before anything is asked about values by their ids. */
tssa_status *export_avoid_hazards(struct export *export);
/* Is it a matter of time alone? */
bool onnx_hazard_is_slow(size_t index);
/* What the op is written as at the opset of the export; NULL: as itself. */
struct export_ops *export_instead(const struct export *export, const struct ir_op *op);
/* Of the return of a block: must the result be a copy? */
bool export_copies_result(const struct export *export, const struct ir_op *results, uint32_t index);
/* What is written of its shape: what the model declares; what is inferred beside that; or nothing,
 * of a result that a hazard is about that is not gone around. */
enum export_shape { SHAPE_DECLARED, SHAPE_INFERRED, SHAPE_NONE };
enum export_shape export_result_shape(const struct export *export, const struct ir_op *results,
                                      uint32_t index);

/* ---- export_constants.c ---------------------------------------------------------------------- */

/* Whether a Constant is written as an initializer of its graph. */
bool export_is_initializer(const struct export *export, const struct ir_op *op);
/* A constant that all its users were told as an attribute. */
bool export_is_dropped(const struct export *export, const struct ir_op *op);
/* The initializer that a Constant is. */
tssa_status *export_constant(struct export *export, const struct ir_op *op);
/* An initializer of the graph that is being written, for which no op stands. */
tssa_status *export_initializer(struct export *export, const struct tensor *tensor,
                                const char *name);
/* What belongs to no op: defaults of inputs, and the empty tensor. */
tssa_status *export_other_initializers(struct export *export);

/* ---- export_names.c -------------------------------------------------------------------------- */

/* Gives every value of the graph the name it is written with. */
tssa_status *export_assign_names(struct export *export);
/* A name that nothing has yet. */
tssa_status *export_fresh_name(struct export *export, const char *like, const char **name);

/* ---- export_order.c -------------------------------------------------------------------------- */

/* The ops of a block in the order of the file, without those that are not written. */
tssa_status *export_order(struct export *export, const struct ir_block *block,
                          const struct ir_op *const **ops, size_t *count);

/* ---- export_graph.c -------------------------------------------------------------------------- */

/* A GraphProto as field `field`. */
tssa_status *export_block(struct export *export, uint32_t field, const struct ir_block *block);

/* ---- export_attribute.c ---------------------------------------------------------------------- */

/* One AttributeProto, as field `field`. */
tssa_status *export_attribute(struct export *export, uint32_t field, const struct ir_attr *attr);
/* A TensorProto as field `field`. `name` and `notes` may be NULL; `external`: it may go to the
 * external data. */
tssa_status *export_tensor(struct export *export, uint32_t field, const struct tensor *tensor,
                           const char *name, const struct ir_notes *notes, bool external);
/* A TypeProto; nothing when the type is unknown. */
tssa_status *export_type(struct export *export, uint32_t field, const struct ir_type *type);
bool export_type_known(const struct ir_type *type);
/* A ValueInfoProto as field `field`, with what the model notes of the name. `type` may be NULL. */
tssa_status *export_value_info(struct export *export, uint32_t field, const char *name,
                               const struct ir_type *type);
/* The same with other notes. */
tssa_status *export_noted_info(struct export *export, uint32_t field, const char *name,
                               const struct ir_type *type, const struct ir_notes *notes);

/* ---- export_notes.c -------------------------------------------------------------------------- */

/* A StringStringEntryProto as field `field`. */
void export_metadata(struct output *out, uint32_t field, const char *key, const char *value);
/* The two fields that notes are; NULL: nothing. */
void export_notes(struct output *out, const struct ir_notes *notes, uint32_t doc_field,
                  uint32_t metadata_field);
/* Fills in export->value_notes. */
tssa_status *export_collect_notes(struct export *export);

/* ---- export_annotations.c -------------------------------------------------------------------- */

/* The quantization annotations of what the block defines, as fields `field`. */
tssa_status *export_annotations(struct export *export, uint32_t field,
                                const struct ir_block *block);

/* ---- export_functions.c ---------------------------------------------------------------------- */

/* Its definition is written, and those of the functions it calls. */
void export_need_function(struct export *export, const struct ir_function *function);
/* The same of those that stay whether they are called or not. */
void export_need_kept_functions(struct export *export);
/* Definitions stay what they are: TSSA_UNSUPPORTED when they would mean something else, or be
 * refused, in a model of this opset. */
tssa_status *export_check_functions(const struct export *export, int64_t opset);
/* The definitions, as fields `field`. */
void export_put_functions(struct export *export, uint32_t field);

/* ---- export_schema.c ------------------------------------------------------------------------- */

/* The version of ai.onnx that the model imports; 0: it does not. */
int64_t export_model_opset(const struct ir_graph *graph);

/* An op on its way to a node; its operands and attributes are those of the export. */
struct export_draft {
    struct export *export;
    const struct ir_op *op;
    const char *domain, *name, *overload;
    int version;          /* since-version that the node binds to */
    uint32_t min_outputs; /* that may not be left out */
};

/* An attribute or operand that it has by now, or NULL. */
struct ir_attr *export_draft_attr(const struct export_draft *draft, const char *name);
const struct ir_value *export_draft_operand(const struct export_draft *draft, int index);
/* Is it written in the version that it was read in? Then it is not judged. */
bool export_draft_unchanged(const struct export_draft *draft);
/* That the operator of the draft's version does `why`, or lacks the attribute. */
tssa_status *export_refuse(const struct export_draft *draft, const char *why);
tssa_status *export_unknown_attr(const struct export_draft *draft, const char *attr);
/* Is the value, its input or output `index`, of one of the types in `legal`, bits of schema.h? */
tssa_status *export_check_type(const struct export_draft *draft, const char *what, size_t index,
                               const struct ir_value *value, uint32_t legal);
/* Does the schema of its version have all of it? Fills in min_outputs. */
tssa_status *export_check_schema(struct export_draft *draft);

/* ---- downgrade.c ----------------------------------------------------------------------------- */

/* Applies the rows of downgrade.def that are about the draft's version. */
tssa_status *export_downgrade(struct export_draft *draft);

/* ---- export_draft.c -------------------------------------------------------------------------- */

/* Fills in a draft and brings it to the interface that its operator has at this opset of ai.onnx;
 * the error is TSSA_UNSUPPORTED when that cannot say what the op means. */
tssa_status *export_draft(struct export *export, const struct ir_op *op, int64_t opset,
                          struct export_draft *draft);

/* ---- export_opset.c -------------------------------------------------------------------------- */

/* Decides on the opset, and which values are needed at it. */
tssa_status *export_choose_opset(struct export *export);

#endif
