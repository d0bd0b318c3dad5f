/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loops computed at once (parallelize), assigns forwarded and carried tensors taken apart: programs
 * give the same before and after, and fail before and after; near misses; random bodies, with Ifs
 * and Loops in them too.
 *
 * TSSA_SEED=N runs one of them and prints it (common/random_programs.h).
 */
/* ctest-labels: random */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "common/random_programs.h"
#include "common/rewrite_check.h"
#include "common/rewrite_text.h"
#include "common/test_alloc.h"
#include "ir/infer.h"
#include "ir/parser.h"
#include "passes/pipeline.h"

#define PASSES "infer forward_assigns scalar_replacement forward_assigns parallelize dead_code"

/* All iterations at once, and in blocks: of one, two or three iterations, or as many as have so
 * many bytes; of short rows. */
static const struct pass_batching ways[] = {{0},
                                            {.block = 1},
                                            {.block = 2},
                                            {.block = 3},
                                            {.block_bytes = 100},
                                            {.block_bytes = 400},
                                            {.block = 2, .rows = 4},
                                            {.block_bytes = 100, .rows = 6}};

#define N_WAYS (sizeof ways / sizeof *ways)
#define N_BLOCKS 6 /* of them, in which no loop stays that could go */

/* Whether it runs, in all ways. */
static bool check(const char *text, int64_t size, int64_t scalar)
{
    bool ran = false;
    for (size_t i = 0; i < N_WAYS; i++) {
        const struct rewrite_check run = {.text = text,
                                          .passes = PASSES,
                                          .size = size,
                                          .scalar = scalar,
                                          .batching = ways[i],
                                          .seed = 7};
        ran = rewrite_check(&run);
    }
    return ran;
}

static int loops_left(const char *text)
{
    return rewrite_count(text, PASSES, "Loop@");
}

/* ---- Rows that are written ------------------------------------------------------------------- */

/* b[i] = b[i] + 1, in each element type. */
static void test_rows(void **state)
{
    static const char *const dtypes[] = {"f32", "f64", "f16", "bf16", "i64", "i32"};
    char text[1024];
    (void)state;
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        snprintf(text, sizeof text,
                 "graph (%%b: %s[N, 3], %%n: i64[]) -> (%%y as \"y\") {\n"
                 "  %%y = Loop(%%n, _, %%b) {\n"
                 "    body(%%i: i64[], %%c: bool[], %%v: %s[N, 3]) {\n"
                 "      %%one = Constant() {value = %s[] 1}\n"
                 "      %%row = access(%%v, %%i) {rule = [select(0, $0)]}\n"
                 "      %%s = Add(%%row, %%one)\n"
                 "      %%w = assign(%%v, %%s, %%i) {rule = [select(0, $0)]}\n"
                 "      return(%%c, %%w)\n"
                 "    }\n"
                 "  }\n"
                 "  return(%%y)\n"
                 "}\n",
                 dtypes[i], dtypes[i], dtypes[i]);
        assert_int_equal(loops_left(text), 0);
        for (int64_t n = -1; n <= 4; n++)
            assert_true(check(text, 4, n));
        assert_false(check(text, 4, 5)); /* an index out of range, before and after */
        assert_false(check(text, 0, 2));
        assert_true(check(text, 0, 0));
    }
}

/* One number for a whole row, of a size that only a run tells, in rows and in columns. */
static void test_broadcast(void **state)
{
    char text[1024];
    (void)state;
    for (int axis = 0; axis < 2; axis++)
        for (int64_t n = 0; n < 5; n++) {
            snprintf(text, sizeof text,
                     "graph (%%b: f32[N, N], %%s: f32[4, 1], %%n: i64[]) -> (%%y as \"y\") {\n"
                     "  %%y = Loop(%%n, _, %%b) {\n"
                     "    body(%%i: i64[], %%c: bool[], %%v: f32[N, N]) {\n"
                     "      %%x = access(%%s, %%i) {rule = [select(0, $0)]}\n"
                     "      %%w = assign(%%v, %%x, %%i) {rule = [select(%d, $0)]}\n"
                     "      return(%%c, %%w)\n"
                     "    }\n"
                     "  }\n"
                     "  return(%%y)\n"
                     "}\n",
                     axis);
            assert_true(check(text, 4, n));
        }
}

