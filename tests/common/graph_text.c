/* SPDX-License-Identifier: Apache-2.0 */
#include "common/graph_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ir/printer.h"
#include "onnx/importer.h"

static const char *skip_digits(const char *text)
{
    return text + strspn(text, "0123456789");
}

void print_unnumbered(const struct ir_graph *graph, bool with_versions, struct text *text)
{
    struct text full;
    text_init(&full, &allocator_default);
    ir_print_graph(graph, false, &full);
    for (const char *c = text_string(&full); *c;) {
        bool version = !with_versions && *c == '@' && skip_digits(c + 1) != c + 1;
        bool symbol = *c == '#';
        if (!version)
            text_putc(text, *c);
        c++;
        if (version || symbol)
            c = skip_digits(c);
    }
    text_free(&full);
}

static tssa_status *append(void *context, const void *data, size_t size)
{
    text_append(context, data, size);
    return NULL;
}

struct output_sink text_sink(struct text *text)
{
    return (struct output_sink){append, text};
}

static void show_difference(const char *one, const char *two)
{
    size_t size = strcspn(one, "\n");
    while (*one && size == strcspn(two, "\n") && memcmp(one, two, size) == 0) {
        one += size + (one[size] == '\n');
        two += size + (two[size] == '\n');
        size = strcspn(one, "\n");
    }
    print_error("%.*s\nbecomes\n%.*s\n", (int)size, one, (int)strcspn(two, "\n"), two);
}

void same_graphs(const char *name, const struct ir_graph *a, const struct ir_graph *b,
                 bool with_versions)
{
    struct text one, two;
    text_init(&one, &allocator_default);
    text_init(&two, &allocator_default);
    print_unnumbered(a, with_versions, &one);
    print_unnumbered(b, with_versions, &two);
    /* The first line tells the opset. */
    const char *x = with_versions ? text_string(&one) : strchr(text_string(&one), '\n');
    const char *y = with_versions ? text_string(&two) : strchr(text_string(&two), '\n');
    if (strcmp(x, y) != 0) {
        show_difference(x, y);
        fail_msg("%s: the graph changes when it is written and read", name);
    }
    text_free(&one);
    text_free(&two);
}

struct ir_graph *export_import(const char *name, const struct ir_graph *graph,
                               const struct onnx_export_options *options, struct text *bytes)
{
    struct ir_graph *again = NULL;
    const struct output_sink sink = text_sink(bytes);
    text_clear(bytes);
    tssa_status *status = onnx_export(graph, options, &sink);
    if (!status)
        status = onnx_import(&allocator_default, bytes->data, bytes->size, NULL, &again);
    if (status)
        fail_msg("%s: %s", name, tssa_status_message(status));
    return again;
}
