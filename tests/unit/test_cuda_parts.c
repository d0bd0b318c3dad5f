/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of cuda_probe that need no card: counting ulps, records, and cuDNN's plans where it is
 * installed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench/cuda_probe/record.h"
#include "bench/cuda_probe/ulp.h"
#include "device/cuda/cublaslt.h"
#include "device/cuda/cudnn.h"

static void counts_ulps(void **state)
{
    (void)state;
    assert_float_equal(ulp_error(1.0f, 1.0), 0, 0);
    assert_float_equal(ulp_error(nextafterf(1.0f, 2.0f), 1.0), 1, 1e-9);
    assert_float_equal(ulp_error(nextafterf(-3.0f, 0.0f), -3.0), 1, 1e-9);
    assert_float_equal(ulp_error(1.0f, 1.0 + 0.25 * (double)FLT_EPSILON), 0.25, 1e-9);
    assert_float_equal(ulp_error(0.0f, 0.0), 0, 0);
    assert_float_equal(ulp_error(2 * FLT_TRUE_MIN, (double)FLT_TRUE_MIN), 1, 1e-9);
    assert_float_equal(ulp_error(INFINITY, INFINITY), 0, 0);
    assert_float_equal(ulp_error(NAN, NAN), 0, 0);
    assert_true(isinf(ulp_error(NAN, 1.0)));
    assert_true(isinf(ulp_error(FLT_MAX, INFINITY)));
    assert_true(isinf(ulp_error(FLT_MAX, 1e39))); /* which float32 cannot say */
}

static void reads_what_was_written(void **state)
{
    (void)state;
    FILE *file = tmpfile();
    tssa_status *status = ERROR(TSSA_RUNTIME, "a line\nand more");
    assert_non_null(file);
    record_figure(file, 2.5, "GB/s", "speed of %d", 7);
    record_timing(file, (struct timing){.median = 3, .least = 1}, "time");
    record_fact(file, "name", "two\twords");
    record_error(file, status);
    record_done(file);
    fputs("figure\tcut off", file); /* as by a crash */
    rewind(file);
    tssa_status_free(status);

    struct record_reader reader = {.in = file};
    struct record record;
    assert_true(record_next(&reader, &record));
    assert_int_equal(record.kind, RECORD_FIGURE);
    assert_string_equal(record.name, "speed of 7");
    assert_string_equal(record.text, "GB/s");
    assert_float_equal(record.value, 2.5, 0);
    assert_true(isnan(record.least));
    assert_true(record_next(&reader, &record));
    assert_float_equal(record.least, 1, 0);
    assert_true(record_next(&reader, &record));
    assert_int_equal(record.kind, RECORD_FACT);
    assert_string_equal(record.text, "two words");
    assert_true(record_next(&reader, &record));
    assert_int_equal(record.kind, RECORD_ERROR);
    assert_int_equal((int)record.value, TSSA_RUNTIME);
    assert_true(record_next(&reader, &record));
    assert_int_equal(record.kind, RECORD_DONE);
    assert_false(record_next(&reader, &record));
    free(reader.line);
    fclose(file);
}

static void expect_good(tssa_status *status)
{
    if (status)
        print_error("%s\n", tssa_status_message(status));
    assert_null(status);
}

/* cuDNN 9.8 and later; what it keeps is not given back, which a leak checker would not like. */
static bool has_cudnn(struct cudnn *cudnn)
{
#ifdef __SANITIZE_ADDRESS__
    (void)cudnn;
    return false;
#else
    tssa_status *status = cudnn_open(cudnn);
    bool good = !status && cudnn->cudnnGetVersion && cudnn->cudnnGetVersion() >= 90800;
    tssa_status_free(status);
    return good;
#endif
}

static void use_card_of_json(struct cudnn *cudnn)
{
    char json[2048] = "";
    FILE *file = fopen(TSSA_SOURCE_DIR "/tests/cuda/device_h200.json", "r");
    assert_non_null(file);
    assert_true(fread(json, 1, sizeof json - 1, file) > 0);
    fclose(file);
    expect_good(cudnn_use_properties(cudnn, json));
}

static struct library_problem of_axes(int64_t rank, tssa_dtype dtype, bool turned, bool biased,
                                      int64_t groups)
{
    struct library_problem problem = {.kind = LIBRARY_CONV,
                                      .dtype = dtype,
                                      .conv = {.turned = turned,
                                               .rank = rank,
                                               .batch = 2,
                                               .groups = groups,
                                               .in_channels = 64,
                                               .out_channels = 64,
                                               .biased = biased}};
    struct conv_problem *c = &problem.conv;
    for (int64_t i = 0; i < rank; i++) {
        c->in[i] = c->out[i] = rank == 3 ? 14 : 56;
        c->kernel[i] = 3;
        c->stride[i] = c->dilation[i] = c->pad_begin[i] = c->pad_end[i] = 1;
    }
    return problem;
}

/* Engines with tensor cores and without, and a plan of the first of each kind, for a card that is
 * not there. */
static void plans_without_a_card(void **state)
{
    (void)state;
    const struct library_problem problem = of_axes(2, TSSA_FLOAT, false, false, 1);
    struct engine engines[ENGINE_LIMIT];
    struct cudnn cudnn;
    bool planned[2] = {false, false};
    size_t count;
    if (!has_cudnn(&cudnn))
        skip();
    use_card_of_json(&cudnn);
    expect_good(cudnn_engines(&cudnn, &problem, engines, &count));
    for (size_t i = 0; i < count; i++) {
        struct cudnn_plan plan;
        if (engines[i].compiled || planned[engines[i].tensor_core])
            continue;
        expect_good(cudnn_plan_make(&cudnn, &engines[i], &plan));
        assert_true(plan.workspace >= 0);
        planned[engines[i].tensor_core] = true;
    }
    assert_true(planned[0] && planned[1]);
}

