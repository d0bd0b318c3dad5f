/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs as text that can be compared across imports. */
#ifndef TSSA_TESTS_COMMON_GRAPH_TEXT_H
#define TSSA_TESTS_COMMON_GRAPH_TEXT_H

#include "ir/ir.h"
#include "onnx/exporter.h"

/* The text without the numbers of fresh symbols, which are counted over a whole import, and on
 * request without the versions that ops are bound to. */
void print_unnumbered(const struct ir_graph *graph, bool with_versions, struct text *text);
/* Collects what an exporter writes in `text`. */
struct output_sink text_sink(struct text *text);
/* Fails the test, showing the first line that differs. `name` is for the message. */
void same_graphs(const char *name, const struct ir_graph *a, const struct ir_graph *b,
                 bool with_versions);
/* Exports, imports; fails the test when that is not possible. options may be NULL. The graph that
 * is read borrows from `bytes`, in which the file is. */
struct ir_graph *export_import(const char *name, const struct ir_graph *graph,
                               const struct onnx_export_options *options, struct text *bytes);

#endif
