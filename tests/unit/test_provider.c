/* SPDX-License-Identifier: Apache-2.0 */
/* The oneDNN plugin against plain loops in double: random matrix products and convolutions; the
 * team. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/isa.h"
#include "base/team.h"
#include "common/cpu_engine.h"

#define MAX_ISA "DNNL_MAX_CPU_ISA" /* oneDNN reads it once */

static uint64_t seed = 1;

static int64_t pick(int64_t low, int64_t high)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return low + (int64_t)((seed >> 33) % (uint64_t)(high - low + 1));
}

static float *random_floats(int64_t count)
{
    float *data = malloc((size_t)count * sizeof *data + 1);
    assert_non_null(data);
    for (int64_t i = 0; i < count; i++)
        data[i] = (float)pick(-100, 100) / 64.0f;
    return data;
}

static void expect_near(float actual, double expected)
{
    if (!(fabs(actual - expected) <= 1e-4 + 1e-4 * fabs(expected)))
        fail_msg("%g where %g is right", (double)actual, expected);
}

static struct library_problem problem_of(const struct cpu_engine *engine, enum library_kind kind)
{
    struct library_problem problem;
    memset(&problem, 0, sizeof problem);
    problem.kind = kind;
    problem.dtype = TSSA_FLOAT;
    problem.threads = engine->provider->threads(2);
    return problem;
}

/* Against sums in double; `scratch`: with what it asks for, else without. */
static void check_product(struct cpu_engine *engine, const struct library_problem *problem,
                          bool scratch)
{
    const struct matmul_problem *p = &problem->matmul;
    float *a = random_floats(p->k * (p->a_row == 1 ? p->a_column : p->m)),
          *b = random_floats(p->b_row == 1 ? p->n * p->k : p->k * p->b_row),
          *c = random_floats(p->m * p->n);
    struct library_primitive *made = engine->provider->make(engine, problem);
    struct library_call call = {.operands = {engine_place(a), engine_place(b)},
                                .result = engine_place(c)};
    assert_non_null(made);
    assert_true(made->packed_bytes == 0 || p->b_constant);
    float *packed = random_floats((int64_t)(made->packed_bytes / sizeof(float)));
    if (made->packed_bytes) {
        assert_true(made->table->pack(made, b, packed, NULL));
        assert_true(made->table->same_packing(made, made));
        call.operands[LIBRARY_WEIGHTS] = engine_place(packed);
    }
    float *memory = random_floats((int64_t)(made->scratch_bytes / sizeof(float)));
    if (scratch)
        call.scratch = engine_place(memory);
    assert_true(made->table->run(made, NULL, &call));
    made->table->release(made);
    free(memory);
    free(packed);
    for (int64_t i = 0; i < p->m; i++)
        for (int64_t j = 0; j < p->n; j++) {
            double sum = 0;
            for (int64_t k = 0; k < p->k; k++)
                sum += (double)a[i * p->a_row + k * p->a_column] *
                       (double)b[k * p->b_row + j * p->b_column];
            expect_near(c[i * p->n + j], sum);
        }
    free(a);
    free(b);
    free(c);
}

static void test_products(void **state)
{
    (void)state;
    struct cpu_engine *engine = engine_open();
    struct library_problem problem = problem_of(engine, LIBRARY_MATMUL);
    for (int i = 0; i < 2; i++)
        engine->provider->get_ready(engine);
    for (int round = 0; round < 100; round++) {
        /* Every tenth is large enough for several threads. */
        int64_t most = round % 10 ? 40 : 400;
        struct matmul_problem *p = &problem.matmul;
        const int64_t m = pick(1, most), n = pick(1, most), k = pick(1, most);
        bool ta = pick(0, 1), tb = pick(0, 1);
        *p = (struct matmul_problem){.batch = 1, .m = m, .n = n, .k = k};
        p->a_row = ta ? 1 : k, p->a_column = ta ? m : 1;
        p->b_row = tb ? 1 : n, p->b_column = tb ? k : 1;
        check_product(engine, &problem, true);
    }
    engine->provider->close(engine);
}

/* Rows that are a multiple of 2 KiB apart, which are copied where oneDNN has AVX2 at best. */
static void test_aliased_products(void **state)
{
    static const struct matmul_problem products[] = {
        {.m = 600, .n = 40, .k = 33, .a_row = 1, .a_column = 1024, .b_row = 40, .b_column = 1},
        {.m = 9, .n = 1100, .k = 33, .a_row = 33, .a_column = 1, .b_row = 1536, .b_column = 1},
        {.m = 513, .n = 515, .k = 8, .a_row = 1, .a_column = 1024, .b_row = 1024, .b_column = 1},
        {.m = 9,
         .n = 1024,
         .k = 33,
         .a_row = 33,
         .a_column = 1,
         .b_row = 1024,
         .b_column = 1,
         .b_constant = 1},
    };
    (void)state;
    struct cpu_engine *engine = engine_open();
    struct library_problem problem = problem_of(engine, LIBRARY_MATMUL);
    for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
        problem.matmul = products[i];
        problem.matmul.batch = 1;
        struct library_primitive *made = engine->provider->make(engine, &problem);
        assert_non_null(made);
        if (getenv(MAX_ISA))
            assert_true(made->scratch_bytes + made->packed_bytes > 0);
        made->table->release(made);
        check_product(engine, &problem, false);
        check_product(engine, &problem, true);
    }
    engine->provider->close(engine);
}

