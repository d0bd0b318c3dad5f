/* SPDX-License-Identifier: Apache-2.0 */
/* cuda_probe where there is no driver, and with a stand-in for one (tests/cuda/fake_cuda.c). */
/* ctest-timeout: 300 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/process.h"

#define LIBRARIES "TSSA_CUDA_LIBRARIES"
#define FAIL "FAKE_CUDA_FAIL"

static const char tool[] = TSSA_BUILD_DIR "/bench/cuda_probe";
static const char new_driver[] = TSSA_BUILD_DIR "/tests/fake_cuda_new";
static const char old_driver[] = TSSA_BUILD_DIR "/tests/fake_cuda_old";

static const struct process_limits limits = {.seconds = 120};

/* Runs the tool with up to 12 arguments. */
#define RUN(...) process_run((const char *const[16]){tool, __VA_ARGS__}, NULL, NULL, &limits)

#define SCRIPT(...)                                                                                \
    process_run((const char *const[16]){TSSA_SOURCE_DIR "/bench/on-gpu.sh", __VA_ARGS__}, NULL,    \
                NULL, &limits)

/* The libraries that the next runs see, and the call of theirs that fails ("FUNCTION:CODE" or
 * NULL). */
static void use(const char *libraries, const char *failing)
{
    setenv(LIBRARIES, libraries, 1);
    setenv("FAKE_CUDA_COMPUTES", "0", 1); /* the probe times convolutions */
    if (failing)
        setenv(FAIL, failing, 1);
    else
        unsetenv(FAIL);
}

static size_t count(const char *text, const char *part)
{
    size_t found = 0;
    while ((text = strstr(text, part))) {
        found++;
        text += strlen(part);
    }
    return found;
}

static void expect(struct process_result *result, int status, const char *out, const char *err)
{
    if (result->status != status || !strstr(result->out, out) || !strstr(result->err, err))
        print_error("status %d\n%s%s", result->status, result->out, result->err);
    assert_int_equal(result->status, status);
    assert_non_null(strstr(result->out, out));
    assert_non_null(strstr(result->err, err));
}

static void expect_free(struct process_result result, int status, const char *out, const char *err)
{
    expect(&result, status, out, err);
    process_result_free(&result);
}

static void tells_what_it_asks(void **state)
{
    (void)state;
    expect_free(RUN("--list"), 0, "what does a kernel launch cost?", "");
    expect_free(RUN("--help"), 0, "--json FILE", "");
    expect_free(RUN("--only", "lunch"), 2, "", "there is no probe 'lunch'");
    expect_free(RUN("--limit", "soon"), 2, "", "--limit wants a number");
    expect_free(RUN("launch"), 2, "", "no argument is wanted");
    expect_free(RUN("--json", "/nowhere/x.json"), 2, "", "/nowhere/x.json: No such file");
}

/* One line, and a status of its own. */
static void says_that_there_is_no_driver(void **state)
{
    (void)state;
    use("/nowhere", NULL);
    struct process_result result = RUN(NULL);
    expect(&result, 3, "",
           "cuda_probe: nothing measured: no CUDA driver: libcuda.so.1 does not open in /nowhere, "
           "which TSSA_CUDA_LIBRARIES names\n");
    assert_string_equal(result.out, "");
    assert_int_equal(count(result.err, "\n"), 1);
    process_result_free(&result);
    expect_free(RUN("--compile", "90"), 3, "", "no NVRTC: libnvrtc.so.13 does not open");
}

static void says_that_there_is_no_device(void **state)
{
    (void)state;
    use(new_driver, "cuInit:100");
    expect_free(RUN(NULL), 3, "", "no CUDA device: cuInit: CUDA_ERROR_FAKE, error 100 (made up)\n");
}

/* The answers as JSON: of all probes, or of two that `two` says to ask. */
static json_t *run_for_json(int status, bool two)
{
    char *folder = temporary_folder(), path[512];
    snprintf(path, sizeof path, "%s/answers.json", folder);
    struct process_result result =
        RUN("--json", path, two ? "--only" : NULL, "launch", "--only", "copy_latency");
    if (result.status != status)
        print_error("status %d\n%s%s", result.status, result.out, result.err);
    assert_int_equal(result.status, status);
    process_result_free(&result);
    json_t *root = json_load_file(path, 0, NULL);
    assert_non_null(root);
    remove_folder(folder);
    return root;
}

