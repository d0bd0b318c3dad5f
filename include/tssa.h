/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tssa: run and rewrite imperative ONNX models.
 *
 * Objects, from the outside in:
 *
 *   tssa_context   allocator, limits and the thread team; create one per process or per subsystem
 *   tssa_model     one loaded ONNX model (an SSA graph)
 *   tssa_session   a model compiled to a plan; immutable, may be run from many threads at once
 *   tssa_value     what goes in and comes out: tensor, sequence, map, or an empty optional
 *
 * Errors: every function that can fail returns a tssa_status *. NULL means success; otherwise the
 * caller owns the status and frees it with tssa_status_free(). Out parameters are written on
 * success only. Nothing in the library prints, exits or aborts.
 *
 * Ownership: *_create and *_load give the caller a reference that the matching *_free ends. A
 * session keeps its model's graph alive, a value keeps its storage alive; the order of frees does
 * not matter, except that the context must be freed last.
 *
 * Threads: functions on different objects may run at the same time. tssa_session_run() may be
 * called on one session from many threads. A context, a finished model and a value are safe to
 * share for reading.
 *
 * Stack: a thread that calls the library should have TSSA_STACK_SIZE bytes of stack left. Models
 * nest, and those that nest deeper than tssa takes are refused by their depth.
 *
 * Options: every struct of options begins with struct_size, which the caller sets to its sizeof;
 * all other members may be left zero, their default, and NULL in place of the struct means all
 * defaults:
 *
 *   tssa_session_options options = {.struct_size = sizeof options, .profile = 1};
 *
 * So later versions can add members at the end: what a program compiled with an older header does
 * not have is zero, and what a newer one sets, which this library does not know, is
 * TSSA_INVALID_ARGUMENT.
 */
#ifndef TSSA_H
#define TSSA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define TSSA_API __attribute__((visibility("default")))
#else
#define TSSA_API
#endif

#define TSSA_VERSION "0.1.0"

/* TSSA_VERSION of the library that runs, which may be newer than this header. */
TSSA_API const char *tssa_version(void);

/* Enough of a stack for any model; see above. */
#define TSSA_STACK_SIZE (512 * 1024)

/* The highest tensor rank that any value may have. */
#define TSSA_MAX_RANK 16

/* ---- Errors ---------------------------------------------------------------------------------- */

typedef enum tssa_code {
    TSSA_OK = 0,
    TSSA_INVALID_ARGUMENT = 1, /* the caller broke this interface's contract */
    TSSA_IO = 2,               /* the operating system refused a file */
    TSSA_MALFORMED = 3,        /* the bytes are not a valid ONNX model, tensor or IR text */
    TSSA_UNSUPPORTED = 4,    /* valid, but tssa cannot run it (an operator it does not know, say) */
    TSSA_SHAPE_MISMATCH = 5, /* an input's type or shape is not what the model declares */
    TSSA_OUT_OF_MEMORY = 6,  /* the allocator returned NULL */
    TSSA_LIMIT = 7,          /* a limit on nesting, size or work was reached */
    TSSA_RUNTIME = 8,        /* a run failed: an index out of range, a negative size, ... */
    TSSA_INTERNAL = 9        /* a bug in tssa: a verifier or an invariant failed */
} tssa_code;

typedef struct tssa_status tssa_status;

/* NULL is accepted everywhere and means success. */
TSSA_API tssa_code tssa_status_code(const tssa_status *status);
/* One line without a newline: what, where, why. Valid until the status is freed. */
TSSA_API const char *tssa_status_message(const tssa_status *status);
/* Where in tssa the error arose, as "file:line"; for bug reports. */
TSSA_API const char *tssa_status_location(const tssa_status *status);
TSSA_API void tssa_status_free(tssa_status *status);

/* ---- Element types: the numbers of onnx.TensorProto.DataType --------------------------------- */

typedef enum tssa_dtype {
    TSSA_UNDEFINED = 0,
    TSSA_FLOAT = 1,
    TSSA_UINT8 = 2,
    TSSA_INT8 = 3,
    TSSA_UINT16 = 4,
    TSSA_INT16 = 5,
    TSSA_INT32 = 6,
    TSSA_INT64 = 7,
    TSSA_STRING = 8,
    TSSA_BOOL = 9,
    TSSA_FLOAT16 = 10,
    TSSA_DOUBLE = 11,
    TSSA_UINT32 = 12,
    TSSA_UINT64 = 13,
    TSSA_COMPLEX64 = 14,
    TSSA_COMPLEX128 = 15,
    TSSA_BFLOAT16 = 16,
    TSSA_FLOAT8E4M3FN = 17,
    TSSA_FLOAT8E4M3FNUZ = 18,
    TSSA_FLOAT8E5M2 = 19,
    TSSA_FLOAT8E5M2FNUZ = 20,
    TSSA_UINT4 = 21,
    TSSA_INT4 = 22,
    TSSA_FLOAT4E2M1 = 23,
    TSSA_FLOAT8E8M0 = 24,
    TSSA_UINT2 = 25,
    TSSA_INT2 = 26
} tssa_dtype;

