/* SPDX-License-Identifier: Apache-2.0 */
/* What has room for all that a mask may keep: the same comes out, be there none, few or all of
 * them, more than are wanted, equal ones, and NaNs and infinities among what is computed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/rewrite_check.h"

#define PASSES "infer bound_lists infer dead_code"

/* Of a matrix and of a list the highest above a bound, and the boxes that lie there. */
#define DETECTOR(bound)                                                                            \
    "graph (%x: f32[30, 9], %boxes: f32[40, 4], %s: f32[40], %r: f32[40]) -> (%kept as \"kept\", " \
    "%class as \"class\", %many as \"many\") {\n"                                                  \
    "  %bound = Constant() {value = f32[] " bound "}\n"                                            \
    "  %most = Constant() {value = i64[1] [10]}\n"                                                 \
    "  %overlap = Constant() {value = f32[1] [0.3]}\n"                                             \
    "  %scores = access(%x) {rule = [slice(1, 0, 8, 1)]}\n"                                        \
    "  %mask = Greater(%scores, %bound)\n"                                                         \
    "  %n = NonZero(%mask)\n"                                                                      \
    "  %columns = access(%n) {rule = [permute(1, 0)]}\n"                                           \
    "  %v = GatherND(%x, %columns)\n"                                                              \
    "  %shape = Shape(%v)\n"                                                                       \
    "  %k = Min(%shape, %most)\n"                                                                  \
    "  %values, %places = TopK(%v, %k) {axis = 0}\n"                                               \
    "  %rows = access(%n) {rule = [select(0, 0)]}\n"                                               \
    "  %row = access(%rows, %places) {rule = [gather(0, $0)]}\n"                                   \
    "  %labels = access(%n) {rule = [select(0, 1)]}\n"                                             \
    "  %label = access(%labels, %places) {rule = [gather(0, $0)]}\n"                               \
    "  %corners = access(%boxes, %row) {rule = [gather(0, $0)]}\n"                                 \
    "  %mask2 = LessOrEqual(%bound, %s)\n"                                                         \
    "  %n2 = NonZero(%mask2)\n"                                                                    \
    "  %numbers = access(%n2) {rule = [squeeze(0)]}\n"                                             \
    "  %v2 = access(%s, %numbers) {rule = [gather(0, $0)]}\n"                                      \
    "  %shape2 = Shape(%v2)\n"                                                                     \
    "  %k2 = Min(%shape2, %most)\n"                                                                \
    "  %values2, %places2 = TopK(%v2, %k2) {axis = 0}\n"                                           \
    "  %row2 = access(%numbers, %places2) {rule = [gather(0, $0)]}\n"                              \
    "  %corners2 = access(%boxes, %row2) {rule = [gather(0, $0)]}\n"                               \
    "  %factor = access(%r, %row2) {rule = [gather(0, $0)]}\n"                                     \
    "  %values3 = Mul(%values2, %factor)\n"                                                        \
    "  %scored = Concat(%values, %values3) {axis = 0}\n"                                           \
    "  %both = Concat(%corners, %corners2) {axis = 0}\n"                                           \
    "  %named = Concat(%label, %row2) {axis = 0}\n"                                                \
    "  %highest = ReduceMax(%both) {keepdims = 0}\n"                                               \
    "  %cast = Cast(%named) {to = 1}\n"                                                            \
    "  %apart = Mul(%cast, %highest)\n"                                                            \
    "  %column = access(%apart) {rule = [unsqueeze(1)]}\n"                                         \
    "  %moved = Add(%both, %column)\n"                                                             \
    "  %b3 = access(%moved) {rule = [unsqueeze(0)]}\n"                                             \
    "  %s3 = access(%scored) {rule = [reshape(1, 1, -1)]}\n"                                       \
    "  %found = NonMaxSuppression(%b3, %s3, %most, %overlap)\n"                                    \
    "  %which = access(%found) {rule = [select(1, 2)]}\n"                                          \
    "  %kept = access(%both, %which) {rule = [gather(0, $0)]}\n"                                   \
    "  %class = access(%named, %which) {rule = [gather(0, $0)]}\n"                                 \
    "  %many = Shape(%found)\n"                                                                    \
    "  return(%kept, %class, %many)\n"                                                             \
    "}\n"

/* Of rows that a mask keeps the elements above a bound; `list`: of which list it says so. */
#define ROWS(bound, list)                                                                          \
    "graph (%y: f32[24], %z: f32[24, 8]) -> (%wide as \"wide\", %names as \"names\") {\n"          \
    "  %bound = Constant() {value = f32[] " bound "}\n"                                            \
    "  %mask = Greater(%y, %bound)\n"                                                              \
    "  %n = NonZero(%mask)\n"                                                                      \
    "  %numbers = access(%n) {rule = [reshape(-1)]}\n"                                             \
    "  %rows = access(%z, %numbers) {rule = [gather(0, $0)]}\n"                                    \
    "  %mask2 = Greater(%rows, %bound)\n"                                                          \
    "  %flat2 = access(%mask2) {rule = [reshape(-1)]}\n"                                           \
    "  %both2 = Or(%flat2, %flat2)\n"                                                              \
    "  %n2 = NonZero(%" list ")\n"                                                                 \
    "  %numbers2 = access(%n2) {rule = [reshape(-1)]}\n"                                           \
    "  %flat = access(%rows) {rule = [reshape(-1)]}\n"                                             \
    "  %wide = access(%flat, %numbers2) {rule = [gather(0, $0)]}\n"                                \
    "  %eight = Constant() {value = i64[8] [0, 1, 2, 3, 4, 5, 6, 7]}\n"                            \
    "  %shape = Shape(%numbers)\n"                                                                 \
    "  %tiled = access(%eight, %shape) {rule = [tile($0)]}\n"                                      \
    "  %names = access(%tiled, %numbers2) {rule = [gather(0, $0)]}\n"                              \
    "  return(%wide, %names)\n"                                                                    \
    "}\n"

