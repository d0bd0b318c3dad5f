/* SPDX-License-Identifier: Apache-2.0 */
/* tssa-opt --check on pairs of models that are, or are not, the same. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "common/onnx_model.h"
#include "tools/common/check.h"

struct pair {
    tssa_context *context;
    struct onnx_model sources[2];
    const void *bytes[2];
    size_t sizes[2];
    tssa_model *models[2];
};

static void pair_open(struct pair *pair)
{
    memset(pair, 0, sizeof *pair);
    assert_null(tssa_context_create(
        &(tssa_context_options){.struct_size = sizeof(tssa_context_options), .threads = 1},
        &pair->context));
    for (int i = 0; i < 2; i++)
        model_init(&pair->sources[i], 8, 18);
}

static void pair_load(struct pair *pair)
{
    for (int i = 0; i < 2; i++) {
        pair->bytes[i] = model_pack(&pair->sources[i], &pair->sizes[i]);
        assert_null(tssa_model_load_memory(pair->context, pair->bytes[i], pair->sizes[i], NULL,
                                           &pair->models[i]));
    }
}

static void pair_close(struct pair *pair)
{
    for (int i = 0; i < 2; i++) {
        tssa_model_free(pair->models[i]);
        model_free(&pair->sources[i]);
    }
    tssa_context_free(pair->context);
}

static enum check_verdict verdict_of(struct pair *pair, int64_t sets, double seconds,
                                     struct check_result *result)
{
    const struct input_source source = {.seed = 1};
    const struct check_options options = {.path = "-",
                                          .sets = sets,
                                          .source = &source,
                                          .rule = {1e-3, 1e-5, true, true},
                                          .seconds = seconds,
                                          .out = stdout};
    struct session_engine engine;
    assert_null(session_engine_init(&engine, pair->context, pair->models[0], pair->models[1]));
    assert_null(check_models(pair->context, pair->models[0], &engine.engine, &options, result));
    return result->verdict;
}

static bool is_same(struct pair *pair, int64_t sets)
{
    struct check_result result;
    enum check_verdict verdict = verdict_of(pair, sets, 20, &result);
    assert_int_not_equal(verdict, CHECK_NOTHING);
    return verdict == CHECK_SAME;
}

/* out = op(x, y) in both, with other operators. */
static bool compare_ops(const char *first, const char *second, int dtype)
{
    struct pair pair;
    const char *const ops[] = {first, second};
    pair_open(&pair);
    for (int i = 0; i < 2; i++) {
        struct onnx_model *model = &pair.sources[i];
        model_input(model, model->graph, "x", dtype, "N,M");
        model_input(model, model->graph, "y", dtype, "N,M");
        model_node(model, model->graph, ops[i], "x,y", "out");
        model_output(model, model->graph, "out", dtype, "N,M");
    }
    pair_load(&pair);
    assert_null(check_signatures(pair.models[0], pair.models[1]));
    bool same = is_same(&pair, 3);
    pair_close(&pair);
    return same;
}

static void equal_models_are_the_same(void **state)
{
    (void)state;
    assert_true(compare_ops("Add", "Add", TSSA_FLOAT));
    assert_true(compare_ops("Mul", "Mul", TSSA_INT64));
    /* Division by zero gives NaN and infinities in both. */
    assert_true(compare_ops("Div", "Div", TSSA_FLOAT));
}

static void other_values_differ(void **state)
{
    (void)state;
    assert_false(compare_ops("Add", "Sub", TSSA_FLOAT));
    assert_false(compare_ops("Add", "Sub", TSSA_INT64));
    assert_false(compare_ops("Max", "Min", TSSA_DOUBLE));
}

/* The original runs where the other fails: an index that is out of range in one only. */
static void a_new_failure_differs(void **state)
{
    (void)state;
    struct pair pair;
    const int64_t indices[] = {0, 100};
    pair_open(&pair);
    for (int i = 0; i < 2; i++) {
        struct onnx_model *model = &pair.sources[i];
        model_input(model, model->graph, "x", TSSA_FLOAT, "N");
        model_initializer(model, model->graph,
                          model_tensor(model, "k", TSSA_INT64, "1", &indices[i], sizeof *indices));
        model_node(model, model->graph, "Gather", "x,k", "out");
        model_output(model, model->graph, "out", TSSA_FLOAT, "1");
    }
    pair_load(&pair);
    assert_false(is_same(&pair, 1));
    pair_close(&pair);
}

