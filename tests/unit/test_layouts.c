/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random networks of convolutions, and of what lies between them, in sessions whose graphs are laid
 * out and as they are: what comes out is as near as sums by a library are.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/text.h"
#include "common/model_text.h"
#include "common/no_error.h"
#include "common/op_run.h"
#include "tssa.h"

#define PROGRAMS 60
#define OPS 14
#define MOST_INPUTS 40
#define MOST_VALUES 40
#define OUTPUTS 3
#define NEAR 2e-4

struct image {
    int64_t channels, size;
};

/* A network as it is written. */
struct network {
    struct random random;
    struct text inputs, ops;
    size_t n_inputs, n_values;
    struct image values[MOST_VALUES]; /* %v0, %v1, ... */
    int64_t dims[MOST_INPUTS][4];
};

static int64_t pick(struct network *n, int64_t low, int64_t high)
{
    return random_int(&n->random, low, high);
}

/* The name of a new input is %iK. */
static size_t add_input(struct network *n, int64_t a, int64_t b, int64_t c, int64_t d)
{
    const int64_t dims[] = {a, b, c, d};
    assert_true(n->n_inputs < MOST_INPUTS);
    text_printf(&n->inputs, "%s%%i%zu: f32[%d, %d, %d, %d]", n->n_inputs ? ", " : "", n->n_inputs,
                (int)a, (int)b, (int)c, (int)d);
    memcpy(n->dims[n->n_inputs], dims, sizeof dims);
    return n->n_inputs++;
}

static void add_value(struct network *n, int64_t channels, int64_t size)
{
    assert_true(n->n_values < MOST_VALUES);
    n->values[n->n_values++] = (struct image){channels, size};
}

static void write_conv(struct network *n, size_t x)
{
    const struct image from = n->values[x];
    const bool deep = pick(n, 0, 2) == 0;
    const int64_t kernel = deep || pick(n, 0, 1) ? 3 : 1,
                  stride = from.size > 4 ? pick(n, 1, 2) : 1;
    const int64_t out = deep ? from.channels : pick(n, 1, 5) * 8;
    const size_t w = add_input(n, out, deep ? 1 : from.channels, kernel, kernel);
    text_printf(&n->ops,
                "%%v%zu = Conv(%%v%zu, %%i%zu) {group = %d, strides = [%d, %d], pads = "
                "[%d, %d, %d, %d]}\n",
                n->n_values, x, w, deep ? (int)from.channels : 1, (int)stride, (int)stride,
                (int)kernel / 2, (int)kernel / 2, (int)kernel / 2, (int)kernel / 2);
    add_value(n, out, (from.size - 1) / stride + 1);
}

static void write_activation(struct network *n, size_t x)
{
    static const char *const forms[] = {"Relu(%%v%zu)", "HardSwish(%%v%zu)",
                                        "Clip(%%v%zu, %%low, %%high)",
                                        "LeakyRelu(%%v%zu) {alpha = 0.25}", "Tanh(%%v%zu)"};
    const size_t form = (size_t)pick(n, 0, 5);
    if (form == 5) {
        text_printf(&n->ops, "%%s%zu = Sigmoid(%%v%zu)\n%%v%zu = Mul(%%s%zu, %%v%zu)\n",
                    n->n_values, x, n->n_values, n->n_values, x);
    } else {
        text_printf(&n->ops, "%%v%zu = ", n->n_values);
        text_printf(&n->ops, forms[form], x);
        text_printf(&n->ops, "\n");
    }
    add_value(n, n->values[x].channels, n->values[x].size);
}

/* With another one of its shape, or beside it. */
static void write_pair(struct network *n, size_t x)
{
    const struct image a = n->values[x];
    for (size_t y = 0; y < x; y++) {
        const struct image b = n->values[y];
        if (b.size != a.size)
            continue;
        const bool adds = b.channels == a.channels && pick(n, 0, 3);
        text_printf(&n->ops, "%%v%zu = %s(%%v%zu, %%v%zu)%s\n", n->n_values,
                    adds ? "Add" : "Concat", y, x, adds ? "" : " {axis = 1}");
        add_value(n, adds ? a.channels : a.channels + b.channels, a.size);
        return;
    }
}

