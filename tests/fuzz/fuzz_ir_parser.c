/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes either parse or give one line; what parses and verifies prints, and prints the same
 * again. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "ir/parser.h"
#include "ir/printer.h"
#include "ir/verifier.h"

static int check_status(tssa_status *status)
{
    if (status && strchr(tssa_status_message(status), '\n'))
        abort();
    tssa_status_free(status);
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct ir_graph *graph = NULL, *copy = NULL;
    tssa_status *status = ir_parse(&allocator_default, (const char *)data, size, &graph);
    if (status)
        return check_status(status);

    struct text text, again;
    text_init(&text, &allocator_default);
    text_init(&again, &allocator_default);
    check_status(ir_verify(graph));
    ir_print_graph(graph, true, &text);
    status = ir_parse(&allocator_default, text.data, text.size, &copy);
    if (status)
        abort(); /* what is printed must parse */
    ir_print_graph(copy, true, &again);
    if (text.size != again.size || memcmp(text.data, again.data, text.size) != 0)
        abort();
    text_free(&again);
    text_free(&text);
    ir_graph_free(copy);
    ir_graph_free(graph);
    return 0;
}
