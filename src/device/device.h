/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A device is a table of functions, and nobody outside of src/device/NAME knows more of it. A
 * context of a device is what its sessions share: threads, and the library that the device may
 * have, which is opened when a kernel first needs it.
 *
 * Work is done in streams: each run has one. What is asked of a stream is done in the order in
 * which it was asked for, but perhaps later: stream_wait waits for all of it, and an event tells
 * another stream how far this one has come. Memory belongs to the stream that it was asked of.
 * Values lie in spaces: the host's, and that of a device that has memory of its own (`is_host`
 * false).
 *
 * Memory is a handle, and bytes in it are a handle and an offset (struct device_place): nobody
 * above a device adds to a handle or looks behind it, since not every device has pointers. The one
 * exception is memory of the host, which is a pointer for everybody.
 *
 * Errors: TSSA_OUT_OF_MEMORY, TSSA_RUNTIME when the device fails. Work that fails late fails what
 * waits for it. Threads: contexts are shared, what a stream does is called by one thread at a time.
 */
#ifndef TSSA_DEVICE_DEVICE_H
#define TSSA_DEVICE_DEVICE_H

#include <pthread.h>
#include <stdatomic.h>

#include "device/kernel.h"
#include "device/place.h"
#include "gir/build.h"
#include "gir/maps.h"

struct device_context;
struct device_library;
struct device_stream;
struct device_event;     /* the device's own */
struct device_recording; /* the same */
struct gir_rates;
struct ir_fusion;
struct launcher;

enum device_copy {
    DEVICE_COPY_IN,    /* from the host's memory into the device's: the bytes are nobody's when the
                        * call returns, so that they may change */
    DEVICE_COPY_OUT,   /* the other way: the bytes are there when the call returns */
    DEVICE_COPY_WITHIN /* both places are the device's, and do not overlap */
};

/* A kernel to be compiled. */
struct device_kernel {
    const struct gir_kernel *kernel;
    const void *code;  /* NULL: there is none */
    char message[160]; /* then why; cut */
    bool cached;       /* it was kept by an earlier process */
};

/* What struct device.compile is asked for, and says. */
struct device_compiling {
    struct device_kernel *kernels;
    uint32_t n;
    int stop;                /* a descriptor that can be read as soon as it shall end; -1: none */
    bool stopped;            /* it ended for that: some kernels have neither code nor a message */
    char cache_problem[160]; /* why kernels are not kept on disk, where they should be; "" */
};

/* What kernels' first runs, or struct device.compile_waiting, have compiled so far. */
struct device_compiled {
    uint32_t kernels, cached; /* functions; of these, those that an earlier process kept */
    uint64_t nanoseconds;     /* that it took */
    char cache_problem[160];  /* as in struct device_compiling */
};

/* Bytes that go from one place of the device's memory to another. */
struct device_move {
    struct device_place to, from;
    size_t size;
    size_t step; /* the place that they go to is so much further with each iteration */
};

/* A loop of which the device finds out when it ends. */
struct device_while {
    int64_t trips; /* no more iterations; INT64_MAX: any number */
    struct device_place
        count;              /* int64: the number of the iteration, and then how many there were */
    struct device_place go; /* bool: is there a first one? memory NULL: if there are trips */
};

struct device {
    const char *name; /* as in tssa_session_options */
    bool is_host; /* its memory is the host's: offsets are 0, and kernels of the host may use it */
    bool is_numbered;      /* a machine may have several: NAME:N */
    bool counts;           /* what it is asked for: struct device_counts */
    bool computes_nothing; /* and its memory holds nothing (device/null) */
    bool grids; /* what it fuses becomes grids (gir/grid.h), and not what gir/fuse.h says */
    /* How often a Loop runs that has no trip count, where the device computes when it ends, and
     * computes nothing; 0: until it ends. */
    int64_t endless_trips;
    size_t alignment; /* of what `allocate` gives, and of where results are placed in it */
    /* Memory that is aligned so is computed with as what `allocate` gives: by the same code. Of
     * devices that record. */
    size_t operand_alignment;
    const struct launcher *launcher; /* device/grids/launcher.h; NULL: it launches no grids */
    /* Once, before anything else is asked of a context but `close`: opens what the device is on
     * this machine, or says what is missing (TSSA_UNSUPPORTED). NULL: it is always there. */
    tssa_status *(*connect)(struct device_context *context);

    /* ---- Kernels ----------------------------------------------------------------------------- */

