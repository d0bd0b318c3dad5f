/* SPDX-License-Identifier: Apache-2.0 */
/* What a plan asks of a device, on one of the test's own: kernels found, prepared, run and
 * released. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "common/no_error.h"
#include "ir/infer.h"
#include "ir/parser.h"
#include "runtime/executor.h"

/* A Neg that counts, and whose context says how many may be made. */
struct counts {
    int most, prepared, run, released;
};

static struct counts counts;

static tssa_status *prepare(const struct ir_op *op, const struct kernel_setup *setup,
                            const void **state)
{
    (void)op;
    if (counts.prepared == counts.most)
        return ERROR(TSSA_LIMIT, "no more of them");
    *state = allocator_alloc(setup->context->allocator, 16);
    TRY_ALLOC(*state);
    counts.prepared++;
    return NULL;
}

static tssa_status *run(struct kernel_args *args)
{
    const struct tensor *x;
    struct tensor *y;
    TRY(kernel_tensor(args, 0, &x));
    TRY(kernel_output(args, 0, x->dtype, x->rank, x->dims, &y));
    *(float *)y->data = -*(const float *)x->data;
    counts.run++;
    return NULL;
}

static void release(const void *state)
{
    allocator_free(&allocator_default, (void *)(uintptr_t)state);
    counts.released++;
}

static const struct kernel *find_kernel(const struct ir_op *op)
{
    static const struct kernel negate = {.prepare = prepare, .run = run, .release = release};
    return ir_op_is(op, IR_OP_Neg) ? &negate : NULL;
}

/* The default device's memory, with kernels of the test's own. */
static struct device device;

/* A plan of `text` where at most so many kernels can be prepared. */
static tssa_status *make(struct device_context *context, const char *text, int most,
                         struct ir_graph **graph, struct plan **plan)
{
    counts = (struct counts){.most = most};
    device = *device_find(NULL);
    device.name = "test";
    device.find_kernel = find_kernel;
    device.library = NULL;
    device_context_open(context, &device, &allocator_default, NULL);
    no_error(ir_parse(&allocator_default, text, strlen(text), graph));
    no_error(ir_infer_graph(*graph));
    return plan_create(*graph, context, plan);
}

static void expect_refusal(const char *text, int most, const char *message)
{
    struct device_context context;
    struct ir_graph *graph;
    struct plan *plan = NULL;
    tssa_status *status = make(&context, text, most, &graph, &plan);
    assert_non_null(status);
    assert_non_null(strstr(tssa_status_message(status), message));
    tssa_status_free(status);
    ir_graph_free(graph);
    device_context_close(&context);
}

static const char chain[] = "graph @g opset(\"\": 18) ir_version(8) (%x: f32[]) -> (%c) {\n"
                            "%a = Neg@13(%x)\n%b = Neg@13(%a)\n%c = Neg@13(%b)\nreturn(%c)\n}\n";

static void test_kernels_belong_to_steps(void **state)
{
    struct device_context context;
    struct ir_graph *graph;
    struct plan *plan;
    struct run *r;
    (void)state;
    no_error(make(&context, chain, 3, &graph, &plan));
    no_error(run_create(plan, &allocator_default, NULL, false, &r));
    float x = 2;
    struct value in = {.kind = TSSA_KIND_TENSOR, .tensor = {.dtype = TSSA_FLOAT, .data = &x}},
                 out = {.kind = TSSA_KIND_NONE};
    const struct value *inputs[] = {&in};
    no_error(run_execute(r, inputs, &out));
    assert_true(*(const float *)out.tensor.data == -2);
    value_release(&out);
    run_free(r);
    assert_int_equal(counts.released, 0);
    plan_free(plan);
    assert_int_equal(counts.prepared, 3);
    assert_int_equal(counts.run, 3);
    assert_int_equal(counts.released, 3);
    ir_graph_free(graph);
    device_context_close(&context);
}

static void test_failure_releases(void **state)
{
    (void)state;
    expect_refusal(chain, 2, "no more of them");
    assert_int_equal(counts.prepared, 2);
    assert_int_equal(counts.released, 2);
}

static void test_missing_kernel(void **state)
{
    (void)state;
    expect_refusal("graph @g opset(\"\": 18) ir_version(8) (%x: f32[]) -> (%b) {\n"
                   "%a = Neg@13(%x)\n%b = Abs@13(%a)\nreturn(%b)\n}\n",
                   9, "has no kernel on this device");
    assert_int_equal(counts.released, 1);
}

static void test_names(void **state)
{
    (void)state;
    assert_string_equal(device_find(NULL)->name, "cpu");
    assert_ptr_equal(device_find("cpu"), device_find(NULL));
    assert_null(device_find("abacus"));
    assert_ptr_equal(device_at(0), device_find(NULL));
    size_t n = 0;
    for (const struct device *at; (at = device_at(n)); n++)
        assert_ptr_equal(device_find(at->name), at);
    assert_null(device_at(n + 1));
}

/* Of devices that are numbered, and no other text behind a name. */
static void test_numbers(void **state)
{
    static const char *const wrong[] = {"cuda:",    "cuda:x",     "cuda:-1", "cuda:1 ", "cuda: 1",
                                        "cuda:1:1", "cuda:12345", "cuda1",   "cpu:0",   "null:1"};
    char name[DEVICE_NAME_SIZE];
    (void)state;
    assert_ptr_equal(device_find("cuda:0"), device_find("cuda"));
    assert_ptr_equal(device_find("cuda:12"), device_find("cuda"));
    assert_ptr_equal(device_find("opencl:1"), device_find("opencl"));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_null(device_find(wrong[i]));
    assert_int_equal(device_number(NULL), 0);
    assert_int_equal(device_number("cuda"), 0);
    assert_int_equal(device_number("cuda:12"), 12);
    device_print_name(device_find("cuda:0"), device_number("cuda:0"), name);
    assert_string_equal(name, "cuda");
    device_print_name(device_find("cuda:12"), device_number("cuda:12"), name);
    assert_string_equal(name, "cuda:12");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_belong_to_steps),
        cmocka_unit_test(test_failure_releases),
        cmocka_unit_test(test_missing_kernel),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_numbers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
