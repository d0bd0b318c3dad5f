/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every device of the table must do: memory, copies, order between streams, scalars, running
 * out of memory, kernels. A device that only counts passes as well: its memory holds nothing that
 * could be compared.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/no_error.h"
#include "common/test_alloc.h"
#include "common/test_device.h"
#include "device/device.h"
#include "device/library.h"
#include "ir/infer.h"
#include "ir/parser.h"
#include "runtime/executor.h"

#define ROUNDS 50
#define BYTES 4096

struct fixture {
    const struct device *device;
    struct test_alloc alloc;
    struct device_context context;
    struct device_stream *stream;
};

/* Not every machine has every device. */
static void connect_or_skip(struct device_context *context)
{
    tssa_status *status = device_context_connect(context);
    if (tssa_status_code(status) == TSSA_UNSUPPORTED) {
        print_message("%s\n", tssa_status_message(status));
        tssa_status_free(status);
        device_context_close(context);
        skip();
    }
    no_error(status);
}

static void fixture_open(struct fixture *f, const struct device *device)
{
    test_alloc_init(&f->alloc);
    f->device = device;
    device_context_open(&f->context, device, &f->alloc.allocator, NULL);
    if (!device->is_host)
        f->context.host = test_device();
    connect_or_skip(&f->context);
    no_error(device->stream_open(&f->context, &f->stream));
    assert_ptr_equal(f->stream->context, &f->context);
}

static void fixture_close(struct fixture *f)
{
    f->device->stream_close(f->stream);
    device_context_close(&f->context);
    assert_int_equal(f->alloc.live, 0);
}

static void *allocate(struct fixture *f, size_t size)
{
    void *memory = f->device->allocate(f->stream, size);
    assert_non_null(memory);
    return memory;
}

static struct device_place at(void *memory, size_t offset)
{
    return (struct device_place){memory, offset};
}

/* Byte i of what round `round` writes. */
static unsigned char pattern(int round, size_t i)
{
    return (unsigned char)(i * 7 + (size_t)round * 31 + 1);
}

static void copy_in(struct fixture *f, struct device_place to, int round, size_t size)
{
    unsigned char bytes[BYTES];
    for (size_t i = 0; i < size; i++)
        bytes[i] = pattern(round, i);
    no_error(f->device->copy(f->stream, DEVICE_COPY_IN, to, at(bytes, 0), size));
    no_error(f->device->stream_wait(f->stream)); /* `bytes` goes */
}

/* `size` bytes of a round's pattern from `first` on; a device that only counts has none. */
static void expect_pattern(struct fixture *f, struct device_place from, int round, size_t first,
                           size_t size)
{
    unsigned char bytes[BYTES];
    memset(bytes, 0, sizeof bytes);
    no_error(f->device->copy(f->stream, DEVICE_COPY_OUT, at(bytes, 0), from, size));
    for (size_t i = 0; i < size && !f->device->computes_nothing; i++)
        assert_int_equal(bytes[i], pattern(round, first + i));
}

/* ---- Memory ---------------------------------------------------------------------------------- */

static void test_allocation(void **state)
{
    static const size_t sizes[] = {0, 1, 63, 64, 65, 4096, 1 << 20};
    void *memory[sizeof sizes / sizeof *sizes];
    struct fixture f;
    fixture_open(&f, *state);
    assert_true(f.device->alignment >= TENSOR_ALIGNMENT);
    assert_int_equal(f.device->alignment & (f.device->alignment - 1), 0);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        memory[i] = allocate(&f, sizes[i]);
        for (size_t k = 0; k < i; k++)
            assert_ptr_not_equal(memory[i], memory[k]);
        if (f.device->is_host)
            assert_int_equal((uintptr_t)memory[i] % f.device->alignment, 0);
    }
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        f.device->release(f.stream, memory[i], sizes[i]);
    f.device->release(f.stream, NULL, 0);
    fixture_close(&f);
}

