/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random convolutions of bytes, of images with zero points, with and without a bias, groups, zero
 * points of weights and pads: the bits are the same once zero points are in biases, and where
 * nothing is padded they are.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/text.h"
#include "common/op_run.h"
#include "common/rewrite_check.h"

#define PASSES "infer fold_zeros infer dead_code"
#define ROUNDS 200

struct conv {
    int64_t groups, in, out, kernel; /* channels of all groups; both sides of the kernel */
    bool signed_x, signed_w, biased, padded, turned;
};

static int64_t pick(struct random *random, int64_t low, int64_t high)
{
    return random_int(random, low, high);
}

static struct conv pick_conv(struct random *random)
{
    struct conv c = {.groups = pick(random, 1, 3),
                     .kernel = pick(random, 1, 3),
                     .signed_x = random_chance(random, 50),
                     .signed_w = random_chance(random, 70),
                     .biased = random_chance(random, 50),
                     .padded = random_chance(random, 25),
                     .turned = random_chance(random, 25)};
    if (c.turned) {
        c.groups = c.kernel = 1;
        c.padded = false;
    }
    c.in = c.groups * pick(random, 1, 4);
    c.out = c.groups * pick(random, 1, 3);
    return c;
}

/* A list of bytes, or for `wide` of larger integers. */
static void write_numbers(struct random *random, struct text *text, int64_t n, bool is_signed,
                          bool wide)
{
    const int64_t low = wide ? -5000 : is_signed ? -128 : 0, high = wide ? 5000 : low + 255;
    for (int64_t i = 0; i < n; i++)
        text_printf(text, "%s%d", i ? ", " : "", (int)pick(random, low, high));
}

static void write_weights(struct random *random, struct text *text, const struct conv *c)
{
    const char *type = c->signed_w ? "i8" : "u8";
    const int64_t from = c->turned ? c->in : c->out, to = c->turned ? c->out : c->in / c->groups;
    text_printf(text, "  %%w = Constant() {value = %s[%d, %d, %d, %d] [", type, (int)from, (int)to,
                (int)c->kernel, (int)c->kernel);
    write_numbers(random, text, from * to * c->kernel * c->kernel, c->signed_w, false);
    const bool each = random_chance(random, 50);
    if (each)
        text_printf(text, "]}\n  %%wz = Constant() {value = %s[%d] [", type, (int)c->out);
    else
        text_printf(text, "]}\n  %%wz = Constant() {value = %s[] ", type);
    write_numbers(random, text, each ? c->out : 1, c->signed_w, false);
    text_puts(text, each ? "]}\n" : "}\n");
}

static void write_program(struct random *random, struct text *text, const struct conv *c)
{
    const char *type = c->signed_x ? "i8" : "u8";
    const int pad = c->padded ? 1 : 0, size = (int)c->kernel + 2;
    if (c->turned)
        text_printf(text, "graph (%%x: %s[1, %d, %d, %d]) -> (%%y as \"y\") {\n", type, size, size,
                    (int)c->in);
    else
        text_printf(text, "graph (%%x: %s[1, %d, %d, %d]) -> (%%y as \"y\") {\n", type, (int)c->in,
                    size, size);
    text_printf(text,
                "  %%s = Constant() {value = f32[] 0.03}\n"
                "  %%xz = Constant() {value = %s[] %d}\n  %%yz = Constant() {value = u8[] 90}\n",
                type, (int)pick(random, c->signed_x ? -128 : 1, c->signed_x ? -1 : 255));
    write_weights(random, text, c);
    if (c->biased) {
        text_printf(text, "  %%b = Constant() {value = i32[%d] [", (int)c->out);
        write_numbers(random, text, c->out, true, true);
        text_puts(text, "]}\n");
    }
    text_printf(text,
                "  %%y = QLinearConv(%%x, %%s, %%xz, %%w, %%s, %%wz, %%s, %%yz%s) {group = %d, "
                "pads = [%d, %d, %d, %d]%s}\n  return(%%y)\n}\n",
                c->biased ? ", %b" : "", (int)c->groups, pad, pad, pad, pad,
                c->turned ? ", channels_last = 1, weights_turned = 1" : "");
}

static void test_convolutions(void **state)
{
    struct random random = {7};
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        const struct conv c = pick_conv(&random);
        struct rewrite_check check = {.passes = PASSES,
                                      .seed = 1 + (uint64_t)i,
                                      .target = TSSA_TARGET_SESSION,
                                      .any_bytes = true};
        struct text text;
        text_init(&text, &allocator_default);
        write_program(&random, &text, &c);
        check.text = text_string(&text);
        assert_true(rewrite_check(&check));
        /* Its zero point is 0 then. */
        assert_int_equal(rewrite_count_of(&check, c.signed_x ? "i8[] 0" : "u8[] 0"), !c.padded);
        text_free(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_convolutions)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
