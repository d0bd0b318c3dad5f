/* SPDX-License-Identifier: Apache-2.0 */
/* Models to graphs: names and scopes, initializers, attributes, opsets, and what is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/onnx_model.h"
#include "common/test_alloc.h"

static const float floats[] = {1, 2, 3, 4, 5, 6};
static const int64_t one = 1;
static const uint8_t yes = 1;

/* ---- Names ----------------------------------------------------------------------------------- */

static void test_plain(void **state)
{
    (void)state;
    struct onnx_model m;
    model_init(&m, 8, 18);
    model_input(&m, m.graph, "x", TSSA_FLOAT, "N,3");
    model_initializer(&m, m.graph, model_tensor(&m, "w", TSSA_FLOAT, "3", floats, 12));
    model_node(&m, m.graph, "Add", "x,w", "sum");
    model_node(&m, m.graph, "ai.onnx:Mul", "sum,sum", "y");
    model_output(&m, m.graph, "y", TSSA_FLOAT, "N,3");
    expect_body(&m, "  %w = Constant@25() {value = f32[3] [1, 2, 3]}: f32[3]\n"
                    "  %sum = Add@14(%x, %w): f32[N, 3]\n"
                    "  %y = Mul@14(%sum, %sum): f32[N, 3]\n"
                    "  return(%y)\n"
                    "}\n");
}

static void test_order(void **state)
{
    (void)state;
    struct onnx_model m;
    model_init(&m, 8, 18);
    model_input(&m, m.graph, "x", TSSA_FLOAT, "3");
    model_input(&m, m.graph, "c", TSSA_BOOL, "");
    /* The branch takes "late", which a later node makes. */
    Onnx__GraphProto *branch = model_graph(&m, "branch");
    model_node(&m, branch, "Mul", "late,x", "inner");
    model_output(&m, branch, "inner", -1, "");
    Onnx__NodeProto *node = model_node(&m, m.graph, "If", "c", "y");
    model_attr_graph(&m, node, "then_branch", branch);
    model_attr_graph(&m, node, "else_branch", branch);
    model_node(&m, m.graph, "Add", "x,x", "late");
    model_output(&m, m.graph, "y", TSSA_FLOAT, "3");
    expect_body(&m, "  %late = Add@14(%x, %x): f32[3]\n"
                    "  %y = If@16(%c): f32[3] {\n"
                    "    then_branch() {\n"
                    "      %inner = Mul@14(%late, %x): f32[3]\n"
                    "      return(%inner)\n"
                    "    }\n"
                    "    else_branch() {\n"
                    "      %inner_1 = Mul@14(%late, %x): f32[3]\n"
                    "      return(%inner_1)\n"
                    "    }\n"
                    "  }\n"
                    "  return(%y)\n"
                    "}\n");
}

static void test_cycle(void **state)
{
    (void)state;
    struct onnx_model m;
    model_init(&m, 8, 18);
    model_input(&m, m.graph, "x", TSSA_FLOAT, "3");
    model_node(&m, m.graph, "Add", "x,b", "a")->name = model_string(&m, "first");
    model_node(&m, m.graph, "Add", "x,a", "b");
    model_output(&m, m.graph, "b", TSSA_FLOAT, "3");
    expect_refused(&m, TSSA_MALFORMED,
                   "node \"first\" (Add) needs its own output: the graph has a cycle");
}

/*
 * A Loop whose body shadows an outer name with its parameter, and takes another through two levels.
 */
