/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inference through If, Loop, Scan and SequenceMap: what enters a block, what a carried value's
 * type becomes, what leaves; and that nesting does not multiply the work.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "base/text.h"
#include "common/infer_text.h"
#include "common/rewrite_check.h"

#define INPUTS                                                                                     \
    "%x: f32[N, 4], %row: f32[1, 4], %v: i64[N], %any: f32[*], %unknown: ?, %n: i64[], %b: "       \
    "bool[], "                                                                                     \
    "%s: seq(f32[N, 4]), %batch: f32[B, T, 3]"
#define gives(ops, result) infer_gives(INPUTS, ops, result)
#define refused(ops, why) infer_refuses(INPUTS, ops, TSSA_MALFORMED, why)

#define INT(name, value_) "%" #name " = Constant() {value = i64[] " #value_ "}\n"
#define BOOL(name, value_) "%" #name " = Constant() {value = bool[] " #value_ "}\n"

/* What cannot run. */
#define BAD "%bad = Transpose(%x) {perm = [0, 0]}\n"

/* ---- If -------------------------------------------------------------------------------------- */

#define IF(then_ops, then_value, else_ops, else_value)                                             \
    "%y = If(%b) {\n then_branch() {" then_ops " return(" then_value                               \
    ")}\n else_branch() {" else_ops " return(" else_value ")}\n}\n"

static void branches_join(void **state)
{
    (void)state;
    gives(IF("", "%x", "", "%x"), "f32[N, 4]");
    gives(IF("", "%x", "", "%row"), "f32[#1, 4]");
    gives(IF("", "%x", "", "%batch"), "f32[*]");
    gives(IF("", "%x", "", "%v"), "undefined[*]");
    gives(IF("", "%x", "", "%s"), "?");
    gives(IF("", "%x", "", "%unknown"), "?");
    /*
     * A dim that both branches compute alike from outer ones may leave; what one made up may not.
     */
    gives(IF("%p = Concat(%x, %row) {axis = 0}", "%p", "%q = Concat(%row, %x) {axis = 0}", "%q"),
          "f32[N + 1, 4]");
    gives(IF("%p = NonZero(%x)", "%p", "%q = NonZero(%x)", "%q"), "i64[2, #1]");
}

/* The branch that is never taken says nothing. */
static void branches_taken(void **state)
{
    (void)state;
    gives(BOOL(t, true) "%y = If(%t) {then_branch() {return(%x)} else_branch() {return(%batch)}}",
          "f32[N, 4]");
    gives(BOOL(f, false) "%y = If(%f) {then_branch() {return(%x)} else_branch() {return(%v)}}",
          "i64[N]");
    gives(BOOL(t, true) INT(a, 3)
              INT(d, 4) "%y = If(%t) {then_branch() {return(%a)} else_branch() {return(%d)}}",
          "i64[] [3]");
    gives(BOOL(t, true) INT(
              zero, 0) "%y = If(%t) {then_branch() {%p = NonZero(%x) %q = Shape(%p) return(%q)} "
                       "else_branch() {return(%v)}}",
          "i64[2] [2, ?]");
    gives(BOOL(t, true) "%y, %z = If(%t) {then_branch() {%p = NonZero(%x) return(%p, %p)} "
                        "else_branch() {return(%v, %v)}}",
          "i64[2, #1]");
}

/* squeeze(2) as exporters write it, in a loop whose carried value gets another rank in the other
 * branch. */
#define SQUEEZE(axis, size)                                                                        \
    "graph (%e: f32[B, 6, 6], %h: f32[B, 6], %n: i64[]) -> (%y as \"y\") {\n"                      \
    "  %y = Loop(%n, _, %h) {\n"                                                                   \
    "    body(%i: i64[], %c: bool[], %k: ?) {\n"                                                   \
    "      %two = Constant() {value = i64[1] [2]}\n"                                               \
    "      %axis = Constant() {value = i64[1] [" axis "]}\n"                                       \
    "      %size = Constant() {value = i64[1] [" size "]}\n"                                       \
    "      %u = Unsqueeze(%k, %two)\n"                                                             \
    "      %m = MatMul(%e, %u)\n"                                                                  \
    "      %s = Shape(%m)\n"                                                                       \
    "      %d = Gather(%s, %axis)\n"                                                               \
    "      %one = Equal(%d, %size)\n"                                                              \
    "      %r = If(%one) {\n"                                                                      \
    "        then_branch() { %q = Squeeze(%m, %two) return(%q) }\n"                                \
    "        else_branch() { %w = Identity(%m) return(%w) }\n"                                     \
    "      }\n"                                                                                    \
    "      %t = Relu(%r)\n"                                                                        \
    "      return(%c, %t)\n"                                                                       \
    "    }\n"                                                                                      \
    "  }\n"                                                                                        \
    "  return(%y)\n"                                                                               \
    "}\n"

