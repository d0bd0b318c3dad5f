/* SPDX-License-Identifier: Apache-2.0 */
/* Nodes of old operator sets get the newest interface (onnx/upgrade.def). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/onnx_model.h"

/* One node, "y = op(inputs)" over x: f32[2, 3, 4, 5], b: f32[3, 4], s: f32[3] and i: i64[1]. */
static Onnx__NodeProto *start(struct onnx_model *m, int64_t opset, const char *op,
                              const char *inputs, const char *outputs)
{
    model_init(m, 3, opset);
    model_input(m, m->graph, "x", TSSA_FLOAT, "2,3,4,5");
    model_input(m, m->graph, "b", TSSA_FLOAT, "3,4");
    model_input(m, m->graph, "s", TSSA_FLOAT, "3");
    model_input(m, m->graph, "h", TSSA_FLOAT16, "2");
    model_input(m, m->graph, "u", TSSA_FLOAT, "*");
    return model_node(m, m->graph, op, inputs, outputs);
}

/* The ops before `return`, without it. */
static void expect_ops(struct onnx_model *m, const char *ops)
{
    char body[2048] = "";
    assert_true(strlen(ops) < sizeof body - 32);
    strcpy(body, ops);
    strcat(body, "  return()\n}\n");
    expect_body(m, body);
}

static void test_axes(void **state)
{
    (void)state;
    struct onnx_model m;
    Onnx__NodeProto *n = start(&m, 9, "ReduceMean", "x", "y");
    model_attr_ints(&m, n, "axes", "1,-1");
    model_attr_int(&m, n, "keepdims", 0);
    expect_ops(&m, "  %0 = Constant@25() {value = i64[2] [1, -1]}: i64[2]\n"
                   "  %y = ReduceMean@1(%x, %0) {keepdims = 0}: f32[2, 4]\n");
    start(&m, 9, "ReduceSum", "x", "y");
    expect_ops(&m, "  %y = ReduceSum@1(%x): f32[1, 1, 1, 1]\n");
    model_attr_ints(&m, start(&m, 11, "Unsqueeze", "s", "y"), "axes", "0,2");
    expect_ops(&m, "  %0 = Constant@25() {value = i64[2] [0, 2]}: i64[2]\n"
                   "  %y = Unsqueeze@11(%s, %0): f32[1, 3, 1]\n");
    n = start(&m, 9, "Slice", "b", "y");
    model_attr_ints(&m, n, "starts", "1");
    model_attr_ints(&m, n, "ends", "3");
    model_attr_ints(&m, n, "axes", "1");
    expect_ops(&m, "  %0 = Constant@25() {value = i64[1] [1]}: i64[1]\n"
                   "  %1 = Constant@25() {value = i64[1] [3]}: i64[1]\n"
                   "  %2 = Constant@25() {value = i64[1] [1]}: i64[1]\n"
                   "  %y = Slice@1(%b, %0, %1, %2): f32[3, 2]\n");
    model_attr_ints(&m, start(&m, 1, "Reshape", "b", "y"), "shape", "4,-1");
    expect_ops(&m, "  %0 = Constant@25() {value = i64[2] [4, -1]}: i64[2]\n"
                   "  %y = Reshape@1(%b, %0): f32[4, 3]\n");
    model_attr_int(&m, start(&m, 9, "ReduceMean", "x", "y"), "axes", 1);
    expect_refused(&m, TSSA_MALFORMED, "attribute \"axes\" has the wrong type");
}

static void test_split(void **state)
{
    (void)state;
    struct onnx_model m;
    model_attr_int(&m, start(&m, 11, "Split", "x", "y,z"), "axis", 2);
    expect_ops(&m, "  %y, %z = Split@11(%x) {axis = 2, num_outputs = 2}: "
                   "f32[2, 3, 2, 5], f32[2, 3, 2, 5]\n");
    model_attr_ints(&m, start(&m, 2, "Split", "s", "y,z"), "split", "1,2");
    expect_ops(&m, "  %0 = Constant@25() {value = i64[2] [1, 2]}: i64[2]\n"
                   "  %y, %z = Split@2(%s, %0): f32[1], f32[2]\n");
}

static void test_pad(void **state)
{
    (void)state;
    struct onnx_model m;
    Onnx__NodeProto *n = start(&m, 1, "Pad", "h", "y");
    model_attr_ints(&m, n, "paddings", "1,0");
    model_attr_float(&m, n, "value", 1.5f);
    expect_ops(&m, "  %0 = Constant@25() {value = i64[2] [1, 0]}: i64[2]\n"
                   "  %1 = Constant@25() {value = f16[] 1.5}: f16[]\n"
                   "  %y = Pad@1(%h, %0, %1): f16[3]\n");
}