#define TSSA_DTYPE_COUNT 27

/* "FLOAT", "INT64", ...; "UNDEFINED" for a number outside the enum. */
TSSA_API const char *tssa_dtype_name(tssa_dtype dtype);
/*
 * Bytes of one element in memory. Sub-byte types (INT4, UINT2, FLOAT4E2M1, ...) take one byte per
 * element in memory and are packed only in files; STRING is a tssa_string; 0 for UNDEFINED.
 */
TSSA_API size_t tssa_dtype_size(tssa_dtype dtype);

/* One element of a STRING tensor: UTF-8 bytes, NULs allowed, no terminator promised. */
typedef struct tssa_string {
    const char *data;
    size_t size;
} tssa_string;

/* ---- Context --------------------------------------------------------------------------------- */

/*
 * A custom allocator. allocate() returns NULL when it cannot; alignment is a power of two up to
 * 4096. Both functions may be called from any thread that uses the context.
 */
typedef struct tssa_allocator {
    void *user;
    void *(*allocate)(void *user, size_t size, size_t alignment);
    void (*release)(void *user, void *memory);
} tssa_allocator;

typedef struct tssa_context tssa_context;

typedef enum tssa_log_level {
    TSSA_LOG_WARNING = 0, /* it works, but not as well as it could: a plugin that is not there */
    TSSA_LOG_INFO = 1     /* what was done: a model loaded, optimized, compiled */
} tssa_log_level;

typedef struct tssa_context_options {
    size_t struct_size;
    const tssa_allocator
        *allocator;      /* NULL: aligned_alloc and free; copied. Both functions are wanted */
    int threads;         /* per parallel kernel; 0: one per core; 1: only the caller's own */
    size_t memory_limit; /* bytes that all objects of the context may hold together, mapped
                                        files aside; 0: the machine's memory */
    /*
     * Called with one line without a newline, which lives as long as the call, by whichever thread
     * is in a function of the context's objects, several at once maybe; it may not call them. NULL:
     * silence.
     */
    void (*log)(void *user, tssa_log_level level, const char *message);
    void *log_user;
    /*
     * A folder, made where there is none, in which compiled kernels are kept for later processes,
     * and what sessions with remarks have measured of the machine (docs/kernels.md); copied. NULL:
     * nothing is written to disk. One that others may write to is not used, nor is any by a program
     * that runs with other rights than who started it (setuid): kernels are code.
     */
    const char *kernel_cache;
} tssa_context_options;

/* options may be NULL for the defaults. */
TSSA_API tssa_status *tssa_context_create(const tssa_context_options *options,
                                          tssa_context **context);
TSSA_API void tssa_context_free(tssa_context *context);
/* The most bytes that were held at one time, and those that are held now. */
TSSA_API size_t tssa_context_memory_peak(const tssa_context *context);
TSSA_API size_t tssa_context_memory_used(const tssa_context *context);
/* Makes the peak what is held now, so that the peak of what follows can be told. */
TSSA_API void tssa_context_memory_restart_peak(tssa_context *context);

/* ---- Values ---------------------------------------------------------------------------------- */

typedef enum tssa_kind {
    TSSA_KIND_NONE = 0, /* an empty optional */
    TSSA_KIND_TENSOR = 1,
    TSSA_KIND_SEQUENCE = 2,
    TSSA_KIND_MAP = 3
} tssa_kind;

typedef struct tssa_value tssa_value;

/* A tensor that owns zeroed memory of its own. Row-major, contiguous. */
TSSA_API tssa_status *tssa_tensor_create(tssa_context *context, tssa_dtype dtype, int rank,
                                         const int64_t *dims, tssa_value **value);
/* A tensor over the caller's memory, which must be aligned to its element size, hold the whole
 * tensor, and outlive the value. `size` is in bytes and is checked. */
TSSA_API tssa_status *tssa_tensor_borrow(tssa_context *context, tssa_dtype dtype, int rank,
                                         const int64_t *dims, void *data, size_t size,
                                         tssa_value **value);