static json_t *answer(const json_t *root, const char *name)
{
    size_t i;
    json_t *probe;
    json_array_foreach(json_object_get(root, "probes"), i, probe)
    {
        if (strcmp(json_string_value(json_object_get(probe, "name")), name) == 0)
            return probe;
    }
    fail_msg("no probe %s", name);
    return NULL;
}

static void expect_failure(const json_t *root, const char *name, const char *why)
{
    const char *failure = json_string_value(json_object_get(answer(root, name), "failure"));
    bool as_wanted = failure && why ? strstr(failure, why) != NULL : failure == why;
    if (!as_wanted)
        print_error("%s: '%s' instead of '%s'\n", name, failure ? failure : "(none)",
                    why ? why : "(none)");
    assert_true(as_wanted);
}

static void measures(void **state)
{
    (void)state;
    use(new_driver, NULL);
    json_t *root = run_for_json(1, false);
    expect_failure(root, "device", NULL);
    expect_failure(root, "launch", NULL);
    expect_failure(root, "copy_latency", NULL);
    /* The fake card is small: what fits is reported, then comes the error. */
    expect_failure(root, "copy_bandwidth", "out of memory");
    assert_true(json_array_size(json_object_get(answer(root, "copy_bandwidth"), "figures")) > 10);
    expect_failure(root, "graph_launch", NULL);
    expect_failure(root, "conditional_cubin", NULL);
    expect_failure(root, "conditional_ptx", NULL);
    expect_failure(root, "while_loop", NULL);
    expect_failure(root, "nested_if", NULL);
    expect_failure(root, "cublaslt_capture", NULL);
    expect_failure(root, "cudnn_capture", NULL);
    expect_failure(root, "cudnn_f32", NULL);
    expect_failure(root, "device_json", NULL);
    expect_failure(root, "math", NULL);
    assert_string_equal(
        json_string_value(json_object_get(json_object_get(answer(root, "device_json"), "facts"),
                                          "device properties")),
        "{\"deviceName\": \"Fake card\"}");
    json_decref(root);
}

/* A probe that fails, crashes or hangs is one line, and the others still run. */
static void survives_what_fails(void **state)
{
    (void)state;
    use(new_driver, "cuLaunchKernel:719");
    json_t *root = run_for_json(1, true);
    expect_failure(root, "launch", "cuLaunchKernel: CUDA_ERROR_FAKE, error 719 (made up)");
    expect_failure(root, "copy_latency", NULL);
    json_decref(root);
    use(new_driver, "cuLaunchKernel:crash");
    root = run_for_json(1, true);
    expect_failure(root, "launch", "ended by signal 6");
    expect_failure(root, "copy_latency", NULL);
    json_decref(root);
    use(new_driver, "cuLaunchKernel:hang");
    expect_free(RUN("--only", "launch", "--limit", "1"), 1,
                "no answer: stopped after its limit of 1 s", "");
    use(new_driver, "nvrtcCompileProgram:6");
    expect_free(RUN("--only", "launch"), 1,
                "no answer: basic.cu(1): error: made up: nvrtcCompileProgram", "");
}

static void lives_with_an_old_driver(void **state)
{
    (void)state;
    use(old_driver, NULL);
    expect_free(RUN("--only", "launch"), 0, "per launch, 10 in a row", "");
    expect_free(RUN("--only", "while_loop"), 1,
                "no answer: the library is too old: it has no cuStreamGetCaptureInfo_v3", "");
    expect_free(RUN("--only", "cublaslt_capture"), 1,
                "no answer: no cuBLASLt: libcublasLt.so.13 does not open", "");
    expect_free(RUN("--only", "device_json"), 1, "no answer: no cuDNN: libcudnn.so.9 does not open",
                "");
}