static void test_scopes(void **state)
{
    (void)state;
    struct onnx_model m;
    model_init(&m, 8, 18);
    model_input(&m, m.graph, "n", TSSA_INT64, "");
    model_input(&m, m.graph, "x", TSSA_FLOAT, "2");
    model_input(&m, m.graph, "outer", TSSA_FLOAT, "2");

    Onnx__GraphProto *branch = model_graph(&m, "branch");
    model_node(&m, branch, "Add", "x,outer", "t");
    model_output(&m, branch, "t", -1, "");
    Onnx__GraphProto *body = model_graph(&m, "body");
    model_input(&m, body, "i", -1, "");
    model_input(&m, body, "go", -1, "");
    model_input(&m, body, "x", -1, "");
    Onnx__NodeProto *choice = model_node(&m, body, "If", "go", "next");
    model_attr_graph(&m, choice, "then_branch", branch);
    model_attr_graph(&m, choice, "else_branch", branch);
    model_output(&m, body, "go", -1, "");
    model_output(&m, body, "next", -1, "");
    Onnx__NodeProto *loop = model_node(&m, m.graph, "Loop", "n,,x", "y");
    model_attr_graph(&m, loop, "body", body);
    model_output(&m, m.graph, "y", TSSA_FLOAT, "2");
    expect_body(&m, "  %y = Loop@16(%n, _, %x): f32[2] {\n"
                    "    body(%i: i64[], %go: bool[], %x_1: f32[2]) {\n"
                    "      %next = If@16(%go): f32[2] {\n"
                    "        then_branch() {\n"
                    "          %t = Add@14(%x_1, %outer): f32[2]\n"
                    "          return(%t)\n"
                    "        }\n"
                    "        else_branch() {\n"
                    "          %t_1 = Add@14(%x_1, %outer): f32[2]\n"
                    "          return(%t_1)\n"
                    "        }\n"
                    "      }\n"
                    "      return(%go, %next)\n"
                    "    }\n"
                    "  }\n"
                    "  return(%y)\n"
                    "}\n");
}

static void refuse_names(const char *inputs, const char *outputs, const char *output,
                         const char *message)
{
    struct onnx_model m;
    model_init(&m, 8, 18);
    model_input(&m, m.graph, "x", TSSA_FLOAT, "3");
    model_node(&m, m.graph, "Neg", "x", "a");
    model_node(&m, m.graph, "Add", inputs, outputs);
    model_output(&m, m.graph, output, TSSA_FLOAT, "3");
    expect_refused(&m, TSSA_MALFORMED, message);
}

static void test_bad_names(void **state)
{
    (void)state;
    refuse_names("x,nowhere", "y", "y", "node 1 (Add): input \"nowhere\" is defined nowhere");
    refuse_names("x,a", "a", "a", "two outputs of nodes are named \"a\"");
    refuse_names("x,a", "x", "x", "\"x\" is defined twice");
    refuse_names("x,a", "y", "z", "graph output 0, \"z\", is defined nowhere");
    refuse_names("x,a", "y", "", "graph output 0, \"\", is defined nowhere");
    refuse_names("x", "y", "y", "node 1 (Add): it has 1 inputs and needs 2");
    refuse_names("x,a,a", "y", "y", "node 1 (Add): it has 3 inputs and takes 2 at most");
    refuse_names("x,a", "", "a", "node 1 (Add): it has 0 outputs and needs 1");
    refuse_names("x,a", "y,z", "y", "node 1 (Add): it has 2 outputs and takes 1 at most");
    refuse_names("x,", "y", "y", "node 1 (Add): input 1 is missing");
}

/* Later Constants override earlier ones; other operators may not. */
static void test_constant_overrides(void **state)
{
    (void)state;
    struct onnx_model m;
    model_init(&m, 8, 18);
    model_attr_int(&m, model_node(&m, m.graph, "Constant", "", "c"), "value_int", 1);
    model_node(&m, m.graph, "Identity", "c", "y");
    model_attr_int(&m, model_node(&m, m.graph, "Constant", "", "c"), "value_int", 2);
    model_output(&m, m.graph, "y", TSSA_INT64, "");
    expect_body(&m, "  %c = Constant@13() {value = i64[] 2}: i64[]\n"
                    "  %y = Identity@16(%c): i64[]\n"
                    "  return(%y)\n"
                    "}\n");
}

static void test_optional_outputs(void **state)
{
    (void)state;
    struct onnx_model m;
    model_init(&m, 8, 18);
    model_input(&m, m.graph, "x", TSSA_FLOAT, "8");
    model_initializer(&m, m.graph, model_tensor(&m, "k", TSSA_INT64, "1", &one, 8));
    model_node(&m, m.graph, "TopK", "x,k", ",i");
    model_output(&m, m.graph, "i", TSSA_INT64, "1");
    expect_body(&m, "  %k = Constant@25() {value = i64[1] [1]}: i64[1]\n"
                    "  _, %i = TopK@11(%x, %k): i64[1]\n"
                    "  return(%i)\n"
                    "}\n");
}

/* ---- Initializers ---------------------------------------------------------------------------- */

