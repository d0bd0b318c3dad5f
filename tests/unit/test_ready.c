/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is made before a plan's first run: where shapes are known, that run makes nothing more, and
 * computes the same bits; where they are not, nothing is kept but packed weights; and no threads
 * are started.
 */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "common/model_text.h"
#include "common/no_error.h"
#include "common/test_alloc.h"
#include "device/cpu/provider.h"
#include "device/device.h"
#include "ir/infer.h"
#include "ir/parser.h"
#include "runtime/executor.h"
#include "runtime/ready.h"

#define ENDLESS UINT64_MAX
#define MOST_PARAMETERS 4
#define SIDE 12 /* of axes that graphs leave open, if nothing else is said */

/* ---- Programs -------------------------------------------------------------------------------- */

struct program {
    struct team team;
    struct device_context context;
    struct ir_graph *graph;
    struct plan *plan;
    int64_t side; /* of axes that the graph leaves open */
};

/* The constant that `$f32[2, 3]$` stands for. */
static void write_constant(struct text *text, const char *type, int length)
{
    int64_t count = 1;
    for (const char *at = strchr(type, '['); *at != ']';) {
        char *end;
        at++;
        const long dim = strtol(at, &end, 10);
        count *= end == at ? 1 : dim;
        at = end;
    }
    text_printf(text, "Constant() {value = %.*s [", length, type);
    for (int64_t i = 0; i < count; i++)
        text_printf(text, "%s%d", i ? ", " : "", (int)(i * 7 % 5));
    text_printf(text, "]}");
}

static void write_program(struct text *text, const char *program)
{
    for (const char *at = program; *at; at++) {
        const char *end = *at == '$' ? strchr(at + 1, '$') : NULL;
        if (!end) {
            text_printf(text, "%c", *at);
            continue;
        }
        write_constant(text, at + 1, (int)(end - at - 1));
        at = end;
    }
}

static tssa_status *program_open(struct program *p, const tssa_allocator *allocator, int threads,
                                 const char *program)
{
    struct text text;
    memset(p, 0, sizeof *p);
    p->side = SIDE;
    team_open(&p->team, threads);
    device_context_open(&p->context, device_find(NULL), allocator, &p->team);
    text_init(&text, &allocator_default);
    write_program(&text, program);
    tssa_status *status = ir_parse(allocator, text_string(&text), text.size, &p->graph);
    text_free(&text);
    if (!status)
        status = ir_infer_graph(p->graph);
    return status ? status : plan_create(p->graph, &p->context, &p->plan);
}

static void program_close(struct program *p)
{
    plan_free(p->plan);
    ir_graph_free(p->graph);
    device_context_close(&p->context);
}

static uint64_t primitives(const struct program *p)
{
    return p->plan->tally.primitives;
}

static struct value operand_of(const struct ir_type *type, int64_t side)
{
    struct value value = {.kind = TSSA_KIND_TENSOR};
    struct tensor *tensor = &value.tensor;
    int64_t dims[TSSA_MAX_RANK];
    for (int i = 0; i < type->rank; i++)
        if (!dim_is_const(type->dims[i], &dims[i]))
            dims[i] = side;
    no_error(tensor_create(&allocator_default, type->dtype, type->rank, dims, tensor));
    const size_t size = tssa_dtype_size(tensor->dtype), n = tensor_count(tensor);
    for (size_t i = 0; i < n; i++)
        dtype_store_int64(tensor->dtype, (char *)tensor->data + i * size, (int64_t)(i + 3) % 7);
    return value;
}

static tssa_status *run_program(struct program *p, const tssa_allocator *allocator, struct value *y)
{
    const struct ir_block *body = p->graph->body;
    struct value operands[MOST_PARAMETERS];
    const struct value *inputs[MOST_PARAMETERS];
    struct run *run;
    TRY(run_create(p->plan, allocator, &p->team, false, &run));
    for (uint32_t i = 0; i < body->n_params; i++) {
        operands[i] = operand_of(body->params[i]->type, p->side);
        inputs[i] = &operands[i];
    }
    tssa_status *status = run_execute(run, inputs, y);
    for (uint32_t i = 0; i < body->n_params; i++)
        value_release(&operands[i]);
    run_free(run);
    return status;
}