/* Is there a plan that keeps the type's precision? All that was made is given back. */
static bool has_exact_plan(struct cudnn *cudnn, const struct library_problem *problem)
{
    struct engine engines[ENGINE_LIMIT];
    static struct cudnn_made made; /* outlives the call, as the library's has to */
    struct cudnn_plan plan;
    bool found = false;
    size_t count = 0;
    made = (struct cudnn_made){.n = 0};
    cudnn->made = &made;
    tssa_status_free(cudnn_engines(cudnn, problem, engines, &count));
    for (size_t i = 0; i < count && !found; i++) {
        if (!cudnn_engine_suits(&engines[i], problem, false) || engines[i].compiled)
            continue;
        tssa_status *status = cudnn_plan_make(cudnn, &engines[i], &plan);
        found = !status;
        tssa_status_free(status);
    }
    cudnn_drop(cudnn, &made);
    cudnn->made = NULL;
    return found;
}

/* Of each number of axes, in each type, turned or not, with groups or a bias. */
static void exact_plans(void **state)
{
    (void)state;
    enum { TYPES = 4 };
    static const tssa_dtype dtypes[TYPES] = {TSSA_FLOAT, TSSA_DOUBLE, TSSA_FLOAT16, TSSA_BFLOAT16};
    struct cudnn cudnn;
    if (!has_cudnn(&cudnn))
        skip();
    use_card_of_json(&cudnn);
    for (int i = 0; i < 3 * TYPES * 2 * 2 * 3; i++) {
        static const int64_t groups[] = {1, 4, 64};
        const int64_t rank = i % 3 + 1;
        const bool turned = i / (3 * TYPES) % 2, biased = i / (6 * TYPES) % 2;
        const struct library_problem problem =
            of_axes(rank, dtypes[i / 3 % TYPES], turned, biased, groups[i / (12 * TYPES)]);
        if (!has_exact_plan(&cudnn, &problem) && !(turned && biased)) /* see device/grids/conv.c */
            fail_msg("none of %d axes, %s%s%s, %d groups", (int)rank,
                     dtype_info(dtypes[i / 3 % TYPES])->ir_name, turned ? ", turned" : "",
                     biased ? ", with a bias" : "", (int)groups[i / (12 * TYPES)]);
    }
}

/* Of a bias and what may follow it, in each type. */
static void plans_with_what_follows(void **state)
{
    static const tssa_dtype dtypes[] = {TSSA_FLOAT, TSSA_DOUBLE, TSSA_FLOAT16, TSSA_BFLOAT16};
    struct cudnn cudnn;
    (void)state;
    if (!has_cudnn(&cudnn))
        skip();
    use_card_of_json(&cudnn);
    for (int i = 0; i < 4 * 3; i++) {
        struct library_problem problem = of_axes(2, dtypes[i % 4], false, true, 1);
        problem.conv.adds = i / 4 != 1;
        problem.conv.clips = i / 4 != 2;
        assert_true(has_exact_plan(&cudnn, &problem));
    }
}

static void expect(tssa_status *status, tssa_code code, const char *message)
{
    assert_int_equal(tssa_status_code(status), code);
    assert_string_equal(tssa_status_message(status), message);
    tssa_status_free(status);
}

#define LOOKED_IN_DOCS " in " TSSA_SOURCE_DIR "/docs, which " SHARED_FOLDER " names"

/* Where nothing is: what is missing is said, and so is what a library lacks. */
static void missing_libraries(void **state)
{
    (void)state;
    struct cuda_api api = {0};
    struct cublaslt lt = {0};
    void *handle;
    const char *before = getenv(SHARED_FOLDER);
    char *kept = before ? strdup(before) : NULL;
    setenv(SHARED_FOLDER, TSSA_SOURCE_DIR "/docs", 1);
    expect(cuda_api_open(&api), TSSA_UNSUPPORTED,
           "no CUDA driver: libcuda.so.1 does not open" LOOKED_IN_DOCS);
    expect(cublaslt_open(&lt), TSSA_UNSUPPORTED,
           "no cuBLASLt: libcublasLt.so.13 does not open" LOOKED_IN_DOCS);
    if (kept)
        setenv(SHARED_FOLDER, kept, 1);
    else
        unsetenv(SHARED_FOLDER);
    free(kept);
    expect(CUDA(&api, cuInit, 0), TSSA_UNSUPPORTED, "the library is too old: it has no cuInit");
    expect(CUBLASLT(&lt, cublasLtCreate, &handle), TSSA_UNSUPPORTED,
           "the library is too old: it has no cublasLtCreate");
    assert_null(cuda_status(&api, 0, "cuInit"));
    expect(cuda_status(&api, CUDA_OUT_OF_MEMORY, "cuMemAlloc_v2"), TSSA_OUT_OF_MEMORY,
           "cuMemAlloc_v2: unknown, error 2 (the driver has no text for it)");
    expect(cublaslt_status(&lt, 7, "cublasLtMatmul"), TSSA_RUNTIME, "cublasLtMatmul: failed");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_ulps),
        cmocka_unit_test(reads_what_was_written),
        cmocka_unit_test(plans_without_a_card),
        cmocka_unit_test(exact_plans),
        cmocka_unit_test(plans_with_what_follows),
        cmocka_unit_test(missing_libraries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