static void test_copies(void **state)
{
    struct fixture f;
    fixture_open(&f, *state);
    const size_t step = f.device->alignment;
    void *a = allocate(&f, BYTES), *b = allocate(&f, BYTES);
    copy_in(&f, at(a, 0), 1, BYTES);
    copy_in(&f, at(b, 0), 2, BYTES);
    no_error(f.device->copy(f.stream, DEVICE_COPY_WITHIN, at(b, 2 * step), at(a, step), 100));
    no_error(f.device->copy(f.stream, DEVICE_COPY_WITHIN, at(b, 0), at(a, 0), 0));
    expect_pattern(&f, at(a, 0), 1, 0, BYTES);
    expect_pattern(&f, at(b, 0), 2, 0, 2 * step);
    expect_pattern(&f, at(b, 2 * step), 1, step, 100);
    /* Behind the 100 bytes, from the next aligned offset on, as before. */
    const size_t behind = 2 * step + (100 + step - 1) / step * step;
    expect_pattern(&f, at(b, behind), 2, behind, BYTES - behind);
    f.device->release(f.stream, a, BYTES);
    f.device->release(f.stream, b, BYTES);
    fixture_close(&f);
}

static void test_fill(void **state)
{
    struct fixture f;
    unsigned char bytes[256];
    fixture_open(&f, *state);
    const size_t step = f.device->alignment;
    void *memory = allocate(&f, 4 * step);
    no_error(f.device->fill(f.stream, at(memory, 0), 0xab, 4 * step));
    no_error(f.device->fill(f.stream, at(memory, step), 0x5a, 3));
    no_error(f.device->fill(f.stream, at(memory, 0), 0, 0));
    no_error(f.device->copy(f.stream, DEVICE_COPY_OUT, at(bytes, 0), at(memory, step), 8));
    for (size_t i = 0; i < 8 && !f.device->computes_nothing; i++)
        assert_int_equal(bytes[i], i < 3 ? 0x5a : 0xab);
    f.device->release(f.stream, memory, 4 * step);
    fixture_close(&f);
}

static void test_scalars(void **state)
{
    static const tssa_dtype types[] = {TSSA_BOOL,  TSSA_INT8,  TSSA_UINT8,  TSSA_INT16, TSSA_UINT16,
                                       TSSA_INT32, TSSA_INT64, TSSA_UINT32, TSSA_UINT64};
    struct fixture f;
    fixture_open(&f, *state);
    void *memory = allocate(&f, 2 * f.device->alignment);
    const struct device_place place = at(memory, f.device->alignment);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const int64_t wanted = types[i] == TSSA_BOOL ? 1 : (int64_t)(100 + i);
        int64_t scalar = 0, value = -1;
        dtype_store_int64(types[i], &scalar, wanted);
        no_error(f.device->copy(f.stream, DEVICE_COPY_IN, place, at(&scalar, 0),
                                tssa_dtype_size(types[i])));
        no_error(f.device->read_scalar(f.stream, place, types[i], &value));
        assert_int_equal(value, f.device->computes_nothing ? 1 : wanted);
    }
    f.device->release(f.stream, memory, 2 * f.device->alignment);
    fixture_close(&f);
}

/*
 * Each allocation of the host fails once: what is asked for then is refused, and nothing is lost.
 */
static void test_out_of_memory(void **state)
{
    const struct device *device = *state;
    bool refused = true;
    for (long at_count = 0; refused; at_count++) {
        struct test_alloc alloc;
        struct device_context context;
        struct device_stream *stream = NULL;
        void *memory = NULL;
        test_alloc_init(&alloc);
        alloc.fail_at = at_count;
        device_context_open(&context, device, &alloc.allocator, NULL);
        tssa_status *status = device_context_connect(&context);
        if (tssa_status_code(status) == TSSA_UNSUPPORTED) {
            tssa_status_free(status);
            device_context_close(&context);
            skip();
        }
        if (!status)
            status = device->stream_open(&context, &stream);
        refused = status != NULL;
        if (status)
            assert_int_equal(tssa_status_code(status), TSSA_OUT_OF_MEMORY);
        else
            memory = device->allocate(stream, 1000);
        if (!status && !memory) {
            refused = true;
            memory = device->allocate(stream, 1000); /* it goes on */
            assert_non_null(memory);
        }
        tssa_status_free(status);
        if (stream)
            device->release(stream, memory, 1000);
        device->stream_close(stream);
        device_context_close(&context);
        assert_int_equal(alloc.live, 0);
        assert_true(at_count < 100);
    }
}

/* ---- Order ----------------------------------------------------------------------------------- */

