/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a device's library (oneDNN, cuBLAS, cuDNN) is for the rest: a problem, which is plain data,
 * is made into a primitive once, and the primitive is run on operands many times. To make one may
 * compile code. A library may decline any problem; the kernel that asked then computes without it,
 * within the rounding of float sums.
 *
 * Primitives are immutable, and run by many threads at once. Steps keep theirs by problem
 * (device/library_cache.h).
 */
#ifndef TSSA_DEVICE_LIBRARY_H
#define TSSA_DEVICE_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/dtype.h"
#include "device/place.h"

struct device;
struct device_context;
struct device_stream;
struct ir_op;

/* ---- Problems -------------------------------------------------------------------------------- */

enum library_kind { LIBRARY_MATMUL, LIBRARY_CONV, LIBRARY_KINDS };

/* With AVX2, lines of a matrix that are a multiple of so many floats apart (2 KiB) fall into the
 * same few sets of a cache, and are copied for a product; who keeps a copy of a constant keeps them
 * so many further apart. */
#define LIBRARY_ALIASED 512
#define LIBRARY_FURTHER 16

/*
 * c[i][m][n] = a[i][m][k] * b[i][k][n] for i < batch; c is dense, row-major. Steps in elements; one
 * of 0 from batch to batch: the same matrix for all.
 */
struct matmul_problem {
    int64_t batch, m, n, k;
    int64_t a_batch, a_row, a_column, b_batch, b_row, b_column;
    /* 1: b is the same in every run, so that it may be wanted packed; else 0, and it never is. */
    int64_t b_constant;
    int64_t a_zero, b_zero; /* of 8-bit integers: what is subtracted from all elements */
    int64_t wide;           /* 1: of FLOAT16 and BFLOAT16: the result is FLOAT */
};

/*
 * What becomes of sums of bytes: (sum + bias) * factor of the output channel, as floats, rounded to
 * nearest even, + zero, in bytes that saturate. No sum is beyond `most`, with or without its bias,
 * which 32 bits hold; up to 2^24 floats hold all of them.
 */
struct library_quantizer {
    const float *factors;
    int64_t dtype, zero, most;
};

#define CONV_MAX_RANK 3

/*
 * y[batch][out_channels][out...] = bias + sum of x * w; everything dense, channels first if
 * nothing else is said. Or, where it is turned, what each element of x, times w, adds to a window
 * of y, which has the strides, the dilations and the pads: w[in_channels][out_channels of a
 * group][kernel...].
 */
struct conv_problem {
    int64_t turned;                                   /* 0 or 1 */
    int64_t rank;                                     /* spatial axes, 1 to CONV_MAX_RANK */
    int64_t batch, groups, in_channels, out_channels; /* channels of all groups together */
    int64_t in[CONV_MAX_RANK], out[CONV_MAX_RANK], kernel[CONV_MAX_RANK];
    int64_t stride[CONV_MAX_RANK], dilation[CONV_MAX_RANK], pad_begin[CONV_MAX_RANK],
        pad_end[CONV_MAX_RANK];
    int64_t biased; /* 0 or 1 */
    /* 0 or 1, of floats that are not turned, for libraries of devices that launch grids: to the
     * sum with its bias a value of the result's shape is added, then what is below 0 becomes 0. */
    int64_t adds, clips;
    int64_t x_zero; /* of 8-bit integers: what is subtracted from x, and what is around it */
    int64_t w_zero; /* and from weights */
    /* 1: of x, of y channels are the last axis; of bytes both, or of none. */
    int64_t x_last, y_last;
    /* Of float32, for the CPU's library: 1: what is in the result's memory before is added to the
     * sums, and then: */
    int64_t added;
    int64_t after, a, b; /* enum convolve_after, and the bits of the numbers A and B of it */
    /* 1: of constant weights, it may be computed by Winograd's algorithm, by the CPU's library. */
    int64_t winograd;
    /* Of these: the address of a struct library_quantizer that lives as long as who asks, in whose
     * bytes the result is, with a bias of INT32; 0: sums are. */
    int64_t quantizer;
};

