/* SPDX-License-Identifier: Apache-2.0 */
/* The exporter: what names it gives, what it keeps, how files come to be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <dirent.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "common/graph_text.h"
#include "common/onnx_model.h"
#include "common/process.h"
#include "common/random_graph.h"
#include "common/test_alloc.h"
#include "ir/infer.h"
#include "ir/parser.h"
#include "onnx/importer.h"

static struct ir_graph *parse(const char *text)
{
    struct ir_graph *graph = NULL;
    tssa_status *status = ir_parse(&allocator_default, text, strlen(text), &graph);
    if (!status)
        status = ir_infer_graph(graph);
    if (status)
        fail_msg("%s\nin %s", tssa_status_message(status), text);
    return graph;
}

/* Written and read, `text` is `expected`. */
static void becomes(const char *text, const char *expected)
{
    struct text bytes;
    text_init(&bytes, &allocator_default);
    struct ir_graph *graph = parse(text), *wanted = parse(expected);
    struct ir_graph *again = export_import("text", graph, NULL, &bytes);
    same_graphs("text", wanted, again, true);
    ir_graph_free(again);
    ir_graph_free(wanted);
    ir_graph_free(graph);
    text_free(&bytes);
}

static void stays(const char *text)
{
    becomes(text, text);
}

#define HEAD "graph @g opset(\"\": 18) ir_version(10) "

/* ---- Names ----------------------------------------------------------------------------------- */

/* Values without a name get one; names that are taken do not come twice. */
static void missing_names(void **state)
{
    (void)state;
    becomes(HEAD "(%x: f32[2], %tssa_1: f32[2]) -> (%y as \"y\") {\n"
                 "%0 = Neg(%x)\n%1 = Abs(%0)\n%y = Add(%1, %tssa_1)\nreturn(%y)\n}\n",
            HEAD "(%x: f32[2], %tssa_1: f32[2]) -> (%y as \"y\") {\n"
                 "%0 = Neg(%x)\n%1 = Abs(%0)\n%y = Add(%1, %tssa_1)\n"
                 "return(%y)\n}\n");
    stays(HEAD "(%x: f32[2], %c: bool[]) -> (%y as \"y\") {\n"
               "%y = If(%c) @\"my if\" {\n"
               "then_branch() {\n%a = Neg(%x) @neg\nreturn(%a)\n}\n"
               "else_branch() {\n%b = Abs(%x)\nreturn(%b)\n}\n}\nreturn(%y)\n}\n");
}

/* Names of nodes are different in each graph; outputs that must be there are. */
static void nodes(void **state)
{
    (void)state;
    becomes(HEAD "(%x: f32[4], %k: i64[1]) -> (%y as \"y\") {\n"
                 "%a = Neg(%x) @n\n%b = Abs(%a) @n\n%c = Exp(%b) @n_1\n%y, _ = TopK(%c, %k)\n"
                 "return(%y)\n}\n",
            HEAD "(%x: f32[4], %k: i64[1]) -> (%y as \"y\") {\n"
                 "%a = Neg(%x) @n\n%b = Abs(%a) @n\n%c = Exp(%b) @n_1\n"
                 "%y, %unused_1 = TopK(%c, %k)\nreturn(%y)\n}\n");
}

/* Outputs are called what the caller calls them, whatever their value is called. */
static void output_names(void **state)
{
    (void)state;
    becomes(HEAD "(%x: f32[2]) -> (%a as \"y\") {\n%a = Neg(%x)\nreturn(%a)\n}\n",
            HEAD "(%x: f32[2]) -> (%y as \"y\") {\n%y = Neg(%x)\nreturn(%y)\n}\n");
    /* One value under two names, an input as an output, a name that another value has. */
    becomes(HEAD "(%x: f32[2]) -> (%a as \"y\", %a as \"z\", %x as \"w\", %x as \"x\") {\n"
                 "%z = Abs(%x)\n%a = Neg(%z)\nreturn(%a, %a, %x, %x)\n}\n",
            HEAD "(%x: f32[2]) -> (%y as \"y\", %z as \"z\", %w as \"w\", %x as \"x\") {\n"
                 "%z_1 = Abs(%x)\n%y = Neg(%z_1)\n%z = Identity(%y)\n%w = Identity(%x)\n"
                 "return(%y, %z, %w, %x)\n}\n");
}

