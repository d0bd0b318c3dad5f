/* SPDX-License-Identifier: Apache-2.0 */
/* The CPU's row in the table of devices, and its kernel of every op. */
#include "base/isa.h"
#include "device/cpu/compile.h"
#include "device/cpu/provider.h"
#include "device/cpu/rates.h"
#include "device/devices.h"
#include "device/memory.h"
#include "ir/cost.h"
#include "ir/fuse.h"
#include "ir/layers.h"
#include "ir/row.h"
#include "ir/rule.h"

#define OP(id, domain, name, versions, min_in, max_in, min_out, max_out, cls, flags, types, infer, \
           compute)                                                                                \
    extern const struct kernel cpu_kernel_##compute;
#define EW(id, ...) extern const struct kernel cpu_kernel_##id;
#include "ir/ops.def"
#undef OP
#undef EW

/* Rows that name NONE. */
const struct kernel cpu_kernel_NONE = {.run = NULL};
extern const struct kernel cpu_kernel_layers; /* of fuse ops of recurrent layers */

static const struct kernel *const kernel_table[IR_OP_COUNT] = {
#define OP(id, domain, name, versions, min_in, max_in, min_out, max_out, cls, flags, types, infer, \
           compute)                                                                                \
    [IR_OP_##id] = &cpu_kernel_##compute,
#define EW(id, ...) [IR_OP_##id] = &cpu_kernel_##id,
#include "ir/ops.def"
#undef OP
#undef EW
};

static const struct kernel *find_kernel(const struct ir_op *op)
{
    struct layers layers;
    if (op->kernel)
        return &cpu_kernel_fused;
    if (layers_find(op, &layers))
        return &cpu_kernel_layers;
    const struct kernel *kernel = kernel_table[op->info->id];
    return kernel->run && !op->opaque ? kernel : NULL;
}

/* Elements or rows that are vectors in kernels: what is left of them is computed as if there were
 * all. */
#define VECTOR 32
#define LANES_ROW 48 /* elements of rows that are lanes, of what takes long (gir/form.c) */

/* Do so many fill vectors by nine tenths? */
static bool fills_vectors(int64_t n)
{
    return n * 10 >= (n + VECTOR - 1) / VECTOR * VECTOR * 9;
}

#define FUNCTION 12 /* operations: those of an exponential */
#define MOST_DEPTH 4

/* Is the value computed by functions, a few ops before at most? */
static bool is_of_functions(const struct ir_value *value, int depth)
{
    const struct ir_op *op = value ? value->op : NULL;
    if (!op || depth == MOST_DEPTH)
        return false;
    if (op->info->cls == IR_CLASS_NORMALIZATION || cost_element_work(op) >= FUNCTION)
        return true;
    for (uint32_t i = 0; op->info->ew && i < op->n_operands; i++)
        if (is_of_functions(ir_operand(op, i), depth + 1))
            return true;
    return false;
}

/* ArgMax and ArgMin walk a row twice. What functions compute for them, they take in where vectors
 * of it are full: else nothing is won. */
static bool is_worth_walking(const struct ir_op *op)
{
    const struct ir_type *type = ir_operand(op, 0)->type;
    int64_t n;
    if (!is_of_functions(ir_operand(op, 0), 0) || !dim_is_const(type->dims[type->rank - 1], &n))
        return true;
    return n <= LANES_ROW || fills_vectors(n);
}

#define LONG_LINE 16 /* elements: of fewer, the next one is in the cache already */

/* Are lines of what it makes across lines of what it reads, both of them long? Kernels gather these
 * element by element; Transpose moves squares of them, in a fifth of the time. */
static bool crosses_lines(const struct ir_op *op)
{
    const struct rule *rule = ir_op_is(op, IR_OP_access) ? rule_of(op) : NULL;
    const struct ir_type *type = ir_operand(op, 0)->type;
    if (!rule || rule->n_steps != 1 || rule->steps[0].kind != RULE_PERMUTE || type->rank < 2)
        return false;
    const int64_t last = rule->steps[0].params[type->rank - 1].value;
    return last != type->rank - 1 && type->dims[last]->low >= LONG_LINE &&
           type->dims[type->rank - 1]->low >= LONG_LINE;
}

static bool is_arg(const struct ir_op *op)
{
    return ir_op_is(op, IR_OP_ArgMax) || ir_op_is(op, IR_OP_ArgMin);
}

/* Conversions to and from it are instructions of AVX2's processors. */
static bool has_half(const struct ir_op *op)
{
    for (uint32_t i = 0; i < op->n_operands; i++)
        if (ir_operand(op, i) && ir_operand(op, i)->type->dtype == TSSA_FLOAT16)
            return true;
    return op->results[0].type->dtype == TSSA_FLOAT16;
}

#define FEW_COLUMNS 16

/* Has it columns of which fewer lie side by side than half a vector? Each vector begins anew. */
static bool has_few_columns(const struct ir_op *op)
{
    const struct ir_type *type = ir_operand(op, 0)->type;
    const int axis = ir_column_axis(op);
    int64_t n = 1, dim;
    for (int i = axis + 1; axis >= 0 && i < type->rank; i++)
        if (!dim_is_const(type->dims[i], &dim) || !i64_mul(n, dim, &n))
            return false;
    return axis >= 0 && n < FEW_COLUMNS;
}