/* Columns, from an offset on, of a step, backwards; each written by the loop and read elsewhere. */
static void test_regions(void **state)
{
    static const struct {
        const char *index, *rule;
        int loops;
    } cases[] = {
        {"%j = Identity(%i)", "select(1, $0)", 0},
        {"%two = Constant() {value = i64[] 2}\n%j = Add(%i, %two)", "select(1, $0)", 0},
        {"%two = Constant() {value = i64[] 2}\n%j = Mul(%i, %two)", "select(1, $0)", 0},
        {"%four = Constant() {value = i64[] 4}\n%j = Sub(%four, %i)", "select(1, $0)", 0},
        {"%one = Constant() {value = i64[] 1}\n%j = Sub(%i, %one)", "select(1, $0)", 1},
        {"%two = Constant() {value = i64[] 2}\n%j = Div(%i, %two)", "select(1, $0)", 1},
        {"%j = Identity(%i)", "select(1, $0), slice(0, 0, 100, 1)", 0},
        {"%j = Identity(%i)", "permute(1, 0), select(0, $0)", 0},
        {"%j = Identity(%i)", "select(1, $0), unsqueeze(0)", 0},
    };
    char text[2048];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int n = 0; n < 5; n++) {
            snprintf(text, sizeof text,
                     "graph (%%b: f32[2, 9], %%s: f32[2, 9]) -> (%%y as \"y\", %%r as \"r\") {\n"
                     "  %%n = Constant() {value = i64[] %d}\n"
                     "  %%y, %%r = Loop(%%n, _, %%b) {\n"
                     "    body(%%i: i64[], %%c: bool[], %%v: f32[2, 9]) {\n"
                     "      %s\n"
                     "      %%row = access(%%s, %%j) {rule = [%s]}\n"
                     "      %%old = access(%%v, %%j) {rule = [%s]}\n"
                     "      %%sum = Mul(%%row, %%old)\n"
                     "      %%w = assign(%%v, %%sum, %%j) {rule = [%s]}\n"
                     "      return(%%c, %%w, %%row)\n"
                     "    }\n"
                     "  }\n"
                     "  return(%%y, %%r)\n"
                     "}\n",
                     n, cases[i].index, cases[i].rule, cases[i].rule, cases[i].rule);
            assert_true(check(text, 9, 0));
            if (n > 1)
                assert_int_equal(loops_left(text), cases[i].loops);
        }
}

/* Reads of the row before, writes to one row by all, reads of the whole. */
static void test_near_misses(void **state)
{
    static const char *const bodies[] = {
        "%one = Constant() {value = i64[] 1}\n%j = Add(%i, %one)\n"
        "%row = access(%v, %i) {rule = [select(0, $0)]}\n"
        "%w = assign(%v, %row, %j) {rule = [select(0, $0)]}\n",
        "%row = access(%s, %i) {rule = [select(0, $0)]}\n"
        "%w = assign(%v, %row) {rule = [select(0, 1)]}\n",
        "%row = ReduceSum(%v) {keepdims = 0}\n"
        "%w = assign(%v, %row, %i) {rule = [select(0, $0)]}\n",
        "%row = access(%s, %i) {rule = [select(0, $0)]}\n"
        "%v1 = assign(%v, %row, %i) {rule = [select(0, $0)]}\n"
        "%w = assign(%v1, %row, %i) {rule = [select(1, $0)]}\n",
    };
    char text[2048];
    (void)state;
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        snprintf(text, sizeof text,
                 "graph (%%b: f32[6, 6], %%s: f32[6, 6], %%n: i64[]) -> (%%y as \"y\") {\n"
                 "  %%y = Loop(%%n, _, %%b) {\n"
                 "    body(%%i: i64[], %%c: bool[], %%v: f32[6, 6]) {\n"
                 "      %s"
                 "      return(%%c, %%w)\n"
                 "    }\n"
                 "  }\n"
                 "  return(%%y)\n"
                 "}\n",
                 bodies[i]);
        assert_int_equal(loops_left(text), 1);
        for (int64_t n = 0; n < 6; n++)
            check(text, 6, n);
    }
}