/* Inputs that the original refuses prove nothing; tamer ones are found. */
static void inputs_are_made_to_suit(void **state)
{
    (void)state;
    struct pair pair;
    pair_open(&pair);
    for (int i = 0; i < 2; i++) {
        struct onnx_model *model = &pair.sources[i];
        model_input(model, model->graph, "x", TSSA_FLOAT, "2,3");
        model_input(model, model->graph, "k", TSSA_INT64, "4");
        model_node(model, model->graph, "Gather", "x,k", "rows"); /* 0 and 1 alone are indices */
        model_node(model, model->graph, i ? "Exp" : "Neg", "rows", "out");
        model_output(model, model->graph, "out", TSSA_FLOAT, "4,3");
    }
    pair_load(&pair);
    assert_false(is_same(&pair, 2)); /* so it did run */
    pair_close(&pair);
}

static void sequences_are_compared(void **state)
{
    (void)state;
    for (int other = 0; other < 2; other++) {
        struct pair pair;
        pair_open(&pair);
        for (int i = 0; i < 2; i++) {
            struct onnx_model *model = &pair.sources[i];
            model_input(model, model->graph, "x", TSSA_FLOAT, "N");
            model_input(model, model->graph, "y", TSSA_FLOAT, "N");
            model_node(model, model->graph, "SequenceConstruct", i && other ? "y,x" : "x,y", "s");
            model_node(model, model->graph, "ConcatFromSequence", "s", "out");
            model_attr_int(model, pair.sources[i].graph->node[1], "axis", 0);
            model_output(model, model->graph, "out", TSSA_FLOAT, "*");
        }
        pair_load(&pair);
        assert_int_equal(is_same(&pair, 2), !other);
        pair_close(&pair);
    }
}

/* What no run can show: names, counts, types. */
static void signatures_are_compared(void **state)
{
    (void)state;
    static const struct {
        const char *name, *dims;
        int dtype;
    } others[] = {{"z", "N", TSSA_FLOAT}, {"out", "N,M", TSSA_FLOAT}, {"out", "N", TSSA_DOUBLE}};
    for (size_t k = 0; k < sizeof others / sizeof *others; k++) {
        struct pair pair;
        pair_open(&pair);
        for (int i = 0; i < 2; i++) {
            struct onnx_model *model = &pair.sources[i];
            int dtype = i ? others[k].dtype : TSSA_FLOAT;
            model_input(model, model->graph, "x", dtype, i ? others[k].dims : "N");
            model_node(model, model->graph, "Neg", "x", i ? others[k].name : "out");
            model_output(model, model->graph, i ? others[k].name : "out", dtype,
                         i ? others[k].dims : "N");
        }
        pair_load(&pair);
        tssa_status *status = check_signatures(pair.models[0], pair.models[1]);
        assert_int_equal(tssa_status_code(status), TSSA_INTERNAL);
        tssa_status_free(status);
        pair_close(&pair);
    }
}

/* A node of another domain, which tssa cannot run. */
static void add_magic(struct onnx_model *model, Onnx__GraphProto *graph, const char *in,
                      const char *out)
{
    Onnx__NodeProto *node = model_node(model, graph, "Magic", in, out);
    node->domain = model_string(model, "com.acme");
}

/* x -> first -> Magic -> last -> out */
static void pair_around_magic(struct pair *pair, const char *const *first, const char *const *last)
{
    pair_open(pair);
    for (int i = 0; i < 2; i++) {
        struct onnx_model *model = &pair->sources[i];
        model_opset(model, "com.acme", 1);
        model_input(model, model->graph, "x", TSSA_FLOAT, "N,2");
        model_node(model, model->graph, first[i], "x", "a");
        add_magic(model, model->graph, "a", "b");
        model_node(model, model->graph, last[i], "b", "out");
        model_output(model, model->graph, "out", TSSA_FLOAT, "N,2");
    }
    pair_load(pair);
}

/* The error names the operator; what can be checked without it is the caller's to do. */
static void unrunnable_models_are_refused(void **state)
{
    (void)state;
    struct pair pair;
    const char *const same[] = {"Neg", "Neg"};
    struct session_engine engine;
    pair_around_magic(&pair, same, same);
    tssa_status *status =
        session_engine_init(&engine, pair.context, pair.models[0], pair.models[1]);
    assert_int_equal(tssa_status_code(status), TSSA_UNSUPPORTED);
    assert_non_null(strstr(tssa_status_message(status), "Magic"));
    tssa_status_free(status);
    pair_close(&pair);
}

