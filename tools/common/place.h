/* SPDX-License-Identifier: Apache-2.0 */
/* Where a tool is to write: what would only be found out after minutes of work. */
#ifndef TSSA_TOOLS_PLACE_H
#define TSSA_TOOLS_PLACE_H

#include "tools/common/arguments.h"

/* Can a file be put there? EXIT_OK, or EXIT_FILE after a line on standard error. NULL is EXIT_OK;
 * so is what exists and is no plain file (/dev/stdout, a pipe). Nothing is changed. */
enum exit_code place_check_file(const char *path);
/* The same for files in a folder, which may have to be made. */
enum exit_code place_check_folder(const char *path);

#endif