/*
 * A tensor over the caller's memory on a device that has memory of its own, as an input, or an
 * output to be written to, of sessions on that device: on "cuda" an address of the first card's
 * primary context, on "cuda:1" of the second one's. What was asked of the device for it before a
 * run must be done, and what a run writes is there when it returns, unless the run has a stream
 * (tssa_run_options). No function of the library shows the elements.
 */
TSSA_API tssa_status *tssa_tensor_borrow_on(tssa_context *context, const char *device,
                                            tssa_dtype dtype, int rank, const int64_t *dims,
                                            void *memory, size_t size, tssa_value **value);
/* The name of the device in whose memory the tensor lies; NULL: the host's. */
TSSA_API const char *tssa_value_device(const tssa_value *value);
/* A STRING tensor that copies `strings` (as many as dims say). */
TSSA_API tssa_status *tssa_tensor_create_strings(tssa_context *context, int rank,
                                                 const int64_t *dims, const tssa_string *strings,
                                                 tssa_value **value);
/* A sequence of `count` values, of which it takes copies of the handles (storage is shared).
 * `dtype` is the element type of its tensors and is what an empty sequence has. */
TSSA_API tssa_status *tssa_sequence_create(tssa_context *context, tssa_dtype dtype, size_t count,
                                           tssa_value *const *elements, tssa_value **value);
/* A map from a 1-D tensor of integer or STRING keys to a value with one entry per key. */
TSSA_API tssa_status *tssa_map_create(tssa_context *context, tssa_value *keys, tssa_value *values,
                                      tssa_value **value);
/* An empty optional. */
TSSA_API tssa_status *tssa_none_create(tssa_context *context, tssa_value **value);
TSSA_API void tssa_value_free(tssa_value *value);

TSSA_API tssa_kind tssa_value_kind(const tssa_value *value);
/* The element type of a tensor or of a sequence's tensors; UNDEFINED otherwise. */
TSSA_API tssa_dtype tssa_value_dtype(const tssa_value *value);
/* Tensors only; 0, NULL and NULL for other kinds. */
TSSA_API int tssa_tensor_rank(const tssa_value *value);
TSSA_API const int64_t *tssa_tensor_dims(const tssa_value *value);
TSSA_API void *tssa_tensor_data(const tssa_value *value);
/* The number of elements of a tensor, sequence or map; 0 for none. */
TSSA_API size_t tssa_value_count(const tssa_value *value);
/* A new handle on element `index` of a sequence; or on the keys (0) or the values (1) of a map. */
TSSA_API tssa_status *tssa_value_element(const tssa_value *value, size_t index,
                                         tssa_value **element);

/* ---- Models ---------------------------------------------------------------------------------- */

typedef struct tssa_model tssa_model;

/*
 * What becomes of calls of model-local functions. A call hides the function's body from every pass.
 */
typedef enum tssa_functions {
    TSSA_FUNCTIONS_KNOWN = 0, /* the body takes the call's place, unless it holds an operator that
                                 tssa does not know: such a function is called as before */
    TSSA_FUNCTIONS_KEEP = 1,  /* calls stay, and so do definitions that nothing calls. A session
                                 cannot be made of such a model */
    TSSA_FUNCTIONS_INLINE = 2 /* the body takes every call's place */
} tssa_functions;

typedef struct tssa_load_options {
    size_t struct_size;
    /* Read external data through links too. Off, only plain files inside the model's folder that
     * have one name are read, as the ONNX checker demands. */
    int allow_external_links;
    /* Folder of external data for a model read from memory; NULL: such a model may have none. */
    const char *external_data_folder;
    tssa_functions functions;
} tssa_load_options;

/*
 * The file is mapped, and large weights stay in the mapping, until the model and its sessions are
 * freed. A file named *.tir is text of the IR (docs/ir.md), which may be an imperative program:
 * that has to be optimized (level 1 or 2) before it is run or saved.
 */
TSSA_API tssa_status *tssa_model_load_file(tssa_context *context, const char *path,
                                           const tssa_load_options *options, tssa_model **model);
/* `data` is borrowed and must outlive the model and its sessions. */
TSSA_API tssa_status *tssa_model_load_memory(tssa_context *context, const void *data, size_t size,
                                             const tssa_load_options *options, tssa_model **model);
/*
 * Sessions go on without it, and with less memory: weights that the file holds at odd addresses are
 * copied for whoever reads the model, and are in memory twice where sessions keep them packed.
 */
TSSA_API void tssa_model_free(tssa_model *model);

