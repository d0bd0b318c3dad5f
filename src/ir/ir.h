/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The IR: one SSA graph with nested blocks.
 *
 * A graph owns an arena in which everything else lives. A block has parameters and a list of ops,
 * the last of which is `return`: its operands are the block's results. An op has operands (any may
 * be absent: ONNX's "" inputs), results (any may be unused; an absent one has no uses and type
 * unknown, and `wanted` is false), attributes and, for Loop, If, Scan and SequenceMap, blocks. A
 * value used in an inner block may be defined in an outer one. There are no phi nodes.
 *
 * Operators keep their ONNX names and operand order, in the form of the newest opset that tssa
 * knows: the importer turns older interfaces (axes as an attribute, say) into the new one.
 * `version` is the since-version the node was bound to, for the operators whose meaning changed
 * (Softmax before 13).
 *
 * Not thread-safe while it is being changed; readable from many threads afterwards.
 * All makers return NULL only when memory runs out.
 */
#ifndef TSSA_IR_IR_H
#define TSSA_IR_IR_H

#include "base/arena.h"
#include "base/file.h"
#include "base/intern.h"
#include "base/value.h"
#include "ir/dim.h"
#include "ir/ops.h"
#include "ir/type.h"

struct ir_graph;
struct ir_block;
struct ir_op;
struct ir_value;
struct rule;

/* One operand slot of one op; a link in the used value's list. */
struct ir_use {
    struct ir_op *user;
    struct ir_value *value; /* NULL: absent */
    struct ir_use *next, *prev;
};

/*
 * What is known of the elements of a small integer or bool tensor (rank 0 or 1): shape arithmetic.
 */
struct ir_known {
    size_t count;
    const struct dim *const *elements; /* NULL where unknown */
};

#define IR_KNOWN_MAX 64 /* no more elements than this are tracked */

struct ir_value {
    uint32_t id;      /* index into per-graph tables; unique (ir_graph_number_values) */
    uint32_t index;   /* which result or parameter */
    const char *name; /* interned, unique in the graph after import; NULL: printed as a number */
    const struct ir_type *type;     /* never NULL */
    const struct ir_type *declared; /* value_info of the model: a hint, may be NULL */
    const struct ir_known *known;   /* may be NULL */
    struct ir_op *op;               /* the defining op, or NULL for a parameter */
    struct ir_block *block;         /* the block whose parameter it is, or NULL */
    struct ir_use *uses;            /* all operand slots that hold it */
    bool wanted; /* false: an omitted optional result, which must not be computed */
};

enum ir_attr_kind {
    IR_ATTR_FLOAT,
    IR_ATTR_INT,
    IR_ATTR_STRING,
    IR_ATTR_TENSOR,
    IR_ATTR_TYPE,
    IR_ATTR_FLOATS,
    IR_ATTR_INTS,
    IR_ATTR_STRINGS,
    IR_ATTR_TENSORS,
    IR_ATTR_TYPES,
    IR_ATTR_RULE /* of views, accesses and assigns: rule.h */
};

struct ir_attr {
    const char *name; /* interned */
    enum ir_attr_kind kind;
    size_t count; /* of the plural kinds */
    union {
        float f;
        int64_t i;
        tssa_string s;
        const struct tensor *tensor;
        const struct ir_type *type;
        const float *floats;
        const int64_t *ints;
        const tssa_string *strings;
        const struct tensor *tensors;
        const struct ir_type *const *types;
        const struct rule *rule;
    };
};

struct ir_function;

/* An operator in the body of a function. */
struct ir_function_op {
    const char *domain, *name, *overload;
    size_t count;
    struct ir_function *callee; /* NULL: it calls none of the model's functions */
    bool is_known;              /* the op table has it */
    bool is_pure;               /* what it does, its subgraphs aside, is its results */
};

/* A function of the model, as far as anybody asks. */
struct ir_function {
    uint32_t index; /* in graph->functions */
    const char *domain, *name, *overload;
    int64_t opset;          /* of ai.onnx, that its body imports; 0: none */
    const void *definition; /* as the file has it; never looked into */
    size_t definition_size;
    const struct ir_function_op *ops;
    size_t n_ops;
    size_t calls;  /* nodes of the model that call it, those of other functions too */
    bool is_pure;  /* the same of the whole body */
    bool can_stay; /* the definition means the same in another file */
    bool stays;    /* its calls are opaque ops; else they were inlined */
    bool needed;   /* a function that stays calls it, or one that such a function calls */
};

