/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Models made to hurt, given to tssa-run: each ends at once with one line on standard error and
 * exit status 3 or 4, within little memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "common/onnx_model.h"
#include "common/process.h"
#include "common/xmalloc.h"

#ifdef __SANITIZE_ADDRESS__
#define ADDRESS_SPACE 0
#else
#define ADDRESS_SPACE ((size_t)512 << 20)
#endif

#define TOOL TSSA_BUILD_DIR "/tssa-run"

static char *folder;

/* The tool's verdict on a file: a status and, in the line, `part`. */
static void expect_verdict(const char *path, int status, const char *part)
{
    const struct process_limits limits = {.seconds = 20, .address_space = ADDRESS_SPACE};
    const char *const argv[] = {TOOL, path, NULL};
    struct process_result result = process_run(argv, NULL, NULL, &limits);
    process_drop_announcements(&result);
    const char *end = strchr(result.err, '\n');
    bool good = result.status == status && end && !end[1] && strstr(result.err, part);
    if (!good)
        print_error("status %d\n%s%s", result.status, result.out, result.err);
    assert_true(good);
    process_result_free(&result);
}

static void expect_bytes(const void *data, size_t size, int status, const char *part)
{
    char *path = xprintf("%s/model.onnx", folder);
    assert_null(file_write(&allocator_default, path, data, size));
    expect_verdict(path, status, part);
    free(path);
}

/* Frees the model. */
static void expect_model(struct onnx_model *model, int status, const char *part)
{
    size_t size;
    const void *data = model_pack(model, &size);
    expect_bytes(data, size, status, part);
    model_free(model);
}

/* ---- Nesting --------------------------------------------------------------------------------- */

static size_t varint_size(size_t value)
{
    size_t size = 1;
    while (value >>= 7)
        size++;
    return size;
}

static void put_header(struct text *out, unsigned field, size_t size)
{
    text_putc(out, (char)(field << 3 | 2));
    for (; size >= 0x80; size >>= 7)
        text_putc(out, (char)(size | 0x80));
    text_putc(out, (char)size);
}

/* A graph in an attribute of a node of a graph, `levels` times; the sizes are known from the inside
 * out. */
static void graphs_within_graphs(void **state)
{
    (void)state;
    enum { LEVELS = 20000, FIELDS = 3 * LEVELS + 1 };
    /* ModelProto.graph, then GraphProto.node, NodeProto.attribute, AttributeProto.g again and
     * again. */
    static const unsigned fields[3] = {1, 5, 6};
    size_t *sizes = xcalloc(FIELDS + 1, sizeof *sizes);
    struct text out;
    text_init(&out, &allocator_default);
    for (size_t i = FIELDS; i-- > 0;)
        sizes[i] = i + 1 == FIELDS ? 0 : 1 + varint_size(sizes[i + 1]) + sizes[i + 1];
    text_append(&out, "\x08\x08", 2); /* ir_version: 8 */
    for (size_t i = 0; i < FIELDS; i++)
        put_header(&out, i == 0 ? 7 : fields[(i - 1) % 3], sizes[i]);
    assert_false(out.failed);
    expect_bytes(out.data, out.size, 3, "nested more than 100");
    text_free(&out);
    free(sizes);
}

/* ---- Functions ------------------------------------------------------------------------------- */

static void functions_that_call_each_other(void **state)
{
    (void)state;
    struct onnx_model m;
    model_init(&m, 10, 21);
    model_opset(&m, "own", 1);
    model_input(&m, m.graph, "x", TSSA_FLOAT, "3");
    model_node(&m, m.graph, "own:F", "x", "y");
    model_output(&m, m.graph, "y", TSSA_FLOAT, "3");
    Onnx__FunctionProto *f = model_function(&m, "own", "F", "a", "b", 21);
    Onnx__FunctionProto *g = model_function(&m, "own", "G", "a", "b", 21);
    function_node(&m, f, "own:G", "a", "b");
    function_node(&m, g, "own:F", "a", "b");
    expect_model(&m, 3, "itself");
}

