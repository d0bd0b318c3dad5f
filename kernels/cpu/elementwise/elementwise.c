/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The interpreter of element-wise rows: numpy broadcasting around the loops of elementwise_loops.h.
 *
 * The result's index space is reduced to as few dims as the operands' strides allow (one for equal
 * shapes), of which the last is the inner loop. Types without arithmetic of their own are computed
 * in a wider one, chunk by chunk, and rounded once.
 */
#include "kernels/cpu/elementwise/elementwise.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "ir/infer.h"
#include "ir/promotion.h"
#include "ir/scalar.h"
#include "kernels/cpu/elementwise/elementwise_space.h"
#include "kernels/cpu/lib/convert.h"

/* ---- Element types --------------------------------------------------------------------------- */

static const ew_loop *const loops_of[TSSA_DTYPE_COUNT] = {
    [TSSA_FLOAT] = ew_loops_f32,  [TSSA_DOUBLE] = ew_loops_f64, [TSSA_INT8] = ew_loops_i8,
    [TSSA_INT16] = ew_loops_i16,  [TSSA_INT32] = ew_loops_i32,  [TSSA_INT64] = ew_loops_i64,
    [TSSA_UINT8] = ew_loops_u8,   [TSSA_UINT16] = ew_loops_u16, [TSSA_UINT32] = ew_loops_u32,
    [TSSA_UINT64] = ew_loops_u64, [TSSA_BOOL] = ew_loops_bool,  [TSSA_STRING] = ew_loops_str,
};

/* The types of one computation: of operands, of the result, and what it is computed in. */
struct ew_types {
    tssa_dtype in[EW_MAX_OPERANDS], out;
    tssa_dtype in_compute, out_compute;
    ew_loop loop;
};

/* What follows from the operands' types. */
static bool promote(const struct ir_op_info *info, uint32_t n, struct ew_types *types,
                    struct promotion *promotion)
{
    if (!promote_types(info, n, types->in, promotion))
        return false;
    promotion->wrong = 0;
    types->in_compute = promotion->compute;
    types->out = promotion->result;
    types->out_compute = types->out == TSSA_BOOL ? TSSA_BOOL : types->in_compute;
    types->loop = loops_of[types->in_compute] ? loops_of[types->in_compute][info->id] : NULL;
    return types->loop != NULL;
}

/* ---- What prepare keeps ---------------------------------------------------------------------- */

struct ew_state {
    struct ew_uniform uniform; /* present and last are set per run where they matter */
    struct ew_types expected;  /* of operands as inference knows them; no loop: none are */
    bool optional;             /* the expression asks which operands are present */
};

/* Most runs have these types. Not of powers, whose loops the exponent tells. */
static void expect_types(const struct ir_op *op, struct ew_types *types)
{
    const struct ir_op_info *info = op->info;
    struct promotion promotion;
    uint32_t n = info->max_operands == IR_VARIADIC ? 2 : info->max_operands;
    for (uint32_t i = 0; i < n; i++) {
        types->in[i] = infer_dtype(op, i);
        if (types->in[i] == TSSA_UNDEFINED)
            types->in[i] = types->in[0];
    }
    if (info->ew->result == EW_FIRST || !promote(info, n, types, &promotion))
        types->loop = NULL;
}

static tssa_status *prepare(const struct ir_op *op, const struct kernel_setup *setup,
                            const void **result)
{
    struct ew_state *state = ARENA_NEW(setup->arena, struct ew_state);
    TRY_ALLOC(state);
    TRY(scalar_params(op, state->uniform.params));
    expect_types(op, &state->expected);
    state->uniform.count = op->n_operands;
    state->uniform.last = true;
    state->uniform.present[0] = true;
    uint8_t most = op->info->max_operands;
    state->optional = most != IR_VARIADIC && op->info->min_operands < most;
    *result = state;
    return NULL;
}

/* ---- The types of a run ---------------------------------------------------------------------- */