/* What libraries put into a loop's body is told, and their errors are. */
static void tells_what_libraries_capture(void **state)
{
    (void)state;
    use(new_driver, NULL);
    expect_free(RUN("--only", "cublaslt_capture"), 0,
                "captured: 1 kernel, 1 memset (one kernel is the loop's); result has the same bits",
                "");
    expect_free(RUN("--only", "cudnn_capture"), 0,
                "captured: 1 kernel, 1 memset (one kernel is the loop's); result has the same bits",
                "");
    use(new_driver, "cublasLtMatmul:7");
    expect_free(RUN("--only", "cublaslt_capture"), 1,
                "x [64, 64]: cublasLtMatmul: CUBLAS_STATUS_FAKE", "");
    use(new_driver, "cudnnBackendExecute:3000");
    expect_free(RUN("--only", "cudnn_f32"), 1, "none of 4 engines runs", "");
    use(new_driver, "cudnnCreate:1001");
    expect_free(RUN("--only", "device_json"), 1, "cudnnCreate: CUDNN_STATUS_FAKE, error 1001", "");
}

static void tells_what_conditions_need(void **state)
{
    (void)state;
    use(new_driver, NULL);
    expect_free(RUN("--only", "conditional_cubin"), 0, "yes, 3 iterations", "");
    use(new_driver, "cuModuleLoadData:200");
    expect_free(RUN("--only", "conditional_ptx"), 1,
                "no answer: cuModuleLoadData: CUDA_ERROR_FAKE, error 200", "");
    use(new_driver, "cuGraphAddNode_v2:801");
    expect_free(RUN("--only", "conditional_cubin"), 1,
                "no answer: cuGraphAddNode_v2: CUDA_ERROR_FAKE, error 801", "");
    use(new_driver, "cuGraphLaunch:719");
    expect_free(RUN("--only", "nested_if"), 1,
                "no answer: cuGraphLaunch: CUDA_ERROR_FAKE, error 719", "");
}

/* The fake's __expf is one step off; its other functions are the C library's. */
static void counts_steps_of_the_last_place(void **state)
{
    (void)state;
    use(new_driver, NULL);
    struct process_result result = RUN("--only", "math");
    expect(&result, 0, "exp_fast, card against CPU", "");
    const char *fast = strstr(result.out, "exp_fast, card against CPU");
    const char *sine = strstr(result.out, "sinf, card against CPU");
    assert_float_equal(strtod(fast + strlen("exp_fast, card against CPU"), NULL), 1, 1e-6);
    assert_float_equal(strtod(sine + strlen("sinf, card against CPU"), NULL), 0, 1e-6);
    process_result_free(&result);
}

static void the_script_says_how_it_is_used(void **state)
{
    (void)state;
    use("/nowhere", NULL);
    expect_free(SCRIPT("--parts", "tests,nothing"), 2, "", "usage: bench/on-gpu.sh");
    expect_free(SCRIPT("--pack", "/nowhere/card.tar.xz"), 2, "", "usage: bench/on-gpu.sh");
    expect_free(SCRIPT("90", "90"), 2, "", "usage: bench/on-gpu.sh");
}

/*
 * The script for a machine with a card, on one without: a line per part, and a status of its own.
 */
static void the_script_lives_without_a_card(void **state)
{
    (void)state;
    char *folder = temporary_folder();
    use("/nowhere", NULL);
    setenv("OUT", folder, 1);
    struct process_result result = SCRIPT("--probe", "90");
    expect(&result, 3, "no card: cuda_probe: nothing measured: no CUDA driver", "");
    assert_non_null(strstr(result.out, "skipped: cuda_probe: basic.cu: no NVRTC"));
    static const char *const parts[] = {"tests", "sanitizer", "bench", "peers", "probe"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        char line[80];
        snprintf(line, sizeof line, "%-30s skipped: no card", parts[i]);
        assert_non_null(strstr(result.out, line));
    }
    process_result_free(&result);
    unsetenv("OUT");
    remove_folder(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tells_what_it_asks),
        cmocka_unit_test(says_that_there_is_no_driver),
        cmocka_unit_test(says_that_there_is_no_device),
        cmocka_unit_test(measures),
        cmocka_unit_test(survives_what_fails),
        cmocka_unit_test(lives_with_an_old_driver),
        cmocka_unit_test(tells_what_conditions_need),
        cmocka_unit_test(counts_steps_of_the_last_place),
        cmocka_unit_test(tells_what_libraries_capture),
        cmocka_unit_test(the_script_says_how_it_is_used),
        cmocka_unit_test(the_script_lives_without_a_card),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
