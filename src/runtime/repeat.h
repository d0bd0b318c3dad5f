/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loops whose iterations differ in addresses alone: state[i + 1] = f(state[i], x[i]). What their
 * body computes of integers is affine in the number of the iteration, what it calls are kernels
 * that can be set up (kernel.set_up), no size changes, and what is carried is passed on, updated in
 * place, or computed anew.
 *
 * The plan says which loops these are, and why another is not. A run makes the first iteration of
 * such a loop step by step. Then it sets up all calls of the next one and of the last one, without
 * computing anything: that tells where every operand and result begins, and how far it is from
 * there in the next iteration. Where places take turns (plan.h) it is two iterations instead of
 * one. From there on an iteration is these calls and an addition for each address: no step, no
 * check, no shape. Indices that are valid in both are valid between them. Where anything cannot be
 * set up, so if an index will be wrong, iterations go on step by step, and errors are those of the
 * steps.
 */
#ifndef TSSA_RUNTIME_REPEAT_H
#define TSSA_RUNTIME_REPEAT_H

#include "runtime/executor.h"
#include "runtime/stack.h"

/* An integer of the body, known as a dim that is affine in the number of the iteration. */
struct repeat_number {
    uint32_t slot;
    const struct dim *dim;
    tssa_dtype dtype;
    int rank; /* 0, or 1: of one element */
};

struct repeat_call {
    const struct step *step;
    const bool *known; /* per operand: its elements are there before the iteration is computed */
    bool makes;        /* memory of its own; else output 0 lies where operand 0 does */
    uint32_t first_result; /* among those of all calls */
};

/* Of a loop, made with the plan. */
struct repeat {
    const struct dim
        *counter; /* the symbol that is the number of the iteration; NULL: nobody asks */
    const struct repeat_call *calls;
    const struct repeat_number *numbers;
    uint32_t n_calls, n_numbers, n_results;
    uint32_t period;   /* 2: what is computed anew and carried has two places that take turns */
    size_t call_bytes; /* of all calls, each aligned */
    size_t most_bytes; /* of the largest one */
};

/* What a table or a call takes of the memory for all of them. */
static inline size_t repeat_aligned(size_t size)
{
    return (size + TENSOR_ALIGNMENT - 1) / TENSOR_ALIGNMENT * TENSOR_ALIGNMENT;
}

/* Finds out for every loop of a plan that is placed: step->repeat, or step->why. */
tssa_status *repeat_plan(struct plan *plan);

/* What a loop lends while iterations are made. */
struct repeat_loop {
    const struct step *step;
    struct value *carried; /* before and after */
    uint32_t n_carried;
    struct stack *stacks;
    uint32_t n_stacked;
    struct scratch_use *scratch;
};

/* Makes iterations [first, end). *made is false, and nothing has happened, where they have to be
 * made step by step. */
tssa_status *repeat_run(struct run *run, const struct repeat_loop *loop, int64_t first, int64_t end,
                        bool *made);

#endif
