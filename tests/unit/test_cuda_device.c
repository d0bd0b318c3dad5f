/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device `cuda` on a fake driver (tests/cuda): what is there, and what is said where it is not;
 * launches, of threads that meet, too; and each call of the driver and of NVRTC failing once.
 */
/* ctest-timeout: 600 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api/session.h"
#include "base/team.h"
#include "common/fake_cuda.h"
#include "common/model_run.h"
#include "common/no_error.h"
#include "common/process.h"
#include "common/test_alloc.h"
#include "common/test_device.h"
#include "device/device.h"
#include "device/grids/launcher.h"

static const struct device *cuda(void)
{
    return device_find("cuda");
}

/* ---- What is there --------------------------------------------------------------------------- */

static void expect_number_refused(uint32_t number, const char *message)
{
    struct test_alloc alloc;
    struct device_context context;
    test_alloc_init(&alloc);
    device_context_open(&context, cuda(), &alloc.allocator, NULL);
    context.number = number;
    tssa_status *status = device_context_connect(&context);
    assert_int_equal(tssa_status_code(status), TSSA_UNSUPPORTED);
    assert_string_equal(tssa_status_message(status), message);
    tssa_status_free(status);
    device_context_close(&context);
    assert_int_equal(alloc.live, 0);
    assert_int_equal(fake_cuda_alive(), 0);
}

static void expect_refused(const char *message)
{
    expect_number_refused(0, message);
}

/* As the environment says: NAME=VALUE. */
static void expect_refused_with(const char *name, const char *value, const char *message)
{
    setenv(name, value, 1);
    expect_refused(message);
    unsetenv(name);
}

static void test_no_driver(void **state)
{
    (void)state;
    setenv("TSSA_CUDA_LIBRARIES", "/nowhere", 1);
    expect_refused("no CUDA driver: libcuda.so.1 does not open in /nowhere, which "
                   "TSSA_CUDA_LIBRARIES names");
    fake_cuda_use(true);
}

static void test_no_card(void **state)
{
    (void)state;
    expect_refused_with("FAKE_CUDA_FAIL", "cuInit:100",
                        "no CUDA device: cuInit: CUDA_ERROR_FAKE, error 100 (made up)");
    expect_refused_with("FAKE_CUDA_DEVICES", "0", "no CUDA device: the driver finds none");
    expect_refused_with("FAKE_CUDA_VERSION", "11080",
                        "the CUDA driver is too old: it is for CUDA 11.8, and 12.0 is needed");
}

static void test_too_few_cards(void **state)
{
    (void)state;
    expect_number_refused(1, "there is no cuda:1: the driver finds 1, of which cuda:0 is the last");
    setenv("FAKE_CUDA_DEVICES", "3", 1);
    expect_number_refused(9, "there is no cuda:9: the driver finds 3, of which cuda:2 is the last");
    unsetenv("FAKE_CUDA_DEVICES");
}

/* One line, and a status of its own. */
static void expect_told(const char *device, const char *line)
{
    static const struct process_limits limits = {.seconds = 60};
    struct process_result result =
        process_run((const char *const[]){TSSA_BUILD_DIR "/tssa-run",
                                          TSSA_SOURCE_DIR "/models/get_started_small/model.onnx",
                                          "--device", device, "-q", NULL},
                    NULL, NULL, &limits);
    process_drop_announcements(&result);
    assert_int_equal(result.status, 4);
    assert_string_equal(result.out, "");
    if (!strstr(result.err, line))
        fail_msg("%s", result.err);
    assert_ptr_equal(strchr(result.err, '\n') + 1, result.err + strlen(result.err));
    process_result_free(&result);
}

