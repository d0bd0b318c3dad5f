/* SPDX-License-Identifier: Apache-2.0 */
#include "common/opencl_c.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "common/process.h"

static struct process_result compile(const char *path)
{
    static const struct process_limits limits = {.seconds = 60};
    const char *const command[] = {"/usr/bin/env",
                                   "clang",
                                   "-x",
                                   "cl",
                                   "-cl-std=CL1.2",
                                   "-Xclang",
                                   "-finclude-default-header",
                                   "-fsyntax-only",
                                   "-pedantic-errors",
                                   path,
                                   NULL};
    return process_run(command, NULL, NULL, &limits);
}

static struct process_result compile_text(const char *text)
{
    char path[] = "/tmp/tssa_opencl_XXXXXX";
    const int file = mkstemp(path);
    assert_true(file >= 0);
    assert_int_equal(write(file, text, strlen(text)), strlen(text));
    close(file);
    const struct process_result result = compile(path);
    unlink(path);
    return result;
}

/* It may be there without the declarations of OpenCL's functions. */
static bool is_there(void)
{
    struct process_result result =
        compile_text("__kernel void k(__global float *x) { x[0] = sqrt(x[get_group_id(0)]); }\n");
    const bool good = result.status == 0;
    process_result_free(&result);
    return good;
}

bool opencl_c_check(const char *text)
{
    if (!is_there())
        return false;
    struct process_result result = compile_text(text);
    if (result.status)
        fail_msg("%.2000s", result.err);
    process_result_free(&result);
    return true;
}