/* What a pass did, or why it did not. Strings live as long as the call. */
typedef enum tssa_remark_kind {
    TSSA_REMARK_APPLIED, /* something was rewritten */
    TSSA_REMARK_MISSED   /* something stays as it is, and why */
} tssa_remark_kind;

typedef struct tssa_remark {
    tssa_remark_kind kind;
    const char *pass;    /* its name */
    const char *op;      /* what it is about: "Loop (node "boxes")" */
    const char *message; /* one line */
} tssa_remark;

/* One run of a pass that has ended. */
typedef struct tssa_pass_run {
    const char *pass;
    double seconds;
    size_t ops_before, ops_after; /* those in subgraphs too */
    int changed;                  /* whether it changed anything */
} tssa_pass_run;

/* What an optimized model is for. */
typedef enum tssa_target {
    TSSA_TARGET_ONNX, /* standard operators alone: any runtime runs it */
    /* what sessions of this library run best: keeps writes that they do in place, and then cannot
     * be saved as ONNX */
    TSSA_TARGET_SESSION
} tssa_target;

typedef struct tssa_optimize_options {
    size_t struct_size;
    int level; /* 0: nothing; 1: what cannot change a result's bits, and is done in no time;
                  2: everything: rewrites across loops, branches and partial writes */
    int verify_after_passes; /* run the verifier after every pass, not only in debug builds */
    /* Called with the IR text after each pass whose name matches (NULL name: all); may be NULL. */
    const char *dump_pass;
    void (*dump)(void *user, const char *pass, const char *text, size_t size);
    void *dump_user;
    void (*remark)(void *user, const tssa_remark *remark); /* may be NULL */
    void *remark_user;
    /* Passes to run, in order, instead of the level's; NULL: the level's. */
    const char *const *passes;
    size_t n_passes;
    const char *const *skipped; /* passes to leave out */
    size_t n_skipped;
    void (*pass_done)(void *user, const tssa_pass_run *run); /* after each pass; may be NULL */
    void *pass_done_user;
    tssa_target target;
    /*
     * Bytes that constants which are computed in advance, and second versions of loops, may add to
     * a file in all; -1: none; 0: 64 KiB, and for products of tables (fold_lookups) up to a quarter
     * of all constants. Does not bound TSSA_TARGET_SESSION.
     */
    int64_t file_growth;
} tssa_optimize_options;

/* Rewrites the model in place; must not run while a session is being created from it. Sessions that
 * were made before go on with what it was. */
TSSA_API tssa_status *tssa_model_optimize(tssa_model *model, const tssa_optimize_options *options);

typedef struct tssa_pass_info {
    const char *name, *summary;
} tssa_pass_info;

/* The passes that there are. */
TSSA_API size_t tssa_pass_count(void);
TSSA_API tssa_status *tssa_pass(size_t index, tssa_pass_info *info);

/* Passes that run one after the other, and again while one of them changes something. */
typedef struct tssa_stage_info {
    const char *const *passes;
    size_t pass_count;
    int rounds; /* how often at most */
} tssa_stage_info;

/* What a level runs, stage by stage; a level that there is not has no stages. */
TSSA_API size_t tssa_stage_count(int level);
TSSA_API tssa_status *tssa_stage(int level, size_t index, tssa_stage_info *info);

/* Checks that the graph is well-formed, and infers its types anew. A model that was loaded is; the
 * error of one that was rewritten is a bug of tssa. */
TSSA_API tssa_status *tssa_model_verify(tssa_model *model);

/* Fix the value of a symbolic dim ("N") before sessions are made, as if the model declared it. */
TSSA_API tssa_status *tssa_model_set_dim(tssa_model *model, const char *symbol, int64_t value);
/*
 * Fix the shape of a tensor input before sessions are made, as if the model declared it. A dim that
 * is a symbol gets its value in all inputs; a number is replaced, in this input alone. -1 leaves a
 * dim as it is. When the error is TSSA_MALFORMED, the model does not work with this shape and can
 * only be freed.
 */
TSSA_API tssa_status *tssa_model_set_input_shape(tssa_model *model, const char *input, int rank,
                                                 const int64_t *dims);

/*
 * Leave these outputs, in this order, and what they need; the inputs stay. A name that no output
 * has, or that comes twice, is TSSA_INVALID_ARGUMENT, and the model is what it was; after another
 * error it can only be freed. (tssa_run_options.wanted leaves outputs out in one run.)
 */
TSSA_API tssa_status *tssa_model_keep_outputs(tssa_model *model, size_t count,
                                              const char *const *names);