/* One stream writes what another copies, and may write again when that is done. */
static void test_order(void **state)
{
    struct fixture f;
    struct device_stream *other;
    fixture_open(&f, *state);
    no_error(f.device->stream_open(&f.context, &other));
    void *from = allocate(&f, BYTES), *to = allocate(&f, BYTES);
    for (int round = 0; round < ROUNDS; round++) {
        struct device_event *written, *copied;
        copy_in(&f, at(from, 0), round, BYTES);
        no_error(f.device->event_record(f.stream, &written));
        no_error(f.device->event_await(other, written));
        no_error(f.device->copy(other, DEVICE_COPY_WITHIN, at(to, 0), at(from, 0), BYTES));
        no_error(f.device->event_record(other, &copied));
        no_error(f.device->event_await(f.stream, copied));
        no_error(f.device->fill(f.stream, at(from, 0), 0, BYTES));
        expect_pattern(&f, at(to, 0), round, 0, BYTES);
        f.device->event_free(f.stream, written);
        f.device->event_free(other, copied);
    }
    no_error(f.device->stream_wait(other));
    f.device->release(f.stream, from, BYTES);
    f.device->release(f.stream, to, BYTES);
    f.device->stream_close(other);
    fixture_close(&f);
}

/* ---- Kernels --------------------------------------------------------------------------------- */

static const char *const program =
    "graph @g opset(\"\": 18) ir_version(8) (%x: f32[N], %n: i64[]) -> (%r, %all) {\n"
    "  %two = Constant() {value = f32[] 2}: f32[]\n"
    "  %y, %all = Loop@16(%n, _, %x) {\n"
    "    body(%i: i64[], %c: bool[], %v: f32[N]) {\n"
    "      %s = Mul@14(%v, %two)\n"
    "      return(%c, %s, %v)\n"
    "    }\n"
    "  }\n"
    "  %r = Sub@14(%y, %x)\n"
    "  return(%r, %all)\n"
    "}\n";

static tssa_status *run_program(struct fixture *f, const struct plan *plan, int64_t count,
                                struct value outputs[2])
{
    float x[5] = {1, 2, 3, 4, 5};
    int64_t trips = 3;
    struct run *run;
    struct value in = {.kind = TSSA_KIND_TENSOR,
                       .tensor = {.dtype = TSSA_FLOAT, .rank = 1, .dims = {count}, .data = x}},
                 n = {.kind = TSSA_KIND_TENSOR, .tensor = {.dtype = TSSA_INT64, .data = &trips}};
    const struct value *inputs[] = {&in, &n};
    memset(outputs, 0, 2 * sizeof *outputs);
    if (count < 0) /* no tensor at all */
        inputs[0] = NULL;
    TRY(run_create(plan, &f->alloc.allocator, NULL, false, &run));
    tssa_status *status = run_execute(run, inputs, outputs);
    run_free(run);
    return status;
}

static void test_kernels(void **state)
{
    struct fixture f;
    struct ir_graph *graph;
    struct plan *plan;
    struct value out[2];
    fixture_open(&f, *state);
    no_error(ir_parse(&f.alloc.allocator, program, strlen(program), &graph));
    no_error(ir_infer_graph(graph));
    no_error(plan_create(graph, &f.context, &plan));
    for (int64_t count = 5; count >= 0; count--) {
        no_error(run_program(&f, plan, count, out));
        assert_int_equal(tensor_count(&out[0].tensor), count);
        assert_int_equal(out[1].tensor.dims[0], 3);
        assert_int_equal(tensor_count(&out[1].tensor), 3 * count);
        for (int64_t i = 0; i < count && !f.device->computes_nothing; i++) {
            assert_true(((const float *)out[0].tensor.data)[i] == 7 * (float)(i + 1));
            assert_true(((const float *)out[1].tensor.data)[2 * count + i] == 4 * (float)(i + 1));
        }
        value_release(&out[0]);
        value_release(&out[1]);
    }
    /* An error leaves nothing behind. */
    tssa_status *status = run_program(&f, plan, -1, out);
    assert_int_equal(tssa_status_code(status), TSSA_INVALID_ARGUMENT);
    tssa_status_free(status);
    plan_free(plan);
    ir_graph_free(graph);
    fixture_close(&f);
}

