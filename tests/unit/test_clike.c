/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels as text in languages like C. The text of a few is golden. Kernels of random regions are
 * compiled as the shim, all of them at once by the C compiler that has built this, and give the
 * interpreter's bits in three orders of threads; the same kernels compile as CUDA C, where NVRTC is
 * installed.
 */
/* ctest-labels: random */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "codegen/clike/clike.h"
#include "common/gir_build.h"
#include "common/kernel_check.h"
#include "common/no_error.h"
#include "common/op_run.h"
#include "common/random_programs.h"
#include "common/test_device.h"
#include "device/cpu/compile.h"
#include "device/cuda/nvrtc.h"
#include "runtime/compile.h"

/* ---- Texts ----------------------------------------------------------------------------------- */

/* tests/golden/clike/NAME.expected is the kernel's text, in both dialects: they differ behind it.
 */
static void expect_kernel(const struct gir_kernel *kernel, const char *name)
{
    char path[256], expected[8192] = "";
    struct text text;
    text_init(&text, &allocator_default);
    snprintf(path, sizeof path, TSSA_SOURCE_DIR "/tests/golden/clike/%s.expected", name);
    assert_null(clike_refuses(kernel));
    assert_true(clike_print(kernel, CLIKE_SHIM, name, &text));
    FILE *file = fopen(path, getenv("TSSA_UPDATE_GOLDEN") ? "w+" : "r");
    assert_non_null(file);
    if (getenv("TSSA_UPDATE_GOLDEN"))
        fwrite(text.data, 1, text.size, file);
    rewind(file);
    expected[fread(expected, 1, sizeof expected - 1, file)] = '\0';
    fclose(file);
    assert_string_equal(text_string(&text), expected);
    text_clear(&text);
    assert_true(clike_print(kernel, CLIKE_CUDA, name, &text));
    *strstr(expected, "LAUNCHER") = '\0';
    assert_string_equal(text_string(&text), expected);
    text_free(&text);
}

/* Of a fuse op without accesses. */
static void expect_text(const char *source, const char *name)
{
    struct gir_space space;
    const char *why;
    struct ir_graph *graph = gir_parse_graph(source);
    struct gir_kernel *kernel = gir_build_kernel(graph, &space, &why);
    assert_non_null(kernel);
    expect_kernel(kernel, name);
    allocator_free(&allocator_default, kernel);
    ir_graph_free(graph);
}

/* Of one with accesses, and of one part. */
static void expect_part(const char *source, const char *name)
{
    const char *why;
    struct ir_graph *graph = gir_parse_graph(source);
    struct gir_parts *parts = gir_build_parts(graph, &why);
    assert_non_null(parts);
    assert_int_equal(parts->n, 1);
    expect_kernel(parts->parts[0].kernel, name);
    gir_parts_free(parts);
    ir_graph_free(graph);
}

static void texts(void **state)
{
    (void)state;
    /* What moves and what stays, in place, two results, truth values. */
    expect_text(FUSED_GRAPH("%x: f32[N, C], %s: f32[N, 1]", "%x, %s",
                            "%p: f32[N, C], %q: f32[N, 1]) { %m = Mul(%p, %q) %e = Exp(%m) "
                            "%n = IsNaN(%e) %l = Less(%e, %q) %i = And(%n, %l) return(%m, %i)",
                            "%y, %z"),
                "elements");
    /* A column, rows by number, conversions. */
    expect_part(FUSED_GRAPH("%x: f16[R, 2], %i: i64[N]", "%x, %i",
                            "%p: f16[R, 2], %k: i64[N]) { "
                            "%a = access(%p, %k) {rule = [select(1, 1), gather(0, $0)]} "
                            "%s = Sqrt(%a) %c = Cast(%s) {to = 3} return(%c)",
                            "%y"),
                "lookup");
    expect_text(
        FUSED_GRAPH("%x: f32[N, C]", "%x", "%p: f32[N, C]) { %s = Softmax(%p) return(%s)", "%y"),
        "softmax");
    expect_part(FUSED_GRAPH("%x: f64[N, 40], %k: i64[]", "%x, %k",
                            "%p: f64[N, 40], %q: i64[]) { "
                            "%k0 = Constant() {value = i64[1] [0]} %u = Trilu(%p, %q) {upper = 0} "
                            "%m = ReduceMean(%u, %k0) return(%m)",
                            "%y"),
                "columns");
}

/* What is not known has no text, and a reason. */
static void refuses(void **state)
{
    (void)state;
    struct {
        struct gir_kernel kernel;
        struct gir_code code;
    } unknown = {{.magic = GIR_MAGIC, .size = sizeof unknown, .n_codes = 1},
                 {.op = GIR_OP_COUNT, .type = TSSA_FLOAT}};
    assert_string_equal(clike_refuses(&unknown.kernel), "a step of the kernel has no form in C");
}