    /* NULL: the device lacks it. Control flow, which the executor runs, and opaque ops have none
     * anywhere. */
    const struct kernel *(*find_kernel)(const struct ir_op *op);
    const struct device_library *library; /* device/library.h; NULL: it has none */
    /* Finds code for kernels, which lives as long as the context; equal kernels have one. Any
     * thread. The function NULL: kernels are not compiled here. */
    tssa_status *(*compile)(struct device_context *context, struct device_compiling *compiling);
    /* Compiles what kernels that were prepared wait for, and would wait for in their first run. Any
     * thread. The function NULL: they wait for nothing. */
    tssa_status *(*compile_waiting)(struct device_context *context);
    /* Any thread. The function NULL: kernels compile nothing. */
    void (*compiled)(struct device_context *context, struct device_compiled *made);
    /* What a kernel takes here, for estimates (gir/estimate.h). Any thread. The function NULL:
     * nobody knows. */
    void (*rates)(struct device_context *context, struct gir_rates *rates);
    void (*close)(struct device_context *context);
    /* What kernels of fuse ops are made of, for the context's sessions; NULL, or nothing is
     * returned: the device makes none. find_kernel has the last word on each fuse op. */
    const struct ir_fusion *(*fusion)(struct device_context *context);

    /* ---- Ranges ------------------------------------------------------------------------------ */

    /* Once, before the first of them: is there a profiler's library that shows what a thread does
     * here under names? NULL: there is none, and the next two are NULL, too. */
    bool (*ranges_open)(struct device_context *context);
    /* The calling thread's; they nest. */
    void (*range_begin)(const struct device_context *context, const char *name);
    void (*range_end)(const struct device_context *context);

    /* ---- Streams ----------------------------------------------------------------------------- */

    tssa_status *(*stream_open)(struct device_context *context, struct device_stream **stream);
    /* Waits for it; its memory and its events are gone before. NULL is accepted. */
    void (*stream_close)(struct device_stream *stream);
    tssa_status *(*stream_wait)(struct device_stream *stream);
    /* An event that has come when everything asked of the stream so far is done. */
    tssa_status *(*event_record)(struct device_stream *stream, struct device_event **event);
    /* What is asked of this stream from now on is done after the event. */
    tssa_status *(*event_await)(struct device_stream *stream, struct device_event *event);
    void (*event_free)(struct device_stream *recorded, struct device_event *event);
    /* What is asked of this stream from now on is done after what was asked of the caller's, a
     * handle that the device's users know; NULL: it takes none. */
    tssa_status *(*stream_follow)(struct device_stream *stream, void *callers);
    /* The other way; *leads is false, and nothing has happened, where somebody must wait for the
     * stream all the same, to be told of errors or to end it. */
    tssa_status *(*stream_lead)(struct device_stream *stream, void *callers, bool *leads);

    /* ---- Memory ------------------------------------------------------------------------------ */

    /* Not filled; NULL: there is not so much. Of 0 bytes it is a handle as well. */
    void *(*allocate)(struct device_stream *stream, size_t size);
    /* After what was asked of the stream; `size` as it was asked for. NULL is accepted. */
    void (*release)(struct device_stream *stream, void *memory, size_t size);
    tssa_status *(*copy)(struct device_stream *stream, enum device_copy kind,
                         struct device_place to, struct device_place from, size_t size);
    tssa_status *(*fill)(struct device_stream *stream, struct device_place to, unsigned char byte,
                         size_t size);
    /* One integer or bool, which is there when the call returns. */
    tssa_status *(*read_scalar)(struct device_stream *stream, struct device_place from,
                                tssa_dtype dtype, int64_t *value);

    /* ---- Recordings -------------------------------------------------------------------------- */

    /*
     * From now on, until record_end, what is asked of the stream is not done but recorded, and it
     * `records`. What the host would have to wait for is refused (TSSA_UNSUPPORTED). Bytes that are
     * copied in are those of the call, whenever it is replayed; memory is not released before the
     * end. NULL: nothing can be recorded, and all that follow are NULL, too.
     */
    tssa_status *(*record_begin)(struct device_stream *stream);
    /* What was recorded, which has not been done yet; after an error, too, nothing is recorded any
     * more. */
    tssa_status *(*record_end)(struct device_stream *stream, struct device_recording **recording);
    /* While it records: where bytes of the host's lie for what reads them when it is replayed. */
    tssa_status *(*record_bytes)(struct device_stream *stream, const void *bytes, size_t size,
                                 struct device_place *place);
    /* Asks all of it of the stream, with memory that is still there. */
    tssa_status *(*replay)(struct device_stream *stream, const struct device_recording *recording);
    /* Before the stream is closed. NULL is accepted. */
    void (*recording_free)(struct device_stream *stream, struct device_recording *recording);

