/* SPDX-License-Identifier: Apache-2.0 */
#include "device/grids/multiply.h"

struct tile {
    int64_t rows, columns;
    bool shares_terms; /* its threads do */
    int shift;         /* then columns are 1 << shift */
};

/* ---- Which text ------------------------------------------------------------------------------ */

/* A product as a text is given it. */
struct job {
    struct matmul_problem problem;
    bool turned; /* the operands are in each other's place */
    int64_t y_row, y_column, c_row, c_column;
};

/* Of the texts' tiles, by their own defines; rows of large ones are a warp's. */
enum { LARGE_ROWS = 8, LARGE_COLUMNS = 64, SMALL_COLUMNS = 32, SHARED_ROWS = 4 };

/* For large tiles: fewer leave most of a card idle. */
#define ENOUGH_TILES 32
/* Rows of which a text that shares terms reads the other operand once, or twice. */
#define FEW_ROWS 8
/*
 * Of a result: a thread for each leaves most of a card idle, which has 2,048 threads on each of 100
 * multiprocessors or more, and each of them waits for memory k times. So threads share the terms.
 */
#define FEW_ELEMENTS 16384
/* Blocks that share terms: two for each multiprocessor. */
#define ENOUGH_BLOCKS 256
/* Of floats that lie side by side, as powers of two: 8 are the least that memory is read by, and 32
 * a line of caches. */
enum { FEWEST_COLUMNS = 3, LINE = 5 };

static int64_t ceil_div(int64_t a, int64_t b)
{
    return a / b + (a % b != 0);
}

static int64_t count_tiles(const struct matmul_problem *p, int64_t rows, int64_t columns)
{
    return p->batch * ceil_div(p->m, rows) * ceil_div(p->n, columns);
}

