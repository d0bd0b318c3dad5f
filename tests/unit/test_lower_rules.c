/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Accesses and assigns give the same bits after they were lowered to ONNX's operators: random rules
 * of every kind on small shapes, which are numbers or known to the run alone; params are constants,
 * inputs of several shapes and types, index tensors and masks.
 *
 * TSSA_SEED=N runs one of them and prints it (common/random_programs.h).
 */
/* ctest-labels: random */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/random_programs.h"
#include "common/random_rule.h"
#include "common/rewrite_check.h"
#include "common/same_value.h"
#include "common/test_device.h"
#include "ir/infer.h"
#include "ir/parser.h"
#include "ir/printer.h"
#include "passes/pipeline.h"
#include "runtime/evaluate.h"
#include "runtime/executor.h"

#define SCALARS 8
#define MAX_BASE 4
#define MAX_ELEMENTS 1024

struct test_case {
    uint64_t seed;
    struct random random;
    struct pool pool;
    bool symbolic; /* dims are symbols */
    tssa_dtype dtype;
    int rank, s_rank;
    int64_t dims[MAX_BASE], s_dims[TSSA_MAX_RANK];
    int64_t scalars[SCALARS];
    struct random_rule rule;
    struct text program;
    struct value inputs[2 + RANDOM_RULE_OPERANDS];
    const struct value *pointers[2 + RANDOM_RULE_OPERANDS];
    int64_t numbers[RANDOM_RULE_OPERANDS]; /* what scalar inputs hold */
    char x[8 * MAX_ELEMENTS], s[8 * MAX_ELEMENTS];
    size_t n_inputs;
};

static void ok(struct test_case *t, tssa_status *status, const char *what)
{
    if (!status)
        return;
    print_message("TSSA_SEED=%llu: %s: %s\n%s", (unsigned long long)t->seed, what,
                  tssa_status_message(status), text_string(&t->program));
    fail();
}

/* ---- Programs -------------------------------------------------------------------------------- */

static void put_type(struct test_case *t, tssa_dtype dtype, int rank, const int64_t *dims,
                     bool symbolic, const char *prefix)
{
    text_printf(&t->program, ": %s[", dtype_info(dtype)->ir_name);
    for (int i = 0; i < rank; i++)
        if (symbolic)
            text_printf(&t->program, "%s%s%d", i ? ", " : "", prefix, i);
        else
            text_printf(&t->program, "%s%d", i ? ", " : "", (int)dims[i]);
    text_putc(&t->program, ']');
}

static void add_input(struct test_case *t, tssa_dtype dtype, int rank, const int64_t *dims,
                      void *data)
{
    struct value *value = &t->inputs[t->n_inputs];
    *value = (struct value){.kind = TSSA_KIND_TENSOR,
                            .tensor = {.dtype = dtype, .rank = rank, .data = data}};
    if (rank)
        memcpy(value->tensor.dims, dims, (size_t)rank * sizeof *dims);
    t->pointers[t->n_inputs++] = value;
}

/* The source: the region's shape, or one that broadcasts to it. */
static void make_source_shape(struct test_case *t)
{
    int drop = random_int(&t->random, 0, 2) ? 0 : (int)random_int(&t->random, 0, t->rule.rank);
    t->s_rank = t->rule.rank - drop;
    for (int i = 0; i < t->s_rank; i++)
        t->s_dims[i] = random_int(&t->random, 0, 5) ? t->rule.dims[drop + i] : 1;
}