/* Times what its mean over all pixels, or its largest channel, makes of each. */
static void write_squeeze(struct network *n, size_t x)
{
    static const char *const forms[] = {"GlobalAveragePool(%%v%zu)", "ReduceMean(%%v%zu, %%pixels)",
                                        "ReduceMax(%%v%zu, %%channel)"};
    const struct image image = n->values[x];
    text_printf(&n->ops, "%%m%zu = ", n->n_values);
    text_printf(&n->ops, forms[pick(n, 0, 2)], x);
    text_printf(&n->ops, "\n%%h%zu = HardSigmoid(%%m%zu)\n%%v%zu = Mul(%%h%zu, %%v%zu)\n",
                n->n_values, n->n_values, n->n_values, n->n_values, x);
    add_value(n, image.channels, image.size);
}

static void write_pool(struct network *n, size_t x)
{
    const struct image image = n->values[x];
    const int64_t kernel = pick(n, 1, 3), pad = kernel / 2,
                  stride = image.size > 4 ? pick(n, 1, 2) : 1;
    const int64_t size = (image.size + 2 * pad - kernel) / stride + 1;
    text_printf(&n->ops,
                "%%v%zu = %s(%%v%zu) {kernel_shape = [%d, %d], pads = [%d, %d, %d, %d], "
                "strides = [%d, %d]}\n",
                n->n_values, pick(n, 0, 1) ? "MaxPool" : "AveragePool", x, (int)kernel, (int)kernel,
                (int)pad, (int)pad, (int)pad, (int)pad, (int)stride, (int)stride);
    add_value(n, image.channels, size);
}

/* A list of integers that an op reads, named %NAMEk for value k. */
static void write_ints(struct network *n, const char *name, int count, const int64_t *numbers)
{
    text_printf(&n->ops, "%%%s%zu = Constant() {value = i64[%d] [", name, n->n_values, count);
    for (int i = 0; i < count; i++)
        text_printf(&n->ops, "%s%d", i ? ", " : "", (int)numbers[i]);
    text_printf(&n->ops, "]}\n");
}

/* Some of the channels, or of the rows. */
static void write_cut(struct network *n, size_t x)
{
    const struct image image = n->values[x];
    const int64_t axis = pick(n, 1, 3), size = axis == 1 ? image.channels : image.size;
    const int64_t from = pick(n, 0, size / 2), to = axis == 1 ? pick(n, from + 1, size) : size;
    if (axis > 1 && from > 0)
        return; /* images are square */
    write_ints(n, "from", 1, &from);
    write_ints(n, "to", 1, &to);
    write_ints(n, "axis", 1, &axis);
    text_printf(&n->ops, "%%v%zu = Slice(%%v%zu, %%from%zu, %%to%zu, %%axis%zu)\n", n->n_values, x,
                n->n_values, n->n_values, n->n_values);
    add_value(n, axis == 1 ? to - from : image.channels, image.size);
}

/* Twice as large. */
static void write_resize(struct network *n, size_t x)
{
    const struct image image = n->values[x];
    if (image.size > 24)
        return;
    text_printf(&n->ops,
                "%%v%zu = Resize(%%v%zu, _, %%twice) {mode = \"%s\", "
                "coordinate_transformation_mode = \"%s\"}\n",
                n->n_values, x, pick(n, 0, 1) ? "nearest" : "linear",
                pick(n, 0, 1) ? "asymmetric" : "half_pixel");
    add_value(n, image.channels, 2 * image.size);
}

/* How many parts of the same number of channels there are. */
static int64_t parts_of(int64_t channels)
{
    return channels % 4 == 0 ? 4 : channels % 3 == 0 ? 3 : 1;
}

/* %bK: value x with its channels as two axes. */
static void write_parts(struct network *n, size_t x)
{
    const struct image image = n->values[x];
    const int64_t parts = parts_of(image.channels);
    write_ints(n, "a", 5,
               (const int64_t[]){1, parts, image.channels / parts, image.size, image.size});
    text_printf(&n->ops, "%%b%zu = Reshape(%%v%zu, %%a%zu)\n", n->n_values, x, n->n_values);
}