/* Columns clamped in two steps, and reads of rearranged reads. */
static void test_updates(void **state)
{
    static const char text[] =
        "graph (%x: f32[N, 4]) -> (%y as \"y\", %k as \"k\", %m as \"m\") {\n"
        "  %s = Constant() {value = f32[] -0.5}\n"
        "  %t = Constant() {value = f32[] 1}\n"
        "  %a0 = access(%x) {rule = [slice(1, 0, 3, 2)]}\n"
        "  %c0 = Clip(%a0, %s, %t)\n"
        "  %y0 = assign(%x, %c0) {rule = [slice(1, 0, 3, 2)]}\n"
        "  %a1 = access(%y0) {rule = [slice(1, 1, 4, 2)]}\n"
        "  %c1 = Clip(%a1, %s, %t)\n"
        "  %y = assign(%y0, %c1) {rule = [slice(1, 1, 4, 2)]}\n"
        "  %a3 = access(%y0) {rule = [select(1, 3)]}\n"
        "  %c3 = Clip(%a3, %s, %t)\n"
        "  %k = assign(%y0, %c3) {rule = [select(1, 3)]}\n"
        "  %p = access(%k) {rule = [permute(1, 0), unsqueeze(1)]}\n"
        "  %m = access(%p) {rule = [select(0, 3)]}\n"
        "  return(%y, %k, %m)\n"
        "}\n";
    (void)state;
    for (int64_t n = 0; n < 4; n++) {
        const struct rewrite_check run = {
            .text = text, .passes = "forward_assigns merge_updates dead_code", .size = n};
        assert_true(rewrite_check(&run));
    }
}

/* Sequences that are as long as the first one, longer, or shorter. */
/* Sums of floats that iterations use have the bits of the loop: of a line of them, and of rows. */
static void test_running_sums(void **state)
{
    static const char *const dtypes[] = {"f32", "f64", "f32", "f64"};
    static const char *const dims[] = {"", "", "3, 2", "40"};
    (void)state;
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        char type[16], rows[16], text[1500];
        snprintf(type, sizeof type, "%s[%s]", dtypes[i], dims[i]);
        snprintf(rows, sizeof rows, "%s[N%s%s]", dtypes[i], *dims[i] ? ", " : "", dims[i]);
        snprintf(text, sizeof text,
                 "graph (%%x: %s, %%y: %s, %%a: %s, %%n: i64[]) -> "
                 "(%%last as \"last\", %%other as \"other\", %%each as \"each\", %%v as \"v\") {\n"
                 "  %%last, %%other, %%each, %%v = Loop(%%n, _, %%a, %%a) {\n"
                 "    body(%%i: i64[], %%c: bool[], %%s: %s, %%t: %s) {\n"
                 "      %%row = access(%%x, %%i) {rule = [select(0, $0)]}\n"
                 "      %%found = access(%%y, %%i) {rule = [select(0, $0)]}\n"
                 "      %%next = Add(%%s, %%row)\n"
                 "      %%term = Mul(%%next, %%found)\n"
                 "      %%u = Add(%%term, %%t)\n"
                 "      %%square = Mul(%%t, %%s)\n"
                 "      return(%%c, %%next, %%u, %%u, %%square)\n    }\n  }\n"
                 "  return(%%last, %%other, %%each, %%v)\n}\n",
                 rows, rows, type, type, type);
        for (int64_t n = 0; n <= 9; n++)
            assert_true(check(text, 9, n));
        check(text, 200, 200);
        assert_int_equal(rewrite_count(text, PASSES, "body(%i:"), 0); /* blocks may remain */
    }
}

