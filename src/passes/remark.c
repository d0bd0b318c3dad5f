/* SPDX-License-Identifier: Apache-2.0 */
/* Remarks: what passes tell the user. */
#include <stdarg.h>

#include "passes/pass.h"

tssa_status *pass_remark(const struct pass_context *pass, tssa_remark_kind kind,
                         const struct ir_op *op, const char *format, ...)
{
    struct text text;
    char description[128];
    va_list arguments;
    if (!pass->options || !pass->options->remark)
        return NULL;
    text_init(&text, pass->graph->allocator);
    va_start(arguments, format);
    text_vprintf(&text, format, arguments);
    va_end(arguments);
    const char *message = text_string(&text);
    ir_op_describe(op, description, sizeof description);
    if (message)
        pass->options->remark(pass->options->remark_user, &(tssa_remark){.kind = kind,
                                                                         .pass = pass->pass->name,
                                                                         .op = description,
                                                                         .message = message});
    text_free(&text);
    return message ? NULL : status_out_of_memory();
}