static void with_default(struct onnx_model *m, int64_t ir_version)
{
    model_init(m, ir_version, 8);
    model_input(m, m->graph, "w", TSSA_FLOAT, "3");
    model_input(m, m->graph, "x", TSSA_FLOAT, "3");
    model_initializer(m, m->graph, model_tensor(m, "w", TSSA_FLOAT, "3", floats, 12));
    model_node(m, m->graph, "Add", "x,w", "y");
    model_output(m, m->graph, "y", TSSA_FLOAT, "3");
}

static void test_input_defaults(void **state)
{
    (void)state;
    struct onnx_model m;
    struct ir_graph *graph;
    with_default(&m, 4);
    assert_null(model_import(&m, &graph));
    assert_int_equal(graph->body->n_params, 2);
    assert_non_null(graph->input_defaults[0]);
    assert_memory_equal(graph->input_defaults[0]->data, floats, 12);
    assert_null(graph->input_defaults[1]);
    ir_graph_free(graph);
    model_free(&m);

    /* Before IR 4 it had to be listed, and is a constant. */
    with_default(&m, 3);
    expect_body(&m, "  %w = Constant@25() {value = f32[3] [1, 2, 3]}: f32[3]\n"
                    "  %y = Add@7(%x, %w): f32[3]\n"
                    "  return(%y)\n"
                    "}\n");

    with_default(&m, 4);
    m.graph->initializer[0]->dims[0] = 2;
    m.graph->initializer[0]->raw_data.len = 8;
    expect_refused(&m, TSSA_MALFORMED, "input \"w\" has a default of another type, f32[2]");
}

static void test_duplicate_initializer(void **state)
{
    (void)state;
    struct onnx_model m;
    model_init(&m, 8, 18);
    model_initializer(&m, m.graph, model_tensor(&m, "w", TSSA_FLOAT, "3", floats, 12));
    model_initializer(&m, m.graph, model_tensor(&m, "w", TSSA_FLOAT, "3", floats, 12));
    model_output(&m, m.graph, "w", TSSA_FLOAT, "3");
    expect_refused(&m, TSSA_MALFORMED, "\"w\" is defined twice");
}

static Onnx__SparseTensorProto *sparse(struct onnx_model *m, const char *indices_dims,
                                       const int64_t *indices, size_t n, const char *dims)
{
    Onnx__SparseTensorProto *tensor = arena_alloc(&m->arena, sizeof *tensor);
    assert_non_null(tensor);
    onnx__sparse_tensor_proto__init(tensor);
    tensor->values = model_tensor(m, "s", TSSA_FLOAT, "2", floats, 8);
    tensor->indices = model_tensor(m, "", TSSA_INT64, indices_dims, indices, n * 8);
    tensor->dims = model_dims(m, dims, &tensor->n_dims);
    return tensor;
}

static void with_sparse(struct onnx_model *m, const char *indices_dims, const int64_t *indices,
                        size_t n, const char *dims)
{
    model_init(m, 8, 18);
    model_append(m, &m->graph->sparse_initializer, &m->graph->n_sparse_initializer,
                 sparse(m, indices_dims, indices, n, dims));
    model_output(m, m->graph, "s", TSSA_FLOAT, dims);
}

static void test_sparse(void **state)
{
    (void)state;
    struct onnx_model m;
    static const int64_t linear[] = {1, 5}, pairs[] = {0, 1, 1, 2}, beyond[] = {1, 6};
    static const int64_t descending[] = {5, 1}, negative[] = {-1, 1}, outside[] = {0, 1, 1, 3};
    const char *dense = "  %s = Constant@25() {value = f32[2, 3] [0, 1, 0, 0, 0, 2]}: f32[2, 3]\n"
                        "  return(%s)\n"
                        "}\n";
    with_sparse(&m, "2", linear, 2, "2,3");
    expect_body(&m, dense);
    with_sparse(&m, "2,2", pairs, 4, "2,3");
    expect_body(&m, dense);
    with_sparse(&m, "2", beyond, 2, "2,3");
    expect_refused(&m, TSSA_MALFORMED, "sparse tensor \"s\": index 6 is out of range");
    with_sparse(&m, "2", negative, 2, "2,3");
    expect_refused(&m, TSSA_MALFORMED, "index -1 is out of range");
    with_sparse(&m, "2,2", outside, 4, "2,3");
    expect_refused(&m, TSSA_MALFORMED, "index 3 is out of range in dim 1");
    with_sparse(&m, "2", descending, 2, "2,3");
    expect_refused(&m, TSSA_MALFORMED, "its indices do not ascend");
    with_sparse(&m, "2,1", linear, 2, "2,3");
    expect_refused(&m, TSSA_MALFORMED, "do not have the shape of its values");
    with_sparse(&m, "2", linear, 2, "1000000,1000000");
    expect_refused(&m, TSSA_LIMIT, "sparse tensors are too large");
    with_sparse(&m, "2", linear, 2, "4611686018427387904,4611686018427387904");
    expect_refused(&m, TSSA_LIMIT, "larger than the address space");
}

