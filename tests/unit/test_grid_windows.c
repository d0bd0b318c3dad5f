/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolutions and pooling by texts (kernels/grids) on devices that launch grids, of random
 * windows: what the CPU gives, pooling with its bits, on `opencl`, where there is one, and on
 * `cuda`, on a fake driver, in whatever order threads run, with no library installed.
 */
/* ctest-timeout: 600 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/grid_operands.h"
#include "common/no_error.h"
#include "common/same_value.h"
#include "device/grids/convolve.h"

#define ROUNDS GRIDS_ROUNDS(40)

/* The last two are convolved and sampled alone. */
static const char *const names[] = {"f32", "f64", "f16", "bf16"};
static const tssa_dtype types[] = {TSSA_FLOAT, TSSA_DOUBLE, TSSA_FLOAT16, TSSA_BFLOAT16};
/* Of two-byte floats: sums that lie between two of them are rounded to either. */
static const double tolerances[] = {1e-4, 1e-12, 1e-3, 8e-3};

/* ---- Windows --------------------------------------------------------------------------------- */

enum { MOST_AXES = 3 };

/* Of `rank` spatial axes, each of which is large enough for one window. */
struct shape {
    int rank;
    int64_t in[MOST_AXES], kernel[MOST_AXES], stride[MOST_AXES], dilation[MOST_AXES];
    int64_t pads[2 * MOST_AXES];
};

static struct shape some_shape(struct random *random, int rank)
{
    static const int64_t most[] = {40, 14, 6};
    struct shape s = {.rank = rank};
    for (int i = 0; i < rank; i++) {
        s.kernel[i] = random_int(random, 1, 3);
        s.stride[i] = random_int(random, 1, 3);
        s.dilation[i] = random_int(random, 1, 2);
        const int64_t extent = (s.kernel[i] - 1) * s.dilation[i] + 1;
        s.pads[i] = random_int(random, 0, s.kernel[i] - 1);
        s.pads[rank + i] = random_int(random, 0, s.kernel[i] - 1);
        s.in[i] = extent + random_int(random, 0, most[rank - 1]);
    }
    return s;
}

/* " name = [1, 2]" */
static void print_ints(char *text, size_t size, const char *name, const int64_t *values, int n)
{
    size_t at = strlen(text);
    at += (size_t)snprintf(text + at, size - at, "%s%s = [", at ? ", " : "", name);
    for (int i = 0; i < n; i++)
        at += (size_t)snprintf(text + at, size - at, "%s%lld", i ? ", " : "", (long long)values[i]);
    snprintf(text + at, size - at, "]");
}

static void print_shape(char *text, size_t size, const struct shape *s, bool with_kernel)
{
    text[0] = '\0';
    print_ints(text, size, "strides", s->stride, s->rank);
    print_ints(text, size, "dilations", s->dilation, s->rank);
    print_ints(text, size, "pads", s->pads, 2 * s->rank);
    if (with_kernel)
        print_ints(text, size, "kernel_shape", s->kernel, s->rank);
}

/* "[A0, A1, ...]" */
static const char *dims_text(char *text, size_t size, char name, int rank)
{
    size_t at = (size_t)snprintf(text, size, "[");
    for (int i = 0; i < rank; i++)
        at += (size_t)snprintf(text + at, size - at, "%s%c%d", i ? ", " : "", name, i);
    snprintf(text + at, size - at, "]");
    return text;
}

static int64_t with_channels(int64_t *dims, int64_t first, int64_t second, const struct shape *s,
                             const int64_t *sizes)
{
    dims[0] = first;
    dims[1] = second;
    memcpy(dims + 2, sizes, (size_t)s->rank * sizeof *sizes);
    return 2 + s->rank;
}

/* ---- Convolutions ---------------------------------------------------------------------------- */

struct convolution {
    struct shape shape;
    int64_t batch, groups, channels, filters; /* of a group */
    bool turned, biased;
};