/* ---- Kernels of random regions --------------------------------------------------------------- */

#define MAX_KERNELS 8192
#define SHIM_KERNELS 128 /* in one file */
#define CUDA_KERNELS 24  /* as CUDA C */

/* Equal ones are there once. */
static struct {
    struct gir_kernel *kernel;
    struct cpu_code code;
} kernels[MAX_KERNELS];
static uint32_t n_kernels, n_refused;

static uint32_t find_kernel(const struct gir_kernel *kernel)
{
    uint32_t i = 0;
    while (i < n_kernels && (kernels[i].kernel->size != kernel->size ||
                             memcmp(kernels[i].kernel, kernel, kernel->size) != 0))
        i++;
    return i;
}

static void add_kernel(const struct gir_kernel *kernel)
{
    const uint32_t i = find_kernel(kernel);
    if (clike_refuses(kernel)) {
        n_refused++;
        return;
    }
    if (i < n_kernels)
        return;
    assert_true(n_kernels < MAX_KERNELS);
    kernels[i].kernel = malloc(kernel->size);
    assert_non_null(kernels[i].kernel);
    memcpy(kernels[i].kernel, kernel, kernel->size);
    n_kernels++;
}

/* struct device.compile: at first there is no code, but kernels are kept in mind. */
static tssa_status *compile_later(struct device_context *context, struct device_compiling *asked)
{
    (void)context;
    asked->stopped = false;
    asked->cache_problem[0] = '\0';
    for (uint32_t k = 0; k < asked->n; k++) {
        struct device_kernel *one = &asked->kernels[k];
        const uint32_t i = find_kernel(one->kernel);
        if (i == n_kernels)
            add_kernel(one->kernel);
        one->code = i < n_kernels && kernels[i].code.run ? &kernels[i].code : NULL;
        strcpy(one->message, "later");
    }
    return NULL;
}

/* The host, with that instead of its own. */
static struct device_context *shim_device(void)
{
    static struct device device;
    static struct device_context context;
    if (context.device)
        return &context;
    device = *device_find(NULL);
    device.compile = compile_later;
    device.close = NULL;
    device_context_open(&context, &device, &allocator_default, NULL);
    return &context;
}

static unsigned long n_programs(enum kernel_kind kind)
{
    static const unsigned long usual[KERNEL_KINDS] = {80, 80, 50, 40, 30};
    uint64_t seed;
    return programs_seed(&seed) ? 1 : programs_count(usual[kind]);
}

static uint64_t first_program(void)
{
    uint64_t seed;
    return programs_seed(&seed) ? seed : 0;
}

static void find_kernels(void)
{
    for (int kind = 0; kind < KERNEL_KINDS; kind++)
        for (unsigned long i = 0; i < n_programs(kind); i++) {
            char *text = kernel_text(kind, first_program() + i);
            struct compile_report report;
            struct ir_graph *graph = kernel_parse(text);
            no_error(compile_fused(graph, shim_device(), -1, &report));
            ir_graph_free(graph);
            free(text);
        }
}

/* ---- The shim -------------------------------------------------------------------------------- */

static char folder[] = "/tmp/tssa_clike_XXXXXX";

/* Every `step`th of some. */
static void print_kernels(enum clike_dialect dialect, uint32_t begin, uint32_t end, uint32_t step,
                          struct text *text)
{
    dtype_mask types = 0;
    for (uint32_t i = begin; i < end; i += step)
        types |= clike_types(kernels[i].kernel);
    assert_true(clike_print_prelude(dialect, types, text));
    for (uint32_t i = begin; i < end; i += step) {
        char name[32];
        snprintf(name, sizeof name, "k%u", (unsigned)i);
        assert_true(clike_print(kernels[i].kernel, dialect, name, text));
    }
}

/* gcc and clang have it as an instruction; elsewhere libm's is exact as well, and slow. */
static const char *fma_option(void)
{
#if defined(__x86_64__)
    return __builtin_cpu_supports("fma") ? "-mfma" : "";
#else
    return "";
#endif
}

/* A file of kernels, and the library that it becomes. */
struct shim {
    uint32_t begin, end;
    char source[64], library[64];
    FILE *compiler;
    void *handle;
    void (*set_order)(int order);
};

static struct shim shims[MAX_KERNELS / SHIM_KERNELS];
static uint32_t n_shims;