static void put_operand_input(struct test_case *t, uint32_t i)
{
    static const int64_t ones[2] = {1, 1};
    struct random_operand *operand = &t->rule.operands[i];
    text_printf(&t->program, ", %%p%d", (int)i);
    if (operand->scalar < 0) {
        char prefix[16];
        snprintf(prefix, sizeof prefix, "P%d_", (int)i);
        put_type(t, operand->tensor.dtype, operand->tensor.rank, operand->tensor.dims,
                 random_int(&t->random, 0, 2) == 0, prefix);
        add_input(t, operand->tensor.dtype, operand->tensor.rank, operand->tensor.dims,
                  operand->data);
        return;
    }
    int64_t number = t->scalars[operand->scalar];
    bool narrow = random_int(&t->random, 0, 3) == 0 && number > INT32_MIN && number < INT32_MAX;
    tssa_dtype dtype = narrow ? TSSA_INT32 : TSSA_INT64;
    int rank = (int)random_int(&t->random, 0, 2);
    dtype_store_int64(dtype, &t->numbers[i], number);
    put_type(t, dtype, rank, ones, false, "");
    add_input(t, dtype, rank, ones, &t->numbers[i]);
}

static void put_ops(struct test_case *t)
{
    const char *const ops[] = {"a = access(%x", "y = assign(%x, %s"};
    for (int k = 0; k < 2; k++) {
        text_printf(&t->program, "  %%%s", ops[k]);
        for (uint32_t i = 0; i < t->rule.n_operands; i++)
            text_printf(&t->program, ", %%p%d", (int)i);
        text_puts(&t->program, ") {rule = ");
        rule_print(&t->rule.rule, &t->program);
        text_puts(&t->program, "}\n");
    }
}

static void make_program(struct test_case *t)
{
    text_puts(&t->program, "graph (%x");
    put_type(t, t->dtype, t->rank, t->dims, t->symbolic, "D");
    add_input(t, t->dtype, t->rank, t->dims, t->x);
    text_puts(&t->program, ", %s");
    put_type(t, t->dtype, t->s_rank, t->s_dims, t->symbolic && random_int(&t->random, 0, 1), "S");
    add_input(t, t->dtype, t->s_rank, t->s_dims, t->s);
    for (uint32_t i = 0; i < t->rule.n_operands; i++)
        put_operand_input(t, i);
    text_puts(&t->program, ") -> (%a as \"a\", %y as \"y\") {\n");
    put_ops(t);
    text_puts(&t->program, "  return(%a, %y)\n}\n");
}

/* ---- Running --------------------------------------------------------------------------------- */

static struct ir_graph *parse(struct test_case *t)
{
    struct ir_graph *graph;
    const char *text = text_string(&t->program);
    ok(t, ir_parse(&allocator_default, text, strlen(text), &graph), "parse");
    ok(t, ir_infer_graph(graph), "infer");
    return graph;
}

static tssa_status *is_onnx(void *context, struct ir_op *op)
{
    (void)context;
    return ir_op_is(op, IR_OP_access) || ir_op_is(op, IR_OP_assign)
               ? ERROR(TSSA_INTERNAL, "an op of tssa's own is left")
               : NULL;
}

enum mode { ALONE, WITH_CLEANUP, FOR_SESSIONS, N_MODES };

static void lower(struct test_case *t, struct ir_graph *graph, enum mode mode)
{
    static const char *const passes[] = {"lower_rules",           "infer",
                                         "fold_shapes",           "fold_constants",
                                         "common_subexpressions", "dead_code"};
    const tssa_optimize_options checked = {.verify_after_passes = 1,
                                           .target = mode == FOR_SESSIONS ? TSSA_TARGET_SESSION
                                                                          : TSSA_TARGET_ONNX};
    struct evaluator evaluator;
    evaluator_init(&evaluator, &allocator_default);
    const struct pipeline pipeline = {
        .options = &checked, .evaluate = evaluator_run, .evaluate_user = &evaluator};
    ok(t, pipeline_run_passes(graph, passes, mode == WITH_CLEANUP ? 6 : 1, &pipeline), "lower");
    if (mode != FOR_SESSIONS)
        ok(t, ir_block_walk(graph->body, is_onnx, NULL), "lower");
    evaluator_free(&evaluator);
}