/*
 * Leaves the part that tssa can run, so that it can be tested: operators of the main graph that
 * cannot be run, or hold one that cannot, go; their results become inputs, and what they were given
 * outputs, named "RESULT/operand K". *count is how many operators went. After an error the model
 * can only be freed.
 */
TSSA_API tssa_status *tssa_model_cut_unsupported(tssa_model *model, size_t *count);

/*
 * What is legal ONNX, but computed wrongly, refused or unbearably slow by a runtime that people
 * use. What passes make is written in another way; docs/hazards.md has the list.
 */
typedef struct tssa_hazard_info {
    const char *name;
    const char *pattern; /* what it is, and what comes of it */
    const char *seen;    /* in which runtimes, and versions of them */
    const char *around;  /* what is written in its place */
    const char *model;   /* of tests/hazards/models.py, that has it */
} tssa_hazard_info;

TSSA_API size_t tssa_hazard_count(void);
TSSA_API tssa_status *tssa_hazard(size_t index, tssa_hazard_info *info);

typedef struct tssa_save_options {
    size_t struct_size;
    /*
     * Operator set of ai.onnx, from 7 on. 0: the model's, or the oldest newer one that can say what
     * the model holds. One that cannot is refused, with the node named; a hazard that it cannot go
     * around is written as it is, with a warning in the log.
     */
    int64_t opset;
    /* Write large tensors into a file of their own beside the model, as is done in any case for a
     * model of more than 2 GiB. */
    int save_as_external_data;
    const char *external_data_name; /* of that file; NULL: the model's name and ".data" */
    size_t external_data_threshold; /* tensors of so many bytes go there; 0: 1024 */
    /*
     * Names of hazards that are written as they are, for runtimes that have no trouble with them.
     */
    const char *const *kept_hazards;
    size_t n_kept_hazards;
} tssa_save_options;

/*
 * Writes the model as ONNX, in standard operators and those of other domains it came with. Inputs,
 * outputs, names, metadata, functions that are called and the rest of the model survive. Files are
 * written beside their targets and renamed when complete, so that `path` may be the file the model
 * was loaded from. What other passes were to lower first, because ONNX has no operator for it, is
 * TSSA_UNSUPPORTED. options may be NULL for the defaults.
 */
TSSA_API tssa_status *tssa_model_save_file(const tssa_model *model, const char *path,
                                           const tssa_save_options *options);
/* The bytes of the same file through `write`, in pieces; without external data. */
TSSA_API tssa_status *
tssa_model_save_memory(const tssa_model *model, const tssa_save_options *options,
                       void (*write)(void *user, const void *data, size_t size), void *user);

typedef struct tssa_value_info {
    const char *name;
    tssa_kind kind; /* an optional shows what it may hold */
    int is_optional;
    tssa_dtype dtype;
    int rank;                           /* -1: unknown; of a sequence: its tensors' */
    int64_t dims[TSSA_MAX_RANK];        /* -1: symbolic or unknown */
    const char *symbols[TSSA_MAX_RANK]; /* the text of a symbolic dim, else NULL */
    int has_default;                    /* an input that the caller may leave out */
} tssa_value_info;

TSSA_API size_t tssa_model_input_count(const tssa_model *model);
TSSA_API size_t tssa_model_output_count(const tssa_model *model);
/* Strings live as long as the model. */
TSSA_API tssa_status *tssa_model_input(const tssa_model *model, size_t index,
                                       tssa_value_info *info);
TSSA_API tssa_status *tssa_model_output(const tssa_model *model, size_t index,
                                        tssa_value_info *info);

typedef struct tssa_op_count {
    const char *domain; /* "" is ai.onnx */
    const char *name;
    size_t count;
    size_t nested; /* of these, how many are in subgraphs */
    int supported; /* 0: tssa carries it through but cannot run it */
    int function;  /* 1: calls of a model-local function */
} tssa_op_count;

typedef struct tssa_model_info {
    const char *graph_name;
    const char *producer;
    int64_t ir_version;
    int64_t opset; /* of ai.onnx; 0 when it is not imported */
    size_t initializer_count;
    size_t initializer_bytes;
    size_t function_count;      /* model-local functions; see tssa_model_functions */
    size_t kept_function_count; /* of these, how many are still called, or kept in any case */
    const char *dropped;        /* parts of the file that a saved model will not have, with commas:
                                   "training information"; "" when there are none */
} tssa_model_info;

TSSA_API tssa_status *tssa_model_get_info(const tssa_model *model, tssa_model_info *info);
/* Operator counts, subgraphs included, most frequent first: up to `capacity` rows are written,
 * *count is how many there are. */
