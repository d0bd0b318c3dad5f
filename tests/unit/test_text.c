/* SPDX-License-Identifier: Apache-2.0 */
/* The text buffer and UTF-8. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "base/text.h"
#include "common/test_alloc.h"

static void grows_and_formats(void **state)
{
    (void)state;
    struct test_alloc alloc;
    test_alloc_init(&alloc);
    struct text text;
    text_init(&text, &alloc.allocator);
    assert_string_equal(text_string(&text), "");
    char expected[4000];
    int at = 0;
    for (int i = 0; i < 100; i++) {
        text_printf(&text, "%d,", i);
        at += sprintf(expected + at, "%d,", i);
    }
    text_puts(&text, "end");
    text_putc(&text, '.');
    text_append(&text, "\0x", 2);
    sprintf(expected + at, "end.");
    assert_string_equal(text_string(&text), expected);
    assert_int_equal(text.size, strlen(expected) + 2);
    text_clear(&text);
    text_printf(&text, "%1000d", 7); /* longer than the stack buffer */
    assert_int_equal(text.size, 1000);
    assert_int_equal(text.data[999], '7');
    assert_false(text.failed);
    text_free(&text);
    assert_int_equal(alloc.live, 0);
}

static void failure_is_sticky(void **state)
{
    (void)state;
    struct test_alloc alloc;
    test_alloc_init(&alloc);
    struct text text;
    text_init(&text, &alloc.allocator);
    text_puts(&text, "kept");
    alloc.fail_at = alloc.count;
    text_printf(&text, "%2000d", 1);
    assert_true(text.failed);
    text_puts(&text, "more");
    assert_int_equal(text.size, 4);
    assert_null(text_string(&text));
    text_clear(&text);
    text_puts(&text, "again");
    assert_string_equal(text_string(&text), "again");
    text_free(&text);
    assert_int_equal(alloc.live, 0);
}

/* An encoder to test the decoder with. */
static size_t encode(uint32_t c, unsigned char *s)
{
    if (c < 0x80) {
        s[0] = (unsigned char)c;
        return 1;
    }
    size_t length = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = length - 1; i > 0; i--, c >>= 6)
        s[i] = (unsigned char)(0x80 | (c & 0x3f));
    s[0] = (unsigned char)((0xf0 << (4 - length) & 0xff) | c);
    return length;
}

static void every_code_point(void **state)
{
    (void)state;
    for (uint32_t c = 0; c < 0x120000; c++) {
        unsigned char s[4];
        size_t length = encode(c, s);
        int valid = (c < 0xd800 || c > 0xdfff) && c <= 0x10ffff;
        assert_int_equal(utf8_length(s, length), valid ? length : 0);
        for (size_t cut = 1; cut < length; cut++)
            assert_int_equal(utf8_length(s, cut), 0);
    }
}

static void invalid_forms(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "\x80", "\xc0\x80", "\xc1\xbf", "\xe0\x9f\xbf", "\xf0\x8f\xbf\xbf", "\xf5\x80\x80\x80",
        "\xff", "a\xc3",    "\xe2\x82", "\xe2\x28\xa1", "\xc3\xc3"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(utf8_valid(bad[i], strlen(bad[i])));
    assert_true(utf8_valid("", 0));
    assert_true(utf8_valid("\0a\xc3\xa4", 4));
}

static void cuts_between_characters(void **state)
{
    (void)state;
    const char *s = "a\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"; /* 1 + 2 + 3 + 4 bytes */
    static const size_t expected[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 10};
    for (size_t limit = 0; limit < 12; limit++)
        assert_int_equal(utf8_cut(s, 10, limit), expected[limit]);
    assert_int_equal(utf8_cut("\x80\x80\x80\x80\x80\x80", 6, 5), 5); /* not UTF-8: no cut to find */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grows_and_formats),       cmocka_unit_test(failure_is_sticky),
        cmocka_unit_test(every_code_point),        cmocka_unit_test(invalid_forms),
        cmocka_unit_test(cuts_between_characters),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
