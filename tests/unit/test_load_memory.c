/* SPDX-License-Identifier: Apache-2.0 */
/* Loading a model whose weights are most of it takes little more memory than its file, and leaves
 * nothing of the file in memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "onnx/importer.h"
#include "onnx/wire.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

#define ELEMENTS ((int64_t)32 << 20)
#define FEW_ELEMENTS ((int64_t)32 << 10) /* copied in one piece */
#define PAYLOAD (4 * (size_t)ELEMENTS)

/* A length that is known beforehand, in front of bytes that are not written but left as a hole. */
static void put_length(struct text *out, uint32_t field, size_t size)
{
    wire_put_varint(out, (uint64_t)field << 3 | 2);
    wire_put_varint(out, size);
}

/* The model "y = Identity(w)", up to and with the length of w's raw_data, which ends the file. */
static void put_head(struct text *out, const char *name, int64_t elements)
{
    const size_t payload = 4 * (size_t)elements;
    struct text tensor, node, graph;
    text_init(&tensor, &allocator_default);
    text_init(&node, &allocator_default);
    text_init(&graph, &allocator_default);
    wire_put_int(&tensor, 1, elements);
    wire_put_int(&tensor, 2, TSSA_FLOAT);
    wire_put_bytes(&tensor, 8, name, strlen(name));
    put_length(&tensor, 9, payload);
    wire_put_bytes(&node, 1, name, strlen(name));
    wire_put_bytes(&node, 2, "y", 1);
    wire_put_bytes(&node, 4, "Identity", 8);
    wire_put_bytes(&graph, 1, node.data, node.size);
    wire_put_bytes(&graph, 12, "\x0a\x01y", 3);
    put_length(&graph, 5, tensor.size + payload);
    text_append(&graph, tensor.data, tensor.size);
    wire_put_int(out, 1, 8);
    wire_put_bytes(out, 8, "\x10\x12", 2);
    put_length(out, 7, graph.size + payload);
    text_append(out, graph.data, graph.size);
    text_free(&tensor);
    text_free(&node);
    text_free(&graph);
}

static void write_model(const char *path, const char *name, int64_t elements)
{
    struct text head;
    text_init(&head, &allocator_default);
    put_head(&head, name, elements);
    int file = open(path, O_WRONLY | O_TRUNC);
    assert_true(file >= 0);
    assert_int_equal(write(file, head.data, head.size), head.size);
    assert_int_equal(ftruncate(file, (off_t)(head.size + 4 * (size_t)elements)), 0);
    assert_int_equal(close(file), 0);
    text_free(&head);
}

static long peak_kilobytes(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_maxrss : -1;
}

/* In a child of its own: the exit status. */
static int load(const char *path)
{
    long before = peak_kilobytes();
    struct ir_graph *graph;
    tssa_status *status = onnx_import_file(&allocator_default, path, NULL, &graph);
    if (status) {
        print_error("%s\n", tssa_status_message(status));
        return 1;
    }
    const struct tensor *w = ir_attr_tensor(graph->body->first, "value");
    int wrong = !w || w->dims[0] != ELEMENTS || ((const float *)w->data)[ELEMENTS - 1] != 0;
    ir_graph_free(graph);
    double grown = (double)(peak_kilobytes() - before) * 1024;
    if (!SANITIZED && grown > 1.15 * (double)PAYLOAD) {
        print_error("%s: %.2f times the file\n", path, grown / (double)PAYLOAD);
        return 2;
    }
    return wrong ? 3 : 0;
}

/* Names of four lengths, so that the data lies at every alignment: it is borrowed at one of them
 * and copied at three. */
static void test_peak(void **state)
{
    (void)state;
    static const char *const names[] = {"w", "ww", "www", "wwww"};
    char path[] = "/tmp/tssa-large-XXXXXX";
    int file = mkstemp(path);
    assert_true(file >= 0);
    close(file);
    int failed = 0;
    for (int i = 0; i < 4; i++) {
        write_model(path, names[i], ELEMENTS);
        fflush(NULL);
        pid_t child = fork();
        if (child == 0)
            _exit(load(path));
        int status = -1;
        assert_true(child > 0 && waitpid(child, &status, 0) == child);
        failed += status != 0;
    }
    unlink(path);
    assert_int_equal(failed, 0);
}

/* Those of the map that this process has; -1: the system does not tell. */
static long pages_there(const struct file_map *map)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const int file = open("/proc/self/pagemap", O_RDONLY);
    long there = file < 0 ? -1 : 0;
    for (size_t i = 0; file >= 0 && i < (map->size + page - 1) / page; i++) {
        uint64_t entry = 0;
        const off_t at = (off_t)(((uintptr_t)map->data / page + i) * sizeof entry);
        assert_int_equal(pread(file, &entry, sizeof entry, at), sizeof entry);
        there += entry >> 63;
    }
    if (file >= 0)
        close(file);
    return there;
}

/* Small tensors, too, whether they were copied or not. */
static void test_left(void **state)
{
    static const char *const names[] = {"w", "ww", "www", "wwww"};
    char path[] = "/tmp/tssa-small-XXXXXX";
    int file = mkstemp(path);
    (void)state;
    assert_true(file >= 0);
    close(file);
    for (int i = 0; i < 4; i++) {
        struct ir_graph *graph;
        write_model(path, names[i], FEW_ELEMENTS);
        assert_null(onnx_import_file(&allocator_default, path, NULL, &graph));
        const struct file_map *map = &graph->resources->file;
        const volatile char *first = map->data;
        const long there = pages_there(map);
        assert_int_equal(first[0], 8);
        if (there >= 0) {
            assert_in_range(there, 0, 1); /* the last one, which is no whole page */
            assert_true(pages_there(map) > there);
        }
        ir_graph_free(graph);
    }
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_peak), cmocka_unit_test(test_left)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