/* Each allocation of a run fails once. */
static void test_runs_without_memory(void **state)
{
    struct fixture f;
    struct ir_graph *graph;
    struct plan *plan;
    fixture_open(&f, *state);
    no_error(ir_parse(&allocator_default, program, strlen(program), &graph));
    no_error(ir_infer_graph(graph));
    no_error(plan_create(graph, &f.context, &plan));
    const long live = f.alloc.live;
    bool failed = true;
    for (long i = 0; failed; i++) {
        struct value out[2];
        f.alloc.fail_at = f.alloc.count + i;
        tssa_status *status = run_program(&f, plan, 4, out);
        failed = status != NULL;
        if (failed)
            assert_int_equal(tssa_status_code(status), TSSA_OUT_OF_MEMORY);
        tssa_status_free(status);
        for (int k = 0; k < 2; k++)
            value_release(&out[k]);
        assert_int_equal(f.alloc.live, live);
    }
    f.alloc.fail_at = -1;
    plan_free(plan);
    ir_graph_free(graph);
    fixture_close(&f);
}

/* ---- The library ----------------------------------------------------------------------------- */

#define SIDE 3
#define CELLS (SIDE * SIDE)

static struct library_problem product_problem(void)
{
    struct library_problem problem;
    memset(&problem, 0, sizeof problem);
    problem.kind = LIBRARY_MATMUL;
    problem.dtype = TSSA_FLOAT;
    problem.threads = 1;
    problem.matmul = (struct matmul_problem){.batch = 1,
                                             .m = SIDE,
                                             .n = SIDE,
                                             .k = SIDE,
                                             .a_row = SIDE,
                                             .a_column = 1,
                                             .b_row = SIDE,
                                             .b_column = 1};
    return problem;
}

/* A product of matrices in the device's memory, where it has a library that takes it. */
static void test_library(void **state)
{
    const float a[CELLS] = {1, 2, 3, 4, 5, 6, 7, 8, 9}, b[CELLS] = {0, 1, 0, 0, 0, 1, 1, 0, 0};
    const float wanted[CELLS] = {3, 1, 2, 6, 4, 5, 9, 7, 8};
    const struct library_problem problem = product_problem();
    float result[CELLS] = {0};
    struct fixture f;
    fixture_open(&f, *state);
    const struct device_library *library = f.device->library;
    struct library_primitive *made = library ? library->make(&f.context, &problem) : NULL;
    assert_true(!library || dtype_in(library->types, TSSA_FLOAT));
    if (made) {
        void *memory[SIDE], *scratch = allocate(&f, made->scratch_bytes);
        for (int i = 0; i < SIDE; i++)
            memory[i] = allocate(&f, sizeof a);
        const struct library_call call = {.operands = {at(memory[0], 0), at(memory[1], 0)},
                                          .result = at(memory[2], 0),
                                          .scratch = at(scratch, 0)};
        no_error(
            f.device->copy(f.stream, DEVICE_COPY_IN, at(memory[0], 0), at((void *)a, 0), sizeof a));
        no_error(
            f.device->copy(f.stream, DEVICE_COPY_IN, at(memory[1], 0), at((void *)b, 0), sizeof b));
        assert_true(made->table->run(made, f.stream, &call));
        no_error(f.device->copy(f.stream, DEVICE_COPY_OUT, at(result, 0), at(memory[2], 0),
                                sizeof result));
        for (int i = 0; i < CELLS && !f.device->computes_nothing; i++)
            assert_true(result[i] == wanted[i]);
        for (int i = 0; i < SIDE; i++)
            f.device->release(f.stream, memory[i], sizeof a);
        f.device->release(f.stream, scratch, made->scratch_bytes);
        made->table->release(made);
    }
    fixture_close(&f);
}

/* ---------------------------------------------------------------------------------------------- */

#define TEST(function)                                                                             \
    {                                                                                              \
#function, function, NULL, NULL, NULL                                                      \
    }

int main(void)
{
    int failed = 0;
    /* Beside the tests' folder; see base/plugin.h. */
    setenv("TSSA_PLUGIN_DIR", TSSA_BUILD_DIR, 0);
    for (size_t i = 0; device_at(i); i++) {
        struct CMUnitTest tests[] = {TEST(test_allocation), TEST(test_copies),
                                     TEST(test_fill),       TEST(test_scalars),
                                     TEST(test_order),      TEST(test_out_of_memory),
                                     TEST(test_kernels),    TEST(test_runs_without_memory),
                                     TEST(test_library)};
        for (size_t t = 0; t < sizeof tests / sizeof *tests; t++)
            tests[t].initial_state = (void *)(uintptr_t)device_at(i);
        failed += _cmocka_run_group_tests(device_at(i)->name, tests, sizeof tests / sizeof *tests,
                                          NULL, NULL);
    }
    return failed;
}