TSSA_API tssa_status *tssa_model_op_counts(const tssa_model *model, tssa_op_count *rows,
                                           size_t capacity, size_t *count);

/* A function of the model. Strings live as long as the call. */
typedef struct tssa_function_info {
    const char *domain, *name, *overload; /* "" where there is none */
    size_t op_count;                      /* in its body, subgraphs included */
    const char *operators; /* "Add 2, Tanh 1, local:inner 1": the most frequent first */
    size_t calls;          /* nodes of the file that call it, those of other functions too */
    int stays;             /* its calls stay calls, and its definition is written */
    int needed;            /* a function that stays needs it: the definition is written, too */
    const char *unknown;   /* an operator of its body that tssa does not know, or "" */
} tssa_function_info;

/* Calls `visit` for each, in the order of the file. */
TSSA_API tssa_status *
tssa_model_functions(const tssa_model *model,
                     void (*visit)(void *user, const tssa_function_info *info), void *user);

/* A Loop, Scan, If or SequenceMap. Strings live as long as the call. */
typedef struct tssa_control_info {
    const char *op;  /* as remarks name it: "Loop (node "boxes")" */
    int depth;       /* how many of its kind are around it; 0 in the main graph */
    size_t op_count; /* in its subgraphs, inner ones included */
    /* Loop and Scan: how often it runs at most. "100", "N + 1", the value that tells it, "%n"; ""
     * for a Loop without a trip count, or with one of 2^31 - 1 and more, which says the same. */
    const char *trips;
    int trips_are_constant;
    /* What decides whether an If takes its first branch, or a Loop goes on: "true", "false", or a
     * value. */
    const char *condition;
    int condition_is_constant;
    size_t carried;      /* values that one iteration hands to the next */
    const char *carries; /* their names and types, with commas */
    size_t collected;    /* results that consist of a part per iteration */
    size_t captured;     /* values from outside that its subgraphs use, constants not counted */
} tssa_control_info;

/* Calls `visit` for each, an outer one before those in it. */
TSSA_API tssa_status *
tssa_model_control_flow(const tssa_model *model,
                        void (*visit)(void *user, const tssa_control_info *info), void *user);
/* The text of the IR through `write`, in pieces. */
TSSA_API tssa_status *tssa_model_print(const tssa_model *model,
                                       void (*write)(void *user, const char *text, size_t size),
                                       void *user);

/* ---- Sessions -------------------------------------------------------------------------------- */

typedef struct tssa_session tssa_session;

/* The names of the devices that sessions may run on, by number, the default one first; NULL after
 * the last. */
TSSA_API const char *tssa_device_name(size_t index);

/* When a session compiles kernels for what it fuses (docs/kernels.md). The bits are the same in any
 * case. */
typedef enum tssa_compile {
    TSSA_COMPILE_OFF = 0,  /* never */
    TSSA_COMPILE_WAIT = 1, /* when it is made */
    /* The session is made without, and a thread of its own compiles; the first run that begins when
     * it is done, and those after it, have them. */
    TSSA_COMPILE_BACKGROUND = 2
} tssa_compile;

/* How often two-byte floats are rounded (docs/numerics.md). */
typedef enum tssa_precision {
    TSSA_PRECISION_EXACT = 0, /* after each operator, as ONNX has it */
    /* Chains of operators on float16 and bfloat16 are computed in float32, and rounded where
     * something else reads them. The same on any number of threads and however kernels are
     * compiled, but other bits than the exact ones. */
    TSSA_PRECISION_RELAXED = 1
} tssa_precision;

