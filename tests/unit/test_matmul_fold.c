/* SPDX-License-Identifier: Apache-2.0 */
/* matmul_fold: whatever axes of batches become, each batch's matrices begin where they did. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/no_error.h"
#include "common/op_run.h"
#include "device/matmul.h"

#define MOST_BATCHES 5

/* Where the matrix of batch i begins whose leading axes are the last `rank` - 2 of dims, by numpy's
 * rules. */
static int64_t begin_of(const struct tensor *tensor, const int64_t *batch, int n, int64_t i)
{
    const int64_t *dims = tensor->dims, matrix = dims[tensor->rank - 2] * dims[tensor->rank - 1];
    int64_t at = 0, step = matrix;
    for (int axis = n - 1, own = tensor->rank - 3; axis >= 0; axis--, own--) {
        const int64_t size = own >= 0 ? dims[own] : 1;
        at += size == 1 ? 0 : i % batch[axis] * step;
        step *= size;
        i /= batch[axis];
    }
    return at;
}

/* [n axes, m, k] with some of the batch's axes missing or broadcast. */
static struct tensor draw_operand(struct random *random, const int64_t *batch, int n, int64_t m,
                                  int64_t k)
{
    const int rank = 2 + (int)random_int(random, 0, n);
    struct tensor tensor = {.dtype = TSSA_FLOAT, .rank = rank};
    for (int i = 0; i < rank - 2; i++)
        tensor.dims[i] = random_chance(random, 30) ? 1 : batch[n - (rank - 2) + i];
    tensor.dims[rank - 2] = m;
    tensor.dims[rank - 1] = k;
    return tensor;
}

/* Whatever axes are folded to: each batch's matrices begin where numpy's rules have them. */
static void test_batches(void **state)
{
    struct random random = {1};
    (void)state;
    for (int round = 0; round < 2000; round++) {
        int64_t batch[MOST_BATCHES], at_a, at_b;
        const int n = (int)random_int(&random, 0, MOST_BATCHES);
        for (int i = 0; i < n; i++)
            batch[i] = random_int(&random, 1, 3);
        const struct tensor a = draw_operand(&random, batch, n, 2, 3),
                            b = draw_operand(&random, batch, n, 3, 4);
        struct matmul mm, folded;
        no_error(matmul_resolve(&a, &b, &mm));
        folded = mm;
        matmul_fold(&folded);
        assert_true(folded.batch_rank <= mm.batch_rank);
        const int64_t rows = folded.a_dims[folded.a_rank - 2];
        assert_int_equal(folded.batches * rows, mm.batches * 2);
        for (int64_t i = 0; i < mm.batches; i++) {
            const int64_t first = i * 2 / rows, row = i * 2 % rows;
            matmul_batch(&folded, first, &at_a, &at_b);
            assert_int_equal(at_a + row * 3, begin_of(&a, mm.batch, mm.batch_rank, i));
            assert_int_equal(at_b, begin_of(&b, mm.batch, mm.batch_rank, i));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