static tssa_status *bad_type(const struct kernel_args *args, uint32_t index)
{
    const struct tensor *first = &args->inputs[0]->tensor, *tensor = &args->inputs[index]->tensor;
    if (index > 0 && tensor->dtype != first->dtype)
        return ERROR(TSSA_RUNTIME,
                     "operand %" PRIu32 " is %s and operand 0 is %s: they must be the same", index,
                     dtype_info(tensor->dtype)->ir_name, dtype_info(first->dtype)->ir_name);
    return ERROR(TSSA_RUNTIME, "operand %" PRIu32 " cannot be %s", index,
                 dtype_info(tensor->dtype)->ir_name);
}

/* Pow with one exponent for which there is a loop that computes in operand 0's type. */
static void choose_power(tssa_dtype compute, const struct tensor *const *in, struct ew_types *types)
{
    if (tensor_count(in[1]) != 1)
        return;
    double exponent;
    convert_elements(1, in[1]->dtype, in[1]->data, 1, TSSA_DOUBLE, &exponent, 1, &convert_default);
    ew_loop loop = ew_power_loop(compute, exponent);
    if (!loop)
        return;
    /* The loop does not read the exponent: there is nothing to convert. */
    types->loop = loop;
    types->in_compute = types->out_compute = types->in[1] = compute;
}

static bool are_expected(const struct ew_types *expected, uint32_t n,
                         const struct tensor *const *in)
{
    for (uint32_t i = 0; i < n; i++)
        if (in[i] && in[i]->dtype != expected->in[i])
            return false;
    return expected->loop != NULL;
}

static tssa_status *choose_types(const struct kernel_args *args, uint32_t n,
                                 const struct tensor *const *in, struct ew_types *types)
{
    const struct ew_state *state = args->state;
    const struct ir_op_info *info = args->op->info;
    struct promotion promotion;
    assert(in[0]); /* no element-wise operator has an optional first operand */
    if (are_expected(&state->expected, n, in)) {
        *types = state->expected;
        return NULL;
    }
    types->in[0] = in[0]->dtype;
    for (uint32_t i = 1; i < n; i++)
        types->in[i] = in[i] ? in[i]->dtype : types->in[0];
    if (!promote(info, n, types, &promotion))
        return bad_type(args, promotion.wrong);
    if (info->ew->result == EW_FIRST && n == 2)
        choose_power(promotion.alone, in, types);
    return NULL;
}

/* ---- Running a loop over an index space ------------------------------------------------------ */

struct ew_work {
    const struct ew_space *space;
    const struct ew_types *types;
    const struct ew_uniform *uniform;
    uint32_t n_in;
    bool convert;
    char *out;
    const char *in[EW_MAX_OPERANDS];
    size_t out_size, in_size[EW_MAX_OPERANDS];
};

#define CHUNK 256

/* One run of the inner loop in another type than the tensors'. */
static void run_converted(const struct ew_work *work, int64_t n, char *out, int64_t out_step,
                          const char *const *in, const int64_t *in_step)
{
    const struct ew_types *types = work->types;
    double in_chunk[EW_MAX_OPERANDS][CHUNK], out_chunk[CHUNK];
    const void *from[EW_MAX_OPERANDS];
    int64_t from_step[EW_MAX_OPERANDS];
    for (int64_t begin = 0; begin < n; begin += CHUNK) {
        int64_t count = n - begin < CHUNK ? n - begin : CHUNK;
        for (uint32_t k = 0; k < work->n_in; k++) {
            from[k] = in_chunk[k];
            from_step[k] = in_step[k] != 0;
            if (in_step[k] == 0 && begin > 0)
                continue; /* still there */
            convert_elements(in_step[k] ? count : 1, types->in[k],
                             in[k] + begin * in_step[k] * (int64_t)work->in_size[k], in_step[k],
                             types->in_compute, in_chunk[k], 1, &convert_default);
        }
        char *to = out + begin * out_step * (int64_t)work->out_size;
        if (types->out == types->out_compute) {
            types->loop(work->uniform, count, to, out_step, from, from_step);
        } else {
            types->loop(work->uniform, count, out_chunk, 1, from, from_step);
            convert_elements(count, types->out_compute, out_chunk, 1, types->out, to, out_step,
                             &convert_default);
        }
    }
}

