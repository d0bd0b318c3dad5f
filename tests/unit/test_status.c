/* SPDX-License-Identifier: Apache-2.0 */
/* Statuses: text, escaping, cutting, prefixes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "base/text.h"

static void null_is_success(void **state)
{
    (void)state;
    assert_int_equal(tssa_status_code(NULL), TSSA_OK);
    assert_string_equal(tssa_status_message(NULL), "");
    assert_string_equal(tssa_status_location(NULL), "");
    tssa_status_free(NULL);
    assert_null(status_prefix(NULL, "node %d", 1));
}

static void carries_code_text_and_place(void **state)
{
    (void)state;
    tssa_status *s = status_make(TSSA_MALFORMED, "src/x.c", 42, "bad %s %d", "dim", -1);
    assert_int_equal(tssa_status_code(s), TSSA_MALFORMED);
    assert_string_equal(tssa_status_message(s), "bad dim -1");
    assert_string_equal(tssa_status_location(s), "src/x.c:42");
    tssa_status_free(s);

    s = ERROR(TSSA_LIMIT, "no arguments");
    assert_int_equal(tssa_status_code(s), TSSA_LIMIT);
    assert_non_null(strstr(tssa_status_location(s), "test_status.c:"));
    tssa_status_free(s);
}

static void check_escape(const char *in, const char *out)
{
    tssa_status *s = ERROR(TSSA_MALFORMED, "%s", in);
    assert_string_equal(tssa_status_message(s), out);
    tssa_status_free(s);
}

static void escapes_what_is_not_text(void **state)
{
    (void)state;
    check_escape("a\nb\tc\x7f", "a\\x0ab\\x09c\\x7f");
    check_escape("\x1b[31m", "\\x1b[31m");
    check_escape("gpu_0/\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80",
                 "gpu_0/\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80");
    check_escape("\xc2\x85"
                 "x",
                 "\\xc2\\x85x"); /* next line, U+0085 */
    check_escape("\xe2\x80\xa8"
                 "x",
                 "\\xe2\\x80\\xa8x");             /* line separator, U+2028 */
    check_escape("\xe2\x80\xa6", "\xe2\x80\xa6"); /* an ellipsis stays */
    check_escape("\xff"
                 "a\xc3",
                 "\\xffa\\xc3"); /* not UTF-8 */
    check_escape("100% \\x41", "100% \\x41");
}

static void cuts_on_a_character(void **state)
{
    (void)state;
    /* Every alignment of a long run of 2-, 3- and 4-byte characters against the limit. */
    static const char *const characters[] = {"x", "\xc3\xa4", "\xe2\x82\xac", "\xf0\x9f\x98\x80",
                                             "\n"};
    for (size_t c = 0; c < sizeof characters / sizeof *characters; c++) {
        for (int shift = 0; shift < 5; shift++) {
            char text[8000] = "";
            memset(text, 'a', (size_t)shift);
            size_t width = strlen(characters[c]);
            for (size_t i = 0; i < 1200; i++)
                memcpy(text + (size_t)shift + i * width, characters[c], width);
            tssa_status *s = ERROR(TSSA_MALFORMED, "%s", text);
            const char *message = tssa_status_message(s);
            size_t size = strlen(message);
            assert_true(size <= 1024 && size > 1024 - 8);
            assert_true(utf8_valid(message, size));
            assert_string_equal(message + size - 3, "...");
            assert_null(strchr(message, '\n'));
            tssa_status_free(s);
        }
    }
}

static void short_messages_are_whole(void **state)
{
    (void)state;
    char text[1022];
    memset(text, 'b', 1021);
    text[1021] = '\0';
    tssa_status *s = ERROR(TSSA_IO, "%s", text);
    assert_string_equal(tssa_status_message(s), text);
    tssa_status_free(s);
}

static void prefixes_stack(void **state)
{
    (void)state;
    tssa_status *s = status_make(TSSA_RUNTIME, "k.c", 7, "index 5 is out of range");
    s = status_prefix(s, "Gather '%s'", "n\n1");
    s = status_prefix(s, "graph %d", 2);
    assert_int_equal(tssa_status_code(s), TSSA_RUNTIME);
    assert_string_equal(tssa_status_message(s),
                        "graph 2: Gather 'n\\x0a1': index 5 is out of range");
    assert_string_equal(tssa_status_location(s), "k.c:7");
    tssa_status_free(s);
}

static void many_prefixes_stay_bounded(void **state)
{
    (void)state;
    tssa_status *s = ERROR(TSSA_RUNTIME, "deep");
    for (int i = 0; i < 300; i++) {
        s = status_prefix(s, "block %d", i);
        size_t size = strlen(tssa_status_message(s));
        assert_true(size <= 1024);
    }
    assert_memory_equal(tssa_status_message(s), "block 299: block 298: ", 22);
    /* A prefix as long as a message hides what follows, but overflows nothing. */
    char text[3000];
    memset(text, 'p', sizeof text);
    s = status_prefix(s, "%.*s", (int)sizeof text, text);
    assert_int_equal(strlen(tssa_status_message(s)), 1024);
    tssa_status_free(s);
}

static void out_of_memory_is_shared(void **state)
{
    (void)state;
    tssa_status *s = status_out_of_memory();
    assert_ptr_equal(s, status_out_of_memory());
    tssa_status_free(s);
    tssa_status_free(s);
    assert_int_equal(tssa_status_code(s), TSSA_OUT_OF_MEMORY);
    assert_string_equal(tssa_status_message(s), "out of memory");
    tssa_status *p = status_prefix(s, "Conv");
    assert_string_equal(tssa_status_message(p), "Conv: out of memory");
    assert_int_equal(tssa_status_code(p), TSSA_OUT_OF_MEMORY);
    tssa_status_free(p);
}

static tssa_status *fails(int n)
{
    return n ? ERROR(TSSA_IO, "%d", n) : NULL;
}

static tssa_status *tries(int n, int *reached)
{
    TRY(fails(n));
    *reached = 1;
    return NULL;
}

static tssa_status *tries_goto(int n, int *cleaned)
{
    tssa_status *status;
    TRY_GOTO(status, fails(n), out);
    status = NULL;
out:
    *cleaned += 1;
    return status;
}

static tssa_status *needs(const void *pointer)
{
    TRY_ALLOC(pointer);
    return NULL;
}

static void macros_return_early(void **state)
{
    (void)state;
    int reached = 0, cleaned = 0;
    tssa_status *s = tries(3, &reached);
    assert_non_null(s);
    assert_int_equal(reached, 0);
    tssa_status_free(s);
    assert_null(tries(0, &reached));
    assert_int_equal(reached, 1);
    s = tries_goto(3, &cleaned);
    assert_string_equal(tssa_status_message(s), "3");
    tssa_status_free(s);
    assert_null(tries_goto(0, &cleaned));
    assert_int_equal(cleaned, 2);
    assert_ptr_equal(needs(NULL), status_out_of_memory());
    assert_null(needs(&cleaned));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(null_is_success),
        cmocka_unit_test(carries_code_text_and_place),
        cmocka_unit_test(escapes_what_is_not_text),
        cmocka_unit_test(cuts_on_a_character),
        cmocka_unit_test(short_messages_are_whole),
        cmocka_unit_test(prefixes_stack),
        cmocka_unit_test(many_prefixes_stay_bounded),
        cmocka_unit_test(out_of_memory_is_shared),
        cmocka_unit_test(macros_return_early),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