static void start_shim(struct shim *shim)
{
    char command[512];
    struct text text;
    text_init(&text, &allocator_default);
    print_kernels(CLIKE_SHIM, shim->begin, shim->end, 1, &text);
    snprintf(shim->source, sizeof shim->source, "%s/%u.c", folder, (unsigned)shim->begin);
    snprintf(shim->library, sizeof shim->library, "%s/%u.so", folder, (unsigned)shim->begin);
    FILE *file = fopen(shim->source, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text.data, 1, text.size, file), text.size);
    assert_int_equal(fclose(file), 0);
    text_free(&text);
    snprintf(command, sizeof command, "%s -std=c17 -O1 -shared -fPIC %s %s -o %s %s -lm",
             TSSA_COMPILER, CLIKE_SHIM_OPTIONS, fma_option(), shim->library, shim->source);
    shim->compiler = popen(command, "r");
    assert_non_null(shim->compiler);
}

static void *symbol_of(const struct shim *shim, const char *name)
{
    void *symbol = dlsym(shim->handle, name);
    if (!symbol)
        fail_msg("%s", dlerror());
    return symbol;
}

static void open_shim(struct shim *shim)
{
    const int status = pclose(shim->compiler);
    shim->compiler = NULL;
    assert_int_equal(status, 0);
    shim->handle = dlopen(shim->library, RTLD_NOW | RTLD_LOCAL);
    if (!shim->handle)
        fail_msg("%s", dlerror());
    void *symbol = symbol_of(shim, "shim_set_order");
    memcpy(&shim->set_order, &symbol, sizeof symbol);
    for (uint32_t i = shim->begin; i < shim->end; i++) {
        char name[32];
        snprintf(name, sizeof name, "k%u_run", (unsigned)i);
        symbol = symbol_of(shim, name);
        memcpy(&kernels[i].code.run, &symbol, sizeof symbol);
    }
}

static void close_shim(struct shim *shim)
{
    if (shim->compiler)
        pclose(shim->compiler);
    if (shim->handle)
        dlclose(shim->handle);
    unlink(shim->source);
    unlink(shim->library);
}

/* Three orders of threads and lanes: forward, backward, shuffled. */
static void random_kernels(void **state)
{
    (void)state;
    unsigned long compiled = 0, n = 0;
    for (uint32_t i = 0; i < n_kernels; i += SHIM_KERNELS) {
        shims[n_shims].begin = i;
        shims[n_shims].end = i + SHIM_KERNELS < n_kernels ? i + SHIM_KERNELS : n_kernels;
        start_shim(&shims[n_shims++]);
    }
    for (uint32_t i = 0; i < n_shims; i++)
        open_shim(&shims[i]);
    for (int order = 0; order < 3; order++) {
        for (uint32_t i = 0; i < n_shims; i++)
            shims[i].set_order(order);
        for (int kind = 0; kind < KERNEL_KINDS; kind++)
            for (unsigned long i = 0; i < n_programs(kind); i++, n++)
                compiled += kernel_check(kind, first_program() + i, shim_device());
    }
    print_message("%lu of %lu runs by %u kernels; %u were refused\n", compiled, n,
                  (unsigned)n_kernels, (unsigned)n_refused);
    assert_true(n < 60 || compiled > n / 2);
}

/* ---- CUDA C ---------------------------------------------------------------------------------- */

/* Some of all kinds: it takes a while. */
static void compiles_as_cuda(void **state)
{
    (void)state;
#ifdef __SANITIZE_ADDRESS__ /* what NVRTC keeps is not given back */
    skip();
#endif
    static const int architectures[] = {75, 80, 90, 100};
    struct text text;
    text_init(&text, &allocator_default);
    print_kernels(CLIKE_CUDA, 0, n_kernels, 1 + n_kernels / CUDA_KERNELS, &text);
    const struct nvrtc_source source = {text_string(&text), "kernels.cu", {CLIKE_CUDA_OPTIONS}};
    for (size_t i = 0; i < sizeof architectures / sizeof *architectures; i++) {
        struct image image;
        tssa_status *status =
            nvrtc_compile(&allocator_default, &source, architectures[i], IMAGE_CUBIN, &image);
        if (tssa_status_code(status) == TSSA_UNSUPPORTED) {
            print_message("nothing is compiled as CUDA C: %s\n", tssa_status_message(status));
            tssa_status_free(status);
            text_free(&text);
            skip();
        }
        no_error(status);
        allocator_free(&allocator_default, image.data);
    }
    text_free(&text);
}

static int prepare(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(folder));
    find_kernels();
    return 0;
}

static int clean_up(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < n_shims; i++)
        close_shim(&shims[i]);
    rmdir(folder);
    for (uint32_t i = 0; i < n_kernels; i++)
        free(kernels[i].kernel);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(texts), cmocka_unit_test(refuses),
                                       cmocka_unit_test(random_kernels),
                                       cmocka_unit_test(compiles_as_cuda)};
    return cmocka_run_group_tests(tests, prepare, clean_up);
}
