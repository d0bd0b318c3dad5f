/* SPDX-License-Identifier: Apache-2.0 */
#include "common/grid_device.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "codegen/clike/clike.h"
#include "common/fusing_device.h"
#include "common/interpret_op.h"
#include "common/kernel_check.h"
#include "common/no_error.h"
#include "common/op_run.h"
#include "common/shim_device.h"
#include "device/devices.h"
#include "gir/grid.h"
#include "ir/fuse.h"
#include "ir/printer.h"

struct grid_counts grid_counts;
uint32_t grid_failures;
bool grid_tells;

struct twice {
    const struct kernel *kernel; /* op by op; NULL: by the interpreter, since it is a loop */
    const void *state;
    struct gir_grid *grid; /* NULL: it is none */
};

/* ---- Making one ------------------------------------------------------------------------------ */

struct kernels {
    const struct gir_kernel *parts[GIR_GRID_MAX_PARTS];
};

static struct kernels kernels_of(const struct gir_grid *grid)
{
    struct kernels kernels;
    for (uint32_t i = 0; i < grid->n; i++)
        kernels.parts[i] = grid->parts[i].kernel;
    return kernels;
}

/* NULL: there is none yet. */
static codegen_run code_of(const struct gir_grid *grid, enum clike_width width)
{
    return shim_code(kernels_of(grid).parts, grid->n, width);
}

static void make_grid(const struct ir_op *op, const tssa_allocator *allocator,
                      struct gir_grid **grid)
{
    const char *why;
    no_error(gir_build_grid(op, allocator, grid, &why));
    grid_counts.made += *grid != NULL;
    grid_counts.refused += *grid == NULL;
    if (!*grid && grid_tells) {
        struct text text;
        text_init(&text, &allocator_default);
        ir_print_op_line(op, &text);
        for (const struct ir_op *inner = ir_fuse_body(op)->first; inner; inner = inner->next) {
            text_puts(&text, "    ");
            ir_print_op_line(inner, &text);
        }
        print_message("no grid: %s (node \"%s\")\n%s\n", why, op->name ? op->name : "",
                      text_string(&text));
        text_free(&text);
    }
    for (uint32_t i = 0; *grid && i < (*grid)->n; i++) {
        const struct gir_kernel *kernel = (*grid)->parts[i].kernel;
        no_error(gir_check(kernel, kernel->size));
    }
    if (*grid && !code_of(*grid, CLIKE_NARROW))
        shim_add(kernels_of(*grid).parts, (*grid)->n);
}

static tssa_status *prepare(const struct ir_op *op, const struct kernel_setup *setup,
                            const void **state)
{
    struct twice *twice = ARENA_NEW(setup->arena, struct twice);
    TRY_ALLOC(twice);
    if (!ir_fuse_loop(op)) {
        twice->kernel = fusing_device(false)->find_kernel(op);
        TRY(kernel_prepare(twice->kernel, op, setup, &twice->state));
    }
    if (!ir_fuse_lists(ir_fuse_body(op)->first) && !ir_fuse_boxes(op)) /* these are texts */
        make_grid(op, setup->context->allocator, &twice->grid);
    *state = twice;
    return NULL;
}

static void release(const void *state)
{
    const struct twice *twice = state;
    if (twice->kernel)
        kernel_release(twice->kernel, twice->state);
    gir_grid_free(twice->grid);
}

/* ---- What a call tells ----------------------------------------------------------------------- */

#define MOST_SIZES 512

/* Sizes of operands and results. */
struct sizes {
    uint32_t n;
    const struct dim *dims[MOST_SIZES];
    int64_t values[MOST_SIZES];
};

static void add_sizes(struct sizes *sizes, const struct ir_type *type, const struct value *value)
{
    if (!value || value->kind != TSSA_KIND_TENSOR || type->rank != value->tensor.rank)
        return;
    for (int i = 0; i < type->rank && sizes->n < MOST_SIZES; i++, sizes->n++) {
        sizes->dims[sizes->n] = type->dims[i];
        sizes->values[sizes->n] = value->tensor.dims[i];
    }
}

