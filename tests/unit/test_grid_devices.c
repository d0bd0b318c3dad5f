/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices that launch grids, `opencl`, where there is one, and `cuda`, on a fake driver. What
 * kernels find wrong is an error of the run that names what was fused, and of that run alone. How
 * large a result is may be told by numbers that a kernel has computed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "api/handles.h"
#include "common/fake_cuda.h"
#include "common/no_error.h"
#include "common/onnx_model.h"

#define ROWS 5
#define N 100

struct fixture {
    tssa_context *context;
    tssa_model *model;
    tssa_session *session;
};

/* y = table[cast(where)] + table[cast(where)]: numbers that the host does not see. */
static void make_lookup(struct onnx_model *model)
{
    model_init(model, 8, 18);
    model_input(model, model->graph, "table", TSSA_FLOAT, "R,4");
    model_input(model, model->graph, "where", TSSA_FLOAT, "N");
    model_output(model, model->graph, "y", TSSA_FLOAT, "N,4");
    Onnx__NodeProto *cast = model_node(model, model->graph, "Cast", "where", "i");
    model_attr_int(model, cast, "to", TSSA_INT64);
    Onnx__NodeProto *gather = model_node(model, model->graph, "Gather", "table,i", "g");
    gather->name = model_string(model, "lookup");
    model_node(model, model->graph, "Add", "g,g", "y");
}

/* y = -x[cast(exp(from)):] */
static void make_slice(struct onnx_model *model)
{
    static const int64_t end = INT64_MAX;
    model_init(model, 8, 18);
    model_input(model, model->graph, "x", TSSA_FLOAT, "R,4");
    model_input(model, model->graph, "from", TSSA_FLOAT, "1");
    model_output(model, model->graph, "y", TSSA_FLOAT, "M,4");
    model_initializer(model, model->graph,
                      model_tensor(model, "end", TSSA_INT64, "1", &end, sizeof end));
    model_node(model, model->graph, "Exp", "from", "e");
    Onnx__NodeProto *cast = model_node(model, model->graph, "Cast", "e", "i");
    model_attr_int(model, cast, "to", TSSA_INT64);
    model_node(model, model->graph, "Slice", "x,i,end", "s");
    model_node(model, model->graph, "Neg", "s", "y");
}

/* The same, and x in a shape that may not fit: an error of the host's, behind the launch. */
static void make_both(struct onnx_model *model)
{
    make_lookup(model);
    model_input(model, model->graph, "x", TSSA_FLOAT, "6");
    model_input(model, model->graph, "shape", TSSA_INT64, "2");
    model_output(model, model->graph, "z", TSSA_FLOAT, "P,Q");
    model_node(model, model->graph, "Reshape", "x,shape", "z");
}

static bool fixture_open(struct fixture *f, const char *device,
                         void (*make)(struct onnx_model *model))
{
    const tssa_optimize_options optimize = {
        .struct_size = sizeof optimize, .level = 2, .target = TSSA_TARGET_SESSION};
    const tssa_session_options options = {.struct_size = sizeof options, .device = device};
    struct onnx_model model;
    size_t size;
    make(&model);
    const void *bytes = model_pack(&model, &size);
    no_error(tssa_context_create(NULL, &f->context));
    no_error(tssa_model_load_memory(f->context, bytes, size, NULL, &f->model));
    model_free(&model);
    no_error(tssa_model_optimize(f->model, &optimize));
    f->session = NULL;
    tssa_status *status = tssa_session_create(f->model, &options, &f->session);
    const bool is_there = tssa_status_code(status) != TSSA_UNSUPPORTED;
    if (is_there)
        no_error(status);
    else
        tssa_status_free(status);
    return is_there;
}

static void fixture_close(struct fixture *f)
{
    tssa_session_free(f->session);
    tssa_model_free(f->model);
    tssa_context_free(f->context);
}

/* Row number `bad` of the table at place 70, all others are there. */
static tssa_status *run(struct fixture *f, float bad, float *y)
{
    static const int64_t table_dims[] = {ROWS, 4}, where_dims[] = {N}, y_dims[] = {N, 4};
    float table[ROWS * 4], where[N];
    tssa_value *inputs[2], *outputs[1];
    for (int i = 0; i < ROWS * 4; i++)
        table[i] = (float)i;
    for (int i = 0; i < N; i++)
        where[i] = (float)(i % ROWS);
    where[70] = bad;
    no_error(
        tssa_tensor_borrow(f->context, TSSA_FLOAT, 2, table_dims, table, sizeof table, &inputs[0]));
    no_error(
        tssa_tensor_borrow(f->context, TSSA_FLOAT, 1, where_dims, where, sizeof where, &inputs[1]));
    no_error(
        tssa_tensor_borrow(f->context, TSSA_FLOAT, 2, y_dims, y, N * 4 * sizeof *y, &outputs[0]));
    tssa_status *status = tssa_session_run(f->session, 2, inputs, 1, outputs);
    tssa_value_free(inputs[0]);
    tssa_value_free(inputs[1]);
    tssa_value_free(outputs[0]);
    return status;
}

