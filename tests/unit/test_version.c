#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/version.h"

static void version_is_three_numbers(void **state) {
    (void)state;
    const char *s = version_string();
    int dots = 0;
    for (; *s; s++) {
        assert_true((*s >= '0' && *s <= '9') || *s == '.');
        dots += *s == '.';
    }
    assert_int_equal(dots, 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(version_is_three_numbers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