/* ---- Known shapes ---------------------------------------------------------------------------- */

#define GRAPH(parameters, ops)                                                                     \
    "graph @g opset(\"\": 21) ir_version(8) (" parameters ") -> (%y) {\n" ops "return(%y)\n}\n"

#define IMAGE "%x: f32[1, 16, 12, 12]"
#define CONV "Conv@11(%x, %w) {pads = [1, 1, 1, 1]}\n"
#define SCALES                                                                                     \
    "%s = Constant() {value = f32[] 0.5}\n%n = Constant() {value = u8[] 3}\n"                      \
    "%z = Constant() {value = i8[] 0}\n"

static const struct {
    const char *text;
    unsigned made;
} known[] = {
    {GRAPH(IMAGE, "%w = $f32[32, 16, 3, 3]$\n%y = " CONV), 1},
    {GRAPH(IMAGE ", %w: f32[32, 16, 3, 3]", "%y = " CONV), 1},
    {GRAPH("%x: f16[1, 16, 12, 12]", "%w = $f16[32, 16, 3, 3]$\n%y = " CONV), 1},
    {GRAPH(IMAGE, "%w = $f32[32, 16, 3, 3]$\n"
                  "%y = convolve(%x, %w, _, _) {pads = [1, 1, 1, 1], y_last = 1}\n"),
     1},
    {GRAPH("%x: f32[1, 16, 9, 9]", "%w = $f32[16, 6, 3, 3]$\n%y = ConvTranspose@11(%x, %w)\n"), 1},
    {GRAPH("%x: f32[48, 64]", "%w = $f32[64, 32]$\n%y = MatMul@13(%x, %w)\n"), 1},
    {GRAPH("%x: f16[48, 64]", "%w = $f16[64, 32]$\n%y = MatMul@13(%x, %w)\n"), 1},
    {GRAPH("%x: f32[5, 48, 64], %w: f32[5, 64, 32]", "%y = MatMul@13(%x, %w)\n"), 1},
    {GRAPH("%x: f32[3, 192, 192], %w: f32[3, 192, 192]", "%y = MatMul@13(%x, %w)\n"), 1},
    {GRAPH("%x: f32[64, 48]",
           "%w = $f32[32, 64]$\n%y = Gemm@13(%x, %w) {transA = 1, transB = 1}\n"),
     1},
    {GRAPH("%x: u8[1, 16, 12, 12]", SCALES "%w = $i8[16, 16, 3, 3]$\n"
                                           "%y = QLinearConv@10(%x, %s, %n, %w, %s, %z, %s, %n)\n"),
     1},
    {GRAPH("%x: u8[1, 16, 12, 12]", "%w = $i8[16, 16, 3, 3]$\n%y = ConvInteger@10(%x, %w)\n"), 1},
    {GRAPH("%i: i64[], " IMAGE, "%w = $f32[16, 16, 3, 3]$\n"
                                "%y = Loop@16(%i, _, %x) {\n"
                                "body(%k: i64[], %c: bool[], %v: f32[1, 16, 12, 12]) {\n"
                                "%t = Conv@11(%v, %w) {pads = [1, 1, 1, 1]}\n"
                                "return(%c, %t)\n}\n}\n"),
     1},
    {GRAPH("%c: bool[], " IMAGE, "%w = $f32[32, 16, 3, 3]$\n"
                                 "%y = If@16(%c) {\nthen_branch() {\n%t = " CONV "return(%t)\n}\n"
                                 "else_branch() {\n%e = Neg@13(%x)\nreturn(%e)\n}\n}\n"),
     1},
};

static void release_both(struct value *values)
{
    value_release(&values[0]);
    value_release(&values[1]);
}

