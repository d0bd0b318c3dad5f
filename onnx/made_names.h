/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names that the exporter makes, and the importer takes for what they are: a value "tssa_7" has no
 * name, and a node "conv_tssa2" is another one called "conv". So a model that is read, rewritten
 * and written again is called the same.
 */
#ifndef TSSA_ONNX_MADE_NAMES_H
#define TSSA_ONNX_MADE_NAMES_H

#include <stdbool.h>
#include <stddef.h>

#define MADE_VALUE "tssa"        /* "tssa_1", "tssa_2", ... */
#define MADE_NODE_SUFFIX "_tssa" /* "conv_tssa1", ... */

bool made_value_name(const char *name);
/* The length of the name without the suffix, which is all of it when there is none. */
size_t made_node_base(const char *name);

#endif
