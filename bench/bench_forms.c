/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Is the form that gir/form.h chooses for a kernel's code the best one? Kernels of rows of many
 * lengths, planes, columns and elements are compiled in every form that there is, rows along and
 * across lanes, of several lanes at a time, and called on what a cache holds; forms take turns, and
 * the least of several times counts. What loses by more than a tenth is printed as a row of a
 * table; all of it by `bench_forms all`. TSSA_ISA in the environment: at a lower level of
 * instructions. Best on one core: taskset -c 1.
 */
#include <math.h>
#include <string.h>

#include "base/isa.h"
#include "base/text.h"
#include "bench/measure.h"
#include "device/cpu/compile.h"
#include "device/devices.h"
#include "gir/form.h"
#include "gir/fuse.h"
#include "ir/infer.h"
#include "ir/parser.h"
#include "runtime/executor.h"

#define COUNT 65536 /* elements of a call */
#define LONGEST 4096
#define ROUNDS 15
#define LEAST_NS 20000 /* of a round */
#define MAX_FORMS 12
#define LOSS 1.1

struct subject {
    const char *name;
    const char *type, *others; /* of what is in rows, and of what all rows share; NULL: nothing */
    const char *body;          /* of %a, %b and %c */
    bool planes;               /* rows lie side by side */
};

#define LAST "%k = Constant() {value = i64[1] [-1]} "
#define SOFTMAX "%y = Softmax(%a) {axis = -1} return(%y)"
#define SUM LAST "%y = ReduceSum(%a, %k) return(%y)"
#define MAX LAST "%y = ReduceMax(%a, %k) return(%y)"
#define ARGMAX "%y = ArgMax(%a) {axis = -1, keepdims = 0} return(%y)"

static const struct subject subjects[] = {
    {"softmax", "f32", NULL, SOFTMAX, false},
    {"softmax + max", "f32", NULL,
     LAST "%s = Softmax(%a) {axis = -1} %y = ReduceMax(%s, %k) {keepdims = 0} return(%y)", false},
    {"sum", "f32", NULL, SUM, false},
    {"max", "f32", NULL, MAX, false},
    {"norm", "f32", NULL, LAST "%y = ReduceL2(%a, %k) return(%y)", false},
    {"log sum exp", "f32", NULL, LAST "%y = ReduceLogSumExp(%a, %k) return(%y)", false},
    {"argmax", "f32", NULL, ARGMAX, false},
    {"layer norm", "f32", "f32", "%y = LayerNormalization(%a, %b, %c) {axis = -1} return(%y)",
     false},
    {"softmax of f64", "f64", NULL, SOFTMAX, false},
    {"sum of f64", "f64", NULL, SUM, false},
    {"max of f64", "f64", NULL, MAX, false},
    {"argmax of f64", "f64", NULL, ARGMAX, false},
    {"softmax of f16", "f16", NULL, SOFTMAX, false},
    {"sum of f16", "f16", NULL, SUM, false},
    {"max of f16", "f16", NULL, MAX, false},
    {"softmax of planes", "f32", NULL, SOFTMAX, true},
    {"sum of planes", "f32", NULL, SUM, true},
    {"argmax of planes", "f32", NULL, ARGMAX, true},
};

static const int64_t lengths[] = {2,  4,   6,   8,   10,  12,  13,   16,   18,  20,
                                  21, 24,  28,  31,  32,  33,  40,   48,   64,  81,
                                  96, 100, 128, 200, 256, 512, 1000, 1024, 4096};

/* And calls of few rows. */
static const int64_t few[] = {4, 8, 12, 16, 24, 40}, short_lengths[] = {4, 12, 20, 24, 40};

#define LENGTH_OF(array) (sizeof(array) / sizeof *(array))

/* ---- Kernels --------------------------------------------------------------------------------- */

static unsigned register_bytes(void)
{
    return isa_level() == ISA_V4 ? 64 : isa_level() == ISA_V3 ? 32 : 16;
}

static struct ir_graph *parse(const struct subject *subject)
{
    struct text text;
    struct ir_graph *graph;
    text_init(&text, &allocator_default);
    text_puts(&text, "graph @bench opset(\"\": 18) ir_version(8) (");
    text_printf(&text, "%%p: %s[64, 32]", subject->type);
    if (subject->others)
        text_printf(&text, ", %%q: %s[32], %%r: %s[32]", subject->others, subject->others);
    text_printf(&text, ") -> (%%z) {\n%%z = fuse(%%p%s) {\nbody(%%a: %s[64, 32]",
                subject->others ? ", %q, %r" : "", subject->type);
    if (subject->others)
        text_printf(&text, ", %%b: %s[32], %%c: %s[32]", subject->others, subject->others);
    text_printf(&text, ") {\n%s\n}\n}\nreturn(%%z)\n}\n", subject->body);
    check(ir_parse(&allocator_default, text_string(&text), text.size, &graph));
    check(ir_infer_graph(graph));
    text_free(&text);
    return graph;
}

static tssa_status *find_fuse(void *context, struct ir_op *op)
{
    if (op->info->id == IR_OP_fuse)
        *(struct ir_op **)context = op;
    return NULL;
}

