/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs kernels that codegen/clike printed for a card on the CPU: their text is the same in all
 * dialects, so what stands before it becomes the shim's prelude, and the launch's threads
 * (fake_grid.h). What their parameters are is read in their text.
 */
#include <ctype.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/dtype.h"
#include "codegen/clike/clike.h"
#include "tests/cuda/fake.h"

/* ---- Texts ----------------------------------------------------------------------------------- */

bool fake_is_printed(const char *text)
{
    return strstr(text, CLIKE_PRELUDE_END) != NULL;
}

/* Types whose operations a text has, and maybe others. */
static dtype_mask types_of(const char *functions)
{
    dtype_mask types = 0;
    for (int i = 1; i < TSSA_DTYPE_COUNT; i++) {
        char prefix[16];
        snprintf(prefix, sizeof prefix, "%s_", dtype_info((tssa_dtype)i)->ir_name);
        if (strstr(functions, prefix))
            types |= DTYPE_BIT(i);
    }
    return types;
}

static bool meets(const char *functions)
{
    return strstr(functions, "MEET") || strstr(functions, "END_STAGE") ||
           strstr(functions, "SHARED(");
}

/* How many numbers the text's macro AXES is. */
static unsigned count_axes(const char *functions)
{
    static const char head[] = "#define AXES(d)";
    const char *at = strstr(functions, head);
    unsigned n = at != NULL;
    for (; at && *at != '\n'; at++)
        n += *at == ',';
    return n;
}

/* The parameters of the macro LIST, as it was last defined before `at`; NULL: it was not. */
static const char *find_list(const char *at, const char *functions)
{
    static const char head[] = "#define LIST(i)";
    const char *last = NULL, *next = functions;
    while ((next = strstr(next, head)) && next < at)
        last = next += strlen(head);
    return last;
}

static bool is_between(char c)
{
    return isspace((unsigned char)c) || c == '\\';
}

static const char *print_given(const char *at, const char *functions, unsigned *n,
                               struct text *text);

/* Those of a list: up to the end of the macro's line, which goes on behind a backslash. */
static void print_list(const char *at, const char *functions, unsigned *n, struct text *text)
{
    const char *end = at;
    while (*end && (*end != '\n' || end[-1] == '\\'))
        end++;
    while (at && at < end)
        at = print_given(at, functions, n, text);
}

/* One parameter, from `at` on, or as many as AXES or a LIST are; where the next one begins, or NULL
 * at the end. */
static const char *print_given(const char *at, const char *functions, unsigned *n,
                               struct text *text)
{
    int depth = 0;
    while (is_between(*at))
        at++;
    const bool is_list = strncmp(at, "LIST(", 5) == 0;
    if (is_list && find_list(at, functions))
        print_list(find_list(at, functions), functions, n, text);
    const bool is_number = strncmp(at, "int64_t", 7) == 0, is_axes = strncmp(at, "AXES(", 5) == 0;
    for (unsigned left = is_axes ? count_axes(functions) : !is_list; left; left--)
        text_printf(text, is_number || is_axes ? ", p[%u]" : ", fake_memory(p[%u])", (*n)++);
    for (; *at && (depth || (*at != ',' && *at != ')')); at++)
        depth += (*at == '(') - (*at == ')');
    return *at == ',' ? at + 1 : NULL;
}

/* What runs kernel number `index`; how many parameters it has, 0: there is none. */
static unsigned print_launch(const char *functions, unsigned index, struct text *text)
{
    char head[32];
    unsigned n = 0;
    snprintf(head, sizeof head, " k%u(", index);
    const char *at = strstr(functions, head);
    if (!at)
        return 0;
    at += strlen(head);
    text_printf(text, "FAKE_LAUNCH(k%u", index);
    while (at)
        at = print_given(at, functions, &n, text);
    text_puts(text, ")\n");
    return n;
}

static bool print(const char *source, struct text *text, struct fake_code *code)
{
    const char *functions = strstr(source, CLIKE_PRELUDE_END);
    unsigned n;
    clike_print_prelude(CLIKE_SHIM, types_of(functions), text);
    text_printf(text, "#define FAKE_MEETS %d\n#include \"tests/cuda/fake_grid.h\"\n",
                meets(functions));
    text_puts(text, functions);
    while ((n = print_launch(functions, code->n, text))) {
        code->kernels = realloc(code->kernels, (code->n + 1) * sizeof *code->kernels);
        if (!code->kernels)
            abort();
        code->kernels[code->n] = (struct CUfunc_st){.n = n};
        code->n++;
    }
    return code->n && !text->failed;
}

/* ---- Code ------------------------------------------------------------------------------------ */

/* What is wrong with memory, or has no meaning in C, ends the test; what a block shares is a
 * section of its own. */
#if defined(__SANITIZE_ADDRESS__) && !defined(__clang__)
#define SANITIZER                                                                                  \
    "-fsanitize=address,undefined -fno-sanitize-recover=all -fsanitize-sections=fake_shared"
#elif defined(__SANITIZE_ADDRESS__)
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

static bool build(const struct text *text, const char *source, const char *library)
{
    char command[1024];
    FILE *file = fopen(source, "w");
    if (!file)
        return false;
    const bool written = fwrite(text->data, 1, text->size, file) == text->size;
    if (fclose(file) != 0 || !written)
        return false;
    snprintf(command, sizeof command, "%s -std=c17 -O1 -shared -fPIC -I%s %s %s %s -o %s %s -lm",
             TSSA_COMPILER, TSSA_SOURCE_DIR, CLIKE_SHIM_OPTIONS, SANITIZER, fma_option(), library,
             source);
    return system(command) == 0;
}

static void *open_built(const struct text *text)
{
    char folder[] = "/tmp/tssa_fake_XXXXXX", source[64], library[64];
    void *opened = NULL;
    if (!mkdtemp(folder))
        return NULL;
    snprintf(source, sizeof source, "%s/kernels.c", folder);
    snprintf(library, sizeof library, "%s/kernels.so", folder);
    if (build(text, source, library))
        opened = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    unlink(source);
    unlink(library);
    rmdir(folder);
    return opened;
}

static bool find_functions(void *library, struct fake_code *code)
{
    for (unsigned i = 0; i < code->n; i++) {
        struct CUfunc_st *kernel = &code->kernels[i];
        char name[32];
        snprintf(name, sizeof name, "k%u_launch", i);
        void *symbol = dlsym(library, name);
        if (!symbol)
            return false;
        memcpy(&kernel->launch, &symbol, sizeof symbol);
        snprintf(kernel->printed_name, sizeof kernel->printed_name, "k%u", i);
        kernel->name = kernel->printed_name;
    }
    return true;
}

static bool compile(const char *source, struct fake_code *code)
{
    struct text text;
    text_init(&text, &allocator_default);
    void *library = print(source, &text, code) ? open_built(&text) : NULL;
    text_free(&text);
    return library && find_functions(library, code);
}

/* A text that was compiled, in a list. */
struct compiled {
    struct compiled *next;
    struct fake_code code;
    char source[];
};

const struct fake_code *fake_compile(const char *source)
{
    static struct compiled *all;
    const struct compiled *known = all;
    while (known && strcmp(known->source, source) != 0)
        known = known->next;
    if (known)
        return &known->code;
    struct compiled *made = fake_hold(sizeof *made + strlen(source) + 1);
    strcpy(made->source, source);
    if (!compile(source, &made->code))
        return NULL;
    made->next = all;
    all = made;
    return &made->code;
}