/* ---- Tensors --------------------------------------------------------------------------------- */

static void refuse_tensor(Onnx__TensorProto *tensor, struct onnx_model *m, tssa_code code,
                          const char *message)
{
    model_initializer(m, m->graph, tensor);
    model_output(m, m->graph, "t", -1, "");
    expect_refused(m, code, message);
}

static void test_bad_tensors(void **state)
{
    (void)state;
    static const struct {
        int dtype;
        const char *dims;
        size_t size;
        tssa_code code;
        const char *message;
    } cases[] = {
        {TSSA_FLOAT, "3", 11, TSSA_MALFORMED,
         "tensor \"t\": f32[3] takes 12 bytes of data, not 11"},
        {TSSA_FLOAT, "3", 16, TSSA_MALFORMED, "takes 12 bytes of data, not 16"},
        {TSSA_FLOAT, "0", 4, TSSA_MALFORMED, "takes 0 bytes of data, not 4"},
        {TSSA_FLOAT, "1000000000,1000000000", 4, TSSA_MALFORMED, "not 4"},
        {TSSA_FLOAT, "9223372036854775807,2", 4, TSSA_LIMIT, "larger than the address space"},
        {TSSA_FLOAT, "0,9223372036854775807,2", 0, TSSA_LIMIT, "larger than the address space"},
        {TSSA_FLOAT, "-1", 4, TSSA_MALFORMED, "dim 0 is -1"},
        {TSSA_FLOAT, "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1", 4, TSSA_LIMIT, "rank 17 is above 16"},
        {0, "1", 4, TSSA_MALFORMED, "element type 0 is unknown"},
        {27, "1", 4, TSSA_MALFORMED, "element type 27 is unknown"},
        {-5, "1", 4, TSSA_MALFORMED, "element type -5 is unknown"},
        {TSSA_STRING, "1", 4, TSSA_MALFORMED, "strings cannot be raw data"},
        {TSSA_INT4, "3", 3, TSSA_MALFORMED, "i4[3] takes 2 bytes of data, not 3"},
    };
    struct onnx_model m;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        model_init(&m, 13, 25);
        refuse_tensor(model_tensor(&m, "t", cases[i].dtype, cases[i].dims, floats, cases[i].size),
                      &m, cases[i].code, cases[i].message);
    }
    model_init(&m, 8, 18);
    refuse_tensor(model_tensor(&m, "t", TSSA_FLOAT, "3", NULL, 0), &m, TSSA_MALFORMED,
                  "tensor \"t\": f32[3] has no data");
    model_init(&m, 8, 18);
    Onnx__TensorProto *tensor = model_tensor(&m, "t", TSSA_FLOAT, "1", floats, 4);
    tensor->n_float_data = 1;
    tensor->float_data = (float *)floats;
    refuse_tensor(tensor, &m, TSSA_MALFORMED, "it has data in both raw_data and float_data");
    model_init(&m, 8, 18);
    tensor = model_tensor(&m, "t", TSSA_INT64, "1", NULL, 0);
    tensor->n_float_data = 1;
    tensor->float_data = (float *)floats;
    refuse_tensor(tensor, &m, TSSA_MALFORMED, "elements of type INT64 cannot be in float_data");
    model_init(&m, 8, 18);
    tensor = model_tensor(&m, "t", TSSA_FLOAT, "1", floats, 4);
    Onnx__TensorProto__Segment segment = ONNX__TENSOR_PROTO__SEGMENT__INIT;
    tensor->segment = &segment;
    refuse_tensor(tensor, &m, TSSA_UNSUPPORTED, "it is one segment of a larger tensor");
}