static void squeeze_in_loop(void **state)
{
    (void)state;
    for (int64_t trips = 0; trips < 4; trips++)
        assert_true(rewrite_check(&(const struct rewrite_check){
            .text = SQUEEZE("2", "1"), .size = 3, .scalar = trips, .seed = 1}));
    assert_int_equal(rewrite_count(SQUEEZE("2", "1"), NULL, "If"), 0);
    assert_int_equal(rewrite_count(SQUEEZE("0", "1"), NULL, "If"), 1); /* whatever the batch is */
}

static void branches_refused(void **state)
{
    (void)state;
    refused("%y = If(%b) {then_branch() {return(%x)}}", "\"else_branch\" is missing");
    refused("%y = If(%b) {then_branch() {return(%x)} else_branch() {return(%x, %x)}}",
            "\"else_branch\" has 2 outputs where 1 are needed");
    refused("%y = If(%b) {then_branch(%p: i64[]) {return(%x)} else_branch() {return(%x)}}",
            "\"then_branch\" has 1 inputs where 0 are needed");
    refused(BOOL(t, true) "%y = If(%t) {then_branch() {" BAD
                          "return(%bad)} else_branch() {return(%x)}}",
            "Transpose (node ");
}

/* ---- Loop ------------------------------------------------------------------------------------ */

#define LOOP(results, trips, entry, initial, ops, next, returns)                                   \
    results " = Loop(" trips ", " entry ", " initial                                               \
            ") {\n body(%i: i64[], %c: bool[], %p: ?) {" ops " return(" next ", " returns          \
            ")}\n}\n"

static void carried_values(void **state)
{
    (void)state;
    gives(LOOP("%y", "%n", "_", "%x", "%q = Relu(%p)", "%c", "%q"), "f32[N, 4]");
    /* Dims that grow are general from then on, the others stay. */
    gives(LOOP("%y", "%n", "_", "%x", "%q = Concat(%p, %row) {axis = 0}", "%c", "%q"),
          "f32[#1, 4]");
    gives(LOOP("%y", "%n", "_", "%x", "%q = Concat(%p, %p) {axis = 1}", "%c", "%q"), "f32[N, #1]");
    gives(LOOP("%y", "%n", "_", "%row", "", "%c", "%x"), "f32[#1, 4]");
    /* A rank that changes is not known. */
    gives(LOOP("%y", "%n", "_", "%x", "%a = Shape(%n) %q = Reshape(%p, %v)", "%c", "%q"), "f32[*]");
    gives(LOOP("%y", "%n", "_", "%any", "%q = Relu(%p)", "%c", "%q"), "f32[*]");
    gives(LOOP("%y", "%n", "_", "%unknown", "", "%c", "%p"), "?");
    gives(LOOP("%y", "%n", "_", "%s", "%q = SequenceInsert(%p, %x)", "%c", "%q"), "seq(f32[N, 4])");
    gives(LOOP("%y", "%n", "_", "%s", "%q = SequenceInsert(%p, %row)", "%c", "%q"),
          "seq(f32[#1, 4])");
    gives("%e = SequenceEmpty()\n" LOOP("%y", "%n", "_", "%e", "%q = SequenceInsert(%p, %x)", "%c",
                                        "%q"),
          "seq(f32[*])");
    /* Two values whose dims depend on each other. */
    gives("%y, %z = Loop(%n, _, %x, %row) {body(%i: i64[], %c: bool[], %p: ?, %q: ?) {"
          "return(%c, %q, %p)}}",
          "f32[#1, 4]");
    /* What is known of the first iteration's elements does not hold for the second's. */
    gives(INT(zero, 0) INT(one, 1) LOOP("%y", "%n", "_", "%zero", "%q = Add(%p, %one)", "%c", "%q"),
          "i64[]");
}