/* A copy of a sequence is an Identity, which takes none below opset 14. */
static void outputs_of_sequences(void **state)
{
    (void)state;
    becomes("graph @g opset(\"\": 13) ir_version(8) (%x: f32[2]) -> (%a as \"y\", %a as \"z\") {\n"
            "%a = SequenceConstruct@11(%x)\nreturn(%a, %a)\n}\n",
            "graph @g opset(\"\": 14) ir_version(8) (%x: f32[2]) -> (%y as \"y\", %z as \"z\") {\n"
            "%y = SequenceConstruct@11(%x)\n%z = Identity@14(%y)\nreturn(%y, %z)\n}\n");
    stays("graph @g opset(\"\": 13) ir_version(8) (%x: seq(f32[2])) -> (%x as \"x\") {\n"
          "return(%x)\n}\n");
}

/* Outputs of a subgraph are its own, each once. */
static void outputs_of_subgraphs(void **state)
{
    (void)state;
    becomes(HEAD "(%x: f32[2], %c: bool[]) -> (%y as \"y\", %z as \"z\") {\n"
                 "%y, %z = If(%c) {\n"
                 "then_branch() {\n%a = Neg(%x)\nreturn(%a, %a)\n}\n"
                 "else_branch() {\nreturn(%x, %x)\n}\n}\nreturn(%y, %z)\n}\n",
            HEAD
            "(%x: f32[2], %c: bool[]) -> (%y as \"y\", %z as \"z\") {\n"
            "%y, %z = If(%c) {\n"
            "then_branch() {\n%a = Neg(%x)\n%a_1 = Identity(%a)\nreturn(%a, %a_1)\n}\n"
            "else_branch() {\n%x_1 = Identity(%x)\n%x_2 = Identity(%x)\nreturn(%x_1, %x_2)\n}\n}\n"
            "return(%y, %z)\n}\n");
}

/* ---- What is carried through ----------------------------------------------------------------- */

static void opaque_ops(void **state)
{
    (void)state;
    stays("graph @g opset(\"\": 18, \"com.acme\": 3) metadata(\"k\": \"v\", \"\": \"\") "
          "ir_version(10) "
          "model_version(7) producer(\"me\") producer_version(\"1\") domain(\"org\") doc(\"text\") "
          "(%x: f32[N, 2] = f32[1, 2] [1, 2], %s: seq(f32[*]), %o: optional(str[2]), "
          "%m: map(i64, f32[*])) -> (%y as \"y\", %q as \"q\") {\n"
          "%w = Neg(%x)\n"
          "%y, _, %q = opaque(\"com.acme\", \"Magic\", 3, \"v2\")(%w, _, %s, %o, %m) @magic "
          "{f = 1.5, i = -3, s = \"a\\x00b\", t = i64[2] [1, 2], ty = type f32[K, 3], "
          "fs = [1.0, inf], is = ints[], ss = [\"a\", \"\"], ts = [f32[] 1, bool[1] [true]], "
          "tys = [type seq(f32[*])]}: ?, ? {\n"
          "body(%i: i64[]) {\n%b = Neg(%x)\nreturn(%b, %i)\n}\n"
          "\"list[0]\"() {\n%l = Abs(%w)\nreturn(%l)\n}\n"
          "\"list[1]\"() {\n%k = Abs(%x)\nreturn(%k)\n}\n}\n"
          "return(%y, %q)\n}\n");
}

static void element_types(void **state)
{
    (void)state;
    stays(
        "graph @g opset(\"com.acme\": 1) ir_version(13) (%x: f32[2]) -> (%y as \"y\") {\n"
        "%y = opaque(\"com.acme\", \"M\", 1)(%x) {a = i4[3] [-8, 7, 1], b = u4[2] [15, 1], "
        "c = i2[5] [-2, 1, 0, -1, 1], d = f4e2m1[3] [0.5, -6, 1], e = f8e4m3fn[2] [448, -1], "
        "f = bf16[2] [1, -2], g = f16[1] [0.5], h = c64[1] [(1, 2)], i = str[2] [\"\", \"\\xff\"], "
        "j = bool[2] [true, false], k = u64[1] [18446744073709551615], l = f64[0] [], "
        "m = i8[2, 0] []}: ?\nreturn(%y)\n}\n");
}