/* With AVX-512 constants whose rows are a multiple of 4 KiB apart are copied for few rows. */
static void test_aliased_constants(void **state)
{
    static const struct {
        int64_t m, n, k;
        bool copied;
    } products[] = {
        {2, 1024, 256, true},  {49, 2048, 300, true},  {96, 1024, 256, true},
        {1, 1024, 256, false}, {97, 1024, 256, false}, {49, 1024, 255, false},
        {49, 512, 512, false}, {49, 1040, 256, false},
    };
    (void)state;
    struct cpu_engine *engine = engine_open();
    struct library_problem problem = problem_of(engine, LIBRARY_MATMUL);
    for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
        const int64_t m = products[i].m, n = products[i].n, k = products[i].k;
        problem.matmul = (struct matmul_problem){.batch = 1,
                                                 .m = m,
                                                 .n = n,
                                                 .k = k,
                                                 .a_row = k,
                                                 .a_column = 1,
                                                 .b_row = n,
                                                 .b_column = 1,
                                                 .b_constant = 1};
        struct library_primitive *made = engine->provider->make(engine, &problem);
        assert_non_null(made);
        if (isa_level() == ISA_V4 && !getenv(MAX_ISA))
            assert_int_equal(made->packed_bytes > 0, products[i].copied);
        made->table->release(made);
        check_product(engine, &problem, true);
    }
    engine->provider->close(engine);
}

static void test_declined(void **state)
{
    (void)state;
    struct cpu_engine *engine = engine_open();
    const struct cpu_provider *p = engine->provider;
    struct library_problem problem = problem_of(engine, LIBRARY_MATMUL);
    problem.matmul = (struct matmul_problem){
        .batch = 1, .m = 2, .n = 2, .k = 2, .a_row = 2, .a_column = 1, .b_row = 2, .b_column = 2};
    assert_null(p->make(engine, &problem)); /* gaps between the columns */
    problem.matmul.b_column = 1;
    problem.matmul.batch = 2;
    assert_null(p->make(engine, &problem));
    problem.matmul.batch = 1;
    problem.dtype = TSSA_DOUBLE;
    assert_null(p->make(engine, &problem));
    problem = problem_of(engine, LIBRARY_CONV);
    problem.conv.rank = CONV_MAX_RANK + 1;
    assert_null(p->make(engine, &problem));
    p->close(engine);
}

/* One output element of a two-dimensional convolution. */
static double conv_at(const struct conv_problem *c, const float *data_x, const float *data_w,
                      const float *bias, int64_t n, int64_t o, int64_t y, int64_t x)
{
    int64_t per_group = c->in_channels / c->groups, group = o / (c->out_channels / c->groups);
    double sum = c->biased ? (double)bias[o] : 0;
    for (int64_t i = 0; i < per_group; i++)
        for (int64_t ky = 0; ky < c->kernel[0]; ky++)
            for (int64_t kx = 0; kx < c->kernel[1]; kx++) {
                int64_t iy = y * c->stride[0] + ky * c->dilation[0] - c->pad_begin[0];
                int64_t ix = x * c->stride[1] + kx * c->dilation[1] - c->pad_begin[1];
                if (iy < 0 || iy >= c->in[0] || ix < 0 || ix >= c->in[1])
                    continue;
                int64_t plane = n * c->in_channels + group * per_group + i;
                sum +=
                    (double)data_x[(plane * c->in[0] + iy) * c->in[1] + ix] *
                    (double)data_w[((o * per_group + i) * c->kernel[0] + ky) * c->kernel[1] + kx];
            }
    return sum;
}

static int64_t out_of(const struct conv_problem *c, int i)
{
    return (c->in[i] + c->pad_begin[i] + c->pad_end[i] - (c->kernel[i] - 1) * c->dilation[i] - 1) /
               c->stride[i] +
           1;
}

