/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Integers wrap around, dims do not. Random integer programs (common/random_integers.h) are
 * inferred and run: every known element, and every element function, must say what the run
 * computes; and what the passes make of the program must compute the same.
 *
 * TSSA_SEED=N runs one of them and prints it (common/random_programs.h).
 */
/* ctest-labels: random */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/no_error.h"
#include "common/op_run.h"
#include "common/random_integers.h"
#include "common/random_programs.h"
#include "common/rewrite_check.h"
#include "common/test_device.h"
#include "ir/element.h"
#include "ir/infer.h"
#include "ir/parser.h"
#include "runtime/executor.h"

/* ---- A program that has run ------------------------------------------------------------------ */

struct program {
    uint64_t seed;
    const char *text;
    struct ir_graph *graph;
    int64_t n, m, iteration; /* the input's shape; where in the loop a symbol is asked for */
    const struct dim *counter;
    bool unknown; /* a symbol that only a run can tell was asked for */
    struct value outputs[RANDOM_INTEGERS_MAX_OUTPUTS];
    unsigned long claims;
};

static bool lookup(void *context, const struct dim *symbol, int64_t *value)
{
    struct program *p = context;
    bool is_n = strcmp(symbol->name, "N") == 0, is_m = strcmp(symbol->name, "M") == 0;
    *value = symbol == p->counter ? p->iteration : is_n ? p->n : p->m;
    p->unknown |= symbol != p->counter && !is_n && !is_m;
    return !p->unknown;
}

static void fail_claim(const struct program *p, const struct ir_value *value, const struct dim *dim,
                       int64_t actual)
{
    struct text text;
    text_init(&text, &allocator_default);
    dim_print(dim, &text);
    print_message("TSSA_SEED=%" PRIu64 ", N = %" PRId64 ", M = %" PRId64 ", iteration %" PRId64
                  ": %%%s is %" PRId64 ", and known to be %s, in\n%s",
                  p->seed, p->n, p->m, p->iteration, value->name ? value->name : "", actual,
                  text_string(&text), p->text);
    text_free(&text);
    fail();
}

static int64_t load(const struct tensor *tensor, int64_t i)
{
    return dtype_load_int64(tensor->dtype, (const char *)tensor->data +
                                               (size_t)i * dtype_info(tensor->dtype)->size);
}

/* The element is what the dim says, where that can be computed from what is given. */
static void check_claim(struct program *p, const struct ir_value *value, const struct dim *dim,
                        int64_t actual)
{
    int64_t said;
    p->unknown = false;
    bool computed = dim_eval(dim, lookup, p, &said);
    if (p->unknown)
        return;
    p->claims++;
    if (!computed || said != actual)
        fail_claim(p, value, dim, actual);
}

/* What inference knows of a value that has `count` elements from element `at` of the tensor on. */
static void check_known(struct program *p, const struct ir_value *value,
                        const struct tensor *tensor, int64_t at)
{
    const struct ir_known *known = value->known;
    for (size_t i = 0; known && i < known->count; i++)
        if (known->elements[i])
            check_claim(p, value, known->elements[i], load(tensor, at + (int64_t)i));
}

/* What an element function says of a list, at every place. */
static void check_function(struct program *p, struct ir_value *value, const struct tensor *tensor)
{
    struct element at, element;
    struct element_doubt doubt;
    bool proven;
    if (value->type->rank != 1 || !dtype_is_integer(value->type->dtype))
        return;
    const struct element_space space = {.rank = 1, .extents = {value->type->dims[0]}};
    assert_true(element_coordinate(p->graph, 0, &at));
    no_error(element_read(p->graph, &space, value, &at, &element, &proven, &doubt));
    if (!proven || element.scalar)
        return;
    for (int64_t i = 0; i < tensor->dims[0]; i++) {
        const struct dim *dim = element.offset;
        if (element.factors[0])
            dim = dim_add(
                &p->graph->dims, dim,
                dim_mul(&p->graph->dims, element.factors[0], dim_const(&p->graph->dims, i)));
        check_claim(p, value, dim, load(tensor, i));
    }
}

/* An output of the loop: a row per iteration. */
static void check_stacked(struct program *p, const struct ir_value *output,
                          const struct tensor *tensor)
{
    const struct ir_block *body = output->op->blocks[0];
    const struct ir_value *value = ir_operand(ir_block_return(body), output->index + 1);
    int64_t trips = tensor->dims[0], row = trips ? (int64_t)tensor_count(tensor) / trips : 0;
    p->counter = body->params[0]->known->elements[0];
    for (p->iteration = 0; p->iteration < trips; p->iteration++)
        check_known(p, value, tensor, p->iteration * row);
    p->counter = NULL;
    p->iteration = 0;
}

static void check_outputs(struct program *p)
{
    const struct ir_op *ret = ir_block_return(p->graph->body);
    for (uint32_t i = 1; i < ret->n_operands; i++) {
        struct ir_value *value = ir_operand(ret, i);
        const struct tensor *tensor = &p->outputs[i].tensor;
        if (value->op && ir_op_is(value->op, IR_OP_Loop)) {
            check_stacked(p, value, tensor);
            continue;
        }
        check_known(p, value, tensor, 0);
        check_function(p, value, tensor);
    }
}

/* ---- Random programs ------------------------------------------------------------------------- */

