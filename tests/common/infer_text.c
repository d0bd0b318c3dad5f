/* SPDX-License-Identifier: Apache-2.0 */
/* Programs around the ops, and fresh symbols renumbered; see infer_text.h. */
#include "common/infer_text.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ir/infer.h"
#include "ir/parser.h"

#define MAX_FRESH 32

/* The number of a fresh symbol in the order of appearance, from 1. */
static unsigned place_of(unsigned number, unsigned *seen, unsigned *n)
{
    for (unsigned k = 0; k < *n; k++)
        if (seen[k] == number)
            return k + 1;
    assert_true(*n < MAX_FRESH);
    seen[(*n)++] = number;
    return *n;
}

/* Replaces hint#17 and "odd hint#17" by #1, #2, ... */
static void renumber(const char *from, char *to, size_t size)
{
    unsigned seen[MAX_FRESH], n = 0;
    size_t length = 0;
    for (; *from; from++) {
        unsigned number;
        int used;
        assert_true(length + 16 < size);
        if (*from != '#' || sscanf(from, "#%u%n", &number, &used) != 1) {
            to[length++] = *from;
            continue;
        }
        while (length > 0 && strchr(" ,([*\"", to[length - 1]) == NULL)
            length--;
        if (length > 0 && to[length - 1] == '"')
            length--;
        length += (size_t)snprintf(to + length, size - length, "#%u", place_of(number, seen, &n));
        from += used - 1;
        if (from[1] == '"')
            from++;
    }
    to[length] = 0;
}

static void print_value(const struct ir_value *value, struct text *text)
{
    type_print(value->type, text);
    if (!value->known)
        return;
    text_puts(text, " [");
    for (size_t i = 0; i < value->known->count; i++) {
        text_puts(text, i ? ", " : "");
        if (value->known->elements[i])
            dim_print(value->known->elements[i], text);
        else
            text_puts(text, "?");
    }
    text_puts(text, "]");
}

static struct ir_graph *parse(const char *inputs, const char *ops)
{
    struct ir_graph *graph;
    struct text program;
    text_init(&program, &allocator_default);
    text_printf(&program, "graph opset(\"\": 26) (%s) -> (%%y) {\n%s\n  return(%%y)\n}\n", inputs,
                ops);
    assert_non_null(text_string(&program));
    tssa_status *status = ir_parse(&allocator_default, program.data, program.size, &graph);
    if (status)
        fail_msg("%s\n%s", text_string(&program), tssa_status_message(status));
    text_free(&program);
    return graph;
}

void infer_gives(const char *inputs, const char *ops, const char *result)
{
    struct ir_graph *graph = parse(inputs, ops);
    struct text text;
    char got[512];
    tssa_status *status = ir_infer_graph(graph);
    if (status)
        fail_msg("%s\n  %s", ops, tssa_status_message(status));
    text_init(&text, &allocator_default);
    print_value(ir_operand(ir_block_return(graph->body), 0), &text);
    renumber(text_string(&text), got, sizeof got);
    if (strcmp(result, got) != 0)
        fail_msg("%s\n  is     %s\n  wanted %s", ops, got, result);
    text_free(&text);
    ir_graph_free(graph);
}

void infer_refuses(const char *inputs, const char *ops, tssa_code code, const char *why)
{
    struct ir_graph *graph = parse(inputs, ops);
    tssa_status *status = ir_infer_graph(graph);
    if (!status || tssa_status_code(status) != code || !strstr(tssa_status_message(status), why))
        fail_msg("%s\n  \"%s\" (code %d) does not say \"%s\" (code %d)", ops,
                 status ? tssa_status_message(status) : "success", (int)tssa_status_code(status),
                 why, (int)code);
    tssa_status_free(status);
    ir_graph_free(graph);
}