/* Elements of an operand that inference has names for. */
static void add_elements(struct sizes *sizes, const struct ir_value *operand,
                         const struct value *value)
{
    const struct ir_known *known = operand->known;
    if (!known || !value || value->kind != TSSA_KIND_TENSOR ||
        !dtype_is_integer(value->tensor.dtype))
        return;
    const size_t width = dtype_info(value->tensor.dtype)->size;
    for (size_t i = 0, n = tensor_count(&value->tensor); i < n && sizes->n < MOST_SIZES; i++) {
        if (i >= known->count || !known->elements[i])
            continue;
        sizes->dims[sizes->n] = known->elements[i];
        sizes->values[sizes->n++] =
            dtype_load_int64(value->tensor.dtype, (const char *)value->tensor.data + i * width);
    }
}

static bool find_size(void *context, const struct dim *dim, int64_t *value)
{
    const struct sizes *sizes = context;
    uint32_t i = 0;
    while (i < sizes->n && sizes->dims[i] != dim)
        i++;
    if (i < sizes->n)
        *value = sizes->values[i];
    return i < sizes->n;
}

static bool tell(const struct sizes *sizes, const struct dim *dim, int64_t *value)
{
    return find_size((void *)sizes, dim, value) || dim_eval(dim, find_size, (void *)sizes, value);
}

static bool tell_product(const struct sizes *sizes, const struct dim *const *dims, int n,
                         int64_t *product)
{
    *product = 1;
    for (int i = 0; i < n; i++) {
        int64_t value;
        if (!tell(sizes, dims[i], &value))
            return false;
        *product *= value;
    }
    return true;
}

/* How many rows there are of columns. */
static bool tell_rows(const struct kernel_args *args, const struct sizes *sizes,
                      const struct gir_grid_part *part, int64_t *rows)
{
    if (!part->trips)
        return tell(sizes, part->dims[part->column], rows);
    const struct tensor *count = &args->inputs[part->trips - 1]->tensor;
    *rows = dtype_load_int64(count->dtype, count->data);
    return true;
}

static bool tell_space(const struct kernel_args *args, const struct sizes *sizes,
                       const struct gir_grid_part *part, int64_t *rows, int64_t *n)
{
    const int outer = part->row ? part->rank - part->row : 0;
    int64_t before, behind;
    if (part->column < 0)
        return tell_product(sizes, part->dims, outer, rows) &&
               tell_product(sizes, part->dims + outer, part->rank - outer, n);
    const bool told =
        tell_product(sizes, part->dims, part->column, &before) &&
        tell_rows(args, sizes, part, rows) &&
        tell_product(sizes, part->dims + part->column + 1, part->rank - part->column - 1, &behind);
    *n = told ? before * behind : 0;
    return told;
}

/* How often the launch goes through its stages. */
static bool tell_trips(const struct kernel_args *args, const struct sizes *sizes,
                       const struct gir_grid *grid, int64_t *trips)
{
    *trips = 1;
    if (grid->trips_operand) {
        const struct tensor *count = &args->inputs[grid->trips_operand - 1]->tensor;
        *trips = dtype_load_int64(count->dtype, count->data);
    }
    return !grid->trips || tell(sizes, grid->trips, trips);
}

static bool tell_numbers(const struct kernel_args *args, const struct gir_grid *grid,
                         struct sizes *sizes, int64_t *numbers)
{
    bool good = true;
    sizes->n = 0;
    for (uint32_t i = 0; i < args->n_inputs; i++) {
        add_sizes(sizes, ir_operand(args->op, i)->type, args->inputs[i]);
        add_elements(sizes, ir_operand(args->op, i), args->inputs[i]);
    }
    for (uint32_t i = 0; i < args->n_outputs; i++)
        add_sizes(sizes, args->op->results[i].type, args->outputs[i]);
    for (uint32_t i = 0; i < grid->n_numbers; i++)
        good &= tell(sizes, grid->numbers[i], &numbers[i]);
    return good;
}

/* ---- Running one ----------------------------------------------------------------------------- */

