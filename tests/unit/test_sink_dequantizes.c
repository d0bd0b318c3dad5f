/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random chains of what quantizes, dequantizes and moves, with one scale or several, and other
 * readers in between: the bits are the same once bytes are moved, and pairs are gone where one
 * scale goes through.
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

#define PASSES "infer sink_dequantizes infer dead_code"
#define ROUNDS 150

/* The last ones are beyond what is exact. */
static const char *const scales[] = {"0.016", "0.0078125", "3.3", "-0.02",
                                     "1e-37", "1e-45",     "1e38"};

struct chain {
    struct random random;
    struct text text;
    int value; /* the last one, of floats */
    int scale; /* most scales are this one */
    const char *type;
};

static int new_value(struct chain *c)
{
    return ++c->value;
}

static int some_scale(struct chain *c)
{
    return random_chance(&c->random, 80) ? c->scale : (int)random_int(&c->random, 0, 6);
}

static void add_pair(struct chain *c)
{
    const int x = c->value, zero = random_chance(&c->random, 85) ? 0 : 1;
    text_printf(&c->text, "  %%v%d = QuantizeLinear(%%v%d, %%s%d, %%z%d)\n", x + 1, x,
                some_scale(c), zero);
    text_printf(&c->text, "  %%v%d = DequantizeLinear(%%v%d, %%s%d, %%z%d)\n", x + 2, x + 1,
                some_scale(c), zero);
    c->value += 2;
}

/* Shapes go back and forth between [4, 6] and [6, 4]. */
static void add_movement(struct chain *c, bool *turned)
{
    const int x = c->value, y = new_value(c);
    switch (random_int(&c->random, 0, 4)) {
    case 0:
        text_printf(&c->text, "  %%v%d = Transpose(%%v%d) {perm = [1, 0]}\n", y, x);
        *turned = !*turned;
        break;
    case 1:
        text_printf(&c->text, "  %%v%d = Reshape(%%v%d, %%shape%d)\n", y, x, !*turned);
        *turned = !*turned;
        break;
    case 2:
        text_printf(&c->text, "  %%v%d = access(%%v%d) {rule = [slice(0, 0, %d, 1)]}\n", y, x,
                    *turned ? 6 : 4);
        break;
    case 3:
        text_printf(&c->text,
                    "  %%v%d = access(%%v%d) {rule = [unsqueeze(0)]}\n"
                    "  %%v%d = MaxPool(%%v%d) {kernel_shape = [3], pads = [1, %d]}\n"
                    "  %%v%d = access(%%v%d) {rule = [squeeze(0), slice(1, 0, %d, 1)]}\n",
                    y, x, y + 1, y, (int)random_int(&c->random, 1, 3), y + 2, y + 1,
                    *turned ? 4 : 6);
        c->value += 2;
        break;
    default:
        text_printf(&c->text, "  %%v%d = Gather(%%v%d, %%rows%d) {axis = 0}\n", y, x, *turned);
    }
}

static void make_chain(struct chain *c)
{
    const bool is_signed = random_chance(&c->random, 50);
    bool turned = false;
    c->scale = (int)random_int(&c->random, 0, random_chance(&c->random, 80) ? 3 : 6);
    c->type = is_signed ? "i8" : "u8";
    c->value = 0;
    text_puts(&c->text, "graph (%v0: f32[4, 6]) -> (%y as \"y\", %w as \"w\") {\n");
    for (int i = 0; i < 7; i++)
        text_printf(&c->text, "  %%s%d = Constant() {value = f32[] %s}\n", i, scales[i]);
    text_printf(&c->text,
                "  %%z0 = Constant() {value = %s[] %d}\n  %%z1 = Constant() {value = %s[] 5}\n"
                "  %%shape0 = Constant() {value = i64[2] [4, 6]}\n"
                "  %%shape1 = Constant() {value = i64[2] [6, 4]}\n"
                "  %%rows0 = Constant() {value = i64[4] [3, 1, 1, 0]}\n"
                "  %%rows1 = Constant() {value = i64[6] [5, 3, 1, 1, 0, 2]}\n",
                c->type, is_signed ? -7 : 100, c->type);
    /* bytes of all values, whatever the scale of the chain */
    text_printf(&c->text,
                "  %%v1 = QuantizeLinear(%%v0, %%s0, %%z0)\n"
                "  %%v2 = DequantizeLinear(%%v1, %%s%d, %%z0)\n",
                c->scale);
    c->value = 2;
    const int other = random_chance(&c->random, 40) ? 2 : 0; /* read again in the end */
    for (int i = (int)random_int(&c->random, 1, 6); i > 0; i--)
        if (random_chance(&c->random, 60))
            add_movement(c, &turned);
        else
            add_pair(c);
    text_printf(&c->text, "  %%y = QuantizeLinear(%%v%d, %%s%d, %%z0)\n  %%w = Neg(%%v%d)\n",
                c->value, some_scale(c), other);
    text_puts(&c->text, "  return(%y, %w)\n}\n");
}

static void test_chains(void **state)
{
    struct chain c = {.random = {7}};
    int pairs = 0, left = 0;
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        struct rewrite_check check = {
            .passes = PASSES, .seed = 1 + (uint64_t)i, .target = TSSA_TARGET_SESSION};
        text_init(&c.text, &allocator_default);
        make_chain(&c);
        check.text = text_string(&c.text);
        assert_true(rewrite_check(&check));
        left += rewrite_count_of(&check, "QuantizeLinear");
        check.passes = "infer dead_code";
        pairs += rewrite_count_of(&check, "QuantizeLinear");
        text_free(&c.text);
    }
    assert_in_range(left, pairs / 4, pairs * 4 / 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_chains)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