/* One run of the inner loop; offsets are in elements. */
static void run_stretch(const struct ew_work *work, int64_t n, int64_t out_offset,
                        const int64_t *in_offset)
{
    char *out = work->out + out_offset * (int64_t)work->out_size;
    const char *in[EW_MAX_OPERANDS];
    for (uint32_t k = 0; k < work->n_in; k++)
        in[k] = work->in[k] + in_offset[k] * (int64_t)work->in_size[k];
    if (work->convert)
        run_converted(work, n, out, work->space->out_step, in, work->space->in_step);
    else
        work->types->loop(work->uniform, n, out, work->space->out_step, (const void *const *)in,
                          work->space->in_step);
}

/* The elements [begin, end) of the space, in its order. */
static void run_range(void *context, int64_t begin, int64_t end)
{
    const struct ew_work *work = context;
    const struct ew_space *space = work->space;
    if (space->n_outer == 0) { /* a tenth of a small step goes into starting a cursor */
        int64_t in_offset[EW_MAX_OPERANDS];
        for (uint32_t k = 0; k < work->n_in; k++)
            in_offset[k] = begin * space->in_step[k];
        if (begin < end)
            run_stretch(work, end - begin, begin * space->out_step, in_offset);
        return;
    }
    struct ew_cursor cursor;
    ew_cursor_start(&cursor, space, begin, end);
    int64_t n;
    while ((n = ew_cursor_next(&cursor)) > 0)
        run_stretch(work, n, cursor.out_offset, cursor.in_offset);
}

/* Below this many elements per thread, starting threads costs more than it brings. */
#define GRAIN 16384

static const uint64_t absent_element[2];

static void fill_work(struct ew_work *work, const struct ew_space *space,
                      const struct ew_types *types, const struct ew_uniform *uniform,
                      struct tensor *out, uint32_t n, const struct tensor *const *in)
{
    work->space = space;
    work->types = types;
    work->uniform = uniform;
    work->n_in = n;
    work->out = out->data;
    work->out_size = dtype_info(types->out)->size;
    work->convert = types->out != types->out_compute;
    for (uint32_t k = 0; k < n; k++) {
        work->in[k] = in[k] ? in[k]->data : (const void *)absent_element;
        work->in_size[k] = dtype_info(types->in[k])->size;
        work->convert |= types->in[k] != types->in_compute && in[k];
    }
}

static void compute(const struct kernel_args *args, const struct ew_space *space,
                    const struct ew_types *types, const struct ew_uniform *uniform,
                    struct tensor *out, uint32_t n, const struct tensor *const *in)
{
    struct ew_work work;
    fill_work(&work, space, types, uniform, out, n, in);
    team_for(args->env->team, space->count, GRAIN, run_range, &work);
}

/* ---- Operators ------------------------------------------------------------------------------- */

/* A computation whose operands are one to one with the loop's. */
struct ew_job {
    const struct tensor *in[EW_MAX_OPERANDS];
    struct ew_types types;
    struct ew_space space;
    const struct ew_uniform *uniform;
    struct ew_uniform own;
    struct tensor *out; /* NULL: nobody wants it */
};

static tssa_status *find_job(struct kernel_args *args, uint32_t n, struct ew_job *job)
{
    const struct ir_op_info *info = args->op->info;
    const struct ew_state *state = args->state;
    uint32_t required = info->max_operands == IR_VARIADIC ? n : info->min_operands;
    for (uint32_t i = 0; i < n; i++)
        TRY((i < required ? kernel_tensor : kernel_optional_tensor)(args, i, &job->in[i]));
    TRY(choose_types(args, n, job->in, &job->types));
    TRY(ew_space_make(&job->space, n, job->in));
    TRY(kernel_output(args, 0, job->types.out, job->space.rank, job->space.shape, &job->out));
    job->uniform = &state->uniform;
    if (!state->optional)
        return NULL;
    job->own = state->uniform;
    job->uniform = &job->own;
    for (uint32_t i = 0; i < EW_MAX_OPERANDS; i++)
        job->own.present[i] = i < n && job->in[i];
    return NULL;
}