static void test_int32_data(void **state)
{
    (void)state;
    struct onnx_model m;
    model_init(&m, 13, 25);
    static int32_t half[] = {0x3c00, 0xc000}, nibbles[] = {0xe1, 0x03}, bools[] = {0, 7};
    static uint64_t wide[] = {4294967295u};
    Onnx__TensorProto *a = model_tensor(&m, "a", TSSA_FLOAT16, "2", NULL, 0);
    a->int32_data = half;
    a->n_int32_data = 2;
    Onnx__TensorProto *b = model_tensor(&m, "b", TSSA_INT4, "3", NULL, 0);
    b->int32_data = nibbles;
    b->n_int32_data = 2;
    Onnx__TensorProto *c = model_tensor(&m, "c", TSSA_BOOL, "2", NULL, 0);
    c->int32_data = bools;
    c->n_int32_data = 2;
    Onnx__TensorProto *d = model_tensor(&m, "d", TSSA_UINT32, "1", NULL, 0);
    d->uint64_data = wide;
    d->n_uint64_data = 1;
    model_initializer(&m, m.graph, a);
    model_initializer(&m, m.graph, b);
    model_initializer(&m, m.graph, c);
    model_initializer(&m, m.graph, d);
    expect_body(&m, "  %a = Constant@25() {value = f16[2] [1, -2]}: f16[2]\n"
                    "  %b = Constant@25() {value = i4[3] [1, -2, 3]}: i4[3]\n"
                    "  %c = Constant@25() {value = bool[2] [false, true]}: bool[2]\n"
                    "  %d = Constant@25() {value = u32[1] [4294967295]}: u32[1]\n"
                    "  return()\n"
                    "}\n");
}

/* Large payloads of typed fields are decoded from the file. */
static void test_large_typed_data(void **state)
{
    (void)state;
    enum { COUNT = 3000 };
    static int64_t longs[COUNT];
    static int32_t bytes[COUNT];
    static float plain[COUNT];
    for (int i = 0; i < COUNT; i++) {
        longs[i] = (int64_t)i * -1000003;
        bytes[i] = i % 251 - 125;
        plain[i] = (float)i;
    }
    struct onnx_model m;
    struct ir_graph *graph;
    model_init(&m, 13, 25);
    Onnx__TensorProto *tensors[3];
    tensors[0] = model_tensor(&m, "a", TSSA_INT64, "3000", NULL, 0);
    tensors[0]->int64_data = longs;
    tensors[0]->n_int64_data = COUNT;
    tensors[1] = model_tensor(&m, "b", TSSA_INT8, "3000", NULL, 0);
    tensors[1]->int32_data = bytes;
    tensors[1]->n_int32_data = COUNT;
    tensors[2] = model_tensor(&m, "c", TSSA_FLOAT, "3000", NULL, 0);
    tensors[2]->float_data = plain;
    tensors[2]->n_float_data = COUNT;
    for (int i = 0; i < 3; i++) {
        model_initializer(&m, m.graph, tensors[i]);
        model_output(&m, m.graph, tensors[i]->name, -1, "");
    }
    assert_null(model_import(&m, &graph));
    const struct ir_op *returned = ir_block_return(graph->body);
    assert_memory_equal(ir_value_constant(ir_operand(returned, 0))->data, longs, sizeof longs);
    assert_memory_equal(ir_value_constant(ir_operand(returned, 2))->data, plain, sizeof plain);
    const int8_t *small = ir_value_constant(ir_operand(returned, 1))->data;
    for (int i = 0; i < COUNT; i++)
        assert_int_equal(small[i], bytes[i]);
    ir_graph_free(graph);
    tensors[0]->n_dims = 0;
    expect_refused(&m, TSSA_MALFORMED,
                   "tensor \"a\": i64[] takes 1 entries of int64_data, not 3000");
}

/* ---- Operators and opsets -------------------------------------------------------------------- */