static void write_shuffle(struct network *n, size_t x)
{
    const struct image image = n->values[x];
    write_parts(n, x);
    write_ints(n, "d", 4, (const int64_t[]){1, image.channels, image.size, image.size});
    text_printf(&n->ops,
                "%%c%zu = Transpose(%%b%zu) {perm = [0, 2, 1, 3, 4]}\n"
                "%%v%zu = Reshape(%%c%zu, %%d%zu)\n",
                n->n_values, n->n_values, n->n_values, n->n_values, n->n_values);
    add_value(n, image.channels, image.size);
}

/* What an output is of a value: the value, or a row for each part of its channels at each place. */
static void write_head(struct network *n, size_t x)
{
    const struct image image = n->values[x];
    const int64_t parts = parts_of(image.channels);
    write_parts(n, x);
    write_ints(n, "d", 3, (const int64_t[]){1, -1, image.channels / parts});
    text_printf(&n->ops,
                "%%c%zu = Transpose(%%b%zu) {perm = [0, 3, 4, 1, 2]}\n"
                "%%rows%zu = Reshape(%%c%zu, %%d%zu)\n",
                n->n_values, n->n_values, x, n->n_values, n->n_values);
    add_value(n, image.channels, image.size); /* its names are taken */
}

static void write_op(struct network *n)
{
    static void (*const writers[])(struct network * n, size_t x) = {
        write_conv,    write_conv, write_conv, write_activation, write_activation, write_pair,
        write_squeeze, write_pool, write_cut,  write_cut,        write_resize,     write_shuffle};
    const size_t last = n->n_values - 1;
    const size_t x = pick(n, 0, 4) ? last : (size_t)pick(n, 0, (int64_t)last);
    writers[pick(n, 0, sizeof writers / sizeof *writers - 1)](n, x);
}

static void write_network(struct network *n, struct text *text)
{
    const int64_t channels = pick(n, 0, 1) ? 3 : pick(n, 1, 4) * 8, size = pick(n, 8, 24);
    text_init(&n->inputs, &allocator_default);
    text_init(&n->ops, &allocator_default);
    add_input(n, 1, channels, size, size);
    text_printf(&n->ops, "%%v0 = Identity(%%i0)\n");
    add_value(n, channels, size);
    write_conv(n, 0);
    for (int i = 0; i < OPS; i++)
        write_op(n);
    const size_t last = n->n_values;
    const char *kinds[OUTPUTS]; /* of what is put out of the last values */
    for (size_t i = 0; i < OUTPUTS; i++) {
        kinds[i] = pick(n, 0, 2) ? "v" : "rows";
        if (kinds[i][0] == 'r')
            write_head(n, last - 1 - i);
    }
    text_printf(text, "graph @g opset(\"\": 21) ir_version(10) (%s) -> (", text_string(&n->inputs));
    for (size_t i = 0; i < OUTPUTS; i++)
        text_printf(text, "%s%%%s%zu", i ? ", " : "", kinds[i], last - 1 - i);
    text_printf(text,
                ") {\n%%low = Constant() {value = f32[] -0.5}\n"
                "%%high = Constant() {value = f32[] 1.5}\n"
                "%%twice = Constant() {value = f32[4] [1, 1, 2, 2]}\n"
                "%%pixels = Constant() {value = i64[2] [-1, 2]}\n"
                "%%channel = Constant() {value = i64[1] [1]}\n%sreturn(",
                text_string(&n->ops));
    for (size_t i = 0; i < OUTPUTS; i++)
        text_printf(text, "%s%%%s%zu", i ? ", " : "", kinds[i], last - 1 - i);
    text_printf(text, ")\n}\n");
    text_free(&n->inputs);
    text_free(&n->ops);
}

/* ---- Running --------------------------------------------------------------------------------- */

/* Weights are small, so that numbers stay where they are. */
static tssa_value *make_input(const struct network *n, tssa_context *context, size_t i)
{
    const int64_t *dims = n->dims[i];
    const size_t count = (size_t)(dims[0] * dims[1] * dims[2] * dims[3]);
    tssa_value *value;
    no_error(tssa_tensor_create(context, TSSA_FLOAT, 4, dims, &value));
    float *data = tssa_tensor_data(value);
    random_floats(data, count, (uint32_t)i + 1);
    for (size_t k = 0; i > 0 && k < count; k++)
        data[k] *= 1.7F / sqrtf((float)(dims[1] * dims[2] * dims[3]));
    return value;
}