/* Its first run makes nothing, and computes what one does that makes all. */
static void expect_ready(int threads, const char *text, unsigned made)
{
    struct value y[2] = {{.kind = TSSA_KIND_NONE}, {.kind = TSSA_KIND_NONE}};
    for (int ready = 0; ready < 2; ready++) {
        struct program p;
        no_error(program_open(&p, &allocator_default, threads, text));
        if (ready)
            no_error(plan_get_ready(p.plan, ENDLESS));
        assert_int_equal(primitives(&p), ready ? made : 0);
        no_error(run_program(&p, &allocator_default, &y[ready]));
        assert_int_equal(primitives(&p), made);
        program_close(&p);
    }
    const size_t bytes = tensor_bytes(&y[0].tensor);
    assert_true(bytes > 0);
    assert_int_equal(tensor_bytes(&y[1].tensor), bytes);
    assert_memory_equal(y[0].tensor.data, y[1].tensor.data, bytes);
    release_both(y);
}

static void test_known_shapes(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 2; threads++)
        for (size_t i = 0; i < sizeof known / sizeof *known; i++)
            expect_ready(threads, known[i].text, TSSA_HAVE_ONEDNN ? known[i].made : 0);
}

/* A session does it, at each level, whatever computes the rest. */
static void test_sessions(void **state)
{
    static const char text[] = GRAPH("%x: f32[1, 16, 12, 12], %w: f32[32, 16, 3, 3]", "%y = " CONV);
    (void)state;
    for (int compile = TSSA_COMPILE_OFF; compile <= TSSA_COMPILE_WAIT; compile++) {
        struct level_pair pair;
        tssa_library_info info;
        level_pair_open(&pair, text, (tssa_compile)compile, 2);
        for (int i = 0; i < 2; i++) {
            no_error(tssa_session_library(pair.sessions[i], &info));
            assert_int_equal(info.primitives, TSSA_HAVE_ONEDNN ? 1 : 0);
        }
        level_pair_close(&pair);
    }
}

/* ---- Those that are not ---------------------------------------------------------------------- */

/* None is kept before its first run, and so many are after it. */
static void expect_later(int threads, uint64_t nanoseconds, const char *text, unsigned later)
{
    struct program p;
    struct value y = {.kind = TSSA_KIND_NONE};
    no_error(program_open(&p, &allocator_default, threads, text));
    no_error(plan_get_ready(p.plan, nanoseconds));
    assert_int_equal(primitives(&p), 0);
    no_error(run_program(&p, &allocator_default, &y));
    assert_int_equal(primitives(&p), TSSA_HAVE_ONEDNN ? later : 0);
    value_release(&y);
    program_close(&p);
}

static void test_open_shapes(void **state)
{
    static const char *const open[] = {
        GRAPH("%x: f32[N, 16, 12, 12]", "%w = $f32[32, 16, 3, 3]$\n%y = " CONV),
        GRAPH("%x: f32[1, 16, H, W]", "%w = $f32[32, 16, 3, 3]$\n%y = " CONV),
        GRAPH("%x: f32[M, 64]", "%w = $f32[64, 32]$\n%y = MatMul@13(%x, %w)\n"),
        GRAPH("%x: f32[M, 64]", "%w = $f32[64, 32]$\n%y = Gemm@13(%x, %w)\n"),
        GRAPH("%x: f32[1, 16, H, 9]", "%w = $f32[16, 6, 3, 3]$\n%y = ConvTranspose@11(%x, %w)\n"),
    };
    (void)state;
    for (int threads = 1; threads <= 2; threads++)
        for (size_t i = 0; i < sizeof open / sizeof *open; i++)
            expect_later(threads, ENDLESS, open[i], 1);
}

/* ---- Weights that are packed for guessed sizes ----------------------------------------------- */

#define CHANNELS "%w = $f32[16, 16, 3, 3]$\n"
#define LAYER(x, y) "%" y " = Conv@11(%" x ", %w) {pads = [1, 1, 1, 1]}\n"

static size_t packed_bytes(const struct program *p)
{
    return p->plan->tally.packed_bytes;
}

/* The first run has them in place of what it would pack, and nothing is left where it packs
 * otherwise. */
