/* SPDX-License-Identifier: Apache-2.0 */
#include "common/op_numbers.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static char *element(const struct tensor *x, int64_t i)
{
    assert_in_range(i, 0, tensor_count(x) - 1);
    return (char *)x->data + (size_t)i * dtype_info(x->dtype)->size;
}

void op_numbers(struct tensor *x, struct random *random)
{
    for (int64_t i = 0; i < (int64_t)tensor_count(x); i++) {
        double value = (double)random_int(random, -1000000, 1400000) / 700000;
        dtype_store_double(x->dtype, element(x, i), random_int(random, 0, 99) ? value : -0.0);
    }
}

struct tensor *op_add_numbers(struct op_run *run, struct random *random, tssa_dtype dtype, int rank,
                              const int64_t *dims)
{
    op_absent(run);
    struct tensor *x = op_input(run, run->n_inputs - 1, dtype, rank, dims);
    op_numbers(x, random);
    return x;
}

double op_number(const struct tensor *x, int64_t i)
{
    return dtype_load_double(x->dtype, element(x, i));
}

void op_expect_number(const struct tensor *x, int64_t i, double value)
{
    double wanted, got = op_number(x, i);
    char bytes[16] = {0};
    dtype_store_double(x->dtype, bytes, value);
    wanted = dtype_load_double(x->dtype, bytes);
    if (memcmp(element(x, i), bytes, dtype_info(x->dtype)->size) != 0 &&
        !(isnan(got) && isnan(wanted)))
        fail_msg("element %lld is %.17g (%a), not %.17g (%a)", (long long)i, got, got, wanted,
                 wanted);
}

double op_rounded(tssa_dtype dtype, double value)
{
    return dtype == TSSA_DOUBLE ? value : (double)(float)value;
}

double op_sum(tssa_dtype dtype, const double *terms, int64_t n)
{
    double sum = 0;
    /* the greatest power of 64 that is less than n: results of so many steps are summed */
    int64_t unit = 1, at = 0;
    while (unit * 64 < n)
        unit *= 64;
    for (; at + unit <= n; at += unit)
        sum = op_rounded(dtype, sum + (unit == 1 ? terms[at] : op_sum(dtype, terms + at, unit)));
    return at < n ? op_rounded(dtype, sum + op_sum(dtype, terms + at, n - at)) : sum;
}

static void backwards(int threads, int64_t count, team_body body, void *context)
{
    for (int64_t t = threads - 1; t >= 0; t--)
        body(context, count * t / threads, count * (t + 1) / threads);
}

void op_threads(struct op_run *run, struct team *team, int threads)
{
    *team = (struct team){.threads = threads, .parallel_for = threads > 1 ? backwards : NULL};
    run->env.team = team;
}
