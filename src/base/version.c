/* SPDX-License-Identifier: Apache-2.0 */
#include "base/version.h"

#include "tssa.h"

const char *version_string(void) {
    return TSSA_VERSION;
}