static void expect_packed(int threads, const char *text, int64_t side)
{
    struct value y[2] = {{.kind = TSSA_KIND_NONE}, {.kind = TSSA_KIND_NONE}};
    size_t packed[2];
    for (int ready = 0; ready < 2; ready++) {
        struct program p;
        no_error(program_open(&p, &allocator_default, threads, text));
        p.side = side;
        if (ready)
            no_error(plan_get_ready(p.plan, ENDLESS));
        assert_int_equal(packed_bytes(&p) > 0, ready && TSSA_HAVE_ONEDNN);
        no_error(run_program(&p, &allocator_default, &y[ready]));
        packed[ready] = packed_bytes(&p);
        program_close(&p);
    }
    assert_int_equal(packed[0], packed[1]);
    assert_int_equal(tensor_bytes(&y[0].tensor), tensor_bytes(&y[1].tensor));
    assert_memory_equal(y[0].tensor.data, y[1].tensor.data, tensor_bytes(&y[0].tensor));
    release_both(y);
}

static const char *const guessed[] = {
    GRAPH("%x: f32[N, 16, 12, 12]", "%w = $f32[32, 16, 3, 3]$\n%y = " CONV),
    GRAPH("%x: f32[N, 16, 12, 12]",
          "%w = $f32[32, 16, 3, 3]$\n"
          "%y = convolve(%x, %w, _, _) {pads = [1, 1, 1, 1], y_last = 1}\n"),
    GRAPH("%x: f32[1, 16, H, W]", "%w = $f32[32, 16, 3, 3]$\n%y = " CONV),
    /* so many that no code is compiled for some */
    GRAPH("%x0: f32[1, 16, H, W]",
          CHANNELS LAYER("x0", "x1") LAYER("x1", "x2") LAYER("x2", "x3") LAYER("x3", "x4")
              LAYER("x4", "x5") LAYER("x5", "x6") LAYER("x6", "x7") LAYER("x7", "x8")
                  LAYER("x8", "x9") LAYER("x9", "x10") LAYER("x10", "y")),
};

static void test_guessed_weights(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 2; threads++)
        for (size_t i = 0; i < sizeof guessed / sizeof *guessed; i++)
            expect_packed(threads, guessed[i], SIDE);
}

/* Of many pixels a product is made, which wants weights as they are. */
static void test_packed_otherwise(void **state)
{
    static const char text[] =
        GRAPH("%x: f32[1, 16, H, 3]", "%w = $f32[32, 16, 1, 1]$\n%y = Conv@11(%x, %w)\n");
    (void)state;
    expect_packed(1, text, SIDE);
    expect_packed(1, text, 100);
}

static void test_no_time(void **state)
{
    (void)state;
    expect_later(1, 0, known[0].text, 1);
}

static bool library_has_threads(void)
{
    struct team team;
    struct device_context context;
    team_open(&team, 2);
    device_context_open(&context, device_find(NULL), &allocator_default, &team);
    const bool several = cpu_library_threads(&context, &team, INT64_MAX) > 1;
    if (several) /* small problems are one thread's */
        assert_int_equal(cpu_library_threads(&context, &team, 1 << 12), 1);
    device_context_close(&context);
    return several;
}

/* Weights that several threads pack are packed by the first run; where there are no threads one
 * packs them before. */
static void test_large_weights(void **state)
{
    static const char text[] =
        GRAPH("%x: f32[1, 600, 4, 4]", "%w = $f32[512, 600, 1, 1]$\n%y = Conv@11(%x, %w)\n");
    (void)state;
    expect_ready(1, text, TSSA_HAVE_ONEDNN ? 1 : 0);
    if (library_has_threads())
        expect_later(2, ENDLESS, text, 1);
    else
        expect_ready(2, text, TSSA_HAVE_ONEDNN ? 1 : 0);
}

