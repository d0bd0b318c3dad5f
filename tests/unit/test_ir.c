/* SPDX-License-Identifier: Apache-2.0 */
/* How messages name an op: cut to fit, and between characters (ir_op_describe). And whose memory is
 * given back (ir_graph_forget, ir_graph_forget_files). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/text.h"
#include "ir/clone.h"
#include "ir/ir.h"

#define E_ACUTE "\xc3\xa9"
#define TEN(x) x x x x x x x x x x

static void op_descriptions(void **state)
{
    static const struct ir_opaque opaque = {
        .domain = "com.acme", .name = TEN(TEN(E_ACUTE)), .overload = "", .opset = 1};
    struct ir_graph *graph = ir_graph_create(&allocator_default);
    struct ir_op *op = ir_op_create(graph, ir_op_info(IR_OP_Relu), 1, 1);
    char text[200];
    (void)state;
    assert_non_null(op);
    ir_op_describe(op, text, sizeof text);
    assert_string_equal(text, "Relu (node 0)");
    op->name = "conv1/relu";
    ir_op_describe(op, text, sizeof text);
    assert_string_equal(text, "Relu (node \"conv1/relu\")");

    op->name = "a" TEN(TEN(E_ACUTE));
    for (size_t size = 128; size <= sizeof text; size++) {
        ir_op_describe(op, text, size);
        size_t length = strlen(text);
        assert_in_range(length, size - 3, size - 1);
        assert_true(utf8_valid(text, length));
        assert_string_equal(text + length - 2, "\")");
    }
    op->info = ir_op_info(IR_OP_opaque);
    op->opaque = &opaque;
    ir_op_describe(op, text, 128);
    assert_true(utf8_valid(text, strlen(text)));
    assert_non_null(strstr(text, E_ACUTE " (node \"a" E_ACUTE));
    ir_graph_free(graph);
}

static void keep(struct ir_resource *resource)
{
    (void)resource;
}

/* Memory that no file backs is zero when it was given back. */
static void forgotten(void **state)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    struct ir_graph *graph = ir_graph_create(&allocator_default), *copy, *other;
    struct ir_resource resource = {.release = keep};
    char *data = mmap(NULL, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    (void)state;
    assert_true(data != MAP_FAILED);
    memset(data, 1, 4 * page);
    resource.file = (struct file_map){data + page, 2 * page};
    other = ir_graph_create(&allocator_default);
    ir_graph_attach(graph, &resource);
    assert_null(ir_clone_graph(graph, &copy));
    ir_graph_forget(NULL, data + page, page);
    ir_graph_forget(other, data + page, page);
    ir_graph_forget(graph, data, page);
    ir_graph_forget(graph, data + 2 * page, 2 * page); /* more than the file has */
    ir_graph_forget(graph, data + page + 1, page);     /* no whole page */
    for (size_t i = 0; i < 4 * page; i++)
        assert_int_equal(data[i], 1);
    ir_graph_forget(graph, data + page, page);
    ir_graph_forget(copy, data + 2 * page, page);
    for (size_t i = 0; i < 4 * page; i++)
        assert_int_equal(data[i], i < page || i >= 3 * page);
    memset(data, 1, 4 * page);
    ir_graph_forget_files(other);
    ir_graph_forget_files(graph);
    for (size_t i = 0; i < 4 * page; i++)
        assert_int_equal(data[i], i < page || i >= 3 * page);
    ir_graph_free(copy);
    ir_graph_free(other);
    ir_graph_free(graph);
    munmap(data, 4 * page);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(op_descriptions),
                                       cmocka_unit_test(forgotten)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
