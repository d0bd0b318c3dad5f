/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TSSA_CODEGEN_LLVM_KERNEL_H
#define TSSA_CODEGEN_LLVM_KERNEL_H

#include "codegen/llvm/emit.h"

/* Puts the kernel's function (codegen_run) into the emitter's module. `masks`: the machine has them
 * for elements of every size. */
void emit_kernel(struct emitter *emitter, unsigned lanes, bool masks);

#endif