static void compare(const tssa_value *a, const tssa_value *b)
{
    size_t n = 1;
    assert_int_equal(tssa_tensor_rank(a), tssa_tensor_rank(b));
    for (int i = 0; i < tssa_tensor_rank(a); i++) {
        assert_int_equal(tssa_tensor_dims(a)[i], tssa_tensor_dims(b)[i]);
        n *= (size_t)tssa_tensor_dims(a)[i];
    }
    const float *x = tssa_tensor_data((tssa_value *)a), *y = tssa_tensor_data((tssa_value *)b);
    for (size_t i = 0; i < n; i++)
        expect_close((double)x[i], (double)y[i], NEAR, "element", i);
}

/* How many steps are laid out. */
static size_t check(const struct network *n, const char *text, tssa_compile compile, int threads)
{
    struct level_pair pair;
    tssa_value *inputs[MOST_INPUTS], *outputs[2][OUTPUTS] = {{NULL}};
    level_pair_open(&pair, text, compile, threads);
    for (size_t i = 0; i < n->n_inputs; i++)
        inputs[i] = make_input(n, pair.context, i);
    for (size_t i = 0; i < 2; i++)
        no_error(tssa_session_run(pair.sessions[i], n->n_inputs, inputs, OUTPUTS, outputs[i]));
    for (size_t i = 0; i < OUTPUTS; i++)
        compare(outputs[1][i], outputs[0][i]);
    const size_t steps = level_pair_steps(&pair, "convolve");
    for (size_t i = 0; i < 2 * OUTPUTS; i++)
        tssa_value_free(outputs[i / OUTPUTS][i % OUTPUTS]);
    for (size_t i = 0; i < n->n_inputs; i++)
        tssa_value_free(inputs[i]);
    level_pair_close(&pair);
    return steps;
}

static void test_networks(void **state)
{
    size_t steps = 0;
    (void)state;
    for (uint64_t i = 0; i < PROGRAMS; i++) {
        struct network n = {.random = {i + 1}};
        struct text text;
        text_init(&text, &allocator_default);
        write_network(&n, &text);
        steps += check(&n, text_string(&text), i % 8 ? TSSA_COMPILE_OFF : TSSA_COMPILE_BACKGROUND,
                       i % 3 ? 1 : 2);
        text_free(&text);
    }
    assert_true(steps > PROGRAMS);
}

/* Does a convolution of the session say so? */
static void find_winograd(void *user, const char *stage, const char *text, size_t size)
{
    (void)size;
    if (strcmp(stage, "session") == 0)
        *(bool *)user = strstr(text, "winograd = 1") != NULL;
}

static bool allows_winograd(tssa_model *model, int no_winograd)
{
    bool found = false;
    const tssa_session_options options = {.struct_size = sizeof options,
                                          .dump = find_winograd,
                                          .dump_user = &found,
                                          .no_winograd = no_winograd};
    tssa_session *session;
    no_error(tssa_session_create(model, &options, &session));
    tssa_session_free(session);
    return found;
}

static void test_sessions_refuse_winograd(void **state)
{
    static const char program[] =
        "graph @g opset(\"\": 18) ir_version(8) (%x: f32[1, 64, 20, 20]) -> (%y) {\n"
        "%shape = Constant() {value = i64[4] [64, 64, 3, 3]}\n"
        "%w = ConstantOfShape(%shape) {value = f32[1] [0.5]}\n%y = Conv(%x, %w)\nreturn(%y)\n}\n";
    const tssa_optimize_options passes = {
        .struct_size = sizeof passes, .level = 2, .target = TSSA_TARGET_SESSION};
    tssa_context *context;
    tssa_model *model;
    (void)state;
    no_error(tssa_context_create(NULL, &context));
    no_error(model_text_load(context, program, &model));
    no_error(tssa_model_optimize(model, &passes));
    assert_int_equal(allows_winograd(model, 0), TSSA_HAVE_ONEDNN);
    assert_false(allows_winograd(model, 1));
    tssa_model_free(model);
    tssa_context_free(context);
}

int main(void)
{
    /* Beside the tests' folder; see base/plugin.h. */
    setenv("TSSA_PLUGIN_DIR", TSSA_BUILD_DIR, 0);
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_networks),
                                       cmocka_unit_test(test_sessions_refuse_winograd)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