static void test_clip(void **state)
{
    (void)state;
    struct onnx_model m;
    model_attr_float(&m, start(&m, 6, "Clip", "s", "y"), "max", 6);
    expect_ops(&m, "  %0 = Constant@25() {value = f32[] -3.4028235e+38}: f32[]\n"
                   "  %1 = Constant@25() {value = f32[] 6}: f32[]\n"
                   "  %y = Clip@6(%s, %0, %1): f32[3]\n");
    model_attr_float(&m, start(&m, 1, "Clip", "h", "y"), "min", 0);
    expect_ops(&m, "  %0 = Constant@25() {value = f16[] 0}: f16[]\n"
                   "  %y = Clip@1(%h, %0): f16[2]\n");
}

static void test_topk_and_dropout(void **state)
{
    (void)state;
    struct onnx_model m;
    model_attr_int(&m, start(&m, 1, "TopK", "s", "y,i"), "k", 2);
    expect_ops(&m, "  %0 = Constant@25() {value = i64[1] [2]}: i64[1]\n"
                   "  %y, %i = TopK@1(%s, %0): f32[2], i64[2]\n");
}

/* y = x op b with b's dims below those of x from axis 1 on. */
static void test_broadcast(void **state)
{
    (void)state;
    struct onnx_model m;
    Onnx__NodeProto *n = start(&m, 6, "Add", "x,b", "y");
    model_attr_int(&m, n, "broadcast", 1);
    model_attr_int(&m, n, "axis", 1);
    expect_ops(&m, "  %0 = Constant@25() {value = i64[1] [2]}: i64[1]\n"
                   "  %1 = Unsqueeze@25(%b, %0): f32[3, 4, 1]\n"
                   "  %y = Add@6(%x, %1): f32[2, 3, 4, 5]\n");
    n = start(&m, 1, "Mul", "x,s", "y");
    model_attr_int(&m, n, "broadcast", 1);
    model_attr_int(&m, n, "axis", -3);
    model_attr_ints(&m, n, "consumed_inputs", "0,0");
    expect_ops(&m, "  %0 = Constant@25() {value = i64[2] [1, 2]}: i64[2]\n"
                   "  %1 = Unsqueeze@25(%s, %0): f32[3, 1, 1]\n"
                   "  %y = Mul@1(%x, %1): f32[2, 3, 4, 5]\n");
    /* Already at the end; and without an axis. */
    n = start(&m, 6, "Less", "b,b", "y");
    model_attr_int(&m, n, "broadcast", 1);
    model_attr_int(&m, n, "axis", 0);
    expect_ops(&m, "  %y = Less@1(%b, %b): bool[3, 4]\n");
    n = start(&m, 6, "Add", "u,s", "y");
    model_attr_int(&m, n, "broadcast", 1);
    expect_ops(&m, "  %y = Add@6(%u, %s): f32[*]\n");

    n = start(&m, 6, "Add", "u,s", "y");
    model_attr_int(&m, n, "broadcast", 1);
    model_attr_int(&m, n, "axis", 1);
    expect_refused(&m, TSSA_UNSUPPORTED,
                   "node 0 (Add): broadcasting along an axis needs inputs of known rank");
    n = start(&m, 6, "Add", "b,x", "y");
    model_attr_int(&m, n, "broadcast", 1);
    model_attr_int(&m, n, "axis", 0);
    expect_refused(&m, TSSA_MALFORMED,
                   "a tensor of rank 4 cannot be broadcast at axis 0 of rank 2");
}

/* Ranks come from inference: through ops that the importer made before. */
static void test_rank_of_intermediate(void **state)
{
    (void)state;
    struct onnx_model m;
    Onnx__NodeProto *n = start(&m, 6, "Neg", "x", "t");
    n = model_node(&m, m.graph, "Mul", "t,s", "y");
    model_attr_int(&m, n, "broadcast", 1);
    model_attr_int(&m, n, "axis", 1);
    expect_ops(&m, "  %t = Neg@6(%x): f32[2, 3, 4, 5]\n"
                   "  %0 = Constant@25() {value = i64[2] [1, 2]}: i64[2]\n"
                   "  %1 = Unsqueeze@25(%s, %0): f32[3, 1, 1]\n"
                   "  %y = Mul@6(%t, %1): f32[2, 3, 4, 5]\n");
}

static void test_slope(void **state)
{
    (void)state;
    struct onnx_model m;
    start(&m, 6, "PRelu", "x,s", "y");
    expect_ops(&m, "  %0 = Constant@25() {value = i64[2] [1, 2]}: i64[2]\n"
                   "  %1 = Unsqueeze@25(%s, %0): f32[3, 1, 1]\n"
                   "  %y = PRelu@6(%x, %1): f32[2, 3, 4, 5]\n");
}

static void test_cast(void **state)
{
    (void)state;
    struct onnx_model m;
    model_attr_string(&m, start(&m, 1, "Cast", "s", "y"), "to", "INT64");
    expect_ops(&m, "  %y = Cast@1(%s) {to = 7}: i64[3]\n");
    model_attr_string(&m, start(&m, 1, "Cast", "s", "y"), "to", "INT65");
    expect_refused(&m, TSSA_MALFORMED, "\"INT65\" is no element type");
}