/* Domain, name and version of an op that has no row in the op table. */
struct ir_opaque {
    const char *domain, *name, *overload;
    int64_t opset;
    const struct ir_function *function; /* that the op calls; NULL: none of the model's */
};

struct ir_string_pair {
    const char *key, *value;
};

/* What the model says of one of its parts for people and tools; carried, never read. */
struct ir_notes {
    const char *doc; /* may be NULL */
    const struct ir_string_pair *metadata;
    size_t n_metadata;
};

/* What the model notes of a value, which passes may make elsewhere: by its name. */
struct ir_value_notes {
    const char *name;
    const struct ir_notes *notes;
};

/* Scale, zero point, ...: a value that a quantization annotation names. */
struct ir_annotation_part {
    const char *key, *name;
    const struct tensor *constant; /* NULL: it is computed */
};

/* A quantization annotation: carried, never read. */
struct ir_annotation {
    const char *name; /* of the value it is about */
    const struct ir_annotation_part *parts;
    size_t n_parts;
};

/* Where an op comes from. */
enum ir_origin {
    IR_ORIGIN_MADE,       /* a pass or the importer made it */
    IR_ORIGIN_NODE,       /* a node of the model */
    IR_ORIGIN_INITIALIZER /* a Constant that the model has as an initializer */
};

struct ir_op {
    /* the op table's row; that of `opaque` for unknown operators, and of `call` for functions
     * without effects */
    const struct ir_op_info *info;
    const struct ir_opaque *opaque;
    uint32_t id;
    int version; /* since-version it was bound to; 0 for tssa's own ops */
    enum ir_origin origin;
    /*
     * Stands for what every runtime computes exactly (a branch, additions in a row), so that
     * whoever reads the file must too, though its operator may not: onnx/hazards.def. Of a
     * reduction: and there is always something to reduce.
     */
    bool exact;
    const struct ir_notes *notes; /* may be NULL */
    const char *name;             /* the ONNX node's name, for messages; may be NULL */
    uint32_t n_operands, n_results, n_attrs, n_blocks;
    struct ir_use *operands;
    struct ir_value *results;
    struct ir_attr *attrs;
    struct ir_block **blocks;
    const char **block_names; /* "body", "then_branch", ... */
    struct ir_block *parent;
    struct ir_op *prev, *next;
    /* Of a Loop: it goes over blocks of iterations; is best left as it is (or an If between two
     * versions of one); all its iterations may be computed at once, as whoever made it has seen. */
    bool in_blocks, kept, fits;
    /* of a fuse op in a session's graph: what the device compiled for it; a copy has none */
    const void *kernel;
    uint64_t inferred_from; /* ir_infer_stamp when it was last inferred; 0: never */
};

struct ir_block {
    struct ir_graph *graph;
    struct ir_op *owner; /* the op it belongs to; NULL for the graph's body */
    const char *name;    /* a subgraph's, in the model; may be NULL */
    const struct ir_notes *notes;
    uint32_t n_params;
    struct ir_value **params;
    struct ir_op *first, *last;
};

struct ir_opset {
    const char *domain; /* "" is ai.onnx */
    int64_t version;
};

/*
 * Something that tensors of the graph point into and that ends with the graph: a mapped file, say.
 */
struct ir_resource {
    struct ir_resource *next;
    struct file_map file;                          /* none where the size is 0 */
    void (*release)(struct ir_resource *resource); /* does not free the resource itself */
};

struct ir_graph {
    const tssa_allocator *allocator;
    struct arena arena;
    struct intern_table strings;
    struct dim_table dims;
    struct type_table types;
    struct ir_block *body;                /* params: the graph's inputs; return: its outputs */
    const struct tensor **input_defaults; /* per input; NULL where the caller must give one */
    const char **output_names;            /* as many as `return` of the body has operands */
    const struct ir_type **output_types;  /* what the model declares of them; the array and its
                                             entries may be NULL */
    const struct ir_notes **input_notes;  /* the arrays and their entries may be NULL */
    const struct ir_notes **output_notes;
    const struct ir_notes **default_notes;    /* of input_defaults */
    const struct ir_value_notes *value_notes; /* of other values */
    size_t n_value_notes;
    const struct ir_annotation *annotations;
    size_t n_annotations;
    uint32_t n_values, n_ops;
    bool has_mutation;     /* there may be views, writes or updates; false: there are none */
    uint64_t infer_steps;  /* ops inferred so far: the budget of loops (infer_control.c) */
    uint32_t infer_doubts; /* blocks around what is inferred that may never run */
    /* bytes that folded constants have added (fold_constants.c), and versions of loops */
    int64_t folded_growth;
    uint64_t folded_work;          /* bytes that folding has read and written */
    struct ir_resource *resources; /* newest first; released by ir_graph_free */
    struct ir_copies *copies;      /* of elements (copies.h); NULL: none */
    const struct tensor *filled;   /* weights of one number (fold_constants.c); NULL: none */
    struct ir_scaled *scaled;      /* weights (passes/lower/scaled_weights.h); NULL: none */
    const struct ir_graph *source; /* of a copy: what it shares tensors with; else NULL */