static void test_tool_tells(void **state)
{
    (void)state;
    expect_told("cuda:7",
                ": there is no cuda:7: the driver finds 1, of which cuda:0 is the last\n");
    expect_told("cpu:1", ": there is no device \"cpu:1\": this build has cpu, null, emulated");
    setenv("TSSA_CUDA_LIBRARIES", "/nowhere", 1);
    expect_told("cuda", ": no CUDA driver: libcuda.so.1 does not open in /nowhere, which "
                        "TSSA_CUDA_LIBRARIES names\n");
    fake_cuda_use(true);
}

/* ---- What it does ---------------------------------------------------------------------------- */

/* In the form in which grids are printed: y = 2 x, by all threads, and sums of rows of x; status is
 * what thread 37 of block 1 writes. */
static const char kernels[] =
    "PART k0_0(\n"
    "    OPERAND a0, int64_t a0_count,\n"
    "    RESULT a1, int64_t a1_count,\n"
    "    int64_t rows, int64_t n,\n"
    "    int64_t block, int64_t blocks)\n"
    "{\n"
    "    EACH_THREAD(i, n)\n"
    "    {\n"
    "        const float v0 = LOAD(float, a0, i * 4);\n"
    "        const float v1 = f32_ADD(v0, v0);\n"
    "        STORE(float, a1, i * 4, v1);\n"
    "    }\n"
    "}\n"
    "PART k0_1(\n"
    "    OPERAND a0, int64_t a0_count,\n"
    "    RESULT a1, int64_t a1_count,\n"
    "    int64_t rows, int64_t n,\n"
    "    int64_t block, int64_t blocks)\n"
    "{\n"
    "    EACH_WARP_OF_PART(r, rows)\n"
    "    {\n"
    "        LANES(float, o0);\n"
    "        EACH_LANE\n"
    "        {\n"
    "            float s0 = 0.0f;\n"
    "            for (int64_t i = LANE; i < n; i += LANE_COUNT)\n"
    "                s0 = f32_ADD(s0, LOAD(float, a0, (r * n + i) * 4));\n"
    "            OF_LANE(o0) = s0;\n"
    "        }\n"
    "        REDUCE_LANES(float, v0, f32_ADD, o0);\n"
    "        FIRST_LANE\n"
    "        {\n"
    "            STORE(float, a1, r * 4, v0);\n"
    "        }\n"
    "    }\n"
    "}\n"
    "KERNEL k0(\n"
    "    OPERAND p0_a0, int64_t p0_a0_count,\n"
    "    RESULT p0_a1, int64_t p0_a1_count,\n"
    "    int64_t p0_rows, int64_t p0_n,\n"
    "    OPERAND p1_a0, int64_t p1_a0_count,\n"
    "    RESULT p1_a1, int64_t p1_a1_count,\n"
    "    int64_t p1_rows, int64_t p1_n, int64_t end0, int64_t end1)\n"
    "{\n"
    "    if (IN_PART(0, end0))\n"
    "        k0_0(\n"
    "    p0_a0, p0_a0_count,\n"
    "    p0_a1, p0_a1_count,\n"
    "    p0_rows, p0_n, OF_PART(0, end0));\n"
    "    if (IN_PART(end0, end1))\n"
    "        k0_1(\n"
    "    p1_a0, p1_a0_count,\n"
    "    p1_a1, p1_a1_count,\n"
    "    p1_rows, p1_n, OF_PART(end0, end1));\n"
    "}\n";

enum { ROWS = 11, LENGTH = 70, COUNT = ROWS * LENGTH, DOUBLED_BYTES = 4 * COUNT };

/* What the calls give, all of which is given back whatever fails. */
struct scene {
    struct test_alloc alloc;
    struct device_context context;
    struct device_stream *stream, *other;
    struct device_event *event;
    void *x, *results; /* of both parts, one behind the other */
    void *function, *program;
};

