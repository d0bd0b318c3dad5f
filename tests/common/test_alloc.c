/* SPDX-License-Identifier: Apache-2.0 */
/* The counting, failing allocator of the tests. Not thread-safe. */
#include "common/test_alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "common/random_programs.h"

static void *allocate(void *user, size_t size, size_t alignment)
{
    struct test_alloc *alloc = user;
    if (alloc->count++ == alloc->fail_at)
        return NULL;
    void *memory = allocator_default.allocate(NULL, size, alignment);
    if (memory) {
        alloc->live++;
        /* Nobody may count on zeroed memory. */
        for (size_t i = 0; i < size && i < 256; i++)
            ((unsigned char *)memory)[i] = 0xa5;
    }
    return memory;
}

static void release(void *user, void *memory)
{
    struct test_alloc *alloc = user;
    alloc->live--;
    allocator_default.release(NULL, memory);
}

void test_alloc_init(struct test_alloc *alloc)
{
    *alloc = (struct test_alloc){.allocator = {alloc, allocate, release}, .fail_at = -1};
}

long test_alloc_sweep(tssa_status *(*scenario)(const tssa_allocator *allocator))
{
    long stride = programs_stride();
    for (long fail_at = 0;; fail_at += stride) {
        struct test_alloc alloc;
        test_alloc_init(&alloc);
        alloc.fail_at = fail_at;
        tssa_status *status = scenario(&alloc.allocator);
        assert_int_equal(alloc.live, 0);
        if (!status) {
            /* Getting through although an allocation failed is fine only with a second try. */
            if (alloc.count <= fail_at)
                return alloc.count;
            continue;
        }
        assert_int_equal(tssa_status_code(status), TSSA_OUT_OF_MEMORY);
        tssa_status_free(status);
    }
}