static void test_opaque(void **state)
{
    (void)state;
    struct onnx_model m;
    model_init(&m, 8, 18);
    model_opset(&m, "com.acme", 3);
    model_input(&m, m.graph, "x", TSSA_FLOAT, "2");
    Onnx__GraphProto *body = model_graph(&m, "body");
    model_input(&m, body, "e", TSSA_FLOAT, "");
    model_node(&m, body, "Add", "e,x", "f");
    model_output(&m, body, "f", TSSA_FLOAT, "2");
    Onnx__NodeProto *node = model_node(&m, m.graph, "com.acme:Frob", "x,", "y,");
    model_attr_ints(&m, node, "axes", "1,2");
    model_attr_string(&m, node, "mode", "fast");
    model_attr_graph(&m, node, "body", body);
    model_node(&m, m.graph, "NoSuchOperator", "y", "z");
    model_append(&m, &m.graph->value_info, &m.graph->n_value_info,
                 model_value(&m, "y", TSSA_FLOAT, "7"));
    model_output(&m, m.graph, "z", TSSA_FLOAT, "2");
    expect_body(&m, "  %y, _ = opaque(\"com.acme\", \"Frob\", 3)(%x, _) "
                    "{axes = [1, 2], mode = \"fast\"}: f32[7] {\n"
                    "    body(%e: f32[]) {\n"
                    "      %f = Add@14(%e, %x): f32[2]\n"
                    "      return(%f)\n"
                    "    }\n"
                    "  }\n"
                    "  %z = opaque(\"\", \"NoSuchOperator\", 18)(%y): f32[2]\n"
                    "  return(%z)\n"
                    "}\n");
}

/* tssa's own ops are no operators of ONNX. */
static void test_internal_ops(void **state)
{
    (void)state;
    struct onnx_model m;
    struct ir_graph *graph;
    model_init(&m, 8, 18);
    model_opset(&m, "tssa", 1);
    model_input(&m, m.graph, "x", TSSA_FLOAT, "2");
    model_node(&m, m.graph, "tssa:return", "x", "");
    model_node(&m, m.graph, "tssa:opaque", "x", "y");
    model_output(&m, m.graph, "y", TSSA_FLOAT, "2");
    assert_null(model_import(&m, &graph));
    assert_string_equal(graph->body->first->opaque->name, "return");
    assert_int_equal(graph->body->first->info->id, IR_OP_opaque);
    ir_graph_free(graph);
    model_free(&m);
}

static void with_softmax(struct onnx_model *m, int64_t ir_version, int64_t opset)
{
    model_init(m, ir_version, opset);
    model_input(m, m->graph, "x", TSSA_FLOAT, "2,3");
    model_node(m, m->graph, "Neg", "x", "y");
    model_output(m, m->graph, "y", TSSA_FLOAT, "2,3");
}

static int neg_version(int64_t ir_version, int64_t opset)
{
    struct onnx_model m;
    struct ir_graph *graph;
    with_softmax(&m, ir_version, opset);
    tssa_status *status = model_import(&m, &graph);
    assert_null(status);
    int version = graph->body->first->opaque ? -1 : graph->body->first->version;
    ir_graph_free(graph);
    model_free(&m);
    return version;
}

static void test_versions(void **state)
{
    (void)state;
    struct onnx_model m;
    assert_int_equal(neg_version(3, 1), 1);
    assert_int_equal(neg_version(3, 6), 6);
    assert_int_equal(neg_version(8, 12), 6);
    assert_int_equal(neg_version(13, 27), 13);
    assert_int_equal(neg_version(13, 28), -1); /* carried, not guessed */
    assert_int_equal(neg_version(2, 0), 1);
    with_softmax(&m, 3, 0);
    expect_refused(&m, TSSA_MALFORMED,
                   "node 0 (Neg): the model imports no operator set of domain \"ai.onnx\"");
    with_softmax(&m, 14, 18);
    expect_refused(&m, TSSA_UNSUPPORTED, "IR version 14 is newer than 13");
    with_softmax(&m, 0, 18);
    expect_refused(&m, TSSA_MALFORMED, "not an ONNX model: it has no IR version");
    with_softmax(&m, 8, -3);
    expect_refused(&m, TSSA_MALFORMED, "operator set -3 of domain \"ai.onnx\" does not exist");
    with_softmax(&m, 8, 18);
    model_opset(&m, "ai.onnx", 18);
    expect_body(&m, "  %y = Neg@13(%x): f32[2, 3]\n  return(%y)\n}\n");
    with_softmax(&m, 8, 18);
    model_opset(&m, "ai.onnx", 17);
    expect_refused(&m, TSSA_MALFORMED,
                   "operator sets 18 and 17 of domain \"ai.onnx\" are imported");
    with_softmax(&m, 8, 18);
    m.proto->graph = NULL;
    expect_refused(&m, TSSA_MALFORMED, "the model has no graph");
}