static void open_convolution(struct grids_run *run, const char *device, int t,
                             const struct convolution *c)
{
    char program[900], attrs[300], x[60], w[60];
    const int rank = c->shape.rank + 2;
    print_shape(attrs, sizeof attrs, &c->shape, false);
    snprintf(program, sizeof program,
             "graph @g opset(\"\": 22) ir_version(10) (%%x: %s%s, %%w: %s%s, %%b: %s[F]) -> (%%y) "
             "{\n"
             "  %%y = %s@%d(%%x, %%w%s) {group = %lld, %s}\n"
             "  return(%%y)\n"
             "}\n",
             names[t], dims_text(x, sizeof x, 'X', rank), names[t],
             dims_text(w, sizeof w, 'W', rank), names[t], c->turned ? "ConvTranspose" : "Conv", 22,
             c->biased ? ", %b" : "", (long long)c->groups, attrs);
    grids_run_open(run, device, program);
}

static void convolve_once(const char *device, struct operands *o, int t,
                          const struct convolution *c)
{
    struct grids_run run;
    int64_t dims[MOST_AXES + 2];
    const int64_t bias = c->groups * c->filters, channels = c->groups * c->channels;
    const struct shape *s = &c->shape;
    open_convolution(&run, device, t, c);
    const int rank = (int)with_channels(dims, c->batch, channels, s, s->in);
    operands_add_numbers(o, types[t], rank, dims);
    with_channels(dims, c->turned ? channels : bias, c->turned ? c->filters : c->channels, s,
                  s->kernel);
    operands_add_numbers(o, types[t], rank, dims);
    operands_add_numbers(o, types[t], 1, &bias);
    assert_true(grids_run_go(&run, o->given));
    operands_expect_close(&run, 0, tolerances[t]);
    assert_int_equal(run.counts.library_calls, 0);
    operands_clear(o);
    grids_run_close(&run);
}

/* Of few filters, or enough for tiles of both sizes. */
static void convolve_some(void **state, bool turned)
{
    static const int64_t filters[] = {1, 2, 3, 5, 8, 9, 17, 40, 70};
    struct operands o;
    operands_open(&o, 31 + turned);
    for (int i = 0; i < ROUNDS; i++) {
        struct random *random = &o.random;
        const struct convolution c = {.shape = some_shape(random, i % MOST_AXES + 1),
                                      .batch = random_int(random, 1, 3),
                                      .groups =
                                          random_chance(random, 60) ? 1 : random_int(random, 2, 4),
                                      .channels = random_int(random, 1, 9),
                                      .filters = filters[random_int(random, 0, 8)],
                                      .turned = turned,
                                      .biased = random_chance(random, 50)};
        convolve_once(*state, &o, i / MOST_AXES % 4, &c);
    }
}

static void test_conv(void **state)
{
    convolve_some(state, false);
}

static void test_conv_transpose(void **state)
{
    convolve_some(state, true);
}

static struct convolution of_two_axes(int64_t batch, int64_t channels, int64_t filters,
                                      int64_t size, int64_t kernel)
{
    return (struct convolution){.shape = {.rank = 2,
                                          .in = {size, size + 1},
                                          .kernel = {kernel, kernel},
                                          .stride = {1, 1},
                                          .dilation = {1, 1}},
                                .batch = batch,
                                .groups = 1,
                                .channels = channels,
                                .filters = filters,
                                .biased = true};
}

/* Sizes for which each text of convolutions is chosen. */
static void test_each_text(void **state)
{
    static const struct {
        enum grids_text text;
        int64_t batch, channels, filters, size, kernel;
    } cases[] = {{GRIDS_TEXT_CONV, 2, 5, 70, 24, 3},        {GRIDS_TEXT_CONV_SMALL, 1, 20, 9, 9, 3},
                 {GRIDS_TEXT_CONV_EACH, 1, 3, 2, 20, 3},    {GRIDS_TEXT_CONV_EACH, 1, 30, 40, 3, 3},
                 {GRIDS_TEXT_PRODUCT_ROWS, 3, 30, 7, 9, 1}, {GRIDS_TEXT_PRODUCT, 3, 18, 65, 20, 1}};
    struct operands o;
    operands_open(&o, 41);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct convolution c = of_two_axes(cases[i].batch, cases[i].channels,
                                                 cases[i].filters, cases[i].size, cases[i].kernel);
        const int64_t *in = c.shape.in, kernel = cases[i].kernel;
        const struct conv_problem problem = {
            .rank = 2,
            .batch = c.batch,
            .groups = 1,
            .in_channels = c.channels,
            .out_channels = c.filters,
            .in = {in[0], in[1]},
            .out = {in[0] - kernel + 1, in[1] - kernel + 1},
            .kernel = {kernel, kernel},
            .stride = {1, 1},
            .dilation = {1, 1},
        };
        struct device_context context = {.device = device_find(*state)};
        assert_int_equal(convolve_text(&context, &problem), cases[i].text);
        convolve_once(*state, &o, 0, &c);
    }
}

