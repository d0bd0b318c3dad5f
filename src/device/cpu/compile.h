/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels compiled for the CPU, and the step that runs one. */
#ifndef TSSA_DEVICE_CPU_COMPILE_H
#define TSSA_DEVICE_CPU_COMPILE_H

#include "codegen/codegen.h"
#include "device/device.h"

/* What a kernel has become. */
struct cpu_code {
    codegen_run run;
    struct codegen_calls calls;
    size_t kept; /* gir_kept_bytes() */
};

/* That the machine has. */
enum codegen_level cpu_codegen_level(void);

/*
 * struct device.compile. Kernels that are not there yet are compiled in processes of their own, as
 * many at once as the context has threads. Equal kernels of a context are compiled once, but by
 * those who ask for them at the same time.
 */
tssa_status *cpu_compile(struct device_context *context, struct device_compiling *compiling);
/* Frees what was compiled in the context. */
void cpu_compile_close(struct device_context *context);

/* Of fuse ops for which there is code. */
extern const struct kernel cpu_kernel_fused;

/* The same of those with parts. */
tssa_status *cpu_run_mapped(struct kernel_args *args, const struct device_fused *fused);

#endif