static void test_wrong_index(void **state)
{
    struct fixture f;
    float y[N * 4];
    if (!fixture_open(&f, *state, make_lookup)) {
        fixture_close(&f);
        skip();
    }
    for (int round = 0; round < 3; round++) {
        tssa_status *status = run(&f, ROWS, y);
        assert_int_equal(tssa_status_code(status), TSSA_RUNTIME);
        assert_non_null(
            strstr(tssa_status_message(status), "or one fused with it: an index is out of range"));
        tssa_status_free(status);
        no_error(run(&f, -1, y));
        for (int i = 0; i < N * 4; i++) {
            const int row = i / 4 == 70 ? ROWS - 1 : i / 4 % ROWS;
            assert_true(y[i] == 2 * (float)(row * 4 + i % 4));
        }
    }
    fixture_close(&f);
}

/* A run that fails otherwise leaves nothing for the next one to find. */
static void test_two_errors(void **state)
{
    static const int64_t table_dims[] = {ROWS, 4}, where_dims[] = {N}, x_dims[] = {6},
                         shape_dims[] = {2};
    float table[ROWS * 4] = {0}, where[N] = {0}, x[6] = {0};
    int64_t shape[2] = {2, 4};
    struct fixture f;
    if (!fixture_open(&f, *state, make_both)) {
        fixture_close(&f);
        skip();
    }
    for (int right = 0; right < 2; right++) {
        tssa_value *inputs[4], *outputs[2] = {NULL, NULL};
        where[70] = right ? 0 : ROWS;
        shape[1] = right ? 3 : 4;
        no_error(tssa_tensor_borrow(f.context, TSSA_FLOAT, 2, table_dims, table, sizeof table,
                                    &inputs[0]));
        no_error(tssa_tensor_borrow(f.context, TSSA_FLOAT, 1, where_dims, where, sizeof where,
                                    &inputs[1]));
        no_error(tssa_tensor_borrow(f.context, TSSA_FLOAT, 1, x_dims, x, sizeof x, &inputs[2]));
        no_error(tssa_tensor_borrow(f.context, TSSA_INT64, 1, shape_dims, shape, sizeof shape,
                                    &inputs[3]));
        tssa_status *status = tssa_session_run(f.session, 4, inputs, 2, outputs);
        assert_int_equal(tssa_status_code(status), right ? TSSA_OK : TSSA_RUNTIME);
        tssa_status_free(status);
        for (int i = 0; i < 4; i++)
            tssa_value_free(inputs[i]);
        for (int i = 0; i < 2; i++)
            tssa_value_free(outputs[i]);
    }
    fixture_close(&f);
}

static void test_told_sizes(void **state)
{
    static const int64_t x_dims[] = {ROWS, 4}, from_dims[] = {1};
    float x[ROWS * 4], from = 1.0f; /* exp(1) as an integer: 2 */
    tssa_value *inputs[2], *y = NULL;
    struct fixture f;
    if (!fixture_open(&f, *state, make_slice)) {
        fixture_close(&f);
        skip();
    }
    for (int i = 0; i < ROWS * 4; i++)
        x[i] = (float)i;
    no_error(tssa_tensor_borrow(f.context, TSSA_FLOAT, 2, x_dims, x, sizeof x, &inputs[0]));
    no_error(
        tssa_tensor_borrow(f.context, TSSA_FLOAT, 1, from_dims, &from, sizeof from, &inputs[1]));
    no_error(tssa_session_run(f.session, 2, inputs, 1, &y));
    assert_int_equal(tssa_tensor_dims(y)[0], ROWS - 2);
    for (int i = 0; i < (ROWS - 2) * 4; i++)
        assert_true(((const float *)tssa_tensor_data(y))[i] == -(float)(i + 8));
    tssa_value_free(inputs[0]);
    tssa_value_free(inputs[1]);
    tssa_value_free(y);
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(test_wrong_index, (void *)"opencl"),
        cmocka_unit_test_prestate(test_wrong_index, (void *)"cuda"),
        cmocka_unit_test_prestate(test_two_errors, (void *)"opencl"),
        cmocka_unit_test_prestate(test_two_errors, (void *)"cuda"),
        cmocka_unit_test_prestate(test_told_sizes, (void *)"opencl"),
        cmocka_unit_test_prestate(test_told_sizes, (void *)"cuda"),
    };
    fake_cuda_use(true);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