/* Every function calls the next one twice: 2^40 nodes. */
static void functions_that_double(void **state)
{
    (void)state;
    struct onnx_model m;
    char name[16], next[16];
    model_init(&m, 10, 21);
    model_opset(&m, "own", 1);
    model_input(&m, m.graph, "x", TSSA_FLOAT, "3");
    model_node(&m, m.graph, "own:F0", "x", "y");
    model_output(&m, m.graph, "y", TSSA_FLOAT, "3");
    for (int i = 0; i < 40; i++) {
        snprintf(name, sizeof name, "F%d", i);
        snprintf(next, sizeof next, i == 39 ? "Neg" : "own:F%d", i + 1);
        Onnx__FunctionProto *f = model_function(&m, "own", name, "a", "c", 21);
        function_node(&m, f, next, "a", "b");
        function_node(&m, f, next, "b", "c");
    }
    expect_model(&m, 3, "");
}

/* ---- External data --------------------------------------------------------------------------- */

static void external(Onnx__TensorProto *tensor, struct onnx_model *m, const char *key,
                     const char *value)
{
    Onnx__StringStringEntryProto *entry = arena_alloc(&m->arena, sizeof *entry);
    assert_non_null(entry);
    onnx__string_string_entry_proto__init(entry);
    entry->key = model_string(m, key);
    entry->value = model_string(m, value);
    model_append(m, &tensor->external_data, &tensor->n_external_data, entry);
}

static void expect_external(const char *location, const char *offset, const char *length,
                            const char *part)
{
    struct onnx_model m;
    model_init(&m, 8, 18);
    Onnx__TensorProto *tensor = model_tensor(&m, "w", TSSA_FLOAT, "3", NULL, 0);
    tensor->has_raw_data = 0;
    tensor->has_data_location = 1;
    tensor->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
    external(tensor, &m, "location", location);
    if (offset)
        external(tensor, &m, "offset", offset);
    if (length)
        external(tensor, &m, "length", length);
    model_initializer(&m, m.graph, tensor);
    model_node(&m, m.graph, "Neg", "w", "y");
    model_output(&m, m.graph, "y", TSSA_FLOAT, "3");
    expect_model(&m, 3, part);
}

static void external_data_elsewhere(void **state)
{
    (void)state;
    char *inside = xprintf("%s/weights", folder), *soft = xprintf("%s/soft", folder);
    char *hard = xprintf("%s/hard", folder);
    assert_null(file_write(&allocator_default, inside, "0123456789ab", 12));
    expect_external("/etc/passwd", NULL, NULL, "/etc/passwd");
    expect_external("../../../etc/passwd", NULL, NULL, "..");
    expect_external("a/../../b", NULL, NULL, "..");
    expect_external("", NULL, NULL, "location");
    expect_external("nowhere", NULL, NULL, "nowhere");
    expect_external(".", NULL, NULL, "");
    expect_external("weights", "-1", NULL, "offset");
    expect_external("weights", "4", "12", "weights");
    expect_external("weights", "18446744073709551615", "12", "");
    expect_external("weights", NULL, "99999999999999999999", "length");
    assert_int_equal(symlink("/etc/passwd", soft), 0);
    expect_external("soft", NULL, NULL, "soft");
    assert_int_equal(linkat(AT_FDCWD, inside, AT_FDCWD, hard, 0), 0);
    expect_external("hard", NULL, NULL, "hard");
    free(inside);
    free(soft);
    free(hard);
}

/* ---- Sizes ----------------------------------------------------------------------------------- */

static void huge_initializer(void **state)
{
    (void)state;
    static const char *const dims[] = {"9223372036854775807,2", "4294967296,4294967296",
                                       "1099511627776", "-1"};
    for (int i = 0; i < 4; i++) {
        struct onnx_model m;
        model_init(&m, 8, 18);
        model_initializer(&m, m.graph, model_tensor(&m, "w", TSSA_FLOAT, dims[i], "abcd", 4));
        model_node(&m, m.graph, "Neg", "w", "y");
        model_output(&m, m.graph, "y", TSSA_FLOAT, "*");
        expect_model(&m, 3, "w");
    }
}

