/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/cli.h"

#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "common/xmalloc.h"

const struct process_limits cli_limits = {.seconds = 60};

static size_t count_lines(const char *text)
{
    size_t lines = 0;
    for (; *text; text++)
        lines += *text == '\n';
    return lines;
}

void cli_expect_good(struct process_result result, const char *part)
{
    if (result.status != 0 || !strstr(result.out, part))
        print_error("status %d\n%s%s", result.status, result.out, result.err);
    assert_int_equal(result.status, 0);
    assert_non_null(strstr(result.out, part));
    process_result_free(&result);
}

void cli_expect_refused(struct process_result result, const char *name, int status,
                        const char *part)
{
    char *start = xprintf("%s: ", name);
    process_drop_announcements(&result);
    if (result.status != status || count_lines(result.err) != 1 || !strstr(result.err, part))
        print_error("status %d\n%s%s", result.status, result.out, result.err);
    assert_int_equal(result.status, status);
    assert_int_equal(count_lines(result.err), 1);
    assert_true(strncmp(result.err, start, strlen(start)) == 0);
    assert_non_null(strstr(result.err, part));
    process_result_free(&result);
    free(start);
}

void cli_expect_damaged_refused(const char *tool, const char *name, const char *model,
                                const char *folder)
{
    char *path = xprintf("%s/damaged.onnx", folder);
    struct file_map map;
    assert_null(file_write(&allocator_default, path, "", 0));
    cli_expect_refused(CLI_RUN(tool, path), name, 3, "damaged.onnx");
    assert_null(file_map_open(model, &map));
    for (size_t size = 1; size < map.size; size += map.size / 7) {
        assert_null(file_write(&allocator_default, path, map.data, size));
        cli_expect_refused(CLI_RUN(tool, path), name, 3, "damaged.onnx");
    }
    file_map_close(&map);
    free(path);
}

int cli_make_folder(void **state)
{
    *state = temporary_folder();
    return 0;
}

int cli_remove_folder(void **state)
{
    remove_folder(*state);
    return 0;
}