static void test_sequences(void **state)
{
    static const char text[] = "graph (%x: f32[N, 2], %z: f32[4, 2]) -> (%y as \"y\") {\n"
                               "  %one = Constant() {value = i64[] 1}\n"
                               "  %a = SplitToSequence(%x, %one)\n"
                               "  %b = SplitToSequence(%z, %one)\n"
                               "  %n = SequenceLength(%a)\n"
                               "  %e = SequenceEmpty() {dtype = 1}\n"
                               "  %y = Loop(%n, _, %e) {\n"
                               "    body(%i: i64[], %c: bool[], %p: seq(f32[*])) {\n"
                               "      %s = SequenceAt(%b, %i)\n"
                               "      %t = SequenceAt(%a, %i)\n"
                               "      %v = Add(%s, %t)\n"
                               "      %p1 = SequenceInsert(%p, %v)\n"
                               "      return(%c, %p1)\n"
                               "    }\n"
                               "  }\n"
                               "  return(%y)\n"
                               "}\n";
    (void)state;
    assert_int_equal(rewrite_count(text, "sequence_maps", "Loop@"), 0);
    for (int64_t n = 0; n <= 5; n++) {
        const struct rewrite_check run = {
            .text = text, .passes = "sequence_maps dead_code", .size = n, .seed = 3};
        assert_int_equal(rewrite_check(&run), n <= 4);
    }
}

/* ---- Random bodies --------------------------------------------------------------------------- */

struct program {
    struct text text;
    uint64_t random;
    int n_values;
    int ranks[256]; /* of %v0, %v1, ...: dims are (2), (3, 2) or none; HIDDEN: out of scope */
    bool control;   /* Ifs and Loops in the body */
    int n_ifs, n_loops;
    bool in_blocks;
};

#define HIDDEN (-2)

static uint32_t next(struct program *p, uint32_t limit)
{
    p->random = p->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(p->random >> 33) % limit;
}

/* A value of this rank, made when there is none. */
static int pick(struct program *p, int rank)
{
    for (int tries = 0; tries < 8; tries++) {
        int i = (int)next(p, (uint32_t)p->n_values);
        if (p->ranks[i] == rank)
            return i;
    }
    for (int i = 0; i < p->n_values; i++)
        if (p->ranks[i] == rank)
            return i;
    return 0;
}

static void define(struct program *p, int rank)
{
    p->ranks[p->n_values++] = rank;
}

static void add_op(struct program *p)
{
    static const char *const binary[] = {"Add", "Sub", "Mul", "Max", "Min"};
    static const char *const unary[] = {"Neg", "Abs", "Relu", "Floor"};
    int k = p->n_values, rank = (int)next(p, 3), other = (int)next(p, 3);
    struct text *t = &p->text;
    switch (next(p, 14)) {
    case 0:
        text_printf(t, "      %%v%d = %s(%%v%d)\n", k, unary[next(p, 4)], pick(p, rank));
        define(p, rank);
        break;
    case 1:
        text_printf(t, "      %%v%d = ReduceSum(%%v%d, %%first) {keepdims = 0}\n", k, pick(p, 2));
        define(p, 1);
        break;
    case 2:
        text_printf(t, "      %%v%d = ReduceMax(%%v%d) {keepdims = 0}\n", k,
                    pick(p, 1 + (int)next(p, 2)));
        define(p, 0);
        break;
    case 3:
        text_printf(t, "      %%t%d = Transpose(%%v%d)\n", k, pick(p, 2));
        text_printf(t, "      %%v%d = Reshape(%%t%d, %%shape)\n", k, k);
        define(p, 2);
        break;
    case 4:
        text_printf(t, "      %%t%d = Concat(%%v%d, %%v%d) {axis = %d}\n", k, pick(p, 2),
                    pick(p, 2), (int)next(p, 2) * -2);
        text_printf(t, "      %%v%d = Slice(%%t%d, %%three, %%six, %%first)\n", k, k);
        define(p, 2);
        break;
    case 5:
        text_printf(t, "      %%v%d = Gather(%%v%d, %%i1) {axis = %d}\n", k, pick(p, 2), 0);
        define(p, 1);
        break;
    case 6:
        text_printf(t, "      %%q%d = Greater(%%v%d, %%v%d)\n", k, pick(p, rank), pick(p, other));
        text_printf(t, "      %%v%d = Where(%%q%d, %%v%d, %%v%d)\n", k, k, pick(p, rank),
                    pick(p, other));
        define(p, rank > other ? rank : other);
        break;
    case 7:
        text_printf(t, "      %%v%d = MatMul(%%v%d, %%square)\n", k, pick(p, 1 + (int)next(p, 2)));
        define(p, 0);
        p->ranks[k] = -1; /* either; set below */
        break;
    case 8:
        text_printf(t, "      %%v%d = assign(%%v%d, %%v%d) {rule = [select(0, %d)]}\n", k,
                    pick(p, 2), pick(p, (int)next(p, 2)), (int)next(p, 3));
        define(p, 2);
        break;
    case 9:
        text_printf(t, "      %%v%d = access(%%v%d) {rule = [slice(0, %d, 3, 1), select(0, -1)]}\n",
                    k, pick(p, 2), (int)next(p, 3));
        define(p, 1);
        break;
    case 10:
        text_printf(t, "      %%v%d = access(%%v%d) {rule = [expand(3, 2)]}\n", k,
                    pick(p, (int)next(p, 3)));
        define(p, 2);
        break;
    case 11:
        text_printf(t, "      %%v%d = CumSum(%%v%d, %%zero)\n", k, pick(p, 1 + (int)next(p, 2)));
        p->ranks[p->n_values++] = -1;
        break;
    default:
        text_printf(t, "      %%v%d = %s(%%v%d, %%v%d)\n", k, binary[next(p, 5)], pick(p, rank),
                    pick(p, other));
        define(p, rank > other ? rank : other);
        break;
    }
}