static void test_defaults(void **state)
{
    (void)state;
    struct onnx_model m;
    start(&m, 3, "Concat", "b,b", "y");
    expect_ops(&m, "  %y = Concat@1(%b, %b) {axis = 1}: f32[3, 8]\n");
    start(&m, 1, "Selu", "s", "y");
    expect_ops(&m, "  %y = Selu@1(%s) {alpha = 1.6732, gamma = 1.0507}: f32[3]\n");
}

static void test_scatter(void **state)
{
    (void)state;
    struct onnx_model m;
    int64_t at = 1;
    float value = 9;
    start(&m, 9, "Scatter", "s,at,value", "y");
    model_initializer(&m, m.graph, model_tensor(&m, "at", TSSA_INT64, "1", &at, 8));
    model_initializer(&m, m.graph, model_tensor(&m, "value", TSSA_FLOAT, "1", &value, 4));
    m.proto->ir_version = 4;
    expect_ops(&m, "  %at = Constant@25() {value = i64[1] [1]}: i64[1]\n"
                   "  %value = Constant@25() {value = f32[1] [9]}: f32[1]\n"
                   "  %y = ScatterElements@11(%s, %at, %value): f32[3]\n");
}

/* ---- Constants ------------------------------------------------------------------------------- */

static Onnx__NodeProto *constant(struct onnx_model *m)
{
    model_init(m, 8, 13);
    return model_node(m, m->graph, "Constant", "", "c");
}

static void test_constants(void **state)
{
    (void)state;
    struct onnx_model m;
    model_attr_float(&m, constant(&m), "value_float", 1.5f);
    expect_ops(&m, "  %c = Constant@13() {value = f32[] 1.5}: f32[]\n");
    model_attr_int(&m, constant(&m), "value_int", -7);
    expect_ops(&m, "  %c = Constant@13() {value = i64[] -7}: i64[]\n");
    model_attr_string(&m, constant(&m), "value_string", "a");
    expect_ops(&m, "  %c = Constant@13() {value = str[] \"a\"}: str[]\n");
    model_attr_ints(&m, constant(&m), "value_ints", "1,2");
    expect_ops(&m, "  %c = Constant@13() {value = i64[2] [1, 2]}: i64[2]\n");
    model_attr_ints(&m, constant(&m), "value_ints", "");
    expect_ops(&m, "  %c = Constant@13() {value = i64[0] []}: i64[0]\n");

    Onnx__AttributeProto *attr =
        model_attr(&m, constant(&m), "value_floats", ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__FLOATS);
    float halves[] = {0.5f, 2};
    attr->floats = halves;
    attr->n_floats = 2;
    expect_ops(&m, "  %c = Constant@13() {value = f32[2] [0.5, 2]}: f32[2]\n");

    ProtobufCBinaryData strings[] = {{3, (uint8_t *)"a\0b"}, {0, NULL}};
    attr = model_attr(&m, constant(&m), "value_strings",
                      ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__STRINGS);
    attr->strings = strings;
    attr->n_strings = 2;
    expect_ops(&m, "  %c = Constant@13() {value = str[2] [\"a\\x00b\", \"\"]}: str[2]\n");

    Onnx__SparseTensorProto sparse = ONNX__SPARSE_TENSOR_PROTO__INIT;
    int64_t dims[] = {3}, at = 2, value = 5;
    attr = model_attr(&m, constant(&m), "sparse_value",
                      ONNX__ATTRIBUTE_PROTO__ATTRIBUTE_TYPE__SPARSE_TENSOR);
    attr->sparse_tensor = &sparse;
    sparse.dims = dims;
    sparse.n_dims = 1;
    sparse.values = model_tensor(&m, "", TSSA_INT64, "1", &value, 8);
    sparse.indices = model_tensor(&m, "", TSSA_INT64, "1", &at, 8);
    expect_ops(&m, "  %c = Constant@13() {value = i64[3] [0, 0, 5]}: i64[3]\n");

    Onnx__NodeProto *n = constant(&m);
    model_attr_int(&m, n, "value_int", 1);
    model_attr_float(&m, n, "value_float", 1);
    expect_refused(&m, TSSA_MALFORMED,
                   "node 0 (Constant): it has 2 attributes and needs one value");
    constant(&m);
    expect_refused(&m, TSSA_MALFORMED, "it has 0 attributes");
    model_attr_int(&m, constant(&m), "value", 1);
    expect_refused(&m, TSSA_MALFORMED, "attribute \"value\" is no value");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_axes),
        cmocka_unit_test(test_split),
        cmocka_unit_test(test_pad),
        cmocka_unit_test(test_clip),
        cmocka_unit_test(test_topk_and_dropout),
        cmocka_unit_test(test_broadcast),
        cmocka_unit_test(test_rank_of_intermediate),
        cmocka_unit_test(test_slope),
        cmocka_unit_test(test_cast),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_scatter),
        cmocka_unit_test(test_constants),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
