/* SPDX-License-Identifier: Apache-2.0 */
/* What a model takes, gives and consists of, on standard output. */
#ifndef TSSA_TOOLS_INSPECT_H
#define TSSA_TOOLS_INSPECT_H

#include "tssa.h"

/* Versions, inputs and outputs. */
tssa_status *inspect_signature(const tssa_model *model);
/* These, and the operators. */
tssa_status *inspect_model(const tssa_model *model);

#endif