static bool compare_parts(const char *const *first, const char *const *last)
{
    struct pair pair;
    pair_around_magic(&pair, first, last);
    for (int i = 0; i < 2; i++) {
        size_t count;
        assert_null(tssa_model_cut_unsupported(pair.models[i], &count));
        assert_int_equal(count, 1);
        assert_int_equal(tssa_model_input_count(pair.models[i]), 2);
        assert_int_equal(tssa_model_output_count(pair.models[i]), 2);
    }
    assert_null(check_signatures(pair.models[0], pair.models[1]));
    bool same = is_same(&pair, 2);
    pair_close(&pair);
    return same;
}

static void parts_are_compared(void **state)
{
    (void)state;
    const char *const same[] = {"Neg", "Neg"}, *const other[] = {"Neg", "Exp"};
    assert_true(compare_parts(same, same));
    assert_false(compare_parts(other, same)); /* what Magic is given */
    assert_false(compare_parts(same, other)); /* what is made of its result */
}

/* An If that holds such an operator goes as a whole. */
static void control_flow_is_cut_as_a_whole(void **state)
{
    (void)state;
    struct pair pair;
    pair_open(&pair);
    for (int i = 0; i < 2; i++) {
        struct onnx_model *model = &pair.sources[i];
        model_opset(model, "com.acme", 1);
        Onnx__GraphProto *yes = model_graph(model, "yes"), *no = model_graph(model, "no");
        add_magic(model, yes, "x", "t");
        model_output(model, yes, "t", TSSA_FLOAT, "N");
        model_node(model, no, "Exp", "x", "e");
        model_output(model, no, "e", TSSA_FLOAT, "N");
        model_input(model, model->graph, "x", TSSA_FLOAT, "N");
        model_input(model, model->graph, "c", TSSA_BOOL, "");
        Onnx__NodeProto *branch = model_node(model, model->graph, "If", "c", "b");
        model_attr_graph(model, branch, "then_branch", yes);
        model_attr_graph(model, branch, "else_branch", no);
        model_node(model, model->graph, "Add", "b,x", "out");
        model_output(model, model->graph, "out", TSSA_FLOAT, "N");
    }
    pair_load(&pair);
    for (int i = 0; i < 2; i++) {
        size_t count;
        assert_null(tssa_model_cut_unsupported(pair.models[i], &count));
        assert_int_equal(count, 1);
        assert_int_equal(tssa_model_input_count(pair.models[i]), 3);
    }
    assert_true(is_same(&pair, 2));
    pair_close(&pair);
}

/* ---- Roundings ------------------------------------------------------------------------------- */

/* sin(1e6 x), with the million as one factor and as two, and `more` subtracted in the second. */
static enum check_verdict compare_sines(float more)
{
    const float million = 1e6f, thousand = 1e3f, zero = 0;
    struct check_result result;
    struct pair pair;
    pair_open(&pair);
    for (int i = 0; i < 2; i++) {
        struct onnx_model *model = &pair.sources[i];
        model_input(model, model->graph, "x", TSSA_FLOAT, "40");
        model_initializer(model, model->graph,
                          model_tensor(model, "factor", TSSA_FLOAT, "", i ? &thousand : &million,
                                       sizeof million));
        model_initializer(
            model, model->graph,
            model_tensor(model, "more", TSSA_FLOAT, "", i ? &more : &zero, sizeof more));
        model_node(model, model->graph, "Mul", "x,factor", "a");
        if (i)
            model_node(model, model->graph, "Mul", "a,factor", "b");
        model_node(model, model->graph, "Sin", i ? "b" : "a", "sine");
        model_node(model, model->graph, "Sub", "sine,more", "out");
        model_output(model, model->graph, "out", TSSA_FLOAT, "40");
    }
    pair_load(&pair);
    enum check_verdict verdict = verdict_of(&pair, 2, 20, &result);
    pair_close(&pair);
    return verdict;
}

