/* SPDX-License-Identifier: Apache-2.0 */
/* A small program of two kernels, in sessions that compile; and a generator of code that does what
 * it is told. */
#ifndef TSSA_TESTS_COMPILING_H
#define TSSA_TESTS_COMPILING_H

#include <stdbool.h>

#include "tssa.h"

struct compiling {
    tssa_context *context;
    tssa_model *model;
    tssa_session *session;
    tssa_value *inputs[2];
    char warnings[2048]; /* a line each */
    int n_warnings;
};

/* Where kernels are compiled for real, and may be: x86-64-v2, LLVM. Prints why not. */
bool compiling_is_possible(void);

/* What tests/codegen/fake_codegen.c does from now on; NULL: the real generator. */
void compiling_fake(const char *what);

/* One thread. `cache`: as tssa_context_options.kernel_cache. */
void compiling_open(struct compiling *c, tssa_compile compile, const char *cache);
/* Two threads, and kernels of whole rows, which take long to compile; waits. */
void compiling_open_two(struct compiling *c);
/* Another session of the model; the first one is freed. */
void compiling_again(struct compiling *c, tssa_compile compile);
/* Runs it, and compares with the bits of the interpreter. Any thread. */
void compiling_run(struct compiling *c);
/* Runs it until nothing is compiled any more, 20 seconds at most. */
tssa_compile_info compiling_finish(struct compiling *c);
void compiling_close(struct compiling *c);

#endif
