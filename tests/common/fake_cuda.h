/* SPDX-License-Identifier: Apache-2.0 */
/* The stand-ins for CUDA's libraries (tests/cuda), in the process of a test; not where a card is
 * tested (test_card.h), of which nothing is counted. */
#ifndef TSSA_TESTS_COMMON_FAKE_CUDA_H
#define TSSA_TESTS_COMMON_FAKE_CUDA_H

#include <stdbool.h>

/* From now on CUDA's libraries are they; false: what this machine has. */
void fake_cuda_use(bool fakes);

/* How many calls there were that may fail; and one that shall fail, by its number, with this code.
 */
unsigned long fake_cuda_calls(void);
void fake_cuda_fail_at(unsigned long call, unsigned code);
/* What is called each time that a stream is asked whether it is done; NULL: nothing is. */
void fake_cuda_when_asked(void (*call)(void *data), void *data);
/* What was handed out and is not given back: memory, streams, events, modules, ... */
long fake_cuda_alive(void);
/* Ranges of NVTX that were begun; how many of the thread's have not ended; the latest one. */
unsigned long fake_cuda_ranges(void);
int fake_cuda_range_depth(void);
const char *fake_cuda_latest_range(void);

#endif
