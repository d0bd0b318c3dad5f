/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the text form (see printer.h). Types after a colon are taken as they are; results without
 * one are inferred (ir_infer_graph) by the caller, who owns the graph. TSSA_MALFORMED, with line
 * and column, for text that is none; TSSA_OUT_OF_MEMORY. *graph is written on success only. `text`
 * is not kept.
 */
#ifndef TSSA_IR_PARSER_H
#define TSSA_IR_PARSER_H

#include "ir/ir.h"

tssa_status *ir_parse(const tssa_allocator *allocator, const char *text, size_t size,
                      struct ir_graph **graph);

#endif
