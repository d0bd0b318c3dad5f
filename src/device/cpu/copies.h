/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The copies that generated kernels call where rows are lanes (codegen/llvm/short_rows.c): between
 * rows of an argument and memory in which an element of CODEGEN_ROWS rows is a vector. That they
 * are no part of each kernel made those of whole rows three times as quick to compile.
 */
#ifndef TSSA_DEVICE_CPU_COPIES_H
#define TSSA_DEVICE_CPU_COPIES_H

#include "codegen/codegen.h"

/* For AVX2 and fused multiply-add, where there is such a thing; as in codegen_calls. */
extern const codegen_copy cpu_copies_in[CODEGEN_SIZES], cpu_copies_out[CODEGEN_SIZES];

#endif
