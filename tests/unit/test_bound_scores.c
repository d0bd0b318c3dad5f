/* SPDX-License-Identifier: Apache-2.0 */
/* Scores that may exceed a threshold: the same ones come out in the same order, be there none, few
 * or many, and where rows hold NaNs and infinities. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "common/no_error.h"
#include "common/rewrite_check.h"
#include "ir/cost.h"
#include "ir/fuse.h"
#include "ir/infer.h"
#include "ir/parser.h"
#include "ir/printer.h"
#include "passes/pipeline.h"

/*
 * Of two anchors in each of 41 x 41 cells, three columns; `ahead`: by how much the last one is. The
 * others are 0, 10, 20 or 30, and in some lines of cells NaN or infinite.
 */
#define HEADS(ahead, perm, shape)                                                                  \
    "graph (%front: i64[2, 2, 41, 41], %behind: i64[2, 1, 41, 41], %line: f32[1, 41, 1], "         \
    "%t: f32[]) -> (%a as \"a\", %b as \"b\") {\n"                                                 \
    "  %flat = Constant() {value = i64[1] [-1]}\n"                                                 \
    "  %zero = Constant() {value = i64[1] [0]}\n"                                                  \
    "  %one = Constant() {value = i64[1] [1]}\n"                                                   \
    "  %two = Constant() {value = i64[1] [2]}\n"                                                   \
    "  %three = Constant() {value = i64[1] [3]}\n"                                                 \
    "  %ten = Constant() {value = f32[] 10}\n"                                                     \
    "  %ahead = Constant() {value = f32[] " ahead "}\n"                                            \
    "  %c = Constant() {value = f32[] 0.02}\n"                                                     \
    "  %large = Constant() {value = f32[] 1}\n"                                                    \
    "  %planes = Constant() {value = i64[3] [6, 41, 41]}\n"                                        \
    "  %rows = Constant() {value = " shape "}\n"                                                   \
    "  %f = Cast(%front) {to = 1}\n"                                                               \
    "  %g = Cast(%behind) {to = 1}\n"                                                              \
    "  %f10 = Mul(%f, %ten)\n"                                                                     \
    "  %g10 = Mul(%g, %ten)\n"                                                                     \
    "  %f1 = Add(%f10, %line)\n"                                                                   \
    "  %g1 = Add(%g10, %ahead)\n"                                                                  \
    "  %all = Concat(%f1, %g1) {axis = 1}\n"                                                       \
    "  %heads = Reshape(%all, %planes)\n"                                                          \
    "  %turned = Transpose(%heads) {perm = [" perm "]}\n"                                          \
    "  %x = Reshape(%turned, %rows)\n"
#define ROWS(ahead, perm, shape) HEADS(ahead, perm, shape) "  %p = Softmax(%x) {axis = -1}\n"
#define ALL(ahead) ROWS(ahead, "1, 2, 0", "i64[2] [3362, 3]")
/* Sigmoids of what is so much lower. */
#define SIGMOIDS(ahead, below)                                                                     \
    HEADS(ahead, "1, 2, 0", "i64[2] [3362, 3]")                                                    \
    "  %below = Constant() {value = f32[] " below "}\n"                                            \
    "  %shifted = Sub(%heads, %below)\n"                                                           \
    "  %turned2 = Transpose(%shifted) {perm = [1, 2, 0]}\n"                                        \
    "  %y = Reshape(%turned2, %rows)\n"                                                            \
    "  %p = Sigmoid(%y)\n"
#define FIRST "  %s = Slice(%p, %zero, %two, %one)\n"
#define LAST "  %s = Slice(%p, %one, %three, %one)\n"
#define GREATER "  %m = Greater(%s, %c)\n"
#define END "  return(%a, %b)\n}\n"
/* What a list of the mask takes, and what places take. */
#define BY_MASK                                                                                    \
    "  %list = Reshape(%s, %flat)\n"                                                               \
    "  %bits = Reshape(%m, %flat)\n"                                                               \
    "  %a = Compress(%list, %bits) {axis = 0}\n"                                                   \
    "  %b = NonZero(%m)\n" END
#define BY_PLACES(of)                                                                              \
    "  %b = NonZero(%m)\n"                                                                         \
    "  %places = Transpose(%b) {perm = [1, 0]}\n"                                                  \
    "  %a = GatherND(%" of ", %places)\n" END

static const char *const bounded[] = {
    ALL("0") FIRST GREATER BY_MASK, /* most may pass */
    ALL("33") FIRST GREATER BY_MASK,
    ALL("35") FIRST GREATER BY_PLACES("p"),
    ALL("60") FIRST GREATER BY_PLACES("s"), /* only what is NaN or infinite may */
    ALL("35") LAST GREATER BY_PLACES("s"),
    ALL("-60") LAST GREATER BY_MASK,
    ALL("35") FIRST "  %m = GreaterOrEqual(%s, %c)\n" BY_MASK,
    ALL("35") FIRST GREATER "  %a = NonZero(%m)\n  %b = Identity(%line)\n" END,
    SIGMOIDS("0", "10") "  %s = Identity(%p)\n" GREATER BY_MASK, /* most may pass */
    SIGMOIDS("-9", "35.5") "  %s = Identity(%p)\n" GREATER BY_MASK,
    SIGMOIDS("-9", "35.5") "  %s = Identity(%p)\n" GREATER BY_PLACES("p"),
    SIGMOIDS("5", "80") FIRST GREATER BY_PLACES("s"),
    SIGMOIDS("-9", "35.5") LAST GREATER BY_PLACES("s"),
    SIGMOIDS("-9", "35.5") LAST "  %m = GreaterOrEqual(%s, %c)\n" BY_MASK,
};