/* The original itself gives another sine for the next float; but none that is larger than 1. */
static void what_magnifies_roundings_proves_nothing(void **state)
{
    (void)state;
    assert_int_equal(compare_sines(0), CHECK_NOTHING);
    assert_int_equal(compare_sines(100), CHECK_DIFFERS);
    assert_int_equal(compare_sines((float)NAN), CHECK_DIFFERS);
}

/* ---- Zeros ----------------------------------------------------------------------------------- */

/* What a pass would make of an addition of zero if it forgot that -0.0 + 0.0 is 0.0. */
static void a_lost_addition_of_zero_differs(void **state)
{
    (void)state;
    static const int64_t around[] = {1, 1};
    struct pair pair;
    pair_open(&pair);
    for (int i = 0; i < 2; i++) {
        struct onnx_model *model = &pair.sources[i];
        model_input(model, model->graph, "x", TSSA_FLOAT, "4");
        model_input(model, model->graph, "v", TSSA_FLOAT, "2");
        model_initializer(model, model->graph,
                          model_tensor(model, "p", TSSA_INT64, "2", around, sizeof around));
        model_node(model, model->graph, "Pad", "v,p", "q"); /* 0, v0, v1, 0 */
        model_node(model, model->graph, "Add", "x,q", "sum");
        if (i == 0) {
            model_node(model, model->graph, "Identity", "sum", "out");
        } else { /* x itself where q is known to be zero */
            const uint8_t zero[] = {1, 0, 0, 1};
            model_initializer(model, model->graph,
                              model_tensor(model, "z", TSSA_BOOL, "4", zero, sizeof zero));
            model_node(model, model->graph, "Where", "z,x,sum", "out");
        }
        model_output(model, model->graph, "out", TSSA_FLOAT, "4");
    }
    pair_load(&pair);
    assert_false(is_same(&pair, 6));
    pair_close(&pair);
}

/* ---- Sizes, memory and time ------------------------------------------------------------------ */

/* The same values, by the new model through a matrix: the square of what x takes. */
static void pair_of_sums(struct pair *pair, const char *dims)
{
    static const int64_t axes[] = {0, 1};
    pair_open(pair);
    for (int i = 0; i < 2; i++) {
        struct onnx_model *model = &pair->sources[i];
        model_input(model, model->graph, "x", TSSA_FLOAT, dims);
        for (int k = 0; k < 2; k++)
            model_initializer(
                model, model->graph,
                model_tensor(model, k ? "a1" : "a0", TSSA_INT64, "1", &axes[k], sizeof *axes));
        if (i == 0) {
            model_node(model, model->graph, "Sub", "x,x", "zero");
            model_node(model, model->graph, "Add", "zero,x", "out");
        } else { /* the largest of x[i] + 0, over all j */
            model_node(model, model->graph, "Unsqueeze", "x,a1", "column");
            model_node(model, model->graph, "Unsqueeze", "x,a0", "row");
            model_node(model, model->graph, "Sub", "row,row", "nothing");
            model_node(model, model->graph, "Add", "column,nothing", "matrix");
            Onnx__NodeProto *largest =
                model_node(model, model->graph, "ReduceMax", "matrix,a1", "out");
            model_attr_int(model, largest, "keepdims", 0);
        }
        model_output(model, model->graph, "out", TSSA_FLOAT, dims);
    }
    pair_load(pair);
}

/* Seen where sizes are large, and where they are not, not complained about. */
static void memory_is_compared(void **state)
{
    (void)state;
    struct check_result result;
    struct pair pair;
    pair_of_sums(&pair, "N");
    assert_true(is_same(&pair, 1));
    /* Sizes grow for a share of the time, which is to be enough on a busy machine. */
    assert_int_equal(verdict_of(&pair, 2, 200, &result), CHECK_DIFFERS);
    pair_close(&pair);
    pair_of_sums(&pair, "1000"); /* 4 MB, which nobody minds */
    assert_true(is_same(&pair, 2));
    pair_close(&pair);
    pair_of_sums(&pair, "6000");
    assert_false(is_same(&pair, 1));
    pair_close(&pair);
}

/* out = Max(x, n - 1), by a loop. Without `constants`, the numbers of iterations, n is an input,
 * and the new model does not go beyond 1000. */