/* No elements, channels or items; weights that do not fit. */
static void test_odd_convolutions(void **state)
{
    struct convolution c = of_two_axes(0, 2, 3, 5, 3);
    struct operands o;
    operands_open(&o, 43);
    convolve_once(*state, &o, 0, &c);
    c = of_two_axes(2, 0, 9, 9, 3);
    convolve_once(*state, &o, 0, &c);
    c = of_two_axes(2, 3, 0, 9, 3);
    convolve_once(*state, &o, 0, &c);
    struct grids_run run;
    c = of_two_axes(1, 2, 3, 5, 3);
    open_convolution(&run, *state, 0, &c);
    operands_add_numbers(&o, TSSA_FLOAT, 4, (const int64_t[]){1, 2, 5, 5});
    operands_add_numbers(&o, TSSA_FLOAT, 4, (const int64_t[]){3, 4, 3, 3});
    operands_add_numbers(&o, TSSA_FLOAT, 1, (const int64_t[]){3});
    assert_false(grids_run_go(&run, o.given));
    operands_clear(&o);
    operands_add_numbers(&o, TSSA_FLOAT, 4, (const int64_t[]){1, 2, 5, 5});
    operands_add_numbers(&o, TSSA_FLOAT, 4, (const int64_t[]){3, 2, 3, 3});
    operands_add_numbers(&o, TSSA_FLOAT, 1, (const int64_t[]){4});
    assert_false(grids_run_go(&run, o.given));
    operands_clear(&o);
    grids_run_close(&run);
}

/* ---- What follows convolutions ----------------------------------------------------------------
 */

/* "f32[2, 3]" */
static const char *type_text(char *text, size_t size, int t, int rank, const int64_t *dims)
{
    size_t at = (size_t)snprintf(text, size, "%s[", names[t]);
    for (int i = 0; i < rank; i++)
        at += (size_t)snprintf(text + at, size - at, "%s%d", i ? ", " : "", (int)dims[i]);
    snprintf(text + at, size - at, "]");
    return text;
}

static void dims_of_all(const struct convolution *c, int64_t *x, int64_t *w, int64_t *y)
{
    const struct shape *s = &c->shape;
    with_channels(x, c->batch, c->groups * c->channels, s, s->in);
    with_channels(w, c->groups * c->filters, c->channels, s, s->kernel);
    with_channels(y, c->batch, c->groups * c->filters, s, s->in);
    for (int i = 0; i < s->rank; i++)
        y[2 + i] = (s->in[i] + s->pads[i] + s->pads[s->rank + i] -
                    (s->kernel[i] - 1) * s->dilation[i] - 1) /
                       s->stride[i] +
                   1;
}