static void check_all(const char *text, int found)
{
    assert_int_equal(rewrite_count(text, PASSES, "= NonZero@"), found);
    for (uint64_t seed = 1; seed <= 40; seed++)
        assert_true(
            rewrite_check(&(struct rewrite_check){.text = text, .passes = PASSES, .seed = seed}));
}

static void test_detector(void **state)
{
    (void)state;
    check_all(DETECTOR("0.05"), 0);
    check_all(DETECTOR("1.5"), 0);
    check_all(DETECTOR("1.9"), 0);
    check_all(DETECTOR("3"), 0); /* what is infinite, or nothing */
    check_all(DETECTOR("-3"), 0);
}

static void test_rows(void **state)
{
    (void)state;
    check_all(ROWS("0.05", "flat2"), 1);
    check_all(ROWS("0.05", "both2"), 1);
    check_all(ROWS("1.9", "flat2"), 1);
    check_all(ROWS("1.9", "both2"), 1);
    check_all(ROWS("3", "flat2"), 1);
    check_all(ROWS("3", "both2"), 1);
    check_all(ROWS("-3", "flat2"), 1);
    check_all(ROWS("-3", "both2"), 1);
}

/* What is computed of how many there are, and of a number before it. */
static void test_numbers(void **state)
{
    static const char text[] = "graph (%x: f32[40]) -> (%y as \"y\", %k as \"k\") {\n"
                               "  %zero = Constant() {value = f32[] 0}\n"
                               "  %one = Constant() {value = i64[] 1}\n"
                               "  %mask = Greater(%x, %zero)\n"
                               "  %n = NonZero(%mask)\n"
                               "  %numbers = access(%n) {rule = [squeeze(0)]}\n"
                               "  %v = access(%x, %numbers) {rule = [gather(0, $0)]}\n"
                               "  %y = Neg(%v)\n"
                               "  %shape = Shape(%v)\n"
                               "  %size = access(%shape) {rule = [squeeze(0)]}\n"
                               "  %k = Max(%one, %size)\n"
                               "  return(%y, %k)\n"
                               "}\n";
    (void)state;
    check_all(text, 1);
}

/* What -inf is kept of, or NaN, is no list of which nothing else is -inf. */
static void test_kept_as_it_is(void **state)
{
    (void)state;
    check_all(DETECTOR("-inf"), 2);
    check_all(DETECTOR("nan"), 2);
}

/* Of what is not kept nothing may be an error: text that is no number is not read as one. */
static void test_text(void **state)
{
    (void)state;
    check_all("graph (%y: f32[4]) -> (%highest as \"highest\") {\n"
              "  %all = Constant() {value = bool[4] [false, true, false, true]}\n"
              "  %text = Constant() {value = str[4] [\"one\", \"1\", \"two\", \"2\"]}\n"
              "  %n = NonZero(%all)\n"
              "  %numbers = access(%n) {rule = [squeeze(0)]}\n"
              "  %kept = access(%text, %numbers) {rule = [gather(0, $0)]}\n"
              "  %read = Cast(%kept) {to = 1}\n"
              "  %most = ReduceMax(%read) {keepdims = 0}\n"
              "  %highest = Add(%y, %most)\n"
              "  return(%highest)\n"
              "}\n",
              1);
}

/* What must be one is not all that there is room for, be there room for no more than one. */
static void test_one(void **state)
{
    static const char text[] = "graph (%y: f32[1], %z: f32[1, 1]) -> (%highest as \"highest\") {\n"
                               "  %bound = Constant() {value = f32[] 0}\n"
                               "  %mask = Greater(%y, %bound)\n"
                               "  %n = NonZero(%mask)\n"
                               "  %numbers = access(%n) {rule = [squeeze(0)]}\n"
                               "  %rows = access(%z, %numbers) {rule = [gather(0, $0)]}\n"
                               "  %row = access(%rows) {rule = [squeeze(0)]}\n"
                               "  %highest = ReduceMax(%row) {keepdims = 0}\n"
                               "  return(%highest)\n"
                               "}\n";
    int ran = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++)
        ran += rewrite_check(&(struct rewrite_check){.text = text, .passes = PASSES, .seed = seed});
    assert_in_range(ran, 1, 39); /* none of the others */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_detector), cmocka_unit_test(test_rows),
        cmocka_unit_test(test_numbers),  cmocka_unit_test(test_kept_as_it_is),
        cmocka_unit_test(test_text),     cmocka_unit_test(test_one)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