static void pair_of_loops(struct pair *pair, const int64_t *constants)
{
    pair_open(pair);
    for (int i = 0; i < 2; i++) {
        struct onnx_model *model = &pair->sources[i];
        Onnx__GraphProto *body = model_graph(model, "body");
        model_input(model, body, "i", TSSA_INT64, "");
        model_input(model, body, "c", TSSA_BOOL, "");
        model_input(model, body, "v", TSSA_INT64, "");
        model_node(model, body, "Identity", "c", "d");
        model_node(model, body, "Max", "v,i", "w");
        model_output(model, body, "d", TSSA_BOOL, "");
        model_output(model, body, "w", TSSA_INT64, "");
        if (constants)
            model_initializer(
                model, model->graph,
                model_tensor(model, "n", TSSA_INT64, "", &constants[i], sizeof *constants));
        else
            model_input(model, model->graph, "n", TSSA_INT64, "");
        model_input(model, model->graph, "x", TSSA_INT64, "");
        Onnx__NodeProto *loop = model_node(model, model->graph, "Loop", "n,,x", "y");
        model_attr_graph(model, loop, "body", body);
        static const int64_t end = 1000;
        model_initializer(model, model->graph,
                          model_tensor(model, "end", TSSA_INT64, "", &end, sizeof end));
        model_node(model, model->graph, "Greater", "y,end", "over");
        model_node(model, model->graph, "Where", i && !constants ? "over,end,y" : "over,y,y",
                   "out");
        model_output(model, model->graph, "out", TSSA_INT64, "");
    }
    pair_load(pair);
}

/* An error that only more than a thousand iterations show is found: an integer by itself is large,
 * too. */
static void trip_counts_are_large(void **state)
{
    (void)state;
    struct pair pair;
    pair_of_loops(&pair, NULL);
    assert_true(is_same(&pair, 1));
    assert_false(is_same(&pair, 2));
    pair_close(&pair);
}

/* The original does not end, or the new model does not. */
static void time_is_limited(void **state)
{
    (void)state;
    static const int64_t endless[] = {INT64_MAX / 2, 1}, new_endless[] = {1, INT64_MAX / 2};
    struct check_result result;
    struct pair pair;
    pair_of_loops(&pair, endless);
    assert_int_equal(verdict_of(&pair, 2, 0.2, &result), CHECK_NOTHING);
    assert_non_null(strstr(result.why, "2 sets for which 0.2 s were too short (--timeout)"));
    pair_close(&pair);
    pair_of_loops(&pair, new_endless);
    assert_int_equal(verdict_of(&pair, 1, 0.2, &result), CHECK_NOTHING); /* too soon to tell */
    assert_int_equal(verdict_of(&pair, 1, 1.5, &result), CHECK_DIFFERS);
    pair_close(&pair);
}

/* Nothing is proven by inputs that the original does not take. */
static void refused_sets_check_nothing(void **state)
{
    (void)state;
    static const int64_t index = 100;
    struct check_result result;
    struct pair pair;
    pair_open(&pair);
    for (int i = 0; i < 2; i++) {
        struct onnx_model *model = &pair.sources[i];
        model_input(model, model->graph, "x", TSSA_FLOAT, "3");
        model_initializer(model, model->graph,
                          model_tensor(model, "k", TSSA_INT64, "1", &index, sizeof index));
        model_node(model, model->graph, "Gather", "x,k", "out");
        model_output(model, model->graph, "out", TSSA_FLOAT, "1");
    }
    pair_load(&pair);
    assert_int_equal(verdict_of(&pair, 3, 60, &result), CHECK_NOTHING);
    assert_non_null(strstr(result.why, "3 sets on which the original itself failed"));
    pair_close(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_models_are_the_same),
        cmocka_unit_test(other_values_differ),
        cmocka_unit_test(a_new_failure_differs),
        cmocka_unit_test(inputs_are_made_to_suit),
        cmocka_unit_test(sequences_are_compared),
        cmocka_unit_test(signatures_are_compared),
        cmocka_unit_test(unrunnable_models_are_refused),
        cmocka_unit_test(parts_are_compared),
        cmocka_unit_test(control_flow_is_cut_as_a_whole),
        cmocka_unit_test(what_magnifies_roundings_proves_nothing),
        cmocka_unit_test(a_lost_addition_of_zero_differs),
        cmocka_unit_test(memory_is_compared),
        cmocka_unit_test(trip_counts_are_large),
        cmocka_unit_test(time_is_limited),
        cmocka_unit_test(refused_sets_check_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
