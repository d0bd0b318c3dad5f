/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What optimizing costs: level 2 over graphs of 10,000 and 100,000 nodes, as a straight line, as
 * many small loops and branches, and nested deeply. Prints milliseconds of processor time, and the
 * memory at its highest in relation to the graph before. The goals are 100 ms for 10,000 nodes and
 * 2 s for 100,000, and a time that is linear in the size. With an argument, the slowest passes of
 * each are listed as well.
 */
#include <malloc.h>
#include <time.h>

#include "base/text.h"
#include "bench/measure.h"
#include "ir/infer.h"
#include "ir/parser.h"
#include "passes/pipeline.h"
#include "runtime/evaluate.h"

/* ---- Graphs ---------------------------------------------------------------------------------- */

static void begin(struct text *text)
{
    text_puts(text,
              "graph @g opset(\"\": 18) ir_version(8) (%n: i64[], %b: bool[], %v0: f32[N, 4]) "
              "-> (%out as \"out\") {\n"
              "%two = Constant() {value = f32[] 2.0}\n"
              "%axis = Constant() {value = i64[1] [0]}\n");
}

static void end(struct text *text, int last)
{
    text_printf(text, "%%out = Neg(%%v%d)\nreturn(%%out)\n}\n", last);
}

/* Element-wise ops, rearrangements, shape arithmetic and a computation that is there twice. */
static void write_line(struct text *text, int nodes)
{
    int k = 0;
    begin(text);
    for (; k < nodes / 8; k++) {
        text_printf(text, "%%a%d = Add(%%v%d, %%two)\n", k, k);
        text_printf(text, "%%b%d = Add(%%v%d, %%two)\n", k, k);
        text_printf(text, "%%c%d = Mul(%%a%d, %%b%d)\n", k, k, k);
        text_printf(text, "%%s%d = Shape(%%c%d)\n", k, k);
        text_printf(text, "%%d%d = Reshape(%%c%d, %%s%d)\n", k, k, k);
        text_printf(text, "%%e%d = Transpose(%%d%d) {perm = [1, 0]}\n", k, k);
        text_printf(text, "%%f%d = Transpose(%%e%d) {perm = [1, 0]}\n", k, k);
        text_printf(text, "%%v%d = Sub(%%f%d, %%two)\n", k + 1, k);
    }
    end(text, k);
}

static void write_loops(struct text *text, int nodes)
{
    int k = 0;
    begin(text);
    for (; k < nodes / 12; k++) {
        text_printf(text,
                    "%%v%d, %%d%d = Loop(%%n, _, %%v%d, %%v0) {\n"
                    "body(%%i%d: i64[], %%c%d: bool[], %%p%d: f32[N, 4], %%q%d: f32[N, 4]) {\n",
                    k + 1, k, k, k, k, k, k);
        text_printf(text, "%%a%d = Mul(%%v0, %%two)\n%%e%d = Add(%%p%d, %%a%d)\n", k, k, k, k);
        text_printf(text, "%%f%d = Add(%%q%d, %%p%d)\n", k, k, k);
        text_printf(text,
                    "%%g%d = If(%%b) {\nthen_branch() {\n%%h%d = Neg(%%e%d)\n%%j%d = Abs(%%h%d)\n"
                    "return(%%j%d)\n}\nelse_branch() {\n%%k%d = Neg(%%e%d)\nreturn(%%k%d)\n}\n}\n",
                    k, k, k, k, k, k, k, k, k);
        text_printf(text, "return(%%c%d, %%g%d, %%f%d)\n}\n}\n", k, k, k);
    }
    end(text, k);
}

#define DEPTH 200

/* Loops in loops, DEPTH deep, each with a part of the nodes. */
static void write_nest(struct text *text, int nodes)
{
    int k = 0, per_level = nodes / DEPTH;
    begin(text);
    for (int level = 0; level < DEPTH; level++) {
        text_printf(text, "%%r%d = Loop(%%n, _, %%v%d) {\n", level, k);
        text_printf(text, "body(%%i%d: i64[], %%c%d: bool[], %%v%d: f32[N, 4]) {\n", level, level,
                    k + 1);
        for (k++; k % per_level; k++)
            text_printf(text, "%%v%d = Add(%%v%d, %%two)\n", k + 1, k);
    }
    for (int level = DEPTH - 1; level >= 0; level--) {
        if (level == DEPTH - 1)
            text_printf(text, "return(%%c%d, %%v%d)\n}\n}\n", level, k);
        else
            text_printf(text, "return(%%c%d, %%r%d)\n}\n}\n", level, level + 1);
    }
    text_puts(text, "%out = Neg(%r0)\nreturn(%out)\n}\n");
}

/* ---- Measuring ------------------------------------------------------------------------------- */

struct counted {
    size_t used, peak;
};

static void *counted_allocate(void *user, size_t size, size_t alignment)
{
    struct counted *counted = user;
    void *memory = allocator_default.allocate(NULL, size, alignment);
    counted->used += memory ? malloc_usable_size(memory) : 0;
    if (counted->used > counted->peak)
        counted->peak = counted->used;
    return memory;
}

static void counted_release(void *user, void *memory)
{
    struct counted *counted = user;
    counted->used -= memory ? malloc_usable_size(memory) : 0;
    allocator_default.release(NULL, memory);
}

/* Of this process, in milliseconds: others on the machine do not count. */
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static struct ir_graph *parse(const struct text *text, const tssa_allocator *allocator)
{
    struct ir_graph *graph;
    check(ir_parse(allocator, text->data, text->size, &graph));
    check(ir_infer_graph(graph));
    return graph;
}

static void list_passes(struct ir_graph *graph, const struct pipeline *pipeline)
{
    size_t count;
    const struct pass *passes = pass_table(&count);
    for (size_t i = 0; i < count; i++) {
        double start = now();
        check(pipeline_run_passes(graph, &passes[i].name, 1, pipeline));
        double took = now() - start;
        if (took >= 1)
            printf("    %-26s %9.1f ms\n", passes[i].name, took);
    }
}

static void measure(const char *name, void (*write)(struct text *, int), int nodes, bool list)
{
    struct counted counted = {0, 0};
    const tssa_allocator allocator = {&counted, counted_allocate, counted_release};
    struct text text;
    text_init(&text, &allocator_default);
    write(&text, nodes);
    if (!text_string(&text))
        exit(1);
    struct ir_graph *graph = parse(&text, &allocator);
    size_t before = counted.used;
    struct evaluator evaluator;
    evaluator_init(&evaluator, &allocator);
    const struct pipeline pipeline = {.evaluate = evaluator_run, .evaluate_user = &evaluator};
    double start = now();
    check(pipeline_run(graph, 2, &pipeline));
    printf("%-10s %7d nodes  %9.1f ms  memory x %.2f\n", name, nodes, now() - start,
           (double)counted.peak / (double)before);
    ir_graph_free(graph);
    if (list) {
        graph = parse(&text, &allocator);
        list_passes(graph, &pipeline);
        ir_graph_free(graph);
    }
    evaluator_free(&evaluator);
    text_free(&text);
}

int main(int argc, char **argv)
{
    (void)argv;
    static const int sizes[] = {10000, 100000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        measure("line", write_line, sizes[i], argc > 1);
        measure("loops", write_loops, sizes[i], argc > 1);
        measure("nest", write_nest, sizes[i], argc > 1);
    }
    return 0;
}