static void execute(struct test_case *t, const struct ir_graph *graph, struct value *outputs)
{
    struct plan *plan;
    struct run *run;
    ok(t, plan_create(graph, test_device(), &plan), "plan");
    ok(t, run_create(plan, &allocator_default, NULL, false, &run), "run");
    ok(t, run_execute(run, t->pointers, outputs), "run");
    run_free(run);
    plan_free(plan);
}

static void run_program(struct test_case *t, bool print)
{
    struct value expected[2] = {0}, actual[2] = {0};
    struct ir_graph *graph = parse(t);
    execute(t, graph, expected);
    ir_graph_free(graph);
    for (enum mode mode = 0; mode < N_MODES; mode++) {
        graph = parse(t);
        lower(t, graph, mode);
        struct text text;
        text_init(&text, &allocator_default);
        ir_print_graph(graph, false, &text);
        if (print)
            print_message("%s%s", text_string(&t->program), text_string(&text));
        execute(t, graph, actual);
        for (int i = 0; i < 2; i++) {
            if (!same_value(&actual[i], &expected[i])) {
                print_message("TSSA_SEED=%llu: output %d differs\n%s%s",
                              (unsigned long long)t->seed, i, text_string(&t->program),
                              text_string(&text));
                fail();
            }
            value_release(&actual[i]);
        }
        text_free(&text);
        ir_graph_free(graph);
    }
    value_release(&expected[0]);
    value_release(&expected[1]);
}

static void make_case(struct test_case *t)
{
    static const tssa_dtype dtypes[] = {TSSA_FLOAT, TSSA_FLOAT, TSSA_INT64,
                                        TSSA_UINT8, TSSA_BOOL,  TSSA_FLOAT16};
    static const uint32_t kinds[] = {UINT32_MAX, UINT32_MAX, 1u << RULE_SELECT | 1u << RULE_SLICE,
                                     1u << RULE_SELECT | 1u << RULE_SLICE | 1u << RULE_PERMUTE |
                                         1u << RULE_SQUEEZE | 1u << RULE_UNSQUEEZE,
                                     1u << RULE_GATHER | 1u << RULE_MASK | 1u << RULE_SELECT};
    t->symbolic = random_int(&t->random, 0, 2) == 0;
    t->dtype = dtypes[random_int(&t->random, 0, 5)];
    t->rank = (int)random_int(&t->random, 0, MAX_BASE - 1);
    for (int i = 0; i < t->rank; i++)
        t->dims[i] = random_int(&t->random, 0, 12) ? random_int(&t->random, 1, 4) : 0;
    for (int i = 0; i < SCALARS; i++)
        t->scalars[i] = random_int(&t->random, -2, 4);
    t->scalars[0] = INT64_MAX;
    t->scalars[1] = INT64_MIN;
    const struct random_scalars scalars = {SCALARS, t->scalars};
    random_rule(&t->random, &t->pool, kinds[random_int(&t->random, 0, 4)], t->rank, t->dims,
                &scalars, &t->rule);
    make_source_shape(t);
    for (size_t i = 0; i < sizeof t->x; i++) {
        t->x[i] = (char)(t->dtype == TSSA_BOOL ? random_int(&t->random, 0, 1)
                                               : random_int(&t->random, 0, 63));
        t->s[i] = (char)(t->dtype == TSSA_BOOL ? random_int(&t->random, 0, 1)
                                               : random_int(&t->random, 64, 126));
    }
    make_program(t);
}

static void run_seed(uint64_t seed, bool print)
{
    struct test_case *t = calloc(1, sizeof *t);
    assert_non_null(t);
    t->seed = seed;
    t->random.state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    pool_init(&t->pool, &allocator_default);
    text_init(&t->program, &allocator_default);
    make_case(t);
    run_program(t, print);
    text_free(&t->program);
    pool_clear(&t->pool);
    free(t);
}

static void test_same_bits(void **state)
{
    (void)state;
    uint64_t seed;
    if (programs_seed(&seed)) {
        run_seed(seed, true);
        return;
    }
    unsigned long count = programs_count(2000);
    for (unsigned long i = 1; i <= count; i++)
        run_seed(i, false);
}