/* What only packs packs as the primitive does. */
static void check_packer(struct cpu_engine *engine, const struct library_problem *problem,
                         const struct library_primitive *made, const float *w, const void *packed)
{
    struct library_primitive *packer = engine->provider->make_packer(engine, problem);
    assert_non_null(packer);
    assert_int_equal(packer->packed_bytes, made->packed_bytes);
    assert_true(packer->table == made->table && packer->table->same_packing(made, packer));
    void *own = engine_room(packer->packed_bytes),
         *scratch = engine_room(packer->pack_scratch_bytes);
    if (packer->packed_bytes)
        assert_true(packer->table->pack(packer, w, own, scratch));
    assert_memory_equal(own, packed, packer->packed_bytes);
    packer->table->release(packer);
    free(own);
    free(scratch);
}

/* Twice with one primitive: the second run may not depend on what the first left behind. */
static void run_conv(struct cpu_engine *engine, const struct conv_problem *c, const float *x,
                     const float *w, const float *bias, float *y)
{
    struct library_problem problem = problem_of(engine, LIBRARY_CONV);
    problem.conv = *c;
    struct library_primitive *made = engine->provider->make(engine, &problem);
    assert_non_null(made);
    assert_true(strncmp(made->name, "ref", 3) != 0);
    void *packed = engine_room(made->packed_bytes), *scratch = engine_room(made->scratch_bytes);
    if (made->packed_bytes)
        assert_true(made->table->pack(made, w, packed, scratch));
    check_packer(engine, &problem, made, w, packed);
    const struct library_call call = {.operands = {engine_place(x),
                                                   engine_place(made->packed_bytes ? packed : w),
                                                   engine_place(c->biased ? bias : NULL)},
                                      .result = engine_place(y),
                                      .scratch = engine_place(scratch)};
    assert_true(made->table->run(made, NULL, &call) && made->table->run(made, NULL, &call));
    assert_true(made->table->same_packing(made, made));
    made->table->release(made);
    free(packed);
    free(scratch);
}

static void check_conv(struct cpu_engine *engine, const struct conv_problem *c)
{
    int64_t outputs = c->batch * c->out_channels * c->out[0] * c->out[1];
    float *x = random_floats(c->batch * c->in_channels * c->in[0] * c->in[1]);
    float *w =
        random_floats(c->out_channels * (c->in_channels / c->groups) * c->kernel[0] * c->kernel[1]);
    float *bias = random_floats(c->out_channels), *y = random_floats(outputs);
    struct conv_problem line =
        *c; /* the same with one spatial axis, where the first is of no extent */
    if (c->in[0] == 1 && c->kernel[0] == 1 && c->pad_begin[0] + c->pad_end[0] == 0) {
        int64_t *sizes[] = {line.in,       line.out,       line.kernel, line.stride,
                            line.dilation, line.pad_begin, line.pad_end};
        line.rank = 1;
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            sizes[i][0] = sizes[i][1], sizes[i][1] = 0;
    }
    run_conv(engine, &line, x, w, bias, y);
    for (int64_t i = 0; i < outputs; i++) {
        int64_t column = i % c->out[1], row = i / c->out[1] % c->out[0],
                plane = i / c->out[1] / c->out[0];
        expect_near(y[i], conv_at(c, x, w, bias, plane / c->out_channels, plane % c->out_channels,
                                  row, column));
    }
    free(x);
    free(w);
    free(bias);
    free(y);
}

static void test_conv(void **state)
{
    (void)state;
    struct cpu_engine *engine = engine_open();
    for (int round = 0; round < 90; round++) {
        struct conv_problem c = {
            .rank = 2, .batch = pick(1, 2), .groups = pick(1, 3), .biased = pick(0, 1)};
        bool pointwise = round % 5 == 0;
        c.in_channels = c.groups * pick(1, 5);
        c.out_channels = c.groups * pick(1, 5);
        for (int i = 0; i < 2; i++) {
            c.in[i] = pick(5, 12), c.kernel[i] = pointwise ? 1 : pick(1, 3);
            c.stride[i] = pointwise ? 1 : pick(1, 2), c.dilation[i] = pick(1, 2);
            c.pad_begin[i] = pointwise ? 0 : pick(0, 2);
            c.pad_end[i] = pointwise ? 0 : pick(0, 2);
        }
        if (round % 4 == 0)
            c.in[0] = c.kernel[0] = c.stride[0] = 1, c.pad_begin[0] = c.pad_end[0] = 0;
        c.out[0] = out_of(&c, 0), c.out[1] = out_of(&c, 1);
        check_conv(engine, &c);
    }
    engine->provider->close(engine);
}

/* Channels that fill blocks, one image and several, in one group, in some, and in as many as there
 * are. */
