/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A device that is the host but for its kernels, which are the shim's (codegen/clike): a C compiler
 * takes many at once. So kernels are asked for twice: at first there is no code, and what is asked
 * for is kept in mind; then all of that is compiled, and there is code.
 */
#ifndef TSSA_TESTS_COMMON_SHIM_DEVICE_H
#define TSSA_TESTS_COMMON_SHIM_DEVICE_H

#include "codegen/clike/clike.h"
#include "codegen/codegen.h"
#include "device/device.h"

/* Valid until the process ends. */
const struct device *shim_device(void);
/* Of that device. */
struct device_context *shim_context(void);

/* For others that run the shim's kernels: keeps a kernel in mind, or those of a launch of grids,
 * and its code of a width once there is some; NULL: not yet, or it has no text. */
void shim_add(const struct gir_kernel *const *parts, uint32_t n);
codegen_run shim_code(const struct gir_kernel *const *parts, uint32_t n, enum clike_width width);

uint32_t shim_count(void);   /* of kernels so far, equal ones once */
uint32_t shim_refused(void); /* which have no text */
/* The text of every `step`th kernel of some, as k0, k1, ... by their numbers; of grids, the narrow
 * one, and as w0, w1, ... the wide one. */
void shim_print(enum clike_dialect dialect, uint32_t begin, uint32_t end, uint32_t step,
                struct text *text);

/* Once; the test fails where the compiler does. */
void shim_compile(void);
/* In which order threads and lanes run: 0 forward, 1 backward, 2 shuffled. */
void shim_order(int order);
/* When nothing runs any more. */
void shim_close(void);

#endif
