/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dropout-22 of ai.onnx. Outside training it shares its operand. In training, what is dropped is
 * what the standard's reference drops: numpy's RandomState (MT19937) of the seed, 53 bits per
 * element; without a seed, seed 0, so that a run can be repeated.
 */
#include <math.h>
#include <string.h>

#include "kernels/cpu/lib/lines.h"

struct dropout {
    uint32_t seed;
    bool typed_mask; /* before opset 10 the mask has the data's type */
};

static tssa_status *prepare(const struct ir_op *op, const struct kernel_setup *setup,
                            const void **result)
{
    struct dropout *state = ARENA_NEW(setup->arena, struct dropout);
    TRY_ALLOC(state);
    state->seed = (uint32_t)ir_attr_int(op, "seed", 0);
    state->typed_mask = op->version != 0 && op->version < 10;
    *result = state;
    return NULL;
}

/* ---- MT19937 --------------------------------------------------------------------------------- */

#define MT_SIZE 624

struct twister {
    uint32_t key[MT_SIZE];
    int next;
};

static void twister_seed(struct twister *t, uint32_t seed)
{
    for (uint32_t i = 0; i < MT_SIZE; i++) {
        t->key[i] = seed;
        seed = UINT32_C(1812433253) * (seed ^ seed >> 30) + i + 1;
    }
    t->next = MT_SIZE;
}

static void twister_refill(struct twister *t)
{
    for (int i = 0; i < MT_SIZE; i++) {
        uint32_t y = (t->key[i] & 0x80000000u) | (t->key[(i + 1) % MT_SIZE] & 0x7fffffffu);
        t->key[i] = t->key[(i + 397) % MT_SIZE] ^ y >> 1 ^ (y & 1 ? 0x9908b0dfu : 0);
    }
    t->next = 0;
}

static uint32_t twister_next(struct twister *t)
{
    if (t->next == MT_SIZE)
        twister_refill(t);
    uint32_t y = t->key[t->next++];
    y ^= y >> 11;
    y ^= y << 7 & 0x9d2c5680u;
    y ^= y << 15 & 0xefc60000u;
    return y ^ y >> 18;
}

/* In [0, 1). */
static double twister_double(struct twister *t)
{
    uint32_t high = twister_next(t) >> 5, low = twister_next(t) >> 6;
    return ((double)high * 67108864.0 + (double)low) / 9007199254740992.0;
}

/* ---- The operator ---------------------------------------------------------------------------- */

static tssa_status *output_mask(struct kernel_args *args, const struct tensor *in,
                                struct tensor **mask)
{
    const struct dropout *state = args->state;
    return kernel_output(args, 1, state->typed_mask ? in->dtype : TSSA_BOOL, in->rank, in->dims,
                         mask);
}

static tssa_status *keep_all(struct kernel_args *args, const struct tensor *in)
{
    struct tensor *mask;
    TRY(kernel_share(args, 0, 0, in->rank, in->dims));
    TRY(output_mask(args, in, &mask));
    const double one = 1;
    if (mask)
        convert_elements((int64_t)tensor_count(mask), TSSA_DOUBLE, &one, 0, mask->dtype, mask->data,
                         1, &convert_default);
    return NULL;
}

static tssa_status *drop(struct kernel_args *args, const struct tensor *in, double ratio)
{
    const struct dropout *state = args->state;
    struct tensor *out, *mask;
    struct twister twister;
    TRY(kernel_output(args, 0, in->dtype, in->rank, in->dims, &out));
    TRY(output_mask(args, in, &mask));
    twister_seed(&twister, state->seed);
    int64_t count = (int64_t)tensor_count(in);
    for (int64_t i = 0; i < count; i++) {
        double keep = twister_double(&twister) >= ratio, x;
        load_doubles(in, i, 1, 1, &x);
        x = keep * x / (1 - ratio);
        if (out)
            store_doubles(out, i, 1, 1, &x);
        if (mask)
            store_doubles(mask, i, 1, 1, &keep);
    }
    return NULL;
}

static tssa_status *run(struct kernel_args *args)
{
    const struct tensor *in, *given, *mode;
    TRY(typed_tensor(args, 0, &in));
    TRY(kernel_optional_tensor(args, 1, &given));
    TRY(kernel_optional_tensor(args, 2, &mode));
    int64_t training = 0;
    double ratio = 0.5;
    if (mode)
        TRY(kernel_scalar_int(args, 2, &training));
    if (training && given)
        TRY(kernel_scalar_double(args, 1, &ratio));
    if (!(ratio >= 0 && ratio < 1))
        return ERROR(TSSA_RUNTIME, "ratio is %g, not in [0, 1)", ratio);
    return training && ratio > 0 ? drop(args, in, ratio) : keep_all(args, in);
}

extern const struct kernel cpu_kernel_dropout;
const struct kernel cpu_kernel_dropout = {.prepare = prepare, .run = run};