/* In one op with the convolution, or each in one of its own. */
static void open_followed(struct grids_run *run, const char *device, int t,
                          const struct convolution *c, bool adds, bool clips, bool apart)
{
    char program[2000], attrs[300], type_x[60], type_w[60], type_b[60], type_y[60], conv[500];
    const char *bias = c->biased ? ", %b" : "";
    int64_t x[5], w[5], y[5];
    const int64_t filters = c->groups * c->filters;
    const int rank = c->shape.rank + 2;
    dims_of_all(c, x, w, y);
    type_text(type_x, sizeof type_x, t, rank, x);
    type_text(type_w, sizeof type_w, t, rank, w);
    type_text(type_y, sizeof type_y, t, rank, y);
    type_text(type_b, sizeof type_b, t, 1, &filters);
    print_shape(attrs, sizeof attrs, &c->shape, false);
    snprintf(conv, sizeof conv, "Conv@22(%%x, %%w%s) {group = %d, %s}", bias, (int)c->groups,
             attrs);
    const char *last = clips ? "%r" : "%s";
    size_t at = (size_t)snprintf(program, sizeof program,
                                 "graph @g opset(\"\": 22) ir_version(10) (%%x: %s, %%w: %s, %%b: "
                                 "%s, %%z: %s) -> (%s) {\n",
                                 type_x, type_w, type_b, type_y, apart ? last : "%y");
    if (apart) {
        at += (size_t)snprintf(program + at, sizeof program - at, "%%c = %s\n", conv);
        if (adds)
            at += (size_t)snprintf(program + at, sizeof program - at,
                                   "%%s = fuse(%%z, %%c) {\n body(%%p: %s, %%q: %s) {\n"
                                   "%%v = Add@14(%%p, %%q)\n return(%%v)\n}\n}\n",
                                   type_y, type_y);
        if (clips)
            at += (size_t)snprintf(program + at, sizeof program - at,
                                   "%%r = fuse(%s) {\n body(%%u: %s) {\n"
                                   "%%t = Relu@14(%%u)\n return(%%t)\n}\n}\n",
                                   adds ? "%s" : "%c", type_y);
        snprintf(program + at, sizeof program - at, "return(%s)\n}\n", last);
    } else
        snprintf(
            program + at, sizeof program - at,
            "%%y = fuse(%%x, %%w%s, %%z) {\n body(%%x1: %s, %%w1: %s%s%s, %%z1: %s) {\n"
            "%%c = Conv@22(%%x1, %%w1%s) {group = %d, %s}\n%s%sreturn(%s)\n}\n}\n"
            "return(%%y)\n}\n",
            bias, type_x, type_w, c->biased ? ", %b1: " : "", c->biased ? type_b : "", type_y,
            c->biased ? ", %b1" : "", (int)c->groups, attrs, adds ? "%s = Add@14(%z1, %c)\n" : "",
            clips ? (adds ? "%r = Relu@14(%s)\n" : "%r = Relu@14(%c)\n") : "", clips ? "%r" : "%s");
    grids_run_open(run, device, program);
}

static void follow_once(const char *device, struct operands *o, int t, const struct convolution *c,
                        bool adds, bool clips)
{
    struct grids_run run, apart;
    int64_t x[5], w[5], y[5];
    const int64_t filters = c->groups * c->filters;
    const int rank = c->shape.rank + 2;
    dims_of_all(c, x, w, y);
    open_followed(&run, device, t, c, adds, clips, false);
    operands_add_numbers(o, types[t], rank, x);
    operands_add_numbers(o, types[t], rank, w);
    operands_add_numbers(o, types[t], 1, &filters);
    operands_add_numbers(o, types[t], rank, y);
    assert_true(grids_run_go(&run, o->given));
    operands_expect_close(&run, 0, 2 * tolerances[t]);
    open_followed(&apart, device, t, c, adds, clips, true);
    assert_null(grids_run_try(&apart, o->given));
    assert_true(same_value(&run.made[0], &apart.made[0]));
    /* behind a product it is a launch */
    assert_true(run.counts.launches < apart.counts.launches + (c->shape.kernel[0] == 1));
    grids_run_close(&apart);
    grids_run_close(&run);
    operands_clear(o);
}

/* Of each text of convolutions: sums are what they are apart. */
static void test_what_follows(void **state)
{
    static const int64_t filters[] = {1, 3, 9, 40};
    struct operands o;
    operands_open(&o, 45);
    for (int i = 0; i < ROUNDS / 2; i++) {
        struct convolution c = {.shape = some_shape(&o.random, i % MOST_AXES + 1),
                                .batch = random_int(&o.random, 1, 3),
                                .groups = random_chance(&o.random, 70) ? 1 : 2,
                                .channels = random_int(&o.random, 1, 9),
                                .filters = filters[random_int(&o.random, 0, 3)],
                                .biased = random_chance(&o.random, 50)};
        if (i % 5 == 0) /* a product */
            for (int axis = 0; axis < c.shape.rank; axis++) {
                c.shape.kernel[axis] = c.shape.stride[axis] = c.shape.dilation[axis] = 1;
                c.shape.pads[axis] = c.shape.pads[c.shape.rank + axis] = 0;
            }
        follow_once(*state, &o, i / MOST_AXES % 4, &c, i % 3 != 1, i % 3 != 2);
    }
    struct convolution c = of_two_axes(2, 5, 70, 24, 3); /* large tiles */
    follow_once(*state, &o, 0, &c, true, true);
}