/* Rows, columns and elements of the inputs and of the carried tensor, at the counter. */
static void begin_body(struct program *p)
{
    struct text *t = &p->text;
    text_puts(t, "      %one = Constant() {value = i64[] 1}\n"
                 "      %j = Add(%i, %one)\n"
                 "      %i1 = Mod(%i, %one)\n"
                 "      %v0 = Cast(%i) {to = 1}\n"
                 "      %v1 = access(%x, %j) {rule = [select(0, $0), select(0, 1)]}\n"
                 "      %v2 = access(%x, %i) {rule = [select(0, $0)]}\n");
    p->ranks[0] = 0;
    p->ranks[1] = 1;
    p->ranks[2] = 2;
    p->ranks[3] = 2;
    p->ranks[4] = 2;
    p->n_values = 5;
    text_puts(t, "      %v3 = Gather(%x, %j)\n"
                 "      %v4 = access(%v, %i) {rule = [select(0, $0)]}\n");
}

static void add_plain(struct program *p)
{
    uint64_t random = p->random;
    size_t size = p->text.size;
    add_op(p);
    if (p->ranks[p->n_values - 1] >= 0)
        return;
    p->random = random; /* an op whose rank is its operand's: with rank 2 */
    p->text.size = size;
    p->n_values--;
    text_printf(&p->text, "      %%v%d = MatMul(%%v%d, %%square)\n", p->n_values, pick(p, 2));
    define(p, 2);
    next(p, 2);
}

static void add_ops(struct program *p, uint32_t count, int depth);

/* What was defined since cannot be used any more. */
static void hide(struct program *p, int first)
{
    for (int i = first; i < p->n_values; i++)
        p->ranks[i] = HIDDEN;
}

static void add_branch(struct program *p, const char *name, int rank, int depth)
{
    int first = p->n_values;
    text_printf(&p->text, "      %s() {\n", name);
    add_ops(p, next(p, 4), depth + 1);
    text_printf(&p->text, "      return(%%v%d)\n      }\n", pick(p, rank));
    hide(p, first);
}

/* Decided by the input, or by each iteration. */
static void add_if(struct program *p, int depth)
{
    struct text *t = &p->text;
    int k = p->n_values++, rank = (int)next(p, 3);
    p->ranks[k] = HIDDEN;
    p->n_ifs++;
    if (next(p, 2))
        text_printf(t, "      %%q%d = Greater(%%v%d, %%v%d)\n", k, pick(p, 0), pick(p, 0));
    else
        text_printf(t, "      %%q%d = Greater(%%n, %%zero)\n", k);
    text_printf(t, "      %%v%d = If(%%q%d) {\n", k, k);
    add_branch(p, "then_branch", rank, depth);
    add_branch(p, "else_branch", rank, depth);
    text_puts(t, "      }\n");
    p->ranks[k] = rank;
}