/* What no memory holds, and what a model only claims. */
static void test_hostile_sizes(void **state)
{
    static const char *const hostile[] = {
        GRAPH("%x: f32[4611686018427387904, 16, 9, 9]", "%w = $f32[32, 16, 3, 3]$\n%y = " CONV),
        GRAPH("%x: f32[1, 16, 40000, 40000]", "%w = $f32[32, 16, 3, 3]$\n%y = " CONV),
        GRAPH("%x: f32[1, 16, 9, 9], %w: f32[9223372036854775807, 16, 3, 3]", "%y = " CONV),
        GRAPH("%x: f32[1, 16, 9, 9], %w: f32[268435456, 16, 3, 3]", "%y = " CONV),
        GRAPH("%x: f32[1, 3037000500, 3037000500], %w: f32[3037000500, 2]",
              "%y = MatMul@13(%x, %w)\n"),
        GRAPH("%x: f32[4294967296, 0], %w: f32[0, 4294967296]", "%y = MatMul@13(%x, %w)\n"),
        GRAPH("%x: f32[4294967296, 1], %w: f32[1, 4294967296]", "%y = Gemm@13(%x, %w)\n"),
        GRAPH("%x: f32[1, 16, 9, 9]", "%w = $f32[16, 6, 3, 3]$\n%y = ConvTranspose@11(%x, %w) "
                                      "{strides = [1000000, 1000000]}\n"),
        GRAPH("%x: u8[1, 16, 9, 9], %w: i8[1152921504606846976, 16, 1, 1]",
              SCALES "%y = QLinearConv@10(%x, %s, %n, %w, %s, %z, %s, %n)\n"),
        GRAPH("%x: u8[1, 16, 9, 9], %w: i8[1048576, 16, 1, 1]",
              SCALES "%y = QLinearConv@10(%x, %s, %n, %w, %s, %z, %s, %n)\n"),
    };
    (void)state;
    for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++) {
        struct program p;
        no_error(program_open(&p, &allocator_default, 1, hostile[i]));
        no_error(plan_get_ready(p.plan, ENDLESS));
        assert_int_equal(primitives(&p), 0);
        program_close(&p);
    }
}

/* ---- Threads and memory ---------------------------------------------------------------------- */

static int count_threads(void)
{
    DIR *tasks = opendir("/proc/self/task");
    int n = 0;
    assert_non_null(tasks);
    while (readdir(tasks))
        n++;
    closedir(tasks);
    return n;
}

/* Before anything has run: a process that is forked then has all of its threads. */
static void test_no_threads(void **state)
{
    struct program p;
    (void)state;
    no_error(program_open(&p, &allocator_default, 2, known[0].text));
    const int before = count_threads();
    no_error(plan_get_ready(p.plan, ENDLESS));
    assert_int_equal(count_threads(), before);
    program_close(&p);
}

static tssa_status *get_ready_and_run(const tssa_allocator *allocator, const char *text)
{
    struct program p;
    struct value y = {.kind = TSSA_KIND_NONE};
    tssa_status *status = program_open(&p, allocator, 1, text);
    if (!status)
        status = plan_get_ready(p.plan, ENDLESS);
    if (!status)
        status = run_program(&p, allocator, &y);
    value_release(&y);
    program_close(&p);
    return status;
}

static tssa_status *run_known(const tssa_allocator *allocator)
{
    return get_ready_and_run(allocator, known[0].text);
}

static tssa_status *run_guessed(const tssa_allocator *allocator)
{
    return get_ready_and_run(allocator, guessed[sizeof guessed / sizeof *guessed - 1]);
}

static void test_every_allocation_fails_once(void **state)
{
    (void)state;
    assert_true(test_alloc_sweep(run_known) > 20);
    assert_true(test_alloc_sweep(run_guessed) > 20);
}

int main(void)
{
    /* Beside the tests' folder; see base/plugin.h. */
    setenv("TSSA_PLUGIN_DIR", TSSA_BUILD_DIR, 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_threads),       cmocka_unit_test(test_known_shapes),
        cmocka_unit_test(test_sessions),         cmocka_unit_test(test_open_shapes),
        cmocka_unit_test(test_no_time),          cmocka_unit_test(test_guessed_weights),
        cmocka_unit_test(test_packed_otherwise), cmocka_unit_test(test_large_weights),
        cmocka_unit_test(test_hostile_sizes),    cmocka_unit_test(test_every_allocation_fails_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
