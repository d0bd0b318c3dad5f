/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions that generated kernels call: those of ir/scalar, as the element-wise interpreter
 * has them, compiled once per instruction set for as many elements as a kernel's vectors have.
 */
#ifndef TSSA_DEVICE_CPU_FUNCTIONS_H
#define TSSA_DEVICE_CPU_FUNCTIONS_H

#include "codegen/codegen.h"

/* By SCALAR_ id; NULL where there is none. */
extern const codegen_function cpu_functions_f32_base[SCALAR_COUNT_OF_IDS],
    cpu_functions_f64_base[SCALAR_COUNT_OF_IDS], cpu_functions_f32_v3[SCALAR_COUNT_OF_IDS],
    cpu_functions_f32_v4[SCALAR_COUNT_OF_IDS], cpu_functions_f64_v3[SCALAR_COUNT_OF_IDS],
    cpu_functions_f64_v4[SCALAR_COUNT_OF_IDS];

#endif