static void test_conv_blocks(void **state)
{
    static const int64_t channels[][3] = {{16, 32, 1},  {3, 32, 1},   {32, 8, 1},  {64, 32, 2},
                                          {32, 32, 32}, {24, 24, 24}, {32, 32, 8}, {20, 40, 20}};
    (void)state;
    struct cpu_engine *engine = engine_open();
    for (size_t i = 0; i < sizeof channels / sizeof *channels; i++)
        for (int64_t kernel = 1; kernel <= 3; kernel += 2)
            for (int64_t size = 7; size <= 14; size += 7) {
                struct conv_problem c = {.rank = 2,
                                         .batch = 1 + (int64_t)i % 2,
                                         .in_channels = channels[i][0],
                                         .out_channels = channels[i][1],
                                         .groups = channels[i][2],
                                         .in = {size, size},
                                         .out = {size, size},
                                         .kernel = {kernel, kernel},
                                         .stride = {1, 1},
                                         .dilation = {1, 1},
                                         .pad_begin = {kernel / 2, kernel / 2},
                                         .pad_end = {kernel / 2, kernel / 2}};
                check_conv(engine, &c);
            }
    engine->provider->close(engine);
}

/* ---- The team -------------------------------------------------------------------------------- */

static void mark(void *context, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++)
        ((uint8_t *)context)[i]++;
}

static void test_team_covers_every_index_once(void **state)
{
    (void)state;
    for (int threads = 1; threads <= 4; threads++) {
        struct team team;
        team_open(&team, threads);
        assert_true(!TSSA_HAVE_OPENMP || threads == 1 || team.parallel_for);
        for (int64_t count = 0; count < 300; count += 7) {
            uint8_t seen[300] = {0};
            team_for(&team, count, 3, mark, seen);
            for (int64_t i = 0; i < 300; i++)
                assert_int_equal(seen[i], i < count);
        }
    }
}

/* A product that the library divides among threads. Run with OMP_THREAD_LIMIT=1 as well, where it
 * gets fewer than it asks for: no part of the result may be left out. */
static void test_product_of_many_rows(void **state)
{
    (void)state;
    struct cpu_engine *engine = engine_open();
    struct library_problem problem = problem_of(engine, LIBRARY_MATMUL);
    problem.matmul = (struct matmul_problem){.batch = 1,
                                             .m = 6400,
                                             .n = 7,
                                             .k = 32,
                                             .a_row = 32,
                                             .a_column = 1,
                                             .b_row = 7,
                                             .b_column = 1};
    check_product(engine, &problem, true);
    engine->provider->close(engine);
}

/* What is denormal counts as 0 in a product, on one thread and on several, and nowhere else. */
static void test_denormals(void **state)
{
    enum { SIZE = 160 };
    (void)state;
    struct cpu_engine *engine = engine_open();
    struct library_problem problem = problem_of(engine, LIBRARY_MATMUL);
    problem.matmul = (struct matmul_problem){.batch = 1,
                                             .m = SIZE,
                                             .n = SIZE,
                                             .k = SIZE,
                                             .a_row = SIZE,
                                             .a_column = 1,
                                             .b_row = SIZE,
                                             .b_column = 1};
    float *a = random_floats(SIZE * SIZE), *b = random_floats(SIZE * SIZE),
          *c = random_floats(SIZE * SIZE);
    volatile float tiny = 1e-40F;
    for (int64_t i = 0; i < SIZE * SIZE; i++) {
        a[i] = tiny;
        b[i] = 0x1p20F; /* times which it would be none */
    }
    for (int64_t threads = problem.threads; threads > 0; threads--) {
        problem.threads = threads;
        struct library_primitive *made = engine->provider->make(engine, &problem);
        const struct library_call call = {.operands = {engine_place(a), engine_place(b)},
                                          .result = engine_place(c)};
        assert_non_null(made);
        assert_true(made->table->run(made, NULL, &call));
        made->table->release(made);
        assert_true(tiny * 0.5F > 0);
#if defined(__SSE__)
        for (int64_t i = 0; i < SIZE * SIZE; i++)
            assert_true(c[i] == 0);
#endif
    }
    free(a);
    free(b);
    free(c);
    engine->provider->close(engine);
}

/* All of these tests where oneDNN is to use AVX2 at most. */
static void test_with_avx2(void **state)
{
    (void)state;
    if (getenv(MAX_ISA))
        return;
    int ended = 1;
    const pid_t child = fork();
    if (child == 0) {
        setenv(MAX_ISA, "AVX2", 1);
        execl("/proc/self/exe", "test_provider", (char *)NULL);
        _exit(127);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_int_equal(ended, 0);
}

int main(void)
{
    /* Beside the tests' folder; see base/plugin.h. */
    setenv("TSSA_PLUGIN_DIR", TSSA_BUILD_DIR, 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products),
        cmocka_unit_test(test_product_of_many_rows),
        cmocka_unit_test(test_aliased_products),
        cmocka_unit_test(test_aliased_constants),
        cmocka_unit_test(test_declined),
        cmocka_unit_test(test_denormals),
        cmocka_unit_test(test_conv),
        cmocka_unit_test(test_with_avx2),
        cmocka_unit_test(test_conv_blocks),
        cmocka_unit_test(test_team_covers_every_index_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