/* ---- Spans ----------------------------------------------------------------------------------- */

/* A span that is not all there fails as an access and as an assign, whatever these become; bits are
 * the same where it is there. Along each axis, from its start and from behind it, and in a rule of
 * several steps. Of no elements ONNX has no operator that could tell. */
static void test_spans_fail(void **state)
{
    static const char *const rules[] = {"span(0, 0, $0)",
                                        "span(1, 0, $0)",
                                        "span(0, 2, $0)",
                                        "span(1, 1, $0)",
                                        "span(0, $0, 2)",
                                        "span(1, $0, 1)",
                                        "span(0, 1, $0), slice(1, 1, 3, 1)",
                                        "permute(1, 0), span(0, 1, $0), span(1, $0, 1)",
                                        "slice(0, 1, 9, 1), span(0, 1, $0)"};
    static const char *const ops[] = {"%y = access(%x, %n)", "%y = assign(%x, %s, %n)"};
    static const char *const types[] = {"f32[N, N]", "f32[3, 3]"};
    (void)state;
    for (size_t i = 0; i < 4 * sizeof rules / sizeof *rules; i++)
        for (int64_t size = 1; size < 5; size++)
            for (int64_t n = 0; n < 6; n++) {
                char text[300];
                bool ran[3];
                snprintf(text, sizeof text,
                         "graph (%%x: %s, %%s: f32[], %%n: i64[]) -> (%%y) {\n"
                         "  %s {rule = [%s]}\n  return(%%y)\n}\n",
                         types[i / 2 % 2], ops[i % 2], rules[i / 4]);
                for (int target = 0; target < 3; target++)
                    ran[target] = rewrite_check(&(const struct rewrite_check){
                        .text = text,
                        .passes = target == 2 ? "" : "lower_rules infer fold_shapes fold_constants",
                        .target = target ? TSSA_TARGET_SESSION : TSSA_TARGET_ONNX,
                        .size = size,
                        .scalar = n,
                        .seed = i});
                if (strcmp(rules[i / 4], "span(0, 2, $0)") == 0)
                    assert_int_equal(ran[0], n == 0 || n + 2 <= (i / 2 % 2 ? 3 : size));
                assert_true(ran[0] == ran[1] && ran[1] == ran[2]);
            }
}

/* ---- For sessions ---------------------------------------------------------------------------- */

static size_t assigns_left(const char *rule, const char *type)
{
    static const char *const pass[] = {"lower_rules"};
    const tssa_optimize_options options = {.target = TSSA_TARGET_SESSION};
    const struct pipeline pipeline = {.options = &options};
    struct ir_graph *graph;
    char text[500];
    snprintf(text, sizeof text,
             "graph (%%x: f32[4, 6], %%s: %s, %%i: i64[], %%m: bool[4]) -> (%%y) {\n"
             "  %%y = assign(%%x, %%s%s\n"
             "  return(%%y)\n}\n",
             type, rule);
    assert_null(ir_parse(&allocator_default, text, strlen(text), &graph));
    assert_null(ir_infer_graph(graph));
    assert_null(pipeline_run_passes(graph, pass, 1, &pipeline));
    size_t n = 0;
    for (const struct ir_op *op = graph->body->first; op; op = op->next)
        n += ir_op_is(op, IR_OP_assign);
    ir_graph_free(graph);
    return n;
}

