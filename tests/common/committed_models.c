/* SPDX-License-Identifier: Apache-2.0 */
#include "common/committed_models.h"

#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define FOLDER TSSA_SOURCE_DIR "/models/"

int committed_models_test(void (*test)(void **state))
{
    glob_t models;
    if (glob(FOLDER "*/model.onnx", 0, NULL, &models) != 0) {
        fprintf(stderr, "no committed models\n");
        return 1;
    }
    struct CMUnitTest *tests = calloc(models.gl_pathc, sizeof *tests);
    if (!tests)
        return 1;
    for (size_t i = 0; i < models.gl_pathc; i++)
        tests[i] = (struct CMUnitTest){.name = models.gl_pathv[i] + strlen(FOLDER),
                                       .test_func = test,
                                       .initial_state = models.gl_pathv[i]};
    int failed = _cmocka_run_group_tests("models", tests, models.gl_pathc, NULL, NULL);
    free(tests);
    globfree(&models);
    return failed;
}
