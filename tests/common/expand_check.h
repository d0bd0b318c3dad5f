/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Operators that are IR on devices which have no kernel of them (expand_recurrent,
 * expand_attention): a model of one of them at level 2 on such a device, and at level 0 on the CPU,
 * where it is interpreted.
 */
#ifndef TSSA_TESTS_COMMON_EXPAND_CHECK_H
#define TSSA_TESTS_COMMON_EXPAND_CHECK_H

#include <stdbool.h>
#include <stddef.h>

#include "base/value.h"
#include "tssa.h"

#define EXPAND_MOST 8 /* inputs or outputs */

/* An input; `data` NULL: zeros. */
struct expand_input {
    tssa_dtype dtype;
    int rank;
    int64_t dims[4];
    const void *data;
};

/* A model of one operator, and what it is given. */
struct expand_program {
    const char *text;
    size_t n_inputs, n_outputs;
    struct expand_input inputs[EXPAND_MOST];
    /* Fails the test where the device's output is not what is wanted. */
    void (*compare)(void *user, const struct value *wanted, const struct value *made,
                    size_t output);
    void *user;
};

/* Runs it on both sides, twice: what is recorded, too. The pass must expand one op on the device,
 * and on the CPU say nothing. false: there is no such device. */
bool expand_check(const char *pass, const char *device, const struct expand_program *program);

/* How many ops the pass expands and leaves, at a level, on a device; NULL: the CPU. */
void expand_expect(const char *pass, const char *text, int level, const char *device, int expanded,
                   int left);

/* Runs a model of one output at level 2: it works, or fails with TSSA_RUNTIME. */
void expand_expect_run(const char *text, const char *device, size_t n_inputs,
                       const struct expand_input *inputs, bool works);

#endif