static tssa_status *open_scene(struct scene *s)
{
    TRY(device_context_connect(&s->context));
    TRY(cuda()->stream_open(&s->context, &s->stream));
    TRY(cuda()->stream_open(&s->context, &s->other));
    s->x = cuda()->allocate(s->stream, 4 * COUNT);
    TRY_ALLOC(s->x);
    s->results = cuda()->allocate(s->stream, DOUBLED_BYTES + 4 * ROWS);
    TRY_ALLOC(s->results);
    return NULL;
}

static void close_scene(struct scene *s)
{
    if (s->event)
        cuda()->event_free(s->other, s->event);
    if (s->stream) {
        cuda()->release(s->stream, s->x, 4 * COUNT);
        cuda()->release(s->stream, s->results, DOUBLED_BYTES + 4 * ROWS);
    }
    cuda()->stream_close(s->other);
    cuda()->stream_close(s->stream);
    if (s->program)
        cuda()->launcher->release(&s->context, s->program, 1, &s->function);
    device_context_close(&s->context);
}

static tssa_status *build_scene(struct scene *s, const char *functions)
{
    struct text text;
    text_init(&text, &allocator_default);
    clike_print_prelude(CLIKE_CUDA, DTYPE_BIT(TSSA_FLOAT), &text);
    text_puts(&text, functions);
    tssa_status *status = cuda()->launcher->build(&s->context, text_string(&text), 1, &s->function,
                                                  &s->program, NULL);
    text_free(&text);
    return status;
}

static struct launch_param memory(void *memory, size_t offset)
{
    return (struct launch_param){.is_memory = true, .place = {memory, offset}};
}

static struct launch_param number(int64_t number)
{
    return (struct launch_param){.number = number};
}

/* By 2 blocks and 3, of 5 warps each. */
static tssa_status *launch_scene(struct scene *s)
{
    const struct launch_param params[] = {
        memory(s->x, 0), number(COUNT), memory(s->results, 0),
        number(COUNT),   number(1),     number(COUNT),
        memory(s->x, 0), number(COUNT), memory(s->results, DOUBLED_BYTES),
        number(ROWS),    number(ROWS),  number(LENGTH),
        number(2),       number(5)};
    const struct launch launch = {.function = s->function,
                                  .blocks = 5,
                                  .height = 5,
                                  .n_params = sizeof params / sizeof *params,
                                  .params = params};
    return cuda()->launcher->launch(s->stream, &launch);
}

/* The other stream fills what the first one writes then, and it has the numbers 0, 1, ... */
static tssa_status *run_scene(struct scene *s, float results[COUNT + ROWS])
{
    float numbers[COUNT];
    for (int i = 0; i < COUNT; i++)
        numbers[i] = (float)i;
    TRY(open_scene(s));
    TRY(build_scene(s, kernels));
    TRY(cuda()->fill(s->other, (struct device_place){s->results, 0}, 0, DOUBLED_BYTES + 4 * ROWS));
    TRY(cuda()->event_record(s->other, &s->event));
    TRY(cuda()->copy(s->stream, DEVICE_COPY_IN, (struct device_place){s->x, 0},
                     (struct device_place){numbers, 0}, sizeof numbers));
    TRY(cuda()->event_await(s->stream, s->event));
    TRY(launch_scene(s));
    TRY(cuda()->copy(s->stream, DEVICE_COPY_OUT, (struct device_place){results, 0},
                     (struct device_place){s->results, 0}, DOUBLED_BYTES + 4 * ROWS));
    int64_t bits;
    TRY(cuda()->read_scalar(s->stream, (struct device_place){s->results, 4}, TSSA_INT32, &bits));
    assert_int_equal(bits, 0x40000000); /* 2.0f */
    return cuda()->stream_wait(s->other);
}

static void begin_scene(struct scene *s)
{
    *s = (struct scene){0};
    test_alloc_init(&s->alloc);
    device_context_open(&s->context, cuda(), &s->alloc.allocator, NULL);
    s->context.host = test_device();
}

