/* SPDX-License-Identifier: Apache-2.0 */
#include "common/shim_device.h"

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

#include "device/cpu/compile.h"

/* ---- Kernels --------------------------------------------------------------------------------- */

#define MAX_KERNELS 8192
#define SHIM_KERNELS 128 /* in one file */
#define CUDA_KERNELS 24  /* as CUDA C */

/* A kernel, or those of a launch. Equal ones are there once. */
static struct {
    uint32_t n;
    struct gir_kernel **parts;
    struct cpu_code code;
    codegen_run wide; /* of a grid */
} kernels[MAX_KERNELS];
static uint32_t n_kernels, n_refused;

static bool is_same(uint32_t i, const struct gir_kernel *const *parts, uint32_t n)
{
    bool same = kernels[i].n == n;
    for (uint32_t k = 0; same && k < n; k++)
        same = kernels[i].parts[k]->size == parts[k]->size &&
               memcmp(kernels[i].parts[k], parts[k], parts[k]->size) == 0;
    return same;
}

static uint32_t find_launch(const struct gir_kernel *const *parts, uint32_t n)
{
    uint32_t i = 0;
    while (i < n_kernels && !is_same(i, parts, n))
        i++;
    return i;
}

static uint32_t find_kernel(const struct gir_kernel *kernel)
{
    return find_launch(&kernel, 1);
}

void shim_add(const struct gir_kernel *const *parts, uint32_t n)
{
    const uint32_t i = find_launch(parts, n);
    for (uint32_t k = 0; k < n; k++)
        if (clike_refuses(parts[k])) {
            n_refused++;
            return;
        }
    if (i < n_kernels)
        return;
    assert_true(n_kernels < MAX_KERNELS);
    kernels[i].n = n;
    kernels[i].parts = malloc(n * sizeof *kernels[i].parts);
    assert_non_null(kernels[i].parts);
    for (uint32_t k = 0; k < n; k++) {
        kernels[i].parts[k] = malloc(parts[k]->size);
        assert_non_null(kernels[i].parts[k]);
        memcpy(kernels[i].parts[k], parts[k], parts[k]->size);
    }
    n_kernels++;
}

codegen_run shim_code(const struct gir_kernel *const *parts, uint32_t n, enum clike_width width)
{
    const uint32_t i = find_launch(parts, n);
    if (i == n_kernels)
        return NULL;
    return width == CLIKE_WIDE ? kernels[i].wide : kernels[i].code.run;
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
            shim_add(&one->kernel, 1);
        one->code = i < n_kernels && kernels[i].code.run ? &kernels[i].code : NULL;
        strcpy(one->message, "later");
    }
    return NULL;
}

const struct device *shim_device(void)
{
    static struct device device;
    if (!device.name) {
        device = *device_find(NULL);
        device.compile = compile_later;
    }
    return &device;
}

struct device_context *shim_context(void)
{
    static struct device_context context;
    if (!context.device)
        device_context_open(&context, shim_device(), &allocator_default, NULL);
    return &context;
}

uint32_t shim_count(void)
{
    return n_kernels;
}

uint32_t shim_refused(void)
{
    return n_refused;
}

/* ---- Code ------------------------------------------------------------------------------------ */

static char folder[] = "/tmp/tssa_clike_XXXXXX";

static void print_launch(uint32_t i, enum clike_dialect dialect, enum clike_width width,
                         struct text *text)
{
    char name[32];
    snprintf(name, sizeof name, "%c%u", width == CLIKE_WIDE ? 'w' : 'k', (unsigned)i);
    assert_true(clike_print_launch((const struct gir_kernel *const *)kernels[i].parts, kernels[i].n,
                                   dialect, width, name, text));
}

static bool is_grid(uint32_t i)
{
    return kernels[i].parts[0]->grid;
}

void shim_print(enum clike_dialect dialect, uint32_t begin, uint32_t end, uint32_t step,
                struct text *text)
{
    dtype_mask types = 0;
    for (uint32_t i = begin; i < end; i += step)
        for (uint32_t k = 0; k < kernels[i].n; k++)
            types |= clike_types(kernels[i].parts[k]);
    assert_true(clike_print_prelude(dialect, types, text));
    for (uint32_t i = begin; i < end; i += step) {
        char name[32];
        snprintf(name, sizeof name, "k%u", (unsigned)i);
        if (is_grid(i)) {
            print_launch(i, dialect, CLIKE_NARROW, text);
            print_launch(i, dialect, CLIKE_WIDE, text);
        } else {
            assert_true(clike_print(kernels[i].parts[0], dialect, name, text));
        }
    }
}

/* What is wrong with memory, or has no meaning in C, ends the test. */
#ifdef __SANITIZE_ADDRESS__
#define SANITIZER "-fsanitize=address,undefined -fno-sanitize-recover=all"
#else
#define SANITIZER ""
#endif

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
    shim_print(CLIKE_SHIM, shim->begin, shim->end, 1, &text);
    snprintf(shim->source, sizeof shim->source, "%s/%u.c", folder, (unsigned)shim->begin);
    snprintf(shim->library, sizeof shim->library, "%s/%u.so", folder, (unsigned)shim->begin);
    FILE *file = fopen(shim->source, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text.data, 1, text.size, file), text.size);
    assert_int_equal(fclose(file), 0);
    text_free(&text);
    snprintf(command, sizeof command, "%s -std=c17 -O1 -shared -fPIC %s %s %s -o %s %s -lm",
             TSSA_COMPILER, CLIKE_SHIM_OPTIONS, SANITIZER, fma_option(), shim->library,
             shim->source);
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

static codegen_run code_of(const struct shim *shim, char letter, uint32_t i)
{
    char name[32];
    codegen_run code;
    snprintf(name, sizeof name, "%c%u_run", letter, (unsigned)i);
    void *symbol = symbol_of(shim, name);
    memcpy(&code, &symbol, sizeof symbol);
    return code;
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
        kernels[i].code.run = code_of(shim, 'k', i);
        kernels[i].wide = is_grid(i) ? code_of(shim, 'w', i) : NULL;
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

void shim_compile(void)
{
    assert_non_null(mkdtemp(folder));
    for (uint32_t i = 0; i < n_kernels; i += SHIM_KERNELS) {
        shims[n_shims].begin = i;
        shims[n_shims].end = i + SHIM_KERNELS < n_kernels ? i + SHIM_KERNELS : n_kernels;
        start_shim(&shims[n_shims++]);
    }
    for (uint32_t i = 0; i < n_shims; i++)
        open_shim(&shims[i]);
}

void shim_order(int order)
{
    for (uint32_t i = 0; i < n_shims; i++)
        shims[i].set_order(order);
}

void shim_close(void)
{
    for (uint32_t i = 0; i < n_shims; i++)
        close_shim(&shims[i]);
    rmdir(folder);
    for (uint32_t i = 0; i < n_kernels; i++) {
        for (uint32_t k = 0; k < kernels[i].n; k++)
            free(kernels[i].parts[k]);
        free(kernels[i].parts);
    }
}