static unsigned long infer_and_run(uint64_t seed, const char *text, int64_t n, int64_t m)
{
    struct program p = {.seed = seed, .text = text, .n = n, .m = m};
    struct random random = {seed + 1};
    struct plan *plan;
    struct run *run;
    float rows[64] = {0};
    int64_t s = (int64_t)random_bits(&random) >> random_int(&random, 0, 63);
    struct value z = {.kind = TSSA_KIND_TENSOR,
                      .tensor = {.dtype = TSSA_FLOAT, .rank = 2, .dims = {n, m}, .data = rows}};
    struct value scalar = {.kind = TSSA_KIND_TENSOR, .tensor = {.dtype = TSSA_INT64, .data = &s}};
    const struct value *inputs[] = {&z, &scalar};
    no_error(ir_parse(&allocator_default, text, strlen(text), &p.graph));
    no_error(ir_infer_graph(p.graph));
    no_error(plan_create(p.graph, test_device(), &plan));
    no_error(run_create(plan, &allocator_default, NULL, false, &run));
    no_error(run_execute(run, inputs, p.outputs));
    check_outputs(&p);
    for (size_t i = 0; i < RANDOM_INTEGERS_MAX_OUTPUTS; i++)
        value_release(&p.outputs[i]);
    run_free(run);
    plan_free(plan);
    ir_graph_free(p.graph);
    return p.claims;
}

static unsigned long run_seed(uint64_t seed, bool print)
{
    char *text = random_integers(seed);
    unsigned long claims = 0;
    if (print)
        fputs(text, stderr);
    for (int64_t n = 0; n < 6; n += 2)
        claims += infer_and_run(seed, text, n, 7 - n);
    for (int64_t size = 0; size < 4; size += 3)
        rewrite_check(&(const struct rewrite_check){
            .text = text, .size = size, .scalar = size ? INT64_MIN : 1, .seed = seed});
    free(text);
    return claims;
}

static void test_random_programs(void **state)
{
    (void)state;
    uint64_t seed;
    if (programs_seed(&seed)) {
        run_seed(seed, true);
        return;
    }
    unsigned long count = programs_count(400), claims = 0;
    for (unsigned long i = 1; i <= count; i++)
        claims += run_seed(i, false);
    print_message("%lu elements were known, and right\n", claims);
    assert_true(claims >= 20 * count);
}

/* ---- Comparisons that must stay, and some that need not -------------------------------------- */

/* The sign of an expression %e in a loop's body, of the iteration's number %i and its INT32 %k. */
#define SIGN(input, trips, ops, zero)                                                              \
    "graph (%x: f32[" input "]) -> (%y as \"y\") {\n"                                              \
    "  %axis = Constant() {value = i64[] 0}\n"                                                     \
    "  %s = Shape(%x)\n"                                                                           \
    "  %n = Gather(%s, %axis)\n"                                                                   \
    "  %five = Constant() {value = i64[] 5}\n"                                                     \
    "  %y = Loop(" trips ", _) {\n"                                                                \
    "    body(%i: i64[], %c: bool[]) {\n"                                                          \
    "      %k = Cast(%i) {to = 6}\n"                                                               \
    "      %n32 = Cast(%n) {to = 6}\n"                                                             \
    "      " ops "\n"                                                                              \
    "      %zero = Constant() {value = " zero "}\n"                                                \
    "      %p = Greater(%e, %zero)\n"                                                              \
    "      %r = Gather(%x, %i)\n"                                                                  \
    "      %m = Neg(%r)\n"                                                                         \
    "      %v = If(%p) { then_branch() { return(%r) } else_branch() { return(%m) } }\n"            \
    "      return(%c, %v)\n"                                                                       \
    "    }\n"                                                                                      \
    "  }\n"                                                                                        \
    "  return(%y)\n"                                                                               \
    "}\n"

static void check_sign(const char *text, bool stays)
{
    const char *folding = "fold_shapes known_branches dead_code";
    for (int64_t size = 5; size < 8; size++) {
        assert_true(rewrite_check(&(const struct rewrite_check){.text = text, .size = size}));
        assert_true(rewrite_check(
            &(const struct rewrite_check){.text = text, .passes = folding, .size = size}));
    }
    assert_int_equal(rewrite_count(text, folding, "Greater") > 0, stays);
}

static void test_signs(void **state)
{
    (void)state;
    check_sign(SIGN("5", "%five", "%a = Constant() {value = i32[] 2147483646} %e = Add(%k, %a)",
                    "i32[] 0"),
               true);
    check_sign(SIGN("5", "%five", "%a = Constant() {value = i32[] 1103515245} %e = Mul(%k, %a)",
                    "i32[] -1"),
               true);
    check_sign(SIGN("N", "%n", "%a = Constant() {value = i32[] 1103515245} %e = Mul(%n32, %a)",
                    "i32[] -1"),
               true);
    check_sign(SIGN("5", "%five",
                    "%a = Constant() {value = i64[] 6364136223846793005} %e = Mul(%i, %a)",
                    "i64[] -1"),
               true);
    check_sign(SIGN("N", "%n", "%a = Mul(%i, %n) %b = Mul(%a, %n) %e = Mul(%b, %n)", "i64[] -1"),
               true);
    check_sign(SIGN("5", "%five", "%a = Constant() {value = i32[] 500000000} %e = Mul(%k, %a)",
                    "i32[] -1"),
               false);
    check_sign(SIGN("N", "%n",
                    "%a = Constant() {value = i64[] 65536} %b = Mul(%i, %n) "
                    "%e = Add(%a, %b)",
                    "i64[] 0"),
               false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_signs),
                                       cmocka_unit_test(test_random_programs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