typedef struct tssa_session_options {
    size_t struct_size;
    /*
     * NULL: the default one. "null" computes nothing: outputs have the right shapes, as far as data
     * does not tell them, and hold zeros. "emulated" has memory of its own, as a GPU does, and the
     * CPU's kernels: it is slow, and its bits are the CPU's. See tssa_session_counts. "cuda" is
     * the first card of this machine, "cuda:1" the second one, and so on, and "opencl" likewise:
     * TSSA_UNSUPPORTED where there is none, or no driver.
     */
    const char *device;
    int profile; /* record a duration and a count per step; see tssa_session_profile */
    /* Where there is no generator of code, or it cannot do it, operators run one by one, and it is
     * said once. */
    tssa_compile compile;
    /* On a device that computes nothing, sizes that only data tells are this share of their bounds,
     * more than 0 and at most 1; 0: all of it. */
    double data_share;
    /*
     * Which operators this session computes in one kernel, where it does (the device makes such
     * kernels, or `compile` asks for them), and why others are not in one; which the device lacks,
     * so that the CPU runs them; of the pass "gir", what each kernel is estimated to take. Called
     * while the session is made; may be NULL.
     */
    void (*remark)(void *user, const tssa_remark *remark);
    void *remark_user;
    /*
     * For debugging: runs write over memory of values that nothing reads any more, as far as the
     * session knows, and of results before they are computed. The results are the same, in more
     * time; others are a bug in tssa.
     */
    int poison;
    /*
     * For looking: what the session computes, as text, while it is made. The stages are "gir",
     * "cuda" and, of devices that launch grids, "opencl", the kernels of what is fused, as kernel
     * IR, in CUDA C and in OpenCL C (none where nothing is fused), and then "session", the graph
     * that the first runs are made from. May be NULL.
     */
    void (*dump)(void *user, const char *stage, const char *text, size_t size);
    void *dump_user;
    /*
     * Sums of large products and convolutions of TSSA_FLOAT may be made of operands that are
     * rounded to TF32, of 10 bits behind the point, where the device's library does that ("cuda",
     * by tensor cores): in less time, with errors of some 3e-4 of the largest result. 0: never, the
     * default.
     */
    int allow_tf32;
    tssa_precision precision;
    /*
     * Convolutions of TSSA_FLOAT, 3x3 without strides, of many channels and pixels, are computed by
     * Winograd's algorithm where the device's library can ("cpu", with AVX-512): in 0.45 to 0.9 of
     * the time, with about twice the rounding errors (docs/numerics.md). Not 0: never.
     */
    int no_winograd;
} tssa_session_options;

/* Refuses, with TSSA_UNSUPPORTED and the node named, a model that holds an operator tssa cannot
 * run. */
TSSA_API tssa_status *tssa_session_create(tssa_model *model, const tssa_session_options *options,
                                          tssa_session **session);
/* When no run is under way. What is being compiled for it is given up. In a process that was forked
 * before that was ready, it is not there any more: the session runs without. */
TSSA_API void tssa_session_free(tssa_session *session);

/* What has been compiled for a session. */
typedef struct tssa_compile_info {
    int pending;          /* 1: in the background it is not done yet, and what follows is 0 */
    size_t kernels;       /* fused operators that are kernels in runs that begin now; on a device
                             that launches grids what was compiled until now */
    size_t cached;        /* of these, how many were not compiled but found on disk */
    size_t refused;       /* fused operators that could not be kernels, and are run one by one */
    uint64_t nanoseconds; /* from when the session was made until they were ready */
} tssa_compile_info;

/* Any thread, also while the session runs. */
TSSA_API tssa_status *tssa_session_compiled(tssa_session *session, tssa_compile_info *info);

/*
 * Runs the model once. inputs[i] belongs to the model's i-th input; NULL takes its default. On
 * entry, outputs[i] is NULL, or a tensor of the right type and shape that the result is written
 * into; its memory overlaps neither an input's nor another output's. On success every NULL entry
 * holds a new value that the caller frees; on failure none does.
 */
TSSA_API tssa_status *tssa_session_run(tssa_session *session, size_t input_count,
                                       tssa_value *const *inputs, size_t output_count,
                                       tssa_value **outputs);

/* A request to end runs, which a run is given and another thread may make. */
typedef struct tssa_cancel tssa_cancel;

TSSA_API tssa_status *tssa_cancel_create(tssa_context *context, tssa_cancel **cancel);
/* When no run has it any more. */
TSSA_API void tssa_cancel_free(tssa_cancel *cancel);
/*
 * Ends the runs that were given it, with TSSA_LIMIT, before their next step; those that begin later
 * end at once, until tssa_cancel_reset(). Both may be called from any thread and from a signal
 * handler.
 */
TSSA_API void tssa_cancel_request(tssa_cancel *cancel);
TSSA_API void tssa_cancel_reset(tssa_cancel *cancel);

typedef struct tssa_run_options {
    size_t struct_size;
    /* NULL: only tssa_session_stop() ends the run. May belong to several runs */
    tssa_cancel *cancel;
    /* The numbers of the model's outputs that are wanted, output_count of them, none twice; NULL:
     * all, in their order. What only others need is not computed, and so cannot fail. */
    const size_t *wanted;
    /*
     * The caller's queue of work on the session's device: on "cuda" a CUstream of the card's
     * primary context that is not being captured. What was asked of it before is done before the
     * run reads an input there, and what is asked of it later is done after the run. The run may
     * return before its outputs there are written, where it is a replay of earlier ones of the same
     * shapes. Until the stream has come to its end their memory, and that of the inputs there, is
     * the run's; values may be freed. What is found wrong that late, as an index that is out of
     * range, fails a later run of the session. Outputs of the host's memory are there when it
     * returns. May belong to several runs, of one thread at a time. NULL: there is none, and the
     * run is done when it returns. Sessions on other devices take none (TSSA_UNSUPPORTED).
     */
    void *stream;
} tssa_run_options;

