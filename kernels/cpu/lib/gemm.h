/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products for MatMul, Gemm and whatever else is one. */
#ifndef TSSA_KERNELS_CPU_LIB_GEMM_H
#define TSSA_KERNELS_CPU_LIB_GEMM_H

#include "device/library_cache.h"
#include "device/matmul.h"

struct gemm_panels;

/* c[m][n] = a[m][k] * b[k][n]; strides in elements; c is dense, row-major. */
struct gemm {
    int64_t m, n, k;
    const void *a, *b;
    int64_t a_row, a_column, b_row, b_column;
    void *c;
    struct gemm_panels *panels; /* b as gemm_panels_make copied it, for one row; NULL: nobody has */
    const struct tensor *weights; /* b where gemm_weights says so; NULL: it may be another one */
};

/*
 * Computes `gemm` on elements of `dtype`: floats by gemm_rows.h (float32 through the library where
 * there is one, and b is not in panels: then in its order), two-byte floats in float32 and in the
 * same ways, rounded once; integers wrap. `library` NULL: without.
 */
tssa_status *gemm_compute(struct kernel_args *args, struct library_cache *library, tssa_dtype dtype,
                          const struct gemm *gemm);

/*
 * The same for loops over many products of one shape that are parallel themselves, each on one
 * thread and without memory: of types that gemm_has_loop.
 */
struct gemm_loop {
    tssa_dtype dtype;
    struct library_cache *library;
    struct library_made own, *made; /* `made` NULL: without the library */
};
bool gemm_has_loop(tssa_dtype dtype);
tssa_status *gemm_loop_open(struct kernel_args *args, struct library_cache *library,
                            tssa_dtype dtype, const struct gemm *gemm, struct gemm_loop *loop);
void gemm_loop_run(const struct gemm_loop *loop, const struct gemm *gemm);
void gemm_loop_close(struct gemm_loop *loop);

/* Does it need nothing of a run but its threads, neither a library nor memory? */
bool gemm_is_direct(struct library_cache *library, tssa_dtype dtype, const struct gemm *gemm,
                    const struct team *team);
void gemm_run_direct(const struct team *team, tssa_dtype dtype, const struct gemm *gemm);

/*
 * For kernel.get_ready: what gemm_compute, and what a gemm_loop, would first make of a product of
 * these sizes, whose matrices have no places yet; and what the first product of a process waits
 * for. Of sizes that nobody knows, the latter alone: the library may compute it. `panels` as in
 * struct gemm.
 */
tssa_status *gemm_get_ready(struct kernel_args *args, struct library_cache *library,
                            tssa_dtype dtype, const struct gemm *gemm);
tssa_status *gemm_loop_get_ready(struct kernel_args *args, struct library_cache *library,
                                 tssa_dtype dtype, const struct gemm *gemm);
void gemm_get_ready_unknown(struct library_cache *library, tssa_dtype dtype,
                            const struct gemm_panels *panels);

/* Where the matrices of a call that is set up begin, and the bias that may be added. */
enum { GEMM_LEFT, GEMM_RIGHT, GEMM_RESULT, GEMM_BIAS, GEMM_PLACES };
void gemm_place(const struct gemm *gemm, char **data);
void gemm_move(struct gemm *gemm, char *const *data);

/* How many multiplications; INT64_MAX where they cannot be counted. */
int64_t gemm_work(const struct gemm *gemm);

/* The elements of what matmul_shape has the shape of. */
tssa_status *matmul_compute(struct kernel_args *args, struct library_cache *library,
                            const struct tensor *a, const struct tensor *b, void *out);

#endif
