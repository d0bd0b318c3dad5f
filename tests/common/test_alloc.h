/* SPDX-License-Identifier: Apache-2.0 */
/* An allocator that counts, and that can fail one allocation. Tests that end with `live == 0` leak
 * not. */
#ifndef TSSA_TESTS_TEST_ALLOC_H
#define TSSA_TESTS_TEST_ALLOC_H

#include "tssa.h"

struct test_alloc {
    tssa_allocator allocator;
    long live;    /* allocations not yet released */
    long count;   /* allocations asked for */
    long fail_at; /* the number (from 0) of the one that fails; -1: none */
};

void test_alloc_init(struct test_alloc *alloc);

/*
 * Runs `scenario` again and again, failing its first, second, ... allocation (or not all of them:
 * programs_stride in common/random_programs.h), until it gets through. Each failed run must return
 * TSSA_OUT_OF_MEMORY; every run must release everything. Returns the number of allocations of the
 * run that got through.
 */
long test_alloc_sweep(tssa_status *(*scenario)(const tssa_allocator *allocator));

#endif