static const char *refuses(void *user, const struct ir_op *op)
{
    const char *why = gir_refuses(op);
    (void)user;
    if (!why && isa_level() < ISA_V3 && has_half(op))
        return "float16 needs AVX2 (x86-64-v3)";
    if (!why && isa_level() < ISA_V3 && ir_fuse_keeps(op))
        return "what a mask keeps needs AVX2 (x86-64-v3)";
    if (!why && !op->info->reduction && has_few_columns(op))
        return "its columns side by side are less than half a vector";
    if (!why && is_arg(op) && ir_column_axis(op) < 0 && !is_worth_walking(op))
        return "its rows do not fill the vectors that functions are computed in";
    if (!why && crosses_lines(op))
        return "what it permutes is moved faster by itself";
    return why;
}

/* What reduces rows gains where it reads them from planes. A copy in squares and what computes one
 * element of it take as long as stores across rows do. */
static const char *refuses_planes(void *user, const struct ir_op *op)
{
    struct gir_planes planes;
    bool any = false;
    const char *why = gir_planes_refuses(op, &planes);
    (void)user;
    for (const struct ir_use *use = op->results[0].uses; use; use = use->next)
        any |= ir_row_axes(use->user) > 0;
    if (why || !any)
        return why ? why : "no rows are computed of what it permutes: a copy takes no longer";
    return fills_vectors(gir_rows_of_planes(&planes))
               ? NULL
               : "the rows side by side do not fill vectors of them";
}

/* How many elements a row has, in every run; 0: that is not known, or there are no rows. */
static int64_t row_length(const struct ir_op *op)
{
    const struct ir_type *type = ir_operand(op, 0)->type;
    const int n = ir_row_axes(op);
    int64_t length = n > 0, dim;
    for (int i = n; i > 0; i--)
        if (!dim_is_const(type->dims[type->rank - i], &dim) || !i64_mul(length, dim, &length))
            return 0;
    return length;
}

/* Where these are reached or left, with AVX2 as with AVX-512: bench/results/2026-11-25-alone.md,
 * and of short ones 2026-11-26-forms.md. */
#define SHORT_ROW 24
#define SOME_ROW 64
#define WIDE_ROW 128
#define LONG_ROW 512
#define SSE_ROW 80 /* with SSE4.2, of the highest and the lowest */

/* Short rows are lanes, and exponentials are not stored in between; the positions of longer ones
 * are found in vectors, and what long ones are divided by takes fewer walks. But for short rows
 * gir/estimate.h cannot tell: both have the same bytes and operations. */
static bool takes_alone(void *user, const struct ir_op *op)
{
    const int64_t n = row_length(op);
    (void)user;
    if (ir_op_is(op, IR_OP_Softmax) || ir_op_is(op, IR_OP_LogSoftmax))
        return true;
    if (op->info->cls == IR_CLASS_NORMALIZATION)
        return (n >= 2 && n <= SHORT_ROW) || n >= LONG_ROW;
    if (op->info->cls != IR_CLASS_REDUCTION || n < 2)
        return false;
    if (n <= LANES_ROW && (is_arg(op) || ir_op_is(op, IR_OP_ReduceLogSumExp)))
        return true;
    const bool is_extreme = ir_op_is(op, IR_OP_ReduceMax) || ir_op_is(op, IR_OP_ReduceMin);
    const int64_t most = is_extreme && isa_level() < ISA_V3 ? SSE_ROW : WIDE_ROW;
    return n <= SHORT_ROW || (n >= SOME_ROW && (n <= most || is_arg(op)));
}

static const char *refuses_whole(void *user, const struct ir_op *fuse)
{
    struct gir_fused built;
    const char *why = NULL;
    (void)user;
    tssa_status *status = gir_build_fuse(fuse, fuse->parent->graph->allocator, &built, &why);
    gir_fused_free(&built);
    if (status)
        why = "memory ran out";
    tssa_status_free(status);
    return why;
}

/* A second-level cache has one to two MiB, and what misses it waits for a share of the next one. */
#define TABLE_BYTES (INT64_C(8) << 20)

static const struct ir_fusion *lend_fusion(struct device_context *context)
{
    static const struct ir_fusion fusion = {
        .classes = IR_FUSES_ELEMENTWISE | IR_FUSES_RULES | IR_FUSES_CONCATS | IR_FUSES_GATHERS |
                   IR_FUSES_ROWS | IR_FUSES_COLUMNS | IR_FUSES_POSITIONS | IR_FUSES_LOOPS |
                   IR_FUSES_KEEPS | IR_FUSES_INDICES | IR_FUSES_SCANS,
        .machine = &cost_cpu,
        .most_operands = 32,
        .table_bytes = TABLE_BYTES,
        .moves_inside = true,
        .borrows = true,
        .refuses = refuses,
        .refuses_planes = refuses_planes,
        .refuses_whole = refuses_whole,
        .takes_alone = takes_alone};
    (void)context;
    return &fusion;
}

static void close_context(struct device_context *context)
{
    cpu_compile_close(context);
    cpu_engine_close(context);
}

const struct device cpu_device = {
    .name = "cpu",
    .is_host = true,
    .alignment = TENSOR_ALIGNMENT,
    .find_kernel = find_kernel,
    .library = &cpu_library,
    .compile = cpu_compile,
    .rates = cpu_rates,
    .fusion = lend_fusion,
    .close = close_context,
    DEVICE_READY_STREAMS,
    DEVICE_MEMORY(cpu),
};
