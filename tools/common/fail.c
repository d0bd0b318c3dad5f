/* SPDX-License-Identifier: Apache-2.0 */
#include "tools/common/fail.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "tools/common/progress.h"

enum exit_code fail(enum exit_code code, tssa_status *status)
{
    progress_done();
    if (tssa_status_code(status) == TSSA_UNSUPPORTED && code != EXIT_FILE)
        code = EXIT_UNSUPPORTED;
    if (tssa_status_code(status) == TSSA_IO && code == EXIT_RUN)
        code = EXIT_FILE;
    complain("%s%s", tssa_status_message(status),
             tssa_status_code(status) == TSSA_INTERNAL ? " (this is a bug in tssa)" : "");
    tssa_status_free(status);
    return code;
}

enum exit_code end_output(enum exit_code code)
{
    if (fflush(stdout) == 0 && !ferror(stdout))
        return code;
    complain("cannot write to standard output: %s", strerror(errno));
    return EXIT_FILE;
}