static int64_t fewer(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Measured on an H200: one row by [256, 2048] takes 10 us where a thread has all terms of an
 * element, of which the launch itself is less than 3. */
enum grids_text multiply_text(const struct device_context *context, const struct matmul_problem *p)
{
    const int64_t rows = LARGE_ROWS * context->device->launcher->height, few = fewer(p->m, p->n);
    if (few <= FEW_ROWS || count_tiles(p, 1, 1) <= FEW_ELEMENTS)
        return few <= 1 ? GRIDS_TEXT_PRODUCT_ROW : GRIDS_TEXT_PRODUCT_ROWS;
    /* of smaller ones more than half a tile would be for nothing */
    return p->m >= rows / 2 && p->n >= LARGE_COLUMNS / 2 &&
                   count_tiles(p, rows, LARGE_COLUMNS) >= ENOUGH_TILES
               ? GRIDS_TEXT_PRODUCT
               : GRIDS_TEXT_PRODUCT_SMALL;
}

/* ---- How it is divided ----------------------------------------------------------------------- */

/* Of the transposed matrices. */
static void turn(struct job *job)
{
    const struct job old = *job;
    struct matmul_problem *p = &job->problem;
    p->m = old.problem.n;
    p->n = old.problem.m;
    p->a_batch = old.problem.b_batch;
    p->a_row = old.problem.b_column;
    p->a_column = old.problem.b_row;
    p->b_batch = old.problem.a_batch;
    p->b_row = old.problem.a_column;
    p->b_column = old.problem.a_row;
    job->y_row = old.y_column;
    job->y_column = old.y_row;
    job->c_row = old.c_column;
    job->c_column = old.c_row;
    job->turned = true;
}

/* Lie the terms side by side? Then threads that do have terms. */
static bool terms_first(const struct matmul_problem *p)
{
    return p->b_row == 1 && p->b_column != 1;
}

int multiply_divide(const struct columns *c)
{
    int shift = FEWEST_COLUMNS;
    while (shift > 0 && (int64_t)1 << (shift - 1) >= c->n)
        shift--;
    while (shift < c->most && c->threads % ((int64_t)2 << shift) == 0) {
        const bool idle = c->threads >> shift > c->terms, wider = shift < LINE && c->side_by_side;
        if (!idle && !(wider && c->lines * ceil_div(c->n, (int64_t)2 << shift) >= ENOUGH_BLOCKS))
            break;
        shift++;
    }
    return shift;
}

/* What a block computes at a time, by the texts' own defines. */
static struct tile tile_of(const struct device_context *context, enum grids_text text,
                           const struct matmul_problem *p)
{
    const int64_t warps = context->device->launcher->height;
    if (text == GRIDS_TEXT_PRODUCT)
        return (struct tile){.rows = LARGE_ROWS * warps, .columns = LARGE_COLUMNS};
    if (text == GRIDS_TEXT_PRODUCT_SMALL)
        return (struct tile){.rows = warps, .columns = SMALL_COLUMNS};
    const int64_t rows = text == GRIDS_TEXT_PRODUCT_ROW ? 1 : SHARED_ROWS;
    const int shift = multiply_divide(&(struct columns){.n = p->n,
                                                        .lines = p->batch * ceil_div(p->m, rows),
                                                        .terms = p->k,
                                                        .threads = grids_threads(context),
                                                        .side_by_side = !terms_first(p),
                                                        .most = 63});
    return (struct tile){rows, (int64_t)1 << shift, true, shift};
}

/* ---- The launch ------------------------------------------------------------------------------ */

static int64_t bits_of(tssa_dtype dtype, float factor)
{
    int64_t bits = 0;
    dtype_store_double(grids_computed_in(dtype), &bits, (double)factor);
    return bits;
}

static tssa_status *launch(struct device_stream *stream, enum grids_text text,
                           const struct product *product, const struct job *job,
                           const struct library_call *call)
{
    const struct matmul_problem *p = &job->problem;
    const struct finish *finish = &product->finish;
    const struct tile tile = tile_of(stream->context, text, p);
    const int64_t down = ceil_div(p->m, tile.rows), across = ceil_div(p->n, tile.columns);
    const struct launch_param params[] = {
        grids_memory(call->operands[job->turned]),
        grids_memory(call->operands[!job->turned]),
        grids_memory(call->operands[finish->with_c ? PRODUCT_C : 0]),
        grids_memory(call->result),
        grids_number(p->batch),
        grids_number(p->m),
        grids_number(p->n),
        grids_number(p->k),
        grids_number(p->a_batch),
        grids_number(p->a_row),
        grids_number(p->a_column),
        grids_number(p->b_batch),
        grids_number(p->b_row),
        grids_number(p->b_column),
        grids_number(job->y_row),
        grids_number(job->y_column),
        grids_number(job->c_row),
        grids_number(job->c_column),
        grids_number(finish->with_c),
        grids_number(bits_of(product->dtype, finish->alpha)),
        grids_number(bits_of(product->dtype, finish->beta)),
        grids_number(down),
        grids_number(across),
        grids_number(tile.shift), /* from here on where terms are shared */
        grids_number(terms_first(p))};
    const uint32_t n = sizeof params / sizeof *params;
    return grids_launch_text(stream, text, product->dtype, 0, p->batch * down * across, params,
                             tile.shares_terms ? n : n - 2);
}

tssa_status *multiply(struct device_stream *stream, const struct product *product,
                      const struct library_call *call)
{
    struct job job = {.problem = product->problem,
                      .y_row = product->problem.n,
                      .y_column = 1,
                      .c_row = product->finish.c_row,
                      .c_column = product->finish.c_column};
    const enum grids_text text = multiply_text(stream->context, &job.problem);
    const bool shares = text == GRIDS_TEXT_PRODUCT_ROW || text == GRIDS_TEXT_PRODUCT_ROWS,
               narrow = text == GRIDS_TEXT_PRODUCT_SMALL && job.problem.n < SMALL_COLUMNS;
    if (job.problem.m > job.problem.n && (shares || narrow))
        turn(&job);
    return launch(stream, text, product, &job, call);
}

bool multiply_finishes(const struct product *product)
{
    return product->finish.alpha != 1 || product->finish.with_c;
}

tssa_status *multiply_finish(struct device_stream *stream, const struct product *product,
                             const struct library_call *call, struct device_place result)
{
    const struct finish *finish = &product->finish;
    const int64_t count = count_tiles(&product->problem, 1, 1);
    const struct launch_param params[] = {
        grids_memory(call->result),
        grids_memory(result),
        grids_memory(finish->with_c ? call->operands[PRODUCT_C] : result),
        grids_number(count),
        grids_number(product->problem.n),
        grids_number(finish->c_row),
        grids_number(finish->c_column),
        grids_number(finish->with_c),
        grids_number(bits_of(product->dtype, finish->alpha)),
        grids_number(bits_of(product->dtype, finish->beta))};
    if (!multiply_finishes(product))
        return NULL;
    return grids_launch_each(stream, GRIDS_TEXT_SCALE, product->dtype, 0, count, params,
                             sizeof params / sizeof *params);
}