/* ---- Pooling --------------------------------------------------------------------------------- */

/* Zeros of both signs and infinities among them, and NaN, which sums would make of several signs.
 */
static void add_pooled(struct operands *o, tssa_dtype dtype, bool adds, int rank,
                       const int64_t *dims)
{
    struct tensor *x = operands_add_numbers(o, dtype, rank, dims);
    static const double odd[] = {0, -0.0, 0.25, INFINITY, -INFINITY, NAN};
    const bool is_float = dtype_is_float(dtype);
    const int64_t most = adds ? 3 : random_chance(&o->random, 30) ? 5 : 2;
    const int percent = random_chance(&o->random, 50) ? 30 : 0;
    for (size_t i = 0; i < tensor_count(x); i++) {
        char *element = (char *)x->data + i * tssa_dtype_size(dtype);
        if (!is_float)
            *element = (char)random_int(&o->random, 0, 255);
        else if (random_chance(&o->random, percent))
            dtype_store_double(dtype, element, odd[random_int(&o->random, 0, most)]);
    }
}

static void pool_once(const char *device, struct operands *o, const char *type, tssa_dtype dtype,
                      const char *op, const char *results, const struct shape *s, const char *more)
{
    char program[900], attrs[400], x[60];
    int64_t dims[MOST_AXES + 2];
    struct grids_run run;
    attrs[0] = '\0';
    if (s->kernel[0])
        print_shape(attrs, sizeof attrs, s, true);
    snprintf(program, sizeof program,
             "graph @g opset(\"\": 22) ir_version(10) (%%x: %s%s) -> (%s) {\n"
             "  %s = %s@22(%%x)%s%s%s%s\n"
             "  return(%s)\n"
             "}\n",
             type, dims_text(x, sizeof x, 'X', s->rank + 2), results, results, op,
             s->kernel[0] ? " {" : "", attrs, more, s->kernel[0] ? "}" : "", results);
    grids_run_open(&run, device, program);
    const int rank = (int)with_channels(dims, random_int(&o->random, 1, 3),
                                        random_int(&o->random, 1, 9), s, s->in);
    add_pooled(o, dtype, strstr(op, "Average") != NULL, rank, dims);
    grids_run_same(&run, o->given);
    operands_clear(o);
    grids_run_close(&run);
}

static void test_max_pool(void **state)
{
    static const char *const pooled[] = {"f32", "f64", "i8", "u8"};
    static const tssa_dtype pooled_types[] = {TSSA_FLOAT, TSSA_DOUBLE, TSSA_INT8, TSSA_UINT8};
    static const char *const more[] = {"", ", ceil_mode = 1", ", storage_order = 1"};
    struct operands o;
    operands_open(&o, 51);
    for (int i = 0; i < ROUNDS; i++) {
        const struct shape s = some_shape(&o.random, i % MOST_AXES + 1);
        const int t = i / MOST_AXES % 4;
        pool_once(*state, &o, pooled[t], pooled_types[t], "MaxPool",
                  random_chance(&o.random, 50) ? "%y" : "%y, %i", &s,
                  more[random_int(&o.random, 0, 2)]);
    }
}

static void test_average_pool(void **state)
{
    static const char *const more[] = {"", ", ceil_mode = 1", ", count_include_pad = 1",
                                       ", count_include_pad = 1, ceil_mode = 1"};
    struct operands o;
    operands_open(&o, 61);
    for (int i = 0; i < ROUNDS; i++) {
        struct shape s = some_shape(&o.random, i % MOST_AXES + 1);
        if (i % 5 == 0) /* the whole plane */
            for (int axis = 0; axis < s.rank; axis++) {
                s.kernel[axis] = s.in[axis];
                s.dilation[axis] = 1;
                s.pads[axis] = s.pads[s.rank + axis] = 0;
            }
        pool_once(*state, &o, names[i / MOST_AXES % 2], types[i / MOST_AXES % 2], "AveragePool",
                  "%y", &s, more[random_int(&o.random, 0, 3)]);
    }
}