/* Documentation and metadata of every part. */
static void notes(void **state)
{
    (void)state;
    struct onnx_model model, *m = &model;
    model_init(m, 10, 18);
    Onnx__GraphProto *graph = m->graph;
    Onnx__StringStringEntryProto entry = ONNX__STRING_STRING_ENTRY_PROTO__INIT;
    Onnx__StringStringEntryProto *pair = &entry;
    static const float ones[2] = {1, 1};
    entry.key = model_string(m, "key");
    entry.value = model_string(m, "value");
    model_input(m, graph, "x", TSSA_FLOAT, "2");
    graph->input[0]->doc_string = model_string(m, "about x");
    model_initializer(m, graph, model_tensor(m, "w", TSSA_FLOAT, "2", ones, sizeof ones));
    graph->initializer[0]->doc_string = model_string(m, "about w");
    Onnx__NodeProto *node = model_node(m, graph, "Add", "x,w", "y");
    node->doc_string = model_string(m, "about Add");
    node->metadata_props = &pair;
    node->n_metadata_props = 1;
    model_output(m, graph, "y", TSSA_FLOAT, "N");
    graph->output[0]->doc_string = model_string(m, "about y");
    graph->doc_string = model_string(m, "about the graph");
    struct ir_graph *first = NULL;
    tssa_status *status = model_import(m, &first);
    assert_null(status);
    struct text bytes;
    text_init(&bytes, &allocator_default);
    struct ir_graph *again = export_import("notes", first, NULL, &bytes);
    same_graphs("notes", first, again, true);
    assert_string_equal(again->body->notes->doc, "about the graph");
    assert_string_equal(again->input_notes[0]->doc, "about x");
    assert_string_equal(again->output_notes[0]->doc, "about y");
    assert_string_equal(again->body->first->notes->doc, "about w");
    assert_int_equal(again->body->first->origin, IR_ORIGIN_INITIALIZER);
    const struct ir_notes *of_node = again->body->first->next->notes;
    assert_string_equal(of_node->doc, "about Add");
    assert_int_equal(of_node->n_metadata, 1);
    assert_string_equal(of_node->metadata[0].key, "key");
    assert_string_equal(of_node->metadata[0].value, "value");
    ir_graph_free(again);
    ir_graph_free(first);
    text_free(&bytes);
    model_free(m);
}

/*
 * What a pass made tells the node that it stands for, where the model's version has a place for it.
 */
static void origins(void **state)
{
    (void)state;
    static const char *const heads[] = {HEAD, "graph @g opset(\"\": 18) ir_version(9) "};
    for (int i = 0; i < 2; i++) {
        struct text source, bytes;
        text_init(&source, &allocator_default);
        text_init(&bytes, &allocator_default);
        text_printf(
            &source,
            "%s(%%x: f32[2]) -> (%%y as \"y\") {\n%%y = Neg(%%x) @\"a/Loop\"\nreturn(%%y)\n}\n",
            heads[i]);
        struct ir_graph *graph = parse(text_string(&source));
        struct ir_graph *again = export_import("origins", graph, NULL, &bytes);
        const struct ir_notes *made = again->body->first->notes;
        assert_int_equal(made != NULL, i == 0);
        if (made) {
            assert_string_equal(made->metadata[0].key, "tssa.origin");
            assert_string_equal(made->metadata[0].value, "a/Loop");
        }
        ir_graph_free(again);
        ir_graph_free(graph);
        text_free(&bytes);
        text_free(&source);
    }
}