/* No result lies on what is strided. */
static void make_planes(struct gir_kernel *kernel)
{
    struct gir_arg *args = (struct gir_arg *)(kernel + 1);
    args->moves = GIR_STRIDED;
    for (uint32_t i = 1; i < kernel->n_args; i++)
        args[i].may_lie_on = 0;
}

/* NULL: it is none, which is said. */
static struct gir_kernel *build(const struct subject *subject)
{
    struct ir_graph *graph = parse(subject);
    struct ir_op *fuse = NULL;
    struct gir_fused built;
    const char *why;
    check(ir_block_walk(graph->body, find_fuse, &fuse));
    check(gir_build_fuse(fuse, &allocator_default, &built, &why));
    struct gir_kernel *kernel = built.kernel;
    built.kernel = NULL;
    gir_fused_free(&built);
    ir_graph_free(graph);
    if (!kernel)
        printf("%s is no kernel: %s\n", subject->name, why);
    else if (subject->planes)
        make_planes(kernel);
    return kernel;
}

/* A form of a subject's code. */
struct form {
    struct gir_kernel *kernel;
    const struct cpu_code *code; /* NULL: there is none */
    double least;
};

static struct form compile(const struct gir_kernel *kernel, uint32_t form, uint32_t lanes,
                           struct device_context *device)
{
    struct form made = {.kernel = malloc(kernel->size)};
    struct device_kernel asked = {0};
    struct device_compiling compiling = {.kernels = &asked, .n = 1, .stop = -1};
    if (!made.kernel)
        exit(1);
    memcpy(made.kernel, kernel, kernel->size);
    made.kernel->form = form;
    made.kernel->lanes = lanes;
    asked.kernel = made.kernel;
    check(gir_check(made.kernel, made.kernel->size));
    check(cpu_compile(device, &compiling));
    made.code = asked.code;
    return made;
}

/* ---- Calls ----------------------------------------------------------------------------------- */

struct data {
    char *x, *y, *others, *scratch;
};

struct call {
    void *args[GIR_MAX_ARGS];
    int64_t steps[4 * GIR_MAX_ARGS];
    int64_t rows, length;
};

/* The first argument has rows of its own, so have results; other operands are the same in all. */
static void prepare(const struct subject *subject, const struct gir_kernel *kernel,
                    const struct data *data, struct call *call)
{
    const int64_t length = call->length;
    for (uint32_t i = 0; i < kernel->n_args; i++) {
        const struct gir_arg *arg = &gir_args(kernel)[i];
        const int64_t width = gir_width((tssa_dtype)arg->dtype);
        call->args[i] = arg->is_result ? data->y : i ? data->others : data->x;
        call->steps[i] = !arg->is_result && i ? 0 : arg->moves ? width * length : width;
        if (i == 0 && subject->planes) {
            call->steps[i] = width;
            call->steps[kernel->n_args + i] = width * call->rows;
        }
    }
}

static double time_call(const struct form *form, const struct call *call, const struct data *data,
                        int times)
{
    const uint64_t start = executor_now();
    for (int i = 0; i < times; i++)
        form->code->run(call->args, call->steps, call->rows, call->length, &form->code->calls,
                        data->scratch);
    return (double)(executor_now() - start) / 1e3 / times;
}

static int times_of(const struct form *form, const struct call *call, const struct data *data)
{
    time_call(form, call, data, 1);
    const double once = time_call(form, call, data, 1) * 1e3;
    return once < LEAST_NS ? (int)(LEAST_NS / (once + 1)) + 1 : 1;
}

/* ---- Tables ---------------------------------------------------------------------------------- */

/* In which form a call is run. */
static enum gir_form form_of(const struct gir_kernel *kernel, const struct call *call)
{
    struct gir_when when[GIR_MAX_CODES];
    gir_find_passes(kernel, when);
    const struct gir_across across = gir_find_across(kernel, when, register_bytes());
    return gir_form_of(kernel, &across, (double)call->rows, (double)call->length);
}

static void print_form(const struct form *form, const struct call *call)
{
    const bool across = form_of(form->kernel, call) == GIR_FORM_ROWS_ACROSS;
    printf("%s %u | %.2f", across ? "across" : "along",
           gir_lanes_of(form->kernel, register_bytes()), form->least);
}

struct score {
    int n, n_lost;
    double logs;
};

/* The first form is the chosen one. */
static void print_row(const struct subject *subject, const struct form *forms, int n,
                      const struct call *call, bool all, struct score *score)
{
    const struct form *best = forms;
    for (int i = 1; i < n; i++)
        if (forms[i].code && forms[i].least < best->least)
            best = &forms[i];
    const double loss = forms->least / best->least;
    score->n++;
    score->n_lost += loss > LOSS;
    score->logs += log(loss);
    if (!all && loss <= LOSS)
        return;
    printf("| %s | %lld x %lld | ", subject->name, (long long)call->rows, (long long)call->length);
    print_form(forms, call);
    for (int i = 1; all && i < n; i++)
        printf(" | %.4g", forms[i].least);
    if (!all) {
        printf(" | ");
        print_form(best, call);
    }
    printf(" | %.2f |\n", loss);
}