    /* The model around the graph; strings may be NULL. */
    const char *name, *doc, *producer_name, *producer_version, *domain;
    int64_t ir_version, model_version;
    struct ir_opset *opsets;
    size_t n_opsets;
    struct ir_string_pair *metadata;
    size_t n_metadata;
    struct ir_function *functions; /* model-local ones */
    size_t n_functions;
    bool keeps_functions; /* those that nothing calls, too */
    const char *dropped;  /* what the file held and the graph does not, with commas; may be NULL */
};

/* ---- Making ---------------------------------------------------------------------------------- */

struct ir_graph *ir_graph_create(const tssa_allocator *allocator);
void ir_graph_free(struct ir_graph *graph);
/* The graph owns the resource from now on; its struct must live in the graph's arena. */
void ir_graph_attach(struct ir_graph *graph, struct ir_resource *resource);
/* Elements that are not needed for now: where they lie in a mapped file of the graph, their memory
 * is given back, and they are read again when somebody needs them. Any thread, at any time. */
void ir_graph_forget(const struct ir_graph *graph, const void *data, size_t size);
/* The same of all that lies in its files. */
void ir_graph_forget_files(const struct ir_graph *graph);
/* Numbers the values anew, as they come, so that tables per id are as long as there are values: a
 * value that is made gets the next id, and those that are gone keep theirs. Between passes: who
 * keeps ids keeps wrong ones. */
void ir_graph_number_values(struct ir_graph *graph);

struct ir_block *ir_block_create(struct ir_graph *graph, struct ir_op *owner, uint32_t n_params);
/* Adds one parameter at the end of a block. */
struct ir_value *ir_block_add_param(struct ir_block *block);

/* An op that is in no block yet. Operands start absent, results of unknown type and wanted. */
struct ir_op *ir_op_create(struct ir_graph *graph, const struct ir_op_info *info,
                           uint32_t n_operands, uint32_t n_results);
void ir_op_append(struct ir_block *block, struct ir_op *op);
void ir_op_insert_before(struct ir_op *op, struct ir_op *before);
/* The same for an op that is in a block. */
void ir_op_move_before(struct ir_op *op, struct ir_op *before);
/* Takes the op out of its block and drops its operands; its results must have no uses. */
void ir_op_remove(struct ir_op *op);
void ir_op_set_operand(struct ir_op *op, uint32_t index, struct ir_value *value);
/* Gives the op room for n blocks; false when memory runs out. */
bool ir_op_set_blocks(struct ir_graph *graph, struct ir_op *op, uint32_t n_blocks);
/* Adds or replaces; the attribute is copied, what it points to is not. */
bool ir_op_set_attr(struct ir_graph *graph, struct ir_op *op, const struct ir_attr *attr);
/* All of another op's, which stay that one's, too. */
bool ir_op_copy_attrs(struct ir_graph *graph, struct ir_op *op, const struct ir_op *from);

/* What the model declares of a value that is this one in every run: kept where it says more. */
void ir_value_declare(struct ir_value *value, const struct ir_type *declared);
/*
 * All uses of `from` become uses of `to`, an equal value: of that, what the model declares of
 * `from` is true, too, where both are in one block (a branch that is never taken may hold
 * nonsense).
 */
void ir_value_replace(struct ir_value *from, struct ir_value *to);

/* A Constant op holding `tensor` (not copied), not yet in a block. */
struct ir_op *ir_constant_create(struct ir_graph *graph, const struct tensor *tensor);
struct ir_op *ir_constant_ints(struct ir_graph *graph, int rank, size_t count,
                               const int64_t *values);

/* ---- Reading --------------------------------------------------------------------------------- */