/* Initializers of models before IR 4 are inputs too, and no inputs of the caller's. */
static void old_initializers(void **state)
{
    (void)state;
    struct onnx_model model, *m = &model;
    model_init(m, 3, 9);
    Onnx__GraphProto *graph = m->graph;
    static const float ones[2] = {1, 1};
    model_input(m, graph, "w", TSSA_FLOAT, "2");
    model_input(m, graph, "x", TSSA_FLOAT, "2");
    model_initializer(m, graph, model_tensor(m, "w", TSSA_FLOAT, "2", ones, sizeof ones));
    model_node(m, graph, "Add", "x,w", "y");
    model_output(m, graph, "y", TSSA_FLOAT, "2");
    struct ir_graph *first = NULL;
    assert_null(model_import(m, &first));
    struct text bytes;
    text_init(&bytes, &allocator_default);
    struct ir_graph *again = export_import("old", first, NULL, &bytes);
    same_graphs("old", first, again, true);
    assert_int_equal(again->ir_version, 3);
    assert_int_equal(again->body->n_params, 1);
    ir_graph_free(again);
    ir_graph_free(first);
    text_free(&bytes);
    model_free(m);
}

/* Random programs: what is written reads back, and is written the same. */
static void random_programs(void **state)
{
    (void)state;
    struct text first_bytes, second_bytes;
    text_init(&first_bytes, &allocator_default);
    text_init(&second_bytes, &allocator_default);
    for (uint64_t seed = 1; seed <= 300; seed++) {
        char name[32];
        snprintf(name, sizeof name, "seed %u", (unsigned)seed);
        char *program = random_graph(seed);
        struct ir_graph *graph = parse(program);
        struct ir_graph *first = export_import(name, graph, NULL, &first_bytes);
        struct ir_graph *second = export_import(name, first, NULL, &second_bytes);
        same_graphs(name, first, second, true);
        assert_int_equal(first_bytes.size, second_bytes.size);
        assert_memory_equal(first_bytes.data, second_bytes.data, first_bytes.size);
        ir_graph_free(second);
        ir_graph_free(first);
        ir_graph_free(graph);
        free(program);
    }
    text_free(&second_bytes);
    text_free(&first_bytes);
}

/* ---- Files ----------------------------------------------------------------------------------- */

#define MODEL_PATH "models/lstm_small/model.onnx"

static char *folder;

static int make_folder(void **state)
{
    (void)state;
    folder = temporary_folder();
    return folder ? 0 : -1;
}

static int drop_folder(void **state)
{
    (void)state;
    remove_folder(folder);
    return 0;
}