/* Nothing but int64_t: equal problems have equal bytes, of which library_same_problem compares
 * those in use. */
struct library_problem {
    int64_t kind; /* enum library_kind */
    /* tssa_dtype of operands and result. UINT8, INT8: of the first one; weights are INT8, and sums
     * are INT32 and exact, without a bias, unless they are quantized. */
    int64_t dtype;
    int64_t threads; /* of the host that compute it; 0 where none do */
    union {
        struct matmul_problem matmul;
        struct conv_problem conv;
    };
};

bool library_same_problem(const struct library_problem *a, const struct library_problem *b);

/* ---- Primitives ------------------------------------------------------------------------------ */

/* Alignment of packed weights and of scratch memory in the host's memory. */
#define LIBRARY_ALIGNMENT 64

/* Weights of so many bytes at most, in the problem's type, are packed by the thread that asks for
 * it: no others are started, be there as many as `threads` says. */
#define LIBRARY_PACKED_ALONE ((size_t)1 << 20)

/* A * B: a, b; convolution: x, weights, bias, and what is added. */
enum { LIBRARY_WEIGHTS = 1, LIBRARY_BIAS, LIBRARY_ADDED, LIBRARY_OPERANDS };

struct library_call {
    struct device_place operands[LIBRARY_OPERANDS]; /* weights packed where that is wanted */
    struct device_place result;
    /* On the host a product may be given none though it asks for some: it takes longer then. */
    struct device_place scratch;
};

struct library_primitive {
    const struct primitive_table *table;
    const char *name;    /* the library's, for humans */
    size_t packed_bytes; /* of the weights in its own layout; 0: it takes them row-major */
    size_t scratch_bytes;
    size_t pack_scratch_bytes; /* of them, what packing needs */
};

/* False: it failed, and the result holds nothing of use. */
struct primitive_table {
    /* Do both, of this table, want weights in one layout? As pack, NULL where packed_bytes is
     * always 0. */
    bool (*same_packing)(const struct library_primitive *a, const struct library_primitive *b);
    /* Row-major weights of the host into `packed`, with pack_scratch_bytes of scratch memory. */
    bool (*pack)(const struct library_primitive *primitive, const void *weights, void *packed,
                 void *scratch);
    /* `stream`: NULL on the host, where it is done when the call returns. */
    bool (*run)(const struct library_primitive *primitive, struct device_stream *stream,
                const struct library_call *call);
    void (*release)(struct library_primitive *primitive);
};

/* ---- Libraries ------------------------------------------------------------------------------- */

struct device_library {
    /* What is missed without it, and whether what computes problems of a kind is there, or why it
     * is not, for a message; this opens it. NULL: it is always there. Kinds of one library have the
     * same text. */
    const char *missed[LIBRARY_KINDS];
    bool (*is_there)(enum library_kind kind, char *why, size_t size);
    dtype_mask types; /* of results; it may decline others' problems all the same */
    /* Does it compute what `convolve` says (ir/convolve.h), so that graphs of sessions may say it?
     * This opens it. The function NULL: no. */
    bool (*convolves)(void);
    /* Tells by sizes alone, and opens nothing, whether the problem is worth asking for. The
     * function NULL: all are. */
    bool (*is_worth_it)(const struct library_problem *problem);
    /* NULL: declined, or out of memory. Thread-safe. */
    struct library_primitive *(*make)(struct device_context *context,
                                      const struct library_problem *problem);
    /* One that is never run: it packs weights as the problem's would, and no code is compiled for
     * more. NULL: that would be the same work. The function NULL: always. */
    struct library_primitive *(*make_packer)(struct device_context *context,
                                             const struct library_problem *problem);
};

/* Whether the op is in the table of what libraries compute (library.def). */
bool library_computes(const struct ir_op *op);
/* That, and the device has a library for its type. */
bool library_asks(const struct device *device, const struct ir_op *op);

#endif
