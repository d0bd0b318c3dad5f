/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Elements that were copied out of a model's file or bytes, because they lie there where no kernel
 * may read them. Weights that a library keeps packed would be in memory twice, so a copy has
 * holders, and its pages are given back when the last one drops it; they are made again, in the
 * same place, when somebody holds it once more.
 *
 * Who has a graph open reads what it likes: the model's handle, and what is compiled in the
 * background. Then a copy is there whoever holds it. When everybody has left, only what is held is
 * there: by plans for the sake of their steps, and by steps that pack it themselves. (The memory
 * stays allocated, and counted by the context: its pages are what is given back.)
 *
 * A copy is found by an address in it, in the graph or in what it is a copy of. Of elements that
 * are no such copy, nothing is done. Any thread may ask at any time, while the graph lives.
 */
#ifndef TSSA_IR_COPIES_H
#define TSSA_IR_COPIES_H

#include <stdbool.h>
#include <stddef.h>

struct ir_graph;
struct ir_copies;

/* Copies below this size are no business of this file's: little of them is whole pages. */
#define IR_COPIES_FROM ((size_t)16 << 10)

/* `data`, in the graph's arena, has just been copied from `source`, which stays as long as the
 * graph. False: memory ran out. */
bool ir_copies_add(struct ir_graph *graph, void *data, const void *source, size_t size);
/* By ir_graph_free. */
void ir_copies_free(struct ir_copies *copies);

/* A graph is made open, by one. */
void ir_copies_open(const struct ir_graph *graph);
void ir_copies_leave(const struct ir_graph *graph);

/* Is it one? Then it is there until it is dropped. */
bool ir_copies_hold(const struct ir_graph *graph, const void *data);
void ir_copies_drop(const struct ir_graph *graph, const void *data);

/* The bytes of copies that are there now. */
size_t ir_copies_there(const struct ir_graph *graph);

#endif