static const char *in_folder(const char *name)
{
    static char paths[4][300];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static int entries(void)
{
    int count = 0;
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (struct dirent *e; (e = readdir(dir));)
        count += e->d_name[0] != '.';
    closedir(dir);
    return count;
}

static struct ir_graph *load(const char *path)
{
    struct ir_graph *graph = NULL;
    tssa_status *status = onnx_import_file(&allocator_default, path, NULL, &graph);
    if (status)
        fail_msg("%s", tssa_status_message(status));
    return graph;
}

static void save(const struct ir_graph *graph, const char *path,
                 const struct onnx_export_options *options)
{
    tssa_status *status = onnx_export_file(graph, path, options);
    if (status)
        fail_msg("%s", tssa_status_message(status));
}

static off_t size_of(const char *path)
{
    struct stat info;
    return stat(path, &info) == 0 ? info.st_size : -1;
}

static void plain_files(void **state)
{
    (void)state;
    struct ir_graph *graph = load(MODEL_PATH);
    save(graph, in_folder("m.onnx"), NULL);
    struct ir_graph *again = load(in_folder("m.onnx"));
    same_graphs("file", graph, again, true);
    assert_int_equal(entries(), 1);
    /* Over itself: the mapping stays what it was. */
    save(again, in_folder("m.onnx"), NULL);
    same_graphs("file", graph, again, true);
    ir_graph_free(again);
    again = load(in_folder("m.onnx"));
    same_graphs("file", graph, again, true);
    ir_graph_free(again);
    ir_graph_free(graph);
    assert_int_equal(unlink(in_folder("m.onnx")), 0);
}

static void external_files(void **state)
{
    (void)state;
    const struct onnx_export_options external = {.external_data = true, .external_threshold = 64};
    const struct onnx_export_options named = {
        .external_data = true, .external_threshold = 64, .external_name = "weights"};
    struct ir_graph *graph = load(MODEL_PATH);
    save(graph, in_folder("m.onnx"), &external);
    assert_true(size_of(in_folder("m.onnx.data")) > 0);
    assert_true(size_of(in_folder("m.onnx")) < size_of(MODEL_PATH));
    struct ir_graph *again = load(in_folder("m.onnx"));
    same_graphs("external", graph, again, true);
    /* Over itself, both files. */
    save(again, in_folder("m.onnx"), &external);
    ir_graph_free(again);
    again = load(in_folder("m.onnx"));
    same_graphs("external", graph, again, true);
    save(again, in_folder("n.onnx"), &named);
    struct ir_graph *third = load(in_folder("n.onnx"));
    same_graphs("external", graph, third, true);
    assert_true(size_of(in_folder("weights")) > 0);
    assert_int_equal(entries(), 4);
    ir_graph_free(third);
    ir_graph_free(again);
    ir_graph_free(graph);
    static const char *const names[] = {"m.onnx", "m.onnx.data", "n.onnx", "weights"};
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(unlink(in_folder(names[i])), 0);
}

/* Packed elements, and the places of what follows them. */
static void external_elements(void **state)
{
    (void)state;
    const struct onnx_export_options external = {.external_data = true, .external_threshold = 1};
    struct ir_graph *graph =
        parse("graph @g opset(\"com.acme\": 1) ir_version(13) (%x: f32[2]) -> (%y as \"y\") {\n"
              "%a = Constant() {value = i4[3] [-8, 7, 1]}\n"
              "%b = Constant() {value = i2[5] [-2, 1, 0, -1, 1]}\n"
              "%c = Constant() {value = str[1] [\"text\"]}\n"
              "%d = Constant() {value = f64[2] [1, 2]}\n"
              "%y = opaque(\"com.acme\", \"M\", 1)(%x, %a, %b, %c, %d): ?\nreturn(%y)\n}\n");
    save(graph, in_folder("p.onnx"), &external);
    assert_int_equal(size_of(in_folder("p.onnx.data")), 64 + 64 + 16);
    struct ir_graph *again = load(in_folder("p.onnx"));
    for (const struct ir_op *op = again->body->first; ir_op_is(op, IR_OP_Constant); op = op->next)
        assert_int_equal(op->origin, IR_ORIGIN_INITIALIZER);
    const int8_t *packed = ir_attr_tensor(again->body->first, "value")->data;
    assert_int_equal(packed[0], -8);
    ir_graph_free(again);
    ir_graph_free(graph);
    unlink(in_folder("p.onnx"));
    unlink(in_folder("p.onnx.data"));
}

static void bad_names(void **state)
{
    (void)state;
    static const char *const names[] = {"", ".", "..", "a/b", "/tmp/x", "m.onnx"};
    struct ir_graph *graph = load(MODEL_PATH);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const struct onnx_export_options options = {.external_data = true,
                                                    .external_name = names[i]};
        tssa_status *status = onnx_export_file(graph, in_folder("m.onnx"), &options);
        assert_int_equal(tssa_status_code(status), TSSA_INVALID_ARGUMENT);
        tssa_status_free(status);
    }
    tssa_status *status = onnx_export_file(graph, in_folder("none/m.onnx"), NULL);
    assert_int_equal(tssa_status_code(status), TSSA_IO);
    tssa_status_free(status);
    assert_int_equal(entries(), 0);
    ir_graph_free(graph);
}

/* In a child whose disk is full after `limit` bytes. 0: refused, and the old files are what they
 * were. */
static int write_on_full_disk(rlim_t limit, bool external)
{
    const struct onnx_export_options options = {.external_data = external,
                                                .external_threshold = 16};
    const struct rlimit full = {limit, limit};
    struct ir_graph *graph = NULL;
    if (onnx_import_file(&allocator_default, MODEL_PATH, NULL, &graph))
        return 2;
    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &full) != 0)
        return 3;
    tssa_status *status = onnx_export_file(graph, in_folder("m.onnx"), &options);
    int result = tssa_status_code(status) == TSSA_IO ? 0 : 1;
    tssa_status_free(status);
    ir_graph_free(graph);
    return result;
}