/* After which nothing is left. */
static void end_scene(struct scene *s)
{
    close_scene(s);
    assert_int_equal(s->alloc.live, 0);
    assert_int_equal(fake_cuda_alive(), 0);
}

static tssa_status *play(float results[COUNT + ROWS])
{
    struct scene scene;
    begin_scene(&scene);
    tssa_status *status = run_scene(&scene, results);
    end_scene(&scene);
    return status;
}

static void expect_results(void)
{
    float results[COUNT + ROWS];
    no_error(play(results));
    for (int i = 0; i < COUNT; i++)
        assert_true(results[i] == (float)(2 * i));
    for (int r = 0; r < ROWS; r++)
        assert_true(results[COUNT + r] ==
                    (float)(LENGTH * (r * LENGTH) + LENGTH * (LENGTH - 1) / 2));
}

static void test_launches(void **state)
{
    (void)state;
    static const char *const orders[] = {"0", "1", "2"};
    for (int i = 0; i < 3; i++) {
        setenv("FAKE_CUDA_ORDER", orders[i], 1);
        expect_results();
    }
    unsetenv("FAKE_CUDA_ORDER");
}

/* ---- Threads that meet ----------------------------------------------------------------------- */

enum { MEETING_WARPS = 3, MEETING_BLOCKS = 2, MEETING = 32 * MEETING_WARPS };

/* A kernel with a result of an int64 for each thread, by blocks that share memory, in an order. */
static tssa_status *meet(struct scene *s, const char *kernel, int64_t *results)
{
    const size_t size = sizeof *results * MEETING_BLOCKS * MEETING;
    TRY(open_scene(s));
    TRY(build_scene(s, kernel));
    const struct launch_param params[] = {memory(s->results, 0)};
    const struct launch launch = {.function = s->function,
                                  .blocks = MEETING_BLOCKS,
                                  .height = MEETING_WARPS,
                                  .n_params = 1,
                                  .params = params};
    TRY(cuda()->launcher->launch(s->stream, &launch));
    return cuda()->copy(s->stream, DEVICE_COPY_OUT, (struct device_place){results, 0},
                        (struct device_place){s->results, 0}, size);
}

#define BEGIN_KERNEL                                                                               \
    "KERNEL k0(GIVEN(RESULT, y))\n"                                                                \
    "{\n"                                                                                          \
    "    const int own = WARP * LANE_COUNT + LANE;\n"                                              \
    "    SHARED(int64_t, all[96]);\n"
#define END_KERNEL(value)                                                                          \
    "    STORE(int64_t, PLACE_OF(y), (BLOCK * 96 + own) * (int64_t)sizeof(int64_t), " value ");\n" \
    "}\n"

/* What all threads have written before a barrier is there behind it, in each order; what nobody has
 * written are no zeros, and not the block's before. */
static void test_threads_meet(void **state)
{
    static const char turned[] = BEGIN_KERNEL "    int64_t sum = 0;\n"
                                              "    for (int i = 0; i < 3; i++) {\n"
                                              "        sum += own == 5 && i == 0 ? all[95] : 0;\n"
                                              "        MEET;\n"
                                              "        all[own] = BLOCK * 1000 + own + i;\n"
                                              "        MEET;\n"
                                              "        sum += all[95 - own];\n"
                                              "    }\n" END_KERNEL("sum");
    static const char *const orders[] = {"0", "1", "2"};
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct scene scene;
        int64_t results[MEETING_BLOCKS * MEETING];
        setenv("FAKE_CUDA_ORDER", orders[i], 1);
        begin_scene(&scene);
        no_error(meet(&scene, turned, results));
        for (int k = 0; k < MEETING_BLOCKS * MEETING; k++)
            assert_int_equal(results[k], 3 * (k / MEETING * 1000 + MEETING - 1 - k % MEETING) + 3 -
                                             (k % MEETING == 5));
        end_scene(&scene);
    }
    unsetenv("FAKE_CUDA_ORDER");
}