/* What a launch is given; see clike_print_launch. */
struct given {
    void *memory[GIR_GRID_MAX_PARTS * (GIR_MAX_ARGS + 1)];
    int64_t steps[GIR_GRID_MAX_PARTS * (GIR_MAX_ARGS + GIR_MAX_NUMBERS + 5)];
    uint32_t n_memory, n_steps;
    void *inner[GIR_MAX_STAGES]; /* each as large as it must be, and nothing in it */
    enum clike_width width;
};

static void make_inner(const struct gir_grid *grid, struct given *given)
{
    for (uint32_t i = 0; i < grid->n_inner; i++) {
        const size_t size = (size_t)grid->inner[i].count * tssa_dtype_size(grid->inner[i].dtype);
        given->inner[i] = malloc(size + 1);
        assert_non_null(given->inner[i]);
        memset(given->inner[i], 0xff, size);
    }
}

static void free_given(const struct gir_grid *grid, struct given *given)
{
    for (uint32_t i = 0; i < grid->n_inner; i++)
        free(given->inner[i]);
    free(given);
}

/* Results lie in memory of their own, by result of the op. */
static void give_part(const struct kernel_args *args, const struct gir_grid *grid,
                      const struct gir_grid_part *part, const int64_t *numbers,
                      void *const *results, unsigned char *status, struct given *given)
{
    const struct gir_kernel *kernel = part->kernel;
    for (uint32_t k = 0; k < kernel->n_args; k++) {
        const uint32_t index = part->wholes[k].index;
        const enum gir_owner owner = part->wholes[k].owner;
        const bool is_result = gir_args(kernel)[k].is_result || owner == GIR_OF_RESULT;
        if (owner == GIR_INNER) {
            given->memory[given->n_memory++] = given->inner[index];
            given->steps[given->n_steps++] = grid->inner[index].count;
            continue;
        }
        const struct tensor *tensor =
            &(is_result ? args->outputs[index] : args->inputs[index])->tensor;
        given->memory[given->n_memory++] = is_result ? results[index] : tensor->data;
        given->steps[given->n_steps++] = (int64_t)tensor_count(tensor);
    }
    given->memory[given->n_memory++] = status;
    for (uint32_t k = 0; k < kernel->n_numbers; k++)
        given->steps[given->n_steps++] = numbers[k];
}

static bool has_products(const struct ir_op *fuse)
{
    const struct ir_op *loop = ir_fuse_loop(fuse);
    const struct ir_block *body = ir_fuse_body(loop ? ir_fuse_iteration(loop) : fuse);
    return ir_block_has(body, IR_OP_MatMul) || ir_block_has(body, IR_OP_Gemm);
}

/* Sums of products have another order. */
static void compare_near(const struct tensor *made, const struct tensor *wanted)
{
    const size_t size = tssa_dtype_size(made->dtype);
    for (size_t i = 0; i < tensor_count(made); i++)
        expect_close(dtype_load_double(made->dtype, (const char *)made->data + i * size),
                     dtype_load_double(made->dtype, (const char *)wanted->data + i * size), 1e-5,
                     "element", i);
}

static void compare(const struct kernel_args *args, void *const *results, const char *text)
{
    for (uint32_t i = 0; i < args->n_outputs; i++) {
        if (!args->outputs[i])
            continue;
        struct tensor made = args->outputs[i]->tensor;
        made.data = results[i];
        if (has_products(args->op))
            compare_near(&made, &args->outputs[i]->tensor);
        else
            kernel_compare(&made, &args->outputs[i]->tensor, text, i);
    }
}

static void *copy_bytes(const struct tensor *tensor)
{
    const size_t size = tensor_bytes(tensor);
    void *bytes = malloc(size + 1);
    assert_non_null(bytes);
    if (size)
        memcpy(bytes, tensor->data, size);
    return bytes;
}

