/* SPDX-License-Identifier: Apache-2.0 */
#define COPIES_IN cpu_copies_in_base
#define COPIES_OUT cpu_copies_out_base
#include "device/cpu/copies_loops.h"