/* Without a barrier, the order tells. */
static void test_threads_do_not_meet(void **state)
{
    static const char kernel[] = BEGIN_KERNEL "    all[own] = own;\n" END_KERNEL("all[95 - own]");
    static const char *const orders[] = {"0", "1"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        struct scene scene;
        int64_t results[MEETING_BLOCKS * MEETING];
        setenv("FAKE_CUDA_ORDER", orders[i], 1);
        begin_scene(&scene);
        no_error(meet(&scene, kernel, results));
        for (int k = 0; k < MEETING_BLOCKS * MEETING; k++) {
            const int own = k % MEETING, other = MEETING - 1 - own;
            assert_int_equal(results[k], (other < own) == (i == 0) ? other : -1);
        }
        end_scene(&scene);
    }
    unsetenv("FAKE_CUDA_ORDER");
}

/* Some have ended, wait elsewhere, or have not come so far; the next launch is right again. */
static void test_threads_miss_each_other(void **state)
{
    static const char *const missing[] = {BEGIN_KERNEL "    all[own] = 0;\n"
                                                       "    if (own == 40)\n"
                                                       "        return;\n"
                                                       "    MEET;\n" END_KERNEL("own"),
                                          BEGIN_KERNEL "    all[own] = 0;\n"
                                                       "    if (LANE < 16)\n"
                                                       "        MEET;\n"
                                                       "    else\n"
                                                       "        MEET;\n" END_KERNEL("own"),
                                          BEGIN_KERNEL
                                          "    all[own] = 0;\n"
                                          "    for (int i = 0; i < 3 + (WARP == 2); i++)\n"
                                          "        MEET;\n" END_KERNEL("own")};
    (void)state;
    for (size_t i = 0; i < sizeof missing / sizeof *missing; i++) {
        struct scene scene;
        int64_t results[MEETING_BLOCKS * MEETING];
        begin_scene(&scene);
        tssa_status *status = meet(&scene, missing[i], results);
        assert_non_null(strstr(tssa_status_message(status), "error 719 (made up)"));
        tssa_status_free(status);
        end_scene(&scene);
    }
    test_threads_meet(NULL);
}

/* ---- Ranges ---------------------------------------------------------------------------------- */

/* Of a run of a model with a loop; how many its profile has. */
static unsigned long count_ranges(int profile, unsigned long *in_profile)
{
    static const char path[] = TSSA_SOURCE_DIR "/models/lstm_nested_small/model.onnx";
    const tssa_session_options options = {
        .struct_size = sizeof options, .device = "cuda", .profile = profile};
    struct model_run run = {0};
    const unsigned long before = fake_cuda_ranges();
    *in_profile = 0;
    no_error(model_run_open(&run, path, 0));
    no_error(model_run_read_inputs(&run, path));
    no_error(tssa_session_create(run.model, &options, &run.session));
    no_error(model_run_execute(&run));
    const struct generation *now = run.session->now;
    for (uint32_t i = 0; profile && i < now->plan->n_steps; i++)
        *in_profile += now->profile[i].count;
    model_run_close(&run);
    assert_int_equal(fake_cuda_range_depth(), 0);
    return fake_cuda_ranges() - before;
}

static void test_ranges(void **state)
{
    unsigned long in_profile;
    (void)state;
    assert_int_equal(count_ranges(0, &in_profile), 0);
    const unsigned long ranges = count_ranges(1, &in_profile);
    assert_true(ranges > 10);
    assert_int_equal(ranges, in_profile);
    assert_non_null(strchr(fake_cuda_latest_range(), '('));
    setenv("TSSA_CUDA_LIBRARIES", TSSA_BUILD_DIR "/tests/fake_cuda_old", 1);
    const unsigned long before = fake_cuda_ranges();
    count_ranges(1, &in_profile);
    assert_int_equal(fake_cuda_ranges(), before); /* they are not there */
    fake_cuda_use(true);
}