/* Memory of results that are operands of which some elements change, as it is before. */
static void begin_updates(const struct kernel_args *args, const struct gir_grid *grid,
                          void **results)
{
    for (uint32_t i = 0; grid && i < grid->n; i++)
        for (uint32_t k = 0; k < grid->parts[i].kernel->n_args; k++) {
            const struct gir_whole *whole = &grid->parts[i].wholes[k];
            if (!whole->updates)
                continue;
            results[whole->index] = copy_bytes(&args->inputs[whole->updates - 1]->tensor);
            grid_counts.updated++;
        }
}

/* Memory for other results, each byte of which differs from what is right, and becomes that if it
 * is stored. */
static void make_results(const struct kernel_args *args, void **results)
{
    for (uint32_t i = 0; i < args->n_outputs; i++) {
        if (!args->outputs[i] || results[i])
            continue;
        const struct tensor *tensor = &args->outputs[i]->tensor;
        const size_t size = tensor_bytes(tensor);
        unsigned char *bytes = malloc(size + 1);
        assert_non_null(bytes);
        for (size_t k = 0; k < size; k++)
            bytes[k] = tensor->data ? (unsigned char)~((unsigned char *)tensor->data)[k] : 0;
        results[i] = bytes;
    }
}

/* Patches of any form. */
static bool give_patches(const struct sizes *sizes, const struct gir_grid_part *part,
                         struct given *given)
{
    const int from = part->turned_from, to = part->turned_to;
    int64_t *steps = &given->steps[given->n_steps];
    grid_counts.turned++;
    steps[4] = steps[1] % (CLIKE_PATCH_SHIFT + 1);
    return tell_product(sizes, part->dims + from, to - from, &steps[2]) &&
           tell_product(sizes, part->dims + to, part->rank - to, &steps[3]);
}

/* What it goes over, where nothing but that is given yet: before groups have their own. */
static bool give_space(const struct kernel_args *args, const struct sizes *sizes,
                       const struct gir_grid *grid, const struct gir_grid_part *part,
                       const int64_t *numbers, struct given *given)
{
    const struct gir_kernel *kernel = part->kernel;
    int64_t *steps = &given->steps[given->n_steps];
    if (!tell_space(args, sizes, part, &steps[0], &steps[1]) ||
        (part->turned_to && !give_patches(sizes, part, given)))
        return false;
    const struct clike_call call = {steps[0], steps[1], numbers,
                                    steps - kernel->n_args - kernel->n_numbers};
    if (!clike_is_narrow(kernel, &call))
        given->width = CLIKE_WIDE;
    if (grid->groups)
        steps[part->row ? 0 : 1] /= grid->groups;
    given->n_steps += part->turned_to ? 5 : 2;
    return true;
}

/* Computes the results, in memory that is the caller's then. False: not all that it must know is
 * told. */
static bool compute(const struct kernel_args *args, const struct gir_grid *grid,
                    enum clike_width width, void **results, unsigned char *status)
{
    struct sizes *sizes = malloc(sizeof *sizes);
    struct given *given = calloc(1, sizeof *given);
    int64_t numbers[GIR_MAX_NUMBERS], trips = 0;
    assert_non_null(sizes);
    assert_non_null(given);
    make_inner(grid, given);
    given->width = width;
    bool told = tell_numbers(args, grid, sizes, numbers);
    if (told)
        make_results(args, results);
    for (uint32_t i = 0; i < grid->n && told; i++) {
        give_part(args, grid, &grid->parts[i], numbers, results, status, given);
        told = give_space(args, sizes, grid, &grid->parts[i], numbers, given);
    }
    grid_counts.only_wide += given->width != width;
    if (told)
        told = tell_trips(args, sizes, grid, &trips);
    if (told)
        code_of(grid, given->width)(given->memory, given->steps, grid->groups, trips, NULL, NULL);
    free_given(grid, given);
    free(sizes);
    return told;
}

#define MOST_RESULTS 128

static void check(const struct kernel_args *args, const struct gir_grid *grid,
                  enum clike_width width, void **results)
{
    unsigned char status = 0;
    struct text text;
    text_init(&text, &allocator_default);
    ir_print_op_line(args->op, &text);
    const bool told = compute(args, grid, width, results, &status);
    grid_counts.not_told += !told;
    grid_counts.ran += told;
    if (status)
        fail_msg("a check failed where nothing is wrong: %s", text_string(&text));
    if (told)
        compare(args, results, text_string(&text));
    text_free(&text);
}