/* Carries a value and a counter, and stacks what is summed up behind it. */
static void add_loop(struct program *p, int depth)
{
    static const char *const types[] = {"f32[]", "f32[2]", "f32[3, 2]"}, *const trips[] = {
                                                                             "%two", "%zero", "%n"};
    struct text *t = &p->text;
    int k = p->n_values, rank = (int)next(p, 3), row = (int)next(p, 3), first = k + 2;
    p->n_values += 2;
    p->ranks[k] = p->ranks[k + 1] = HIDDEN;
    p->n_loops++;
    text_printf(t, "      %%v%d, %%k%d, %%s%d = Loop(%s, _, %%v%d, %%zero) {\n", k, k, k,
                trips[next(p, 3)], pick(p, rank));
    text_printf(t, "      body(%%i%d: i64[], %%c%d: bool[], %%v%d: %s, %%l%d: i64[]) {\n", k, k,
                first, types[rank], k);
    define(p, rank);
    text_printf(t, "      %%v%d = Gather(%%x, %%%s%d)\n", p->n_values, next(p, 2) ? "i" : "l", k);
    define(p, 2);
    add_ops(p, 1 + next(p, 4), depth + 1);
    text_printf(t, "      %%n%d = Add(%%l%d, %s)\n", k, k, next(p, 2) ? "%one" : "%i1");
    text_printf(t, "      return(%%c%d, %%v%d, %%n%d, %%v%d)\n      }\n      }\n", k, pick(p, rank),
                k, pick(p, row));
    hide(p, first);
    text_printf(t, "      %%v%d = ReduceSum(%%s%d, %%first) {keepdims = 0}\n", k + 1, k);
    p->ranks[k] = rank;
    p->ranks[k + 1] = row;
}

static void add_ops(struct program *p, uint32_t count, int depth)
{
    for (; count > 0; count--)
        if (p->control && depth < 2 && p->n_values < 160 && next(p, 4) == 0)
            (next(p, 3) ? add_if : add_loop)(p, depth);
        else
            add_plain(p);
}

static void make_program(struct program *p, int trips, bool dynamic)
{
    struct text *t = &p->text;
    text_puts(t, "graph (%x: f32[6, 3, 2], %b: f32[N, 3, 2], %n: i64[]) -> "
                 "(%y as \"y\", %s as \"s\", %m as \"m\") {\n"
                 "  %square = Constant() {value = f32[2, 2] [1, -2, 0.5, 1]}\n"

                 "  %first = Constant() {value = i64[1] [0]}\n"
                 "  %zero = Constant() {value = i64[] 0}\n"
                 "  %two = Constant() {value = i64[] 2}\n"
                 "  %three = Constant() {value = i64[1] [1]}\n"
                 "  %six = Constant() {value = i64[1] [4]}\n"
                 "  %shape = Constant() {value = i64[2] [3, 2]}\n");
    text_printf(t, "  %%fixed = Constant() {value = i64[] %d}\n", trips);
    text_printf(t, "  %%y, %%m, %%s = Loop(%s, _, %%b, %%zero) {\n", dynamic ? "%n" : "%fixed");
    text_puts(t, "    body(%i: i64[], %c: bool[], %v: f32[N, 3, 2], %sum: i64[]) {\n");
    begin_body(p);
    add_ops(p, 3 + next(p, 12), 0);
    text_printf(t, "      %%w = assign(%%v, %%v%d, %%i) {rule = [select(0, $0)]}\n",
                pick(p, (int)next(p, 3)));
    text_puts(t, "      %sum1 = Add(%sum, %j)\n");
    int last = p->n_values - 1;
    while (p->ranks[last] == HIDDEN)
        last--;
    text_printf(
        t, "      return(%%c, %%w, %%sum1, %%v%d)\n    }\n  }\n  return(%%y, %%s, %%m)\n}\n", last);
}

