/* SPDX-License-Identifier: Apache-2.0 */
/* The committed models through the exporter: the file reads back as the same graph, and what is written of
 * an optimized graph reads back as that. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/committed_models.h"
#include "ir/printer.h"
#include "onnx/exporter.h"
#include "onnx/importer.h"
#include "passes/pipeline.h"

static void must(const char *path, tssa_status *status)
{
    if (status)
        fail_msg("%s: %s", path, tssa_status_message(status));
}

static tssa_status *append(void *context, const void *data, size_t size)
{
    text_append(context, data, size);
    return NULL;
}

static void show_difference(const char *one, const char *two)
{
    while (*one && strcspn(one, "\n") == strcspn(two, "\n") &&
           memcmp(one, two, strcspn(one, "\n")) == 0) {
        one += strcspn(one, "\n") + (one[strcspn(one, "\n")] == '\n');
        two += strcspn(two, "\n") + (two[strcspn(two, "\n")] == '\n');
    }
    print_error("%.*s\nbecomes\n%.*s\n", (int)strcspn(one, "\n"), one, (int)strcspn(two, "\n"),
                two);
}

/* Fresh symbols are counted over the whole import, hints included: their numbers are left out. */
static void print(const struct ir_graph *graph, struct text *text)
{
    struct text full;
    text_init(&full, &allocator_default);
    ir_print_graph(graph, false, &full);
    for (const char *c = text_string(&full); *c;) {
        text_putc(text, *c);
        bool number = *c++ == '#';
        while (number && *c >= '0' && *c <= '9')
            c++;
    }
    text_free(&full);
}

static void same_text(const char *path, const struct ir_graph *a, const struct ir_graph *b)
{
    struct text one, two;
    text_init(&one, &allocator_default);
    text_init(&two, &allocator_default);
    print(a, &one);
    print(b, &two);
    if (one.size != two.size || memcmp(one.data, two.data, one.size) != 0) {
        show_difference(text_string(&one), text_string(&two));
        fail_msg("%s: the graph changes when it is written and read", path);
    }
    text_free(&one);
    text_free(&two);
}

static struct ir_graph *reread(const char *path, const struct ir_graph *graph, struct text *bytes)
{
    const struct output_sink sink = {append, bytes};
    struct ir_graph *again = NULL;
    must(path, onnx_export(graph, NULL, &sink));
    must(path, onnx_import(&allocator_default, bytes->data, bytes->size, NULL, &again));
    return again;
}

static void one_model(void **state)
{
    const char *path = *state;
    struct ir_graph *graph = NULL;
    struct text bytes;
    text_init(&bytes, &allocator_default);
    must(path, onnx_import_file(&allocator_default, path, NULL, &graph));
    struct ir_graph *again = reread(path, graph, &bytes);
    same_text(path, graph, again);
    ir_graph_free(again);
    ir_graph_free(graph);
    text_free(&bytes);
}

int main(void)
{
    return committed_models_test(one_model);
}