static void test_global_pools(void **state)
{
    struct operands o;
    operands_open(&o, 71);
    for (int i = 0; i < ROUNDS; i++) {
        struct shape s = {.rank = i % MOST_AXES + 1};
        for (int axis = 0; axis < s.rank; axis++)
            s.in[axis] = random_chance(&o.random, 20) ? random_int(&o.random, 0, 90)
                                                      : random_int(&o.random, 1, 13);
        if (i % 9 == 0)
            s.in[0] = 5000;
        const int t = i / MOST_AXES % 2;
        pool_once(*state, &o, names[t], types[t], i % 2 ? "GlobalAveragePool" : "GlobalMaxPool",
                  "%y", &s, "");
    }
}

/* ---- Resize ---------------------------------------------------------------------------------- */

/* What Resize does, but for its mode and its sizes. */
static void some_attributes(struct random *random, bool nearest, bool moves, char *text,
                            size_t size)
{
    static const char *const coordinates[] = {"half_pixel",         "half_pixel_symmetric",
                                              "pytorch_half_pixel", "align_corners",
                                              "asymmetric",         "tf_crop_and_resize"};
    static const char *const roundings[] = {"round_prefer_floor", "round_prefer_ceil", "floor",
                                            "ceil"};
    size_t at = (size_t)snprintf(text, size, "coordinate_transformation_mode = \"%s\"",
                                 coordinates[random_int(random, 0, moves ? 4 : 5)]);
    if (nearest) {
        snprintf(text + at, size - at, ", nearest_mode = \"%s\"",
                 roundings[random_int(random, 0, 3)]);
        return;
    }
    snprintf(text + at, size - at,
             ", antialias = %d, exclude_outside = %d, extrapolation_value = "
             "0.3",
             random_chance(random, 40), random_chance(random, 30));
}

static void resize_once(const char *device, struct operands *o, const char *type, tssa_dtype dtype,
                        const char *mode, bool moves)
{
    struct random *random = &o->random;
    struct grids_run run;
    char program[900], attrs[300], x[60];
    int64_t dims[5], sizes[5];
    const int rank = (int)random_int(random, 1, 5);
    const bool by_scales = random_chance(random, 50);
    some_attributes(random, strcmp(mode, "nearest") == 0, moves, attrs, sizeof attrs);
    snprintf(program, sizeof program,
             "graph @g opset(\"\": 19) ir_version(9) (%%x: %s%s, %%r: f32[R], %%c: f32[C], %%s: "
             "i64[S]) -> (%%y) {\n"
             "  %%y = Resize@19(%%x, %%r, %s) {mode = \"%s\", %s}\n"
             "  return(%%y)\n"
             "}\n",
             type, dims_text(x, sizeof x, 'X', rank), by_scales ? "%c" : "_, %s", mode, attrs);
    grids_run_open(&run, device, program);
    for (int i = 0; i < rank; i++) {
        dims[i] = random_int(random, 1, rank == 1 ? 90 : 7);
        sizes[i] = random_chance(random, 30) ? dims[i] : random_int(random, 1, 2 * dims[i] + 1);
    }
    operands_add_numbers(o, dtype, rank, dims);
    operands_add_numbers(o, TSSA_FLOAT, 1, (const int64_t[]){2 * rank});
    float *scales = operands_add(o, TSSA_FLOAT, 1, (const int64_t[]){rank})->data;
    for (int i = 0; i < rank; i++)
        scales[i] = ((float)sizes[i] + 0.3f) / (float)dims[i];
    int64_t *own = operands_add(o, TSSA_INT64, 1, (const int64_t[]){rank})->data;
    memcpy(own, sizes, (size_t)rank * sizeof *sizes);
    grids_run_same(&run, o->given);
    operands_clear(o);
    grids_run_close(&run);
}

static void test_resize(void **state)
{
    static const char *const modes[] = {"linear", "cubic", "nearest"};
    struct operands o;
    operands_open(&o, 81);
    for (int i = 0; i < 2 * ROUNDS; i++)
        resize_once(*state, &o, names[i / 3 % 2], types[i / 3 % 2], modes[i % 3], false);
}

/* Elements of any type are moved. */
static void test_resize_of_others(void **state)
{
    static const char *const others[] = {"i8", "f16", "i32", "u64"};
    static const tssa_dtype other_types[] = {TSSA_INT8, TSSA_FLOAT16, TSSA_INT32, TSSA_UINT64};
    struct operands o;
    operands_open(&o, 91);
    for (int i = 0; i < ROUNDS / 2; i++)
        resize_once(*state, &o, others[i % 4], other_types[i % 4], "nearest", true);
}