/* Returns whether the loop went. */
static bool run_seed(uint64_t seed, bool control, bool print, struct program *made)
{
    struct program p = {.random = seed * 977 + 13, .control = control};
    text_init(&p.text, &allocator_default);
    int trips = (int)next(&p, 6);
    bool dynamic = next(&p, 3) == 0;
    make_program(&p, trips, dynamic);
    const char *text = text_string(&p.text);
    assert_non_null(text);
    if (print)
        fputs(text, stderr);
    for (int64_t n = 0; n < 6; n += dynamic ? 1 : 6) {
        const struct rewrite_check run = {.text = text,
                                          .passes = PASSES,
                                          .size = 5 + (int64_t)next(&p, 2),
                                          .scalar = n - (n == 3 ? 5 : 0),
                                          .tolerance = 1e-5,
                                          .seed = seed};
        rewrite_check(&run);
        struct rewrite_check all = run;
        all.batching = ways[1 + seed % (N_WAYS - 1)];
        rewrite_check(&all);
        all.passes = NULL;
        all.lenient = true;
        if (control)
            rewrite_check(&all);
    }
    bool gone = rewrite_count(text, PASSES, "body(%i:") == 0;
    p.in_blocks =
        rewrite_count_batched(text, PASSES, ways[1 + seed % (N_BLOCKS - 1)], "body(%i:") == 0;
    text_free(&p.text);
    *made = p;
    return gone;
}

/* Of how many programs did the loop go, and of those with Ifs, and with Loops, in the body? */
struct gone {
    unsigned long all, ifs, loops, in_blocks;
};

static struct gone run_programs(bool control, unsigned long *count)
{
    uint64_t seed;
    struct gone gone = {0};
    bool only = programs_seed(&seed);
    unsigned long first = only ? seed : 1;
    *count = only ? 1 : programs_count(400);
    for (unsigned long i = first; i < first + *count; i++) {
        struct program made;
        bool went = run_seed(i, control, only, &made);
        gone.all += went;
        gone.in_blocks += made.in_blocks;
        gone.ifs += went && made.n_ifs;
        gone.loops += went && made.n_loops;
    }
    print_message(
        "%lu of %lu loops went, %lu with an If and %lu with a Loop in them; %lu in blocks\n",
        gone.all, *count, gone.ifs, gone.loops, gone.in_blocks);
    return gone;
}

static void test_random_bodies(void **state)
{
    (void)state;
    unsigned long count;
    struct gone gone = run_programs(false, &count);
    assert_true(count == 1 || (gone.all > count / 2 && gone.in_blocks > count / 2));
}

static void test_random_control(void **state)
{
    (void)state;
    unsigned long count;
    struct gone gone = run_programs(true, &count);
    assert_true(count == 1 ||
                (gone.ifs > count / 10 && gone.loops > count / 10 && gone.in_blocks > count / 4));
}

/* ---- Memory ---------------------------------------------------------------------------------- */

/* A body of every kind, rewritten on an allocator that fails. */
static tssa_status *rewrite_program(const tssa_allocator *allocator, struct program *p,
                                    struct pass_batching batching)
{
    const struct pipeline pipeline = {.batching = batching};
    static const char *const names[] = {"forward_assigns", "merge_updates", "scalar_replacement",
                                        "parallelize", "sequence_maps"};
    text_init(&p->text, &allocator_default);
    make_program(p, 3, true);
    tssa_status *status = rewrite_text(allocator, text_string(&p->text), names,
                                       sizeof names / sizeof *names, &pipeline);
    text_free(&p->text);
    return status;
}

static tssa_status *rewrite_on(const tssa_allocator *allocator)
{
    tssa_status *status = NULL;
    for (size_t i = 0; i < N_WAYS && !status; i += 2) {
        struct program plain = {.random = 5}, control = {.random = 5, .control = true};
        status = rewrite_program(allocator, &plain, ways[i]);
        if (!status)
            status = rewrite_program(allocator, &control, ways[i]);
    }
    return status;
}

static void test_memory(void **state)
{
    (void)state;
    assert_true(test_alloc_sweep(rewrite_on) > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),           cmocka_unit_test(test_broadcast),
        cmocka_unit_test(test_regions),        cmocka_unit_test(test_near_misses),
        cmocka_unit_test(test_running_sums),   cmocka_unit_test(test_sequences),
        cmocka_unit_test(test_updates),        cmocka_unit_test(test_random_bodies),
        cmocka_unit_test(test_random_control), cmocka_unit_test(test_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