/* Sessions write boxes in place; what else there is has an operator of ONNX that is as good. */
static void test_what_sessions_keep(void **state)
{
    (void)state;
    assert_int_equal(assigns_left(", %i) {rule = [select(0, $0)]}", "f32[6]"), 1);
    assert_int_equal(assigns_left(") {rule = [slice(1, 1, 6, 2)]}", "f32[4, 3]"), 1);
    assert_int_equal(assigns_left(") {rule = [slice(0, -1, -5, -1), select(1, 2)]}", "f32[]"), 1);
    assert_int_equal(assigns_left(", %i) {rule = [span(0, 0, $0)]}", "f32[]"), 1);
    assert_int_equal(assigns_left(") {rule = [slice(0, 0, 4, 1)]}", "f32[4, 6]"), 0);
    assert_int_equal(assigns_left(") {rule = [slice(0, 4, 4, 1)]}", "f32[0, 6]"), 0);
    assert_int_equal(assigns_left(", %m) {rule = [mask(0, $0)]}", "f32[]"), 0);
    assert_int_equal(assigns_left(") {rule = [diagonal(0, 1, 0)]}", "f32[4]"), 0);
}

/* ---- Chains ---------------------------------------------------------------------------------- */

/* One of up to three tensors is written to: `x`, or what an assign before made of it. */
static void put_write(struct random *random, struct text *text, int at, int64_t dim)
{
    int64_t start = random_int(random, 0, dim - 1), end = random_int(random, start, dim),
            by = random_int(random, 1, 3);
    int base = (int)random_int(random, at > 2 ? at - 2 : 0, at),
        row = (int)random_int(random, 0, 9);
    if (base == 0)
        text_printf(text, "  %%y%d = assign(%%x, ", at + 1);
    else
        text_printf(text, "  %%y%d = assign(%%y%d, ", at + 1, base);
    if (row == 0)
        text_puts(text, "%x2) {rule = steps[]}\n");
    else if (row == 1)
        text_printf(text, "%%s) {rule = [select(0, %d)]}\n", (int)random_int(random, 0, 2));
    else if (row < 4)
        text_printf(text, "%%v) {rule = [select(1, %d)]}\n", (int)start);
    else if (row < 7)
        text_printf(text, "%%s) {rule = [slice(1, %d, %d, %d)]}\n", (int)start, (int)end, (int)by);
    else
        text_printf(text, "%%w) {rule = [slice(1, %d, -1000, -%d)]}\n", (int)start, (int)by);
}

static char *make_chain(uint64_t seed)
{
    struct random random = {seed * UINT64_C(0x9e3779b97f4a7c15) + 1};
    struct text text;
    int64_t dim =
        random_int(&random, 0, 3) ? random_int(&random, 1, 6) : random_int(&random, 30, 90);
    int n = (int)random_int(&random, 1, 6);
    text_init(&text, &allocator_default);
    text_printf(
        &text,
        "graph (%%x: f32[3, %d], %%x2: f32[3, %d], %%s: f32[], %%v: f32[3], %%w: f32[3, 1]) -> "
        "(%%y%d as \"y\", %%y1 as \"z\") {\n",
        (int)dim, (int)dim, n);
    for (int i = 0; i < n; i++)
        put_write(&random, &text, i, dim);
    text_printf(&text, "  return(%%y%d, %%y1)\n}\n", n);
    char *copy = strdup(text_string(&text));
    text_free(&text);
    return copy;
}

static void test_chains(void **state)
{
    (void)state;
    unsigned long count = programs_count(500);
    for (unsigned long i = 1; i <= count; i++) {
        char *text = make_chain(i);
        assert_true(rewrite_check(&(const struct rewrite_check){
            .text = text, .passes = "lower_rules dead_code", .size = 3, .seed = i}));
        assert_int_equal(rewrite_count(text, "lower_rules dead_code", "assign("), 0);
        free(text);
    }
}

/* ---- One element of a list ------------------------------------------------------------------- */