static tssa_status *run_fixed(struct kernel_args *args, uint32_t n)
{
    struct ew_job job;
    TRY(find_job(args, n, &job));
    if (job.out)
        compute(args, &job.space, &job.types, job.uniform, job.out, n, job.in);
    return NULL;
}

/* ---- Calls that are set up ------------------------------------------------------------------- */

/* What is moved: operands, and the result behind them. */
struct ew_call {
    struct kernel_call call;
    struct ew_job job;
    struct ew_work work;
    char *data[EW_MAX_OPERANDS + 1];
};

static void make_call(struct kernel_call *call)
{
    struct ew_call *c = (struct ew_call *)call;
    for (uint32_t k = 0; k < c->work.n_in; k++)
        c->work.in[k] = c->data[k];
    c->work.out = c->data[c->work.n_in];
    team_for(call->team, c->job.space.count, GRAIN, run_range, &c->work);
}

/* Not of a fold, nor of a power whose exponent tells which loop it is. */
static bool set_up(struct kernel_args *args, const bool *known, struct kernel_call *call)
{
    struct ew_call *c = (struct ew_call *)call;
    const struct ir_op_info *info = args->op->info;
    const uint32_t n = info->max_operands == IR_VARIADIC ? 2 : info->max_operands;
    if (args->n_inputs > n || (info->max_operands == IR_VARIADIC && args->n_inputs != 2) ||
        (info->ew->result == EW_FIRST && !known[n - 1]))
        return false;
    tssa_status *status = find_job(args, n, &c->job);
    tssa_status_free(status);
    if (status || !c->job.out)
        return false;
    fill_work(&c->work, &c->job.space, &c->job.types, c->job.uniform, c->job.out, n, c->job.in);
    for (uint32_t k = 0; k < n; k++)
        c->data[k] = (char *)c->work.in[k];
    c->data[n] = c->work.out;
    *call = (struct kernel_call){
        .make = make_call, .data = c->data, .n_data = n + 1, .team = args->env->team};
    return true;
}

/* ---- Folds ----------------------------------------------------------------------------------- */

/* acc = loop(acc, in): one step of a fold, in place. `acc` is in the type of the computation. */
static tssa_status *fold_step(const struct kernel_args *args, const struct ew_types *types,
                              bool last, struct tensor *acc, const struct tensor *in)
{
    const struct ew_state *state = args->state;
    struct ew_uniform uniform = state->uniform;
    uniform.last = last;
    struct ew_types step = *types;
    step.in[0] = step.out = types->in_compute;
    step.in[1] = in->dtype;
    const struct tensor *operands[2] = {acc, in};
    struct ew_space space;
    TRY(ew_space_make(&space, 2, operands));
    compute(args, &space, &step, &uniform, acc, 2, operands);
    return NULL;
}

/* to = from, broadcast and converted. */
static tssa_status *copy_into(struct tensor *to, const struct tensor *from)
{
    struct ew_space space;
    const struct tensor *operands[2] = {to, from};
    TRY(ew_space_make(&space, 2, operands));
    struct ew_cursor cursor;
    ew_cursor_start(&cursor, &space, 0, space.count);
    int64_t n, to_size = (int64_t)dtype_info(to->dtype)->size,
               from_size = (int64_t)dtype_info(from->dtype)->size;
    while ((n = ew_cursor_next(&cursor)) > 0)
        convert_elements(n, from->dtype, (const char *)from->data + cursor.in_offset[1] * from_size,
                         space.in_step[1], to->dtype,
                         (char *)to->data + cursor.out_offset * to_size, space.out_step,
                         &convert_default);
    return NULL;
}