static void measure_length(const struct subject *subject, struct form *forms, int n,
                           const struct data *data, int64_t rows, int64_t length, bool all,
                           struct score *score)
{
    struct call call = {.rows = rows, .length = length};
    prepare(subject, forms->kernel, data, &call);
    const int times = times_of(forms, &call, data);
    for (int i = 0; i < n; i++)
        forms[i].least = INFINITY;
    for (int round = 0; round < ROUNDS; round++)
        for (int i = 0; i < n; i++)
            if (forms[i].code)
                forms[i].least = fmin(forms[i].least, time_call(&forms[i], &call, data, times));
    print_row(subject, forms, n, &call, all, score);
}

/* All forms of it; the chosen one is the first. */
static int compile_forms(const struct gir_kernel *kernel, struct device_context *device,
                         struct form *forms)
{
    static const uint32_t ways[] = {GIR_FORM_ROWS_ALONG, GIR_FORM_ROWS_ACROSS};
    int n = 0;
    forms[n++] = compile(kernel, 0, 0, device);
    for (size_t way = 0; way < LENGTH_OF(ways); way++)
        for (uint32_t lanes = register_bytes() / 4; lanes <= GIR_FORM_LANES; lanes *= 2)
            forms[n++] = compile(kernel, ways[way], lanes, device);
    return n;
}

static void measure(const struct subject *subject, const struct data *data,
                    struct device_context *device, bool all, struct score *score)
{
    struct form forms[MAX_FORMS];
    struct gir_kernel *kernel = build(subject);
    if (!kernel)
        return;
    const int n = compile_forms(kernel, device, forms);
    for (size_t i = 0; forms->code && i < LENGTH_OF(lengths); i++)
        if (!subject->planes || lengths[i] <= GIR_MAX_PLANES)
            measure_length(subject, forms, n, data, COUNT / lengths[i], lengths[i], all, score);
    for (size_t i = 0; forms->code && i < LENGTH_OF(few); i++)
        for (size_t k = 0; k < LENGTH_OF(short_lengths); k++)
            measure_length(subject, forms, n, data, few[i], short_lengths[k], all, score);
    for (int i = 0; i < n; i++)
        free(forms[i].kernel);
    allocator_free(&allocator_default, kernel);
}

/* ---- The program ----------------------------------------------------------------------------- */

static void print_head(bool all)
{
    const int n = all ? 2 * __builtin_ctz(GIR_FORM_LANES * 8 / register_bytes()) : 1;
    printf("| kernel | rows x elements | chosen | us");
    for (int i = 0; all && i < n; i++)
        printf(" | %s %u", i < n / 2 ? "along" : "across", register_bytes() / 4 << i % (n / 2));
    printf(all ? " | chosen / best |\n" : " | best | us | chosen / best |\n");
    printf("|---|---|---|--:%s", all ? "" : "|---");
    for (int i = 0; i < n; i++)
        printf("|--:");
    printf("|--:|\n");
}

static char *make_memory(size_t size)
{
    char *memory = aligned_alloc(64, size);
    if (!memory)
        exit(1);
    memset(memory, 0, size);
    return memory;
}

/* Numbers of every width that are none of those that take longer: halves, floats and doubles
 * between 1 and 2, whatever they are read as. */
static void fill(char *x, size_t width)
{
    static const uint64_t ones[] = {[2] = 0x3c00, [4] = 0x3f800000, [8] = 0x3ff0000000000000};
    static const int shifts[] = {[2] = 0, [4] = 13, [8] = 42};
    for (uint64_t i = 0; i < COUNT; i++) {
        const uint64_t bits = ones[width] | (i * 7919 % 1021) << shifts[width];
        memcpy(x + i * width, &bits, width);
    }
}

static size_t width_of(const struct subject *subject)
{
    return strcmp(subject->type, "f16") == 0 ? 2 : strcmp(subject->type, "f64") == 0 ? 8 : 4;
}

int main(int argc, char **argv)
{
    const bool all = argc > 1 && strcmp(argv[1], "all") == 0;
    const struct data data = {make_memory(COUNT * 8), make_memory(COUNT * 8),
                              make_memory(LONGEST * 8), make_memory((LONGEST + CODEGEN_MORE) * 64)};
    struct device_context device;
    struct score score = {0};
    setenv("TSSA_PLUGIN_DIR", TSSA_BUILD_DIR, 0);
    device_context_open(&device, device_find(NULL), &allocator_default, NULL);
    print_head(all);
    for (size_t i = 0; i < LENGTH_OF(subjects); i++) {
        fill(data.x, width_of(&subjects[i]));
        memcpy(data.others, data.x, LONGEST * width_of(&subjects[i]));
        measure(&subjects[i], &data, &device, all, &score);
    }
    if (score.n)
        printf("\n%d of %d within a tenth of the best form, %.3f times its time in the mean\n",
               score.n - score.n_lost, score.n, exp(score.logs / score.n));
    device_context_close(&device);
    free(data.x);
    free(data.y);
    free(data.others);
    free(data.scratch);
    return 0;
}