    /*
     * While it records. What is asked of the stream from record_while_begin to record_while_end is
     * an iteration of a loop, and from record_if_begin to record_if_else, and from there to
     * record_if_end, what is done if a bool is true, or is not; these nest. Bytes are moved before
     * the first iteration, and behind each one and each branch, all at once: none goes to where
     * another comes from.
     * `go`: whether there is another iteration; memory NULL: as long as there are trips. After an
     * error record_end alone may follow.
     */
    tssa_status *(*record_while_begin)(struct device_stream *stream,
                                       const struct device_while *loop,
                                       const struct device_move *moves, uint32_t n_moves);
    tssa_status *(*record_while_end)(struct device_stream *stream, const struct device_while *loop,
                                     struct device_place go, const struct device_move *moves,
                                     uint32_t n_moves);
    tssa_status *(*record_if_begin)(struct device_stream *stream, struct device_place condition);
    tssa_status *(*record_if_else)(struct device_stream *stream, const struct device_move *moves,
                                   uint32_t n_moves);
    tssa_status *(*record_if_end)(struct device_stream *stream, const struct device_move *moves,
                                  uint32_t n_moves);
    /* Which of these there are here; the function NULL: none. */
    bool (*records_while)(const struct device_context *context);
    bool (*records_if)(const struct device_context *context);
};

/* Shared by all threads and immutable but for what the lock guards. */
struct device_context {
    const struct device *device;
    uint32_t number; /* which one, where devices are numbered; 0: the first */
    /* where what the device lacks runs; NULL: the device is the host */
    struct device_context *host;
    /* on one that computes nothing, sizes that data tells: this share of their bounds */
    double data_share;
    const tssa_allocator *allocator; /* of the host's memory */
    const struct team *team;         /* NULL: one thread */
    const char *cache;        /* a folder for compiled kernels; NULL: none are kept on disk */
    pthread_mutex_t lock;     /* held while the library is opened */
    _Atomic(void *) library;  /* the device's own; NULL until a kernel needs it */
    _Atomic(void *) compiled; /* the device's own, of `compile`; NULL at first */
    bool has_ranges;          /* who profiles has opened them */
    bool allow_tf32;          /* as tssa_session_options has it, for the device's library */
    atomic_bool keeps_not;    /* there is a cache_problem in what `compiled` says */
    void *connected;          /* the device's own, of `connect` */
    const char *gives_up;     /* what `connect` says is not as on other devices; NULL: nothing */
};

/* A part of a fuse op with accesses, assigns or Concats: gir/maps.h. */
struct device_part {
    const struct gir_kernel *kernel;
    const void *code;
    struct gir_part_space space;
    const struct gir_map *maps; /* per argument of the kernel */
    uint32_t n_copies;
    const struct gir_copy *copies;
    bool is_triangle; /* of columns whose first rows tell all: gir/triangle.h */
    int64_t diagonal;
};

/* A fuse op for which there is code: ir_op.kernel. */
struct device_fused {
    const struct gir_kernel *kernel; /* of the first part, if it has parts */
    struct gir_space space;          /* what its arguments are of the op; of one without parts */
    const void *code;
    uint32_t n_parts; /* 0: it is not made of parts */
    const struct device_part *parts;
};

/* What a stream was asked for, of a device that counts; 0 of all others. Bytes: read and written by
 * launches and library calls. */
struct device_counts {
    uint64_t launches, library_calls, bytes;
    uint64_t allocations, copies, copied_bytes; /* copies: between host and device */
    uint64_t replays;                           /* what these asked for is counted as well */
    uint64_t waits; /* of the host, before it could go on: not for what the run returns */
};

/* What a stream of any device begins with. */
struct device_stream {
    struct device_context *context;
    struct device_counts counts;
    bool records; /* between record_begin and record_end */
    /* Who sets one of them wants loops of replays to end, and who waits is told (TSSA_LIMIT); NULL:
     * nobody does. */
    const atomic_bool *stop, *cancel;
};

/* The device of this name, NULL: the default one. NULL when there is none. Of those that are
 * numbered NAME:N is one, too, whether or not a machine has so many. */
const struct device *device_find(const char *name);
/* Of a name for which there is a device: which of them it is. */
uint32_t device_number(const char *name);
/* A name that is found as this device; cut. */
#define DEVICE_NAME_SIZE 32
void device_print_name(const struct device *device, uint32_t number, char name[DEVICE_NAME_SIZE]);
/* By number, from 0 on, the default one first; NULL after the last. */
const struct device *device_at(size_t index);

/* What is given outlives the context, which may not be moved. One that is not the host's is told
 * its host, and connected. */
void device_context_open(struct device_context *context, const struct device *device,
                         const tssa_allocator *allocator, const struct team *team);
/* struct device.connect, where there is one. */
tssa_status *device_context_connect(struct device_context *context);
/* When nothing made in it is left. */
void device_context_close(struct device_context *context);

/* What a context makes when it is first needed, under its lock: what `make` returns is kept in
 * *made; NULL: the next one who asks tries again. Any thread. */
void *device_context_once(struct device_context *context, _Atomic(void *) *made,
                          void *(*make)(struct device_context *context));

#endif