static void scan_outputs(void **state)
{
    (void)state;
    gives(INT(k, 5) LOOP("%l, %y", "%k", "_", "%x", "", "%c", "%p, %row"), "f32[5, 1, 4]");
    gives(INT(k, 0) LOOP("%l, %y", "%k", "_", "%x", "", "%c", "%p, %i"), "i64[0]");
    gives(INT(k, -3) LOOP("%l, %y", "%k", "_", "%x", "", "%c", "%p, %i"), "i64[0]");
    gives("%k = Size(%v)\n" LOOP("%l, %y", "%k", "_", "%x", "", "%c", "%p, %i"), "i64[N]");
    gives(LOOP("%l, %y", "%n", "_", "%x", "", "%c", "%p, %i"), "i64[#1]");
    gives(LOOP("%l, %y", "_", "_", "%x", "", "%c", "%p, %i"), "i64[#1]");
    /* A condition that may end it early. */
    gives(INT(k, 5) LOOP("%l, %y", "%k", "%b", "%x", "", "%c", "%p, %i"), "i64[#1]");
    gives(INT(k, 5) LOOP("%l, %y", "%k", "_", "%x", "", "%b", "%p, %i"), "i64[#1]");
    gives(INT(k, 5) BOOL(t, true) LOOP("%l, %y", "%k", "%t", "%x", "", "%c", "%p, %i"), "i64[5]");
    gives(INT(k, 5) BOOL(f, false) LOOP("%l, %y", "%k", "%f", "%x", "", "%c", "%p, %i"), "i64[#1]");
    gives(INT(k, 5) LOOP("%l, %y", "%k", "_", "%x", "%d = Identity(%c)", "%d", "%p, %i"), "i64[5]");
    gives(INT(k, 5) LOOP("%l, %y", "%k", "_", "%x", BOOL(t, true), "%t", "%p, %i"), "i64[5]");
    /* A dim of the body means nothing outside. */
    gives(INT(k, 5) LOOP("%l, %y", "%k", "_", "%x", "%z = NonZero(%p)", "%c", "%p, %z"),
          "i64[5, 2, #1]");
    gives(INT(k, 5) LOOP("%l, %y", "%k", "_", "%x", "", "%c", "%p, %any"), "f32[*]");
}

static void loops_refused(void **state)
{
    (void)state;
    refused("%y = Loop(%n, _, %x)", "\"body\" is missing");
    refused("%y = Loop(%n, _, %x) {body(%i: i64[], %c: bool[]) {return(%c, %x)}}",
            "\"body\" has 2 inputs where 3 are needed");
    refused("%y = Loop(%n, _, %x) {body(%i: i64[], %c: bool[], %p: ?) {return(%c)}}",
            "\"body\" has 1 outputs where 2 are needed");
    refused("%y = Loop(%n, _, %x, %x) {body(%i: i64[], %c: bool[], %p: ?, %q: ?) {"
            "return(%c, %p, %q)}}",
            "2 carried values but only 1 outputs");
    refused(LOOP("%y", "%n", "_", "%x", "", "%c", "%v"), "carried value 0 is f32 and becomes i64");
    refused(INT(two, 2) LOOP("%y", "%two", "_", "%x", "%q = Concat(%p, %n) {axis = 0}", "%c", "%q"),
            "Concat (node ");
}

/* ---- Scan ------------------------------------------------------------------------------------ */

#define SCAN(version, results, operands, params, ops, returns, attributes)                         \
    results " = Scan" version "(" operands ") {" attributes "} {\n body(" params ") {" ops         \
            " return(" returns ")}\n}\n"

static void scans(void **state)
{
    (void)state;
    gives(SCAN("", "%y", "%x", "%e: ?", "", "%e", "num_scan_inputs = 1"), "f32[N, 4]");
    gives(SCAN("", "%y", "%x", "%e: ?", "", "%e",
               "num_scan_inputs = 1, scan_input_axes = [1], scan_output_axes = [-1]"),
          "f32[N, 4]");
    gives(SCAN("", "%y", "%x", "%e: ?", "", "%e", "num_scan_inputs = 1, scan_input_axes = [-1]"),
          "f32[4, N]");
    gives(SCAN("", "%y", "%any", "%e: ?", "", "%row", "num_scan_inputs = 1"), "f32[#1, 1, 4]");
    gives(SCAN("", "%y, %o", "%row, %x", "%p: ?, %e: ?", "%q = Add(%p, %e)", "%q, %e",
               "num_scan_inputs = 1"),
          "f32[1, 4]");
    gives(SCAN("", "%y, %o", "%row, %x", "%p: ?, %e: ?", "%q = Concat(%p, %row) {axis = 0}",
               "%q, %e", "num_scan_inputs = 1"),
          "f32[#1, 4]");
    /* Version 8: the lengths of sequences first, then a batch of them. */
    gives(SCAN("@8", "%y", "_, %batch", "%e: ?", "%q = Relu(%e)", "%q", "num_scan_inputs = 1"),
          "f32[*]");
}