/* Ends with a step that fails. */
static void test_ranges_end(void **state)
{
    static const char path[] = TSSA_SOURCE_DIR "/models/get_started_small/model.onnx";
    const tssa_session_options options = {
        .struct_size = sizeof options, .device = "cuda", .profile = 1};
    struct model_run run = {0};
    (void)state;
    no_error(model_run_open(&run, path, 0));
    no_error(model_run_read_inputs(&run, path));
    no_error(tssa_session_create(run.model, &options, &run.session));
    setenv("FAKE_CUDA_FAIL", "cuLaunchKernel:719", 1);
    const unsigned long before = fake_cuda_ranges();
    tssa_status *status = model_run_execute(&run);
    unsetenv("FAKE_CUDA_FAIL");
    assert_non_null(status);
    tssa_status_free(status);
    assert_true(fake_cuda_ranges() > before);
    assert_int_equal(fake_cuda_range_depth(), 0);
    model_run_close(&run);
}

/* ---- Copies by way of locked memory ---------------------------------------------------------- */

enum { STAGED = 4 << 20, MORE = 9 * (1 << 20) + 4321 };

static unsigned char byte_at(size_t i, int turn)
{
    return (unsigned char)(i * 31 + (i >> 12) + (size_t)turn);
}

/* There and back, of memory that the host changes as soon as it may; the other half is not touched.
 */
static tssa_status *go_and_come(struct scene *s, unsigned char *bytes, size_t size, int turn)
{
    const struct device_place here = {bytes, 0}, there = {s->x, 256};
    for (size_t i = 0; i < size; i++)
        bytes[i] = byte_at(i, turn);
    TRY(cuda()->copy(s->stream, DEVICE_COPY_IN, there, here, size));
    memset(bytes, 0, size);
    return cuda()->copy(s->stream, DEVICE_COPY_OUT, here, there, size);
}

static tssa_status *stage(struct scene *s, unsigned char *bytes, size_t size)
{
    TRY(device_context_connect(&s->context));
    TRY(cuda()->stream_open(&s->context, &s->stream));
    s->x = cuda()->allocate(s->stream, MORE + 512);
    TRY_ALLOC(s->x);
    for (int turn = 0; turn < 2; turn++) {
        TRY(go_and_come(s, bytes, size, turn));
        for (size_t i = 0; i < size; i++)
            if (bytes[i] != byte_at(i, turn))
                fail_msg("byte %zu of %zu is wrong", i, size);
    }
    return NULL;
}

static tssa_status *play_staged(const struct team *team, unsigned char *bytes, size_t size,
                                long *alive)
{
    struct scene scene;
    begin_scene(&scene);
    scene.context.team = team;
    tssa_status *status = stage(&scene, bytes, size);
    *alive = fake_cuda_alive();
    end_scene(&scene);
    return status;
}

/* Nothing is held for copies that are small, or that one thread would make. */
static void test_staged(void **state)
{
    static const size_t sizes[] = {STAGED - 1, STAGED, STAGED + 1, MORE};
    unsigned char *bytes = malloc(MORE);
    struct team two, one;
    long plain, alive;
    (void)state;
    assert_non_null(bytes);
    team_open(&two, 2);
    team_open(&one, 1);
    no_error(play_staged(&one, bytes, MORE, &plain));
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        no_error(play_staged(&two, bytes, sizes[i], &alive));
        assert_int_equal(alive - plain, two.parallel_for && sizes[i] >= STAGED ? 1 + 4 : 0);
    }
    free(bytes);
}

