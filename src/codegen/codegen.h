/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generators of machine code: a kernel (gir/gir.h) becomes an object file in memory, which who
 * asked for it loads (device/cpu/object.h). A generator is a plugin, since what it is made of is
 * large: it is opened when the first kernel is compiled.
 */
#ifndef TSSA_CODEGEN_CODEGEN_H
#define TSSA_CODEGEN_CODEGEN_H

#include "gir/gir.h"

/* A function of f32 or f64 that is no operation of the machine: out[i] is of a[i] and b[i], for n
 * elements. The arrays are apart. Functions of one operand do not read b. */
typedef void (*codegen_function)(const void *a, const void *b, void *out, int64_t n);

/*
 * A copy between n rows, at most CODEGEN_ROWS, and memory in which an element of so many rows is a
 * vector: the rows are `step` bytes apart, their elements `between`. It is of one size of elements,
 * and goes to the vectors, whose lanes without a row are then any, or to the rows.
 */
typedef void (*codegen_copy)(void *rows, int64_t step, int64_t between, void *vectors,
                             int64_t elements, int64_t n);
#define CODEGEN_ROWS 32
#define CODEGEN_SIZES 4 /* 1, 2, 4 and 8 bytes */

/* What code may call: pointers only, which it finds by their places. */
struct codegen_calls {
    const codegen_function *f32, *f64; /* functions by scalar_id */
    const codegen_copy *in, *out;      /* to the vectors, and to the rows, by size */
    const uint64_t *kept; /* of 256 bytes of bits: the numbers of those set, a byte for each */
};
enum { CODEGEN_CALLS_KEPT = 4 }; /* the place of the last one */

/*
 * What the code is: args[k] is where argument k has the first row, steps[k] how many bytes behind a
 * row the next one begins; of n_args arguments, steps[n_args + k] is how many bytes lie between the
 * elements of a row, if it is strided; steps[2 * n_args + k] between the rows that are looked up in
 * it, of which there are steps[3 * n_args + k], and whose numbers are right, unless it is checked,
 * when there is one row at least, whatever that says. Nothing is read or
 * written but n elements or records (of what does not move, one) in each of `rows` rows. A result
 * may lie where an operand lies that it may lie on, else it overlaps nothing. Rows are whole where
 * the kernel wants that, and may then have no elements; `scratch` is memory for gir_kept_bytes()
 * for each element of one, and for CODEGEN_MORE elements more. Of columns it is memory for as much
 * for each row of CODEGEN_MORE columns.
 *
 * Of a kernel that keeps, `rows` is 1, and `scratch` is numbers, int64, one for each argument and
 * one more. That of an argument which is kept is how many elements or records it has already: what
 * is kept goes behind them, and the number is then how many it has. There is room for n more, which
 * may all be written, whatever is kept. The last one is the position of the first element.
 *
 * Of a kernel that checks, `scratch` is numbers as well, two for each argument and one more, which
 * is what the first element is counted from. Number k is -1, or an element, in the order of rows,
 * at which argument k was asked for a row that it has not; number n_args + k is then that row's.
 * Where it is -1 the call makes it the first such element of its own, if there is one.
 */
typedef void (*codegen_run)(void *const *args, const int64_t *steps, int64_t rows, int64_t n,
                            const struct codegen_calls *calls, void *scratch);
#define CODEGEN_MORE 32

/* The name of that function in an object file. */
#define CODEGEN_ENTRY "tssa_kernel"

/* The instruction set that code is made for: this machine's, or the level of x86-64's ABI of this
 * number. */
enum codegen_level { CODEGEN_V2 = 2, CODEGEN_V3 = 3, CODEGEN_V4 = 4 };

struct codegen_object {
    const void *bytes; /* a relocatable ELF file */
    size_t size;
    void *handle; /* the generator's */
};

/* Any thread. */
struct codegen {
    /* Of a kernel that gir_check accepts. False: it cannot be done, and why is in `message`, cut at
     * `size` bytes. */
    bool (*compile)(const struct gir_kernel *kernel, enum codegen_level level,
                    struct codegen_object *object, char *message, size_t size);
    void (*release)(struct codegen_object *object);
    const char *version; /* of what it is made of */
    const char *library; /* the file that it has that from */
};

/* The plugin, and its symbol: const struct codegen *(char *message, size_t size). NULL: it cannot
 * be used here, and the message says why. Its number is that of all that is above. */
#define CODEGEN_PLUGIN "tssa-llvm"
#define CODEGEN_SYMBOL "tssa_plugin_codegen_7"
typedef const struct codegen *(*codegen_open)(char *message, size_t size);

#endif