/* ---- Attributes and types -------------------------------------------------------------------- */

static void test_untyped_attributes(void **state)
{
    (void)state;
    struct onnx_model m;
    model_init(&m, 1, 0); /* IR 1: attributes do not say their type */
    model_input(&m, m.graph, "x", TSSA_FLOAT, "2,3");
    Onnx__NodeProto *node = model_node(&m, m.graph, "LeakyRelu", "x", "y");
    model_attr_float(&m, node, "alpha", 0.5f);
    model_attr_ints(&m, node, "consumed_inputs", "0");
    node->attribute[0]->has_type = node->attribute[1]->has_type = 0;
    model_output(&m, m.graph, "y", TSSA_FLOAT, "2,3");
    expect_body(&m, "  %y = LeakyRelu@1(%x) {alpha = 0.5}: f32[2, 3]\n  return(%y)\n}\n");
}

static void test_bad_attributes(void **state)
{
    (void)state;
    struct onnx_model m;
    for (int bad = 0; bad < 4; bad++) {
        static const char *const messages[] = {"attribute \"alpha\" is there twice",
                                               "an attribute has no name",
                                               "attribute \"alpha\": its type 99 is unknown",
                                               "attribute \"alpha\": there is no tensor"};
        model_init(&m, 8, 18);
        model_input(&m, m.graph, "x", TSSA_FLOAT, "2");
        Onnx__NodeProto *node = model_node(&m, m.graph, "LeakyRelu", "x", "y");
        model_attr_float(&m, node, bad == 1 ? "" : "alpha", 1);
        if (bad == 0)
            model_attr_float(&m, node, "alpha", 1);
        else if (bad > 1)
            node->attribute[0]->type = (Onnx__AttributeProto__AttributeType)(bad == 2 ? 99 : 4);
        model_output(&m, m.graph, "y", TSSA_FLOAT, "2");
        expect_refused(&m, TSSA_MALFORMED, messages[bad]);
    }
}

static void test_types(void **state)
{
    (void)state;
    struct onnx_model m;
    model_init(&m, 8, 18);
    model_input(&m, m.graph, "a", TSSA_FLOAT, "N,?,-1,0,N");
    model_input(&m, m.graph, "b", TSSA_FLOAT, "*");
    model_input(&m, m.graph, "c", TSSA_STRING, "");
    struct ir_graph *graph;
    assert_null(model_import(&m, &graph));
    const struct ir_type *a = graph->body->params[0]->type;
    int64_t zero = 1;
    assert_int_equal(a->rank, 5);
    assert_ptr_equal(a->dims[0], a->dims[4]);
    assert_ptr_not_equal(a->dims[1], a->dims[2]);
    assert_int_equal(a->dims[2]->kind, DIM_SYMBOL);
    assert_true(dim_is_const(a->dims[3], &zero) && zero == 0);
    assert_int_equal(graph->body->params[1]->type->rank, -1);
    assert_int_equal(graph->body->params[2]->type->rank, 0);
    assert_int_equal(graph->body->params[2]->type->dtype, TSSA_STRING);
    ir_graph_free(graph);
    m.graph->input[0]->type->tensor_type->shape->dim[3]->dim_value = -2;
    expect_refused(&m, TSSA_MALFORMED, "input \"a\": a dim is -2");
}

/* value_info is a hint: one that makes no sense is not believed, one of rank 17 is passed over. */
static void test_hints(void **state)
{
    (void)state;
    struct onnx_model m;
    model_init(&m, 8, 18);
    model_input(&m, m.graph, "x", TSSA_FLOAT, "2");
    model_node(&m, m.graph, "Neg", "x", "a");
    model_node(&m, m.graph, "Neg", "a", "b");
    model_append(&m, &m.graph->value_info, &m.graph->n_value_info,
                 model_value(&m, "a", TSSA_INT64, "9,9"));
    model_append(&m, &m.graph->value_info, &m.graph->n_value_info,
                 model_value(&m, "b", TSSA_FLOAT, "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1"));
    model_output(&m, m.graph, "b", -1, "");
    expect_body(&m, "  %a = Neg@13(%x): f32[2]\n  %b = Neg@13(%a): f32[2]\n  return(%b)\n}\n");
}

