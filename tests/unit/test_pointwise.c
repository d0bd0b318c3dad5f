/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products by constant matrices as the CPU's library packs them where there is AVX2 alone, against
 * plain loops in double: matrices as they are and transposed, rests of rows, threads; and what is
 * not worth a primitive of its own.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/isa.h"
#include "common/cpu_engine.h"

#define NEAR 1e-6 /* of each term */
#define EACH 5    /* every so manieth element is compared */

static struct library_problem product(int64_t m, int64_t k, int64_t n, bool transposed)
{
    struct library_problem problem;
    memset(&problem, 0, sizeof problem);
    problem.kind = LIBRARY_MATMUL;
    problem.dtype = TSSA_FLOAT;
    problem.threads = 1;
    problem.matmul = (struct matmul_problem){.batch = 1,
                                             .m = m,
                                             .n = n,
                                             .k = k,
                                             .a_row = k,
                                             .a_column = 1,
                                             .b_row = transposed ? 1 : n,
                                             .b_column = transposed ? k : 1,
                                             .b_constant = 1};
    return problem;
}

static void compare(const struct matmul_problem *p, const float *a, const float *b, const float *c)
{
    for (int64_t i = 0; i < p->m * p->n; i += EACH) {
        const int64_t row = i / p->n, column = i % p->n;
        double sum = 0;
        for (int64_t k = 0; k < p->k; k++)
            sum += (double)a[row * p->k + k] * (double)b[k * p->b_row + column * p->b_column];
        if (!(fabs((double)c[i] - sum) <= NEAR * (double)p->k))
            fail_msg("element %lld: %g where %g is right", (long long)i, (double)c[i], sum);
    }
}

static struct library_primitive *make(struct cpu_engine *engine,
                                      const struct library_problem *problem, bool expected)
{
    struct library_primitive *made = engine->provider->make(engine, problem);
    assert_non_null(made);
    const bool pointwise = strcmp(made->name, "pointwise") == 0;
    assert_true(expected || !pointwise);
    assert_true(pointwise || !expected || isa_level() != ISA_V3);
    return made;
}

static void check(struct cpu_engine *engine, const struct library_problem *problem)
{
    const struct matmul_problem *p = &problem->matmul;
    struct library_primitive *made = make(engine, problem, true);
    float *a = engine_floats((size_t)(p->m * p->k), 1),
          *b = engine_floats((size_t)(p->k * p->n), 2),
          *c = engine_floats((size_t)(p->m * p->n), 3),
          *packed = engine_floats(made->packed_bytes / 4, 4),
          *scratch = engine_floats((made->scratch_bytes + made->pack_scratch_bytes) / 4, 5);
    if (made->packed_bytes)
        assert_true(made->table->pack(made, b, packed, scratch));
    const struct library_call call = {
        .operands = {engine_place(a), engine_place(made->packed_bytes ? packed : b)},
        .result = engine_place(c),
        .scratch = engine_place(made->scratch_bytes ? scratch : NULL)};
    for (int i = 0; i < 2; i++) {
        memset(c, 0xff, (size_t)(p->m * p->n) * sizeof *c);
        assert_true(made->table->run(made, NULL, &call));
        compare(p, a, b, c);
    }
    made->table->release(made);
    float *all[] = {a, b, c, packed, scratch};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        free(all[i]);
}

static void test_products(void **state)
{
    static const int64_t sizes[][3] = {
        {197, 768, 48}, {33, 512, 512}, {8, 1024, 528}, {65, 272, 1024}, {1001, 64, 80}};
    struct cpu_engine *engine = engine_open();
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int threads = 1; threads <= 2; threads++)
            for (int transposed = 0; transposed < 2; transposed++) {
                struct library_problem problem =
                    product(sizes[i][0], sizes[i][1], sizes[i][2], transposed);
                problem.threads = engine->provider->threads(threads);
                check(engine, &problem);
            }
    engine->provider->close(engine);
}

/* Few rows, little to do, odd sizes, and matrices that differ from run to run, or are not dense. */
static void test_declined(void **state)
{
    struct library_problem all[] = {product(7, 1024, 1024, false), product(64, 128, 128, false),
                                    product(200, 500, 512, false), product(200, 512, 500, true),
                                    product(200, 512, 512, false), product(200, 512, 512, false),
                                    product(200, 512, 512, false)};
    struct cpu_engine *engine = engine_open();
    (void)state;
    all[4].matmul.b_constant = 0;
    all[5].matmul.b_row = 600;
    all[6].matmul.a_row = 600;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        struct library_primitive *made = make(engine, &all[i], false);
        made->table->release(made);
    }
    engine->provider->close(engine);
}

int main(void)
{
    /* Beside the tests' folder; see base/plugin.h. */
    setenv("TSSA_PLUGIN_DIR", TSSA_BUILD_DIR, 0);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products),
        cmocka_unit_test(test_declined),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
