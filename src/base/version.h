/* SPDX-License-Identifier: Apache-2.0 */
/* The version of the library: the public header's, as text. */
#ifndef TSSA_BASE_VERSION_H
#define TSSA_BASE_VERSION_H

const char *version_string(void);

#endif
