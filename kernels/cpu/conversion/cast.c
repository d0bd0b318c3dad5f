/* SPDX-License-Identifier: Apache-2.0 */
/* Cast, CastLike, BitCast and Identity (ai.onnx 25, 25, 26, 25). Strings are in cast_string.c. */
#include <inttypes.h>
#include <string.h>

#include "kernels/cpu/conversion/cast_string.h"
#include "kernels/cpu/lib/convert.h"

extern const struct kernel cpu_kernel_Identity, cpu_kernel_Cast, cpu_kernel_CastLike,
    cpu_kernel_BitCast;

/* ---- Cast ------------------------------------------------------------------------------------ */

struct cast_state {
    tssa_dtype to; /* UNDEFINED: operand 1 tells */
    struct convert_options options;
};

static tssa_status *prepare_cast(const struct ir_op *op, const struct kernel_setup *setup,
                                 const void **result)
{
    struct cast_state *state = ARENA_NEW(setup->arena, struct cast_state);
    TRY_ALLOC(state);
    if (!ir_op_is(op, IR_OP_CastLike)) {
        int64_t to = ir_attr_int(op, "to", TSSA_UNDEFINED);
        if (to <= TSSA_UNDEFINED || to >= TSSA_DTYPE_COUNT)
            return ERROR(TSSA_MALFORMED, "attribute \"to\" is missing or no element type");
        state->to = (tssa_dtype)to;
    }
    state->options.saturate = ir_attr_int(op, "saturate", 1) != 0;
    const char *mode = ir_attr_str(op, "round_mode", "up");
    if (strcmp(mode, "up") == 0)
        state->options.round_mode = ROUND_UP;
    else if (strcmp(mode, "down") == 0)
        state->options.round_mode = ROUND_DOWN;
    else if (strcmp(mode, "nearest") == 0)
        state->options.round_mode = ROUND_NEAREST;
    else
        return ERROR(TSSA_MALFORMED, "attribute \"round_mode\" is \"%s\", not up, down or nearest",
                     mode);
    *result = state;
    return NULL;
}

struct cast_work {
    const struct tensor *from, *to;
    const struct convert_options *options;
};

static void cast_range(void *context, int64_t begin, int64_t end)
{
    const struct cast_work *work = context;
    size_t from_size = dtype_info(work->from->dtype)->size,
           to_size = dtype_info(work->to->dtype)->size;
    convert_elements(end - begin, work->from->dtype,
                     (const char *)work->from->data + (size_t)begin * from_size, 1, work->to->dtype,
                     (char *)work->to->data + (size_t)begin * to_size, 1, work->options);
}

#define GRAIN 16384

static tssa_status *run_cast(struct kernel_args *args)
{
    const struct cast_state *state = args->state;
    const struct tensor *from, *like;
    TRY(kernel_tensor(args, 0, &from));
    tssa_dtype to = state->to;
    if (to == TSSA_UNDEFINED) {
        TRY(kernel_tensor(args, 1, &like));
        to = like->dtype;
    }
    if (!dtype_in(args->op->info->types, from->dtype) || !dtype_in(args->op->info->types, to))
        return ERROR(TSSA_UNSUPPORTED, "no conversion from %s to %s",
                     dtype_info(from->dtype)->ir_name, dtype_info(to)->ir_name);
    struct tensor *out;
    TRY(kernel_output(args, 0, to, from->rank, from->dims, &out));
    if (!out)
        return NULL;
    size_t count = tensor_count(out);
    if (from->dtype == to) {
        if (count > 0)
            memcpy(out->data, from->data, count * dtype_info(to)->size);
        return NULL;
    }
    if (from->dtype == TSSA_STRING)
        return cast_from_strings(args, from, out, &state->options);
    if (to == TSSA_STRING)
        return cast_to_strings(args, from, out);
    struct cast_work work = {from, out, &state->options};
    team_for(args->env->team, (int64_t)count, GRAIN, cast_range, &work);
    return NULL;
}

const struct kernel cpu_kernel_Cast = {.prepare = prepare_cast, .run = run_cast};
const struct kernel cpu_kernel_CastLike = {.prepare = prepare_cast, .run = run_cast};

/* ---- BitCast --------------------------------------------------------------------------------- */

/*
 * Integers of fewer bits than a byte are kept sign-extended or zero-extended, as their type says.
 */
static void extend(tssa_dtype dtype, uint8_t *elements, size_t count)
{
    unsigned bits = dtype_info(dtype)->file_bits;
    unsigned sign = dtype_info(dtype)->cls == DTYPE_CLASS_SIGNED ? 1u << (bits - 1) : 0;
    for (size_t i = 0; i < count; i++)
        elements[i] = (uint8_t)(((elements[i] & ((1u << bits) - 1)) ^ sign) - sign);
}

static tssa_status *run_bit_cast(struct kernel_args *args)
{
    const struct cast_state *state = args->state;
    const struct tensor *from;
    TRY(kernel_tensor(args, 0, &from));
    const struct dtype_info *a = dtype_info(from->dtype), *b = dtype_info(state->to);
    if (a->file_bits != b->file_bits || a->file_bits == 0)
        return ERROR(TSSA_RUNTIME, "%s and %s differ in width", a->ir_name, b->ir_name);
    struct tensor *out;
    TRY(kernel_output(args, 0, state->to, from->rank, from->dims, &out));
    if (!out || tensor_count(out) == 0)
        return NULL;
    if (out->data != from->data)
        memcpy(out->data, from->data, tensor_bytes(out));
    if (b->file_bits < 8)
        extend(state->to, out->data, tensor_count(out));
    return NULL;
}

const struct kernel cpu_kernel_BitCast = {.prepare = prepare_cast, .run = run_bit_cast};

/* ---- Identity: of any kind of value ---------------------------------------------------------- */

static tssa_status *run_identity(struct kernel_args *args)
{
    const struct value *in = args->n_inputs > 0 ? args->inputs[0] : NULL;
    if (!in)
        return ERROR(TSSA_RUNTIME, "operand 0 is missing");
    if (args->n_outputs > 0 && args->outputs[0])
        value_copy(args->outputs[0], in);
    return NULL;
}

const struct kernel cpu_kernel_Identity = {.run = run_identity};
