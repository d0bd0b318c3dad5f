/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of the library that the device `cuda` has, as kernels and as sessions make them, for tests
 * on the fakes (tests/cuda) or on a card. */
#ifndef TSSA_TESTS_COMMON_LIBRARY_CALLS_H
#define TSSA_TESTS_COMMON_LIBRARY_CALLS_H

#include "common/onnx_model.h"
#include "device/device.h"
#include "device/library.h"
#include "tssa.h"

/* ---- As a kernel makes one ------------------------------------------------------------------- */

#define LIBRARY_CALL_MOST 400 /* floats of an operand or the result */

/* A problem of two operands of float32. */
struct library_scene {
    struct library_problem problem;
    size_t n[2], n_result; /* floats */
    float operands[2][LIBRARY_CALL_MOST], wanted[LIBRARY_CALL_MOST];
};

/* Makes it, and runs it with the first operand so many bytes into its memory: what is computed is
 * what is wanted, and nothing is left. *done: the library has computed it. */
tssa_status *library_scene_play(const struct library_scene *scene, size_t offset, bool *done);
/* What does not lie as it was promised is declined. */
void library_scene_lies_badly(const struct library_scene *scene);
/* Each call of CUDA fails once: it is an error of one line, or the library has not computed it, at
 * least `declined` times, or nothing needed the call. */
void library_scene_fails_once(const struct library_scene *scene, unsigned declined);

/* ---- As a session does ----------------------------------------------------------------------- */

#define LIBRARY_SAID 400

/* The model, of two inputs of float32 of this rank and an output, in a few runs on the device, the
 * later of which are recorded, with the same bits. What was said of the library of this name, and
 * the last run's work. The model is freed. */
void library_session_run(struct onnx_model *model, int rank, const int64_t dims[2][4],
                         const char *library, char said[LIBRARY_SAID], tssa_session_work *work);
/* The first element of the output, of a first input of 1 + 2^-12 throughout, which TF32 rounds to
 * 1, and a second one of ones. The model is freed. */
float library_session_first(struct onnx_model *model, int rank, const int64_t dims[2][4],
                            bool allow_tf32);

#endif
