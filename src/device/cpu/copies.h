/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The copies that generated kernels call where rows are lanes (codegen/llvm/short_rows.c): between
 * rows of an argument and memory in which an element of CODEGEN_ROWS rows is a vector. That they
 * are no part of each kernel made those of whole rows three times as quick to compile.
 */
#ifndef TSSA_DEVICE_CPU_COPIES_H
#define TSSA_DEVICE_CPU_COPIES_H

#include "codegen/codegen.h"

/* As in codegen_calls; _v3: for AVX2, where there is such a thing. */
extern const codegen_copy cpu_copies_in_base[CODEGEN_SIZES], cpu_copies_out_base[CODEGEN_SIZES],
    cpu_copies_in_v3[CODEGEN_SIZES], cpu_copies_out_v3[CODEGEN_SIZES];

#endif