/* ---- RoiAlign -------------------------------------------------------------------------------- */

static void open_roi_align(struct grids_run *run, const char *device, struct random *random, int t)
{
    char program[900];
    snprintf(program, sizeof program,
             "graph @g opset(\"\": 22) ir_version(10) (%%x: %s[A, B, C, D], %%r: %s[R, 4], %%i: "
             "i64[R]) -> (%%y) {\n"
             "  %%y = RoiAlign@22(%%x, %%r, %%i) {mode = \"%s\", coordinate_transformation_mode = "
             "\"%s\", output_height = %d, output_width = %d, sampling_ratio = %d, spatial_scale = "
             "%s}\n"
             "  return(%%y)\n"
             "}\n",
             names[t], names[t], random_chance(random, 30) ? "max" : "avg",
             random_chance(random, 50) ? "half_pixel" : "output_half_pixel",
             (int)random_int(random, 1, 5), (int)random_int(random, 1, 5),
             (int)random_int(random, 0, 3), random_chance(random, 50) ? "1.0" : "0.37");
    grids_run_open(run, device, program);
}

/* Regions of which some are turned round, or partly outside. */
static void add_regions(struct operands *o, int t, int64_t n, int64_t items)
{
    struct tensor *rois = operands_add(o, types[t], 2, (const int64_t[]){n, 4});
    for (int64_t i = 0; i < 4 * n; i++)
        dtype_store_double(types[t], (char *)rois->data + (size_t)i * tssa_dtype_size(types[t]),
                           (double)random_int(&o->random, -20, 300) / 16);
    int64_t *of = operands_add(o, TSSA_INT64, 1, &n)->data;
    for (int64_t i = 0; i < n; i++)
        of[i] = random_int(&o->random, 0, items - 1);
}

static void test_roi_align(void **state)
{
    struct operands o;
    operands_open(&o, 95);
    for (int i = 0; i < ROUNDS / 2; i++) {
        struct grids_run run;
        const int64_t dims[] = {random_int(&o.random, 1, 3), random_int(&o.random, 1, 5),
                                random_int(&o.random, 1, 17), random_int(&o.random, 1, 17)};
        open_roi_align(&run, *state, &o.random, i % 2);
        operands_add_numbers(&o, types[i % 2], 4, dims);
        add_regions(&o, i % 2, random_int(&o.random, 0, 9), dims[0]);
        grids_run_same(&run, o.given);
        operands_clear(&o);
        grids_run_close(&run);
    }
}

/* Of no item, or without an end. */
static void test_regions_that_are_wrong(void **state)
{
    for (int i = 0; i < 3; i++) {
        struct operands o;
        struct grids_run run;
        operands_open(&o, 97);
        open_roi_align(&run, *state, &o.random, 0);
        operands_add_numbers(&o, TSSA_FLOAT, 4, (const int64_t[]){2, 2, 5, 5});
        add_regions(&o, 0, 4, 2);
        if (i == 2)
            ((float *)o.values[1].tensor.data)[5] = INFINITY;
        else
            ((int64_t *)o.values[2].tensor.data)[1] = i ? 2 : -1;
        tssa_status *status = grids_run_try(&run, o.given);
        assert_int_equal(tssa_status_code(status), TSSA_RUNTIME);
        tssa_status_free(status);
        operands_clear(&o);
        grids_run_close(&run);
    }
}

/* ---- GridSample ------------------------------------------------------------------------------ */

/* Of which modes, paddings and corners take turns. */
static void open_grid_sample(struct grids_run *run, const char *device, int i, int rank,
                             const char *type, const char *grid)
{
    static const char *const modes[] = {"nearest", "linear", "cubic"};
    static const char *const paddings[] = {"zeros", "border", "reflection"};
    char program[900], x[60], g[60];
    snprintf(program, sizeof program,
             "graph @g opset(\"\": 20) ir_version(9) (%%x: %s%s, %%g: %s%s) -> (%%y) {\n"
             "  %%y = GridSample@20(%%x, %%g) {mode = \"%s\", padding_mode = \"%s\", "
             "align_corners = %d}\n"
             "  return(%%y)\n"
             "}\n",
             type, dims_text(x, sizeof x, 'X', rank + 2), grid,
             dims_text(g, sizeof g, 'G', rank + 2), modes[i % 3], paddings[i / 3 % 3], i / 9 % 2);
    grids_run_open(run, device, program);
}