/* What is refused when it runs: 4 TiB of zeros, and as many made one after the other. */
static void huge_results(void **state)
{
    (void)state;
    static const int64_t dims[2] = {1099511627776, 1};
    struct onnx_model m;
    model_init(&m, 8, 18);
    model_initializer(&m, m.graph, model_tensor(&m, "s", TSSA_INT64, "2", dims, sizeof dims));
    model_node(&m, m.graph, "ConstantOfShape", "s", "y");
    model_output(&m, m.graph, "y", TSSA_FLOAT, "*");
    expect_model(&m, 5, "");
    model_init(&m, 8, 18);
    model_initializer(&m, m.graph, model_tensor(&m, "start", TSSA_INT64, "", &dims[1], 8));
    model_initializer(&m, m.graph, model_tensor(&m, "end", TSSA_INT64, "", &dims[0], 8));
    model_node(&m, m.graph, "Range", "start,end,start", "y");
    model_output(&m, m.graph, "y", TSSA_INT64, "*");
    expect_model(&m, 5, "");
}

static void too_many_dims(void **state)
{
    (void)state;
    struct onnx_model m;
    model_init(&m, 8, 18);
    model_input(&m, m.graph, "x", TSSA_FLOAT, "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1");
    model_node(&m, m.graph, "Neg", "x", "y");
    model_output(&m, m.graph, "y", TSSA_FLOAT, "*");
    expect_model(&m, 3, "x");
}

/* ---- Versions -------------------------------------------------------------------------------- */

static void expect_opset(int64_t ir_version, int64_t opset, int status, const char *part)
{
    struct onnx_model m;
    model_init(&m, ir_version, opset);
    model_input(&m, m.graph, "x", TSSA_FLOAT, "3");
    model_node(&m, m.graph, "Neg", "x", "y");
    model_output(&m, m.graph, "y", TSSA_FLOAT, "3");
    expect_model(&m, status, part);
}

static void wrong_versions(void **state)
{
    (void)state;
    expect_opset(8, 0, 3, "operator set");
    expect_opset(8, -3, 3, "operator set");
    expect_opset(8, 1000, 4, "Neg of opset 1000"); /* may be inspected, not run */
    expect_opset(1000, 18, 4, "1000");
    expect_opset(0, 18, 3, "IR version");
}

static void unknown_operator(void **state)
{
    (void)state;
    struct onnx_model m;
    model_init(&m, 8, 18);
    model_opset(&m, "com.example", 1);
    model_input(&m, m.graph, "x", TSSA_FLOAT, "3");
    model_node(&m, m.graph, "com.example:Frobnicate", "x", "y");
    model_output(&m, m.graph, "y", TSSA_FLOAT, "3");
    expect_model(&m, 4, "Frobnicate");
}

/* Control characters in a name do not make a second line. */
static void newline_in_a_name(void **state)
{
    (void)state;
    struct onnx_model m;
    model_init(&m, 8, 18);
    model_node(&m, m.graph, "Neg", "a\nb\033[31m", "y");
    model_output(&m, m.graph, "y", TSSA_FLOAT, "3");
    expect_model(&m, 3, "");
}

static int set_up(void **state)
{
    (void)state;
    folder = temporary_folder();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    remove_folder(folder);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(graphs_within_graphs),  cmocka_unit_test(functions_that_call_each_other),
        cmocka_unit_test(functions_that_double), cmocka_unit_test(external_data_elsewhere),
        cmocka_unit_test(huge_initializer),      cmocka_unit_test(huge_results),
        cmocka_unit_test(too_many_dims),         cmocka_unit_test(wrong_versions),
        cmocka_unit_test(unknown_operator),      cmocka_unit_test(newline_in_a_name),
    };
    return cmocka_run_group_tests_name("hostile", tests, set_up, tear_down);
}