/* The same with options: outputs[i] is the output number wanted[i]. options may be NULL. */
TSSA_API tssa_status *tssa_session_run_with(tssa_session *session, const tssa_run_options *options,
                                            size_t input_count, tssa_value *const *inputs,
                                            size_t output_count, tssa_value **outputs);

/*
 * Ends the session's runs that are under way, with TSSA_LIMIT, before their next step, and
 * refuses new ones. May be called from any thread and from a signal handler.
 */
TSSA_API void tssa_session_stop(tssa_session *session);

/* What runs of a session take for the values that they compute, in bytes, besides inputs, constants
 * and outputs that the caller gives the memory of. */
typedef struct tssa_memory_use {
    size_t last; /* the most that the run which ended last held at one time */
    size_t peak; /* the most that any run held at one time */
    /* of the run which ended last, the greatest sum of the values that it needed at one time,
     * which `last` cannot be less than; 0 unless the session was made with `profile` */
    size_t live;
    /* what is kept now for the next runs, one for each thread that ran the session; before the
     * first run what is there for it, at most 16 MiB */
    size_t kept;
} tssa_memory_use;

/* May be called while the session runs: of those runs nothing is told before they end. */
TSSA_API tssa_status *tssa_session_memory(tssa_session *session, tssa_memory_use *use);

/* The profile since the session was made, or since it has kernels that were compiled in the
 * background, as Chrome trace events (a JSON array). */
TSSA_API tssa_status *tssa_session_profile(tssa_session *session,
                                           void (*write)(void *user, const char *text, size_t size),
                                           void *user);

/* What an operator of the compiled model took, in all runs together. Strings live as long as the
 * call. */
typedef struct tssa_step_profile {
    const char *op;       /* "Add" */
    const char *node;     /* as remarks name it: "Add (node "boxes")" */
    const char *around;   /* the Loop, Scan, If or SequenceMap that it is in, so named; "": none */
    int depth;            /* how many of these are around it; 0 in the main graph */
    uint64_t calls;       /* those in a loop's body count once per iteration */
    uint64_t nanoseconds; /* of all calls; of control flow, what is in its subgraphs included */
    uint64_t nested_nanoseconds; /* of these, what was spent in operators of its subgraphs */
} tssa_step_profile;

/* The same profile: calls `visit` for each operator that was run, control flow before what is in
 * it. `visit` must not use the session. */
TSSA_API tssa_status *
tssa_session_profile_steps(tssa_session *session,
                           void (*visit)(void *user, const tssa_step_profile *step), void *user);
/* From now on the profile is that of later runs; of those under way when they end. */
TSSA_API tssa_status *tssa_session_profile_clear(tssa_session *session);

/*
 * What the session has made with the library that computes some operators (oneDNN: convolutions).
 */
typedef struct tssa_library_info {
    /* made so far: code compiled for an operator and a shape, before its first run or in it */
    size_t primitives;
    uint64_t nanoseconds; /* that making them took, and packing weights, if be it for the session */
    size_t packed_bytes;  /* weights held in the library's layouts now, besides the model's own */
} tssa_library_info;

TSSA_API tssa_status *tssa_session_library(const tssa_session *session, tssa_library_info *info);

/* What the latest run asked of a device that counts ("null", "emulated"). */
typedef struct tssa_session_work {
    uint64_t launches;      /* of kernels */
    uint64_t library_calls; /* products, convolutions and the like */
    uint64_t bytes;         /* that these read and wrote in the device's memory */
    uint64_t allocations;   /* of the device's memory; of a run like the one before none */
    uint64_t copies;        /* between the host's memory and the device's */
    uint64_t copied_bytes;
    uint64_t replays; /* of recordings: all that these hold is counted above as well */
    /* of the host for the device, before it could go on: for sizes and conditions that data tells,
     * and what it computes itself; not for what the run returns */
    uint64_t waits;
} tssa_session_work;

/* TSSA_UNSUPPORTED where the session's device does not count. Before the first run all are 0. */
TSSA_API tssa_status *tssa_session_counts(tssa_session *session, tssa_session_work *work);

#ifdef __cplusplus
}
#endif

#endif
