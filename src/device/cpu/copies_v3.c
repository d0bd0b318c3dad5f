/* SPDX-License-Identifier: Apache-2.0 */
#define COPIES_V3
#define COPIES_IN cpu_copies_in_v3
#define COPIES_OUT cpu_copies_out_v3
#include "device/cpu/copies_loops.h"