static inline struct ir_value *ir_operand(const struct ir_op *op, uint32_t index)
{
    return index < op->n_operands ? op->operands[index].value : NULL;
}
static inline struct ir_value *ir_result(const struct ir_op *op, uint32_t index)
{
    return index < op->n_results ? &op->results[index] : NULL;
}
/* A result that somebody asked for. */
static inline bool ir_result_wanted(const struct ir_op *op, uint32_t index)
{
    return index < op->n_results && op->results[index].wanted;
}
/* Does anybody read a result? */
static inline bool ir_op_is_used(const struct ir_op *op)
{
    for (uint32_t i = 0; i < op->n_results; i++)
        if (op->results[i].uses)
            return true;
    return false;
}
/* The `return` of a block; NULL while it is being built. */
static inline struct ir_op *ir_block_return(const struct ir_block *block)
{
    return block->last && block->last->info->id == IR_OP_return ? block->last : NULL;
}
static inline bool ir_op_is(const struct ir_op *op, enum ir_op_id id)
{
    return op->info->id == id;
}
/* Something that a run computes: neither a Constant nor the end of a block. */
static inline bool ir_op_computes(const struct ir_op *op)
{
    return !ir_op_is(op, IR_OP_Constant) && !ir_op_is(op, IR_OP_return);
}
/* A branch of an If: once it is come to, it runs once at most. */
static inline bool ir_block_is_branch(const struct ir_block *block)
{
    return block->owner && ir_op_is(block->owner, IR_OP_If);
}
/* One of tssa's own ops, which have no versions. */
static inline bool ir_op_is_own(const struct ir_op *op)
{
    return op->info->versions[0] == 0;
}
struct ir_block *ir_op_block(const struct ir_op *op, const char *name);
/* Nothing can be noticed of the op, nor of what is in its blocks, but its results. */
bool ir_op_is_pure(const struct ir_op *op);
/* An element-wise op all of whose operands broadcast to each other: Clip's bounds do not, nor
 * PRelu's slope. */
bool ir_op_broadcasts(const struct ir_op *op);
/* Result 0 is operand 0 in another shape: its elements, each once and in their order. */
static inline bool ir_op_keeps_order(const struct ir_op *op)
{
    return (op->info->flags & (IR_ALIAS | IR_MOVES)) == (IR_ALIAS | IR_MOVES);
}
/* In an imperative program: is it written to, or viewed, so that its elements may change? */
bool ir_value_is_mutable(const struct ir_graph *graph, const struct ir_value *value);
/* Does the block hold views, writes or updates? */
bool ir_block_is_imperative(const struct ir_block *block);
/* An operator of the function's body that the op table does not have; NULL: it has all. */
const struct ir_function_op *ir_function_unknown(const struct ir_function *function);
/* The Constant's tensor when the value is a Constant's result, else NULL. */
const struct tensor *ir_value_constant(const struct ir_value *value);

const struct ir_attr *ir_attr(const struct ir_op *op, const char *name); /* NULL when absent */
int64_t ir_attr_int(const struct ir_op *op, const char *name, int64_t fallback);
/* The attribute "axis", or what it is where the op does not say: that is in the op table. 0 of an
 * op without one. */
int64_t ir_op_axis(const struct ir_op *op);
float ir_attr_float(const struct ir_op *op, const char *name, float fallback);
/* NUL-terminated (the loader guarantees it). */
const char *ir_attr_str(const struct ir_op *op, const char *name, const char *fallback);
const int64_t *ir_attr_ints(const struct ir_op *op, const char *name,
                            size_t *count); /* NULL: absent */
const struct tensor *ir_attr_tensor(const struct ir_op *op, const char *name);

/* "Add (node "conv1/add")" or, unnamed, "Add (node 17)": how messages name an op. Long names are
 * cut, between characters, to fit: `size` is 128 at least. */
void ir_op_describe(const struct ir_op *op, char *text, size_t size);
/* Says of an error whose it is, as everybody says it; consumes `status`. NULL stays NULL. */
tssa_status *ir_op_blame(tssa_status *status, const struct ir_op *op) __attribute__((cold));

/* Is there such an op in the block, or in a block in it? */
bool ir_block_has(const struct ir_block *block, enum ir_op_id id);
/* Calls `visit` for every op of the block and, before an op's successors, of its inner blocks. */
tssa_status *ir_block_walk(struct ir_block *block,
                           tssa_status *(*visit)(void *context, struct ir_op *op), void *context);

#endif