/* Max, Min, Sum, Mean of one, or of three and more. */
static tssa_status *run_fold(struct kernel_args *args)
{
    const struct tensor *first;
    TRY(kernel_tensor(args, 0, &first));
    int rank = 0;
    int64_t shape[TSSA_MAX_RANK];
    struct ew_types types;
    TRY(choose_types(args, 1, &first, &types));
    for (uint32_t i = 0; i < args->n_inputs; i++) {
        const struct tensor *in;
        TRY(kernel_tensor(args, i, &in));
        if (in->dtype != first->dtype)
            return bad_type(args, i);
        TRY(ew_broadcast(&rank, shape, in));
    }
    struct tensor *out;
    TRY(kernel_output(args, 0, types.out, rank, shape, &out));
    if (!out)
        return NULL;

    struct tensor acc = *out;
    struct buffer *scratch = NULL;
    if (types.in_compute != types.out) {
        acc.dtype = types.in_compute;
        TRY(kernel_scratch(args, tensor_bytes(&acc), &scratch));
        acc.data = scratch->data;
    }
    tssa_status *status = copy_into(&acc, first);
    for (uint32_t i = 1; i < args->n_inputs && !status; i++)
        status = fold_step(args, &types, i + 1 == args->n_inputs, &acc, &args->inputs[i]->tensor);
    if (!status && scratch)
        status = copy_into(out, &acc);
    buffer_release(scratch);
    return status;
}

static tssa_status *run(struct kernel_args *args)
{
    const struct ir_op_info *info = args->op->info;
    if (info->max_operands != IR_VARIADIC) {
        uint32_t n = info->max_operands;
        if (args->n_inputs > n)
            return ERROR(TSSA_RUNTIME, "%" PRIu32 " operands, at most %" PRIu32 " are allowed",
                         args->n_inputs, n);
        return run_fixed(args, n);
    }
    return args->n_inputs == 2 ? run_fixed(args, 2) : run_fold(args);
}

/* ---- Where: elements are moved, whatever they are -------------------------------------------- */

static tssa_status *run_where(struct kernel_args *args)
{
    const struct tensor *in[3];
    for (uint32_t i = 0; i < 3; i++)
        TRY(kernel_tensor(args, i, &in[i]));
    struct promotion promotion;
    struct ew_types types = {.in = {in[0]->dtype, in[1]->dtype, in[2]->dtype}};
    if (!promote_types(args->op->info, 3, types.in, &promotion))
        return ERROR(TSSA_RUNTIME,
                     "operands of types %s, %s, %s: the first must be bool, the others equal",
                     dtype_info(in[0]->dtype)->ir_name, dtype_info(in[1]->dtype)->ir_name,
                     dtype_info(in[2]->dtype)->ir_name);
    types.out = promotion.result;
    struct ew_space space;
    TRY(ew_space_make(&space, 3, in));
    struct tensor *out;
    TRY(kernel_output(args, 0, types.out, space.rank, space.shape, &out));
    if (!out)
        return NULL;
    struct ew_work work = {.space = &space, .types = &types, .n_in = 3, .out = out->data};
    work.out_size = dtype_info(types.out)->size;
    types.loop = ew_where_loop(work.out_size);
    for (int k = 0; k < 3; k++) {
        work.in[k] = in[k]->data;
        work.in_size[k] = dtype_info(in[k]->dtype)->size;
    }
    team_for(args->env->team, space.count, GRAIN, run_range, &work);
    return NULL;
}

/* ---- The kernels ----------------------------------------------------------------------------- */

#define KERNEL_EW                                                                                  \
    {                                                                                              \
        .prepare = prepare, .run = run, .set_up = set_up, .call_size = sizeof(struct ew_call)      \
    }
#define KERNEL_EW_SAME KERNEL_EW
#define KERNEL_EW_BOOL KERNEL_EW
#define KERNEL_EW_FIRST KERNEL_EW
#define KERNEL_EW_WHERE                                                                            \
    {                                                                                              \
        .run = run_where                                                                           \
    }

#define OP(...)
#define EW(id, versions, min, max, types, result, params, expression)                              \
    extern const struct kernel cpu_kernel_##id;                                                    \
    const struct kernel cpu_kernel_##id = KERNEL_##result;
#include "ir/ops.def"
#undef OP
#undef EW
