/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random imperative programs (common/random_imperative.h): run with real aliasing, after TensorSSA
 * conversion, and after all of level 2, they must give the same bits. A program that does not is
 * made smaller, op by op, while it still fails, and printed.
 *
 * TSSA_SEED=N runs one of them and prints it (common/random_programs.h).
 */
/* ctest-labels: random */
/* ctest-timeout: 300 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/imperative_check.h"
#include "common/random_imperative.h"
#include "common/random_programs.h"
#include "ir/clone.h"
#include "ir/printer.h"
#include "ir/rebuild.h"

/* ---- Programs ---------------------------------------------------------------------------------
 */

#define N_RUNS 4

static enum imperative_outcome try_program(const struct random_imperative *program,
                                           const char *text, struct text *message)
{
    static const struct {
        int64_t n;
        bool c;
    } runs[N_RUNS] = {{2, true}, {0, true}, {1, false}, {3, false}};
    struct random_imperative_inputs *in = calloc(N_RUNS, sizeof *in);
    const struct value *const *pointers[N_RUNS];
    assert_non_null(in);
    for (size_t i = 0; i < N_RUNS; i++) {
        random_imperative_inputs(&in[i], program, runs[i].n, runs[i].c);
        pointers[i] = in[i].pointers;
    }
    enum imperative_outcome outcome = imperative_check(text, pointers, N_RUNS, message);
    free(in);
    return outcome;
}

/* ---- Shrinking ------------------------------------------------------------------------------- */

/* Takes op number *n of the block out, if nobody uses it; counts down to it. True when it is
 * reached. */
static bool drop_op(struct ir_block *block, int *n, bool *dropped)
{
    for (struct ir_op *op = block->last->prev; op; op = op->prev) {
        bool used = false;
        if ((*n)-- == 0) {
            for (uint32_t i = 0; i < op->n_results; i++)
                used |= op->results[i].uses != NULL;
            if (!used) {
                ir_release_blocks(op);
                ir_op_remove(op);
            }
            *dropped = !used;
            return true;
        }
        for (uint32_t i = op->n_blocks; i-- > 0;)
            if (drop_op(op->blocks[i], n, dropped))
                return true;
    }
    return false;
}

/* One result of an op less, where nobody uses it. */
static bool drop_result(struct ir_block *block, int *n, bool *dropped)
{
    bool drop[16] = {false};
    for (struct ir_op *op = block->last->prev; op; op = op->prev) {
        for (uint32_t i = 0; i < op->n_results && op->n_blocks; i++) {
            if ((*n)-- != 0)
                continue;
            drop[i] = *dropped =
                !op->results[i].uses && op->n_results > 1 &&
                (i >= ir_loop_carried(op) || !op->blocks[0]->params[ir_loop_param(op, i)]->uses);
            if (*dropped)
                ir_control_drop_results(op, drop);
            return true;
        }
        for (uint32_t i = op->n_blocks; i-- > 0;)
            if (drop_result(op->blocks[i], n, dropped))
                return true;
    }
    return false;
}

static char *print(const struct ir_graph *graph)
{
    struct text text;
    text_init(&text, &allocator_default);
    ir_print_graph(graph, true, &text);
    char *copy = strdup(text_string(&text));
    text_free(&text);
    return copy;
}

/* Change number n of the program: NULL after the last one; the same text when it cannot be made. */
static char *change(const char *source, int n)
{
    struct ir_graph *graph = NULL;
    bool dropped = false, found = true;
    tssa_status *status = imperative_read(source, &graph);
    if (status) {
        print_message("cannot be read again: %s\n", tssa_status_message(status));
        tssa_status_free(status);
        ir_graph_free(graph);
        return NULL;
    }
    struct ir_op *ret = ir_block_return(graph->body);
    if (n >= 0 && (uint32_t)n < ret->n_operands && ret->n_operands > 1) {
        struct ir_value *values[IMPERATIVE_MAX_OUTPUTS];
        uint32_t count = 0;
        for (uint32_t i = 0; i < ret->n_operands; i++)
            if (i != (uint32_t)n) {
                graph->output_names[count] = graph->output_names[i];
                values[count++] = ir_operand(ret, i);
            }
        ir_op_set_operands(ret, count, values);
    } else {
        n -= (int)ret->n_operands;
        found =
            n < 0 || drop_op(graph->body, &n, &dropped) || drop_result(graph->body, &n, &dropped);
    }
    char *changed = found ? print(graph) : NULL;
    ir_graph_free(graph);
    return changed;
}

static void shrink(const struct random_imperative *program, char **text)
{
    struct ir_graph *graph = NULL;
    tssa_status *status = imperative_read(*text, &graph);
    if (status) { /* no program at all */
        tssa_status_free(status);
        ir_graph_free(graph);
        return;
    }
    free(*text);
    *text = print(graph); /* with types, as the smaller ones will be */
    ir_graph_free(graph);
    for (int n = 0, rounds = 0; rounds < 20000; rounds++) {
        struct text message;
        char *smaller = change(*text, n);
        if (!smaller)
            return;
        text_init(&message, &allocator_default);
        if (strcmp(smaller, *text) != 0 && strlen(smaller) < strlen(*text) &&
            try_program(program, smaller, &message) == IMPERATIVE_FAILED) {
            free(*text);
            *text = smaller;
            n = 0;
        } else {
            free(smaller);
            n++;
        }
        text_free(&message);
    }
}

/* ---- The test -------------------------------------------------------------------------------- */

static enum imperative_outcome run_seed(uint64_t seed, bool print)
{
    struct random_imperative program = random_imperative(seed);
    struct text message;
    if (print)
        fputs(program.text, stderr);
    text_init(&message, &allocator_default);
    enum imperative_outcome outcome = try_program(&program, program.text, &message);
    if (outcome == IMPERATIVE_FAILED) {
        print_message("TSSA_SEED=%llu: %s", (unsigned long long)seed, text_string(&message));
        shrink(&program, &program.text);
        text_free(&message);
        text_init(&message, &allocator_default);
        try_program(&program, program.text, &message);
        print_message("made smaller: %s", text_string(&message));
        fputs(program.text, stderr); /* cmocka cuts long messages */
    }
    text_free(&message);
    free(program.text);
    return outcome;
}

static void test_conversion_keeps_every_bit(void **state)
{
    uint64_t seed;
    unsigned long count = programs_count(2000), refused = 0, failed = 0;
    (void)state;
    if (programs_seed(&seed)) {
        assert_int_not_equal(run_seed(seed, true), IMPERATIVE_FAILED);
        return;
    }
    for (unsigned long i = 1; i <= count && failed < 5; i++) {
        enum imperative_outcome outcome = run_seed(i, false);
        refused += outcome == IMPERATIVE_REFUSED;
        failed += outcome == IMPERATIVE_FAILED;
    }
    print_message("%lu programs, %lu left imperative\n", count, refused);
    assert_int_equal(failed, 0);
    assert_true(refused < count / 16 + 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_conversion_keeps_every_bit)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