/* In the operators that the model had, whether the number is a list there already or not. */
static void test_element_of_a_list(void **state)
{
    (void)state;
    static const char before[] =
        "graph (%x: f32[N], %n: i64[], %s: f32[1]) -> (%sum as \"sum\", %y as \"y\") {\n"
        "  %one = Constant() {value = i64[1] [1]}\n"
        "  %c = Constant() {value = bool[] true}\n"
        "  %sum, %y = Loop(%n, %c, %s, %x) {\n"
        "    body(%i: i64[], %go: bool[], %a: f32[1], %out: f32[N]) {\n"
        "      %at = Reshape(%i, %one)\n"
        "      %element = Gather(%x, %at)\n"
        "      %next = Add(%a, %element)\n";
    static const char *const writes[] = {
        "      %written = ScatterElements(%out, %at, %next)\n",
        "      %zero = Constant() {value = i64[1] [0]}\n"
        "      %number = Squeeze(%next, %zero)\n"
        "      %twice = Add(%at, %one)\n"
        "      %written = ScatterND(%out, %at, %number)\n",
    };
    for (size_t i = 0; i < sizeof writes / sizeof *writes; i++) {
        char text[1024];
        snprintf(text, sizeof text,
                 "%s%s      return(%%go, %%next, %%written)\n    }\n  }\n"
                 "  return(%%sum, %%y)\n}\n",
                 before, writes[i]);
        static const char passes[] = "recover lower_rules fold_shapes dead_code";
        assert_true(rewrite_check(&(const struct rewrite_check){
            .text = text, .passes = passes, .size = 5, .scalar = 5, .seed = i}));
        assert_int_equal(rewrite_count(text, passes, "ScatterElements"), 1);
        assert_int_equal(rewrite_count(text, passes, "queeze"), 0);
    }
}

/* ---- Slices in a row ------------------------------------------------------------------------- */

static char *make_slices(uint64_t seed)
{
    struct random random = {seed};
    struct text text;
    int n = (int)random_int(&random, 2, 6);
    text_init(&text, &allocator_default);
    text_puts(&text, "graph (%v0: f32[N, 5, 4]) -> (%y as \"y\") {\n");
    for (int i = 1; i <= n; i++) {
        static const int64_t ends[] = {1, 2, 4, -1, INT64_MAX};
        int64_t axis = random_int(&random, 0, 2), step = random_int(&random, 1, 2);
        text_printf(&text, "  %%v%d = access(%%v%d) {rule = [slice(%lld, %lld, %lld, %lld)]}\n", i,
                    (int)random_int(&random, i > 2 ? i - 2 : 0, i - 1), (long long)axis,
                    (long long)random_int(&random, -2, 1),
                    (long long)ends[random_int(&random, 0, 4)], (long long)step);
    }
    text_puts(&text, "  %y = SequenceConstruct(");
    for (int i = n; i > n - 2; i--)
        text_printf(&text, i == n ? "%%v%d" : ", %%v%d", i);
    text_puts(&text, ")\n  return(%y)\n}\n");
    char *copy = strdup(text_string(&text));
    text_free(&text);
    return copy;
}

static void test_slices(void **state)
{
    (void)state;
    for (uint64_t i = 1; i <= 300; i++) {
        char *text = make_slices(i);
        for (int64_t size = 0; size < 5; size += 2)
            assert_true(rewrite_check(&(const struct rewrite_check){
                .text = text, .passes = "lower_rules dead_code", .size = size, .seed = i}));
        free(text);
    }
    const char *label = "graph (%x: f32[N, M]) -> (%y as \"y\") {\n"
                        "  %a = access(%x) {rule = [slice(0, 1, -1, 1)]}\n"
                        "  %b = access(%a) {rule = [slice(1, 2, 4, 1)]}\n"
                        "  %c = access(%a) {rule = [slice(1, 0, 2, 1)]}\n"
                        "  %y = Add(%b, %c)\n"
                        "  return(%y)\n"
                        "}\n";
    assert_int_equal(rewrite_count(label, "lower_rules dead_code", "Slice@"), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits),          cmocka_unit_test(test_spans_fail),
        cmocka_unit_test(test_element_of_a_list),  cmocka_unit_test(test_slices),
        cmocka_unit_test(test_what_sessions_keep), cmocka_unit_test(test_chains)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