static const char *const others[] = {
    /* the largest of a row is compared; the threshold is none, or not known */
    ALL("35") "  %s = Identity(%p)\n" GREATER BY_MASK,
    ALL("35") FIRST "  %m = Greater(%s, %large)\n" BY_MASK,
    ALL("35") FIRST "  %m = Greater(%s, %t)\n" BY_MASK,
    ALL("35") FIRST "  %m = Less(%s, %c)\n" BY_MASK,
    /* neither the first nor the last column */
    ALL("35") "  %s = Slice(%p, %one, %two, %one)\n" GREATER BY_MASK,
    /* somebody reads all: of the scores, of those that are compared, of the mask */
    ALL("35") FIRST GREATER "  %a = NonZero(%m)\n  %b = Neg(%p)\n" END,
    ALL("35") FIRST GREATER "  %a = NonZero(%m)\n  %b = Neg(%s)\n" END,
    ALL("35") FIRST GREATER "  %a = NonZero(%m)\n  %b = Not(%m)\n" END,
    ALL("35") LAST GREATER BY_PLACES("p"),
    SIGMOIDS("5", "36") FIRST GREATER "  %a = NonZero(%m)\n  %b = Neg(%p)\n" END,
    /* rows are not read from planes */
    ROWS("35", "2, 1, 0", "i64[2] [3362, 3]") FIRST GREATER BY_MASK,
    ROWS("35", "0, 1, 2", "i64[2] [3362, 3]") FIRST GREATER BY_MASK,
};

static void test_bounded(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bounded / sizeof *bounded; i++) {
        struct rewrite_check one = {.text = bounded[i], .target = TSSA_TARGET_SESSION};
        assert_int_equal(rewrite_count_of(&one, "If@"), 1);
        one.target = TSSA_TARGET_ONNX;
        assert_int_equal(rewrite_count_of(&one, "If@"), 0);
        one.target = TSSA_TARGET_SESSION;
        for (one.seed = 1; one.seed <= 20; one.seed++)
            assert_true(rewrite_check(&one));
    }
}

static void test_others(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        struct rewrite_check one = {.text = others[i], .target = TSSA_TARGET_SESSION, .seed = 1};
        assert_int_equal(rewrite_count_of(&one, "If@"), 0);
        assert_true(rewrite_check(&one));
    }
}

/* Of fewer elements more ops would cost what they save. */
static void test_few_elements(void **state)
{
    static const char text[] = "graph (%x: f32[2400, 3]) -> (%a as \"a\") {\n"
                               "  %c = Constant() {value = f32[] 0.02}\n"
                               "  %planes = Constant() {value = i64[3] [3, 40, 60]}\n"
                               "  %rows = Constant() {value = i64[2] [2400, 3]}\n"
                               "  %zero = Constant() {value = i64[1] [0]}\n"
                               "  %one = Constant() {value = i64[1] [1]}\n"
                               "  %two = Constant() {value = i64[1] [2]}\n"
                               "  %heads = Reshape(%x, %planes)\n"
                               "  %turned = Transpose(%heads) {perm = [1, 2, 0]}\n"
                               "  %y = Reshape(%turned, %rows)\n"
                               "  %p = Softmax(%y) {axis = -1}\n"
                               "  %s = Slice(%p, %zero, %two, %one)\n"
                               "  %m = Greater(%s, %c)\n"
                               "  %a = NonZero(%m)\n"
                               "  return(%a)\n"
                               "}\n";
    const struct rewrite_check one = {.text = text, .target = TSSA_TARGET_SESSION};
    (void)state;
    assert_int_equal(rewrite_count_of(&one, "If@"), 0);
}

static int count_branches(const struct cost_machine *machine)
{
    const tssa_optimize_options options = {.struct_size = sizeof options,
                                           .target = TSSA_TARGET_SESSION};
    const struct ir_fusion fusion = {.machine = machine}; /* nothing is fused */
    const struct pipeline pipeline = {.options = &options, .fusion = &fusion};
    struct ir_graph *graph;
    struct text text;
    int count = 0;
    no_error(ir_parse(&allocator_default, bounded[1], strlen(bounded[1]), &graph));
    no_error(ir_infer_graph(graph));
    no_error(pipeline_run(graph, 2, &pipeline));
    text_init(&text, &allocator_default);
    ir_print_graph(graph, false, &text);
    for (const char *at = text_string(&text); (at = strstr(at, "If@")); at++)
        count++;
    text_free(&text);
    ir_graph_free(graph);
    return count;
}

/* Where each op is a launch, they cost what they save. */
static void test_launches(void **state)
{
    (void)state;
    assert_int_equal(count_branches(&cost_cpu), 1);
    assert_int_equal(count_branches(&cost_gpu), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bounded), cmocka_unit_test(test_others),
        cmocka_unit_test(test_few_elements), cmocka_unit_test(test_launches)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