/* Points within and beyond the grid, at times far from it, or nowhere. */
static void add_points(struct operands *o, tssa_dtype dtype, int rank, const int64_t *dims)
{
    struct tensor *points = operands_add(o, dtype, rank, dims);
    static const double odd[] = {1, -1, 0, -0.0, 1e30, -1e6, INFINITY, -INFINITY, NAN};
    for (size_t i = 0; i < tensor_count(points); i++)
        dtype_store_double(dtype, (char *)points->data + i * tssa_dtype_size(dtype),
                           random_chance(&o->random, 10)
                               ? odd[random_int(&o->random, 0, 8)]
                               : (double)random_int(&o->random, -3500, 3500) / 1024);
}

static void sample_once(const char *device, struct operands *o, int i, int rank, int64_t channels,
                        int64_t most)
{
    struct grids_run run;
    const int t = i % 4, of_grid = random_chance(&o->random, 50) ? t : i / 4 % 2;
    int64_t x[MOST_AXES + 2] = {random_int(&o->random, 1, 3), channels},
                          grid[MOST_AXES + 2] = {x[0]};
    for (int axis = 0; axis < rank; axis++) {
        x[2 + axis] = random_int(&o->random, 1, 9);
        grid[1 + axis] = random_int(&o->random, 1, most);
    }
    grid[1 + rank] = rank;
    open_grid_sample(&run, device, i, rank, names[t], names[of_grid]);
    operands_add_numbers(o, types[t], rank + 2, x);
    add_points(o, types[of_grid], rank + 2, grid);
    grids_run_same(&run, o->given);
    operands_clear(o);
    grids_run_close(&run);
}

static void test_grid_sample(void **state)
{
    struct operands o;
    operands_open(&o, 99);
    for (int i = 0; i < ROUNDS; i++)
        sample_once(*state, &o, i, i / 4 % MOST_AXES + 1, random_int(&o.random, 1, 9), 7);
    /* enough points for several channels a thread, the last of which has fewer */
    sample_once(*state, &o, 1, 2, 5, 400);
    sample_once(*state, &o, 2, 2, 7, 300);
}

/* Another batch, points of too few coordinates, nothing to sample from. */
static void test_grids_that_are_wrong(void **state)
{
    static const int64_t grids[][4] = {{3, 2, 2, 2}, {2, 2, 2, 3}, {2, 2, 2, 2}};
    for (int i = 0; i < 3; i++) {
        struct operands o;
        struct grids_run run;
        operands_open(&o, 101);
        open_grid_sample(&run, *state, 1, 2, "f32", "f32");
        operands_add_numbers(&o, TSSA_FLOAT, 4, (const int64_t[]){2, 1, i == 2 ? 0 : 4, 4});
        operands_add_numbers(&o, TSSA_FLOAT, 4, grids[i]);
        tssa_status *status = grids_run_try(&run, o.given);
        assert_int_equal(tssa_status_code(status), TSSA_RUNTIME);
        tssa_status_free(status);
        operands_clear(&o);
        grids_run_close(&run);
    }
}

/* ---------------------------------------------------------------------------------------------- */

#define OF_DEVICE(test) cmocka_unit_test_prestate(test, (void *)device)

static int run_on(const char *device)
{
    const struct CMUnitTest tests[] = {
        OF_DEVICE(test_conv),         OF_DEVICE(test_conv_transpose),
        OF_DEVICE(test_each_text),    OF_DEVICE(test_odd_convolutions),
        OF_DEVICE(test_what_follows), OF_DEVICE(test_max_pool),
        OF_DEVICE(test_average_pool), OF_DEVICE(test_global_pools),
        OF_DEVICE(test_resize),       OF_DEVICE(test_resize_of_others),
        OF_DEVICE(test_roi_align),    OF_DEVICE(test_regions_that_are_wrong),
        OF_DEVICE(test_grid_sample),  OF_DEVICE(test_grids_that_are_wrong)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}

int main(void)
{
    return grids_run_on_each(run_on);
}
