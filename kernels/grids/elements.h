/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Elements of floats, numbered from where the memory begins: there they are T_WORD, of which T_OF
 * makes what is computed with, T, and T_TO that again, rounded once.
 */
#define T_SIZE ((int64_t)sizeof(T_WORD))
#define LOAD_T(memory, i) T_OF(LOAD(T_WORD, memory, (i)*T_SIZE))
#define STORE_T(memory, i, value) STORE(T_WORD, memory, (i)*T_SIZE, T_TO(value))
