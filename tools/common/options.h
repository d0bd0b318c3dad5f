/* SPDX-License-Identifier: Apache-2.0 */
/* What options that several tools have are called and say: rows of argp's tables, for a group of the tool's own. */
#ifndef TSSA_TOOLS_OPTIONS_H
#define TSSA_TOOLS_OPTIONS_H

#include <argp.h>

#include "tools/common/arguments.h"

#define OPTION_INPUT(group)                                                                        \
    {                                                                                              \
        "input", 'i', "NAME=FILE", OPTION_AGAIN,                                                   \
            "Read an input from a .pb, .npy or .npz file. FILE.npz alone feeds its arrays to the " \
            "inputs "                                                                              \
            "of their names",                                                                      \
            group                                                                                  \
    }
#define OPTION_SHAPE(group)                                                                        \
    {                                                                                              \
        "shape", 's', "NAME:DIMS", OPTION_AGAIN, "Shape of a random input, as x:1x3x4 or x:1,3,4", \
            group                                                                                  \
    }
#define OPTION_DIM(group)                                                                          \
    {                                                                                              \
        "dim", KEY_DIM, "NAME=SIZE", OPTION_AGAIN, "Fix a symbolic dim of the model", group        \
    }
#define OPTION_SEED(group)                                                                         \
    {                                                                                              \
        "seed", KEY_SEED, "N", 0, "Seed of the random inputs (default 0)", group                   \
    }
#define OPTION_RTOL(group)                                                                         \
    {                                                                                              \
        "rtol", KEY_RTOL, "X", 0, "Relative tolerance (default 1e-3)", group                       \
    }
#define OPTION_ATOL(group)                                                                         \
    {                                                                                              \
        "atol", KEY_ATOL, "X", 0, "Absolute tolerance (default 1e-5)", group                       \
    }
/* Of tools that run a graph. */
#define OPTION_LEVEL(group)                                                                        \
    {                                                                                              \
        "optimize", 'O', "LEVEL", 0,                                                               \
            "0: run the graph as it is; 1: quick passes; 2, the default: all passes. No level "    \
            "changes "                                                                             \
            "bits of element-wise results",                                                        \
            group                                                                                  \
    }
#define OPTION_DEVICE(group)                                                                       \
    {                                                                                              \
        "device", KEY_DEVICE, "NAME", 0,                                                           \
            "Where to run (default cpu; a name that is none lists them all). null: nowhere, and "  \
            "what a "                                                                              \
            "device would have to do is counted",                                                  \
            group                                                                                  \
    }
#define OPTION_COMPILE(group)                                                                      \
    {                                                                                              \
        "compile", KEY_COMPILE, "WHEN", 0,                                                         \
            "Compile kernels of fused operators: wait, before the first run; background, while "   \
            "it runs without; off, the default. The bits are the same",                            \
            group                                                                                  \
    }
#define OPTION_KERNEL_CACHE(group)                                                                 \
    {                                                                                              \
        "kernel-cache", KEY_KERNEL_CACHE, "DIR", 0,                                                \
            "Where compiled kernels are kept for the next time (default $XDG_CACHE_HOME/tssa or "  \
            "~/.cache/tssa); off: nowhere",                                                        \
            group                                                                                  \
    }
#define OPTION_POISON(group)                                                                       \
    {                                                                                              \
        "poison", KEY_POISON, NULL, 0,                                                             \
            "Write over memory that nothing reads any more, to find what does; the bits are the "  \
            "same",                                                                                \
            group                                                                                  \
    }
#define OPTION_SHARE(group)                                                                        \
    {                                                                                              \
        "share", KEY_SHARE, "X", 0,                                                                \
            "On the device null: sizes that only data tells are this share of their bounds "       \
            "(default 1)",                                                                         \
            group                                                                                  \
    }
#define OPTION_MEMORY(group)                                                                       \
    {                                                                                              \
        "memory-limit", KEY_MEMORY, "MIB", 0,                                                      \
            "Most memory to take (default: what the machine has)", group                           \
    }
#define OPTION_LINKS(group)                                                                        \
    {                                                                                              \
        "allow-external-links", KEY_LINKS, NULL, 0, "Read external weights through links too",     \
            group                                                                                  \
    }

#endif
