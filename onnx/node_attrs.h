/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The attributes of a node on its way from one opset to another: what upgrade.c, which reads old
 * nodes, and downgrade.c, which writes them, do with them alike.
 */
#ifndef TSSA_ONNX_NODE_ATTRS_H
#define TSSA_ONNX_NODE_ATTRS_H

#include "base/vec.h"
#include "ir/ir.h"

typedef VEC(struct ir_attr) node_attrs;

/* NULL: there is none of the name. */
struct ir_attr *node_attrs_find(const node_attrs *attrs, const char *name);
void node_attrs_drop(node_attrs *attrs, const char *name);
/* The number of an INT attribute, or `fallback`. */
int64_t node_attrs_int(const node_attrs *attrs, const char *name, int64_t fallback);
/* Is the attribute, which may be NULL, a STRING of these bytes? */
bool attr_is_string(const struct ir_attr *attr, const char *text);
/* What the attribute's text is called on the other side, for a `pair` of the form "here=there";
 * NULL: it is another text. */
const char *attr_respelled(const struct ir_attr *attr, const char *pair);
/* Is the tensor, which may be NULL, of type FLOAT with a number below 1? Factors of Resize are told
 * so. */
bool scales_shrink(const struct tensor *scales);
/* -1: unknown, or no tensor. The value may be NULL. */
int node_operand_rank(const struct ir_value *value);

#endif
