/* SPDX-License-Identifier: Apache-2.0 */
/* How names and string literals are spelled in the text form of the IR. */
#ifndef TSSA_IR_QUOTE_H
#define TSSA_IR_QUOTE_H

#include <stdbool.h>

#include "base/text.h"

/* [A-Za-z_][A-Za-z0-9_]* */
bool ir_is_identifier(const char *text);
/* "..." with \" \\ \n \r \t, and \xHH for other control characters and for bytes that are not
 * UTF-8. */
void ir_print_quoted(struct text *text, const void *data, size_t size);
/* An identifier as it is, anything else quoted. */
void ir_print_name(struct text *text, const char *name);

#endif
