/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ONNX models written in a few lines of a test, and what the importer says to them. Lists of names
 * are one string, "x,y": an empty name is an absent one. Dims are "N,4,?" ("*": unknown rank, "": a
 * scalar).
 */
#ifndef TSSA_TESTS_ONNX_MODEL_H
#define TSSA_TESTS_ONNX_MODEL_H

#include "base/text.h"
#include "onnx/importer.h"
#include "onnx/onnx.pb-c.h"

struct onnx_model {
    struct arena arena;
    Onnx__ModelProto *proto;
    Onnx__GraphProto *graph;
};

/* opset 0: none imported. */
void model_init(struct onnx_model *model, int64_t ir_version, int64_t opset);
void model_free(struct onnx_model *model);
void model_opset(struct onnx_model *model, const char *domain, int64_t version);

Onnx__GraphProto *model_graph(struct onnx_model *model, const char *name);
void model_input(struct onnx_model *model, Onnx__GraphProto *graph, const char *name, int dtype,
                 const char *dims);
void model_output(struct onnx_model *model, Onnx__GraphProto *graph, const char *name, int dtype,
                  const char *dims);
/* dtype -1: a name without a type. */
Onnx__ValueInfoProto *model_value(struct onnx_model *model, const char *name, int dtype,
                                  const char *dims);
/* A tensor whose raw_data is a copy of `raw`. */
Onnx__TensorProto *model_tensor(struct onnx_model *model, const char *name, int dtype,
                                const char *dims, const void *raw, size_t size);
void model_initializer(struct onnx_model *model, Onnx__GraphProto *graph,
                       Onnx__TensorProto *tensor);

Onnx__NodeProto *model_node(struct onnx_model *model, Onnx__GraphProto *graph, const char *op,
                            const char *inputs, const char *outputs);
Onnx__AttributeProto *model_attr(struct onnx_model *model, Onnx__NodeProto *node, const char *name,
                                 int type);
void model_attr_int(struct onnx_model *model, Onnx__NodeProto *node, const char *name,
                    int64_t value);
void model_attr_float(struct onnx_model *model, Onnx__NodeProto *node, const char *name,
                      float value);
void model_attr_string(struct onnx_model *model, Onnx__NodeProto *node, const char *name,
                       const char *value);
void model_attr_ints(struct onnx_model *model, Onnx__NodeProto *node, const char *name,
                     const char *values);
void model_attr_tensor(struct onnx_model *model, Onnx__NodeProto *node, const char *name,
                       Onnx__TensorProto *tensor);
void model_attr_graph(struct onnx_model *model, Onnx__NodeProto *node, const char *name,
                      Onnx__GraphProto *graph);
void model_attr_ref(struct onnx_model *model, Onnx__NodeProto *node, const char *name,
                    const char *ref);

Onnx__FunctionProto *model_function(struct onnx_model *model, const char *domain, const char *name,
                                    const char *inputs, const char *outputs, int64_t opset);
Onnx__NodeProto *function_node(struct onnx_model *model, Onnx__FunctionProto *function,
                               const char *op, const char *inputs, const char *outputs);

/* Puts `item` behind the `*count` items of an array of pointers. */
void model_append(struct onnx_model *model, void *array, size_t *count, void *item);
char *model_string(struct onnx_model *model, const char *text);
int64_t *model_dims(struct onnx_model *model, const char *dims, size_t *count);

/* The bytes of the model's file, in the model's arena. */
const void *model_pack(struct onnx_model *model, size_t *size);
tssa_status *model_import(struct onnx_model *model, struct ir_graph **graph);

/*
 * Imports, prints everything behind the graph's "-> (...) {" line, and compares. Frees the model.
 */
void expect_body(struct onnx_model *model, const char *body);
/* The import must fail with a line that holds `message`. Frees the model. */
void expect_refused(struct onnx_model *model, tssa_code code, const char *message);

#endif
