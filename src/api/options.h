/* SPDX-License-Identifier: Apache-2.0 */
/* The options structs of tssa.h, which callers may have been compiled with an older or a newer form
 * of. */
#ifndef TSSA_API_OPTIONS_H
#define TSSA_API_OPTIONS_H

#include <stddef.h>

#include "base/status.h"

/*
 * Copies the caller's options (NULL: the defaults) to `out`, a struct of `known` bytes that begins
 * with its struct_size. What an older caller does not have is zero. TSSA_INVALID_ARGUMENT when a
 * newer one sets what this library does not know, or when struct_size was forgotten; `type` is for
 * the message.
 */
tssa_status *options_read(const char *type, const void *given, size_t known, void *out);

#define OPTIONS_READ(type, given, out)                                                             \
    options_read(#type, 1 ? (given) : (type *)(out), sizeof(type), out)

#endif