/* Results of the shapes that they would have; false: that is not told. */
static bool shape_results(const struct kernel_args *args, struct sizes *sizes, struct value *values)
{
    tell_numbers(args, &(const struct gir_grid){0}, sizes, NULL);
    for (uint32_t i = 0; i < args->n_outputs; i++) {
        const struct ir_type *type = args->op->results[i].type;
        values[i] = (struct value){.kind = TSSA_KIND_TENSOR,
                                   .tensor = {.dtype = type->dtype, .rank = type->rank}};
        for (int k = 0; k < type->rank; k++)
            if (!tell(sizes, type->dims[k], &values[i].tensor.dims[k]) ||
                values[i].tensor.dims[k] < 0)
                return false;
    }
    return true;
}

/* The interpreter has found a wrong index: so has the grid, and it has read and written nothing
 * outside, which the sanitizers see. */
static void check_failure(const struct kernel_args *args, const struct gir_grid *grid,
                          enum clike_width width, void **results)
{
    struct sizes *sizes = malloc(sizeof *sizes);
    struct value values[MOST_RESULTS];
    struct value *outputs[MOST_RESULTS];
    unsigned char status = 0;
    struct kernel_args own = *args;
    size_t elements = 0;
    assert_non_null(sizes);
    for (uint32_t i = 0; i < args->n_outputs; i++)
        outputs[i] = args->outputs[i] ? &values[i] : NULL;
    own.outputs = outputs;
    if (shape_results(args, sizes, values) && compute(&own, grid, width, results, &status)) {
        for (uint32_t i = 0; i < args->n_outputs; i++)
            elements += args->outputs[i] ? tensor_count(&values[i].tensor) : 0;
        if (!status && elements)
            fail_msg("a grid did not find what the interpreter found in %s", args->op->name);
        grid_failures += status;
    }
    free(sizes);
}

/* Of what the interpreter has said. */
static void check_run(const struct kernel_args *args, const struct gir_grid *grid,
                      enum clike_width width, const tssa_status *status, void **results)
{
    if (!status)
        check(args, grid, width, results);
    else if (strstr(tssa_status_message(status), "index"))
        check_failure(args, grid, width, results);
}

#define WIDTHS 2 /* of all launches, CLIKE_NARROW and CLIKE_WIDE */

static tssa_status *run(struct kernel_args *args)
{
    const struct twice *twice = args->state;
    struct kernel_args own = *args;
    void *results[WIDTHS][MOST_RESULTS] = {{NULL}};
    own.state = twice->state;
    assert_true(args->n_outputs <= MOST_RESULTS);
    for (int width = 0; width < WIDTHS; width++)
        begin_updates(args, twice->grid, results[width]);
    tssa_status *status = twice->kernel ? twice->kernel->run(&own) : interpret_op(&own);
    for (int width = 0; width < WIDTHS; width++) {
        if (twice->grid && code_of(twice->grid, CLIKE_NARROW))
            check_run(args, twice->grid, (enum clike_width)width, status, results[width]);
        for (uint32_t i = 0; i < args->n_outputs; i++)
            free(results[width][i]);
    }
    return status;
}

/* ---- The table ------------------------------------------------------------------------------- */

static const struct kernel *find_kernel(const struct ir_op *op)
{
    static const struct kernel kernel = {.prepare = prepare, .run = run, .release = release};
    return ir_fuse_body(op) ? &kernel : device_find(NULL)->find_kernel(op);
}

static const struct ir_fusion *lend(struct device_context *context)
{
    return null_device.fusion(context);
}

const struct device *grid_device(void)
{
    static struct device device;
    if (!device.name) {
        device = *fusing_device(false);
        device.name = "grid";
        device.find_kernel = find_kernel;
        device.fusion = lend;
    }
    return &device;
}

struct device_context *grid_context(void)
{
    static struct device_context context;
    if (!context.device)
        device_context_open(&context, grid_device(), &allocator_default, NULL);
    return &context;
}
