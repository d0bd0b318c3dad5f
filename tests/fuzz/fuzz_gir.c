/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a kernel: what gir_check accepts has text, and has it twice. */
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "gir/gir.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    void *bytes = malloc(size ? size : 1); /* aligned */
    struct text text;
    if (!bytes)
        return 0;
    memcpy(bytes, data, size);
    tssa_status *status = gir_check(bytes, size);
    text_init(&text, &allocator_default);
    if (!status && !gir_print(bytes, &text))
        abort();
    text_free(&text);
    tssa_status_free(status);
    free(bytes);
    return 0;
}
