/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tensors in files beside the model: what is read, and every way out of the folder that is closed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "common/onnx_model.h"

static const float values[] = {1, 2, 3, 4, 5, 6, 7, 8};
static char folder[64];

static const char *in_folder(const char *name)
{
    static char paths[4][256];
    static unsigned next;
    char *path = paths[next++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static void write_file(const char *name, const void *data, size_t size)
{
    assert_null(file_write(&allocator_default, in_folder(name), data, size));
}

/*
 * folder/model/            the model's folder
 *   data.bin  values
 *   link      -> data.bin
 *   hard, two   one file with two names
 *   sub/deep.bin, loop -> sub
 * folder/secret            outside
 */
static int make_files(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/tssa-external-XXXXXX");
    if (!mkdtemp(folder) || mkdir(in_folder("model"), 0700) != 0 ||
        mkdir(in_folder("model/sub"), 0700) != 0)
        return -1;
    write_file("secret", values, sizeof values);
    write_file("model/data.bin", values, sizeof values);
    write_file("model/hard", values, sizeof values);
    write_file("model/sub/deep.bin", values, sizeof values);
    return link(in_folder("model/hard"), in_folder("model/two")) ||
           symlink("data.bin", in_folder("model/link")) ||
           symlink("../secret", in_folder("model/escape")) ||
           symlink("sub", in_folder("model/loop")) || symlink("..", in_folder("model/up"));
}

static int remove_files(void **state)
{
    (void)state;
    static const char *const names[] = {
        "model/link", "model/escape",   "model/loop",         "model/up",         "model/two",
        "model/hard", "model/data.bin", "model/sub/deep.bin", "model/model.onnx", "secret"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        unlink(in_folder(names[i]));
    return rmdir(in_folder("model/sub")) || rmdir(in_folder("model")) || rmdir(folder);
}

static void add_entry(struct onnx_model *m, Onnx__TensorProto *tensor, const char *key,
                      const char *value)
{
    Onnx__StringStringEntryProto *entry = arena_alloc(&m->arena, sizeof *entry);
    assert_non_null(entry);
    onnx__string_string_entry_proto__init(entry);
    entry->key = model_string(m, key);
    entry->value = value ? model_string(m, value) : NULL;
    model_append(m, &tensor->external_data, &tensor->n_external_data, entry);
}

/* A model whose output is w: f32[4] at `location`; offset and length may be NULL. */
static Onnx__TensorProto *start(struct onnx_model *m, const char *location, const char *offset,
                                const char *length)
{
    model_init(m, 8, 18);
    Onnx__TensorProto *w = model_tensor(m, "w", TSSA_FLOAT, "4", NULL, 0);
    w->has_data_location = 1;
    w->data_location = ONNX__TENSOR_PROTO__DATA_LOCATION__EXTERNAL;
    add_entry(m, w, "location", location);
    if (offset)
        add_entry(m, w, "offset", offset);
    if (length)
        add_entry(m, w, "length", length);
    model_initializer(m, m->graph, w);
    model_output(m, m->graph, "w", TSSA_FLOAT, "4");
    return w;
}

static tssa_status *load(struct onnx_model *m, bool allow_links, struct ir_graph **graph)
{
    size_t size;
    const void *bytes = model_pack(m, &size);
    write_file("model/model.onnx", bytes, size);
    struct onnx_import_options options = {.allow_external_links = allow_links};
    return onnx_import_file(&allocator_default, in_folder("model/model.onnx"), &options, graph);
}

static void expect_values(struct onnx_model *m, bool allow_links, const void *expected)
{
    struct ir_graph *graph = NULL;
    tssa_status *status = load(m, allow_links, &graph);
    if (status)
        print_error("%s\n", tssa_status_message(status));
    assert_null(status);
    const struct tensor *w = ir_value_constant(ir_operand(ir_block_return(graph->body), 0));
    assert_non_null(w);
    assert_true((uintptr_t)w->data % sizeof(float) == 0);
    assert_memory_equal(w->data, expected, 4 * sizeof(float));
    ir_graph_free(graph);
    model_free(m);
}

static void expect_error(struct onnx_model *m, tssa_code code, const char *message)
{
    struct ir_graph *graph = NULL;
    tssa_status *status = load(m, false, &graph);
    assert_non_null(status);
    if (!strstr(tssa_status_message(status), message))
        print_error("expected: %s\ngot: %s\n", message, tssa_status_message(status));
    assert_non_null(strstr(tssa_status_message(status), message));
    assert_non_null(strstr(tssa_status_message(status), "tensor \"w\""));
    assert_int_equal(tssa_status_code(status), code);
    tssa_status_free(status);
    model_free(m);
}

static void refuse_location(const char *location, tssa_code code, const char *message)
{
    struct onnx_model m;
    start(&m, location, NULL, NULL);
    expect_error(&m, code, message);
}

static void test_read(void **state)
{
    (void)state;
    struct onnx_model m;
    start(&m, "data.bin", NULL, NULL);
    expect_values(&m, false, values);
    start(&m, "data.bin", "16", "16");
    expect_values(&m, false, values + 4);
    start(&m, "./sub/deep.bin", "4", NULL);
    expect_values(&m, false, values + 1);
    /* Not aligned: copied. */
    start(&m, "sub//deep.bin", "3", NULL);
    expect_values(&m, false, (const char *)values + 3);
    Onnx__TensorProto *w = start(&m, "data.bin", NULL, NULL);
    add_entry(&m, w, "checksum", "0123456789abcdef0123456789abcdef01234567");
    add_entry(&m, w, "basepath", "/elsewhere");
    expect_values(&m, false, values);
}

static void test_escapes(void **state)
{
    (void)state;
    refuse_location("../secret", TSSA_MALFORMED, "leads out of the model's folder");
    refuse_location("sub/../../secret", TSSA_MALFORMED, "leads out of the model's folder");
    refuse_location("sub/..", TSSA_MALFORMED, "leads out of the model's folder");
    refuse_location("/etc/passwd", TSSA_MALFORMED, "is not below the model's folder");
    refuse_location("", TSSA_MALFORMED, "has no location");
    refuse_location("escape", TSSA_IO, "it is reached through a link");
    refuse_location("link", TSSA_IO, "it is reached through a link");
    refuse_location("hard", TSSA_IO, "has 2 hard links");
    refuse_location("nothing", TSSA_IO, "cannot open external data \"nothing\"");
    refuse_location("sub", TSSA_IO, "sub");
    refuse_location("data.bin/x", TSSA_IO, "cannot open external data");
    refuse_location("loop/deep.bin", TSSA_IO, "cannot open external data \"loop/deep.bin\"");
    refuse_location("up/secret", TSSA_IO, "cannot open external data \"up/secret\"");
}

/* Names that only look like "..". */
static void test_dots(void **state)
{
    (void)state;
    refuse_location("..data", TSSA_IO, "cannot open external data \"..data\"");
    refuse_location("sub/...", TSSA_IO, "cannot open external data \"sub/...\"");
}

static void test_links_on_request(void **state)
{
    (void)state;
    struct onnx_model m;
    static const char *const names[] = {"link", "hard", "loop/deep.bin", "escape"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        start(&m, names[i], NULL, NULL);
        expect_values(&m, true, values);
    }
    struct ir_graph *graph;
    start(&m, "../secret", NULL, NULL);
    tssa_status *status = load(&m, true, &graph);
    assert_int_equal(tssa_status_code(status), TSSA_MALFORMED);
    tssa_status_free(status);
    model_free(&m);
}

static void test_ranges(void **state)
{
    (void)state;
    static const struct {
        const char *offset, *length, *message;
    } cases[] = {
        {"20", NULL, "it takes 16 bytes at 20 of external data \"data.bin\", which has 32"},
        {"18446744073709551615", NULL, "16 bytes at 18446744073709551615"},
        {"18446744073709551616", NULL, "is not a size"},
        {"-4", NULL, "offset \"-4\" of its external data is not a size"},
        {" 4", NULL, "is not a size"},
        {"0x4", NULL, "is not a size"},
        {"", NULL, "is not a size"},
        {NULL, "15", "it takes 16 bytes of external data, not 15"},
        {NULL, "9223372036854775808", "not 9223372036854775808"},
    };
    struct onnx_model m;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        start(&m, "data.bin", cases[i].offset, cases[i].length);
        expect_error(&m, TSSA_MALFORMED, cases[i].message);
    }
}

static void test_entries(void **state)
{
    (void)state;
    struct onnx_model m;
    add_entry(&m, start(&m, "data.bin", NULL, NULL), "__class__", "x");
    expect_error(&m, TSSA_MALFORMED, "\"__class__\" is no key of external data");
    add_entry(&m, start(&m, "data.bin", NULL, NULL), "location", "sub/deep.bin");
    expect_error(&m, TSSA_MALFORMED, "two entries \"location\"");
    add_entry(&m, start(&m, "data.bin", NULL, NULL), "length", NULL);
    expect_error(&m, TSSA_MALFORMED, "length \"\" of its external data is not a size");
    start(&m, "data.bin", NULL, NULL)->n_external_data = 0;
    expect_error(&m, TSSA_MALFORMED, "its external data has no location");

    Onnx__TensorProto *w = start(&m, "data.bin", NULL, NULL);
    w->float_data = (float *)values;
    w->n_float_data = 4;
    expect_error(&m, TSSA_MALFORMED, "it has both external data and float_data");
    start(&m, "data.bin", NULL, NULL)->data_type = TSSA_STRING;
    expect_error(&m, TSSA_MALFORMED, "strings cannot be external data");
}

static void test_from_memory(void **state)
{
    (void)state;
    struct onnx_model m;
    struct ir_graph *graph;
    size_t size;
    start(&m, "data.bin", NULL, NULL);
    const void *bytes = model_pack(&m, &size);
    tssa_status *status = onnx_import(&allocator_default, bytes, size, NULL, &graph);
    assert_int_equal(tssa_status_code(status), TSSA_MALFORMED);
    assert_non_null(strstr(tssa_status_message(status), "the model has no folder"));
    tssa_status_free(status);

    char model_folder[128];
    snprintf(model_folder, sizeof model_folder, "%s", in_folder("model"));
    struct onnx_import_options options = {.external_data_folder = model_folder};
    assert_null(onnx_import(&allocator_default, bytes, size, &options, &graph));
    ir_graph_free(graph);
    options.external_data_folder = "/nowhere/at/all";
    status = onnx_import(&allocator_default, bytes, size, &options, &graph);
    assert_int_equal(tssa_status_code(status), TSSA_IO);
    tssa_status_free(status);
    model_free(&m);
}

/* From here on the process has no openat2, as in old kernels and in some containers. */
static bool forbid_openat2(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* Last: the whole process is without openat2 afterwards. */
static void test_without_openat2(void **state)
{
    if (!forbid_openat2())
        skip();
    assert_int_equal(syscall(SYS_openat2, -1, "", NULL, 0), -1);
    assert_int_equal(errno, ENOSYS);
    test_read(state);
    test_escapes(state);
    test_dots(state);
    test_links_on_request(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),        cmocka_unit_test(test_escapes),
        cmocka_unit_test(test_dots),        cmocka_unit_test(test_links_on_request),
        cmocka_unit_test(test_ranges),      cmocka_unit_test(test_entries),
        cmocka_unit_test(test_from_memory), cmocka_unit_test(test_without_openat2),
    };
    return cmocka_run_group_tests(tests, make_files, remove_files);
}
