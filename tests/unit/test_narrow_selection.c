/* SPDX-License-Identifier: Apache-2.0 */
/* What is cut, or sorted, after it was chosen: whether fewer are chosen (golden/pass_narrow_*) or
 * they are in order anyway (known_order), the same comes out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/rewrite_check.h"

/* Boxes that NonMaxSuppression keeps, in the order of their scores, and the first three of what is
 * made of them. */
#define BOXES(name, order) BOXES_OF(name, "%list", "", order)
#define BOXES_OF(name, input, list, order)                                                         \
    static const char name[] =                                                                     \
        "graph (%boxes: f32[1, N, 4], " input ": f32[N], %other: f32[N, 2], %iou: f32[1]) -> "     \
        "(%v1 as \"a\", %v2 as \"b\", %v3 as \"c\") {\n" list                                      \
        "  %zero = Constant() {value = i64[1] [0]}\n"                                              \
        "  %one = Constant() {value = i64[1] [1]}\n"                                               \
        "  %two = Constant() {value = i64[] 2}\n"                                                  \
        "  %three = Constant() {value = i64[1] [3]}\n"                                             \
        "  %shape = Constant() {value = i64[3] [1, 1, -1]}\n"                                      \
        "  %all = Shape(%list)\n"                                                                  \
        "  %scores = Reshape(%list, %shape)\n"                                                     \
        "  %kept = NonMaxSuppression(%boxes, %scores, %all, %iou)\n"                               \
        "  %numbers = Gather(%kept, %two) {axis = 1}\n" order                                      \
        "  %column = Unsqueeze(%theirs, %one)\n"                                                   \
        "  %rows = Gather(%other, %taken)\n"                                                       \
        "  %both = Concat(%rows, %column) {axis = -1}\n"                                           \
        "  %joined = Neg(%both)\n"                                                                 \
        "  %v1 = Slice(%joined, %zero, %three, %zero)\n"                                           \
        "  %v2 = Slice(%taken, %zero, %three, %zero)\n"                                            \
        "  %v3 = Slice(%theirs, %zero, %one, %zero)\n"                                             \
        "  return(%v1, %v2, %v3)\n"                                                                \
        "}\n"

#define SORTED                                                                                     \
    "  %chosen = Gather(%list, %numbers)\n"                                                        \
    "  %count = Shape(%chosen)\n"                                                                  \
    "  %theirs, %order = TopK(%chosen, %count)\n"                                                  \
    "  %taken = Gather(%numbers, %order)\n"
BOXES(sorted, SORTED);
/* Many scores are equal. */
BOXES_OF(tied, "%x",
         "  %half = Constant() {value = f32[] 0.5}\n  %y = Mul(%x, %half)\n"
         "  %list = Round(%y)\n",
         SORTED);
/* What is asked of the order is more than elements of as many. */
BOXES(order_wanted, "  %chosen = Gather(%list, %numbers)\n"
                    "  %count = Shape(%chosen)\n"
                    "  %theirs, %order = TopK(%chosen, %count)\n"
                    "  %taken = Identity(%order)\n");
BOXES(unsorted, "  %theirs = Gather(%list, %numbers)\n"
                "  %taken = Identity(%numbers)\n");
/* From the least score up: the last boxes that were chosen are taken. */
BOXES(reversed, "  %chosen = Gather(%list, %numbers)\n"
                "  %count = Shape(%chosen)\n"
                "  %theirs, %order = TopK(%chosen, %count) {largest = 0}\n"
                "  %taken = Gather(%numbers, %order)\n");
/* By other scores than those by which they were chosen. */
BOXES(by_others, "  %others = Exp(%list)\n"
                 "  %wrong = Neg(%others)\n"
                 "  %chosen = Gather(%wrong, %numbers)\n"
                 "  %count = Shape(%chosen)\n"
                 "  %theirs, %order = TopK(%chosen, %count)\n"
                 "  %taken = Gather(%numbers, %order)\n");

static const char elements[] =
    "graph (%x: f32[N], %other: f32[N, 2]) -> (%v1 as \"a\", %v2 as \"b\") {\n"
    "  %zero = Constant() {value = i64[1] [0]}\n"
    "  %one = Constant() {value = i64[1] [1]}\n"
    "  %three = Constant() {value = i64[1] [3]}\n"
    "  %all = Shape(%x)\n"
    "  %values, %order = TopK(%x, %all)\n"
    "  %rows = Gather(%other, %order)\n"
    "  %column = Unsqueeze(%values, %one)\n"
    "  %sum = Add(%rows, %column)\n"
    "  %v1 = Slice(%sum, %zero, %three, %zero)\n"
    "  %v2 = Slice(%order, %zero, %one, %zero)\n"
    "  return(%v1, %v2)\n"
    "}\n";

static void check(const char *text, const char *word, int in_file, int in_session)
{
    const int wanted[] = {[TSSA_TARGET_ONNX] = in_file, [TSSA_TARGET_SESSION] = in_session};
    for (int target = TSSA_TARGET_ONNX; target <= TSSA_TARGET_SESSION; target++) {
        const struct rewrite_check one = {.text = text, .target = target};
        assert_int_equal(rewrite_count_of(&one, word), wanted[target]);
        for (int64_t size = 0; size <= 40; size += size < 5 ? 1 : 7)
            for (uint64_t seed = 1; seed <= 5; seed++)
                rewrite_check(&(struct rewrite_check){
                    .text = text, .target = target, .size = size, .seed = seed});
    }
}

/* The number of all boxes is no longer asked for, where fewer do. */
static void test_boxes(void **state)
{
    (void)state;
    check(sorted, "Shape@25(%list)", 0, 0);
    check(unsorted, "Shape@25(%list)", 1, 0);
    check(reversed, "Shape@25(%list)", 1, 1);
    check(by_others, "Shape@25(%list)", 1, 1);
}

/* A file keeps the sort: who reads it may keep boxes in another order. */
static void test_order(void **state)
{
    (void)state;
    check(sorted, "TopK@", 1, 0);
    check(tied, "TopK@", 1, 0);
    check(order_wanted, "TopK@", 1, 1);
    check(reversed, "TopK@", 1, 1);
    check(by_others, "TopK@", 1, 1);
}

static void test_elements(void **state)
{
    (void)state;
    check(elements, "Min@", 1, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_boxes), cmocka_unit_test(test_order),
                                       cmocka_unit_test(test_elements)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