static void full_disk(void **state)
{
    (void)state;
    static const rlim_t limits[] = {0, 1, 100, 900};
    assert_null(file_write(&allocator_default, in_folder("m.onnx"), "old", 3));
    assert_null(file_write(&allocator_default, in_folder("m.onnx.data"), "data", 4));
    for (size_t i = 0; i < 2 * sizeof limits / sizeof *limits; i++) {
        pid_t child = fork();
        if (child == 0)
            _exit(write_on_full_disk(limits[i / 2], i % 2));
        int status = -1;
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        assert_int_equal(entries(), 2);
        assert_int_equal(size_of(in_folder("m.onnx")), 3);
        assert_int_equal(size_of(in_folder("m.onnx.data")), 4);
    }
    unlink(in_folder("m.onnx"));
    unlink(in_folder("m.onnx.data"));
}

/* ---- Memory ---------------------------------------------------------------------------------- */

static tssa_status *discard(void *context, const void *data, size_t size)
{
    (void)context;
    (void)data;
    (void)size;
    return NULL;
}

static const char *const everything =
    "graph @g opset(\"\": 11, \"com.acme\": 1) metadata(\"k\": \"v\") ir_version(10) "
    "(%x: f32[N, 2*N, 2, 2], %c: bool[]) -> (%a as \"y\", %f as \"q\") {\n"
    "%0 = Constant() {value = f32[4] [1, 1, 2, 2]}\n"
    "%1 = Constant() {value = i64[1] [1]}\n"
    "%a = Resize@11(%x, _, %0) {mode = \"nearest\"}\n"
    "%2 = ReduceMean@11(%a, %1) @mean\n"
    "%q = If@11(%c) {\nthen_branch() {\n%3 = Neg(%x)\nreturn(%3)\n}\n"
    "else_branch() {\n%4 = opaque(\"other\", \"M\", 1)(%x, %2) {\"s\" = [\"a\"]}: "
    "f32[*]\nreturn(%4)\n}\n}\n"
    "%f = fuse(%q) {\nbody(%p: f32[*]) {\n%e = Exp(%p)\nreturn(%e)\n}\n}\n"
    "return(%a, %f)\n}\n";

static tssa_status *export_once(const tssa_allocator *allocator)
{
    const struct output_sink sink = {discard, NULL};
    struct ir_graph *graph = NULL;
    TRY(ir_parse(allocator, everything, strlen(everything), &graph));
    tssa_status *status = ir_infer_graph(graph);
    if (!status)
        status = onnx_export(graph, NULL, &sink);
    ir_graph_free(graph);
    return status;
}

static tssa_status *export_file_once(const tssa_allocator *allocator)
{
    const struct onnx_export_options options = {.external_data = true, .external_threshold = 1};
    struct ir_graph *graph = NULL;
    TRY(ir_parse(allocator, everything, strlen(everything), &graph));
    tssa_status *status = ir_infer_graph(graph);
    if (!status)
        status = onnx_export_file(graph, in_folder("a.onnx"), &options);
    ir_graph_free(graph);
    return status;
}

static void no_memory(void **state)
{
    (void)state;
    assert_true(test_alloc_sweep(export_once) > 20);
    assert_true(test_alloc_sweep(export_file_once) > 20);
    assert_int_equal(entries(), 2);
    unlink(in_folder("a.onnx"));
    unlink(in_folder("a.onnx.data"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(missing_names),
        cmocka_unit_test(nodes),
        cmocka_unit_test(output_names),
        cmocka_unit_test(outputs_of_sequences),
        cmocka_unit_test(outputs_of_subgraphs),
        cmocka_unit_test(opaque_ops),
        cmocka_unit_test(element_types),
        cmocka_unit_test(notes),
        cmocka_unit_test(origins),
        cmocka_unit_test(old_initializers),
        cmocka_unit_test(random_programs),
        cmocka_unit_test(plain_files),
        cmocka_unit_test(external_files),
        cmocka_unit_test(external_elements),
        cmocka_unit_test(bad_names),
        cmocka_unit_test(full_disk),
        cmocka_unit_test(no_memory),
    };
    return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