static void scans_refused(void **state)
{
    (void)state;
    refused(SCAN("", "%y", "%x", "%e: ?", "", "%e", "num_scan_inputs = 2"),
            "num_scan_inputs is 2 with 1 inputs");
    refused(SCAN("", "%y", "%x", "%e: ?", "", "%e", "num_scan_inputs = 0"),
            "num_scan_inputs is 0 with 1 inputs");
    refused(SCAN("", "%y", "%n", "%e: ?", "", "%e", "num_scan_inputs = 1"),
            "scan input 0: axis 0 is out of range for rank 0");
    refused(SCAN("", "%y", "%x", "%e: ?", "", "%e",
                 "num_scan_inputs = 1, scan_input_axes = [9223372036854775807]"),
            "scan input 0: axis 9223372036854775807 is out of range for rank 2");
    refused(SCAN("", "%y", "%x", "%e: ?", "", "%e", "num_scan_inputs = 1, scan_output_axes = [7]"),
            "scan output 0: axis 7 is out of range for rank 2");
    refused(SCAN("", "%y", "%x", "%e: ?", "", "%e", "num_scan_inputs = 1, scan_output_axes = [-3]"),
            "scan output 0: axis -3 is out of range for rank 2");
    refused(SCAN("@8", "%y", "_, %v", "%e: ?", "", "%e", "num_scan_inputs = 1"),
            "scan input 0: axis 1 is out of range for rank 1");
    refused(SCAN("", "%y", "%row, %x", "%p: ?, %e: ?", "", "%v, %e", "num_scan_inputs = 1"),
            "2 outputs where 1 are needed");
    refused(SCAN("", "%y, %o", "%row, %x", "%p: ?, %e: ?", "", "%v, %e", "num_scan_inputs = 1"),
            "carried value 0 is f32 and becomes i64");
}

/* ---- SequenceMap ----------------------------------------------------------------------------- */

static void sequence_maps(void **state)
{
    (void)state;
    /* Elements may differ in shape, so that N of one is not N of the next. */
    gives("%y = SequenceMap(%s) {body(%e: ?) {%q = Relu(%e) return(%q)}}", "seq(f32[#1, 4])");
    gives("%y = SequenceMap(%s, %v) {body(%e: ?, %w: ?) {return(%w)}}", "seq(i64[#1])");
    gives("%y = SequenceMap(%s) {body(%e: ?) {return(%n)}}", "seq(i64[])");
    refused("%y = SequenceMap(%s) {body(%e: ?, %f: ?) {return(%e)}}",
            "\"body\" has 2 inputs where 1 are needed");
}

/* ---- What may never run ---------------------------------------------------------------------- */

static void what_may_not_run(void **state)
{
    (void)state;
    gives(IF(BAD, "%bad", "", "%x"), "?");
    gives(BOOL(t, true) "%y = If(%t) {then_branch() {return(%x)} else_branch() {" BAD
                        "return(%bad)}}",
          "f32[N, 4]");
    /* A branch of a branch, which would be taken if it came to that. */
    gives(BOOL(t, true)
              IF("%q = If(%t) {then_branch() {" BAD "return(%bad)} else_branch() {return(%x)}}",
                 "%x", "", "%x"),
          "f32[N, 4]");
    gives(LOOP("%y", "%n", "_", "%x", BAD, "%c", "%p"), "f32[N, 4]");
    refused(INT(one, 1) LOOP("%y", "%one", "_", "%x", BAD, "%c", "%p"), "Transpose (node ");
    gives("%y = SequenceMap(%s) {body(%e: ?) {" BAD "return(%x)}}", "seq(f32[#1, 4])");
}

/* ---- Nesting --------------------------------------------------------------------------------- */

/* Loops in loops, the innermost of which makes its carried value longer, so that no level is
 * inferred in one round: 4^levels rounds, if nothing stopped them. */
static void nested_loops(unsigned levels)
{
    struct text ops;
    text_init(&ops, &allocator_default);
    for (unsigned i = 0; i < levels; i++) {
        text_printf(&ops, "%%%s%u = Loop(%%n, _, ", i ? "r" : "y", i);
        text_printf(&ops, i ? "%%p%u" : "%%x", i - 1);
        text_printf(&ops, ") {body(%%i%u: i64[], %%c%u: bool[], %%p%u: ?) {\n", i, i, i);
    }
    text_printf(&ops, "%%r%u = Concat(%%p%u, %%row) {axis = 0}\n", levels, levels - 1);
    for (unsigned i = levels; i-- > 0;)
        text_printf(&ops, "return(%%c%u, %%r%u)}}\n", i, i + 1);
    text_puts(&ops, "%y = Relu(%y0)");
    clock_t start = clock();
    infer_gives(INPUTS, text_string(&ops), levels <= 2 ? "f32[#1, 4]" : "f32[*]");
    assert_true(clock() - start < 2 * CLOCKS_PER_SEC);
    text_free(&ops);
}

static void nesting(void **state)
{
    (void)state;
    nested_loops(1);
    nested_loops(2);
    nested_loops(30);
    nested_loops(90);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(branches_join),  cmocka_unit_test(branches_refused),
        cmocka_unit_test(branches_taken), cmocka_unit_test(squeeze_in_loop),
        cmocka_unit_test(carried_values), cmocka_unit_test(scan_outputs),
        cmocka_unit_test(loops_refused),  cmocka_unit_test(scans),
        cmocka_unit_test(scans_refused),  cmocka_unit_test(sequence_maps),
        cmocka_unit_test(nesting),        cmocka_unit_test(what_may_not_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