/* An error, or the bytes, without that memory if need be. */
static void test_each_staged_call_fails_once(void **state)
{
    unsigned char *bytes = malloc(MORE);
    struct team two;
    long alive;
    unsigned told = 0;
    (void)state;
    assert_non_null(bytes);
    team_open(&two, 2);
    const unsigned long before = fake_cuda_calls();
    no_error(play_staged(&two, bytes, MORE, &alive));
    const unsigned long calls = fake_cuda_calls() - before;
    for (unsigned long i = 0; i < calls; i++) {
        fake_cuda_fail_at(fake_cuda_calls() + i, 999);
        tssa_status *status = play_staged(&two, bytes, MORE, &alive);
        told += status != NULL;
        tssa_status_free(status);
    }
    fake_cuda_fail_at(-1ul, 0);
    assert_true(told > calls / 2);
    no_error(play_staged(&two, bytes, MORE, &alive));
    free(bytes);
}

/* ---- Failures -------------------------------------------------------------------------------- */

static void test_each_call_fails_once(void **state)
{
    (void)state;
    const unsigned long before = fake_cuda_calls();
    expect_results();
    const unsigned long calls = fake_cuda_calls() - before;
    unsigned told = 0;
    for (unsigned long i = 0; i < calls; i++) {
        float results[COUNT + ROWS];
        fake_cuda_fail_at(fake_cuda_calls() + i, 999);
        tssa_status *status = play(results);
        if (status && tssa_status_code(status) != TSSA_OUT_OF_MEMORY)
            assert_true(strstr(tssa_status_message(status), "999 (made up)") ||
                        strstr(tssa_status_message(status), "nvrtc"));
        told += status != NULL;
        tssa_status_free(status);
    }
    fake_cuda_fail_at(-1ul, 0);
    assert_true(told > calls / 2); /* but for what is given back */
    expect_results();
}

/* A kernel that fails fails what waits for it. */
static void test_kernels_fail_late(void **state)
{
    (void)state;
    float results[COUNT + ROWS];
    setenv("FAKE_CUDA_FAIL", "kernel:719", 1);
    tssa_status *status = play(results);
    assert_int_equal(tssa_status_code(status), TSSA_RUNTIME);
    assert_string_equal(tssa_status_message(status),
                        "cuStreamSynchronize: CUDA_ERROR_FAKE, error 719 (made up)");
    tssa_status_free(status);
    unsetenv("FAKE_CUDA_FAIL");
    expect_results();
}

/* Texts that NVRTC, or the driver, does not take. */
static void test_programs_fail(void **state)
{
    (void)state;
    float results[COUNT + ROWS];
    setenv("FAKE_CUDA_FAIL", "nvrtcCompileProgram:6", 1);
    tssa_status *status = play(results);
    assert_int_equal(tssa_status_code(status), TSSA_RUNTIME);
    assert_non_null(strstr(tssa_status_message(status), "error: made up: nvrtcCompileProgram"));
    tssa_status_free(status);
    setenv("FAKE_CUDA_FAIL", "cuModuleLoadData:200", 1);
    status = play(results);
    assert_int_equal(tssa_status_code(status), TSSA_RUNTIME);
    assert_string_equal(tssa_status_message(status),
                        "a driver for CUDA 13.0 does not take what NVRTC makes: "
                        "cuModuleLoadData: CUDA_ERROR_FAKE, error 200 (made up)");
    tssa_status_free(status);
    unsetenv("FAKE_CUDA_FAIL");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_driver),
        cmocka_unit_test(test_no_card),
        cmocka_unit_test(test_too_few_cards),
        cmocka_unit_test(test_tool_tells),
        cmocka_unit_test(test_launches),
        cmocka_unit_test(test_threads_meet),
        cmocka_unit_test(test_threads_do_not_meet),
        cmocka_unit_test(test_threads_miss_each_other),
        cmocka_unit_test(test_staged),
        cmocka_unit_test(test_each_staged_call_fails_once),
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_ranges_end),
        cmocka_unit_test(test_each_call_fails_once),
        cmocka_unit_test(test_kernels_fail_late),
        cmocka_unit_test(test_programs_fail),
    };
    fake_cuda_use(true);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