/* ---- Memory ---------------------------------------------------------------------------------- */

static const void *sample;
static size_t sample_size;

static tssa_status *import_sample(const tssa_allocator *allocator)
{
    struct ir_graph *graph = NULL;
    TRY(onnx_import(allocator, sample, sample_size, NULL, &graph));
    ir_graph_free(graph);
    return NULL;
}

/* A model with a bit of everything. */
static void make_sample(struct onnx_model *m)
{
    model_init(m, 8, 9);
    model_input(m, m->graph, "n", TSSA_INT64, "");
    model_input(m, m->graph, "x", TSSA_FLOAT, "2,3");
    model_initializer(m, m->graph, model_tensor(m, "w", TSSA_FLOAT, "2,3", floats, 24));
    model_initializer(m, m->graph, model_tensor(m, "yes", TSSA_BOOL, "", &yes, 1));
    Onnx__FunctionProto *function = model_function(m, "local", "F", "a,b", "c", 18);
    function_node(m, function, "Add", "a,b", "t");
    model_attr_ref(m, function_node(m, function, "LeakyRelu", "t", "c"), "alpha", "slope");
    Onnx__GraphProto *body = model_graph(m, "body");
    model_input(m, body, "i", TSSA_INT64, "");
    model_input(m, body, "go", TSSA_BOOL, "");
    model_input(m, body, "v", TSSA_FLOAT, "2,3");
    model_attr_float(m, model_node(m, body, "local:F", "v,x", "u"), "slope", 0.5f);
    model_attr_float(m, model_node(m, body, "Clip", "u", "clipped"), "max", 4);
    model_output(m, body, "go", TSSA_BOOL, "");
    model_output(m, body, "clipped", TSSA_FLOAT, "2,3");
    model_attr_graph(m, model_node(m, m->graph, "Loop", "n,yes,w", "z"), "body", body);
    model_attr_ints(m, model_node(m, m->graph, "Squeeze", "z", "s"), "axes", "");
    model_output(m, m->graph, "s", TSSA_FLOAT, "2,3");
    model_opset(m, "local", 1);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    struct onnx_model m;
    make_sample(&m);
    sample = model_pack(&m, &sample_size);
    assert_true(test_alloc_sweep(import_sample) > 50);
    model_free(&m);
}

/* Every truncation and many corruptions end in a graph or one line. */
static void test_mutations(void **state)
{
    (void)state;
    struct onnx_model m;
    size_t size;
    make_sample(&m);
    const uint8_t *bytes = model_pack(&m, &size);
    uint8_t *mutant = arena_alloc(&m.arena, size);
    assert_non_null(mutant);
    uint64_t random = 88172645463325252u;
    size_t refused = 0;
    for (size_t round = 0; round < 20000; round++) {
        size_t length = round < size ? round : size;
        memcpy(mutant, bytes, size);
        for (int flips = 0; round >= size && flips <= (int)(round % 3); flips++) {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            mutant[random % size] ^= (uint8_t)(1u << (random >> 32) % 8);
        }
        struct ir_graph *graph = NULL;
        tssa_status *status = onnx_import(&allocator_default, mutant, length, NULL, &graph);
        if (status) {
            assert_null(strchr(tssa_status_message(status), '\n'));
            assert_true(strlen(tssa_status_message(status)) > 5);
            refused++;
            tssa_status_free(status);
        } else {
            ir_graph_free(graph);
        }
    }
    assert_true(refused > 5000 && refused < 20000);
    model_free(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_cycle),
        cmocka_unit_test(test_scopes),
        cmocka_unit_test(test_bad_names),
        cmocka_unit_test(test_constant_overrides),
        cmocka_unit_test(test_optional_outputs),
        cmocka_unit_test(test_input_defaults),
        cmocka_unit_test(test_duplicate_initializer),
        cmocka_unit_test(test_sparse),
        cmocka_unit_test(test_bad_tensors),
        cmocka_unit_test(test_int32_data),
        cmocka_unit_test(test_large_typed_data),
        cmocka_unit_test(test_opaque),
        cmocka_unit_test(test_internal_ops),
        cmocka_unit_test(test_versions),
        cmocka_unit_test(test_untyped_attributes),
        cmocka_unit_test(test_bad_attributes),
        cmocka_unit_test(test_types),
        cmocka_unit_test(test_hints),
        cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_mutations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
